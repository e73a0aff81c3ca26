;;; A profile of metered code: the branch of a loop that is rarely left.
;; test: opt
;; options: fuel
;; profile: 0x34 2000 20
;; run: count(3) -> 3
(module
  (func (export "count") (param i32) (result i32)
    (local i32)
    (loop $again
      (local.set 1 (i32.add (local.get 1) (i32.const 1)))
      (br_if $again (i32.lt_u (local.get 1) (local.get 0))))
    (local.get 1)))
;; expect
;; func 0 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v4: i32 = const 1
;;   v9: i32 = const 0
;;   jump b1                                    @0x26
;; b1: preds b0, b1
;;   v3: i32 = phi b0: v9, b1: v5
;;   fuel 8                                     @0x26
;;   v5: i32 = add v3, v4                       @0x2c
;;   v6: i32 = lt_u v5, v0                      @0x33
;;   branch p253 v6, b1, b2                     @0x34
;; b2: preds b1
;;   fuel 1                                     @0x36
;;   return v5                                  @0x39
