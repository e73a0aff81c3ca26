;;; A rare arm comes last, with its loop. What it does for its call is not in the way of the loop around it.
;; test: regalloc
;; func: 0
;; run: f(3, 5) -> 15
;; run: f(3, 300) -> 450
;; profile: 0x30 1 1000
(module
  (memory 1)
  (func (export "f") (param i32 i32) (result i32)
    (local i32)
    (loop $next
      (if (i32.gt_u (local.get 1) (i32.const 255))
        (then
          (loop $shift
            (drop (memory.grow (i32.const 0)))
            (local.set 1 (i32.shr_u (local.get 1) (i32.const 1)))
            (br_if $shift (i32.gt_u (local.get 1) (i32.const 255))))))
      (local.set 2 (i32.add (local.get 2) (local.get 1)))
      (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (i32.add (local.get 2) (local.get 0))))
;; expect
;; machine allocated pc 0x28 calls
;; saves rbx r12 r13
;; b0:
;;     rdi rsi = args
;;     rbx = mov_imm.q 0                        @0x28
;;     r12 = copy rdi
;;     jmp b1                                   @0x28
;; b1: loop to b4 freq 8 p1
;;     cmp.d rsi, 255                           @0x30
;;     j_a b6 b2                                @0x30
;; b2: freq 8 weight 7.96875
;;     jmp b3
;; b3: freq 8
;;     rbx = lea.d [rbx + rsi * 1]              @0x4e
;;     r12 = lea.d [r12 + -1]                   @0x55
;;     test.d r12, r12                          @0x58
;;     j_ne b4 b5                               @0x58
;; b4: freq 8
;;     jmp b1                                   @0x5f
;; b5:
;;     rax = lea.d [rbx + r12 * 1]              @0x5f
;;     ret rax                                  @0x60
;; b6: cold freq 0.03125
;;     r13 = copy rsi
;;     jmp b7                                   @0x32
;; b7: loop to b8 freq 64 weight 1.2799988
;;     rsi = mov_imm.q 0                        @0x36
;;     rdx = mov_imm.q 0                        @0x36
;;     rax = call MemoryGrow rsi rdx            @0x36
;;     rax = mov.d rax                          @0x36
;;     r13 = shr.d r13, 1                       @0x3d
;;     cmp.d r13, 255                           @0x46
;;     j_a b8 b9                                @0x46
;; b8: freq 64 weight 1.2799988
;;     jmp b7                                   @0x49
;; b9: cold freq 0.03125
;;     rsi = copy r13
;;     jmp b3                                   @0x49
