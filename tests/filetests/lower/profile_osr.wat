;;; The profile is that of the function, and the body is entered at its loop.
;; test: lower
;; func: 0
;; run: f(100000) -> 705082704
;; osr: 0
;; profile: 0x32 1000 1
(module
  (func (export "f") (param i32) (result i32)
    (local i32)
    (loop $next
      (local.set 1 (i32.add (local.get 1) (local.get 0)))
      (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1)))
;; expect
;; machine lowered pc 0x22 regs 7
;; b0:
;;     v6:rdi = args
;;     v5 = mov.d [v6]
;;     v4 = mov.d [v6 + 8]
;;     jmp b1(v4 v5)                            @0x22
;; b1(v1 v2): loop to b2 freq 8 weight 64 p255
;;     v0 = lea.d [v1 + v2 * 1]                 @0x28
;;     v3 = lea.d [v2 + -1]                     @0x2f
;;     test.d v3, v3                            @0x32
;;     j_ne b2 b3                               @0x32
;; b2: freq 8 weight 63.75
;;     jmp b1(v0 v3)                            @0x37
;; b3:
;;     ret v0:rax                               @0x37
