;;; Two nested loops that do not change the parameter: there is no phi, although construction does not know what a loop assigns.
;; test: build
;; options: components no-regions
;; run: f(3) -> 9
(module
  (func (export "f") (param i32) (result i32)
    (local i32 i32 i32)
    (loop $outer
      (local.set 2 (i32.const 0))
      (loop $inner
        (local.set 3 (i32.add (local.get 3) (i32.const 1)))
        (br_if $inner (i32.lt_u (local.tee 2 (i32.add (local.get 2) (i32.const 1))) (local.get 0))))
      (br_if $outer (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 1))) (local.get 0))))
    (local.get 3)))
;; expect
;; func 0 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v2: i32 = const 0
;;   v5: i32 = const 1
;;   jump b1                                    @0x22
;; b1: preds b0, b3
;;   v13: i32 = phi b0: v2, b3: v6
;;   v14: i32 = phi b0: v2, b3: v15
;;   jump b2                                    @0x28
;; b2: preds b1, b2
;;   v4: i32 = phi b1: v13, b2: v6
;;   v7: i32 = phi b1: v2, b2: v8
;;   v6: i32 = add v4, v5                       @0x2e
;;   v8: i32 = add v7, v5                       @0x35
;;   v10: i32 = lt_u v8, v0                     @0x3a
;;   branch v10, b2, b3                         @0x3b
;; b3: preds b2
;;   v15: i32 = add v14, v5                     @0x42
;;   v16: i32 = lt_u v15, v0                    @0x47
;;   branch v16, b1, b4                         @0x48
;; b4: preds b3
;;   return v6                                  @0x4d
