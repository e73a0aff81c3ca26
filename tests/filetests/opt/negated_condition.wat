;; test: opt
;; run: f(4) -> 8
;; run: f(5) -> 10
;;; The comparison with zero is in the branch itself, whose arms are exchanged.
(module
  (func (export "f") (param i32) (result i32)
    local.get 0
    i32.const 3
    i32.mul
    i32.eqz
    if (result i32)
      i32.const 0
    else
      local.get 0
      local.get 0
      i32.add
    end))
;; expect
;; func 0 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = const 3
;;   v5: i32 = const 0
;;   v2: i32 = mul v0, v1                       @0x24
;;   branch v2, b2, b1                          @0x26
;; b1: preds b0
;;   jump b3                                    @0x2a
;; b2: preds b0
;;   v7: i32 = add v0, v0                       @0x2f
;;   jump b3                                    @0x30
;; b3: preds b1, b2
;;   v9: i32 = phi b1: v5, b2: v7
;;   return v9                                  @0x31
