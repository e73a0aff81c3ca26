;;; Without masks, speculative execution may pass a failed check.
;; test: asm
;; func: 1
;; run: f(16, 2) -> 2
;; run: f(16, 9) -> trap undefined element: out of bounds table access
;; run: f(16, 4) -> trap uninitialized element
;; run: f(65528, 1) -> trap out of bounds memory access
;; run: f(-8, 1) -> trap out of bounds memory access
;; options: no-spectre-mitigation
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
;;     18  jb near 0E3h
;;     1e  mov ebx,esi
;;     20  mov rax,[r15+10h]
;;     24  mov rcx,[r15+30h]
;;     28  mov rcx,[rcx+8]
;;     2c  mov rdx,rdi                          @0x46
;;     2f  add rdx,8                            @0x46
;;     33  jb near 0E5h                         @0x46
;;     39  cmp rcx,rdx                          @0x46
;;     3c  jb near 0EEh                         @0x46
;;     42  mov qword [rax+rdx-8],7              @0x46
;;     4b  add rdi,10h                          @0x4b
;;     4f  jb near 0F7h                         @0x4b
;;     55  cmp rcx,rdi                          @0x4b
;;     58  jb near 100h                         @0x4b
;;     5e  mov rdi,[rax+rdi-8]                  @0x4b
;;     63  mov rax,[r15+38h]                    @0x50
;;     67  cmp rbx,5                            @0x50
;;     6b  jae near 109h                        @0x50
;;     71  mov rcx,rbx                          @0x50
;;     74  shl rcx,5                            @0x50
;;     78  add rcx,[rax]                        @0x50
;;     7b  cmp dword [rcx+8],0                  @0x50
;;     82  jne near 10Bh                        @0x50
;;     88  mov r11,[rcx]                        @0x50
;;     8b  call qword [r11]                     @0x50
;;     8e  cmp ebx,5                            @0x5f
;;     91  jae short 0D9h                       @0x5f
;;     93  lea rax,[rel 120h]                   @0x5f
;;     9a  movsxd rcx,[rax+rbx*4]               @0x5f
;;     9f  add rcx,rax                          @0x5f
;;     a2  jmp rcx                              @0x5f
;;     a5  mov eax,4                            @0x6a
;;     aa  add rsp,8                            @0x6a
;;     ae  pop rbx                              @0x6a
;;     b0  pop rbp                              @0x6a
;;     b1  ret                                  @0x6a
;;     b2  mov eax,3                            @0x6e
;;     b7  add rsp,8                            @0x6e
;;     bb  pop rbx                              @0x6e
;;     bd  pop rbp                              @0x6e
;;     be  ret                                  @0x6e
;;     bf  mov eax,2                            @0x72
;;     c4  add rsp,8                            @0x72
;;     c8  pop rbx                              @0x72
;;     ca  pop rbp                              @0x72
;;     cb  ret                                  @0x72
;;     cc  mov eax,1                            @0x76
;;     d1  add rsp,8                            @0x76
;;     d5  pop rbx                              @0x76
;;     d7  pop rbp                              @0x76
;;     d8  ret                                  @0x76
;;     d9  xor eax,eax                          @0x7a
;;     db  add rsp,8                            @0x7a
;;     df  pop rbx                              @0x7a
;;     e1  pop rbp                              @0x7a
;;     e2  ret                                  @0x7a
;;     e3  ud2                                  @0x42
;;     e5  mov rax,[r15]                        @0x46
;;     e8  mov [rax+30h],rdx                    @0x46
;;     ec  ud2                                  @0x46
;;     ee  mov rax,[r15]                        @0x46
;;     f1  mov [rax+30h],rdx                    @0x46
;;     f5  ud2                                  @0x46
;;     f7  mov rax,[r15]                        @0x4b
;;     fa  mov [rax+30h],rdi                    @0x4b
;;     fe  ud2                                  @0x4b
;;    100  mov rax,[r15]                        @0x4b
;;    103  mov [rax+30h],rdi                    @0x4b
;;    107  ud2                                  @0x4b
;;    109  ud2                                  @0x50
;;    10b  cmp dword [rcx+8],0FFFFFFFFh         @0x50
;;    10f  jne near 117h                        @0x50
;;    115  ud2                                  @0x50
;;    117  mov rax,[r15]                        @0x50
;;    11a  mov [rax+30h],rcx                    @0x50
;;    11e  ud2                                  @0x50
;;    120  mov ecx,0ACFFFFFFh
;;    125  (bad)
;;    127  call dword far [rdi-6D000001h]
;;    12d  (bad)
;;    12f  (bad)
