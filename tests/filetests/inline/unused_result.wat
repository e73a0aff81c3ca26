;;; Simplification has removed a result that the callee does not use; the guard keeps the numbers of the others.
;; test: inline
;; options: opt-all
;; func: 3
;; profile: 0x5c f0 90 f1 10
;; run: f(0, 5) -> 16
;; run: f(1, 5) -> -1
(module
  (type $triple (func (param i32) (result i32 f32 i64)))
  (table funcref (elem $up $down))
  (func $up (type $triple) (local.get 0) (f32.const 0.5) (i64.const 11))
  (func $down (type $triple) (local.get 0) (f32.const 1.5) (i64.const -6))
  (func $ends (param $which i32) (param $x i32) (result i32) (local $wide i64)
    (call_indirect (type $triple) (local.get $x) (local.get $which))
    (local.set $wide) (drop)
    (i32.add (i32.wrap_i64 (local.get $wide))))
  (func (export "f") (param i32 i32) (result i32)
    (call $ends (local.get 0) (local.get 1))))
;; expect
;; func 3 (i32, i32) -> i32
;; inlined f2 0x58 as 0xaa to 0xb8 in 0x6d
;; inlined f0 0x3e as 0xb9 to 0xc2 in 0xae
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = param 1
;;   v21: f32 = const 0.5
;;   v22: i64 = const 11
;;   v10: i32 = const 0                         @0xae
;;   v11: i32 = eq v0, v10                      @0xae
;;   branch p230 v11, b4, b3                    @0xae
;; b1: preds b2
;;   return v7                                  @0x6f
;; b2: preds b5, b3
;;   v19: i32 = phi b5: v1, b3: v16
;;   v20: i64 = phi b5: v22, b3: v17
;;   v6: i32 = wrap v20                         @0xb6
;;   v7: i32 = add v19, v6                      @0xb7
;;   jump b1
;; b3: preds b0
;;   v16: i32 = call_indirect t0 table0 (v1, v0) @0xae
;;   v17: i64 = result 2 v16                    @0xae
;;   jump b2                                    @0xae
;; b4: preds b0
;;   jump b5
;; b5: preds b4
;;   jump b2                                    @0xae
