;;; After each check of an address or an index it is replaced, without a branch, if the check has failed.
;; test: asm
;; func: 1
;; run: f(16, 2) -> 2
;; run: f(16, 9) -> trap undefined element: out of bounds table access
;; run: f(16, 4) -> trap uninitialized element
;; run: f(65528, 1) -> trap out of bounds memory access
;; run: f(-8, 1) -> trap out of bounds memory access
(module
  (memory i64 1)
  (table 5 funcref)
  (elem (i32.const 1) func $id $id $id)
  (func $id (param i64) (result i64) (local.get 0))
  (func (export "f") (param $at i64) (param $i i32) (result i64)
    (i64.store (local.get $at) (i64.const 7))
    (call_indirect (param i64) (result i64) (i64.load offset=8 (local.get $at)) (local.get $i))
    (block $a (block $b (block $c (block $d (block $e
      (br_table $a $b $c $d $e $a (local.get $i)))
      (return (i64.const 4))) (return (i64.const 3))) (return (i64.const 2))) (return (i64.const 1)))
    (return (i64.const 0)))
)
;; expect
;;      0  push rbp
;;      1  mov rbp,rsp
;;      4  push rbx
;;      6  sub rsp,8
;;      a  mov r11,[r15+8]
;;     11  cmp rsp,[r11]
;;     18  jb near 0FCh
;;     1e  mov ebx,esi
;;     20  mov rax,[r15+10h]
;;     24  mov rcx,[r15+30h]
;;     28  mov rcx,[rcx+8]
;;     2c  mov rdx,rdi                          @0x46
;;     2f  add rdx,8                            @0x46
;;     33  jb near 0FEh                         @0x46
;;     39  cmp rcx,rdx                          @0x46
;;     3c  jb near 107h                         @0x46
;;     42  cmovb rdx,rcx                        @0x46
;;     46  mov qword [rax+rdx-8],7              @0x46
;;     4f  add rdi,10h                          @0x4b
;;     53  jb near 110h                         @0x4b
;;     59  cmp rcx,rdi                          @0x4b
;;     5c  jb near 119h                         @0x4b
;;     62  cmovb rdi,rcx                        @0x4b
;;     66  mov rdi,[rax+rdi-8]                  @0x4b
;;     6b  xor eax,eax                          @0x50
;;     6d  mov rcx,[r15+38h]                    @0x50
;;     71  cmp rbx,5                            @0x50
;;     75  jae near 122h                        @0x50
;;     7b  mov rdx,rbx                          @0x50
;;     7e  cmovae rdx,rax                       @0x50
;;     82  shl rdx,5                            @0x50
;;     86  add rdx,[rcx]                        @0x50
;;     89  cmp dword [rdx+8],0                  @0x50
;;     90  jne near 124h                        @0x50
;;     96  mov r11,rdx                          @0x50
;;     99  call qword [r11]                     @0x50
;;     a0  xor ecx,ecx                          @0x5f
;;     a3  cmp ebx,5                            @0x5f
;;     a6  jae short 0F2h                       @0x5f
;;     a8  cmovb ecx,ebx                        @0x5f
;;     ac  lea rax,[rel 13Ch]                   @0x5f
;;     b3  movsxd rcx,[rax+rcx*4]               @0x5f
;;     b8  add rcx,rax                          @0x5f
;;     bb  jmp rcx                              @0x5f
;;     be  mov eax,4                            @0x6a
;;     c3  add rsp,8                            @0x6a
;;     c7  pop rbx                              @0x6a
;;     c9  pop rbp                              @0x6a
;;     ca  ret                                  @0x6a
;;     cb  mov eax,3                            @0x6e
;;     d0  add rsp,8                            @0x6e
;;     d4  pop rbx                              @0x6e
;;     d6  pop rbp                              @0x6e
;;     d7  ret                                  @0x6e
;;     d8  mov eax,2                            @0x72
;;     dd  add rsp,8                            @0x72
;;     e1  pop rbx                              @0x72
;;     e3  pop rbp                              @0x72
;;     e4  ret                                  @0x72
;;     e5  mov eax,1                            @0x76
;;     ea  add rsp,8                            @0x76
;;     ee  pop rbx                              @0x76
;;     f0  pop rbp                              @0x76
;;     f1  ret                                  @0x76
;;     f2  xor eax,eax                          @0x7a
;;     f4  add rsp,8                            @0x7a
;;     f8  pop rbx                              @0x7a
;;     fa  pop rbp                              @0x7a
;;     fb  ret                                  @0x7a
;;     fc  ud2                                  @0x42
;;     fe  mov rax,[r15]                        @0x46
;;    101  mov [rax+30h],rdx                    @0x46
;;    105  ud2                                  @0x46
;;    107  mov rax,[r15]                        @0x46
;;    10a  mov [rax+30h],rdx                    @0x46
;;    10e  ud2                                  @0x46
;;    110  mov rax,[r15]                        @0x4b
;;    113  mov [rax+30h],rdi                    @0x4b
;;    117  ud2                                  @0x4b
;;    119  mov rax,[r15]                        @0x4b
;;    11c  mov [rax+30h],rdi                    @0x4b
;;    120  ud2                                  @0x4b
;;    122  ud2                                  @0x50
;;    124  cmp dword [rdx+8],0FFFFFFFFh         @0x50
;;    128  jne near 130h                        @0x50
;;    12e  ud2                                  @0x50
;;    130  mov rax,[r15]                        @0x50
;;    133  mov [rax+30h],rdx                    @0x50
;;    137  ud2                                  @0x50
;;    139  int3
;;    13a  int3
;;    13b  int3
;;    13c  mov dh,0FFh
;;    13e  (bad)
;;    140  test eax,9CFFFFFFh
;;    145  (bad)
;;    147  dec dword [rdi-7D000001h]
;;    14d  (bad)
;;    14f  (bad)
