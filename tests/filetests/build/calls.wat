;; test: build
;; run: f(3) -> 12
;; run: through(0, 5) -> 10
;; run: through(1, 5) -> trap indirect call type mismatch
;; run: through(2, 5) -> trap uninitialized element
;; run: through(9, 5) -> trap undefined element: out of bounds table access
;; run: even(1001) -> 0
;; run: divide(7, 2) -> 4
(module
  (type $unary (func (param i32) (result i32)))
  (table 4 funcref)
  (elem (i32.const 0) $double $divmod)
  (func $double (type $unary) local.get 0 local.get 0 i32.add)
  (func $divmod (param i32 i32) (result i32 i32)
    local.get 0 local.get 1 i32.div_u
    local.get 0 local.get 1 i32.rem_u)
  (func (export "f") (type $unary) local.get 0 call $double call $double)
  (func (export "through") (param i32 i32) (result i32)
    local.get 1 local.get 0 call_indirect (type $unary))
  (func $even (export "even") (type $unary)
    local.get 0 if (result i32) local.get 0 i32.const 1 i32.sub return_call $odd else i32.const 1 end)
  (func $odd (type $unary)
    local.get 0 if (result i32) local.get 0 i32.const 1 i32.sub return_call $even else i32.const 0 end)
  (func (export "divide") (param i32 i32) (result i32)
    local.get 0 local.get 1 call $divmod i32.add))
;; expect
;; func 0 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = add v0, v0                       @0x61
;;   return v1                                  @0x62
;; func 1 (i32, i32) -> (i32, i32)
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = param 1
;;   v2: i32 = div_u v0, v1                     @0x69
;;   v3: i32 = rem_u v0, v1                     @0x6e
;;   return v2, v3                              @0x6f
;; func 2 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = call f0(v0)                      @0x74
;;   v2: i32 = call f0(v1)                      @0x76
;;   return v2                                  @0x78
;; func 3 (i32, i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = param 1
;;   v2: i32 = call_indirect t0 table0 (v1, v0) @0x7f
;;   return v2                                  @0x82
;; func 4 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v2: i32 = const 1
;;   branch v0, b1, b2                          @0x87
;; b1: preds b0
;;   v3: i32 = sub v0, v2                       @0x8d
;;   return_call f5(v3)                         @0x8e
;; b2: preds b0
;;   return v2                                  @0x94
;; func 5 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v2: i32 = const 1
;;   v5: i32 = const 0
;;   branch v0, b1, b2                          @0x99
;; b1: preds b0
;;   v3: i32 = sub v0, v2                       @0x9f
;;   return_call f4(v3)                         @0xa0
;; b2: preds b0
;;   return v5                                  @0xa6
;; func 6 (i32, i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = param 1
;;   v2: i32 = call f1(v0, v1)                  @0xad
;;   v3: i32 = result 1 v2                      @0xad
;;   v4: i32 = add v2, v3                       @0xaf
;;   return v4                                  @0xb0
