;; test: inline
;; options: opt-all
;; func: 3
;; run: f(0) -> 1
;; run: f(1) -> 9
;;; The calls of the inlined function have the handler that its call had.
(module
  (tag $t (param i32))
  (func $throw (throw $t (i32.const 9)))
  (func $maybe (param i32) (if (local.get 0) (then (call $throw))))
  (func $one (param i32) (result i32) (call $maybe (local.get 0)) (i32.const 1))
  (func (export "f") (param i32) (result i32)
    (block $caught (result i32)
      (try_table (result i32) (catch $t $caught) (call $one (local.get 0))))))
;; expect
;; func 3 (i32) -> i32
;; inlined f2 0x40 as 0x88 to 0x8e in 0x53
;; inlined f1 0x36 as 0x8f to 0x96 in 0x8a
;; b0:
;;   v0: i32 = param 0
;;   v9: i32 = const 1
;;   branch v0, b8, b9                          @0x91
;; b1: preds b5
;;   jump b3                                    @0x55
;; b2: preds b8
;;   v4: i32 = catch handler1 tag0              @0x55
;;   jump b4                                    @0x55
;; b3: preds b1
;;   jump b4                                    @0x56
;; b4: preds b2, b3
;;   v7: i32 = phi b2: v4, b3: v9
;;   return v7                                  @0x57
;; b5: preds b6
;;   jump b1                                    @0x53
;; b6: preds b7
;;   jump b5
;; b7: preds b9
;;   jump b6
;; b8: preds b0
;;   call f0()                                  @0x93
;;   try b2, b10
;; b9: preds b0, b10
;;   jump b7
;; b10: preds b8
;;   jump b9                                    @0x95
