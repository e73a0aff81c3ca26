;;; The results of an operation whose NaN the specification leaves open are compared with themselves.
;; test: build
;; options: canonical-nans
;; run: f(2, 0.5) -> 2.5
(module (func (export "f") (param f32 f32) (result f32) (f32.add (local.get 0) (local.get 1))))
;; expect
;; func 0 (f32, f32) -> f32
;; b0:
;;   v0: f32 = param 0
;;   v1: f32 = param 1
;;   v3: f32 = const nan:0x400000
;;   v2: f32 = fadd v0, v1                      @0x25
;;   v4: i32 = fne v2, v2                       @0x25
;;   v5: f32 = select v4, v3, v2                @0x25
;;   return v5                                  @0x26
