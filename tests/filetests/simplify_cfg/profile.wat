;;; Blocks are merged around a branch, which keeps its probability.
;; test: simplify_cfg
;; profile: 0x27 1 99
;; run: f(1) -> 4
;; run: f(0) -> 7
(module
  (func (export "f") (param i32) (result i32)
    (block (br 0))
    (if (result i32) (local.get 0) (then (i32.const 4)) (else (i32.const 7)))))
;; expect
;; func 0 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v3: i32 = const 4
;;   v5: i32 = const 7
;;   branch p2 v0, b2, b3                       @0x27
;; b2: preds b0
;;   jump b4                                    @0x2b
;; b3: preds b0
;;   jump b4                                    @0x2e
;; b4: preds b2, b3
;;   v7: i32 = phi b2: v3, b3: v5
;;   return v7                                  @0x2f
