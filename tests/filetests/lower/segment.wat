;;; Accesses are relative to gs. A sum that may wrap around is part of an address without offset only, and has 32 bits then.
;; test: lower
;; func: 0
;; run: f(8, 4) -> 20
;; run: f(-4, 8) -> trap out of bounds memory access
;; options: segment opt-all
(module
  (func (export "f") (param i32 i32) (result i32)
    (i32.store (i32.const 8) (i32.const 1))
    (i32.store (i32.add (local.get 0) (local.get 1)) (i32.const 2))
    (i32.store offset=4 (i32.add (local.get 0) (local.get 1)) (i32.const 4))
    (i32.add
      (i32.add
        (i32.add (i32.load (local.get 0)) (i32.load offset=4 (local.get 0)))
        (i32.add (i32.load offset=8 (local.get 0)) (i32.load (i32.sub (local.get 0) (i32.const 4)))))
      (i32.add
        (i32.add
          (i32.load (i32.add (local.get 0) (i32.shl (local.get 1) (i32.const 1))))
          (i32.load (i32.add (i32.add (local.get 0) (local.get 1)) (i32.const -4))))
        (i32.add
          (i32.load (i32.shl (i32.and (local.get 1) (i32.const 7)) (i32.const 2)))
          (i32.load offset=2 (i32.add (i32.and (local.get 1) (i32.const 3)) (i32.const 10)))))))
  (memory 1)
  (data (i32.const 0) "\01\00\00\00\02\00\00\00\00\00\00\00\00\00\00\00\17\00\00\00"))
;; expect
;; machine lowered pc 0x26 regs 17
;; b0:
;;     v16:rdi v7:rsi = args
;;     v11 = mov.d v16
;;     mov_to.d [gs + 8]!0x2a, 1                @0x2a
;;     v10 = lea.d [v11 + v7 * 1]               @0x31
;;     mov_to.d [gs + v10]!0x34, 2              @0x34
;;     mov_to.d [gs + v10 + 4]!0x3e, 4          @0x3e
;;     v15 = mov.d [gs + v11]!0x43              @0x43
;;     v12 = add.d v15, [gs + v11 + 4]!0x48     @0x4b
;;     v14 = mov.d [gs + v11 + 8]!0x4e          @0x4e
;;     v13 = add.d v14, [gs32 + v11 + -4]!0x56  @0x59
;;     v1 = lea.d [v12 + v13 * 1]               @0x5a
;;     v9 = mov.d [gs32 + v11 + v7 * 2]!0x63    @0x63
;;     v3 = add.d v9, [gs32 + v10 + -4]!0x6e    @0x71
;;     v8 = and.d v7, 7                         @0x76
;;     v5 = mov.d [gs + v8 * 4]!0x7a            @0x7a
;;     v6 = and.d v7, 3                         @0x81
;;     v4 = add.d v5, [gs + v6 + 12]!0x85       @0x88
;;     v2 = lea.d [v3 + v4 * 1]                 @0x89
;;     v0 = lea.d [v1 + v2 * 1]                 @0x8a
;;     ret v0:rax                               @0x8b
