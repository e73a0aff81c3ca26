;; test: lower
;; options: off=inline
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
;; machine lowered pc 0x5c regs 5 calls restores
;; b0:
;;     v4:rdi = args
;;     test.q v4, v4                            @0x62
;;     j_e b2 b1                                @0x62
;; b1:
;;     test.q v4, v4                            @0x64
;;     trap_if_e NullReference                  @0x64
;;     v2 = mov.q v4                            @0x64
;;     v3 = mov_imm.q 1                         @0x64
;;     v1:rax = call reference v3:rdi v2:r11 restore @0x64
;;     ret v1:rax                               @0x66
;; b2:
;;     v0 = mov_imm.q 7                         @0x6a
;;     ret v0:rax                               @0x6a
;; machine lowered pc 0x6d regs 3
;; b0:
;;     v2:rdi = args
;;     test.q v2, v2                            @0x72
;;     j_e b2 b1                                @0x72
;; b1:
;;     v1 = mov_imm.q 9                         @0x7b
;;     ret v1:rax                               @0x7b
;; b2:
;;     v0 = mov_imm.q 8                         @0x76
;;     ret v0:rax                               @0x76
;; machine lowered pc 0x7e regs 3
;; b0:
;;     v1:rdi v2:rsi = args
;;     test.q v2, v2                            @0x82
;;     trap_if_e NullReference                  @0x82
;;     v0 = mov.q v2                            @0x82
;;     tail_call reference v1:rdi v0:r11        @0x83
;; machine lowered pc 0x88 regs 2 calls restores
;; b0:
;;     args
;;     v1 = mov_imm.q 0                         @0x8a
;;     v0:rax = call func0 v1:rdi restore       @0x8a
;;     ret v0:rax                               @0x8c
;; machine lowered pc 0x8f regs 2 calls restores
;; b0:
;;     args
;;     v1 = mov_imm.q 0                         @0x91
;;     v0:rax = call func1 v1:rdi restore       @0x91
;;     ret v0:rax                               @0x93
;; machine lowered pc 0x96 regs 3 calls restores
;; b0:
;;     args
;;     v1 = mov_imm.q 1                         @0x9a
;;     v2 = mov_imm.q 0                         @0x9a
;;     v0:rax = call func2 v1:rdi v2:rsi restore @0x9a
;;     ret v0:rax                               @0x9c
;; machine lowered pc 0xa1 regs 1
;; b0:
;;     args
;;     v0 = mov_imm.q 1                         @0xa4
;;     ret v0:rax                               @0xa4
