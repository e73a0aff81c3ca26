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
;;     16  jb near 10Dh
;;     1c  mov ebx,esi
;;     1e  mov rax,[r15+10h]
;;     22  mov rcx,[r15+30h]
;;     26  mov rcx,[rcx+8]
;;     2a  mov rdx,rdi                          @0x46
;;     2d  add rdx,8                            @0x46
;;     31  jb near 10Fh                         @0x46
;;     37  cmovb rdx,rcx                        @0x46
;;     3b  cmp rcx,rdx                          @0x46
;;     3e  jb near 118h                         @0x46
;;     44  cmovb rdx,rcx                        @0x46
;;     48  mov qword [rax+rdx-8],7              @0x46
;;     51  add rdi,10h                          @0x4b
;;     55  jb near 121h                         @0x4b
;;     5b  cmovb rdi,rcx                        @0x4b
;;     5f  cmp rcx,rdi                          @0x4b
;;     62  jb near 12Ah                         @0x4b
;;     68  cmovb rdi,rcx                        @0x4b
;;     6c  mov rdi,[rax+rdi-8]                  @0x4b
;;     71  xor eax,eax                          @0x50
;;     73  mov rcx,[r15+38h]                    @0x50
;;     77  cmp rbx,[rcx+8]                      @0x50
;;     7b  jae near 133h                        @0x50
;;     81  mov rdx,rbx                          @0x50
;;     84  cmovae rdx,rax                       @0x50
;;     88  shl rdx,5                            @0x50
;;     8c  add rdx,[rcx]                        @0x50
;;     8f  cmp dword [rdx+8],0                  @0x50
;;     96  jne near 135h                        @0x50
;;     9c  mov r11,rdx                          @0x50
;;     9f  mov r15,[r11+10h]                    @0x50
;;     a6  call qword [r11]                     @0x50
;;     ad  mov r15,[rbp-10h]                    @0x50
;;     b1  xor ecx,ecx                          @0x5f
;;     b4  cmp ebx,5                            @0x5f
;;     b7  jae short 103h                       @0x5f
;;     b9  cmovb ecx,ebx                        @0x5f
;;     bd  lea rax,[rel 14Ch]                   @0x5f
;;     c4  movsxd rcx,[rax+rcx*4]               @0x5f
;;     c9  add rcx,rax                          @0x5f
;;     cc  jmp rcx                              @0x5f
;;     cf  mov eax,4                            @0x6a
;;     d4  add rsp,8                            @0x6a
;;     d8  pop rbx                              @0x6a
;;     da  pop rbp                              @0x6a
;;     db  ret                                  @0x6a
;;     dc  mov eax,3                            @0x6e
;;     e1  add rsp,8                            @0x6e
;;     e5  pop rbx                              @0x6e
;;     e7  pop rbp                              @0x6e
;;     e8  ret                                  @0x6e
;;     e9  mov eax,2                            @0x72
;;     ee  add rsp,8                            @0x72
;;     f2  pop rbx                              @0x72
;;     f4  pop rbp                              @0x72
;;     f5  ret                                  @0x72
;;     f6  mov eax,1                            @0x76
;;     fb  add rsp,8                            @0x76
;;     ff  pop rbx                              @0x76
;;    101  pop rbp                              @0x76
;;    102  ret                                  @0x76
;;    103  xor eax,eax                          @0x7a
;;    105  add rsp,8                            @0x7a
;;    109  pop rbx                              @0x7a
;;    10b  pop rbp                              @0x7a
;;    10c  ret                                  @0x7a
;;    10d  ud2                                  @0x42
;;    10f  mov rax,[r15]                        @0x46
;;    112  mov [rax+30h],rdx                    @0x46
;;    116  ud2                                  @0x46
;;    118  mov rax,[r15]                        @0x46
;;    11b  mov [rax+30h],rdx                    @0x46
;;    11f  ud2                                  @0x46
;;    121  mov rax,[r15]                        @0x4b
;;    124  mov [rax+30h],rdi                    @0x4b
;;    128  ud2                                  @0x4b
;;    12a  mov rax,[r15]                        @0x4b
;;    12d  mov [rax+30h],rdi                    @0x4b
;;    131  ud2                                  @0x4b
;;    133  ud2                                  @0x50
;;    135  cmp dword [rdx+8],0FFFFFFFFh         @0x50
;;    139  jne near 141h                        @0x50
;;    13f  ud2                                  @0x50
;;    141  mov rax,[r15]                        @0x50
;;    144  mov [rax+30h],rdx                    @0x50
;;    148  ud2                                  @0x50
;;    14a  int3
;;    14b  int3
;;    14c  mov bh,0FFh
;;    14e  (bad)
;;    150  stosb
;;    151  (bad)
;;    153  call dword far [rbp-6F000001h]
;;    159  (bad)
;;    15b  (bad)
