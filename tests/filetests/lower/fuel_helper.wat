;;; Bulk operations charge by length.
;; test: lower
;; func: 0
;; run: f(8, 2) -> 1799
;; run: f(8, 1) -> 7
;; run: f(65535, 2) -> trap out of bounds memory access
;; options: fuel
(module
  (func (export "f") (param i32 i32) (result i32)
    (memory.fill (local.get 0) (i32.const 7) (local.get 1))
    (i32.load16_u (local.get 0)))
  (memory 1))
;; expect
;; machine lowered pc 0x26 regs 10 calls
;; b0:
;;     v8:rdi v9:rsi = args
;;     v1 = mov.d v8
;;     v5 = mov.d v9
;;     v2 = mov.q [r15 + 16]
;;     v7 = mov.q [r15]                         @0x26
;;     sub_to.q [v7], 6                         @0x26
;;     trap_if_s OutOfFuel                      @0x26
;;     v3 = mov_imm.q 0                         @0x2c
;;     v4 = mov_imm.q 7                         @0x2c
;;     v6:rax = call MemoryFill v3:rsi v1:rdx v4:rcx v5:r8 @0x2c
;;     test.d v6, v6                            @0x2c
;;     trap_if_ne Stored                        @0x2c
;;     v0 = movzx16.d [v2 + v1 * 1]!0x31        @0x31
;;     ret v0:rax                               @0x34
