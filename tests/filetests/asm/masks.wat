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
;;      4  sub rsp,10h
;;      8  mov r11,[r15+8]
;;      f  cmp rsp,[r11]
;;     16  jb near 116h
;;     1c  mov eax,esi
;;     1e  mov rcx,[r15+10h]
;;     22  mov rdx,[r15+30h]
;;     26  mov rdx,[rdx+8]
;;     2a  mov rsi,rdi                          @0x46
;;     2d  add rsi,8                            @0x46
;;     31  jb near 118h                         @0x46
;;     37  cmp rdx,rsi                          @0x46
;;     3a  jb near 121h                         @0x46
;;     40  cmovb rsi,rdx                        @0x46
;;     44  mov qword [rcx+rsi-8],7              @0x46
;;     4d  add rdi,10h                          @0x4b
;;     51  jb near 12Ah                         @0x4b
;;     57  cmp rdx,rdi                          @0x4b
;;     5a  jb near 133h                         @0x4b
;;     60  cmovb rdi,rdx                        @0x4b
;;     64  mov rdi,[rcx+rdi-8]                  @0x4b
;;     69  xor ecx,ecx                          @0x50
;;     6b  mov rdx,[r15+38h]                    @0x50
;;     6f  cmp rax,5                            @0x50
;;     73  jae near 13Ch                        @0x50
;;     79  mov rsi,rax                          @0x50
;;     7c  cmovae rsi,rcx                       @0x50
;;     80  shl rsi,5                            @0x50
;;     84  add rsi,[rdx]                        @0x50
;;     87  lea rcx,[rel 8Eh]                    @0x50
;;     8e  xor rcx,[rsi]                        @0x50
;;     91  jne near 0D5h                        @0x50
;;     97  xor edx,edx                          @0x5f
;;     9a  cmp eax,5                            @0x5f
;;     9d  jae short 0D1h                       @0x5f
;;     9f  cmovb edx,eax                        @0x5f
;;     a3  lea rcx,[rel 158h]                   @0x5f
;;     aa  movsxd rdx,[rcx+rdx*4]               @0x5f
;;     af  add rdx,rcx                          @0x5f
;;     b2  jmp rdx                              @0x5f
;;     b5  mov eax,4                            @0x6a
;;     ba  leave                                @0x6a
;;     bb  ret                                  @0x6a
;;     bc  mov eax,3                            @0x6e
;;     c1  leave                                @0x6e
;;     c2  ret                                  @0x6e
;;     c3  mov eax,2                            @0x72
;;     c8  leave                                @0x72
;;     c9  ret                                  @0x72
;;     ca  mov eax,1                            @0x76
;;     cf  leave                                @0x76
;;     d0  ret                                  @0x76
;;     d1  xor eax,eax                          @0x7a
;;     d3  leave                                @0x7a
;;     d4  ret                                  @0x7a
;;     d5  xor ecx,ecx                          @0x50
;;     d7  mov rdx,[r15+38h]                    @0x50
;;     db  cmp rax,5                            @0x50
;;     df  jae near 13Eh                        @0x50
;;     e5  mov rsi,rax                          @0x50
;;     e8  mov rax,rsi                          @0x50
;;     eb  cmovae rax,rcx                       @0x50
;;     ef  mov [rbp-8],rsi                      @0x50
;;     f3  shl rax,5                            @0x50
;;     f7  add rax,[rdx]                        @0x50
;;     fa  cmp dword [rax+8],0                  @0x50
;;    101  jne near 140h                        @0x50
;;    107  mov r11,[rax]                        @0x50
;;    10a  call qword [r11]                     @0x50
;;    10d  mov rax,[rbp-8]                      @0x50
;;    111  jmp 97h                              @0x50
;;    116  ud2                                  @0x42
;;    118  mov rax,[r15]                        @0x46
;;    11b  mov [rax+30h],rsi                    @0x46
;;    11f  ud2                                  @0x46
;;    121  mov rax,[r15]                        @0x46
;;    124  mov [rax+30h],rsi                    @0x46
;;    128  ud2                                  @0x46
;;    12a  mov rax,[r15]                        @0x4b
;;    12d  mov [rax+30h],rdi                    @0x4b
;;    131  ud2                                  @0x4b
;;    133  mov rax,[r15]                        @0x4b
;;    136  mov [rax+30h],rdi                    @0x4b
;;    13a  ud2                                  @0x4b
;;    13c  ud2                                  @0x50
;;    13e  ud2                                  @0x50
;;    140  cmp dword [rax+8],0FFFFFFFFh         @0x50
;;    144  jne near 14Ch                        @0x50
;;    14a  ud2                                  @0x50
;;    14c  mov rcx,[r15]                        @0x50
;;    14f  mov [rcx+30h],rax                    @0x50
;;    153  ud2                                  @0x50
;;    155  int3
;;    156  int3
;;    157  int3
;;    158  jns short 159h
;;    15a  (bad)
;;    15c  jb short 15Dh
;;    15e  (bad)
;;    160  imul edi,0FFFFFFFFh
;;    163  jmp qword [rdi+rdi*8-1]
;;    167  call dword far [rbp-1]
;;    16a  (bad)
