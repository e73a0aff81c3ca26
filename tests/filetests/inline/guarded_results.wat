;;; A direct call behind a guard has several results, of which one is not used, and an index of 64 bits.
;; test: inline
;; options: leaves
;; func: 4
;; profile: 0x72 f0 990 f1 10
;; run: f(0, 5) -> 16
;; run: f(1, 5) -> -1
;; run: f(7, 5) -> trap undefined element: out of bounds table access
(module
  (type $triple (func (param i32) (result i32 f32 i64)))
  (table i64 2 funcref)
  (tag)
  (elem (i64.const 0) func $up $down)
  (func $up (type $triple) (call $same (local.get 0)) (f32.const 0.5) (i64.const 11))
  (func $down (type $triple) (local.get 0) (f32.const 1.5) (i64.const -6))
  (func $same (param i32) (result i32) (local.get 0))
  (func $unused)
  (func (export "f") (param $which i32) (param $x i32) (result i32) (local $wide i64)
    (call_indirect (type $triple) (local.get $x) (i64.extend_i32_u (local.get $which)))
    (local.set $wide) (drop)
    (i32.add (i32.wrap_i64 (local.get $wide)))))
;; expect
;; func 4 (i32, i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = param 1
;;   v2: i64 = extend_u v0                      @0x71
;;   v9: i64 = const 0                          @0x72
;;   v10: i32 = eq v2, v9                       @0x72
;;   branch p253 v10, b3, b2                    @0x72
;; b1: preds b3, b2
;;   v20: i32 = phi b3: v12, b2: v16
;;   v21: f32 = phi b3: v13, b2: v17
;;   v22: i64 = phi b3: v14, b2: v18
;;   v6: i32 = wrap v22                         @0x7a
;;   v7: i32 = add v20, v6                      @0x7b
;;   return v7                                  @0x7c
;; b2: preds b0
;;   v16: i32 = call_indirect t0 table0 (v1, v2) @0x72
;;   v17: f32 = result 1 v16                    @0x72
;;   v18: i64 = result 2 v16                    @0x72
;;   jump b1                                    @0x72
;; b3: preds b0
;;   v12: i32 = call f0(v1)                     @0x72
;;   v13: f32 = result 1 v12                    @0x72
;;   v14: i64 = result 2 v12                    @0x72
;;   jump b1                                    @0x72
