;; test: emit
;; options: opt-all leaves
;; func: 2
;; profile: 0x53 f0 990 f1 10
;; run: f(5, 0) -> 10
;; run: f(5, 1) -> 25
(module
  (type $unary (func (param i32) (result i32)))
  (table (export "t") funcref (elem $double $square))
  (func $double (type $unary) (i32.add (local.get 0) (local.get 0)))
  (func $square (type $unary) (i32.mul (local.get 0) (local.get 0)))
  (func (export "f") (param i32 i32) (result i32)
    (call_indirect (type $unary) (local.get 0) (local.get 1))))
;; expect
;;      0  push rbp
;;      1  mov rbp,rsp
;;      4  push r15
;;      6  sub rsp,8
;;      a  mov r11,[r15+8]
;;     11  cmp rsp,[r11]
;;     18  jb near 0A2h
;;     1e  mov eax,esi
;;     20  xor ecx,ecx                          @0x53
;;     22  mov rdx,[r15+30h]                    @0x53
;;     26  cmp rax,[rdx+8]                      @0x53
;;     2a  jae near 0A4h                        @0x53
;;     30  mov rsi,rax                          @0x53
;;     33  cmovae rsi,rcx                       @0x53
;;     37  shl rsi,5                            @0x53
;;     3b  add rsi,[rdx]                        @0x53
;;     3e  lea rcx,[rel 45h]                    @0x53
;;     45  xor rcx,[rsi]                        @0x53
;;     48  mov rdx,r15                          @0x53
;;     4b  xor rdx,[rsi+10h]                    @0x53
;;     4f  or rcx,rdx                           @0x53
;;     52  jne short 59h                        @0x53
;;     54  lea eax,[rdi+rdi]                    @0x43
;;     57  leave                                @0x56
;;     58  ret                                  @0x56
;;     59  mov rcx,[r15]                        @0x53
;;     5c  sub qword [rcx+40h],1                @0x53
;;     61  js near 0A6h                         @0x53
;;     67  xor ecx,ecx                          @0x53
;;     69  mov rdx,[r15+30h]                    @0x53
;;     6d  cmp rax,[rdx+8]                      @0x53
;;     71  jae near 0C8h                        @0x53
;;     77  cmovae rax,rcx                       @0x53
;;     7b  shl rax,5                            @0x53
;;     7f  add rax,[rdx]                        @0x53
;;     82  cmp dword [rax+8],0                  @0x53
;;     89  jne near 0CAh                        @0x53
;;     8f  mov r11,rax                          @0x53
;;     92  mov r15,[r11+10h]                    @0x53
;;     96  mov r11,[r11]                        @0x53
;;     99  call qword [r11]                     @0x53
;;     9c  mov r15,[rbp-8]                      @0x53
;;     a0  jmp short 57h                        @0x53
;;     a2  ud2                                  @0x4f
;;     a4  ud2                                  @0x53
;;     a6  push rax                             @0x53
;;     a7  push r11                             @0x53
;;     a9  mov rax,[r15+18h]                    @0x53
;;     b0  mov r11,8000000200000002h            @0x53
;;     ba  call qword [rax+70h]                 @0x53
;;     c0  pop r11                              @0x53
;;     c2  pop rax                              @0x53
;;     c3  jmp 67h                              @0x53
;;     c8  ud2                                  @0x53
;;     ca  cmp dword [rax+8],0FFFFFFFFh         @0x53
;;     ce  jne near 0D6h                        @0x53
;;     d4  ud2                                  @0x53
;;     d6  mov rcx,[r15]                        @0x53
;;     d9  mov [rcx+30h],rax                    @0x53
;;     dd  ud2                                  @0x53
;;     df  int3
;; reloc 41 func0 -4
;; reloc 85 type0
;; trap a2 Trap(StackOverflow) @0x4f
;; trap a4 Trap(TableOutOfBounds) @0x53
;; trap c8 Trap(TableOutOfBounds) @0x53
;; trap d4 Trap(IndirectCallToNull) @0x53
;; trap dd Trap(BadSignature) @0x53
;; call 9c @0x53
;; call c0 @0x53
