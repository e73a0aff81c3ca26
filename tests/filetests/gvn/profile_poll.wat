;;; Polls and the probability stay where equal values become one.
;; test: gvn
;; options: poll no-number
;; profile: 0x25 64 64
;; run: f(3) -> 6
;; run: f(0) -> 0
(module
  (func (export "f") (param i32) (result i32)
    (if (result i32) (i32.mul (local.get 0) (local.get 0))
      (then (i32.add (local.get 0) (local.get 0)))
      (else (i32.mul (local.get 0) (local.get 0))))))
;; expect
;; func 0 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   poll                                       @0x20
;;   v2: i32 = mul v0, v0                       @0x24
;;   branch p128 v2, b1, b2                     @0x25
;; b1: preds b0
;;   v4: i32 = add v0, v0                       @0x2b
;;   jump b3                                    @0x2c
;; b2: preds b0
;;   jump b3                                    @0x32
;; b3: preds b1, b2
;;   v8: i32 = phi b1: v4, b2: v2
;;   return v8                                  @0x33
