;; A state machine whose states are functions and whose every transition is a tail call: as many of them as the argument
;; says, in constant stack. A pseudo-random number decides each transition; three in four go through the table.
(module
  (type $state (func (param i32 i32 i32) (result i32)))

  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))

  ;; 0: argc, 4: size of the arguments, 8: an iovec, 16: bytes written, 32: the line, 128: argv and what it points to.
  (memory (export "memory") 1)
  (data (i32.const 32) "tailcalls ")

  (table funcref (elem $red $green $blue $black))

  ;; Marsaglia's xorshift.
  (func $next_random (param $x i32) (result i32)
    (local.set $x (i32.xor (local.get $x) (i32.shl (local.get $x) (i32.const 13))))
    (local.set $x (i32.xor (local.get $x) (i32.shr_u (local.get $x) (i32.const 17))))
    (i32.xor (local.get $x) (i32.shl (local.get $x) (i32.const 5))))

  ;; Where every state goes from: the end, or the state that the low bits of the next number name.
  (func $transition (param $left i32) (param $random i32) (param $sum i32) (result i32)
    (if (i32.eqz (local.get $left)) (then (return (local.get $sum))))
    (local.set $random (call $next_random (local.get $random)))
    (return_call_indirect (type $state)
      (i32.sub (local.get $left) (i32.const 1))
      (local.get $random)
      (local.get $sum)
      (i32.and (local.get $random) (i32.const 3))))

  (func $red (param $left i32) (param $random i32) (param $sum i32) (result i32)
    (return_call $transition
      (local.get $left)
      (local.get $random)
      (i32.add (i32.mul (local.get $sum) (i32.const 31)) (i32.const 1))))

  (func $green (param $left i32) (param $random i32) (param $sum i32) (result i32)
    (return_call $transition
      (local.get $left)
      (local.get $random)
      (i32.xor (i32.rotl (local.get $sum) (i32.const 7)) (local.get $random))))

  (func $blue (param $left i32) (param $random i32) (param $sum i32) (result i32)
    (return_call $transition
      (local.get $left)
      (local.get $random)
      (i32.sub (local.get $sum) (i32.shr_u (local.get $random) (i32.const 9)))))

  ;; Goes on to red without asking, if any transition is left.
  (func $black (param $left i32) (param $random i32) (param $sum i32) (result i32)
    (if (i32.eqz (local.get $left)) (then (return (local.get $sum))))
    (return_call $red
      (i32.sub (local.get $left) (i32.const 1))
      (local.get $random)
      (i32.add (local.get $sum) (local.get $left))))

  ;; Reads the decimal number at `at`.
  (func $parse (param $at i32) (result i32)
    (local $digit i32) (local $value i32)
    (loop $next
      (local.set $digit (i32.sub (i32.load8_u (local.get $at)) (i32.const 48)))
      (if (i32.lt_u (local.get $digit) (i32.const 10))
        (then
          (local.set $value (i32.add (i32.mul (local.get $value) (i32.const 10)) (local.get $digit)))
          (local.set $at (i32.add (local.get $at) (i32.const 1)))
          (br $next))))
    (local.get $value))

  ;; Writes `value` in decimal at `at`; where it ends.
  (func $print (param $at i32) (param $value i32) (result i32)
    (if (i32.ge_u (local.get $value) (i32.const 10))
      (then (local.set $at (call $print (local.get $at) (i32.div_u (local.get $value) (i32.const 10))))))
    (i32.store8 (local.get $at) (i32.add (i32.rem_u (local.get $value) (i32.const 10)) (i32.const 48)))
    (i32.add (local.get $at) (i32.const 1)))

  ;; The argument, or 100 million when there is none or too many to hold.
  (func $argument (result i32)
    (if (call $args_sizes_get (i32.const 0) (i32.const 4)) (then (call $proc_exit (i32.const 1))))
    (if (i32.or
          (i32.lt_u (i32.load (i32.const 0)) (i32.const 2))
          (i32.or
            (i32.gt_u (i32.load (i32.const 0)) (i32.const 1000))
            (i32.gt_u (i32.load (i32.const 4)) (i32.const 60000))))
      (then (return (i32.const 100000000))))
    (if (call $args_get (i32.const 128) (i32.const 4128)) (then (call $proc_exit (i32.const 1))))
    (call $parse (i32.load (i32.const 132))))

  (func (export "_start")
    (local $count i32) (local $end i32)
    (local.set $count (call $argument))
    (local.set $end (call $print (i32.const 42) (local.get $count)))
    (i32.store16 (local.get $end) (i32.const 0x203a)) ;; ": "
    (local.set $end
      (call $print
        (i32.add (local.get $end) (i32.const 2))
        (call $red (local.get $count) (i32.const 2463534242) (i32.const 0))))
    (i32.store8 (local.get $end) (i32.const 10))
    (i32.store (i32.const 8) (i32.const 32))
    (i32.store (i32.const 12) (i32.sub (i32.add (local.get $end) (i32.const 1)) (i32.const 32)))
    (if (call $fd_write (i32.const 1) (i32.const 8) (i32.const 1) (i32.const 16))
      (then (call $proc_exit (i32.const 1))))))
