//! Programs whose frames, references, memories and tables are large or many.

use super::attack::{Attack, ELEMENT};
use super::wasm::{BLOCK, END, EXTERNREF, I32, RETURN, SUB, Wasm, call, forever, get, number, repeat, table, text};

/// Every attack.
pub const ALL: &[Attack] = &[
    Attack::new("recursion", "the shortest recursion", |_| {
        text(
            r#"(module (func $f (param i32) (result i32) (i32.add (call $f (local.get 0)) (i32.const 1)))
            (func (export "_start") (drop (call $f (i32.const 0)))))"#,
        )
    }),
    Attack::new("recursion with many locals", "a frame of four hundred kilobytes", |_| {
        text(&format!(r#"(module (func $f (export "_start") (local {}) (call $f)))"#, "i64 ".repeat(50_000)))
    }),
    Attack::new("recursion with many vectors", "a frame of eight hundred kilobytes", |_| {
        text(&format!(
            r#"(module (func $f (export "_start") (local {}) (call $f) (drop (i32x4.extract_lane 0 (local.get 7)))))"#,
            "v128 ".repeat(50_000)
        ))
    }),
    Attack::new("recursion with many operands", "a frame has as many operands as fit", |size| {
        let mut module = Wasm::default();
        let nothing = module.ty(&[], &[]);
        let count = size.min(7_000_000) / 3;
        module.func(nothing, &[(1, I32)], &[get(0).repeat(count), call(0), [0x1A].repeat(count)].concat());
        module.export(b"_start", 0);
        module.finish()
    }),
    Attack::new("recursion through references", "types of functions in turn, by table and by reference", |_| {
        text(
            r#"(module (type $a (func (param i32 f64))) (type $b (func (param v128)))
                (table 2 funcref) (elem (i32.const 0) $x $y) (elem declare func $x)
                (func $x (type $a) (call_indirect (type $b) (v128.const i64x2 1 2) (i32.const 1)))
                (func $y (type $b) (call_ref $a (i32.const 1) (f64.const 2) (ref.func $x)))
                (func (export "_start") (call $x (i32.const 0) (f64.const 1))))"#,
        )
    }),
    Attack::new(
        "exceptions from deep frames",
        "each exception is thrown through ten thousand frames with handlers of other tags",
        |_| {
            text(
                r#"(module (tag $a) (tag $b)
                (func $down (param i32)
                    (if (i32.eqz (local.get 0)) (then (throw $a)))
                    (block $caught (try_table (catch $b $caught) (call $down (i32.sub (local.get 0) (i32.const 1))))))
                (func (export "_start") (loop $again
                    (block $caught (try_table (catch $a $caught) (call $down (i32.const 10000))))
                    (br $again))))"#,
            )
        },
    ),
    Attack::new("clauses without a match", "an exception passes a hundred regions with hundreds of clauses each", clauses),
    Attack::new("exceptions in a chain", "each of a million exceptions refers to the one before", |_| {
        text(
            r#"(module (tag $t (param exnref)) (global $last (mut exnref) (ref.null exn))
                (func (export "_start") (local $i i32)
                    (local.set $i (i32.const 1000000))
                    (loop $next
                        (block $caught (result exnref exnref)
                            (try_table (catch_ref $t $caught) (throw $t (global.get $last)))
                            (unreachable))
                        (global.set $last)
                        (drop)
                        (br_if $next (local.tee $i (i32.sub (local.get $i) (i32.const 1)))))
                    (loop (br 0))))"#,
        )
    })
    // Collections copy.
    .holding(|_| 1_000_000 * 2 * 40),
    Attack::new(
        "references at many calls",
        "a collection needs the references of a frame with fifty thousand locals, at another call each time",
        |size| {
            at_many_calls(
                size.min(16 << 10),
                49_999,
                |sites| {
                    // Function 1 chooses the call by its argument.
                    forever(&repeat(0, sites, &[get(0), number(1), SUB.into(), call(1)].concat()))
                },
                |_, _| call(0),
            )
        },
    ),
    Attack::new(
        "frames at many calls",
        "collections need the references of frames of one function, each at another call",
        |size| {
            at_many_calls(
                size,
                1,
                |_| forever(&[number(0), call(1)].concat()),
                |site, sites| match site + 1 {
                    next if next == sites => call(0),
                    next => [number(next), call(1)].concat(),
                },
            )
        },
    ),
    Attack::new("a memory of 64 bits", "it grows by a page as long as it can, and is written", |_| {
        text(
            r#"(module (memory i64 1)
                (func (export "_start") (loop
                    (i64.store8 (i64.sub (i64.mul (memory.size) (i64.const 65536)) (i64.const 1)) (i64.const 1))
                    (br_if 0 (i64.lt_u (memory.grow (i64.const 1)) (i64.const 16384))))
                    (drop (memory.grow (i64.const 0x1000000000000)))
                    (loop (br 0))))"#,
        )
    })
    .holding(|_| 16_384 << 16),
    Attack::new("a memory of pages of a byte", "it grows by a byte, again and again", |_| {
        text(
            r#"(module (memory 0 (pagesize 1))
                (func (export "_start") (loop (drop (memory.grow (i32.const 1))) (br 0))))"#,
        )
    }),
    Attack::new("a memory that grows", "it grows by a page to its end, and then asks for more", |_| {
        text(
            r#"(module (memory 0)
                (func (export "_start") (loop (drop (memory.grow (i32.const 1))) (br 0))))"#,
        )
    }),
    Attack::new("a table that grows", "it grows by an element to its end, and then asks for more", |_| {
        text(
            r#"(module (table 0 externref)
                (func (export "_start") (loop (drop (table.grow (ref.null extern) (i32.const 1))) (br 0))))"#,
        )
    })
    .holding(|_| TEN_MILLION * ELEMENT),
    Attack::new("a table of 64 bits", "it asks for more than there is, and for all that it may have", |_| {
        text(
            r#"(module (table i64 0 funcref)
                (func (export "_start")
                    (drop (table.grow (ref.null func) (i64.const -1)))
                    (drop (table.grow (ref.null func) (i64.const 10000000)))
                    (loop (drop (table.grow (ref.null func) (i64.const 1))) (br 0))))"#,
        )
    })
    .holding(|_| TEN_MILLION * ELEMENT),
    Attack::new("large tables", "three tables of as many elements as a table may have", |_| {
        text(r#"(module (table 10000000 funcref) (table 10000000 funcref) (table 10000000 funcref) (func (export "_start")))"#)
    })
    .holding(|_| 3 * TEN_MILLION * ELEMENT),
    Attack::new("a large memory", "every page of four gigabytes is written, from the end on", |_| {
        text(
            r#"(module (memory 65536) (func (export "_start") (local $at i32)
                (loop $next
                    (i32.store8 (local.tee $at (i32.sub (local.get $at) (i32.const 4096))) (i32.const 1))
                    (br $next))))"#,
        )
    })
    .holding(|_| 4 << 30),
];

