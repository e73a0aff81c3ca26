;; test: sidetable
(module
  (func (param i32 i32) (result i32)
    (local i32)
    block $done (result i32)
      loop $outer
        local.get 0
        local.get 1
        i32.ge_u
        if
          local.get 2
          br $done
        end
        loop $inner
          local.get 2
          i32.const 1
          i32.add
          local.tee 2
          i32.const 7
          i32.and
          br_if $inner
        end
        local.get 0
        i32.const 1
        i32.add
        local.set 0
        block $next
          (br_table $next $outer (local.get 0))
        end
      end
      i32.const 0
    end))
;; expect
;; branches
;;     0: 0x00001e loop     is loop 0, work 18
;;     1: 0x000025 if       → 0x00002c stp 3 keep 0 drop 0
;;     2: 0x000029 br       → 0x00004f stp 7 keep 1 drop 0
;;     3: 0x00002c loop     is loop 1, work 14
;;     4: 0x000038 br_if    → 0x00002c stp 3 keep 0 drop 0
;;     5: 0x000046 br_table → 0x00004b stp 7 keep 0 drop 0
;;     6: 0x000046 br_table → 0x00001e stp 0 keep 0 drop 0
;; loops
;;     0: 0x00001e stp 0 height 0 assigns locals [0, 2]
;;     1: 0x00002c stp 3 height 0 in loop 0 assigns locals [2]
;; segments
;;   0x00001f costs 4
;;   0x000027 costs 2
;;   0x00002d costs 7
;;   0x00003a costs 6
;;   0x00004b costs 1
