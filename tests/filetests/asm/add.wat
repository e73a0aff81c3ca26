;; test: asm
;; run: add(2, 3) -> 5
(module
  (func (export "add") (param i32 i32) (result i32)
    local.get 0
    local.get 1
    i32.add))
;; expect
;;      0  lea eax,[rdi+rsi]                    @0x27
;;      3  ret                                  @0x28
