;; Prints a line and exits with status 7.
(module
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "hello from weir\n")
  (data (i32.const 0) "\10\00\00\00\10\00\00\00")
  (func (export "_start")
    (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
    (call $exit (i32.const 7)))
  (func (export "other")
    (drop (call $write (i32.const 2) (i32.const 0) (i32.const 1) (i32.const 8)))))
