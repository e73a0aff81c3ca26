;;; Without rewrite fuel the output of the passes is that of construction.
;; test: opt
;; options: rewrite-fuel=0 plain
;; run: f(5) -> 41
(module
  (func (export "f") (param i32) (result i32)
    (i32.add (i32.mul (local.get 0) (i32.const 8)) (i32.sub (i32.const 4) (i32.const 3)))))
;; expect
;; func 0 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = const 8
;;   v3: i32 = const 4
;;   v4: i32 = const 3
;;   v2: i32 = mul v0, v1                       @0x24
;;   v5: i32 = sub v3, v4                       @0x29
;;   v6: i32 = add v2, v5                       @0x2a
;;   return v6                                  @0x2b
