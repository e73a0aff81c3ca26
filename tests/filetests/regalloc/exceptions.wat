;; test: regalloc
;; run: catch(3) -> 103
;; run: catch(0) -> 7
;; run: here(5) -> 6
;; run: here(0) -> 1
;; run: deep(4) -> 14
;; run: again(9) -> 18
(module
  (tag $i (param i32))
  (func $throws (param i32) (result i32)
    local.get 0 if local.get 0 i32.const 100 i32.add throw $i end
    i32.const 7)
  ;;; A call in a region ends its block.
  (func (export "catch") (param i32) (result i32)
    block $h (result i32)
      try_table (result i32) (catch $i $h) local.get 0 call $throws end
    end)
  ;;; A throw to a handler in the same function is a jump.
  (func (export "here") (param i32) (result i32)
    block $h (result i32)
      try_table (catch $i $h)
        local.get 0 if local.get 0 throw $i end
      end
      i32.const 0
    end
    i32.const 1 i32.add)
  ;;; Two calls lead to one landing block, which has a phi of the local that is assigned between them.
  (func (export "deep") (param i32) (result i32) (local i32)
    block $h
      try_table (catch_all $h)
        i32.const 0 call $throws drop
        i32.const 10 local.set 1
        local.get 0 call $throws local.set 1
      end
    end
    local.get 0 local.get 1 i32.add)
  ;;; A reference needs an object.
  (func (export "again") (param i32) (result i32) (local exnref)
    block $outer (result i32)
      try_table (catch $i $outer)
        block $h (result i32 exnref)
          try_table (catch_ref $i $h) local.get 0 throw $i end
          unreachable
        end
        local.set 1 local.get 0 i32.add drop
        local.get 1 throw_ref
      end
      unreachable
    end
    local.get 0 i32.add))
;; expect
;; machine allocated pc 0x4d calls
;; b0:
;;     rdi = args
;;     test.d rdi, rdi                          @0x4f
;;     j_ne b2 b1                               @0x4f
;; b1:
;;     rax = mov_imm.q 7                        @0x5c
;;     ret rax                                  @0x5c
;; b2: cold freq 0.00390625
;;     rax = lea.d [rdi + 100]                  @0x56
;;     rcx = mov.q [r15 + 8]                    @0x57
;;     rcx = mov.q [rcx + 32]                   @0x57
;;     mov_to.q [rcx], rax                      @0x57
;;     rsi = mov_imm.q 373662154752             @0x57
;;     throw Throw rsi                          @0x57
;; machine allocated pc 0x5f calls restores
;; b0:
;;     rdi = args
;;     try_call func0 rdi handler1 b4 b1        @0x69
;; b1:
;;     rax = results                            @0x69
;;     jmp b2                                   @0x6c
;; b2:
;;     jmp b3                                   @0x6c
;; b3:
;;     ret rax                                  @0x6d
;; b4: cold freq 0.00390625
;;     rax = mov.q [r15 + 8]                    @0x6b
;;     rax = mov.q [rax + 32]                   @0x6b
;;     rax = mov.d [rax]                        @0x6b
;;     jmp b3                                   @0x6b
;; machine allocated pc 0x70
;; b0:
;;     rdi = args
;;     test.d rdi, rdi                          @0x7a
;;     j_ne b2 b1                               @0x7a
;; b1:
;;     rdi = mov_imm.q 0                        @0x84
;;     jmp b3                                   @0x84
;; b2:
;;     jmp b3                                   @0x7e
;; b3:
;;     rax = lea.d [rdi + 1]                    @0x87
;;     ret rax                                  @0x88
;; machine allocated pc 0x8d calls restores
;; saves rbx
;; b0:
;;     rdi = args
;;     rbx = copy rdi
;;     rdi = mov_imm.q 0                        @0x96
;;     try_call func0 rdi handler1 b7 b1        @0x96
;; b1:
;;     jmp b2                                   @0x9f
;; b2:
;;     rdi = copy rbx
;;     try_call func0 rdi handler1 b6 b3        @0x9f
;; b3:
;;     rax = results                            @0x9f
;;     jmp b4                                   @0xa4
;; b4:
;;     jmp b5                                   @0xa4
;; b5:
;;     rax = lea.d [rbx + rax * 1]              @0xa9
;;     ret rax                                  @0xaa
;; b6: cold freq 0.00390625
;;     rax = mov_imm.q 10
;;     jmp b8
;; b7: cold freq 0.00390625
;;     rax = mov_imm.q 0
;;     jmp b8
;; b8: cold freq 0.00390625
;;     jmp b5                                   @0xa3
;; machine allocated pc 0xaf calls restores
;; slots 8
;; b0:
;;     rdi = args
;;     slot0 = copy rdi
;;     rax = mov.q [r15 + 8]                    @0xc1
;;     rax = mov.q [rax + 32]                   @0xc1
;;     mov_to.q [rax], rdi                      @0xc1
;;     rsi = mov_imm.q 828928688128             @0xc1
;;     throw Throw rsi handler3 b1              @0xc1
;; b1: cold freq 0.00390625
;;     rax = mov.q [r15 + 8]                    @0xc3
;;     rax = mov.q [rax + 32]                   @0xc3
;;     rax = mov.q [rax + 8]                    @0xc3
;;     test.q rax, rax                          @0xce
;;     trap_if_e NullReference                  @0xce
;;     rsi = mov.q rax                          @0xce
;;     throw ThrowRef rsi handler1 b2           @0xce
;; b2: cold freq 0.00390625
;;     rax = mov.q [r15 + 8]                    @0xcf
;;     rax = mov.q [rax + 32]                   @0xcf
;;     rax = mov.d [rax]                        @0xcf
;;     rdi = copy slot0
;;     rax = lea.d [rax + rdi * 1]              @0xd4
;;     ret rax                                  @0xd5
