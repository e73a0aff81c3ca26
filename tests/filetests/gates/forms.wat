;; test: gates
;; run: f(5, 3) -> 10
;;; The loop's phis are μ, the joins of its arms γ, and the values that are used after it η.
(module
  (func (export "f") (param i32 i32) (result i32)
    (local i32)
    loop $again
      block $done
        block $one
          block $zero
            local.get 1
            br_table $zero $one $done
          end
          local.get 2
          i32.const 2
          i32.add
          local.set 2
          br $done
        end
        local.get 2
        i32.const 3
        i32.add
        local.set 2
      end
      local.get 2
      local.get 0
      i32.const 1
      i32.sub
      local.tee 0
      i32.const 2
      local.get 1
      select
      i32.add
      local.set 2
      local.get 0
      br_if $again
    end
    local.get 2))
;; expect
;; b1: v4 = μ(v18, v16)
;; b1: v12 = μ(v0, v14)
;; b4: v11 = γ(v1, v6, v9, v4)                  @0x2d
;; b4: v15 = γ(v1, v14, v5)                     @0x52
;; b1: η(v16)                                   @0x53
