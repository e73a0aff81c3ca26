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
;;      6  push r15
;;      8  mov r11,[r15+8]
;;      f  cmp rsp,[r11]
;;     16  jb near 105h
;;     1c  mov ebx,esi
;;     1e  mov rax,[r15+10h]
;;     22  mov rcx,[r15+30h]
;;     26  mov rcx,[rcx+8]
;;     2a  mov rdx,rdi                          @0x46
;;     2d  add rdx,8                            @0x46
;;     31  jb near 107h                         @0x46
;;     37  cmp rcx,rdx                          @0x46
;;     3a  jb near 110h                         @0x46
;;     40  cmovb rdx,rcx                        @0x46
;;     44  mov qword [rax+rdx-8],7              @0x46
;;     4d  add rdi,10h                          @0x4b
;;     51  jb near 119h                         @0x4b
;;     57  cmp rcx,rdi                          @0x4b
;;     5a  jb near 122h                         @0x4b
;;     60  cmovb rdi,rcx                        @0x4b
;;     64  mov rdi,[rax+rdi-8]                  @0x4b
;;     69  xor eax,eax                          @0x50
;;     6b  mov rcx,[r15+38h]                    @0x50
;;     6f  cmp rbx,[rcx+8]                      @0x50
;;     73  jae near 12Bh                        @0x50
;;     79  mov rdx,rbx                          @0x50
;;     7c  cmovae rdx,rax                       @0x50
;;     80  shl rdx,5                            @0x50
;;     84  add rdx,[rcx]                        @0x50
;;     87  cmp dword [rdx+8],0                  @0x50
;;     8e  jne near 12Dh                        @0x50
;;     94  mov r11,rdx                          @0x50
;;     97  mov r15,[r11+10h]                    @0x50
;;     9e  call qword [r11]                     @0x50
;;     a5  mov r15,[rbp-10h]                    @0x50
;;     a9  xor ecx,ecx                          @0x5f
;;     ac  cmp ebx,5                            @0x5f
;;     af  jae short 0FBh                       @0x5f
;;     b1  cmovb ecx,ebx                        @0x5f
;;     b5  lea rax,[rel 144h]                   @0x5f
;;     bc  movsxd rcx,[rax+rcx*4]               @0x5f
;;     c1  add rcx,rax                          @0x5f
;;     c4  jmp rcx                              @0x5f
;;     c7  mov eax,4                            @0x6a
;;     cc  add rsp,8                            @0x6a
;;     d0  pop rbx                              @0x6a
;;     d2  pop rbp                              @0x6a
;;     d3  ret                                  @0x6a
;;     d4  mov eax,3                            @0x6e
;;     d9  add rsp,8                            @0x6e
;;     dd  pop rbx                              @0x6e
;;     df  pop rbp                              @0x6e
;;     e0  ret                                  @0x6e
;;     e1  mov eax,2                            @0x72
;;     e6  add rsp,8                            @0x72
;;     ea  pop rbx                              @0x72
;;     ec  pop rbp                              @0x72
;;     ed  ret                                  @0x72
;;     ee  mov eax,1                            @0x76
;;     f3  add rsp,8                            @0x76
;;     f7  pop rbx                              @0x76
;;     f9  pop rbp                              @0x76
;;     fa  ret                                  @0x76
;;     fb  xor eax,eax                          @0x7a
;;     fd  add rsp,8                            @0x7a
;;    101  pop rbx                              @0x7a
;;    103  pop rbp                              @0x7a
;;    104  ret                                  @0x7a
;;    105  ud2                                  @0x42
;;    107  mov rax,[r15]                        @0x46
;;    10a  mov [rax+30h],rdx                    @0x46
;;    10e  ud2                                  @0x46
;;    110  mov rax,[r15]                        @0x46
;;    113  mov [rax+30h],rdx                    @0x46
;;    117  ud2                                  @0x46
;;    119  mov rax,[r15]                        @0x4b
;;    11c  mov [rax+30h],rdi                    @0x4b
;;    120  ud2                                  @0x4b
;;    122  mov rax,[r15]                        @0x4b
;;    125  mov [rax+30h],rdi                    @0x4b
;;    129  ud2                                  @0x4b
;;    12b  ud2                                  @0x50
;;    12d  cmp dword [rdx+8],0FFFFFFFFh         @0x50
;;    131  jne near 139h                        @0x50
;;    137  ud2                                  @0x50
;;    139  mov rax,[r15]                        @0x50
;;    13c  mov [rax+30h],rdx                    @0x50
;;    140  ud2                                  @0x50
;;    142  int3
;;    143  int3
;;    144  mov bh,0FFh
;;    146  (bad)
;;    148  stosb
;;    149  (bad)
;;    14b  call dword far [rbp-6F000001h]
;;    151  (bad)
;;    153  (bad)
