;; test: build
;; run: lanes(3) -> -64424508416
;; run: memory(100) -> -146077837655732232
;; run: memory(65521) -> trap out of bounds memory access
;; run: pick(0) -> 0
;; run: pick(5) -> 1
(module
  (memory 1)
  (func (export "lanes") (param i32) (result i64)
    (i64x2.extract_lane 1
      (i8x16.shuffle 0 1 2 3 4 5 6 7 8 9 10 11 16 17 18 19
        (i32x4.replace_lane 2 (i32x4.splat (local.get 0)) (i32.const 1024))
        (i32x4.mul (i32x4.splat (local.get 0)) (v128.const i32x4 -5 1 1 1)))))
  (func (export "memory") (param i32) (result i64)
    (v128.store offset=16 (i32.const 84) (v128.const i8x16 -1 2 -3 4 -5 6 -7 8 -9 10 -11 12 -13 14 -15 16))
    (v128.store16_lane 3 (i32.const 200)
      (i16x8.add (v128.load (local.get 0)) (v128.load8x8_s (local.get 0))))
    (i64x2.extract_lane 0
      (v128.load8_lane 7 (i32.const 102)
        (i16x8.add (v128.load64_zero (i32.const 200)) (v128.load32_splat (i32.const 104))))))
  (func (export "pick") (param i32) (result i32) (local v128)
    (local.set 1 (v128.const i64x2 1 1))
    (if (i32.eqz (local.get 0)) (then (local.set 1 (v128.const i64x2 2 0))))
    (i32x4.extract_lane 2 (select (local.get 1) (i8x16.neg (local.get 1)) (local.get 0)))))
;; expect
;; func 0 (i32) -> i64
;; b0:
;;   v0: i32 = param 0
;;   v2: i32 = const 1024
;;   v5: i64 = const 8589934587
;;   v6: i64 = const 4294967297
;;   v9: i64 = const 506097522914230528
;;   v10: i64 = const 1374179596903778568
;;   v1: v128 = vector i32x4.splat v0           @0x43
;;   v3: v128 = vector i32x4.replace_lane lane2 v1, v2 @0x48
;;   v4: v128 = vector i32x4.splat v0           @0x4d
;;   v7: v128 = vector v128.const v5, v6        @0x4f
;;   v8: v128 = vector i32x4.mul v4, v7         @0x61
;;   v11: v128 = vector v128.const v9, v10      @0x64
;;   v12: v128 = vector i8x16.shuffle v3, v8, v11 @0x64
;;   v13: i64 = vector i64x2.extract_lane lane1 v12 @0x76
;;   return v13                                 @0x79
;; func 1 (i32) -> i64
;; b0:
;;   v0: i32 = param 0
;;   v1: i32 = const 84
;;   v2: i64 = const 646555696694625023
;;   v3: i64 = const 1220773411051342583
;;   v6: i32 = const 200
;;   v13: i32 = const 102
;;   v15: i32 = const 104
;;   v4: v128 = vector v128.const v2, v3        @0x7f
;;   store v1 +16, v4                           @0x91
;;   v7: v128 = load v0                         @0x9a
;;   v8: v128 = load64_u v0                     @0xa0
;;   v9: v128 = vector i16x8.extend_low_i8x16_s v8 @0xa0
;;   v10: v128 = vector i16x8.add v7, v9        @0xa4
;;   v11: i32 = vector i16x8.extract_lane_u lane3 v10 @0xa7
;;   store16 v6, v11                            @0xa7
;;   v14: v128 = load64_u v6                    @0xb2
;;   v16: i32 = load v15                        @0xb9
;;   v17: v128 = vector i32x4.splat v16         @0xb9
;;   v18: v128 = vector i16x8.add v14, v17      @0xbd
;;   v19: i32 = load8_u v13                     @0xc0
;;   v20: v128 = vector i8x16.replace_lane lane7 v18, v19 @0xc0
;;   v21: i64 = vector i64x2.extract_lane v20   @0xc5
;;   return v21                                 @0xc8
;; func 2 (i32) -> i32
;; b0:
;;   v0: i32 = param 0
;;   v1: i64 = const 1
;;   v5: v128 = const 0x2
;;   v2: v128 = vector v128.const v1, v1        @0xcd
;;   v3: i32 = eqz v0                           @0xe3
;;   branch v3, b1, b2                          @0xe4
;; b1: preds b0
;;   jump b2                                    @0xfa
;; b2: preds b0, b1
;;   v7: v128 = phi b0: v2, b1: v5
;;   v8: v128 = vector i8x16.neg v7             @0xff
;;   v9: v128 = select v0, v7, v8               @0x103
;;   v10: i32 = vector i32x4.extract_lane lane2 v9 @0x104
;;   return v10                                 @0x107
