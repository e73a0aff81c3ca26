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
;;      4  sub rsp,10h
;;      8  mov r11,[r15+8]
;;      f  cmp rsp,[r11]
;;     16  jb near 0F8h
;;     1c  mov eax,esi
;;     1e  mov rcx,[r15+10h]
;;     22  mov rdx,[r15+30h]
;;     26  mov rdx,[rdx+8]
;;     2a  mov rsi,rdi                          @0x46
;;     2d  add rsi,8                            @0x46
;;     31  jb near 0FAh                         @0x46
;;     37  cmp rdx,rsi                          @0x46
;;     3a  jb near 103h                         @0x46
;;     40  mov qword [rcx+rsi-8],7              @0x46
;;     49  add rdi,10h                          @0x4b
;;     4d  jb near 10Ch                         @0x4b
;;     53  cmp rdx,rdi                          @0x4b
;;     56  jb near 115h                         @0x4b
;;     5c  mov rdi,[rcx+rdi-8]                  @0x4b
;;     61  mov rcx,[r15+38h]                    @0x50
;;     65  cmp rax,5                            @0x50
;;     69  jae near 11Eh                        @0x50
;;     6f  mov rdx,rax                          @0x50
;;     72  shl rdx,5                            @0x50
;;     76  add rdx,[rcx]                        @0x50
;;     79  lea rcx,[rel 80h]                    @0x50
;;     80  xor rcx,[rdx]                        @0x50
;;     83  jne near 0C0h                        @0x50
;;     89  cmp eax,5                            @0x5f
;;     8c  jae short 0BCh                       @0x5f
;;     8e  lea rcx,[rel 138h]                   @0x5f
;;     95  movsxd rdx,[rcx+rax*4]               @0x5f
;;     9a  add rdx,rcx                          @0x5f
;;     9d  jmp rdx                              @0x5f
;;     a0  mov eax,4                            @0x6a
;;     a5  leave                                @0x6a
;;     a6  ret                                  @0x6a
;;     a7  mov eax,3                            @0x6e
;;     ac  leave                                @0x6e
;;     ad  ret                                  @0x6e
;;     ae  mov eax,2                            @0x72
;;     b3  leave                                @0x72
;;     b4  ret                                  @0x72
;;     b5  mov eax,1                            @0x76
;;     ba  leave                                @0x76
;;     bb  ret                                  @0x76
;;     bc  xor eax,eax                          @0x7a
;;     be  leave                                @0x7a
;;     bf  ret                                  @0x7a
;;     c0  mov rcx,[r15+38h]                    @0x50
;;     c4  cmp rax,5                            @0x50
;;     c8  jae near 120h                        @0x50
;;     ce  mov rdx,rax                          @0x50
;;     d1  mov rax,rdx                          @0x50
;;     d4  shl rax,5                            @0x50
;;     d8  mov [rbp-8],rdx                      @0x50
;;     dc  add rax,[rcx]                        @0x50
;;     df  cmp dword [rax+8],0                  @0x50
;;     e6  jne near 122h                        @0x50
;;     ec  mov r11,[rax]                        @0x50
;;     ef  call qword [r11]                     @0x50
;;     f2  mov rax,[rbp-8]                      @0x50
;;     f6  jmp short 89h                        @0x50
;;     f8  ud2                                  @0x42
;;     fa  mov rax,[r15]                        @0x46
;;     fd  mov [rax+30h],rsi                    @0x46
;;    101  ud2                                  @0x46
;;    103  mov rax,[r15]                        @0x46
;;    106  mov [rax+30h],rsi                    @0x46
;;    10a  ud2                                  @0x46
;;    10c  mov rax,[r15]                        @0x4b
;;    10f  mov [rax+30h],rdi                    @0x4b
;;    113  ud2                                  @0x4b
;;    115  mov rax,[r15]                        @0x4b
;;    118  mov [rax+30h],rdi                    @0x4b
;;    11c  ud2                                  @0x4b
;;    11e  ud2                                  @0x50
;;    120  ud2                                  @0x50
;;    122  cmp dword [rax+8],0FFFFFFFFh         @0x50
;;    126  jne near 12Eh                        @0x50
;;    12c  ud2                                  @0x50
;;    12e  mov rcx,[r15]                        @0x50
;;    131  mov [rcx+30h],rax                    @0x50
;;    135  ud2                                  @0x50
;;    137  int3
;;    138  test bh,bh
;;    13a  (bad)
;;    13c  jge short 13Dh
;;    13e  (bad)
;;    140  jbe short 141h
;;    142  (bad)
;;    144  outsd
;;    145  (bad)
;;    147  jmp dword far [rax-1]
;;    14a  (bad)
