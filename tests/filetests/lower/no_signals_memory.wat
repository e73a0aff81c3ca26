;;; Bounds are compared, because accesses may not fault.
;; test: lower
;; func: 0
;; run: f(16, 300) -> 44
;; run: f(65536, 1) -> trap out of bounds memory access
;; options: no-signals
(module
  (func (export "f") (param i32 i32) (result i32)
    (i32.store (local.get 0) (local.get 1))
    (i32.add (i32.load8_u (local.get 0)) (i32.load offset=4 (local.get 0))))
  (memory 1))
;; expect
;; machine lowered pc 0x26 regs 10 raises
;; b0:
;;     v9:rdi v6:rsi = args
;;     v3 = mov.d v9
;;     v2 = mov.q [r15 + 16]
;;     v8 = mov.q [r15 + 48]
;;     v4 = mov.q [v8 + 8]
;;     v7 = lea.q [v3 + 4]                      @0x2a
;;     cmp.q v4, v7                             @0x2a
;;     trap_if_b v7, MemoryOutOfBounds          @0x2a
;;     mov_to.d [v2 + v7 * 1 + -4], v6          @0x2a
;;     v1 = movzx8.d v6                         @0x2f
;;     v5 = lea.q [v3 + 8]                      @0x34
;;     cmp.q v4, v5                             @0x34
;;     trap_if_b v5, MemoryOutOfBounds          @0x34
;;     v0 = add.d v1, [v2 + v5 * 1 + -4]        @0x37
;;     ret v0:rax                               @0x38
