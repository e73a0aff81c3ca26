;; test: inline
;; options: opt-all
;; func: 4
;; profile: 0x4e f0 90 f1 10
;; profile: 0x5b f1 80 f0 1
;; run: f(0, 5) -> 110
;; run: f(1, 5) -> 275
;; run: f(2, 5) -> trap uninitialized element
(module
  (type $unary (func (param i32) (result i32)))
  (table 3 funcref)
  (elem (i32.const 0) $double $square)
  (func $double (type $unary) (i32.add (local.get 0) (local.get 0)))
  (func $square (type $unary) (i32.mul (local.get 0) (local.get 0)))
  (func $apply (param i32 i32) (result i32)
    (i32.add (call_indirect (type $unary) (local.get 1) (local.get 0)) (i32.const 0)))
  (func $last (param i32 i32) (result i32)
    (return_call_indirect (type $unary) (local.get 1) (local.get 0)))
  (func (export "f") (param i32 i32) (result i32)
    (i32.add
      (call $apply (local.get 0) (local.get 1))
      (i32.mul (call $last (local.get 0) (local.get 1)) (i32.const 10)))))
;; expect
;; func 4 (i32, i32) -> i32
;; inlined f3 0x57 as 0xa3 to 0xaa in 0x6b
;; inlined f1 0x42 as 0xab to 0xb0 in 0x6b
;; inlined f2 0x4a as 0xb1 to 0xbb in 0x65
;; inlined f0 0x3a as 0xbc to 0xc1 in 0xb5
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = param 1
;;   v4: i32 = const 10
;;   v25: i32 = const 0                         @0xb5
;;   v26: i32 = eq v0, v25                      @0xb5
;;   branch p230 v26, b9, b8                    @0xb5
;; b1: preds b2
;;   v5: i32 = mul v18, v4                      @0x6f
;;   v6: i32 = add v32, v5                      @0x70
;;   return v6                                  @0x71
;; b2: preds b5, b3
;;   v18: i32 = phi b5: v19, b3: v16
;;   jump b1
;; b3: preds b6
;;   v16: i32 = call_indirect t0 table0 (v1, v0) @0x6b
;;   jump b2                                    @0x6b
;; b4: preds b6
;;   v19: i32 = mul v1, v1                      @0xaf
;;   jump b5
;; b5: preds b4
;;   jump b2                                    @0x6b
;; b6: preds b7
;;   v11: i32 = const 1                         @0x6b
;;   v12: i32 = eq v0, v11                      @0x6b
;;   branch p252 v12, b4, b3                    @0x6b
;; b7: preds b10, b8
;;   v32: i32 = phi b10: v33, b8: v30
;;   jump b6
;; b8: preds b0
;;   v30: i32 = call_indirect t0 table0 (v1, v0) @0xb5
;;   jump b7                                    @0xb5
;; b9: preds b0
;;   v33: i32 = add v1, v1                      @0xc0
;;   jump b10
;; b10: preds b9
;;   jump b7                                    @0xb5
