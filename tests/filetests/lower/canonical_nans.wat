;;; A NaN is replaced by the canonical one.
;; test: lower
;; func: 0
;; run: f(3, 2) -> 2.0
;; run: f(3, -2) -> 0.0
;; options: canonical-nans
(module
  (func (export "f") (param f32 f32) (result f32)
    (f32.min (local.get 0) (f32.max (local.get 1) (f32.const 0)))))
;; expect
;; machine lowered pc 0x21 regs 9
;; pool 0000c07f
;; b0:
;;     f3:xmm0 f7:xmm1 = args
;;     f8 = vzero.d                             @0x2a
;;     f6 = fmax.d f7, f8                       @0x2a
;;     f5 = vmov.d [pool]                       @0x2a
;;     vucomi.d f6, f6                          @0x2a
;;     f4 = select_floatne.d f6, f5             @0x2a
;;     f2 = fmin.d f3, f4                       @0x2b
;;     f1 = vmov.d [pool]                       @0x2b
;;     vucomi.d f2, f2                          @0x2b
;;     f0 = select_floatne.d f2, f1             @0x2b
;;     ret f0:xmm0                              @0x2c
