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
;;     18  jb near 0E5h
;;     1e  mov ebx,esi
;;     20  mov rax,[r15+10h]
;;     24  mov rcx,[r15+30h]
;;     28  mov rcx,[rcx+8]
;;     2c  mov rdx,rdi                          @0x46
;;     2f  add rdx,8                            @0x46
;;     33  jb near 0E7h                         @0x46
;;     39  cmp rcx,rdx                          @0x46
;;     3c  jb near 0F0h                         @0x46
;;     42  mov qword [rax+rdx-8],7              @0x46
;;     4b  add rdi,10h                          @0x4b
;;     4f  jb near 0F9h                         @0x4b
;;     55  cmp rcx,rdi                          @0x4b
;;     58  jb near 102h                         @0x4b
;;     5e  mov rdi,[rax+rdi-8]                  @0x4b
;;     63  mov rax,[r15+38h]                    @0x50
;;     67  cmp rbx,5                            @0x50
;;     6b  jae near 10Bh                        @0x50
;;     71  mov r11,rbx                          @0x50
;;     74  shl r11,5                            @0x50
;;     78  add r11,[rax]                        @0x50
;;     7b  cmp dword [r11+8],0                  @0x50
;;     83  jne near 10Dh                        @0x50
;;     89  call qword [r11]                     @0x50
;;     90  cmp ebx,5                            @0x5f
;;     93  jae short 0DBh                       @0x5f
;;     95  lea rax,[rel 124h]                   @0x5f
;;     9c  movsxd rcx,[rax+rbx*4]               @0x5f
;;     a1  add rcx,rax                          @0x5f
;;     a4  jmp rcx                              @0x5f
;;     a7  mov eax,4                            @0x6a
;;     ac  add rsp,8                            @0x6a
;;     b0  pop rbx                              @0x6a
;;     b2  pop rbp                              @0x6a
;;     b3  ret                                  @0x6a
;;     b4  mov eax,3                            @0x6e
;;     b9  add rsp,8                            @0x6e
;;     bd  pop rbx                              @0x6e
;;     bf  pop rbp                              @0x6e
;;     c0  ret                                  @0x6e
;;     c1  mov eax,2                            @0x72
;;     c6  add rsp,8                            @0x72
;;     ca  pop rbx                              @0x72
;;     cc  pop rbp                              @0x72
;;     cd  ret                                  @0x72
;;     ce  mov eax,1                            @0x76
;;     d3  add rsp,8                            @0x76
;;     d7  pop rbx                              @0x76
;;     d9  pop rbp                              @0x76
;;     da  ret                                  @0x76
;;     db  xor eax,eax                          @0x7a
;;     dd  add rsp,8                            @0x7a
;;     e1  pop rbx                              @0x7a
;;     e3  pop rbp                              @0x7a
;;     e4  ret                                  @0x7a
;;     e5  ud2                                  @0x42
;;     e7  mov rax,[r15]                        @0x46
;;     ea  mov [rax+30h],rdx                    @0x46
;;     ee  ud2                                  @0x46
;;     f0  mov rax,[r15]                        @0x46
;;     f3  mov [rax+30h],rdx                    @0x46
;;     f7  ud2                                  @0x46
;;     f9  mov rax,[r15]                        @0x4b
;;     fc  mov [rax+30h],rdi                    @0x4b
;;    100  ud2                                  @0x4b
;;    102  mov rax,[r15]                        @0x4b
;;    105  mov [rax+30h],rdi                    @0x4b
;;    109  ud2                                  @0x4b
;;    10b  ud2                                  @0x50
;;    10d  cmp dword [r11+8],0FFFFFFFFh         @0x50
;;    112  jne near 11Ah                        @0x50
;;    118  ud2                                  @0x50
;;    11a  mov rax,[r15]                        @0x50
;;    11d  mov [rax+30h],r11                    @0x50
;;    121  ud2                                  @0x50
;;    123  int3
;;    124  mov bh,0FFh
;;    126  (bad)
;;    128  stosb
;;    129  (bad)
;;    12b  call dword far [rbp-6F000001h]
;;    131  (bad)
;;    133  (bad)
