;; test: build
;; run: many() -> 1
(module
  (tag $t0)(tag $t1)(tag $t2)(tag $t3)(tag $t4)(tag $t5)(tag $t6)(tag $t7)(tag $t8)(tag $t9)(tag $t10)(tag $t11)(tag $t12)(tag $t13)(tag $t14)(tag $t15)(tag $t16)
    (func $throws throw $t16)
  ;;; Of two handlers with the same tag only the first is reached, however many there are.
  (func (export "many") (result i32)
    block $h
      try_table (catch $t0 $h) (catch $t1 $h) (catch $t2 $h) (catch $t3 $h) (catch $t4 $h) (catch $t5 $h) (catch $t6 $h) (catch $t7 $h) (catch $t8 $h) (catch $t9 $h) (catch $t10 $h) (catch $t11 $h) (catch $t12 $h) (catch $t13 $h) (catch $t14 $h) (catch $t15 $h) (catch $t16 $h)
        try_table (catch $t0 $h) (catch $t1 $h) (catch $t2 $h) (catch $t3 $h) (catch $t4 $h) (catch $t5 $h) (catch $t6 $h) (catch $t7 $h) (catch $t8 $h) (catch $t9 $h) (catch $t10 $h) (catch $t11 $h) (catch $t12 $h) (catch $t13 $h) (catch $t14 $h) (catch $t15 $h) (catch $t16 $h) call $throws end
      end
      i32.const 0 return
    end
    i32.const 1))
;; expect
;; func 0 ()
;; b0:
;;   throw tag16                                @0x4c
;; func 1 () -> i32
;; b0:
;;   v37: i32 = const 0
;;   v39: i32 = const 1
;;   call f0()                                  @0xbf
;;   try b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18, b1 @0xbf
;; b1: preds b0
;;   jump b19                                   @0xc1
;; b2: preds b0
;;   catch handler19 tag0                       @0xc1
;;   jump b20                                   @0xc1
;; b3: preds b0
;;   catch handler20 tag1                       @0xc1
;;   jump b20                                   @0xc1
;; b4: preds b0
;;   catch handler21 tag2                       @0xc1
;;   jump b20                                   @0xc1
;; b5: preds b0
;;   catch handler22 tag3                       @0xc1
;;   jump b20                                   @0xc1
;; b6: preds b0
;;   catch handler23 tag4                       @0xc1
;;   jump b20                                   @0xc1
;; b7: preds b0
;;   catch handler24 tag5                       @0xc1
;;   jump b20                                   @0xc1
;; b8: preds b0
;;   catch handler25 tag6                       @0xc1
;;   jump b20                                   @0xc1
;; b9: preds b0
;;   catch handler26 tag7                       @0xc1
;;   jump b20                                   @0xc1
;; b10: preds b0
;;   catch handler27 tag8                       @0xc1
;;   jump b20                                   @0xc1
;; b11: preds b0
;;   catch handler28 tag9                       @0xc1
;;   jump b20                                   @0xc1
;; b12: preds b0
;;   catch handler29 tag10                      @0xc1
;;   jump b20                                   @0xc1
;; b13: preds b0
;;   catch handler30 tag11                      @0xc1
;;   jump b20                                   @0xc1
;; b14: preds b0
;;   catch handler31 tag12                      @0xc1
;;   jump b20                                   @0xc1
;; b15: preds b0
;;   catch handler32 tag13                      @0xc1
;;   jump b20                                   @0xc1
;; b16: preds b0
;;   catch handler33 tag14                      @0xc1
;;   jump b20                                   @0xc1
;; b17: preds b0
;;   catch handler34 tag15                      @0xc1
;;   jump b20                                   @0xc1
;; b18: preds b0
;;   catch handler35 tag16                      @0xc1
;;   jump b20                                   @0xc1
;; b19: preds b1
;;   return v37                                 @0xc5
;; b20: preds b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18
;;   return v39                                 @0xc9
