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
;;      6  push r15
;;      8  mov r11,[r15+8]
;;      f  cmp rsp,[r11]
;;     16  jb near 0EEh
;;     1c  mov ebx,esi
;;     1e  mov rax,[r15+10h]
;;     22  mov rcx,[r15+30h]
;;     26  mov rcx,[rcx+8]
;;     2a  mov rdx,rdi                          @0x46
;;     2d  add rdx,8                            @0x46
;;     31  jb near 0F0h                         @0x46
;;     37  cmp rcx,rdx                          @0x46
;;     3a  jb near 0F9h                         @0x46
;;     40  mov qword [rax+rdx-8],7              @0x46
;;     49  add rdi,10h                          @0x4b
;;     4d  jb near 102h                         @0x4b
;;     53  cmp rcx,rdi                          @0x4b
;;     56  jb near 10Bh                         @0x4b
;;     5c  mov rdi,[rax+rdi-8]                  @0x4b
;;     61  mov rax,[r15+38h]                    @0x50
;;     65  cmp rbx,[rax+8]                      @0x50
;;     69  jae near 114h                        @0x50
;;     6f  mov r11,rbx                          @0x50
;;     72  shl r11,5                            @0x50
;;     76  add r11,[rax]                        @0x50
;;     79  cmp dword [r11+8],0                  @0x50
;;     81  jne near 116h                        @0x50
;;     87  mov r15,[r11+10h]                    @0x50
;;     8e  call qword [r11]                     @0x50
;;     95  mov r15,[rbp-10h]                    @0x50
;;     99  cmp ebx,5                            @0x5f
;;     9c  jae short 0E4h                       @0x5f
;;     9e  lea rax,[rel 12Ch]                   @0x5f
;;     a5  movsxd rcx,[rax+rbx*4]               @0x5f
;;     aa  add rcx,rax                          @0x5f
;;     ad  jmp rcx                              @0x5f
;;     b0  mov eax,4                            @0x6a
;;     b5  add rsp,8                            @0x6a
;;     b9  pop rbx                              @0x6a
;;     bb  pop rbp                              @0x6a
;;     bc  ret                                  @0x6a
;;     bd  mov eax,3                            @0x6e
;;     c2  add rsp,8                            @0x6e
;;     c6  pop rbx                              @0x6e
;;     c8  pop rbp                              @0x6e
;;     c9  ret                                  @0x6e
;;     ca  mov eax,2                            @0x72
;;     cf  add rsp,8                            @0x72
;;     d3  pop rbx                              @0x72
;;     d5  pop rbp                              @0x72
;;     d6  ret                                  @0x72
;;     d7  mov eax,1                            @0x76
;;     dc  add rsp,8                            @0x76
;;     e0  pop rbx                              @0x76
;;     e2  pop rbp                              @0x76
;;     e3  ret                                  @0x76
;;     e4  xor eax,eax                          @0x7a
;;     e6  add rsp,8                            @0x7a
;;     ea  pop rbx                              @0x7a
;;     ec  pop rbp                              @0x7a
;;     ed  ret                                  @0x7a
;;     ee  ud2                                  @0x42
;;     f0  mov rax,[r15]                        @0x46
;;     f3  mov [rax+30h],rdx                    @0x46
;;     f7  ud2                                  @0x46
;;     f9  mov rax,[r15]                        @0x46
;;     fc  mov [rax+30h],rdx                    @0x46
;;    100  ud2                                  @0x46
;;    102  mov rax,[r15]                        @0x4b
;;    105  mov [rax+30h],rdi                    @0x4b
;;    109  ud2                                  @0x4b
;;    10b  mov rax,[r15]                        @0x4b
;;    10e  mov [rax+30h],rdi                    @0x4b
;;    112  ud2                                  @0x4b
;;    114  ud2                                  @0x50
;;    116  cmp dword [r11+8],0FFFFFFFFh         @0x50
;;    11b  jne near 123h                        @0x50
;;    121  ud2                                  @0x50
;;    123  mov rax,[r15]                        @0x50
;;    126  mov [rax+30h],r11                    @0x50
;;    12a  ud2                                  @0x50
;;    12c  mov eax,0ABFFFFFFh
;;    131  (bad)
;;    133  call dword far [rsi-6E000001h]
;;    139  (bad)
;;    13b  (bad)
