;;; Each target charges its segment.
;; test: lower
;; func: 0
;; run: f(0) -> 10
;; run: f(1) -> 20
;; run: f(2) -> 30
;; run: f(3) -> 20
;; run: f(4) -> 10
;; run: f(5) -> 40
;; run: f(-1) -> 40
;; options: fuel
(module
  (func (export "f") (param i32) (result i32)
    (block $d (block $c (block $b (block $a
      (br_table $a $b $c $b $a $d (local.get 0)))
      (return (i32.const 10)))
      (return (i32.const 20)))
      (return (i32.const 30)))
    (i32.const 40)))
;; expect
;; machine lowered pc 0x20 regs 13
;; table 0 1 2 1 0 3
;; b0:
;;     v12:rdi = args
;;     v8 = mov.d v12
;;     v11 = mov.q [r15]                        @0x20
;;     sub_to.q [v11], 2                        @0x20
;;     trap_if_s OutOfFuel                      @0x20
;;     v9 = jmp_table_masked.d v10, v8, 0 b5 b3 b2 b1 @0x2a
;; b1: weight 0.25
;;     v7 = mov.q [r15]                         @0x3f
;;     sub_to.q [v7], 1                         @0x3f
;;     trap_if_s OutOfFuel                      @0x3f
;;     v6 = mov_imm.q 40                        @0x41
;;     ret v6:rax                               @0x41
;; b2: weight 0.25
;;     v5 = mov.q [r15]                         @0x3b
;;     sub_to.q [v5], 2                         @0x3b
;;     trap_if_s OutOfFuel                      @0x3b
;;     v4 = mov_imm.q 30                        @0x3d
;;     ret v4:rax                               @0x3d
;; b3: weight 0.25
;;     jmp b4                                   @0x37
;; b4: weight 0.25
;;     v3 = mov.q [r15]                         @0x37
;;     sub_to.q [v3], 2                         @0x37
;;     trap_if_s OutOfFuel                      @0x37
;;     v2 = mov_imm.q 20                        @0x39
;;     ret v2:rax                               @0x39
;; b5: weight 0.25
;;     jmp b6                                   @0x33
;; b6: weight 0.25
;;     v1 = mov.q [r15]                         @0x33
;;     sub_to.q [v1], 2                         @0x33
;;     trap_if_s OutOfFuel                      @0x33
;;     v0 = mov_imm.q 10                        @0x35
;;     ret v0:rax                               @0x35
