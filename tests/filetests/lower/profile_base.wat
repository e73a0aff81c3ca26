;;; Memory's base has a register of its own in a loop.
;; test: lower
;; func: 0
;; run: f(4) -> 20
;; profile: 0x49 900 30
(module
  (func (export "f") (param i32) (result i32)
    (local i32)
    (loop $next
      (i32.store8 (local.get 0) (local.get 0))
      (local.set 1 (i32.add (local.get 1) (i32.load8_u (local.get 0))))
      (i32.store16 offset=256 (local.get 0) (local.get 1))
      (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (i32.add (local.get 1) (i32.load8_u offset=256 (i32.const 1))))
  (memory 1))
;; expect
;; machine lowered pc 0x27 regs 11
;; b0:
;;     v10:rdi = args
;;     v8 = mov.d v10
;;     v3 = mov.q [r15 + 16]
;;     v9 = mov_imm.q 0                         @0x27
;;     jmp b1(v8 v9)                            @0x27
;; b1(v4 v6): loop to b2 freq 8 weight 28.444443 p247
;;     mov_to.b [v3 + v4 * 1]!0x2d, v4          @0x2d
;;     v7 = movzx8.d v4                         @0x34
;;     v1 = lea.d [v7 + v6 * 1]                 @0x37
;;     mov_to.w [v3 + v4 * 1 + 256]!0x3e, v1    @0x3e
;;     v5 = lea.d [v4 + -1]                     @0x46
;;     test.d v5, v5                            @0x49
;;     j_ne b2 b3                               @0x49
;; b2: freq 8 weight 27.444443
;;     jmp b1(v5 v1)                            @0x50
;; b3:
;;     v2 = movzx8.d [v3 + 257]!0x50            @0x50
;;     v0 = add.d v1, v2                        @0x54
;;     ret v0:rax                               @0x55
