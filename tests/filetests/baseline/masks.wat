;;; After each check of an address or an index it is replaced, without a branch, if the check has failed.
;; test: baseline
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
;;      4  sub rsp,30h
;;      8  mov r11,[r15+8]
;;      c  mov r10,[r11+8]
;;     10  cmp rsp,[r11]
;;     13  jb near 199h
;;     19  mov [rbp-8],r10
;;     1d  mov [rbp-10h],r10
;;     21  mov [rbp-18h],rbx
;;     25  mov [rbp-20h],r15
;;     29  mov [rbp-28h],r14
;;     2d  lea rbx,[r10+80h]
;;     34  add r10,40h
;;     38  mov rax,[r11+10h]
;;     3c  cmp rax,r10
;;     3f  jb near 199h
;;     45  mov [r11+8],r10
;;     49  mov r14,[r15+10h]
;;     4d  mov rax,[r15+30h]
;;     51  mov r11d,8
;;     57  add r11,rdi
;;     5a  jb near 15Eh
;;     60  cmp r11,[rax+8]
;;     64  ja near 167h
;;     6a  cmova r11,[rax+8]
;;     6f  mov rax,[rax]
;;     72  mov qword [rax+r11-8],7
;;     7b  mov rax,[r15+30h]
;;     7f  mov r11d,10h
;;     85  add r11,rdi
;;     88  jb near 170h
;;     8e  cmp r11,[rax+8]
;;     92  ja near 179h
;;     98  cmova r11,[rax+8]
;;     9d  mov rax,[rax]
;;     a0  mov rcx,[rax+r11-8]
;;     a5  mov esi,esi
;;     a7  mov rax,rsi
;;     aa  mov rdx,[r15+38h]
;;     ae  cmp rax,[rdx+8]
;;     b2  jae near 182h
;;     b8  mov r11d,0
;;     be  cmovae rax,r11
;;     c2  shl rax,5
;;     c6  add rax,[rdx]
;;     c9  cmp dword [rax+8],0
;;     d0  jne near 184h
;;     d6  mov [rbx-80h],rdi
;;     da  mov [rbx-78h],esi
;;     dd  mov r11,rax
;;     e0  mov rdi,rcx
;;     e3  mov r11,[r11]
;;     e6  call qword [r11]
;;     e9  mov [rbx-50h],rax
;;     ed  mov ecx,[rbx-78h]
;;     f0  mov rdx,rcx
;;     f3  cmp edx,5
;;     f6  jae near 13Eh
;;     fc  mov r11d,0
;;    102  cmovae rdx,r11
;;    106  lea r11,[rel 19Ch]
;;    10d  movsxd rdx,[r11+rdx*4]
;;    111  add rdx,r11
;;    114  jmp rdx
;;    116  mov eax,4
;;    11b  jmp 148h
;;    120  mov eax,3
;;    125  jmp 148h
;;    12a  mov eax,2
;;    12f  jmp 148h
;;    134  mov eax,1
;;    139  jmp 148h
;;    13e  mov eax,0
;;    143  jmp 148h
;;    148  mov r11,[r15+8]
;;    14c  mov rbx,[rbp-10h]
;;    150  mov [r11+8],rbx
;;    154  mov rbx,[rbp-18h]
;;    158  mov r14,[rbp-28h]
;;    15c  leave
;;    15d  ret
;;    15e  mov rax,[r15]
;;    161  mov [rax+30h],r11
;;    165  ud2
;;    167  mov rax,[r15]
;;    16a  mov [rax+30h],r11
;;    16e  ud2
;;    170  mov rax,[r15]
;;    173  mov [rax+30h],r11
;;    177  ud2
;;    179  mov rax,[r15]
;;    17c  mov [rax+30h],r11
;;    180  ud2
;;    182  ud2
;;    184  cmp dword [rax+8],0FFFFFFFFh
;;    188  jne near 190h
;;    18e  ud2
;;    190  mov r11,[r15]
;;    193  mov [r11+30h],rax
;;    197  ud2
;;    199  ud2
;;    19b  int3
;;    19c  mov [qword 8EFFFFFF98FFFFFFh],al
;;    1a5  (bad)
;;    1a7  inc dword [rdi+rdi*8-850001h]
;;    1ae  (bad)
;; reloc cc type0
;; trap 165 Trap(MemoryOutOfBounds) @0x46
;; trap 16e Trap(MemoryOutOfBounds) @0x46
;; trap 177 Trap(MemoryOutOfBounds) @0x4b
;; trap 180 Trap(MemoryOutOfBounds) @0x4b
;; trap 182 Trap(TableOutOfBounds) @0x50
;; trap 18e Trap(IndirectCallToNull) @0x50
;; trap 197 Trap(BadSignature) @0x50
;; trap 199 Trap(StackOverflow) @0x42
;; call e9 @0x50
