;; test: inline
;; options: opt-all
;; func: 2
;; profile: 0x4c f1 90 f0 10
;; run: f(0, 5) -> 10
;; run: f(1, 5) -> 15
;; run: f(2, 5) -> trap uninitialized element
;; run: f(3, 5) -> trap undefined element: out of bounds table access
;;; The index is compared, and the tail call is then direct. The frame of an inlined function would be in place of the caller's, which has left.
(module
  (type $unary (func (param i32) (result i32)))
  (table 3 funcref)
  (elem (i32.const 0) $double $triple)
  (func $double (type $unary) (i32.add (local.get 0) (local.get 0)))
  (func $triple (type $unary) (i32.mul (local.get 0) (i32.const 3)))
  (func (export "f") (param i32 i32) (result i32)
    (return_call_indirect (type $unary) (local.get 1) (local.get 0))))
;; expect
;; func 2 (i32, i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = param 1
;;   v3: i32 = const 1                          @0x4c
;;   v4: i32 = eq v0, v3                        @0x4c
;;   branch p230 v4, b2, b1                     @0x4c
;; b1: preds b0
;;   return_call_indirect t0 table0 (v1, v0)    @0x4c
;; b2: preds b0
;;   return_call f1(v1)                         @0x4c
