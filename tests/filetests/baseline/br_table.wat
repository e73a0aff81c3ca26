;;; Two labels and a default are compared one after the other; each has its own moves of the result.
;; test: baseline
;; run: pick(0) -> 10
;; run: pick(1) -> 21
;; run: pick(9) -> 30
(module
  (func (export "pick") (param i32) (result i32)
    (block $c (result i32)
      (block $b (result i32)
        (block $a (result i32)
          (br_table $a $b $c (i32.const 10) (local.get 0)))
        (return))
      (drop) (return (i32.const 21)))
    (drop) (i32.const 30)))
;; expect
;;      0  push rbp
;;      1  mov rbp,rsp
;;      4  sub rsp,20h
;;      8  mov r11,[r15+8]
;;      c  mov r10,[r11+8]
;;     10  mov [rbp-8],r10
;;     14  mov [rbp-10h],r10
;;     18  mov [rbp-18h],rbx
;;     1c  mov [rbp-20h],r15
;;     20  lea rbx,[r10+80h]
;;     27  mov [rbx-80h],edi
;;     2a  mov eax,0Ah
;;     2f  mov edi,edi
;;     31  mov rcx,rdi
;;     34  cmp ecx,0
;;     37  je near 4Bh
;;     3d  cmp ecx,1
;;     40  je near 50h
;;     46  jmp 5Ah
;;     4b  jmp 5Fh
;;     50  mov eax,15h
;;     55  jmp 5Fh
;;     5a  mov eax,1Eh
;;     5f  mov r11,[r15+8]
;;     63  mov rbx,[rbp-10h]
;;     67  mov [r11+8],rbx
;;     6b  mov rbx,[rbp-18h]
;;     6f  leave
;;     70  ret
;;     71  ud2
;;     73  int3
;; trap 71 Trap(StackOverflow) @0x23
