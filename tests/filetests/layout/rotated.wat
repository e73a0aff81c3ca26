;; test: layout
;; run: sum(4) -> 10
;; run: sum(0) -> 0
(module
  (func (export "sum") (param i32) (result i32)
    (local i32)
    (block $done
      (loop $next
        (br_if $done (i32.eqz (local.get 0)))
        (local.set 1 (i32.add (local.get 1) (local.get 0)))
        (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
        (br $next)))
    (local.get 1)))
;; expect
;; machine laid_out pc 0x24
;; b0:
;;     rdi = args
;;     rax = mov_imm.q 0                        @0x26
;;     jmp b1                                   @0x26
;; b2: freq 8 inner 2
;;     rax = lea.d [rax + rdi * 1]              @0x31
;;     rdi = lea.d [rdi + -1]                   @0x38
;;     jmp b1                                   @0x3b
;; b1: loop to b2 freq 8
;;     test.d rdi, rdi                          @0x2b
;;     j_ne b2 b3                               @0x2b
;; b3:
;;     ret rax                                  @0x41
