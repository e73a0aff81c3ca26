//! Programs that run without end: each way back, and instructions that take long where nothing is polled.

use super::attack::{Attack, ELEMENT};
use super::wasm::{DROP, I32, Wasm, number, text};

/// Every attack.
pub const ALL: &[Attack] = &[
    Attack::new("a loop", "the shortest loop", |_| text(r#"(module (func (export "_start") (loop (br 0))))"#)),
    Attack::new("a loop by br_table", "the way back is a target of a table", |_| {
        text(r#"(module (func (export "_start") (loop (br_table 0 0 0 (i32.const 1)))))"#)
    }),
    Attack::new("loops by references", "the ways back are branches on references, null and others", |_| {
        text(
            r#"(module (elem declare func $f) (func $f)
                (func (export "_start") (local $i i32)
                    (loop $null
                        (local.set $i (i32.const 1000))
                        (loop $other
                            (block $out (result funcref)
                                (ref.func $f)
                                (br_if $out (i32.eqz (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
                                (drop)
                                (br $other))
                            (drop))
                        (ref.null func)
                        (br_on_null $null)
                        (drop))))"#,
        )
    }),
    Attack::new("a loop by exceptions", "the only way back is the handler of an exception", |_| {
        text(
            r#"(module (tag $t) (func (export "_start")
                (loop $back (try_table (catch $t $back) (throw $t)))))"#,
        )
    }),
    Attack::new("a loop by a callee's exceptions", "the same, and a function throws it", |_| {
        text(
            r#"(module (tag $t) (func $throw (throw $t))
                (func (export "_start") (loop $back (try_table (catch_all $back) (call $throw)))))"#,
        )
    }),
    Attack::new("tail calls", "functions that end with a call of another, directly, through a table and by reference", |_| {
        text(
            r#"(module (type $f (func)) (table funcref (elem $b)) (elem declare func $c)
                (func $a (export "_start") (return_call $b2))
                (func $b (return_call_ref $f (ref.func $c)))
                (func $b2 (return_call_indirect (type $f) (i32.const 0)))
                (func $c (return_call $a)))"#,
        )
    }),
    Attack::new("a start function", "the loop is where an instance is made", |_| {
        text(r#"(module (func $start (loop (br 0))) (start $start) (func (export "_start")))"#)
    }),
    Attack::new("calls without end", "each function calls the next one twice, fifty deep", |_| {
        let call = |i: usize| format!("(func $f{i} (call $f{0}) (call $f{0}))", i + 1);
        let funcs: String = (0..50).map(call).collect();
        text(&format!(r#"(module {funcs} (func $f50) (func (export "_start") (call $f0)))"#))
    }),
    Attack::new("fills in a row", "no loop: each instruction fills four gigabytes", |size| {
        bulk(65_536, size, &[&number(0)[..], &number(7), &number(usize::MAX), &[0xFC, 0x0B, 0]].concat())
    })
    .holding(|_| 4 << 30),
    Attack::new("fills of megabytes in a row", "no loop: each instruction fills 16 megabytes", |size| {
        bulk(256, size, &[&number(0)[..], &number(7), &number(256 << 16), &[0xFC, 0x0B, 0]].concat())
    })
    .holding(|_| 256 << 16),
    Attack::new("copies in a row", "no loop: each instruction copies 16 megabytes onto others", |size| {
        bulk(257, size, &[&number(1)[..], &number(0), &number(256 << 16), &[0xFC, 0x0A, 0, 0]].concat())
    })
    .holding(|_| 257 << 16),
    Attack::new("fills of a table in a row", "no loop: each instruction writes a million elements", |size| {
        tables(size, &[&number(0)[..], &[0xD0, 0x70], &number(TABLE), &[0xFC, 0x11, 0]].concat())
    })
    .holding(|_| TABLE as u64 * ELEMENT),
    Attack::new("copies of a table in a row", "no loop: each instruction copies a million elements", |size| {
        tables(size, &[&number(1)[..], &number(0), &number(TABLE - 1), &[0xFC, 0x0E, 0, 0]].concat())
    })
    .holding(|_| TABLE as u64 * ELEMENT),
    Attack::new("growth in a row", "no loop: each instruction asks for a page more than there can be", |size| {
        let grow = [&number(1)[..], &[0x40, 0], &DROP].concat();
        bulk(1, size, &grow)
    })
    .holding(|size| (size as u64 / 5).min(65_536) << 16),
    Attack::new("random numbers", "as many bytes as a call may ask for, again and again", |_| {
        text(
            r#"(module
                (import "wasi_snapshot_preview1" "random_get" (func $random (param i32 i32) (result i32)))
                (memory (export "memory") 1024)
                (func (export "_start") (loop (drop (call $random (i32.const 0) (i32.const 67108864))) (br 0))))"#,
        )
    })
    .holding(|_| 64 << 20),
    Attack::new("a wait", "the host waits for a day", |_| {
        text(
            r#"(module
                (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
                (memory (export "memory") 1)
                ;; A subscription to the monotonic clock: clock 1 at 16, and the time in nanoseconds at 24.
                (data (i32.const 16) "\01")
                (func (export "_start")
                    (i64.store (i32.const 24) (i64.const 86400000000000))
                    (drop (call $poll (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128)))))"#,
        )
    }),
    Attack::new("calls of the host", "the shortest call of the host, again and again", |_| {
        text(
            r#"(module
                (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
                (memory (export "memory") 1)
                (func (export "_start") (loop (drop (call $yield)) (br 0))))"#,
        )
    }),
];

/// Elements of a table.
const TABLE: usize = 1 << 20;

/// A program that executes this code again and again, without a loop, with a memory of this many pages.
fn bulk(pages: usize, size: usize, code: &[u8]) -> Vec<u8> {
    let mut module = Wasm::default();
    let nothing = module.ty(&[], &[]);
    module.memory(pages.min(65_536));
    let start = module.func(nothing, &[(1, I32)], &code.repeat((size.min(7_000_000) / code.len()).max(1)));
    module.export(b"_start", start);
    module.finish()
}

/// The same, with a table.
fn tables(size: usize, code: &[u8]) -> Vec<u8> {
    let mut module = Wasm::default();
    let nothing = module.ty(&[], &[]);
    module.table(0x70, TABLE);
    let start = module.func(nothing, &[], &code.repeat((size.min(7_000_000) / code.len()).max(1)));
    module.export(b"_start", start);
    module.finish()
}
