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
;; machine lowered pc 0x26 regs 9
;; b0:
;;     v8:rdi v6:rsi = args
;;     v4 = mov.d v8
;;     v3 = mov.q [r15 + 16]
;;     v2 = mov.q [r15 + 48]
;;     v7 = lea.q [v4 + 4]                      @0x2a
;;     cmp.q v7, [v2 + 8]                       @0x2a
;;     trap_if_a v7, MemoryOutOfBounds          @0x2a
;;     mov_to.d [v3 + v7 * 1 + -4], v6          @0x2a
;;     v1 = movzx8.d v6                         @0x2f
;;     v5 = lea.q [v4 + 8]                      @0x34
;;     cmp.q v5, [v2 + 8]                       @0x34
;;     trap_if_a v5, MemoryOutOfBounds          @0x34
;;     v0 = add.d v1, [v3 + v5 * 1 + -4]        @0x37
;;     ret v0:rax                               @0x38
