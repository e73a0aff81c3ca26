;;; Without guard regions an access compares its address; the trap's offset names the access.
;; test: baseline
;; options: no-guard-regions
;; run: swap(4) -> 0
;; run: swap(65533) -> trap out of bounds memory access
(module
  (memory 1 1)
  (func (export "swap") (param $at i32) (result i32)
    (i32.load (local.get $at))
    (i32.store offset=4 (i32.const 0) (local.get $at))))
;; expect
;;      0  push rbp
;;      1  mov rbp,rsp
;;      4  sub rsp,30h
;;      8  mov r11,[r15+8]
;;      c  mov r10,[r11+8]
;;     10  mov [rbp-8],r10
;;     14  mov [rbp-10h],r10
;;     18  mov [rbp-18h],rbx
;;     1c  mov [rbp-20h],r15
;;     20  mov [rbp-28h],r14
;;     24  lea rbx,[r10+80h]
;;     2b  mov r14,[r15+10h]
;;     2f  mov edi,edi
;;     31  mov rax,[r15+30h]
;;     35  lea r11,[rdi+4]
;;     39  cmp r11,[rax+8]
;;     3d  ja near 83h
;;     43  mov rax,[rax]
;;     46  mov ecx,[rax+r11-4]
;;     4b  mov eax,0
;;     50  mov rdx,[r15+30h]
;;     54  lea r11,[rax+8]
;;     58  cmp r11,[rdx+8]
;;     5c  ja near 8Ch
;;     62  mov rdx,[rdx]
;;     65  mov [rdx+r11-4],edi
;;     6a  mov rax,rcx
;;     6d  mov r11,[r15+8]
;;     71  mov rbx,[rbp-10h]
;;     75  mov [r11+8],rbx
;;     79  mov rbx,[rbp-18h]
;;     7d  mov r14,[rbp-28h]
;;     81  leave
;;     82  ret
;;     83  mov rax,[r15]
;;     86  mov [rax+30h],r11
;;     8a  ud2
;;     8c  mov rax,[r15]
;;     8f  mov [rax+30h],r11
;;     93  ud2
;;     95  ud2
;;     97  int3
;; trap 8a Trap(MemoryOutOfBounds) @0x2b
;; trap 93 Trap(MemoryOutOfBounds) @0x32
;; trap 95 Trap(StackOverflow) @0x29
