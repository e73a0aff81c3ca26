;; test: build
;; osr: 1
;; options: merged leaves
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
;;   v0: i64 = const 0
;;   v9: i32 = osr_slot 1
;;   v33: i32 = const 1
;;   v36: i32 = osr_slot 3
;;   v37: i32 = osr_slot 2
;;   v38: i32 = osr_slot 0
;;   jump b5                                    @0x29
;; b1: preds b9
;;   v1: i64 = osr_tick 15                      @0x23
;;   v2: i32 = lt_s v1, v0                      @0x23
;;   branch p1 v2, b2, b4                       @0x23
;; b2: preds b1
;;   v4: i64 = osr_target 0                     @0x23
;;   v5: i32 = ne v4, v0                        @0x23
;;   branch v5, b3, b4                          @0x23
;; b3: preds b2
;;   osr_store 0 v39                            @0x23
;;   osr_store 1 v9                             @0x23
;;   osr_store 2 v32                            @0x23
;;   osr_store 3 v34                            @0x23
;;   osr_exit 0 v4                              @0x23
;; b4: preds b1, b2
;;   jump b5                                    @0x29
;; b5: preds b4, b0, b8
;;   v24: i32 = phi b4: v39, b0: v38, b8: v24
;;   v27: i32 = phi b4: v32, b0: v37, b8: v32
;;   v29: i32 = phi b4: v9, b0: v36, b8: v34
;;   v18: i64 = osr_tick 18                     @0x29
;;   v19: i32 = lt_s v18, v0                    @0x29
;;   branch p1 v19, b6, b8                      @0x29
;; b6: preds b5
;;   v21: i64 = osr_target 1                    @0x29
;;   v22: i32 = ne v21, v0                      @0x29
;;   branch v22, b7, b8                         @0x29
;; b7: preds b6
;;   osr_store 0 v24                            @0x29
;;   osr_store 1 v9                             @0x29
;;   osr_store 2 v27                            @0x29
;;   osr_store 3 v29                            @0x29
;;   osr_exit 1 v21                             @0x29
;; b8: preds b5, b6
;;   v32: i32 = add v27, v29                    @0x2f
;;   v34: i32 = sub v29, v33                    @0x36
;;   branch v34, b5, b9                         @0x39
;; b9: preds b8
;;   v39: i32 = sub v24, v33                    @0x40
;;   branch v39, b1, b10                        @0x43
;; b10: preds b9
;;   return v32                                 @0x48
