;;; An edge is threaded past the second branch. The counts of that branch do not hold for the remaining paths, so its probability is removed.
;; test: threading
;; profile: 0x23 700 300
;; profile: 0x2c 500 500
;; run: f(1, 0) -> 4
;; run: f(0, 0) -> 7
;; run: f(0, 3) -> 4
(module
  (func (export "f") (param i32 i32) (result i32)
    (if (local.get 0) (then (local.set 1 (i32.const 1))))
    (if (result i32) (local.get 1) (then (i32.const 4)) (else (i32.const 7)))))
;; expect
;; func 0 (i32, i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = param 1
;;   v3: i32 = const 1
;;   v7: i32 = const 4
;;   v9: i32 = const 7
;;   branch p179 v0, b1, b2                     @0x23
;; b1: preds b0
;;   jump b3                                    @0x29
;; b2: preds b0
;;   v5: i32 = phi b0: v1
;;   branch v5, b3, b4                          @0x2c
;; b3: preds b2, b1
;;   jump b5                                    @0x30
;; b4: preds b2
;;   jump b5                                    @0x33
;; b5: preds b3, b4
;;   v11: i32 = phi b3: v7, b4: v9
;;   return v11                                 @0x34
