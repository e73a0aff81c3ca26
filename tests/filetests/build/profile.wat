;;; The last of three counted branches was executed too rarely to have a probability.
;; test: build
;; profile: 0x22 90 30
;; profile: 0x2a 0 64
;; profile: 0x32 3 4
;; run: f(0) -> 8
;; run: f(1) -> 1
(module
  (func (export "f") (param i32) (result i32)
    (if (local.get 0) (then (return (i32.const 1))))
    (if (local.get 0) (then (return (i32.const 2))))
    (if (local.get 0) (then (return (i32.const 4))))
    (i32.const 8)))
;; expect
;; func 0 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v2: i32 = const 1
;;   v5: i32 = const 2
;;   v8: i32 = const 4
;;   v10: i32 = const 8
;;   branch p192 v0, b1, b2                     @0x22
;; b1: preds b0
;;   return v2                                  @0x26
;; b2: preds b0
;;   branch p1 v0, b3, b4                       @0x2a
;; b3: preds b2
;;   return v5                                  @0x2e
;; b4: preds b2
;;   branch v0, b5, b6                          @0x32
;; b5: preds b4
;;   return v8                                  @0x36
;; b6: preds b4
;;   return v10                                 @0x3a
