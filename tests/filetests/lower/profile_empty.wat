;;; The branch after the table is never taken.
;; test: lower
;; func: 0
;; run: f(0, 0) -> 1
;; run: f(0, 1) -> 2
;; run: f(1, 0) -> 1
;; run: f(2, 0) -> 2
;; run: f(9, 1) -> 2
;; profile: 0x34 0 400
(module
  (func (export "f") (param i32 i32) (result i32)
    (block $out (block $a (block $b
      (br_table $b $a $out $b $a (local.get 0))))
      (br_if $out (local.get 1))
      (return (i32.const 1)))
    (i32.const 2)))
;; expect
;; machine lowered pc 0x21 regs 7
;; table 0 1 2 0 1
;; b0:
;;     v6:rdi v2:rsi = args
;;     v3 = mov.d v6
;;     v4 = jmp_table_masked.d v5, v3, 0 b3 b2 b1 @0x29
;; b1: weight 0.33332825
;;     jmp b7                                   @0x31
;; b2: weight 0.33332825
;;     jmp b5                                   @0x31
;; b3: weight 0.33332825
;;     jmp b4                                   @0x31
;; b4: weight 0.33332825
;;     jmp b5                                   @0x31
;; b5: weight 0.66667175 p1
;;     test.d v2, v2                            @0x34
;;     j_ne b8 b6                               @0x34
;; b6: weight 0.6640625
;;     v1 = mov_imm.q 1                         @0x38
;;     ret v1:rax                               @0x38
;; b7: weight 0.3359375
;;     v0 = mov_imm.q 2                         @0x3c
;;     ret v0:rax                               @0x3c
;; b8: cold freq 0.00390625
;;     jmp b7
