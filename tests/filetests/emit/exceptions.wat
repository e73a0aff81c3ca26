;; test: emit
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
;;      0  push rbp
;;      1  mov rbp,rsp
;;      4  mov r11,[r15+8]
;;      b  cmp rsp,[r11]
;;     12  jb near 4Dh
;;     18  test edi,edi                         @0x4f
;;     1a  jne short 23h                        @0x4f
;;     1c  mov eax,7                            @0x5c
;;     21  pop rbp                              @0x5c
;;     22  ret                                  @0x5c
;;     23  lea eax,[rdi+64h]                    @0x56
;;     26  mov rcx,[r15+8]                      @0x57
;;     2a  mov rcx,[rcx+20h]                    @0x57
;;     2e  mov [rcx],rax                        @0x57
;;     31  mov rsi,5700000000h                  @0x57
;;     3b  mov rdi,r15                          @0x57
;;     3e  mov rax,[r15+18h]                    @0x57
;;     45  call qword [rax+80h]                 @0x57
;;     4b  ud2                                  @0x57
;;     4d  ud2                                  @0x4d
;;     4f  int3
;; trap 4d Trap(StackOverflow) @0x4d
;; call 4b @0x57
;;      0  push rbp
;;      1  mov rbp,rsp
;;      4  push r15
;;      6  sub rsp,8
;;      a  mov r11,[r15+8]
;;     11  cmp rsp,[r11]
;;     18  jb near 32h
;;     1e  call qword [rel 24h]                 @0x69
;;     24  leave                                @0x6d
;;     25  ret                                  @0x6d
;;     26  mov rax,[r15+8]                      @0x6b
;;     2a  mov rax,[rax+20h]                    @0x6b
;;     2e  mov eax,[rax]                        @0x6b
;;     30  jmp short 24h                        @0x6b
;;     32  ud2                                  @0x5f
;; reloc 20 func0 -4
;; trap 32 Trap(StackOverflow) @0x5f
;; call 24 @0x69
;;      0  test edi,edi                         @0x7a
;;      2  jne short 6                          @0x7a
;;      4  xor edi,edi                          @0x84
;;      6  lea eax,[rdi+1]                      @0x87
;;      9  ret                                  @0x88
;;      a  int3
;;      b  int3
;;      0  push rbp
;;      1  mov rbp,rsp
;;      4  push rbx
;;      6  push r15
;;      8  mov r11,[r15+8]
;;      f  cmp rsp,[r11]
;;     16  jb near 45h
;;     1c  mov rbx,rdi                          @0x96
;;     1f  xor edi,edi                          @0x96
;;     21  call qword [rel 27h]                 @0x96
;;     27  mov rdi,rbx                          @0x9f
;;     2a  call qword [rel 30h]                 @0x9f
;;     30  add eax,ebx                          @0xa9
;;     32  add rsp,8                            @0xaa
;;     36  pop rbx                              @0xaa
;;     38  pop rbp                              @0xaa
;;     39  ret                                  @0xaa
;;     3a  mov eax,0Ah
;;     3f  jmp short 30h
;;     41  xor eax,eax
;;     43  jmp short 30h
;;     45  ud2                                  @0x8d
;;     47  int3
;; reloc 23 func0 -4
;; reloc 2c func0 -4
;; trap 45 Trap(StackOverflow) @0x8d
;; call 27 @0x96
;; call 30 @0x9f
;;      0  push rbp
;;      1  mov rbp,rsp
;;      4  push r15
;;      6  sub rsp,8
;;      a  mov r11,[r15+8]
;;     11  cmp rsp,[r11]
;;     18  jb near 85h
;;     1e  mov [rbp-10h],rdi                    @0xc1
;;     22  mov rax,[r15+8]                      @0xc1
;;     26  mov rax,[rax+20h]                    @0xc1
;;     2a  mov [rax],rdi                        @0xc1
;;     2d  mov rsi,0C100000000h                 @0xc1
;;     37  mov rdi,r15                          @0xc1
;;     3a  mov rax,[r15+18h]                    @0xc1
;;     41  call qword [rax+80h]                 @0xc1
;;     47  ud2                                  @0xc1
;;     49  mov rax,[r15+8]                      @0xc3
;;     4d  mov rax,[rax+20h]                    @0xc3
;;     51  mov rax,[rax+8]                      @0xc3
;;     55  test rax,rax                         @0xce
;;     58  je near 87h                          @0xce
;;     5e  mov rsi,rax                          @0xce
;;     61  mov rdi,r15                          @0xce
;;     64  mov rax,[r15+18h]                    @0xce
;;     6b  call qword [rax+88h]                 @0xce
;;     71  ud2                                  @0xce
;;     73  mov rax,[r15+8]                      @0xcf
;;     77  mov rax,[rax+20h]                    @0xcf
;;     7b  mov eax,[rax]                        @0xcf
;;     7d  mov rdi,[rbp-10h]                    @0xd4
;;     81  add eax,edi                          @0xd4
;;     83  leave                                @0xd5
;;     84  ret                                  @0xd5
;;     85  ud2                                  @0xaf
;;     87  ud2                                  @0xce
;;     89  int3
;;     8a  int3
;;     8b  int3
;; trap 85 Trap(StackOverflow) @0xaf
;; trap 87 Trap(NullReference) @0xce
;; call 47 @0xc1
;; call 71 @0xce
