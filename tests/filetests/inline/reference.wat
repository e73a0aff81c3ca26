;; test: inline
;; options: opt-all
;; func: 2
;; profile: 0x56 f0 90 f1 10
;; run: f(0, 5) -> 10
;; run: f(1, 5) -> 25
;; run: f(2, 5) -> trap null function reference
;;; A reference is compared with the function's cell and with this instance.
(module
  (type $unary (func (param i32) (result i32)))
  (table 3 (ref null $unary))
  (elem (table 0) (i32.const 0) (ref null $unary) (ref.func $double) (ref.func $square))
  (func $double (type $unary) (i32.add (local.get 0) (local.get 0)))
  (func $square (type $unary) (i32.mul (local.get 0) (local.get 0)))
  (func (export "f") (param i32 i32) (result i32)
    (call_ref $unary (local.get 1) (table.get (local.get 0)))))
;; expect
