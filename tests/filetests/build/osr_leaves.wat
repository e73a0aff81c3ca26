;; test: build
;; osr: 1
;; options: leaves
;;; Entered at the inner loop, it can be left at the headers of both loops, where all locals and operands go to the frame.
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
;;   v1: i64 = const 0
;;   v8: i32 = osr_slot 0
;;   v10: i32 = osr_slot 1
;;   v18: i32 = const 1
;;   v21: i32 = osr_slot 3
;;   v22: i32 = osr_slot 2
;;   jump b1                                    @0x29
;; b1: preds b0, b4
;;   v12: i32 = phi b0: v22, b4: v17
;;   v14: i32 = phi b0: v21, b4: v19
;;   v2: i64 = osr_tick 18                      @0x29
;;   v3: i32 = lt_s v2, v1                      @0x29
;;   branch p1 v3, b2, b4                       @0x29
;; b2: preds b1
;;   v5: i64 = osr_target 1                     @0x29
;;   v6: i32 = ne v5, v1                        @0x29
;;   branch v6, b3, b4                          @0x29
;; b3: preds b2
;;   osr_store 0 v8                             @0x29
;;   osr_store 1 v10                            @0x29
;;   osr_store 2 v12                            @0x29
;;   osr_store 3 v14                            @0x29
;;   osr_exit 1 v5                              @0x29
;; b4: preds b1, b2
;;   v17: i32 = add v12, v14                    @0x2f
;;   v19: i32 = sub v14, v18                    @0x36
;;   branch v19, b1, b5                         @0x39
;; b5: preds b4
;;   v23: i32 = sub v8, v18                     @0x40
;;   branch v23, b7, b6                         @0x43
;; b6: preds b5
;;   jump b18                                   @0x45
;; b7: preds b5
;;   jump b8                                    @0x23
;; b8: preds b7, b16
;;   v33: i32 = phi b7: v23, b16: v58
;;   v36: i32 = phi b7: v17, b16: v55
;;   v38: i32 = phi b7: v19, b16: v56
;;   v27: i64 = osr_tick 15                     @0x23
;;   v28: i32 = lt_s v27, v1                    @0x23
;;   branch p1 v28, b9, b11                     @0x23
;; b9: preds b8
;;   v30: i64 = osr_target 0                    @0x23
;;   v31: i32 = ne v30, v1                      @0x23
;;   branch v31, b10, b11                       @0x23
;; b10: preds b9
;;   osr_store 0 v33                            @0x23
;;   osr_store 1 v10                            @0x23
;;   osr_store 2 v36                            @0x23
;;   osr_store 3 v38                            @0x23
;;   osr_exit 0 v30                             @0x23
;; b11: preds b8, b9
;;   jump b12                                   @0x29
;; b12: preds b11, b15
;;   v50: i32 = phi b11: v36, b15: v55
;;   v52: i32 = phi b11: v10, b15: v56
;;   v42: i64 = osr_tick 18                     @0x29
;;   v43: i32 = lt_s v42, v1                    @0x29
;;   branch p1 v43, b13, b15                    @0x29
;; b13: preds b12
;;   v45: i64 = osr_target 1                    @0x29
;;   v46: i32 = ne v45, v1                      @0x29
;;   branch v46, b14, b15                       @0x29
;; b14: preds b13
;;   osr_store 0 v33                            @0x29
;;   osr_store 1 v10                            @0x29
;;   osr_store 2 v50                            @0x29
;;   osr_store 3 v52                            @0x29
;;   osr_exit 1 v45                             @0x29
;; b15: preds b12, b13
;;   v55: i32 = add v50, v52                    @0x2f
;;   v56: i32 = sub v52, v18                    @0x36
;;   branch v56, b12, b16                       @0x39
;; b16: preds b15
;;   v58: i32 = sub v33, v18                    @0x40
;;   branch v58, b8, b17                        @0x43
;; b17: preds b16
;;   jump b18                                   @0x45
;; b18: preds b6, b17
;;   v61: i32 = phi b6: v17, b17: v55
;;   return v61                                 @0x48
