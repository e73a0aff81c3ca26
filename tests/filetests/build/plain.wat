;;; Without refinements: no constant is folded, no strength reduced, and the branch on a constant stays.
;; test: build
;; options: plain
;; run: f(3) -> 8
(module
  (func (export "f") (param i32) (result i32)
    (local i32)
    (loop $again
      (local.set 1 (i32.add (local.get 1) (i32.add (i32.const 1) (i32.const 1))))
      (br_if $again (i32.lt_u (local.get 1) (i32.mul (local.get 0) (i32.const 2)))))
    (if (i32.const 0) (then unreachable))
    (i32.add (local.get 1) (i32.shr_u (i32.const 4) (i32.const 1)))))
;; expect
;; func 0 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v3: i32 = const 1
;;   v7: i32 = const 2
;;   v11: i32 = const 0
;;   v14: i32 = const 4
;;   jump b1                                    @0x22
;; b1: preds b0, b1
;;   v2: i32 = phi b0: v11, b1: v5
;;   v4: i32 = add v3, v3                       @0x2a
;;   v5: i32 = add v2, v4                       @0x2b
;;   v8: i32 = mul v0, v7                       @0x34
;;   v9: i32 = lt_u v5, v8                      @0x35
;;   branch v9, b1, b2                          @0x36
;; b2: preds b1
;;   branch v11, b3, b4                         @0x3b
;; b3: preds b2
;;   trap UnreachableCodeReached                @0x3d
;; b4: preds b2
;;   v15: i32 = shr_u v14, v3                   @0x45
;;   v16: i32 = add v5, v15                     @0x46
;;   return v16                                 @0x47
