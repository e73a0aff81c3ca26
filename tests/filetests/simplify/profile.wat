;;; `eqz` is removed, the targets are exchanged, and the probability is complemented.
;; test: simplify
;; profile: 0x23 750 250
;; run: f(1) -> 9
;; run: f(0) -> 2
(module
  (func (export "f") (param i32) (result i32)
    (if (i32.eqz (local.get 0)) (then (return (i32.const 2))))
    (i32.const 9)))
;; expect
;; func 0 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v3: i32 = const 2
;;   v5: i32 = const 9
;;   v1: i32 = eqz v0                           @0x22
;;   branch p64 v0, b2, b1                      @0x23
;; b1: preds b0
;;   return v3                                  @0x27
;; b2: preds b0
;;   return v5                                  @0x2b
