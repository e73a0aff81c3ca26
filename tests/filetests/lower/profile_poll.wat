;;; Polls, and the profile of the loop.
;; test: lower
;; func: 0
;; run: f(4) -> 10
;; options: poll
;; profile: 0x32 1000 10
(module
  (func (export "f") (param i32) (result i32)
    (local i32)
    (loop $next
      (local.set 1 (i32.add (local.get 1) (local.get 0)))
      (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1)))
;; expect
;; machine lowered pc 0x22 regs 12
;; b0:
;;     v8:rdi = args
;;     v9 = mov.q [r15]                         @0x22
;;     v10 = mov.q [v9 + 8]                     @0x22
;;     v11 = mov.q [v10]                        @0x22
;;     cmp.q v11, [v9 + 16]                     @0x22
;;     trap_if_ae Interrupt                     @0x22
;;     v7 = mov_imm.q 0                         @0x22
;;     jmp b1(v7 v8)                            @0x22
;; b1(v1 v2): loop to b2 freq 8 weight 64 p253
;;     v4 = mov.q [r15]                         @0x22
;;     v5 = mov.q [v4 + 8]                      @0x22
;;     v6 = mov.q [v5]                          @0x22
;;     cmp.q v6, [v4 + 16]                      @0x22
;;     trap_if_ae Interrupt                     @0x22
;;     v0 = lea.d [v1 + v2 * 1]                 @0x28
;;     v3 = lea.d [v2 + -1]                     @0x2f
;;     test.d v3, v3                            @0x32
;;     j_ne b2 b3                               @0x32
;; b2: freq 8 weight 63.25
;;     jmp b1(v0 v3)                            @0x37
;; b3:
;;     ret v0:rax                               @0x37
