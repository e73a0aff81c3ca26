;; Guests that pass references to host values around. `_start` does the work once for each argument, so that the work can be doubled.
(module
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (table $values 1024 externref)
  (type $passes (func (param i32 externref externref) (result externref)))
  (table $functions funcref (elem $left $right))
  (global $first (mut externref) (ref.null extern))
  (global $second (mut externref) (ref.null extern))

  ;; Calls: three references are parameters, and two of them live across the first call.
  (func $calls (param $n i32) (param $a externref) (param $b externref) (param $c externref) (result i32)
    (if (i32.lt_s (local.get $n) (i32.const 2)) (then (return (i32.add (i32.const 1) (ref.is_null (local.get $a))))))
    (i32.add
      (call $calls (i32.sub (local.get $n) (i32.const 1)) (local.get $b) (local.get $c) (local.get $a))
      (call $calls (i32.sub (local.get $n) (i32.const 2)) (local.get $c) (local.get $a) (local.get $b))))

  ;; Calls through a table, which return a reference.
  (func $left (type $passes)
    (if (i32.eqz (local.get 0)) (then (return (local.get 1))))
    (call_indirect $functions (type $passes)
      (i32.sub (local.get 0) (i32.const 1)) (local.get 2) (local.get 1) (i32.and (local.get 0) (i32.const 1))))
  (func $right (type $passes)
    (if (i32.eqz (local.get 0)) (then (return (local.get 2))))
    (call $left (i32.sub (local.get 0) (i32.const 1)) (local.get 1)
      (call $left (i32.const 1) (local.get 2) (local.get 1))))
  (func $indirect (param $n i32) (result i32) (local $sum i32)
    (loop $again
      (local.set $sum (i32.add (local.get $sum)
        (ref.is_null (call $right (i32.const 40) (global.get $first) (global.get $second)))))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum))

  ;; A table is reversed, element by element.
  (func $table (param $n i32) (result i32) (local $i i32) (local $j i32) (local $held externref)
    (loop $again
      (local.set $i (i32.const 0))
      (local.set $j (i32.const 1023))
      (loop $swap
        (local.set $held (table.get $values (local.get $i)))
        (table.set $values (local.get $i) (table.get $values (local.get $j)))
        (table.set $values (local.get $j) (local.get $held))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (local.set $j (i32.sub (local.get $j) (i32.const 1)))
        (br_if $swap (i32.lt_u (local.get $i) (local.get $j))))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (ref.is_null (local.get $held)))

  ;; Globals are exchanged, through locals that live across a call in a loop.
  (func $leaf (param externref i32) (result i32)
    (if (i32.eq (local.get 1) (i32.const -1)) (then (unreachable)))
    (i32.add (ref.is_null (local.get 0)) (local.get 1)))
  (func $globals (param $n i32) (result i32) (local $a externref) (local $b externref) (local $sum i32)
    (local.set $a (global.get $first))
    (local.set $b (global.get $second))
    (loop $again
      (local.set $sum (i32.and (call $leaf (local.get $a) (local.get $sum)) (i32.const 0xffff)))
      (global.set $first (local.get $b))
      (global.set $second (local.get $a))
      (local.set $a (select (result externref) (global.get $first) (local.get $b) (i32.and (local.get $n) (i32.const 1))))
      (local.set $b (global.get $second))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum))

  (func (export "_start") (local $count i32) (local $sum i32)
    (drop (call $sizes (i32.const 0) (i32.const 4)))
    (local.set $count (i32.load (i32.const 0)))
    (loop $again
      (local.set $sum (i32.add (local.get $sum) (KERNEL)))
      (br_if $again (local.tee $count (i32.sub (local.get $count) (i32.const 1)))))
    (if (i32.eqz (local.get $sum)) (then (call $exit (i32.const 1))))))
