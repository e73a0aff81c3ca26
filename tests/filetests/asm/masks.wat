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
;;     18  jb near 0F8h
;;     1e  mov ebx,esi
;;     20  mov rax,[r15+10h]
;;     24  mov rcx,[r15+30h]
;;     28  mov rcx,[rcx+8]
;;     2c  mov rdx,rdi                          @0x46
;;     2f  add rdx,8                            @0x46
;;     33  jb near 0FAh                         @0x46
;;     39  cmp rcx,rdx                          @0x46
;;     3c  jb near 103h                         @0x46
;;     42  cmovb rdx,rcx                        @0x46
;;     46  mov qword [rax+rdx-8],7              @0x46
;;     4f  add rdi,10h                          @0x4b
;;     53  jb near 10Ch                         @0x4b
;;     59  cmp rcx,rdi                          @0x4b
;;     5c  jb near 115h                         @0x4b
;;     62  cmovb rdi,rcx                        @0x4b
;;     66  mov rdi,[rax+rdi-8]                  @0x4b
;;     6b  xor eax,eax                          @0x50
;;     6d  mov rcx,[r15+38h]                    @0x50
;;     71  cmp rbx,5                            @0x50
;;     75  jae near 11Eh                        @0x50
;;     7b  mov rdx,rbx                          @0x50
;;     7e  cmovae rdx,rax                       @0x50
;;     82  shl rdx,5                            @0x50
;;     86  add rdx,[rcx]                        @0x50
;;     89  cmp dword [rdx+8],0                  @0x50
;;     90  jne near 120h                        @0x50
;;     96  mov r11,[rdx]                        @0x50
;;     99  call qword [r11]                     @0x50
;;     9c  xor ecx,ecx                          @0x5f
;;     9f  cmp ebx,5                            @0x5f
;;     a2  jae short 0EEh                       @0x5f
;;     a4  cmovb ecx,ebx                        @0x5f
;;     a8  lea rax,[rel 138h]                   @0x5f
;;     af  movsxd rcx,[rax+rcx*4]               @0x5f
;;     b4  add rcx,rax                          @0x5f
;;     b7  jmp rcx                              @0x5f
;;     ba  mov eax,4                            @0x6a
;;     bf  add rsp,8                            @0x6a
;;     c3  pop rbx                              @0x6a
;;     c5  pop rbp                              @0x6a
;;     c6  ret                                  @0x6a
;;     c7  mov eax,3                            @0x6e
;;     cc  add rsp,8                            @0x6e
;;     d0  pop rbx                              @0x6e
;;     d2  pop rbp                              @0x6e
;;     d3  ret                                  @0x6e
;;     d4  mov eax,2                            @0x72
;;     d9  add rsp,8                            @0x72
;;     dd  pop rbx                              @0x72
;;     df  pop rbp                              @0x72
;;     e0  ret                                  @0x72
;;     e1  mov eax,1                            @0x76
;;     e6  add rsp,8                            @0x76
;;     ea  pop rbx                              @0x76
;;     ec  pop rbp                              @0x76
;;     ed  ret                                  @0x76
;;     ee  xor eax,eax                          @0x7a
;;     f0  add rsp,8                            @0x7a
;;     f4  pop rbx                              @0x7a
;;     f6  pop rbp                              @0x7a
;;     f7  ret                                  @0x7a
;;     f8  ud2                                  @0x42
;;     fa  mov rax,[r15]                        @0x46
;;     fd  mov [rax+30h],rdx                    @0x46
;;    101  ud2                                  @0x46
;;    103  mov rax,[r15]                        @0x46
;;    106  mov [rax+30h],rdx                    @0x46
;;    10a  ud2                                  @0x46
;;    10c  mov rax,[r15]                        @0x4b
;;    10f  mov [rax+30h],rdi                    @0x4b
;;    113  ud2                                  @0x4b
;;    115  mov rax,[r15]                        @0x4b
;;    118  mov [rax+30h],rdi                    @0x4b
;;    11c  ud2                                  @0x4b
;;    11e  ud2                                  @0x50
;;    120  cmp dword [rdx+8],0FFFFFFFFh         @0x50
;;    124  jne near 12Ch                        @0x50
;;    12a  ud2                                  @0x50
;;    12c  mov rax,[r15]                        @0x50
;;    12f  mov [rax+30h],rdx                    @0x50
;;    133  ud2                                  @0x50
;;    135  int3
;;    136  int3
;;    137  int3
;;    138  mov dh,0FFh
;;    13a  (bad)
;;    13c  test eax,9CFFFFFFh
;;    141  (bad)
;;    143  dec dword [rdi-7D000001h]
;;    149  (bad)
;;    14b  (bad)
