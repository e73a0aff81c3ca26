;; test: emit
;; options: opt-all leaves
;; func: 2
;; profile: 0x4f f0 990 f1 10
;; run: f(5, 0) -> 10
;; run: f(5, 1) -> 25
(module
  (type $unary (func (param i32) (result i32)))
  (table funcref (elem $double $square))
  (func $double (type $unary) (i32.add (local.get 0) (local.get 0)))
  (func $square (type $unary) (i32.mul (local.get 0) (local.get 0)))
  (func (export "f") (param i32 i32) (result i32)
    (call_indirect (type $unary) (local.get 0) (local.get 1))))
;; expect
;;      0  push rbp
;;      1  mov rbp,rsp
;;      4  mov r11,[r15+8]
;;      b  cmp rsp,[r11]
;;     12  jb near 8Bh
;;     18  mov eax,esi
;;     1a  xor ecx,ecx                          @0x4f
;;     1c  mov rdx,[r15+30h]                    @0x4f
;;     20  cmp rax,2                            @0x4f
;;     24  jae near 8Dh                         @0x4f
;;     2a  mov rsi,rax                          @0x4f
;;     2d  cmovae rsi,rcx                       @0x4f
;;     31  shl rsi,5                            @0x4f
;;     35  add rsi,[rdx]                        @0x4f
;;     38  lea rcx,[rel 3Fh]                    @0x4f
;;     3f  xor rcx,[rsi]                        @0x4f
;;     42  jne short 49h                        @0x4f
;;     44  lea eax,[rdi+rdi]                    @0x3f
;;     47  pop rbp                              @0x52
;;     48  ret                                  @0x52
;;     49  mov rcx,[r15]                        @0x4f
;;     4c  sub qword [rcx+40h],1                @0x4f
;;     51  js near 8Fh                          @0x4f
;;     57  xor ecx,ecx                          @0x4f
;;     59  mov rdx,[r15+30h]                    @0x4f
;;     5d  cmp rax,2                            @0x4f
;;     61  jae near 0B1h                        @0x4f
;;     67  cmovae rax,rcx                       @0x4f
;;     6b  shl rax,5                            @0x4f
;;     6f  add rax,[rdx]                        @0x4f
;;     72  cmp dword [rax+8],0                  @0x4f
;;     79  jne near 0B3h                        @0x4f
;;     7f  mov r11,rax                          @0x4f
;;     82  call qword [r11]                     @0x4f
;;     89  jmp short 47h                        @0x4f
;;     8b  ud2                                  @0x4b
;;     8d  ud2                                  @0x4f
;;     8f  push rax                             @0x4f
;;     90  push r11                             @0x4f
;;     92  mov rax,[r15+18h]                    @0x4f
;;     99  mov r11,8000000200000002h            @0x4f
;;     a3  call qword [rax+70h]                 @0x4f
;;     a9  pop r11                              @0x4f
;;     ab  pop rax                              @0x4f
;;     ac  jmp 57h                              @0x4f
;;     b1  ud2                                  @0x4f
;;     b3  cmp dword [rax+8],0FFFFFFFFh         @0x4f
;;     b7  jne near 0BFh                        @0x4f
;;     bd  ud2                                  @0x4f
;;     bf  mov rcx,[r15]                        @0x4f
;;     c2  mov [rcx+30h],rax                    @0x4f
;;     c6  ud2                                  @0x4f
;; reloc 3b entry of func0 -4
;; reloc 75 type0
;; trap 8b Trap(StackOverflow) @0x4b
;; trap 8d Trap(TableOutOfBounds) @0x4f
;; trap b1 Trap(TableOutOfBounds) @0x4f
;; trap bd Trap(IndirectCallToNull) @0x4f
;; trap c6 Trap(BadSignature) @0x4f
;; call 89 @0x4f
;; call a9 @0x4f
