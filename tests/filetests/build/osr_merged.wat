;; test: build
;; osr: 1
;; options: merged
;;; Entered at the inner loop: the outer header has no forward edge, and everything live comes from the frame.
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
;;   v0: i32 = osr_slot 1
;;   v6: i32 = const 1
;;   v9: i32 = osr_slot 3
;;   v11: i32 = osr_slot 2
;;   v13: i32 = osr_slot 0
;;   jump b2                                    @0x29
;; b1: preds b3
;;   jump b2                                    @0x29
;; b2: preds b1, b0, b2
;;   v3: i32 = phi b1: v5, b0: v11, b2: v5
;;   v4: i32 = phi b1: v0, b0: v9, b2: v7
;;   v14: i32 = phi b1: v15, b0: v13, b2: v14
;;   v5: i32 = add v3, v4                       @0x2f
;;   v7: i32 = sub v4, v6                       @0x36
;;   branch v7, b2, b3                          @0x39
;; b3: preds b2
;;   v15: i32 = sub v14, v6                     @0x40
;;   branch v15, b1, b4                         @0x43
;; b4: preds b3
;;   return v5                                  @0x48
