;; A load that is part of an instruction which first clears its destination: the site of its fault is not where the
;; instruction's code begins.
(module
  (memory (export "mem") 1)
  (global (export "g0") (mut f64) (f64.const 0))
  (func (export "reset"))
  (func (export "f0") (param i32) (result f64) (f64.sqrt (f64.load (i32.const 0xFFFFFFF0))))
  (func (export "f1") (param i32) (result f32) (f32.sqrt (f32.load (i32.const 0xFFFFFFF0))))
  (func (export "f2") (param i32) (result f64) (f64.nearest (f64.load offset=65530 (local.get 0))))
  (func (export "f3") (param i32) (result f32) (f32.demote_f64 (f64.load offset=65530 (local.get 0))))
  (func (export "f4") (param i32) (result f64) (f64.promote_f32 (f32.load offset=65534 (local.get 0))))
  (func (export "f5") (param i32) (result f64) (f64.convert_i32_s (i32.load offset=65534 (local.get 0))))
  (func (export "f6") (param i32) (result f32) (f32.convert_i64_s (i64.load offset=65530 (local.get 0))))
  (func (export "f7") (param i32) (result i32) (i32.popcnt (i32.load offset=65534 (local.get 0))))
  (func (export "f8") (param i32) (result f64)
    (f64.min (f64.load offset=65530 (local.get 0)) (f64.load offset=65530 (local.get 0)))))
