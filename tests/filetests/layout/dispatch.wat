;;; The latch, to which the arms jump, comes before the header and falls through to it.
;; test: layout
;; run: f(0) -> 310
(module
  (memory 1)
  (data (i32.const 0) "\00\01\02\03\04\00\05")
  (data (i32.const 256) "\1f")
  (func (export "f") (param $pc i32) (result i32) (local $sum i32)
    (loop $next
      (block $halt (block $latch (block $d (block $c (block $b (block $a
        (br_table $a $b $c $d $latch $halt (i32.load8_u (local.get $pc))))
        (local.set $sum (i32.add (local.get $sum) (i32.load offset=256 (local.get $pc)))) (br $latch))
        (local.set $sum (i32.mul (local.get $sum) (i32.const 10))) (br $latch))
        (local.set $sum (i32.xor (local.get $sum) (i32.load offset=512 (local.get $sum)))) (br $latch))
        (i32.store offset=1024 (local.get $sum) (local.get $pc)))
        (local.set $pc (i32.add (local.get $pc) (i32.const 1)))
        (br $next)))
    (local.get $sum)))
;; expect
;; machine laid_out pc 0x27
;; table 0 1 2 3 4 5
;; b0:
;;     rdi = args
;;     rax = mov.d rdi
;;     rcx = mov.q [r15 + 16]
;;     rdx = mov_imm.q 0                        @0x27
;;     jmp b1                                   @0x27
;; b7: freq 8 weight 5 dispatch 2
;;     rax = lea.d [rax + 1]                    @0x76
;;     jmp b1                                   @0x79
;; b1: loop to b7 freq 8 weight 6 dispatch 1
;;     rsi = movzx8.d [rcx + rax * 1]!0x37      @0x37
;;     rdi = jmp_table_masked.d r8, rsi, 0 b6 b5 b4 b3 b2 b8 @0x3a
;; b3: freq 8 weight 1 replicates b7
;;     mov_to.d [rcx + rdx * 1 + 1024]!0x6d, rax @0x6d
;;     jmp b7                                   @0x71
;; b4: freq 8 weight 1 replicates b7
;;     rdx = xor.d rdx, [rcx + rdx * 1 + 512]!0x5f @0x63
;;     jmp b7                                   @0x66
;; b5: freq 8 weight 1 replicates b7
;;     rdx = imul_imm.d rdx, 10                 @0x55
;;     jmp b7                                   @0x58
;; b6: freq 8 weight 1 replicates b7
;;     rdx = add.d rdx, [rcx + rax * 1 + 256]!0x47 @0x4b
;;     jmp b7                                   @0x4e
;; b8:
;;     rax = copy rdx
;;     ret rax                                  @0x7f
;; b2: freq 8 weight 1 to b7
;;     jmp b7                                   @0x6d
