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
;;     3d  ja near 8Dh
;;     43  cmova r11,[rax+8]
;;     48  mov rax,[rax]
;;     4b  mov ecx,[rax+r11-4]
;;     50  mov eax,0
;;     55  mov rdx,[r15+30h]
;;     59  lea r11,[rax+8]
;;     5d  cmp r11,[rdx+8]
;;     61  ja near 96h
;;     67  cmova r11,[rdx+8]
;;     6c  mov rdx,[rdx]
;;     6f  mov [rdx+r11-4],edi
;;     74  mov rax,rcx
;;     77  mov r11,[r15+8]
;;     7b  mov rbx,[rbp-10h]
;;     7f  mov [r11+8],rbx
;;     83  mov rbx,[rbp-18h]
;;     87  mov r14,[rbp-28h]
;;     8b  leave
;;     8c  ret
;;     8d  mov rax,[r15]
;;     90  mov [rax+30h],r11
;;     94  ud2
;;     96  mov rax,[r15]
;;     99  mov [rax+30h],r11
;;     9d  ud2
;;     9f  ud2
;;     a1  int3
;;     a2  int3
;;     a3  int3
;; trap 94 Trap(MemoryOutOfBounds) @0x2b
;; trap 9d Trap(MemoryOutOfBounds) @0x32
;; trap 9f Trap(StackOverflow) @0x29