/// Most elements that a table may have.
const TEN_MILLION: u64 = 10_000_000;

/// A function that throws a tag of no clause within a hundred regions of clauses of other tags.
fn clauses(size: usize) -> Vec<u8> {
    const REGIONS: usize = 100;
    let tags = (size / REGIONS / 16).clamp(1, 500);
    let declared: String = (0..tags).map(|i| format!("(tag $t{i})")).collect();
    let clauses: String = (0..tags).map(|i| format!("(catch $t{i} 0)")).collect();
    let (open, close) = (format!("(block (try_table {clauses} ").repeat(REGIONS), "))".repeat(REGIONS));
    text(&format!(
        r#"(module (tag $none) {declared}
            (func $f {open} (throw $none) {close})
            (func (export "_start") (loop $again
                (block $caught (try_table (catch $none $caught) (call $f)))
                (br $again))))"#
    ))
}

/// A program of which function 0 makes garbage, and function 1, with this many locals that are references, chooses one of its calls by its
/// argument. The code of `_start` depends on the number of calls, and that of a call on its index, too.
fn at_many_calls(
    size: usize,
    locals: usize,
    start: impl Fn(usize) -> Vec<u8>,
    site: impl Fn(usize, usize) -> Vec<u8>,
) -> Vec<u8> {
    let sites = (size / 12).clamp(1, 30_000);
    let mut module = Wasm::default();
    let (nothing, choose) = (module.ty(&[], &[]), module.ty(&[I32], &[]));
    module.tag(nothing);
    // A block for the reference of the exception that is thrown in it.
    let garbage = [&[0x02, 0x69, 0x1F, 0x40, 1, 3, 0][..], &[0x08, 0], &END, &[0x00], &END, &[0x1A]].concat();
    module.func(nothing, &[(1, I32)], &repeat(0, 3000, &garbage));
    let arms: Vec<u8> = (0..sites).flat_map(|i| [&END[..], &site(i, sites), &RETURN].concat()).collect();
    let code = [BLOCK.repeat(sites), get(0), table(0..sites), arms].concat();
    module.func(choose, &[(locals, EXTERNREF)], &code);
    let start = module.func(nothing, &[(1, I32)], &start(sites));
    module.export(b"_start", start);
    module.finish()
}
