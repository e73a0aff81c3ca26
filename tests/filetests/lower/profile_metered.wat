;;; Fuel and polls in nested loops.
;; test: lower
;; func: 0
;; run: f(3) -> 10
;; run: f(0) -> 0
;; options: fuel poll
;; profile: 0x29 1 100
;; profile: 0x3f 1000 1
(module
  (func (export "f") (param i32) (result i32)
    (local i32 i32)
    (block $done
      (loop $outer
        (br_if $done (i32.eqz (local.get 0)))
        (local.set 1 (local.get 0))
        (loop $inner
          (local.set 2 (i32.add (local.get 2) (local.get 1)))
          (br_if $inner (local.tee 1 (i32.sub (local.get 1) (i32.const 1)))))
        (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
        (br $outer)))
    (local.get 2)))
;; expect
;; machine lowered pc 0x22 regs 23
;; b0:
;;     v18:rdi = args
;;     v20 = mov.q [r15]                        @0x22
;;     v21 = mov.q [v20 + 8]                    @0x22
;;     v22 = mov.q [v21]                        @0x22
;;     cmp.q v22, [v20 + 16]                    @0x22
;;     trap_if_ae Interrupt                     @0x22
;;     v19 = mov_imm.q 0                        @0x24
;;     jmp b1(v18 v19)                          @0x24
;; b1(v2 v0): loop to b5 freq 8 weight 64 p254
;;     v15 = mov.q [r15]                        @0x24
;;     v16 = mov.q [v15 + 8]                    @0x24
;;     v17 = mov.q [v16]                        @0x24
;;     cmp.q v17, [v15 + 16]                    @0x24
;;     trap_if_ae Interrupt                     @0x24
;;     v14 = mov.q [r15]                        @0x24
;;     sub_to.q [v14], 3                        @0x24
;;     trap_if_s OutOfFuel                      @0x24
;;     test.d v2, v2                            @0x29
;;     j_ne b2 b6                               @0x29
;; b2: freq 8 weight 63.5
;;     v13 = mov.q [r15]                        @0x2b
;;     sub_to.q [v13], 2                        @0x2b
;;     trap_if_s OutOfFuel                      @0x2b
;;     jmp b3(v0 v2)                            @0x2f
;; b3(v6 v7): loop to b4 freq 64 weight 4064 p255
;;     v10 = mov.q [r15]                        @0x2f
;;     v11 = mov.q [v10 + 8]                    @0x2f
;;     v12 = mov.q [v11]                        @0x2f
;;     cmp.q v12, [v10 + 16]                    @0x2f
;;     trap_if_ae Interrupt                     @0x2f
;;     v9 = mov.q [r15]                         @0x2f
;;     sub_to.q [v9], 9                         @0x2f
;;     trap_if_s OutOfFuel                      @0x2f
;;     v4 = lea.d [v6 + v7 * 1]                 @0x35
;;     v8 = lea.d [v7 + -1]                     @0x3c
;;     test.d v8, v8                            @0x3f
;;     j_ne b4 b5                               @0x3f
;; b4: freq 64 weight 4048.125
;;     jmp b3(v4 v8)                            @0x41
;; b5: freq 8 weight 63.5
;;     v5 = mov.q [r15]                         @0x41
;;     sub_to.q [v5], 5                         @0x41
;;     trap_if_s OutOfFuel                      @0x41
;;     v3 = lea.d [v2 + -1]                     @0x46
;;     jmp b1(v3 v4)                            @0x49
;; b6:
;;     v1 = mov.q [r15]                         @0x4d
;;     sub_to.q [v1], 1                         @0x4d
;;     trap_if_s OutOfFuel                      @0x4d
;;     ret v0:rax                               @0x4f
