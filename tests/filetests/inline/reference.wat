;; test: inline
;; options: opt-all
;; func: 2
;; profile: 0x56 f0 90 f1 10
;; run: f(0, 5) -> 10
;; run: f(1, 5) -> 25
;; run: f(2, 5) -> trap null reference
;;; A reference is compared with the function's cell and with this instance.
(module
  (type $unary (func (param i32) (result i32)))
  (table 3 (ref null $unary))
  (elem (table 0) (i32.const 0) (ref null $unary) (ref.func $double) (ref.func $square))
  (func $double (type $unary) (i32.add (local.get 0) (local.get 0)))
  (func $square (type $unary) (i32.mul (local.get 0) (local.get 0)))
  (func (export "f") (param i32 i32) (result i32)
    (call_ref $unary (local.get 1) (table.get (local.get 0)))))
;; expect
;; func 2 (i32, i32) -> i32
;; inlined f0 0x40 as 0x7d to 0x82 in 0x56
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = param 1
;;   v2: ref = table_get table0 v0              @0x54
;;   v3: ref = non_null v2                      @0x56
;;   v6: i64 = func_differs f0 v3               @0x56
;;   v7: i32 = eqz v6                           @0x56
;;   branch p230 v7, b3, b2                     @0x56
;; b1: preds b4, b2
;;   v13: i32 = phi b4: v14, b2: v11
;;   return v13                                 @0x58
;; b2: preds b0
;;   v11: i32 = call_ref t0 (v1, v3)            @0x56
;;   jump b1                                    @0x56
;; b3: preds b0
;;   v14: i32 = add v1, v1                      @0x81
;;   jump b4
;; b4: preds b3
;;   jump b1                                    @0x56
