;;; Every arm ends with a copy of the dispatch; the copies share one table.
;; test: asm
;; run: f(0) -> 310
(module
  (memory 1)
  (data (i32.const 0) "\00\01\02\03\04\00\05")
  (data (i32.const 256) "\1f")
  (func (export "f") (param $pc i32) (result i32) (local $sum i32)
    (loop $next
      (block $halt (block $latch (block $d (block $c (block $b (block $a
        (br_table $a $b $c $d $latch $halt (i32.load8_u (local.get $pc))))
        (local.set $sum (i32.add (local.get $sum) (i32.load offset=256 (local.get $pc)))) (br $latch))
        (local.set $sum (i32.mul (local.get $sum) (i32.const 10))) (br $latch))
        (local.set $sum (i32.xor (local.get $sum) (i32.load offset=512 (local.get $sum)))) (br $latch))
        (i32.store offset=1024 (local.get $sum) (local.get $pc)))
        (local.set $pc (i32.add (local.get $pc) (i32.const 1)))
        (br $next)))
    (local.get $sum)))
;; expect
;;      0  push rbp
;;      1  mov rbp,rsp
;;      4  mov eax,edi
;;      6  mov rcx,[r15+10h]
;;      a  xor edx,edx                          @0x27
;;      c  jmp short 11h                        @0x27
;;      e  add eax,1                            @0x76
;;     11  movzx esi,byte [rcx+rax]             @0x37
;;     15  cmp esi,5                            @0x3a
;;     18  jae near 129h                        @0x3a
;;     1e  lea rdi,[rel 130h]                   @0x3a
;;     25  movsxd r8,[rdi+rsi*4]                @0x3a
;;     2a  add r8,rdi                           @0x3a
;;     2d  jmp r8                               @0x3a
;;     30  nop word [rax+rax]                   @0x3a
;;     39  nop dword [rax]                      @0x3a
;;     40  mov [rcx+rdx+400h],eax               @0x6d
;;     47  add eax,1                            @0x76
;;     4a  movzx esi,byte [rcx+rax]             @0x37
;;     4e  cmp esi,5                            @0x3a
;;     51  jae near 129h                        @0x3a
;;     57  lea rdi,[rel 130h]                   @0x3a
;;     5e  movsxd r8,[rdi+rsi*4]                @0x3a
;;     63  add r8,rdi                           @0x3a
;;     66  jmp r8                               @0x3a
;;     69  nop word [rax+rax]                   @0x3a
;;     72  nop word [rax+rax]                   @0x3a
;;     7b  nop dword [rax+rax]                  @0x3a
;;     80  xor edx,[rcx+rdx+200h]               @0x63
;;     87  add eax,1                            @0x76
;;     8a  movzx esi,byte [rcx+rax]             @0x37
;;     8e  cmp esi,5                            @0x3a
;;     91  jae near 129h                        @0x3a
;;     97  lea rdi,[rel 130h]                   @0x3a
;;     9e  movsxd r8,[rdi+rsi*4]                @0x3a
;;     a3  add r8,rdi                           @0x3a
;;     a6  jmp r8                               @0x3a
;;     a9  nop word [rax+rax]                   @0x3a
;;     b2  nop word [rax+rax]                   @0x3a
;;     bb  nop dword [rax+rax]                  @0x3a
;;     c0  imul edx,0Ah                         @0x55
;;     c3  add eax,1                            @0x76
;;     c6  movzx esi,byte [rcx+rax]             @0x37
;;     ca  cmp esi,5                            @0x3a
;;     cd  jae near 129h                        @0x3a
;;     d3  lea rdi,[rel 130h]                   @0x3a
;;     da  movsxd r8,[rdi+rsi*4]                @0x3a
;;     df  add r8,rdi                           @0x3a
;;     e2  jmp r8                               @0x3a
;;     e5  nop word [rax+rax]                   @0x3a
;;     ee  nop word [rax+rax]                   @0x3a
;;     f7  nop word [rax+rax]                   @0x3a
;;    100  add edx,[rcx+rax+100h]               @0x4b
;;    107  add eax,1                            @0x76
;;    10a  movzx esi,byte [rcx+rax]             @0x37
;;    10e  cmp esi,5                            @0x3a
;;    111  jae near 129h                        @0x3a
;;    117  lea rdi,[rel 130h]                   @0x3a
;;    11e  movsxd r8,[rdi+rsi*4]                @0x3a
;;    123  add r8,rdi                           @0x3a
;;    126  jmp r8                               @0x3a
;;    129  mov rax,rdx                          @0x7f
;;    12c  pop rbp                              @0x7f
;;    12d  ret                                  @0x7f
;;    12e  int3
;;    12f  int3
;;    130  sar bh,1
;;    132  (bad)
;;    134  nop
;;    135  (bad)
;;    137  call qword [rax-1]
;;    13a  (bad)
;;    13c  adc bh,bh
;;    13e  (bad)
;;    140  fdivp st6
;;    142  (bad)
