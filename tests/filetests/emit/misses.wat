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
;;     12  jb near 65h
;;     18  mov eax,esi
;;     1a  test eax,eax                         @0x4f
;;     1c  jne short 23h                        @0x4f
;;     1e  lea eax,[rdi+rdi]                    @0x3f
;;     21  pop rbp                              @0x52
;;     22  ret                                  @0x52
;;     23  mov rcx,[r15]                        @0x4f
;;     26  sub qword [rcx+40h],1                @0x4f
;;     2b  js near 67h                          @0x4f
;;     31  xor ecx,ecx                          @0x4f
;;     33  mov rdx,[r15+30h]                    @0x4f
;;     37  cmp rax,2                            @0x4f
;;     3b  jae near 89h                         @0x4f
;;     41  cmovae rax,rcx                       @0x4f
;;     45  shl rax,5                            @0x4f
;;     49  add rax,[rdx]                        @0x4f
;;     4c  cmp dword [rax+8],0                  @0x4f
;;     53  jne near 8Bh                         @0x4f
;;     59  mov r11,rax                          @0x4f
;;     5c  call qword [r11]                     @0x4f
;;     63  jmp short 21h                        @0x4f
;;     65  ud2                                  @0x4b
;;     67  push rax                             @0x4f
;;     68  push r11                             @0x4f
;;     6a  mov rax,[r15+18h]                    @0x4f
;;     71  mov r11,8000000200000002h            @0x4f
;;     7b  call qword [rax+70h]                 @0x4f
;;     81  pop r11                              @0x4f
;;     83  pop rax                              @0x4f
;;     84  jmp 31h                              @0x4f
;;     89  ud2                                  @0x4f
;;     8b  cmp dword [rax+8],0FFFFFFFFh         @0x4f
;;     8f  jne near 97h                         @0x4f
;;     95  ud2                                  @0x4f
;;     97  mov rcx,[r15]                        @0x4f
;;     9a  mov [rcx+30h],rax                    @0x4f
;;     9e  ud2                                  @0x4f
;; reloc 4f type0
;; trap 65 Trap(StackOverflow) @0x4b
;; trap 89 Trap(TableOutOfBounds) @0x4f
;; trap 95 Trap(IndirectCallToNull) @0x4f
;; trap 9e Trap(BadSignature) @0x4f
;; call 63 @0x4f
;; call 81 @0x4f
