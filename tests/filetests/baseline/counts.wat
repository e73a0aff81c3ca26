;;; A header subtracts its iteration's work from the function's ticks and counts the branch; leaving is in cold code.
;; test: baseline
;; options: counts
;; run: sum(4) -> 10
(module
  (func (export "sum") (param $n i32) (result i32) (local $sum i32)
    (loop $again
      (local.set $sum (i32.add (local.get $sum) (local.get $n)))
      (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
    (local.get $sum)))
;; expect
;;      0  sub dword [rel 7],3
;;      7  js near 0D7h
;;      d  push rbp
;;      e  mov rbp,rsp
;;     11  sub rsp,40h
;;     15  mov r11,[r15+8]
;;     19  mov r10,[r11+8]
;;     1d  mov [rbp-8],r10
;;     21  mov [rbp-10h],r10
;;     25  mov [rbp-18h],rbx
;;     29  mov [rbp-20h],r15
;;     2d  mov [rbp-30h],r12
;;     31  mov [rbp-38h],r13
;;     35  lea rbx,[r10+80h]
;;     3c  mov [rbx-80h],edi
;;     3f  mov dword [rbx-78h],0
;;     46  mov edi,edi
;;     48  mov r12,rdi
;;     4b  mov r13d,[rbx-78h]
;;     4f  sub dword [rel 56h],12h
;;     56  js near 0A4h
;;     5c  lea r13d,[r13+r12]
;;     61  lea r12d,[r12-1]
;;     66  test r12d,r12d
;;     69  mov [rbx-78h],r13d
;;     6d  mov [rbx-80h],r12d
;;     71  je near 80h
;;     77  sub dword [rel 7Eh],0FFFFFFFFh
;;     7e  jmp short 4Fh
;;     80  sub dword [rel 87h],0FFFFFFFFh
;;     87  mov rax,r13
;;     8a  mov r11,[r15+8]
;;     8e  mov rbx,[rbp-10h]
;;     92  mov [r11+8],rbx
;;     96  mov rbx,[rbp-18h]
;;     9a  mov r12,[rbp-30h]
;;     9e  mov r13,[rbp-38h]
;;     a2  leave
;;     a3  ret
;;     a4  mov rax,[r15+18h]
;;     a8  mov r11d,0
;;     ae  call qword [rax+70h]
;;     b1  test rax,rax
;;     b4  je short 5Ch
;;     b6  lea rdi,[rbx-80h]
;;     ba  mov rdx,[r15+8]
;;     be  mov rbx,[rbp-10h]
;;     c2  mov [rdx+8],rbx
;;     c6  mov rbx,[rbp-18h]
;;     ca  mov r12,[rbp-30h]
;;     ce  mov r13,[rbp-38h]
;;     d2  leave
;;     d3  jmp rax
;;     d5  ud2
;;     d7  mov rax,[r15+18h]
;;     db  mov r11,0FFFFFFFF00000000h
;;     e5  call qword [rax+70h]
;;     e8  test rax,rax
;;     eb  je near 0Dh
;;     f1  jmp rax
;;     f3  push rbp
;;     f4  mov rbp,rsp
;;     f7  sub rsp,40h
;;     fb  mov r11,[r15+8]
;;     ff  mov r10,[r11+8]
;;    103  mov [rbp-8],rdi
;;    107  mov [rbp-10h],r10
;;    10b  mov [rbp-18h],rbx
;;    10f  mov [rbp-20h],r15
;;    113  mov [rbp-30h],r12
;;    117  mov [rbp-38h],r13
;;    11b  lea rbx,[rdi+80h]
;;    122  jmp rax
;;    124  mov r12d,[rbx-80h]
;;    128  mov r13d,[rbx-78h]
;;    12c  jmp 4Fh
;;    131  lea rax,[rel 124h]
;;    138  jmp short 0F3h
;;    13a  int3
;;    13b  int3
;; reloc 2 func0 -5
;; reloc 51 func0 -5
;; reloc 79 func0 +3
;; reloc 82 func0 +7
;; trap d5 Trap(StackOverflow) @0x24
