;;; Both successors of a branch on a constant are built.
;; test: build
;; options: no-prune
;; run: f() -> 2
(module
  (func (export "f") (result i32)
    (if (result i32) (i32.const 0) (then (i32.const 1)) (else (i32.const 2)))))
;; expect
;; func 0 () -> i32
;; b0:
;;   v0: i32 = const 0
;;   v2: i32 = const 1
;;   v4: i32 = const 2
;;   branch v0, b1, b2                          @0x21
;; b1: preds b0
;;   jump b3                                    @0x25
;; b2: preds b0
;;   jump b3                                    @0x28
;; b3: preds b1, b2
;;   v6: i32 = phi b1: v2, b2: v4
;;   return v6                                  @0x29
