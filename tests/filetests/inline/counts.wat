;; test: inline
;; options: opt-all
;; func: 1
;; profile: 0x26 100 1
;; profile: 0x2e 60 7
;; run: f(0) -> 10
;; run: f(1) -> 21
;; run: f(2) -> 31
;; run: f(-1) -> -1
(module
  (func $pick (param i32) (result i32)
    (if (i32.ge_s (local.get 0) (i32.const 0))
      (then
        (block $b (block $a (br_table $a $b (local.get 0))) (return (i32.const 10)))
        (return (i32.add (i32.mul (local.get 0) (i32.const 10)) (i32.const 11)))))
    (i32.const -1))
  (func (export "f") (param i32) (result i32)
    (call $pick (local.get 0))))
;; expect
;; func 1 (i32) -> i32
;; inlined f0 0x21 as 0x66 to 0x88 in 0x48
;; b0:
;;   v0: i32 = param 0
;;   v3: i32 = const 0
;;   v4: i32 = const 10
;;   v5: i32 = const 11
;;   v6: i32 = const -1
;;   v7: i32 = ge_s v0, v3                      @0x6a
;;   branch p253 v7, b2, b5                     @0x6b
;; b1: preds b3, b4, b5
;;   v18: i32 = phi b3: v4, b4: v12, b5: v6
;;   return v18                                 @0x4a
;; b2: preds b0
;;   br_table v0 [b3: 60, b4: 7]                @0x73
;; b3: preds b2
;;   jump b1
;; b4: preds b2
;;   v11: i32 = mul v0, v4                      @0x80
;;   v12: i32 = add v11, v5                     @0x83
;;   jump b1
;; b5: preds b0
;;   jump b1
