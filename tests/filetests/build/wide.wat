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
