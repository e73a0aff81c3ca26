;;; Operations on constants stay, identities are applied.
;; test: build
;; options: no-fold
;; run: f(3) -> 6
(module
  (func (export "f") (param i32) (result i32)
    (i32.add (i32.add (i32.const 1) (i32.const 2)) (i32.add (local.get 0) (i32.const 0)))))
;; expect
;; func 0 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = const 1
;;   v2: i32 = const 2
;;   v4: i32 = const 0
;;   v3: i32 = add v1, v2                       @0x24
;;   v5: i32 = add v3, v0                       @0x2a
;;   return v5                                  @0x2b
