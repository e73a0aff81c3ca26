;; test: inline
;; options: fuel poll opt-all
;; func: 1
;; run: sum(5) -> 30
;;; Fuel is charged, and the deadline polled, where the callee does so.
(module
  (func $triangle (param i32) (result i32) (local i32)
    (loop (local.set 1 (i32.add (local.get 1) (local.get 0)))
      (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1))
  (func (export "sum") (param i32) (result i32)
    (i32.add (call $triangle (local.get 0)) (call $triangle (local.get 0)))))
;; expect
;; func 1 (i32) -> i32
;; inlined f0 0x25 as 0x5b to 0x70 in 0x3f
;; inlined f0 0x25 as 0x71 to 0x86 in 0x43
;; b0:
;;   v0: i32 = param 0
;;   v9: i32 = const 0
;;   v17: i32 = const -1
;;   poll                                       @0x3d
;;   fuel 2                                     @0x3d
;;   poll                                       @0x5b
;;   jump b2                                    @0x5b
;; b1: preds b3
;;   fuel 2                                     @0x41
;;   poll                                       @0x71
;;   jump b5                                    @0x71
;; b2: preds b0, b2
;;   v12: i32 = phi b0: v9, b2: v16
;;   v13: i32 = phi b0: v0, b2: v18
;;   poll                                       @0x5b
;;   fuel 9                                     @0x5b
;;   v16: i32 = add v12, v13                    @0x61
;;   v18: i32 = add v13, v17                    @0x68
;;   branch v18, b2, b3                         @0x6b
;; b3: preds b2
;;   fuel 1                                     @0x6d
;;   jump b1
;; b4: preds b6
;;   fuel 1                                     @0x45
;;   v7: i32 = add v16, v29                     @0x45
;;   return v7                                  @0x46
;; b5: preds b1, b5
;;   v25: i32 = phi b1: v9, b5: v29
;;   v26: i32 = phi b1: v0, b5: v30
;;   poll                                       @0x71
;;   fuel 9                                     @0x71
;;   v29: i32 = add v25, v26                    @0x77
;;   v30: i32 = add v26, v17                    @0x7e
;;   branch v30, b5, b6                         @0x81
;; b6: preds b5
;;   fuel 1                                     @0x83
;;   jump b4
