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
;;     13  jb near 19Eh
;;     19  mov [rbp-8],r10
;;     1d  mov [rbp-10h],r10
;;     21  mov [rbp-18h],rbx
;;     25  mov [rbp-20h],r15
;;     29  mov [rbp-28h],r14
;;     2d  lea rbx,[r10+80h]
;;     34  add r10,40h
;;     38  mov rax,[r11+10h]
;;     3c  cmp rax,r10
;;     3f  jb near 19Eh
;;     45  mov [r11+8],r10
;;     49  mov r14,[r15+10h]
;;     4d  mov rax,[r15+30h]
;;     51  mov r11d,8
;;     57  add r11,rdi
;;     5a  jb near 163h
;;     60  cmp r11,[rax+8]
;;     64  ja near 16Ch
;;     6a  cmova r11,[rax+8]
;;     6f  mov rax,[rax]
;;     72  mov qword [rax+r11-8],7
;;     7b  mov rax,[r15+30h]
;;     7f  mov r11d,10h
;;     85  add r11,rdi
;;     88  jb near 175h
;;     8e  cmp r11,[rax+8]
;;     92  ja near 17Eh
;;     98  cmova r11,[rax+8]
;;     9d  mov rax,[rax]
;;     a0  mov rcx,[rax+r11-8]
;;     a5  mov esi,esi
;;     a7  mov rax,rsi
;;     aa  mov rdx,[r15+38h]
;;     ae  cmp rax,[rdx+8]
;;     b2  jae near 187h
;;     b8  mov r11d,0
;;     be  cmovae rax,r11
;;     c2  shl rax,5
;;     c6  add rax,[rdx]
;;     c9  cmp dword [rax+8],0
;;     d0  jne near 189h
;;     d6  mov [rbx-80h],rdi
;;     da  mov [rbx-78h],esi
;;     dd  mov r11,rax
;;     e0  mov rdi,rcx
;;     e3  mov r15,[r11+10h]
;;     e7  call qword [r11]
;;     ea  mov r15,[rbp-20h]
;;     ee  mov [rbx-50h],rax
;;     f2  mov ecx,[rbx-78h]
;;     f5  mov rdx,rcx
;;     f8  cmp edx,5
;;     fb  jae near 143h
;;    101  mov r11d,0
;;    107  cmovae rdx,r11
;;    10b  lea r11,[rel 1A0h]
;;    112  movsxd rdx,[r11+rdx*4]
;;    116  add rdx,r11
;;    119  jmp rdx
;;    11b  mov eax,4
;;    120  jmp 14Dh
;;    125  mov eax,3
;;    12a  jmp 14Dh
;;    12f  mov eax,2
;;    134  jmp 14Dh
;;    139  mov eax,1
;;    13e  jmp 14Dh
;;    143  mov eax,0
;;    148  jmp 14Dh
;;    14d  mov r11,[r15+8]
;;    151  mov rbx,[rbp-10h]
;;    155  mov [r11+8],rbx
;;    159  mov rbx,[rbp-18h]
;;    15d  mov r14,[rbp-28h]
;;    161  leave
;;    162  ret
;;    163  mov rax,[r15]
;;    166  mov [rax+30h],r11
;;    16a  ud2
;;    16c  mov rax,[r15]
;;    16f  mov [rax+30h],r11
;;    173  ud2
;;    175  mov rax,[r15]
;;    178  mov [rax+30h],r11
;;    17c  ud2
;;    17e  mov rax,[r15]
;;    181  mov [rax+30h],r11
;;    185  ud2
;;    187  ud2
;;    189  cmp dword [rax+8],0FFFFFFFFh
;;    18d  jne near 195h
;;    193  ud2
;;    195  mov r11,[r15]
;;    198  mov [r11+30h],rax
;;    19c  ud2
;;    19e  ud2
;;    1a0  mov [qword 8FFFFFFF99FFFFFFh],eax
;;    1a9  (bad)
;;    1ab  inc dword [rbp+7BFFFFFFh]
;;    1b1  (bad)
;;    1b3  (bad)
;; reloc cc type0
;; trap 16a Trap(MemoryOutOfBounds) @0x46
;; trap 173 Trap(MemoryOutOfBounds) @0x46
;; trap 17c Trap(MemoryOutOfBounds) @0x4b
;; trap 185 Trap(MemoryOutOfBounds) @0x4b
;; trap 187 Trap(TableOutOfBounds) @0x50
;; trap 193 Trap(IndirectCallToNull) @0x50
;; trap 19c Trap(BadSignature) @0x50
;; trap 19e Trap(StackOverflow) @0x42
;; call ea @0x50
