;;; Bounds are compared, because memory has no guard region.
;; test: lower
;; func: 0
;; run: f(16, 300) -> 44
;; run: f(65536, 1) -> trap out of bounds memory access
;; options: no-guard-regions
(module
  (func (export "f") (param i32 i32) (result i32)
    (i32.store (local.get 0) (local.get 1))
    (i32.add (i32.load8_u (local.get 0)) (i32.load offset=4 (local.get 0))))
  (memory 1))
;; expect
;; machine lowered pc 0x26 regs 12
;; b0:
;;     v11:rdi v7:rsi = args
;;     v3 = mov.d v11
;;     v2 = mov.q [r15 + 16]
;;     v10 = mov.q [r15 + 48]
;;     v4 = mov.q [v10 + 8]
;;     v8 = lea.q [v3 + 4]                      @0x2a
;;     cmp.q v4, v8                             @0x2a
;;     trap_if_b v8, MemoryOutOfBounds          @0x2a
;;     v9 = cmov_b.q v8, v4                     @0x2a
;;     mov_to.d [v2 + v9 * 1 + -4], v7          @0x2a
;;     v1 = movzx8.d v7                         @0x2f
;;     v5 = lea.q [v3 + 8]                      @0x34
;;     cmp.q v4, v5                             @0x34
;;     trap_if_b v5, MemoryOutOfBounds          @0x34
;;     v6 = cmov_b.q v5, v4                     @0x34
;;     v0 = add.d v1, [v2 + v6 * 1 + -4]        @0x37
;;     ret v0:rax                               @0x38
