;;; The recursive case is the rare one, so it is cold.
;; test: lower
;; func: 0
;; run: f(10) -> 55
;; run: f(1) -> 1
;; profile: 0x25 5000 10
(module
  (func $f (export "f") (param i32) (result i32)
    (if (result i32) (i32.lt_s (local.get 0) (i32.const 2))
      (then (local.get 0))
      (else (i32.add (call $f (i32.sub (local.get 0) (i32.const 1))) (call $f (i32.sub (local.get 0) (i32.const 2))))))))
;; expect
;; machine lowered pc 0x20 regs 7 calls
;; b0: p255
;;     v1:rdi = args
;;     cmp.d v1, 2                              @0x25
;;     j_l b2 b1                                @0x25
;; b1: cold freq 0.00390625
;;     v6 = lea.d [v1 + -1]                     @0x2e
;;     v3:rax = call itself v6:rdi              @0x2f
;;     v5 = lea.d [v1 + -2]                     @0x35
;;     v4:rax = call itself v5:rdi              @0x36
;;     v2 = lea.d [v3 + v4 * 1]                 @0x38
;;     jmp b3(v2)                               @0x39
;; b2:
;;     jmp b3(v1)                               @0x29
;; b3(v0):
;;     ret v0:rax                               @0x3a
