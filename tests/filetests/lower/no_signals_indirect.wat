;;; A call through a table: bounds, signature, instance restored after it.
;; test: lower
;; func: 0
;; run: f(21, 0) -> 42
;; run: f(21, 1) -> -21
;; run: f(21, 2) -> trap undefined element: out of bounds table access
;; options: no-signals
(module
  (func (export "f") (param i32 i32) (result i32)
    (call_indirect (param i32) (result i32) (local.get 0) (local.get 1)))
  (table funcref (elem $double $negate))
  (func $double (param i32) (result i32) (i32.shl (local.get 0) (i32.const 1)))
  (func $negate (param i32) (result i32) (i32.sub (i32.const 0) (local.get 0))))
;; expect
;; machine lowered pc 0x3b regs 10 calls raises
;; b0:
;;     v8:rdi v9:rsi = args
;;     v1 = mov.d v9
;;     v2 = mov_imm.q 0                         @0x3f
;;     v3 = mov.q [r15 + 48]                    @0x3f
;;     cmp.q v1, 2                              @0x3f
;;     trap_if_ae TableOutOfBounds              @0x3f
;;     v4 = cmov_ae.q v1, v2                    @0x3f
;;     v5 = shl.q v4, 5                         @0x3f
;;     v6 = add.q v5, [v3]                      @0x3f
;;     check_signature.d v6, 1                  @0x3f
;;     v7 = mov.q [v6]                          @0x3f
;;     v0:rax = call own v8:rdi v7:r11          @0x3f
;;     ret v0:rax                               @0x42
