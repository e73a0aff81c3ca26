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
;;     v5:rdi = args
;;     cmp.d v5, 2                              @0x25
;;     j_l b1 b3                                @0x25
;; b1: weight 0.99609375
;;     jmp b2(v5)                               @0x29
;; b2(v0):
;;     ret v0:rax                               @0x3a
;; b3: cold freq 0.00390625
;;     v6 = lea.d [v5 + -1]                     @0x2e
;;     v2:rax = call itself v6:rdi              @0x2f
;;     v4 = lea.d [v5 + -2]                     @0x35
;;     v3:rax = call itself v4:rdi              @0x36
;;     v1 = lea.d [v2 + v3 * 1]                 @0x38
;;     jmp b2(v1)                               @0x39
