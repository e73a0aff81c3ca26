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
;; expect
;; func 0 (ref) -> i32
;; b0:
;;   v0: ref = param 0
;;   v1: i32 = const 1
;;   v7: i32 = const 7
;;   v2: i32 = ref_is_null v0                   @0x62
;;   branch v2, b2, b1                          @0x62
;; b1: preds b0
;;   v4: ref = non_null v0                      @0x64
;;   v5: i32 = call_ref t0 (v1, v4)             @0x64
;;   return v5                                  @0x66
;; b2: preds b0
;;   return v7                                  @0x6a
;; func 1 (ref) -> i32
;; b0:
;;   v0: ref = param 0
;;   v4: i32 = const 8
;;   v6: i32 = const 9
;;   v1: i32 = ref_is_null v0                   @0x72
;;   v2: i32 = eqz v1                           @0x72
;;   branch v2, b2, b1                          @0x72
;; b1: preds b0
;;   return v4                                  @0x76
;; b2: preds b0
;;   return v6                                  @0x7b
;; func 2 (i32, ref) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: ref = param 1
;;   v2: ref = non_null v1                      @0x82
;;   return_call_ref t0 (v0, v2)                @0x83
;; func 3 () -> i32
;; b0:
;;   v0: ref = const null
;;   v1: i32 = call f0(v0)                      @0x8a
;;   return v1                                  @0x8c
;; func 4 () -> i32
;; b0:
;;   v0: ref = const null
;;   v1: i32 = call f1(v0)                      @0x91
;;   return v1                                  @0x93
;; func 5 () -> i32
;; b0:
;;   v0: i32 = const 1
;;   v1: ref = const null
;;   v2: i32 = call f2(v0, v1)                  @0x9a
;;   return v2                                  @0x9c
;; func 6 () -> i32
;; b0:
;;   v0: ref = const null
;;   v1: i32 = const 1
;;   return v1                                  @0xa4
