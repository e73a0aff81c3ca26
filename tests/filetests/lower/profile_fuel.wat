;;; Fuel, and the profile of the loop.
;; test: lower
;; func: 0
;; run: f(4) -> 10
;; run: f(0) -> 0
;; options: fuel
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
;; machine lowered pc 0x22 regs 9
;; b0:
;;     v7:rdi = args
;;     v8 = mov_imm.q 0                         @0x24
;;     jmp b1(v7 v8)                            @0x24
;; b1(v2 v0): loop to b2 freq 8 weight 64 p255
;;     v6 = mov.q [r15]                         @0x24
;;     sub_to.q [v6], 3                         @0x24
;;     trap_if_s OutOfFuel                      @0x24
;;     test.d v2, v2                            @0x29
;;     j_ne b2 b3                               @0x29
;; b2: freq 8 weight 63.75
;;     v5 = mov.q [r15]                         @0x2b
;;     sub_to.q [v5], 9                         @0x2b
;;     trap_if_s OutOfFuel                      @0x2b
;;     v4 = lea.d [v0 + v2 * 1]                 @0x2f
;;     v3 = lea.d [v2 + -1]                     @0x36
;;     jmp b1(v3 v4)                            @0x39
;; b3:
;;     v1 = mov.q [r15]                         @0x3d
;;     sub_to.q [v1], 1                         @0x3d
;;     trap_if_s OutOfFuel                      @0x3d
;;     ret v0:rax                               @0x3f
