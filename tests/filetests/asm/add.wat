;; test: asm
;; run: add(2, 3) -> 5
(module
  (func (export "add") (param i32 i32) (result i32)
    local.get 0
    local.get 1
    i32.add))
;; expect
;;      0  push rbp
;;      1  mov rbp,rsp
;;      4  lea eax,[rdi+rsi]
;;      7  pop rbp
;;      8  ret
;;      9  int3
;;      a  int3
;;      b  int3
