;;; Division and multiplication by a power of two stay.
;; test: build
;; options: no-strength
;; run: f(10) -> 80
(module
  (func (export "f") (param i32) (result i32)
    (i32.mul (i32.div_u (local.get 0) (i32.const 4)) (i32.shl (i32.const 5) (i32.const 3)))))
;; expect
;; func 0 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = const 4
;;   v3: i32 = const 5
;;   v4: i32 = const 3
;;   v5: i32 = const 40
;;   v2: i32 = div_u v0, v1                     @0x24
;;   v6: i32 = mul v2, v5                       @0x2a
;;   return v6                                  @0x2b
