;; test: build
;; run: catch(3) -> 103
;; run: catch(0) -> 7
;; run: here(5) -> 6
;; run: here(0) -> 1
;; run: deep(4) -> 14
;; run: again(9) -> 18
(module
  (tag $i (param i32))
  (func $throws (param i32) (result i32)
    local.get 0 if local.get 0 i32.const 100 i32.add throw $i end
    i32.const 7)
  ;;; A call in a region ends its block.
  (func (export "catch") (param i32) (result i32)
    block $h (result i32)
      try_table (result i32) (catch $i $h) local.get 0 call $throws end
    end)
  ;;; A throw to a handler in the same function is a jump.
  (func (export "here") (param i32) (result i32)
    block $h (result i32)
      try_table (catch $i $h)
        local.get 0 if local.get 0 throw $i end
      end
      i32.const 0
    end
    i32.const 1 i32.add)
  ;;; Two calls lead to one landing block, which has a phi of the local that is assigned between them.
  (func (export "deep") (param i32) (result i32) (local i32)
    block $h
      try_table (catch_all $h)
        i32.const 0 call $throws drop
        i32.const 10 local.set 1
        local.get 0 call $throws local.set 1
      end
    end
    local.get 0 local.get 1 i32.add)
  ;;; A reference needs an object.
  (func (export "again") (param i32) (result i32) (local exnref)
    block $outer (result i32)
      try_table (catch $i $outer)
        block $h (result i32 exnref)
          try_table (catch_ref $i $h) local.get 0 throw $i end
          unreachable
        end
        local.set 1 local.get 0 i32.add drop
        local.get 1 throw_ref
      end
      unreachable
    end
    local.get 0 i32.add))
;; expect
;; func 0 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v2: i32 = const 100
;;   v5: i32 = const 7
;;   branch v0, b1, b2                          @0x4f
;; b1: preds b0
;;   v3: i32 = add v0, v2                       @0x56
;;   throw tag0 v3                              @0x57
;; b2: preds b0
;;   return v5                                  @0x5c
;; func 1 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = call f0(v0)                      @0x69
;;   try b2, b1                                 @0x69
;; b1: preds b0
;;   jump b3                                    @0x6b
;; b2: preds b0
;;   v4: i32 = catch handler1 tag0              @0x6b
;;   jump b4                                    @0x6b
;; b3: preds b1
;;   jump b4                                    @0x6c
;; b4: preds b2, b3
;;   v7: i32 = phi b2: v4, b3: v1
;;   return v7                                  @0x6d
;; func 2 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v3: i32 = const 0
;;   v6: i32 = const 1
;;   branch v0, b1, b2                          @0x7a
;; b1: preds b0
;;   jump b3                                    @0x7e
;; b2: preds b0
;;   jump b3                                    @0x84
;; b3: preds b1, b2
;;   v5: i32 = phi b1: v0, b2: v3
;;   v7: i32 = add v5, v6                       @0x87
;;   return v7                                  @0x88
;; func 3 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = const 0
;;   v4: i32 = const 10
;;   v2: i32 = call f0(v1)                      @0x96
;;   try b3, b1                                 @0x96
;; b1: preds b0
;;   v5: i32 = call f0(v0)                      @0x9f
;;   try b3, b2                                 @0x9f
;; b2: preds b1
;;   jump b4                                    @0xa3
;; b3: preds b0, b1
;;   v11: i32 = phi b0: v1, b1: v4
;;   catch handler1                             @0xa3
;;   jump b5                                    @0xa3
;; b4: preds b2
;;   jump b5                                    @0xa4
;; b5: preds b3, b4
;;   v12: i32 = phi b3: v11, b4: v5
;;   v13: i32 = add v0, v12                     @0xa9
;;   return v13                                 @0xaa
;; func 4 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   throw tag0 v0, b1                          @0xc1
;; b1: preds b0
;;   v2: i32 = catch handler3 tag0              @0xc3
;;   v3: gc = result 1 v2                       @0xc3
;;   jump b2                                    @0xc3
;; b2: preds b1
;;   v5: i32 = add v2, v0                       @0xca
;;   v6: gc = non_null v3                       @0xce
;;   throw_ref v6, b3                           @0xce
;; b3: preds b2
;;   v8: i32 = catch handler1 tag0              @0xcf
;;   jump b4                                    @0xcf
;; b4: preds b3
;;   v10: i32 = add v8, v0                      @0xd4
;;   return v10                                 @0xd5
