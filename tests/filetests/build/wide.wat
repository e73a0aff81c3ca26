;; test: build
;; run: add(-1, 0, 1, 0) -> 0, 1
;; run: add(-1, -1, 1, 0) -> 0, 0
;; run: sub(0, 1, 1, 0) -> -1, 0
;; run: sub(0, 0, 0, 1) -> 0, -1
;; run: mul_s(-1, -1) -> 1, 0
;; run: mul_s(-9223372036854775808, 2) -> 0, -1
;; run: mul_u(-1, -1) -> 1, -2
(module
  (func (export "add") (param i64 i64 i64 i64) (result i64 i64)
    local.get 0 local.get 1 local.get 2 local.get 3 i64.add128)
  (func (export "sub") (param i64 i64 i64 i64) (result i64 i64)
    local.get 0 local.get 1 local.get 2 local.get 3 i64.sub128)
  (func (export "mul_s") (param i64 i64) (result i64 i64)
    local.get 0 local.get 1 i64.mul_wide_s)
  (func (export "mul_u") (param i64 i64) (result i64 i64)
    local.get 0 local.get 1 i64.mul_wide_u))
;; expect
;; func 0 (i64, i64, i64, i64) -> (i64, i64)
;; b0:
;;   v0: i64 = param 0
;;   v1: i64 = param 1
;;   v2: i64 = param 2
;;   v3: i64 = param 3
;;   v4: i64 = add v0, v2                       @0x4e
;;   v5: i32 = lt_u v4, v0                      @0x4e
;;   v6: i64 = extend_u v5                      @0x4e
;;   v7: i64 = add v1, v3                       @0x4e
;;   v8: i64 = add v7, v6                       @0x4e
;;   return v4, v8                              @0x50
;; func 1 (i64, i64, i64, i64) -> (i64, i64)
;; b0:
;;   v0: i64 = param 0
;;   v1: i64 = param 1
;;   v2: i64 = param 2
;;   v3: i64 = param 3
;;   v4: i64 = sub v0, v2                       @0x5b
;;   v5: i32 = lt_u v0, v2                      @0x5b
;;   v6: i64 = extend_u v5                      @0x5b
;;   v7: i64 = sub v1, v3                       @0x5b
;;   v8: i64 = sub v7, v6                       @0x5b
;;   return v4, v8                              @0x5d
;; func 2 (i64, i64) -> (i64, i64)
;; b0:
;;   v0: i64 = param 0
;;   v1: i64 = param 1
;;   v4: i64 = const 63
;;   v2: i64 = mul v0, v1                       @0x64
;;   v3: i64 = mul_high v0, v1                  @0x64
;;   v5: i64 = shr_s v0, v4                     @0x64
;;   v6: i64 = and v5, v1                       @0x64
;;   v7: i64 = sub v3, v6                       @0x64
;;   v8: i64 = shr_s v1, v4                     @0x64
;;   v9: i64 = and v8, v0                       @0x64
;;   v10: i64 = sub v7, v9                      @0x64
;;   return v2, v10                             @0x66
;; func 3 (i64, i64) -> (i64, i64)
;; b0:
;;   v0: i64 = param 0
;;   v1: i64 = param 1
;;   v2: i64 = mul v0, v1                       @0x6d
;;   v3: i64 = mul_high v0, v1                  @0x6d
;;   return v2, v3                              @0x6f
