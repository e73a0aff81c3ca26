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
;;     15  xor r8d,r8d                          @0x3a
;;     18  cmp esi,5                            @0x3a
;;     1b  jae near 130h                        @0x3a
;;     21  cmovb r8d,esi                        @0x3a
;;     25  lea rdi,[rel 138h]                   @0x3a
;;     2c  movsxd r8,[rdi+r8*4]                 @0x3a
;;     31  add r8,rdi                           @0x3a
;;     34  jmp r8                               @0x3a
;;     37  nop word [rax+rax]                   @0x3a
;;     40  mov [rcx+rdx+400h],eax               @0x6d
;;     47  add eax,1                            @0x76
;;     4a  movzx esi,byte [rcx+rax]             @0x37
;;     4e  xor r8d,r8d                          @0x3a
;;     51  cmp esi,5                            @0x3a
;;     54  jae near 130h                        @0x3a
;;     5a  cmovb r8d,esi                        @0x3a
;;     5e  lea rdi,[rel 138h]                   @0x3a
;;     65  movsxd r8,[rdi+r8*4]                 @0x3a
;;     6a  add r8,rdi                           @0x3a
;;     6d  jmp r8                               @0x3a
;;     70  nop word [rax+rax]                   @0x3a
;;     79  nop dword [rax]                      @0x3a
;;     80  xor edx,[rcx+rdx+200h]               @0x63
;;     87  add eax,1                            @0x76
;;     8a  movzx esi,byte [rcx+rax]             @0x37
;;     8e  xor r8d,r8d                          @0x3a
;;     91  cmp esi,5                            @0x3a
;;     94  jae near 130h                        @0x3a
;;     9a  cmovb r8d,esi                        @0x3a
;;     9e  lea rdi,[rel 138h]                   @0x3a
;;     a5  movsxd r8,[rdi+r8*4]                 @0x3a
;;     aa  add r8,rdi                           @0x3a
;;     ad  jmp r8                               @0x3a
;;     b0  nop word [rax+rax]                   @0x3a
;;     b9  nop dword [rax]                      @0x3a
;;     c0  imul edx,0Ah                         @0x55
;;     c3  add eax,1                            @0x76
;;     c6  movzx esi,byte [rcx+rax]             @0x37
;;     ca  xor r8d,r8d                          @0x3a
;;     cd  cmp esi,5                            @0x3a
;;     d0  jae near 130h                        @0x3a
;;     d6  cmovb r8d,esi                        @0x3a
;;     da  lea rdi,[rel 138h]                   @0x3a
;;     e1  movsxd r8,[rdi+r8*4]                 @0x3a
;;     e6  add r8,rdi                           @0x3a
;;     e9  jmp r8                               @0x3a
;;     ec  nop word [rax+rax]                   @0x3a
;;     f5  nop word [rax+rax]                   @0x3a
;;     fe  xchg ax,ax                           @0x3a
;;    100  add edx,[rcx+rax+100h]               @0x4b
;;    107  add eax,1                            @0x76
;;    10a  movzx esi,byte [rcx+rax]             @0x37
;;    10e  xor r8d,r8d                          @0x3a
;;    111  cmp esi,5                            @0x3a
;;    114  jae near 130h                        @0x3a
;;    11a  cmovb r8d,esi                        @0x3a
;;    11e  lea rdi,[rel 138h]                   @0x3a
;;    125  movsxd r8,[rdi+r8*4]                 @0x3a
;;    12a  add r8,rdi                           @0x3a
;;    12d  jmp r8                               @0x3a
;;    130  mov rax,rdx                          @0x7f
;;    133  pop rbp                              @0x7f
;;    134  ret                                  @0x7f
;;    135  int3
;;    136  int3
;;    137  int3
;;    138  enter 0FFFFh,0FFh
;;    13c  mov bh,bh
;;    13e  (bad)
;;    140  (bad)
;;    143  dec dword [rax]
;;    145  (bad)
;;    147  call rsi
;;    149  (bad)
;;    14b  (bad)
