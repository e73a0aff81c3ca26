;; test: build
;; run: fill(2) -> 6
;; run: fill(9) -> trap undefined element: out of bounds table access
;; run: null(0) -> 1
;; run: null(1) -> 0
;; run: null(4) -> trap undefined element: out of bounds table access
;; run: move() -> 3
(module
  (table 4 funcref)
  (table $other 2 funcref)
  (elem (table 0) (i32.const 1) func $three)
  (elem $passive func $three $three)
  (func $three (result i32) i32.const 3)
  (func (export "fill") (param i32) (result i32)
    i32.const 0 ref.func $three local.get 0 table.fill 0
    i32.const 0 call_indirect (result i32)
    i32.const 1 call_indirect (result i32)
    i32.add)
  (func (export "null") (param i32) (result i32)
    local.get 0 table.get 0 ref.is_null)
  (func (export "move") (result i32)
    ref.null func i32.const 2 table.grow $other drop
    i32.const 0 i32.const 0 i32.const 2 table.init $other $passive
    elem.drop $passive
    i32.const 2 i32.const 0 i32.const 2 table.copy 0 $other
    i32.const 0 i32.const 3 table.get 0 table.set $other
    table.size $other drop
    i32.const 2 call_indirect (result i32)))
;; expect
;; func 0 () -> i32
;; b0:
;;   v0: i32 = const 3
;;   return v0                                  @0x53
;; func 1 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = const 0
;;   v5: i32 = const 1
;;   v2: ref = ref_func f0                      @0x58
;;   table_fill table0 v1, v2, v0               @0x5c
;;   v4: i32 = call_indirect t0 table0 (v1)     @0x61
;;   v6: i32 = call_indirect t0 table0 (v5)     @0x66
;;   v7: i32 = add v4, v6                       @0x69
;;   return v7                                  @0x6a
;; func 2 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: ref = table_get table0 v0              @0x6f
;;   v2: i32 = ref_is_null v1                   @0x71
;;   return v2                                  @0x72
;; func 3 () -> i32
;; b0:
;;   v0: ref = const null
;;   v1: i32 = const 2
;;   v3: i32 = const 0
;;   v7: i32 = const 3
;;   v2: i32 = table_grow table1 v0, v1         @0x79
;;   table_init table1 elem1 v3, v3, v1         @0x83
;;   elem_drop elem1                            @0x87
;;   table_copy table0 table1 v1, v3, v1        @0x90
;;   v8: ref = table_get table0 v7              @0x98
;;   table_set table1 v3, v8                    @0x9a
;;   v10: i32 = table_size table1               @0x9c
;;   v11: i32 = call_indirect t0 table0 (v1)    @0xa2
;;   return v11                                 @0xa5
