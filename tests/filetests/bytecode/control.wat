;; test: bytecode
(module
  (type $two (func (param i32) (result i32 i64)))
  (memory $a 1)
  (memory $b 1)
  (table $t 1 funcref)
  (table $u 1 externref)
  (data $d "x")
  (elem declare func $named)
  (func $named (type $two)
    (local f32 externref)
    block (result i32)
      loop (result i32)
        local.get 0
        local.get 0
        if (type $two)
          i64.const 7
        else
          f64.const nan:0x123
          drop
          f32.const -0x1p-3
          local.set 1
          i64.const -7
          local.get 0
          br_table 0 0 0
        end
        drop
        i32.const -1
        i32.and
        br_if 0
        i32.const 5
      end
    end
    i64.load32_s $b offset=16
    local.get 0
    i32.load8_u
    i32.const 0
    i32.const 0
    memory.init $b $d
    (drop (table.grow $u (ref.null extern) (i32.const 1)))
    (call_indirect $t (param i32) (i32.const 1) (i32.const 0))
    unreachable)
  (func (drop (select (result funcref) (ref.null func) (ref.func $named) (i32.const 1)))))
;; expect
;; func 0 [i32] -> [i32 i64] ;; named
;; locals f32 externref
;; 0x000040    block (result i32)
;; 0x000042      loop (result i32)
;; 0x000044        local.get 0
;; 0x000046        local.get 0
;; 0x000048        if (type 0)
;; 0x00004a          i64.const 7
;; 0x00004c        else
;; 0x00004d          f64.const nan:0x123
;; 0x000056          drop
;; 0x000057          f32.const -0.125
;; 0x00005c          local.set 1
;; 0x00005e          i64.const -7
;; 0x000060          local.get 0
;; 0x000062          br_table 0 0 0
;; 0x000067        end
;; 0x000068        drop
;; 0x000069        i32.const -1
;; 0x00006b        i32.and
;; 0x00006c        br_if 0
;; 0x00006e        i32.const 5
;; 0x000070      end
;; 0x000071    end
;; 0x000072    i64.load32_s 1 offset=16
;; 0x000076    local.get 0
;; 0x000078    i32.load8_u
;; 0x00007b    i32.const 0
;; 0x00007d    i32.const 0
;; 0x00007f    memory.init 1 0
;; 0x000083    ref.null extern
;; 0x000085    i32.const 1
;; 0x000087    table.grow 1
;; 0x00008a    drop
;; 0x00008b    i32.const 1
;; 0x00008d    i32.const 0
;; 0x00008f    call_indirect (type 1)
;; 0x000092    unreachable
;; 0x000093  end
;; func 1 [] -> []
;; 0x000096    ref.null func
;; 0x000098    ref.func 0
;; 0x00009a    i32.const 1
;; 0x00009c    select (result funcref)
;; 0x00009f    drop
;; 0x0000a0  end
