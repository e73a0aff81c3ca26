;; test: inline
;; options: opt-all leaves
;; func: 2
;; profile: 0x4c f0 990 f1 10
;; run: f(0, 5) -> 10
;; run: f(1, 5) -> 25
;; run: f(2, 5) -> trap uninitialized element
;; run: f(3, 5) -> trap undefined element: out of bounds table access
(module
  (type $unary (func (param i32) (result i32)))
  (table 3 funcref)
  (elem (i32.const 0) $double $square)
  (func $double (type $unary) (i32.add (local.get 0) (local.get 0)))
  (func $square (type $unary) (i32.mul (local.get 0) (local.get 0)))
  (func (export "f") (param i32 i32) (result i32)
    (call_indirect (type $unary) (local.get 1) (local.get 0))))
;; expect
;; func 2 (i32, i32) -> i32
;; inlined f0 0x38 as 0x74 to 0x79 in 0x4c
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = param 1
;;   v4: i32 = const 0                          @0x4c
;;   v5: i32 = eq v0, v4                        @0x4c
;;   branch p253 v5, b3, b2                     @0x4c
;; b1: preds b4, b2
;;   v12: i32 = phi b4: v13, b2: v10
;;   return v12                                 @0x4f
;; b2: preds b0
;;   miss f2                                    @0x4c
;;   v10: i32 = call_indirect t0 table0 (v1, v0) @0x4c
;;   jump b1                                    @0x4c
;; b3: preds b0
;;   v13: i32 = add v1, v1                      @0x78
;;   jump b4
;; b4: preds b3
;;   jump b1                                    @0x4c
