;;; A private table has the function twice, so that the guard compares elements.
;; test: inline
;; options: opt-all
;; func: 2
;; profile: 0x4d f0 90 f1 10
;; run: f(0, 5) -> 10
;; run: f(1, 5) -> 25
;; run: f(2, 5) -> 10
;; run: f(3, 5) -> trap undefined element: out of bounds table access
(module
  (type $unary (func (param i32) (result i32)))
  (table 3 funcref)
  (elem (i32.const 0) $double $square $double)
  (func $double (type $unary) (i32.add (local.get 0) (local.get 0)))
  (func $square (type $unary) (i32.mul (local.get 0) (local.get 0)))
  (func (export "f") (param i32 i32) (result i32)
    (call_indirect (type $unary) (local.get 1) (local.get 0))))
;; expect
;; func 2 (i32, i32) -> i32
;; inlined f0 0x39 as 0x75 to 0x7a in 0x4d
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = param 1
;;   v4: i64 = element_differs f0 table0 v0     @0x4d
;;   v5: i32 = eqz v4                           @0x4d
;;   branch p230 v5, b3, b2                     @0x4d
;; b1: preds b4, b2
;;   v11: i32 = phi b4: v12, b2: v9
;;   return v11                                 @0x50
;; b2: preds b0
;;   v9: i32 = call_indirect t0 table0 (v1, v0) @0x4d
;;   jump b1                                    @0x4d
;; b3: preds b0
;;   v12: i32 = add v1, v1                      @0x79
;;   jump b4
;; b4: preds b3
;;   jump b1                                    @0x4d
