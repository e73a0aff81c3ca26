;; test: build
;; osr: 1
;;; Entered at the inner loop: the rest of its iteration and of the outer loop's come first, then both loops as they are. Everything live
;;; comes from the frame.
(module
  (func (export "f") (param i32 i32) (result i32)
    (local i32 i32)
    loop $outer
      local.get 1
      local.set 3
      loop $inner
        local.get 2
        local.get 3
        i32.add
        local.set 2
        local.get 3
        i32.const 1
        i32.sub
        local.tee 3
        br_if $inner
      end
      local.get 0
      i32.const 1
      i32.sub
      local.tee 0
      br_if $outer
    end
    local.get 2))
;; expect
;; func 0 (i32, i32) -> i32 osr @0x29
;; b0:
;;   v4: i32 = const 1
;;   v7: i32 = osr_slot 3
;;   v8: i32 = osr_slot 2
;;   v9: i32 = osr_slot 0
;;   v14: i32 = osr_slot 1
;;   jump b1                                    @0x29
;; b1: preds b0, b1
;;   v1: i32 = phi b0: v8, b1: v3
;;   v2: i32 = phi b0: v7, b1: v5
;;   v3: i32 = add v1, v2                       @0x2f
;;   v5: i32 = sub v2, v4                       @0x36
;;   branch v5, b1, b2                          @0x39
;; b2: preds b1
;;   v10: i32 = sub v9, v4                      @0x40
;;   branch v10, b4, b3                         @0x43
;; b3: preds b2
;;   jump b9                                    @0x45
;; b4: preds b2
;;   jump b5                                    @0x23
;; b5: preds b4, b7
;;   v21: i32 = phi b4: v3, b7: v18
;;   v22: i32 = phi b4: v10, b7: v23
;;   jump b6                                    @0x29
;; b6: preds b5, b6
;;   v16: i32 = phi b5: v21, b6: v18
;;   v17: i32 = phi b5: v14, b6: v19
;;   v18: i32 = add v16, v17                    @0x2f
;;   v19: i32 = sub v17, v4                     @0x36
;;   branch v19, b6, b7                         @0x39
;; b7: preds b6
;;   v23: i32 = sub v22, v4                     @0x40
;;   branch v23, b5, b8                         @0x43
;; b8: preds b7
;;   jump b9                                    @0x45
;; b9: preds b3, b8
;;   v26: i32 = phi b3: v3, b8: v18
;;   return v26                                 @0x48
