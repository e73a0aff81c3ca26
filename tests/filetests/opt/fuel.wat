;; test: opt
;; options: fuel poll
;; run: count(3) -> 3
(module
  (func (export "count") (param i32) (result i32)
    (local i32)
    loop $again
      local.get 1
      i32.const 1
      i32.add
      local.tee 1
      local.get 0
      i32.lt_u
      br_if $again
    end
    local.get 1))
;; expect
;; func 0 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v6: i32 = const 1
;;   v11: i32 = const 0
;;   poll                                       @0x26
;;   jump b1                                    @0x26
;; b1: preds b0, b1
;;   v5: i32 = phi b0: v11, b1: v7
;;   poll                                       @0x26
;;   fuel 7                                     @0x26
;;   v7: i32 = add v5, v6                       @0x2c
;;   v8: i32 = lt_u v7, v0                      @0x31
;;   branch v8, b1, b2                          @0x32
;; b2: preds b1
;;   fuel 1                                     @0x34
;;   return v7                                  @0x37
