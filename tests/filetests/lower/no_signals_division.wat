;;; The divisor is tested after selection, by the sequence.
;; test: lower
;; func: 0
;; run: f(47, 5) -> 16
;; run: f(1, 0) -> trap integer divide by zero
;; run: f(-2147483648, -1) -> trap integer overflow
;; options: no-signals
(module
  (func (export "f") (param i32 i32) (result i32)
    (i32.add (i32.div_s (local.get 0) (local.get 1)) (i32.rem_u (local.get 0) (i32.const 10)))))
;; expect
;; machine lowered pc 0x21 regs 10 raises
;; b0:
;;     v9:rdi v8:rsi = args
;;     v3 = mov.d v9
;;     v1 = div_s.d v3, v8                      @0x25
;;     v7 = mov_imm.q 3435973837                @0x2a
;;     v6 = imul.q v7, v3                       @0x2a
;;     v4 = shr.q v6, 35                        @0x2a
;;     v5 = imul_imm.d v4, 10                   @0x2a
;;     v2 = sub.d v3, v5                        @0x2a
;;     v0 = lea.d [v1 + v2 * 1]                 @0x2b
;;     ret v0:rax                               @0x2c
