;; test: inline
;; func: 2
;; run: f(0, 5) -> 10
;; run: f(1, 5) -> trap indirect call type mismatch
;; run: f(2, 5) -> trap uninitialized element
;; run: f(3, 5) -> trap undefined element: out of bounds table access
;;; Without a profile: the table has one function of the type.
(module
  (type $unary (func (param i32) (result i32)))
  (table 3 funcref)
  (elem (i32.const 0) $double $none)
  (func $double (type $unary) (i32.add (local.get 0) (local.get 0)))
  (func $none)
  (func (export "f") (param i32 i32) (result i32)
    (call_indirect (type $unary) (local.get 1) (local.get 0))))
;; expect
;; func 2 (i32, i32) -> i32
;; inlined f0 0x3b as 0x70 to 0x75 in 0x4a
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = param 1
;;   v4: i32 = const 0                          @0x4a
;;   v5: i32 = eq v0, v4                        @0x4a
;;   branch p255 v5, b3, b2                     @0x4a
;; b1: preds b4, b2
;;   v11: i32 = phi b4: v12, b2: v9
;;   return v11                                 @0x4d
;; b2: preds b0
;;   v9: i32 = call_indirect t0 table0 (v1, v0) @0x4a
;;   jump b1                                    @0x4a
;; b3: preds b0
;;   v12: i32 = add v1, v1                      @0x74
;;   jump b4
;; b4: preds b3
;;   jump b1                                    @0x4a
