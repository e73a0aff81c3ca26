;;; The fuel allows two rewrites; the third is not made.
;; test: simplify
;; options: rewrite-fuel=2 plain
;; run: f(5) -> 40
(module
  (func (export "f") (param i32) (result i32)
    (i32.sub
      (i32.mul (local.get 0) (i32.const 8))
      (i32.mul (i32.sub (local.get 0) (local.get 0)) (i32.const 16)))))
;; expect
;; func 0 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = const 8
;;   v4: i32 = const 16
;;   v8: i32 = const 3                          @0x24
;;   v2: i32 = shl v0, v8                       @0x24
;;   v3: i32 = const 0                          @0x29
;;   v5: i32 = mul v3, v4                       @0x2c
;;   v6: i32 = sub v2, v5                       @0x2d
;;   return v6                                  @0x2e
