;; Does one thing, which the first letter of its first argument names; each function below says what.
(module
  (import "wasi_snapshot_preview1" "args_sizes_get" (func $args_sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "args_get" (func $args (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_sizes_get" (func $environ_sizes (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "environ_get" (func $environ (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_prestat_get" (func $prestat (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_prestat_dir_name" (func $prestat_name (param i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "path_open"
    (func $path_open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "clock_time_get" (func $clock (param i32 i64 i32) (result i32)))
  (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))

  ;; 0: a vector of input or output; 8: a result; 64: a subscription; 128: an event; 256: digits; 1024: pointers of arguments;
  ;; 8192: arguments; 65536: a buffer.
  (memory (export "memory") 4)
  (global $count (mut i32) (i32.const 0))

  (func $write (param $fd i32) (param $at i32) (param $len i32)
    (i32.store (i32.const 0) (local.get $at))
    (i32.store (i32.const 4) (local.get $len))
    (drop (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))

  (func $newline
    (i32.store8 (i32.const 255) (i32.const 10))
    (call $write (i32.const 1) (i32.const 255) (i32.const 1)))

  (func $len (param $text i32) (result i32) (local $at i32)
    (local.set $at (local.get $text))
    (block $end
      (loop $next
        (br_if $end (i32.eqz (i32.load8_u (local.get $at))))
        (local.set $at (i32.add (local.get $at) (i32.const 1)))
        (br $next)))
    (i32.sub (local.get $at) (local.get $text)))

  (func $line (param $text i32)
    (call $write (i32.const 1) (local.get $text) (call $len (local.get $text)))
    (call $newline))

  (func $number (param $value i64) (local $at i32)
    (local.set $at (i32.const 300))
    (loop $next
      (local.set $at (i32.sub (local.get $at) (i32.const 1)))
      (i32.store8 (local.get $at) (i32.add (i32.const 48) (i32.wrap_i64 (i64.rem_u (local.get $value) (i64.const 10)))))
      (local.set $value (i64.div_u (local.get $value) (i64.const 10)))
      (br_if $next (i64.ne (local.get $value) (i64.const 0))))
    (call $write (i32.const 1) (local.get $at) (i32.sub (i32.const 300) (local.get $at)))
    (call $newline))

  (func $parse (param $text i32) (result i32) (local $value i32)
    (block $end
      (loop $next
        (br_if $end (i32.eqz (i32.load8_u (local.get $text))))
        (local.set $value
          (i32.add (i32.mul (local.get $value) (i32.const 10)) (i32.sub (i32.load8_u (local.get $text)) (i32.const 48))))
        (local.set $text (i32.add (local.get $text) (i32.const 1)))
        (br $next)))
    (local.get $value))

  (func $arg (param $index i32) (result i32)
    (if (i32.ge_u (local.get $index) (global.get $count)) (then unreachable))
    (i32.load (i32.add (i32.const 1024) (i32.mul (local.get $index) (i32.const 4)))))

  ;; a: prints the arguments.
  (func $print_args (local $i i32)
    (loop $next
      (call $line (call $arg (local.get $i)))
      (local.set $i (i32.add (local.get $i) (i32.const 1)))
      (br_if $next (i32.lt_u (local.get $i) (global.get $count)))))

  ;; e: prints the environment.
  (func $print_environment (local $i i32)
    (drop (call $environ_sizes (i32.const 16) (i32.const 20)))
    (drop (call $environ (i32.const 65536) (i32.const 131072)))
    (block $end
      (loop $next
        (br_if $end (i32.ge_u (local.get $i) (i32.load (i32.const 16))))
        (call $line (i32.load (i32.add (i32.const 65536) (i32.mul (local.get $i) (i32.const 4)))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br $next))))

  ;; p: prints the names of the preopened directories.
  (func $print_preopened (local $fd i32)
    (local.set $fd (i32.const 3))
    (block $end
      (loop $next
        (br_if $end (call $prestat (local.get $fd) (i32.const 16)))
        (drop (call $prestat_name (local.get $fd) (i32.const 65536) (i32.load (i32.const 20))))
        (call $write (i32.const 1) (i32.const 65536) (i32.load (i32.const 20)))
        (call $newline)
        (local.set $fd (i32.add (local.get $fd) (i32.const 1)))
        (br $next))))

  ;; Opens the second argument, a path without `/` at its beginning, in the first preopened directory. Prints an error's number.
  (func $open (param $flags i32) (param $rights i64) (result i32) (local $error i32)
    (local.set $error
      (call $path_open (i32.const 3) (i32.const 1) (call $arg (i32.const 2)) (call $len (call $arg (i32.const 2)))
        (local.get $flags) (local.get $rights) (i64.const 0) (i32.const 0) (i32.const 16)))
    (if (local.get $error)
      (then
        (call $number (i64.extend_i32_u (local.get $error)))
        (call $exit (i32.const 1))))
    (i32.load (i32.const 16)))

  ;; Copies an input to standard output until it ends.
  (func $copy (param $fd i32) (local $len i32)
    (loop $next
      (i32.store (i32.const 0) (i32.const 65536))
      (i32.store (i32.const 4) (i32.const 65536))
      (if (call $fd_read (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8)) (then (return)))
      (local.set $len (i32.load (i32.const 8)))
      (if (local.get $len)
        (then
          (call $write (i32.const 1) (i32.const 65536) (local.get $len))
          (br $next)))))

  ;; l: sleeps for a thousand seconds.
  (func $sleep
    (i32.store8 (i32.const 72) (i32.const 0))
    (i32.store (i32.const 80) (i32.const 1))
    (i64.store (i32.const 88) (i64.const 1000000000000))
    (drop (call $poll (i32.const 64) (i32.const 128) (i32.const 1) (i32.const 8))))

  ;; q: waits in a poll until standard input can be read.
  (func $poll_input
    (i32.store8 (i32.const 72) (i32.const 1))
    (i32.store (i32.const 80) (i32.const 0))
    (drop (call $poll (i32.const 64) (i32.const 128) (i32.const 1) (i32.const 8))))

  ;; Grows the memory by single pages, at most so many, and writes to each. Returns the number.
  (func $grow (param $most i32) (result i32) (local $pages i32) (local $at i32)
    (block $end
      (loop $next
        (br_if $end (i32.ge_u (local.get $pages) (local.get $most)))
        (local.set $at (memory.grow (i32.const 1)))
        (br_if $end (i32.eq (local.get $at) (i32.const -1)))
        (memory.fill (i32.mul (local.get $at) (i32.const 65536)) (i32.const 1) (i32.const 65536))
        (local.set $pages (i32.add (local.get $pages) (i32.const 1)))
        (br $next)))
    (local.get $pages))

  ;; t: traps in a function that a function calls.
  (func $inner (param $n i32) (result i32) (i32.div_u (i32.const 1) (local.get $n)))
  (func $outer (result i32) (call $inner (i32.const 0)))

  (func (export "_start") (local $what i32)
    (drop (call $args_sizes (i32.const 16) (i32.const 20)))
    (global.set $count (i32.load (i32.const 16)))
    (drop (call $args (i32.const 1024) (i32.const 8192)))
    (local.set $what (i32.load8_u (call $arg (i32.const 1))))
    (if (i32.eq (local.get $what) (i32.const 97)) (then (call $print_args)))
    (if (i32.eq (local.get $what) (i32.const 101)) (then (call $print_environment)))
    (if (i32.eq (local.get $what) (i32.const 112)) (then (call $print_preopened)))
    ;; r: prints a file.
    (if (i32.eq (local.get $what) (i32.const 114)) (then (call $copy (call $open (i32.const 0) (i64.const 2)))))
    ;; w: makes a file.
    (if (i32.eq (local.get $what) (i32.const 119))
      (then (call $write (call $open (i32.const 1) (i64.const 64)) (i32.const 8192) (i32.const 1))))
    ;; i: copies standard input.
    (if (i32.eq (local.get $what) (i32.const 105)) (then (call $copy (i32.const 0))))
    ;; o: writes to standard output for ever.
    (if (i32.eq (local.get $what) (i32.const 111))
      (then (loop $more (call $write (i32.const 1) (i32.const 65536) (i32.const 65536)) (br $more))))
    ;; s: computes for ever.
    (if (i32.eq (local.get $what) (i32.const 115)) (then (loop $more (br $more))))
    (if (i32.eq (local.get $what) (i32.const 108)) (then (call $sleep)))
    (if (i32.eq (local.get $what) (i32.const 113)) (then (call $poll_input)))
    ;; g: grows as far as possible, prints the number of pages, and sleeps if there is another argument.
    (if (i32.eq (local.get $what) (i32.const 103))
      (then
        (call $number (i64.extend_i32_u (call $grow (i32.const 65536))))
        (if (i32.gt_u (global.get $count) (i32.const 2)) (then (call $sleep)))))
    ;; m: grows as far as possible, prints the number of pages, waits for input, and does so again.
    (if (i32.eq (local.get $what) (i32.const 109))
      (then
        (loop $more
          (call $number (i64.extend_i32_u (call $grow (i32.const 65536))))
          (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
          (br $more))))
    ;; k: for ever grows by nothing and copies much.
    (if (i32.eq (local.get $what) (i32.const 107))
      (then
        (drop (call $grow (i32.const 1000)))
        (loop $more
          (drop (memory.grow (i32.const 0)))
          (memory.fill (i32.const 65536) (i32.const 1) (i32.const 60000000))
          (br $more))))
    (if (i32.eq (local.get $what) (i32.const 116)) (then (drop (call $outer))))
    ;; x: exits with a status.
    (if (i32.eq (local.get $what) (i32.const 120)) (then (call $exit (call $parse (call $arg (i32.const 2))))))
    ;; n: prints a random number and the time.
    (if (i32.eq (local.get $what) (i32.const 110))
      (then
        (drop (call $random (i32.const 16) (i32.const 8)))
        (call $number (i64.load (i32.const 16)))
        (drop (call $clock (i32.const 0) (i64.const 1) (i32.const 16)))
        (call $number (i64.load (i32.const 16)))))))
