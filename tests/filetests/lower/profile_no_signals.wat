;;; Without signal handlers the trap is a call.
;; test: lower
;; func: 0
;; run: f(9) -> 81
;; run: f(101) -> trap unreachable
;; options: no-signals off=inline
;; profile: 0x2b 1 1000
(module
  (func (export "f") (param i32) (result i32)
    (if (i32.gt_u (local.get 0) (i32.const 100)) (then (call $log (local.get 0)) unreachable))
    (i32.mul (local.get 0) (local.get 0)))
  (func $log (param i32)))
;; expect
;; machine lowered pc 0x25 regs 2 calls raises
;; b0: p1
;;     v0:rdi = args
;;     cmp.d v0, 100                            @0x2b
;;     j_a b2 b1                                @0x2b
;; b1: weight 0.99609375
;;     v1 = imul.d v0, v0                       @0x37
;;     ret v1:rax                               @0x38
;; b2: cold freq 0.00390625
;;     call func1 v0:rdi                        @0x2f
;;     ud2 UnreachableCodeReached               @0x31
