;; test: products
;; run: f(0xFFFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF) -> -1
;; run: f(0x123456789ABCDEF0, 0xFEDCBA9876543210) -> 3562955285811542818
(module
  ;; The two halves of a product, as in compiler-rt's __multi3, exclusive or.
  (func (export "f") (param $a i64) (param $b i64) (result i64) (local $least i64) (local $middle i64) (local $carry i64)
    (local.set $least
      (i64.mul (i64.and (local.get $a) (i64.const 0xFFFFFFFF)) (i64.and (local.get $b) (i64.const 0xFFFFFFFF))))
    (local.set $middle
      (i64.add
        (i64.shr_u (local.get $least) (i64.const 32))
        (i64.mul (i64.and (local.get $a) (i64.const 0xFFFFFFFF)) (i64.shr_u (local.get $b) (i64.const 32)))))
    (local.set $carry
      (i64.add
        (i64.and (local.get $middle) (i64.const 0xFFFFFFFF))
        (i64.mul (i64.shr_u (local.get $a) (i64.const 32)) (i64.and (local.get $b) (i64.const 0xFFFFFFFF)))))
    (i64.xor
      (i64.add
        (i64.add
          (i64.mul (i64.shr_u (local.get $a) (i64.const 32)) (i64.shr_u (local.get $b) (i64.const 32)))
          (i64.shr_u (local.get $middle) (i64.const 32)))
        (i64.shr_u (local.get $carry) (i64.const 32)))
      (i64.or
        (i64.shl (local.get $carry) (i64.const 32))
        (i64.and (local.get $least) (i64.const 0xFFFFFFFF))))))
;; expect
;; func 0 (i64, i64) -> i64
;; b0:
;;   v0: i64 = param 0
;;   v1: i64 = param 1
;;   v2: i64 = const 4294967295
;;   v6: i64 = const 32
;;   v3: i64 = and v0, v2                       @0x2b
;;   v4: i64 = and v1, v2                       @0x34
;;   v5: i64 = mul v3, v4                       @0x35
;;   v7: i64 = shr_u v5, v6                     @0x3c
;;   v8: i64 = shr_u v1, v6                     @0x4a
;;   v9: i64 = mul v3, v8                       @0x4b
;;   v10: i64 = add v7, v9                      @0x4c
;;   v11: i64 = and v10, v2                     @0x57
;;   v12: i64 = shr_u v0, v6                    @0x5c
;;   v13: i64 = mul v12, v4                     @0x66
;;   v14: i64 = add v11, v13                    @0x67
;;   v15: i64 = mul v12, v8                     @0x74
;;   v16: i64 = shr_u v10, v6                   @0x79
;;   v17: i64 = add v15, v16                    @0x7a
;;   v18: i64 = shr_u v14, v6                   @0x7f
;;   v19: i64 = mul_high v0, v1                 @0x80
;;   v20: i64 = shl v14, v6                     @0x85
;;   v21: i64 = and v5, v2                      @0x8e
;;   v22: i64 = mul v0, v1                      @0x8f
;;   v23: i64 = xor v19, v22                    @0x90
;;   return v23                                 @0x91
