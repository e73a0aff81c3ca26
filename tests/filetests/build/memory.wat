;; test: build
;; run: sum(4) -> 10
;; run: sum(65536) -> trap out of bounds memory access
(module
  (memory 1)
  (data (i32.const 0) "\01\02\03\04")
  (func (export "sum") (param i32) (result i32)
    (local i32 i32)
    block $done
      loop $next
        local.get 1
        local.get 0
        i32.ge_u
        br_if $done
        local.get 2
        local.get 1
        i32.load8_u
        i32.add
        local.set 2
        local.get 1
        i32.const 1
        i32.add
        local.set 1
        br $next
      end
    end
    local.get 2
    local.get 1
    i32.load8_u offset=0
    i32.add))
;; expect
;; func 0 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v8: i32 = const 1
;;   v11: i32 = const 0
;;   jump b1                                    @0x2b
;; b1: preds b0, b2
;;   v2: i32 = phi b0: v11, b2: v9
;;   v5: i32 = phi b0: v11, b2: v7
;;   v3: i32 = ge_u v2, v0                      @0x31
;;   branch v3, b3, b2                          @0x32
;; b2: preds b1
;;   v6: i32 = load8_u v2                       @0x38
;;   v7: i32 = add v5, v6                       @0x3b
;;   v9: i32 = add v2, v8                       @0x42
;;   jump b1                                    @0x45
;; b3: preds b1
;;   v12: i32 = load8_u v2                      @0x4d
;;   v13: i32 = add v5, v12                     @0x50
;;   return v13                                 @0x51
