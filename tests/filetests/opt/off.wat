;;; All passes but one: without numbering the sum is computed twice.
;; test: opt
;; options: off=gvn no-number
;; run: f(3, 4) -> 49
(module
  (func (export "f") (param i32 i32) (result i32)
    (i32.mul (i32.add (local.get 0) (local.get 1)) (i32.add (local.get 0) (local.get 1)))))
;; expect
;; func 0 (i32, i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = param 1
;;   v2: i32 = add v0, v1                       @0x25
;;   v3: i32 = add v0, v1                       @0x2a
;;   v4: i32 = mul v2, v3                       @0x2b
;;   return v4                                  @0x2c
