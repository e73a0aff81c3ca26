;; test: lower
;; options: off=inline
;; run: dot(32) -> 124
;; run: any(0) -> 7
;; run: any(1) -> 8
;; run: swap() -> 3
(module
  (memory 1)
  (data (i32.const 32) "\01\00\02\00\03\00\04\00\05\00\06\00\07\00\08\00\02\00\02\00\02\00\02\00\04\00\04\00\04\00\04\00")
  (func (export "dot") (param i32) (result i32) (local v128)
    (local.set 1 (i32x4.dot_i16x8_s (v128.load (local.get 0)) (v128.load offset=16 (local.get 0))))
    (local.set 1 (i32x4.add (local.get 1) (i8x16.shuffle 8 9 10 11 12 13 14 15 0 1 2 3 4 5 6 7 (local.get 1) (local.get 1))))
    (i32.add (i32x4.extract_lane 0 (local.get 1)) (i32x4.extract_lane 1 (local.get 1))))
  (func (export "any") (param i32) (result i32)
    (if (result i32) (v128.any_true (i8x16.splat (local.get 0))) (then (i32.const 8)) (else (i32.const 7))))
  (func $two (param v128 i32) (result v128 v128)
    (local.get 0)
    (i16x8.shr_s (v128.load8x8_s (local.get 1)) (i32.const 3)))
  (func (export "swap") (result i32) (local v128 v128)
    (call $two (v128.const i32x4 1 2 3 4) (i32.const 32))
    (local.set 0)
    (local.set 1)
    (v128.store8_lane 3 (i32.const 0) (local.get 0))
    (i32x4.extract_lane 2 (v128.or (v128.load32_zero (i32.const 0)) (v128.or (local.get 1) (v128.const i32x4 0 0 0 0)))))
  (func (export "rotate") (param v128) (result v128)
    (v128.or (i32x4.shl (local.get 0) (i32.const 8)) (i32x4.shr_u (local.get 0) (i32.const 24))))
  (func (export "floats") (param f32 v128) (result v128)
    (f32x4.min (f32x4.mul (f32x4.splat (local.get 0)) (v128.const f32x4 0.5 0.5 0.5 0.5)) (local.get 1))))
;; expect
;; machine lowered pc 0x64 regs 15
;; b0:
;;     v14:rdi = args
;;     v11 = mov.d v14
;;     v12 = mov.q [r15 + 16]
;;     x10 = vmov.x [v12 + v11 * 1]!0x66        @0x66
;;     x6 = vpmadd.w x10, [v12 + v11 * 1 + 16]!0x6c @0x70
;;     x7 = vpshufd.x x6, 78                    @0x7b
;;     x3 = vpadd.d x6, x7                      @0x8d
;;     v1 = vmov_to_int.d x3                    @0x94
;;     v2 = vpextr.d x3, 1                      @0x99
;;     v0 = lea.d [v1 + v2 * 1]                 @0x9c
;;     ret v0:rax                               @0x9d
;; machine lowered pc 0xa0 regs 7
;; b0:
;;     v4:rdi = args
;;     x5 = vmov_from_int.d v4                  @0xa2
;;     x3 = vpbroadcast.b x5                    @0xa2
;;     vptest.x x3, x3                          @0xa6
;;     j_ne b2 b1                               @0xa6
;; b1:
;;     v2 = mov_imm.q 7                         @0xad
;;     jmp b3(v2)                               @0xad
;; b2:
;;     v1 = mov_imm.q 8                         @0xaa
;;     jmp b3(v1)                               @0xaa
;; b3(v0):
;;     ret v0:rax                               @0xae
;; machine lowered pc 0xb1 regs 8
;; b0:
;;     x0:xmm0 v7:rdi = args
;;     v4 = mov.d v7
;;     v5 = mov.q [r15 + 16]
;;     x2 = vpmovsx.b [v5 + v4 * 1]!0xb5        @0xb5
;;     x1 = vpsra_imm.w x2, 3                   @0xbb
;;     ret x0:xmm0 x1:xmm1                      @0xbe
;; machine lowered pc 0xc3 regs 13 calls
;; pool 01000000020000000300000004000000
;; b0:
;;     args
;;     v9 = mov.q [r15 + 16]
;;     x11 = vmov.x [pool]                      @0xd7
;;     v12 = mov_imm.q 32                       @0xd7
;;     x6:xmm0 x10:xmm1 = call func2 x11:xmm0 v12:rdi @0xd7
;;     vpextr_to.b [v9]!0xe1, x10, 3            @0xe1
;;     x4 = vmov.d [v9]!0xe8                    @0xe8
;;     x7 = vzero.x                             @0x100
;;     x3 = vpor.x x6, x7                       @0x100
;;     x1 = vpor.x x3, x4                       @0x102
;;     v0 = vpextr.d x1, 2                      @0x104
;;     ret v0:rax                               @0x107
;; machine lowered pc 0x10a regs 3
;; pool 03000102070405060b08090a0f0c0d0e
;; b0:
;;     x1:xmm0 = args
;;     x0 = vpshufb.b x1, [pool]                @0x118
;;     ret x0:xmm0                              @0x11a
;; machine lowered pc 0x11d regs 14
;; pool 0000003f0000003f0000003f0000003f
;; b0:
;;     f12:xmm0 x2:xmm1 = args
;;     x10 = vpbroadcast.d f12                  @0x11f
;;     x1 = vmulp.d x10, [pool]                 @0x133
;;     x3 = vminp.d x1, x2                      @0x138
;;     x4 = vminp.d x2, x1                      @0x138
;;     x5 = vorps.x x3, x4                      @0x138
;;     x6 = vcmpp.d x5, x5, 3                   @0x138
;;     x7 = vorps.x x5, x6                      @0x138
;;     x8 = vpsrl_imm.d x6, 10                  @0x138
;;     x0 = vpandn.x x8, x7                     @0x138
;;     ret x0:xmm0                              @0x13b
