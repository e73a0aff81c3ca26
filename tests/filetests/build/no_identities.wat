;;; The reverse: constants are folded, `x + 0` stays.
;; test: build
;; options: no-identities
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
;;   v3: i32 = const 3
;;   v4: i32 = const 0
;;   v5: i32 = add v0, v4                       @0x29
;;   v6: i32 = add v5, v3                       @0x2a
;;   return v6                                  @0x2b
