;; test: regalloc
;; options: off=inline
;; func: 1
;; osr: 0
(module
  (func $other)
  (func (export "sum") (param i32) (result i64) (local i64 v128)
    (loop $again
      (call $other)
      (local.set 2 (i64x2.add (local.get 2) (v128.const i64x2 1 2)))
      (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (i64x2.extract_lane 1 (local.get 2))))
;; expect
;; machine allocated pc 0x2d calls
;; pool 01000000000000000200000000000000
;; saves rbx
;; slots 16
;; b0:
;;     rdi = args
;;     rbx = mov.d [rdi]
;;     xmm0 = vmov.x [rdi + 32]
;;     slot0 = copy xmm0
;;     jmp b1                                   @0x2d
;; b1: loop to b2 freq 8
;;     call func0                               @0x2f
;;     xmm0 = copy slot0
;;     xmm0 = vpadd.q xmm0, [pool]              @0x45
;;     rbx = lea.d [rbx + -1]                   @0x4e
;;     test.d rbx, rbx                          @0x51
;;     j_ne b2 b3                               @0x51
;; b2: freq 8
;;     slot0 = copy xmm0
;;     jmp b1                                   @0x56
;; b3:
;;     rax = vpextr.q xmm0, 1                   @0x56
;;     ret rax                                  @0x59
