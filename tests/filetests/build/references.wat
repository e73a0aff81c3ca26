;; test: build
;; run: on_null() -> 7
;; run: on_non_null() -> 8
;; run: call() -> trap null reference
;; run: is_null() -> 1
(module
  (type $t (func (param i32) (result i32)))
  (func $on_null (param (ref null $t)) (result i32)
    block $null
      i32.const 1
      local.get 0
      br_on_null $null
      call_ref $t
      return
    end
    i32.const 7)
  (func $on_non_null (param (ref null $t)) (result i32)
    block $there (result (ref $t))
      local.get 0
      br_on_non_null $there
      i32.const 8
      return
    end
    drop
    i32.const 9)
  (func $tail (param i32 (ref null $t)) (result i32)
    local.get 0
    local.get 1
    ref.as_non_null
    return_call_ref $t)
  (func (export "on_null") (result i32) (call $on_null (ref.null $t)))
  (func (export "on_non_null") (result i32) (call $on_non_null (ref.null $t)))
  (func (export "call") (result i32) (call $tail (i32.const 1) (ref.null $t)))
  (func (export "is_null") (result i32) (local funcref) (ref.is_null (local.get 0))))
