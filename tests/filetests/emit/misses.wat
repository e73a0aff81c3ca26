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
;;     12  jb near 61h
;;     18  mov eax,esi
;;     1a  test eax,eax                         @0x4f
;;     1c  jne short 23h                        @0x4f
;;     1e  lea eax,[rdi+rdi]                    @0x3f
;;     21  pop rbp                              @0x52
;;     22  ret                                  @0x52
;;     23  mov rcx,[r15]                        @0x4f
;;     26  sub qword [rcx+40h],1                @0x4f
;;     2b  js near 63h                          @0x4f
;;     31  xor ecx,ecx                          @0x4f
;;     33  mov rdx,[r15+30h]                    @0x4f
;;     37  cmp rax,2                            @0x4f
;;     3b  jae near 85h                         @0x4f
;;     41  cmovae rax,rcx                       @0x4f
;;     45  shl rax,5                            @0x4f
;;     49  add rax,[rdx]                        @0x4f
;;     4c  cmp dword [rax+8],0                  @0x4f
;;     53  jne near 87h                         @0x4f
;;     59  mov r11,[rax]                        @0x4f
;;     5c  call qword [r11]                     @0x4f
;;     5f  jmp short 21h                        @0x4f
;;     61  ud2                                  @0x4b
;;     63  push rax                             @0x4f
;;     64  push r11                             @0x4f
;;     66  mov rax,[r15+18h]                    @0x4f
;;     6d  mov r11,8000000200000002h            @0x4f
;;     77  call qword [rax+70h]                 @0x4f
;;     7d  pop r11                              @0x4f
;;     7f  pop rax                              @0x4f
;;     80  jmp 31h                              @0x4f
;;     85  ud2                                  @0x4f
;;     87  cmp dword [rax+8],0FFFFFFFFh         @0x4f
;;     8b  jne near 93h                         @0x4f
;;     91  ud2                                  @0x4f
;;     93  mov rcx,[r15]                        @0x4f
;;     96  mov [rcx+30h],rax                    @0x4f
;;     9a  ud2                                  @0x4f
;; reloc 4f type0
;; trap 61 Trap(StackOverflow) @0x4b
;; trap 85 Trap(TableOutOfBounds) @0x4f
;; trap 91 Trap(IndirectCallToNull) @0x4f
;; trap 9a Trap(BadSignature) @0x4f
;; call 5f @0x4f
;; call 7d @0x4f
