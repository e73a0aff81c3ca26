;; test: lower
;; run: sum(4) -> 10
(module
  (func (export "sum") (param i32) (result i32)
    (local i32)
    loop $next
      local.get 1
      local.get 0
      i32.add
      local.set 1
      local.get 0
      i32.const 1
      i32.sub
      local.tee 0
      br_if $next
    end
    local.get 1))
;; expect
;; machine lowered pc 0x24 regs 6
;; b0:
;;     v5:rdi = args
;;     v4 = mov_imm.q 0                         @0x24
;;     jmp b1(v4 v5)                            @0x24
;; b1(v1 v2): loop to b2 freq 8
;;     v0 = lea.d [v1 + v2 * 1]                 @0x2a
;;     v3 = lea.d [v2 + -1]                     @0x31
;;     test.d v3, v3                            @0x34
;;     j_ne b2 b3                               @0x34
;; b2: freq 8
;;     jmp b1(v0 v3)                            @0x39
;; b3:
;;     ret v0:rax                               @0x39
