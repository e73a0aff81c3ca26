;; test: opt
;; run: gcd(48, 36) -> 12
;; run: gcd(17, 5) -> 1
;; run: gcd(0, 0) -> 0
(module
  (func (export "gcd") (param i32 i32) (result i32)
    (local i32)
    loop $again
      local.get 1
      if
        local.get 0
        local.get 1
        i32.rem_u
        local.set 2
        local.get 1
        local.set 0
        local.get 2
        local.set 1
        br $again
      end
    end
    local.get 0))
;; expect
;; func 0 (i32, i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = param 1
;;   jump b1                                    @0x25
;; b1: preds b0, b2
;;   v3: i32 = phi b0: v1, b2: v6
;;   v5: i32 = phi b0: v0, b2: v3
;;   branch v3, b2, b3                          @0x29
;; b2: preds b1
;;   v6: i32 = rem_u v5, v3                     @0x2f
;;   jump b1                                    @0x3a
;; b3: preds b1
;;   return v5                                  @0x40
