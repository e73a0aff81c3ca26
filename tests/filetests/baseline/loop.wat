;;; Locals of an innermost loop stay in registers; each that the loop changes is stored before the branch to its header.
;; test: baseline
;; run: sum(4) -> 10
;; run: sum(0) -> 0
(module
  (func (export "sum") (param $n i32) (result i32) (local $sum i32)
    (block $done
      (br_if $done (i32.eqz (local.get $n)))
      (loop $again
        (local.set $sum (i32.add (local.get $sum) (local.get $n)))
        (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1))))))
    (local.get $sum)))
;; expect
;;      0  push rbp
;;      1  mov rbp,rsp
;;      4  sub rsp,40h
;;      8  mov r11,[r15+8]
;;      c  mov r10,[r11+8]
;;     10  mov [rbp-8],r10
;;     14  mov [rbp-10h],r10
;;     18  mov [rbp-18h],rbx
;;     1c  mov [rbp-20h],r15
;;     20  mov [rbp-30h],r12
;;     24  mov [rbp-38h],r13
;;     28  lea rbx,[r10+80h]
;;     2f  test edi,edi
;;     31  mov [rbx-80h],edi
;;     34  mov dword [rbx-78h],0
;;     3b  je near 61h
;;     41  mov edi,edi
;;     43  mov r12,rdi
;;     46  mov r13d,[rbx-78h]
;;     4a  lea r13d,[r13+r12]
;;     4f  lea r12d,[r12-1]
;;     54  test r12d,r12d
;;     57  mov [rbx-78h],r13d
;;     5b  mov [rbx-80h],r12d
;;     5f  jne short 4Ah
;;     61  mov eax,[rbx-78h]
;;     64  mov r11,[r15+8]
;;     68  mov rbx,[rbp-10h]
;;     6c  mov [r11+8],rbx
;;     70  mov rbx,[rbp-18h]
;;     74  mov r12,[rbp-30h]
;;     78  mov r13,[rbp-38h]
;;     7c  leave
;;     7d  ret
;;     7e  ud2
;; trap 7e Trap(StackOverflow) @0x24
