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
;;     13  jb near 196h
;;     19  mov [rbp-8],r10
;;     1d  mov [rbp-10h],r10
;;     21  mov [rbp-18h],rbx
;;     25  mov [rbp-20h],r15
;;     29  mov [rbp-28h],r14
;;     2d  lea rbx,[r10+80h]
;;     34  add r10,40h
;;     38  mov rax,[r11+10h]
;;     3c  cmp rax,r10
;;     3f  jb near 196h
;;     45  mov [r11+8],r10
;;     49  mov r14,[r15+10h]
;;     4d  mov rax,[r15+30h]
;;     51  mov r11d,8
;;     57  add r11,rdi
;;     5a  jb near 15Bh
;;     60  cmp r11,[rax+8]
;;     64  ja near 164h
;;     6a  cmova r11,[rax+8]
;;     6f  mov rax,[rax]
;;     72  mov qword [rax+r11-8],7
;;     7b  mov rax,[r15+30h]
;;     7f  mov r11d,10h
;;     85  add r11,rdi
;;     88  jb near 16Dh
;;     8e  cmp r11,[rax+8]
;;     92  ja near 176h
;;     98  cmova r11,[rax+8]
;;     9d  mov rax,[rax]
;;     a0  mov rcx,[rax+r11-8]
;;     a5  mov esi,esi
;;     a7  mov rax,rsi
;;     aa  mov rdx,[r15+38h]
;;     ae  cmp rax,[rdx+8]
;;     b2  jae near 17Fh
;;     b8  mov r11d,0
;;     be  cmovae rax,r11
;;     c2  shl rax,5
;;     c6  add rax,[rdx]
;;     c9  cmp dword [rax+8],0
;;     d0  jne near 181h
;;     d6  mov [rbx-80h],rdi
;;     da  mov [rbx-78h],esi
;;     dd  mov r11,rax
;;     e0  mov rdi,rcx
;;     e3  call qword [r11]
;;     e6  mov [rbx-50h],rax
;;     ea  mov ecx,[rbx-78h]
;;     ed  mov rdx,rcx
;;     f0  cmp edx,5
;;     f3  jae near 13Bh
;;     f9  mov r11d,0
;;     ff  cmovae rdx,r11
;;    103  lea r11,[rel 198h]
;;    10a  movsxd rdx,[r11+rdx*4]
;;    10e  add rdx,r11
;;    111  jmp rdx
;;    113  mov eax,4
;;    118  jmp 145h
;;    11d  mov eax,3
;;    122  jmp 145h
;;    127  mov eax,2
;;    12c  jmp 145h
;;    131  mov eax,1
;;    136  jmp 145h
;;    13b  mov eax,0
;;    140  jmp 145h
;;    145  mov r11,[r15+8]
;;    149  mov rbx,[rbp-10h]
;;    14d  mov [r11+8],rbx
;;    151  mov rbx,[rbp-18h]
;;    155  mov r14,[rbp-28h]
;;    159  leave
;;    15a  ret
;;    15b  mov rax,[r15]
;;    15e  mov [rax+30h],r11
;;    162  ud2
;;    164  mov rax,[r15]
;;    167  mov [rax+30h],r11
;;    16b  ud2
;;    16d  mov rax,[r15]
;;    170  mov [rax+30h],r11
;;    174  ud2
;;    176  mov rax,[r15]
;;    179  mov [rax+30h],r11
;;    17d  ud2
;;    17f  ud2
;;    181  cmp dword [rax+8],0FFFFFFFFh
;;    185  jne near 18Dh
;;    18b  ud2
;;    18d  mov r11,[r15]
;;    190  mov [r11+30h],rax
;;    194  ud2
;;    196  ud2
;;    198  mov [qword 8FFFFFFF99FFFFFFh],eax
;;    1a1  (bad)
;;    1a3  inc dword [rbp+7BFFFFFFh]
;;    1a9  (bad)
;;    1ab  (bad)
;; reloc cc type0
;; trap 162 Trap(MemoryOutOfBounds) @0x46
;; trap 16b Trap(MemoryOutOfBounds) @0x46
;; trap 174 Trap(MemoryOutOfBounds) @0x4b
;; trap 17d Trap(MemoryOutOfBounds) @0x4b
;; trap 17f Trap(TableOutOfBounds) @0x50
;; trap 18b Trap(IndirectCallToNull) @0x50
;; trap 194 Trap(BadSignature) @0x50
;; trap 196 Trap(StackOverflow) @0x42
;; call e6 @0x50
