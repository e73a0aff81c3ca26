;;; Fuel is charged at the entry and at headers, and a deadline is polled there.
;; test: baseline
;; options: fuel poll
;; run: count(3) -> 0
(module
  (func (export "count") (param $n i32) (result i32)
    (loop $again (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $n)))
;; expect
;;      0  push rbp
;;      1  mov rbp,rsp
;;      4  sub rsp,40h
;;      8  mov r11,[r15+8]
;;      c  mov r10,[r11+8]
;;     10  cmp rsp,[r11]
;;     13  jb near 0E2h
;;     19  mov [rbp-8],r10
;;     1d  mov [rbp-10h],r10
;;     21  mov [rbp-18h],rbx
;;     25  mov [rbp-20h],r15
;;     29  mov [rbp-30h],r12
;;     2d  mov [rbp-38h],r13
;;     31  lea rbx,[r10+80h]
;;     38  add r10,38h
;;     3c  mov rax,[r11+10h]
;;     40  cmp rax,r10
;;     43  jb near 0E2h
;;     49  mov [r11+8],r10
;;     4d  mov rax,[r15]
;;     50  mov r11,[rax+8]
;;     54  mov r11,[r11]
;;     57  cmp r11,[rax+10h]
;;     5b  jae near 0C2h
;;     61  mov [rbx-80h],edi
;;     64  mov edi,edi
;;     66  mov r12,rdi
;;     69  mov rax,[r15]
;;     6c  mov r11,[rax+8]
;;     70  mov r11,[r11]
;;     73  cmp r11,[rax+10h]
;;     77  jae near 0D0h
;;     7d  mov r11,[r15]
;;     80  sub qword [r11],5
;;     84  js near 0DEh
;;     8a  lea r12d,[r12-1]
;;     8f  test r12d,r12d
;;     92  mov [rbx-80h],r12d
;;     96  jne short 69h
;;     98  mov r11,[r15]
;;     9b  sub qword [r11],1
;;     9f  js near 0E0h
;;     a5  mov rax,r12
;;     a8  mov r11,[r15+8]
;;     ac  mov rbx,[rbp-10h]
;;     b0  mov [r11+8],rbx
;;     b4  mov rbx,[rbp-18h]
;;     b8  mov r12,[rbp-30h]
;;     bc  mov r13,[rbp-38h]
;;     c0  leave
;;     c1  ret
;;     c2  push rax
;;     c3  mov rax,[r15+18h]
;;     c7  call qword [rax]
;;     c9  test eax,eax
;;     cb  pop rax
;;     cc  je short 61h
;;     ce  ud2
;;     d0  push rax
;;     d1  mov rax,[r15+18h]
;;     d5  call qword [rax]
;;     d7  test eax,eax
;;     d9  pop rax
;;     da  je short 7Dh
;;     dc  ud2
;;     de  ud2
;;     e0  ud2
;;     e2  ud2
;; trap ce Stored @0x24
;; trap dc Stored @0x24
;; trap de Trap(OutOfFuel) @0x24
;; trap e0 Trap(OutOfFuel) @0x2f
;; trap e2 Trap(StackOverflow) @0x24
;; call c9 @0x24
;; call d7 @0x24
