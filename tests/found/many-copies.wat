;; More operands are unread copies of a local that is written than there are registers.
(module
  (memory (export "mem") 1)
  (global (export "g0") (mut f64) (f64.const 0))
  (func (export "reset"))
  (func (export "f0") (param i32) (result i32)
    local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0
    (local.get 0) (i32.const 3) i32.add local.set 0
    i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add (local.get 0) i32.add)
  (func (export "f1") (param i32) (result i32)
    local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0
    (local.get 0) (i32.const 3) i32.add local.tee 0
    i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add (local.get 0) i32.add)
  (func (export "f2") (param i64) (result i64)
    local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0
    (local.get 0) (i64.const 3) i64.add local.set 0
    i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add (local.get 0) i64.add)
  (func (export "f3") (param i64) (result i64)
    local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0
    (local.get 0) (i64.const 3) i64.add local.tee 0
    i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add i64.add (local.get 0) i64.add)
  (func (export "f4") (param f64) (result f64)
    local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0
    (local.get 0) (f64.const 3) f64.add local.set 0
    f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add (local.get 0) f64.add)
  (func (export "f5") (param f64) (result f64)
    local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0
    (local.get 0) (f64.const 3) f64.add local.tee 0
    f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add f64.add (local.get 0) f64.add)
  (func (export "f6") (param i32) (result i32) (local i32 i32)
    (loop (result i32)
      local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0
      (local.tee 0 (i32.add (local.get 0) (local.get 2)))
      i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add i32.add
      (local.set 2)
      (br_if 0 (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 1))) (i32.const 9)))
      (i32.add (local.get 0) (local.get 2)))))
