;;; Local 2 stays 8, which constant propagation finds after the algebraic rules ran: instruction selection makes the shift.
;; test: opt
;; run: power(5, 1) -> 40
;; run: power(5, 2) -> 320
(module
  (func (export "power") (param i32 i32) (result i32)
    (local i32)
    i32.const 8
    local.set 2
    loop $next
      local.get 0
      local.get 2
      i32.mul
      local.set 0
      local.get 2
      i32.const 8
      i32.ne
      if
        local.get 1
        local.set 2
      end
      local.get 1
      i32.const 1
      i32.sub
      local.tee 1
      br_if $next
    end
    local.get 0))
;; expect
;; func 0 (i32, i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = param 1
;;   jump b1                                    @0x2b
;; b1: preds b0, b1
;;   v4: i32 = phi b0: v0, b1: v6
;;   v9: i32 = phi b0: v1, b1: v12
;;   v17: i32 = const 8
;;   v6: i32 = mul v4, v17                      @0x31
;;   v16: i32 = const -1                        @0x44
;;   v12: i32 = add v9, v16                     @0x44
;;   branch v12, b1, b4                         @0x47
;; b4: preds b1
;;   return v6                                  @0x4c
