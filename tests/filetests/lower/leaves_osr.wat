;;; An OSR body that can be left counts at its header. If the runtime names other code, all locals go to the frame.
;; test: lower
;; func: 0
;; run: f(100000) -> 705082704
;; options: leaves
;; osr: 0
(module
  (func (export "f") (param i32) (result i32)
    (local i32)
    (loop $next
      (local.set 1 (i32.add (local.get 1) (local.get 0)))
      (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1)))
;; expect
;; machine lowered pc 0x22 regs 14 calls
;; b0:
;;     v2:rdi = args
;;     v13 = mov.d [v2 + 8]
;;     v12 = mov.d [v2]
;;     jmp b1(v12 v13)                          @0x22
;; b1(v4 v3): loop to b4 freq 8 p1
;;     v10 = mov.q [r15]                        @0x22
;;     v11 = mov.q [v10 + 56]                   @0x22
;;     v9 = sub.q v11, 18                       @0x22
;;     mov_to.q [v10 + 56], v9                  @0x22
;;     test.q v9, v9                            @0x22
;;     j_l b6 b2                                @0x22
;; b2: freq 8 weight 7.96875
;;     jmp b3                                   @0x28
;; b3: freq 8
;;     v7 = lea.d [v3 + v4 * 1]                 @0x28
;;     v8 = lea.d [v4 + -1]                     @0x2f
;;     test.d v8, v8                            @0x32
;;     j_ne b4 b5                               @0x32
;; b4: freq 8
;;     jmp b1(v8 v7)                            @0x37
;; b5:
;;     ret v7:rax                               @0x37
;; b6: cold freq 0.03125
;;     v5 = mov_imm.q 0                         @0x22
;;     v6:rax = call OsrTarget v5:rsi           @0x22
;;     v0 = mov.q v6                            @0x22
;;     test.q v0, v0                            @0x22
;;     j_ne b8 b7                               @0x22
;; b7: cold freq 0.03125
;;     jmp b3                                   @0x22
;; b8: cold freq 0.00390625
;;     mov_to.d [v2], v4                        @0x22
;;     mov_to.d [v2 + 8], v3                    @0x22
;;     v1 = mov_imm.q 0                         @0x22
;;     tail_call address v2:rdi v0:rax v1:r11   @0x22
