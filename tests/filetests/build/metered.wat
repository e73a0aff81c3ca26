;;; Fuel and polls at the call and at the loop.
;; test: build
;; options: fuel poll
;; run: f(3) -> 0
(module
  (func (export "f") (param i32) (result i32)
    (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 0)))
;; expect
;; func 0 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v6: i32 = const 1
;;   poll                                       @0x20
;;   jump b1                                    @0x20
;; b1: preds b0, b1
;;   v5: i32 = phi b0: v0, b1: v7
;;   poll                                       @0x20
;;   fuel 5                                     @0x20
;;   v7: i32 = sub v5, v6                       @0x26
;;   branch v7, b1, b2                          @0x29
;; b2: preds b1
;;   fuel 1                                     @0x2b
;;   return v7                                  @0x2e
