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
;;     13  jb near 1A8h
;;     19  mov [rbp-8],r10
;;     1d  mov [rbp-10h],r10
;;     21  mov [rbp-18h],rbx
;;     25  mov [rbp-20h],r15
;;     29  mov [rbp-28h],r14
;;     2d  lea rbx,[r10+80h]
;;     34  add r10,40h
;;     38  mov rax,[r11+10h]
;;     3c  cmp rax,r10
;;     3f  jb near 1A8h
;;     45  mov [r11+8],r10
;;     49  mov r14,[r15+10h]
;;     4d  mov rax,[r15+30h]
;;     51  mov r11d,8
;;     57  add r11,rdi
;;     5a  jb near 16Dh
;;     60  cmovb r11,[rax+8]
;;     65  cmp r11,[rax+8]
;;     69  ja near 176h
;;     6f  cmova r11,[rax+8]
;;     74  mov rax,[rax]
;;     77  mov qword [rax+r11-8],7
;;     80  mov rax,[r15+30h]
;;     84  mov r11d,10h
;;     8a  add r11,rdi
;;     8d  jb near 17Fh
;;     93  cmovb r11,[rax+8]
;;     98  cmp r11,[rax+8]
;;     9c  ja near 188h
;;     a2  cmova r11,[rax+8]
;;     a7  mov rax,[rax]
;;     aa  mov rcx,[rax+r11-8]
;;     af  mov esi,esi
;;     b1  mov rax,rsi
;;     b4  mov rdx,[r15+38h]
;;     b8  cmp rax,[rdx+8]
;;     bc  jae near 191h
;;     c2  mov r11d,0
;;     c8  cmovae rax,r11
;;     cc  shl rax,5
;;     d0  add rax,[rdx]
;;     d3  cmp dword [rax+8],0
;;     da  jne near 193h
;;     e0  mov [rbx-80h],rdi
;;     e4  mov [rbx-78h],esi
;;     e7  mov r11,rax
;;     ea  mov rdi,rcx
;;     ed  mov r15,[r11+10h]
;;     f1  call qword [r11]
;;     f4  mov r15,[rbp-20h]
;;     f8  mov [rbx-50h],rax
;;     fc  mov ecx,[rbx-78h]
;;     ff  mov rdx,rcx
;;    102  cmp edx,5
;;    105  jae near 14Dh
;;    10b  mov r11d,0
;;    111  cmovae rdx,r11
;;    115  lea r11,[rel 1ACh]
;;    11c  movsxd rdx,[r11+rdx*4]
;;    120  add rdx,r11
;;    123  jmp rdx
;;    125  mov eax,4
;;    12a  jmp 157h
;;    12f  mov eax,3
;;    134  jmp 157h
;;    139  mov eax,2
;;    13e  jmp 157h
;;    143  mov eax,1
;;    148  jmp 157h
;;    14d  mov eax,0
;;    152  jmp 157h
;;    157  mov r11,[r15+8]
;;    15b  mov rbx,[rbp-10h]
;;    15f  mov [r11+8],rbx
;;    163  mov rbx,[rbp-18h]
;;    167  mov r14,[rbp-28h]
;;    16b  leave
;;    16c  ret
;;    16d  mov rax,[r15]
;;    170  mov [rax+30h],r11
;;    174  ud2
;;    176  mov rax,[r15]
;;    179  mov [rax+30h],r11
;;    17d  ud2
;;    17f  mov rax,[r15]
;;    182  mov [rax+30h],r11
;;    186  ud2
;;    188  mov rax,[r15]
;;    18b  mov [rax+30h],r11
;;    18f  ud2
;;    191  ud2
;;    193  cmp dword [rax+8],0FFFFFFFFh
;;    197  jne near 19Fh
;;    19d  ud2
;;    19f  mov r11,[r15]
;;    1a2  mov [r11+30h],rax
;;    1a6  ud2
;;    1a8  ud2
;;    1aa  int3
;;    1ab  int3
;;    1ac  mov eax,[qword 8DFFFFFF97FFFFFFh]
;;    1b5  (bad)
;;    1b7  inc dword [rbx+79FFFFFFh]
;;    1bd  (bad)
;;    1bf  (bad)
;; reloc d6 type0
;; trap 174 Trap(MemoryOutOfBounds) @0x46
;; trap 17d Trap(MemoryOutOfBounds) @0x46
;; trap 186 Trap(MemoryOutOfBounds) @0x4b
;; trap 18f Trap(MemoryOutOfBounds) @0x4b
;; trap 191 Trap(TableOutOfBounds) @0x50
;; trap 19d Trap(IndirectCallToNull) @0x50
;; trap 1a6 Trap(BadSignature) @0x50
;; trap 1a8 Trap(StackOverflow) @0x42
;; call f4 @0x50
