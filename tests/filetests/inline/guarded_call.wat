;; test: inline
;; options: leaves
;; func: 2
;; profile: 0x57 f0 90 f1 10
;; run: f(0, 5) -> 10
;; run: f(1, 5) -> 25
;; run: f(2, 5) -> trap uninitialized element
;; run: f(3, 5) -> trap undefined element: out of bounds table access
;;; In a module with tags, functions that call are not inlined. The call of the frequent one is direct.
(module
  (type $unary (func (param i32) (result i32)))
  (table 3 funcref)
  (tag)
  (elem (i32.const 0) $double $square)
  (func $double (type $unary) (i32.add (local.get 0) (call $same (local.get 0))))
  (func $square (type $unary) (i32.mul (local.get 0) (local.get 0)))
  (func (export "f") (param i32 i32) (result i32)
    (call_indirect (type $unary) (local.get 1) (local.get 0)))
  (func $same (type $unary) (local.get 0)))
;; expect
;; func 2 (i32, i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = param 1
;;   v4: i32 = const 0                          @0x57
;;   v5: i32 = eq v0, v4                        @0x57
;;   branch p230 v5, b3, b2                     @0x57
;; b1: preds b3, b2
;;   v11: i32 = phi b3: v7, b2: v9
;;   return v11                                 @0x5a
;; b2: preds b0
;;   v9: i32 = call_indirect t0 table0 (v1, v0) @0x57
;;   jump b1                                    @0x57
;; b3: preds b0
;;   v7: i32 = call f0(v1)                      @0x57
;;   jump b1                                    @0x57
