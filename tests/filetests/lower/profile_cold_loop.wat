;;; A loop that is rarely entered is not cold: it may iterate often.
;; test: lower
;; func: 0
;; run: f(4) -> 10
;; run: f(0) -> 0
;; profile: 0x29 1000 1
(module
  (func (export "f") (param i32) (result i32)
    (local i32)
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get 0)))
        (local.set 1 (i32.add (local.get 1) (local.get 0)))
        (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
        (br $next)))
    (local.get 1)))
;; expect
;; machine lowered pc 0x22 regs 6
;; b0:
;;     v4:rdi = args
;;     v5 = mov_imm.q 0                         @0x24
;;     jmp b1(v4 v5)                            @0x24
;; b1(v0 v2): loop to b1 freq 8 weight 1.0039215 p1
;;     test.d v0, v0                            @0x29
;;     j_ne b3 b2                               @0x29
;; b2:
;;     ret v2:rax                               @0x3f
;; b3: cold freq 0.03125 weight 0.003921509
;;     v3 = lea.d [v2 + v0 * 1]                 @0x2f
;;     v1 = lea.d [v0 + -1]                     @0x36
;;     jmp b1(v1 v3)                            @0x39
