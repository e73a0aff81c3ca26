;;; Arms of a `br_table` weigh what the profile says; several labels may lead to one arm.
;; test: lower
;; func: 0
;; run: f(3) -> 2
;; run: f(0) -> 1
;; profile: 0x2f 40 10 20 30
(module
  (func (export "f") (param i32) (result i32)
    (local i32)
    (loop $next
      (block $last
        (block $two
          (block $one
            (br_table $one $two $one $last (i32.and (local.get 0) (i32.const 3))))
          (local.set 1 (i32.add (local.get 1) (i32.const 1)))
          (br $last))
        (local.set 1 (i32.xor (local.get 1) (i32.const 2))))
      (br_if $next (local.tee 0 (i32.shr_u (local.get 0) (i32.const 1)))))
    (local.get 1)))
;; expect
;; machine lowered pc 0x22 regs 11
;; table 0 1 0 2
;; b0:
;;     v9:rdi = args
;;     v10 = mov_imm.q 0                        @0x22
;;     jmp b1(v9 v10)                           @0x22
;; b1(v1 v3): loop to b7 freq 8
;;     v6 = and.d v1, 3                         @0x2e
;;     v7 = jmp_table_masked.d v8, v6, 0 b4 b3 b2 @0x2f
;; b2: freq 8 weight 2.399994
;;     jmp b6(v3)                               @0x44
;; b3: freq 8 weight 0.80000305
;;     v5 = xor.d v3, 2                         @0x44
;;     jmp b6(v5)                               @0x47
;; b4: freq 8 weight 4.800003
;;     jmp b5                                   @0x3a
;; b5: freq 8 weight 4.800003
;;     v4 = lea.d [v3 + 1]                      @0x3a
;;     jmp b6(v4)                               @0x3d
;; b6(v0): freq 8
;;     v2 = shr.d v1, 1                         @0x4c
;;     test.d v2, v2                            @0x4f
;;     j_ne b7 b8                               @0x4f
;; b7: freq 8
;;     jmp b1(v2 v0)                            @0x54
;; b8:
;;     ret v0:rax                               @0x54
