;;; A call stores the operands below its arguments in their slots; the callee follows the optimiser's convention.
;; test: baseline
;; func: 1
;; run: twice(20) -> 42
(module
  (func $next (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
  (func (export "twice") (param i32) (result i32)
    (i32.add (call $next (local.get 0)) (call $next (local.get 0)))))
;; expect
;;      0  push rbp
;;      1  mov rbp,rsp
;;      4  sub rsp,20h
;;      8  mov r11,[r15+8]
;;      c  mov r10,[r11+8]
;;     10  cmp rsp,[r11]
;;     13  jb near 6Fh
;;     19  mov [rbp-8],r10
;;     1d  mov [rbp-10h],r10
;;     21  mov [rbp-18h],rbx
;;     25  mov [rbp-20h],r15
;;     29  lea rbx,[r10+80h]
;;     30  add r10,38h
;;     34  mov rax,[r11+10h]
;;     38  cmp rax,r10
;;     3b  jb near 6Fh
;;     41  mov [r11+8],r10
;;     45  mov [rbx-80h],edi
;;     48  call qword [rel 4Eh]
;;     4e  mov [rbx-58h],eax
;;     51  mov edi,[rbx-80h]
;;     54  call qword [rel 5Ah]
;;     5a  add eax,[rbx-58h]
;;     5d  mov r11,[r15+8]
;;     61  mov rbx,[rbp-10h]
;;     65  mov [r11+8],rbx
;;     69  mov rbx,[rbp-18h]
;;     6d  leave
;;     6e  ret
;;     6f  ud2
;;     71  int3
;;     72  int3
;;     73  int3
;; reloc 4a func0 -4
;; reloc 56 func0 -4
;; trap 6f Trap(StackOverflow) @0x2d
;; call 4e @0x2f
;; call 5a @0x33
