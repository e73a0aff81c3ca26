;; Values of a loop that change places between vector registers and slots, while a vector register holds 16 bytes and none is free: the
;; temporary slot is wider than the value, and was copied through a general-purpose register.
(module
  (type (func (param i32 i64) (result f32 f64 i32 v128 i32 i32 v128 i64 f32 v128 f64 f64)))
  (type (func (result f32 f64 i32 v128 i32 i32 v128 i64 f32 v128 f64 f64)))
  (type (func (param f64 f32 f32) (result f32 f64 i32 v128 i32 i32 v128 i64 f32 v128 f64 f64)))
  (type (func (param i32 f32 i32 i64) (result f64 f64)))
  (type (func (result i32 i64)))
  (type (func (param i32 v128 f64) (result i32)))
  (table 16 20 funcref)
  (memory (export "mem") 1 3)
  (global (mut i32) i32.const 60)
  (export "f0" (func 2))
  (func (type 3) (param i32 f32 i32 i64) (result f64 f64)
    i32.const 0
    if
      f64.const 0x0p+0
      drop
    end
    unreachable
  )
  (func (type 1) (result f32 f64 i32 v128 i32 i32 v128 i64 f32 v128 f64 f64)
    v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
    unreachable
  )
  (func (type 0) (param i32 i64) (result f32 f64 i32 v128 i32 i32 v128 i64 f32 v128 f64 f64)
    (local i32 i64 f32 f64 v128 i64 f64 v128 v128 f32 f32 f64 i32 i32 i32)
    global.get 0
    if (type 4) (result i32 i64)
      local.get 2
      i32.const 8
      local.set 14
      global.get 0
      local.get 12
      local.get 0
      local.get 1
      call 0
      drop
      drop
      v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
      local.get 8
      i32.const 0
      i32.load
      if (type 5) (param i32 v128 f64) (result i32)
        drop
        drop
        drop
        local.get 8
        local.get 12
        local.get 13
        local.get 4
        local.get 4
        i32.const 2
        call_indirect (type 2)
        drop
        drop
        drop
        local.set 4
        drop
        drop
        drop
        drop
        drop
        drop
        drop
        call 3
        drop
        drop
        drop
        drop
        drop
        drop
        drop
        drop
        drop
        drop
        local.set 5
        drop
        i32.const 0
      else
        drop
        drop
      end
      block (result v128)
        loop (result v128)
          local.get 14
          i32.eqz
          if
            v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
            br 2
          end
          i32.const 1
          local.set 14
          local.get 12
          local.set 4
          local.get 5
          local.get 5
          f64.le
          br_if 0
          unreachable
        end
      end
      call 1
      local.get 5
      f32.demote_f64
      local.get 4
      i32.const 0
      call_indirect (type 2)
      return
    else
      unreachable
    end
    unreachable
  )
  (func (type 2) (param f64 f32 f32) (result f32 f64 i32 v128 i32 i32 v128 i64 f32 v128 f64 f64)
    v128.const i32x4 0x00000000 0x00000000 0x00000000 0x00000000
    unreachable
  )
  (func (export "reset"))
)
