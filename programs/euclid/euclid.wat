;; The greatest common divisors of all neighbours in a pseudo-random sequence as long as the argument says, with the
;; coefficients that make them (Knuth, TAOCP 1.2.1, algorithm E): recursion, and functions with several results.
(module
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args_get (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $proc_exit (param i32)))

  ;; 0: argc, 4: size of the arguments, 8: an iovec, 16: bytes written, 32: the line, 128: argv and what it points to.
  (memory (export "memory") 1)
  (data (i32.const 32) "euclid ")

  ;; Marsaglia's xorshift.
  (func $next_random (param $x i32) (result i32)
    (local.set $x (i32.xor (local.get $x) (i32.shl (local.get $x) (i32.const 13))))
    (local.set $x (i32.xor (local.get $x) (i32.shr_u (local.get $x) (i32.const 17))))
    (i32.xor (local.get $x) (i32.shl (local.get $x) (i32.const 5))))

  ;; Quotient and remainder.
  (func $divide (param $a i32) (param $b i32) (result i32 i32)
    (i32.div_u (local.get $a) (local.get $b))
    (i32.rem_u (local.get $a) (local.get $b)))

  ;; The divisor d of a and b, and x and y with ax + by = d modulo 2³².
  (func $euclid (param $a i32) (param $b i32) (result i32 i32 i32)
    (local $quotient i32) (local $remainder i32) (local $x i32) (local $y i32)
    (if (result i32 i32 i32) (i32.eqz (local.get $b))
      (then (local.get $a) (i32.const 1) (i32.const 0))
      (else
        (call $divide (local.get $a) (local.get $b))
        (local.set $remainder)
        (local.set $quotient)
        (call $euclid (local.get $b) (local.get $remainder))
        (local.set $y)
        (local.set $x)
        (local.get $y)
        (i32.sub (local.get $x) (i32.mul (local.get $quotient) (local.get $y))))))

  ;; A hash of all divisors and coefficients; traps if one is wrong.
  (func $run (param $count i32) (result i32)
    (local $a i32) (local $b i32) (local $d i32) (local $x i32) (local $y i32) (local $sum i32)
    (local.set $a (i32.const 1442695040))
    (loop $next
      (local.set $b (call $next_random (local.get $a)))
      (call $euclid (local.get $a) (local.get $b))
      (local.set $y)
      (local.set $x)
      (local.set $d)
      (if (i32.ne
            (i32.add (i32.mul (local.get $a) (local.get $x)) (i32.mul (local.get $b) (local.get $y)))
            (local.get $d))
        (then (unreachable)))
      (local.set $sum
        (i32.add (i32.mul (local.get $sum) (i32.const 31)) (i32.add (local.get $d) (i32.xor (local.get $x) (local.get $y)))))
      (local.set $a (local.get $b))
      (br_if $next (local.tee $count (i32.sub (local.get $count) (i32.const 1)))))
    (local.get $sum))

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

  ;; The argument, or one million when there is none or too many to hold.
  (func $argument (result i32)
    (if (call $args_sizes_get (i32.const 0) (i32.const 4)) (then (call $proc_exit (i32.const 1))))
    (if (i32.or
          (i32.lt_u (i32.load (i32.const 0)) (i32.const 2))
          (i32.or
            (i32.gt_u (i32.load (i32.const 0)) (i32.const 1000))
            (i32.gt_u (i32.load (i32.const 4)) (i32.const 60000))))
      (then (return (i32.const 1000000))))
    (if (call $args_get (i32.const 128) (i32.const 4128)) (then (call $proc_exit (i32.const 1))))
    (call $parse (i32.load (i32.const 132))))

  (func (export "_start")
    (local $count i32) (local $end i32)
    (local.set $count (call $argument))
    (local.set $end (call $print (i32.const 39) (local.get $count)))
    (i32.store16 (local.get $end) (i32.const 0x203a)) ;; ": "
    (local.set $end
      (call $print
        (i32.add (local.get $end) (i32.const 2))
        (call $run (local.get $count))))
    (i32.store8 (local.get $end) (i32.const 10))
    (i32.store (i32.const 8) (i32.const 32))
    (i32.store (i32.const 12) (i32.sub (i32.add (local.get $end) (i32.const 1)) (i32.const 32)))
    (if (call $fd_write (i32.const 1) (i32.const 8) (i32.const 1) (i32.const 16))
      (then (call $proc_exit (i32.const 1))))))
