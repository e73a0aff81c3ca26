;;; The result of each operation is compared with itself.
;; test: lower
;; func: 0
;; run: f(2, 2) -> 6.875
;; options: canonical-nans
(module
  (func (export "f") (param f64 f32) (result f64)
    (f64.add (f64.mul (local.get 0) (f64.const 1.5)) (f64.promote_f32 (f32.mul (local.get 1) (f32.const 1.9375))))))
;; expect
;; machine lowered pc 0x21 regs 14
;; pool 000000000000f87f0000c07f0000f83f000000000000f83f
;; b0:
;;     f13:xmm0 f10:xmm1 = args
;;     f12 = vmul.q f13, [pool + 16]            @0x2c
;;     f11 = vmov.q [pool]                      @0x2c
;;     vucomi.q f12, f12                        @0x2c
;;     f3 = select_floatne.q f12, f11           @0x2c
;;     f9 = vmul.d f10, [pool + 12]             @0x34
;;     f8 = vmov.d [pool + 8]                   @0x34
;;     vucomi.d f9, f9                          @0x34
;;     f7 = select_floatne.d f9, f8             @0x34
;;     f6 = vconvert.d f7                       @0x35
;;     f5 = vmov.q [pool]                       @0x35
;;     vucomi.q f6, f6                          @0x35
;;     f4 = select_floatne.q f6, f5             @0x35
;;     f2 = vadd.q f3, f4                       @0x36
;;     f1 = vmov.q [pool]                       @0x36
;;     vucomi.q f2, f2                          @0x36
;;     f0 = select_floatne.q f2, f1             @0x36
;;     ret f0:xmm0                              @0x37
