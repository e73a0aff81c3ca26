;;; Vectors use the same stencils as the optimiser's back end; a function with one has slots of two words.
;; test: baseline
;; run: lanes(3) -> 12
(module
  (func (export "lanes") (param i32) (result i32) (local $v v128)
    (local.set $v (i32x4.splat (local.get 0)))
    (local.set $v (i32x4.add (local.get $v) (i32x4.add (local.get $v) (i32x4.add (local.get $v) (local.get $v)))))
    (i32x4.extract_lane 2 (local.get $v))))
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
;;     27  vmovd xmm0,edi
;;     2b  vpbroadcastd xmm0,xmm0
;;     30  vpaddd xmm1,xmm0,xmm0
;;     34  vpaddd xmm1,xmm0,xmm1
;;     38  vpaddd xmm1,xmm0,xmm1
;;     3c  vpextrd eax,xmm1,2
;;     42  mov r11,[r15+8]
;;     46  mov rbx,[rbp-10h]
;;     4a  mov [r11+8],rbx
;;     4e  mov rbx,[rbp-18h]
;;     52  leave
;;     53  ret
;;     54  ud2
;;     56  int3
;;     57  int3
;; trap 54 Trap(StackOverflow) @0x26
