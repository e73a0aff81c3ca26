;;; The inner loop is left as often as it iterates.
;; test: lower
;; func: 0
;; run: f(3) -> 10
;; run: f(0) -> 0
;; profile: 0x29 1 100
;; profile: 0x3f 50 50
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
;; machine lowered pc 0x22 regs 9
;; b0:
;;     v7:rdi = args
;;     v8 = mov_imm.q 0                         @0x24
;;     jmp b1(v7 v8)                            @0x24
;; b1(v1 v0): loop to b5 freq 8 weight 64 p254
;;     test.d v1, v1                            @0x29
;;     j_ne b2 b6                               @0x29
;; b2: freq 8 weight 63.5
;;     jmp b3(v0 v1)                            @0x2f
;; b3(v4 v5): loop to b4 freq 64 weight 127 p128
;;     v3 = lea.d [v4 + v5 * 1]                 @0x35
;;     v6 = lea.d [v5 + -1]                     @0x3c
;;     test.d v6, v6                            @0x3f
;;     j_ne b4 b5                               @0x3f
;; b4: freq 64 weight 63.5
;;     jmp b3(v3 v6)                            @0x46
;; b5: freq 8 weight 63.5
;;     v2 = lea.d [v1 + -1]                     @0x46
;;     jmp b1(v2 v3)                            @0x49
;; b6:
;;     ret v0:rax                               @0x4f
