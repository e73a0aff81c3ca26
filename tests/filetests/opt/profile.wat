;;; The passes keep the probability of a branch, and complement it where they invert the condition and exchange the targets.
;; test: opt
;; profile: 0x23 900 100
;; profile: 0x2c 30 970
;; run: f(1, 0) -> 3
;; run: f(0, 0) -> 2
;; run: f(0, 5) -> 9
(module
  (func (export "f") (param i32 i32) (result i32)
    (if (local.get 0) (then (return (i32.const 3))))
    (if (i32.eqz (local.get 1)) (then (return (i32.const 2))))
    (i32.const 9)))
;; expect
;; func 0 (i32, i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = param 1
;;   v3: i32 = const 3
;;   v7: i32 = const 2
;;   v9: i32 = const 9
;;   branch p230 v0, b1, b2                     @0x23
;; b1: preds b0
;;   return v3                                  @0x27
;; b2: preds b0
;;   branch p249 v1, b4, b3                     @0x2c
;; b3: preds b2
;;   return v7                                  @0x30
;; b4: preds b2
;;   return v9                                  @0x34
