;;; A loop that is rarely left.
;; test: lower
;; func: 0
;; run: f(4) -> 10
;; run: f(0) -> 0
;; profile: 0x29 1 1000
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
;; b1(v1 v0): loop to b2 freq 8 weight 64 p255
;;     test.d v1, v1                            @0x29
;;     j_ne b2 b3                               @0x29
;; b2: freq 8 weight 63.75
;;     v3 = lea.d [v0 + v1 * 1]                 @0x2f
;;     v2 = lea.d [v1 + -1]                     @0x36
;;     jmp b1(v2 v3)                            @0x39
;; b3:
;;     ret v0:rax                               @0x3f
