;; A program with two phases: a table's calls reach one function in 1,000 rounds, and another one in 20,000. What the profile of
;; the first says is wrong in the second. See docs/decisions/080-guards-that-fail.md.
(module
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (type $unary (func (param i32) (result i32)))
  (memory (export "memory") 1)
  (table funcref (elem $triple $flip))
  (func $triple (type $unary) (i32.add (i32.mul (local.get 0) (i32.const 3)) (i32.const 1)))
  (func $flip (type $unary) (i32.xor (i32.mul (local.get 0) (i32.const 5)) (i32.const 7)))
  ;; Functions with handlers are not inlined, so each round is a call.
  (func $round (param $n i32) (param $which i32) (result i32) (local $x i32)
    (block $caught (try_table (catch_all $caught) (nop)))
    (loop $again
      (local.set $x (call_indirect (type $unary) (local.get $x) (local.get $which)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $x))
  (func $rounds (param $n i32) (param $which i32) (result i32) (local $sum i32)
    (loop $again
      (local.set $sum (i32.add (local.get $sum) (call $round (i32.const 20000) (local.get $which))))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum))
  (func (export "_start")
    (if (i32.eqz (i32.add (call $rounds (i32.const 1000) (i32.const 0)) (call $rounds (i32.const 20000) (i32.const 1))))
      (then (call $exit (i32.const 1))))))
