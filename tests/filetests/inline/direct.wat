;; test: inline
;; options: opt-all
;; func: 2
;; run: f(3, 5) -> 26
;; run: f(0, 5) -> trap integer divide by zero
;;; A call with two results, one of which is a constant on one of two ways; a callee that only calls another; and one that never returns.
(module
  (func $split (param i32) (result i32 i32)
    (if (i32.eqz (local.get 0)) (then (return (i32.const 7) (i32.div_u (i32.const 1) (local.get 0)))))
    (local.get 0) (i32.const 7))
  (func $through (param i32) (result i32 i32) (return_call $split (local.get 0)))
  (func (export "f") (param i32 i32) (result i32) (local i32)
    (call $through (local.get 0))
    (i32.mul)
    (i32.add (local.get 1)))
  (func $never (param i32) (result i32) unreachable))
;; expect
;; func 2 (i32, i32) -> i32
;; inlined f1 0x44 as 0x7b to 0x7f in 0x4f
;; inlined f0 0x2f as 0x80 to 0x92 in 0x4f
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = param 1
;;   v11: i32 = const 7
;;   v12: i32 = const 1
;;   branch v0, b4, b3                          @0x83
;; b1: preds b2
;;   v4: i32 = mul v19, v20                     @0x51
;;   v5: i32 = add v4, v1                       @0x54
;;   return v5                                  @0x55
;; b2: preds b3, b4
;;   v19: i32 = phi b3: v11, b4: v0
;;   v20: i32 = phi b3: v14, b4: v11
;;   jump b1
;; b3: preds b0
;;   v14: i32 = div_u v12, v0                   @0x8b
;;   jump b2
;; b4: preds b0
;;   jump b2
