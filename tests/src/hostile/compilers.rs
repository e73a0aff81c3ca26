//! Functions for compilers: much code, much state at many places, and much that is asked for at once.

use super::attack::Attack;
use super::wasm::{
    ADD, BLOCK, BR_IF_0, DROP, END, F64, I32, LOOP, RETURN, UNREACHABLE, V128, Wasm, call, forever, get, leb, number, repeat,
    set, table, tee,
};

/// Every attack.
pub const ALL: &[Attack] = &[
    Attack::new("jumps in a chain", "each target of a table is a block that only jumps to the next one", jumps_in_a_chain),
    Attack::new("a chain in a hot loop's function", "the same, requested while other functions wait for the compiler", hot_chain),
    Attack::new("tables of far labels", "tables of twenty thousand labels within a thousand blocks", tables_of_far_labels),
    Attack::new(
        "tables of large labels",
        "each label of a table takes a thousand values, of which validation checks the types",
        |size| {
            let unit = |labels: usize| {
                let table = table((0..labels).map(|_| 0));
                [&[0x02, 1][..], &UNKNOWN.repeat(1001), &table, &END, &DROP.repeat(1000)].concat()
            };
            let unit = unit((size / 2).clamp(1, 65_000));
            thousands(&[], &[I32; 1000], &unit.repeat((size / unit.len()).max(1)))
        },
    ),
    Attack::new("blocks of a thousand values", "a thousand values pass each of many blocks with a branch", |size| {
        let block = [&[0x02, 1][..], &UNKNOWN, &BR_IF_0, &END].concat();
        with_thousand(&block.repeat(size / block.len()))
    }),
    Attack::new("loops of a thousand values", "a thousand values pass each of many loops", |size| {
        let block = [&[0x03, 1][..], &UNKNOWN, &BR_IF_0, &END].concat();
        with_thousand(&block.repeat(size / block.len()))
    }),
    Attack::new("calls of a thousand values", "a call of two bytes moves two thousand values", |size| {
        with_thousand(&call(1).repeat(size / 2))
    }),
    Attack::new("unreachable values", "each block of five bytes has a thousand results, in code that is never reached", |size| {
        let block = [&[0x02, 1][..], &UNREACHABLE, &END, &UNREACHABLE].concat();
        thousands(&[], &[I32; 1000], &block.repeat(size / block.len()))
    }),
    Attack::new("locals in nested loops", "four hundred locals change within thousands of loops", |size| {
        const LOCALS: usize = 400;
        let depth = (size / 8).saturating_sub(LOCALS).max(1);
        let turn = (0..LOCALS).flat_map(|local| [get(local), number(1), ADD.into(), set((local + 1) % LOCALS)].concat());
        let turn: Vec<u8> = turn.collect();
        called(&[(LOCALS, I32)], &[LOOP.repeat(depth), turn, [&UNKNOWN[..], &BR_IF_0, &END].concat().repeat(depth)].concat())
    }),
    Attack::new("fifty thousand locals in loops", "as many locals as a function may have change within sixty loops", |size| {
        let count = (size / 12).clamp(1, 49_000);
        let turn: Vec<u8> = (0..count).flat_map(|local| [get(local), number(1), ADD.into(), set(local)].concat()).collect();
        called(&[(count, I32)], &[LOOP.repeat(60), turn, [&UNKNOWN[..], &BR_IF_0, &END].concat().repeat(60)].concat())
    }),
    Attack::new("a tree of loops", "each loop contains two, of which the innermost change fifty locals", |size| {
        let mut tree: Vec<u8> =
            (0..50).flat_map(|local| [get(local), number(1), ADD.into(), set((local + 1) % 50)].concat()).collect();
        while tree.len() * 2 < size {
            tree = [&LOOP[..], &tree, &tree, &UNKNOWN, &BR_IF_0, &END].concat();
        }
        called(&[(50, I32)], &tree)
    }),
    Attack::new("values that live across calls", "thousands of locals are read after thousands of calls", |size| {
        let count = (size / 20).clamp(1, 2000);
        let first: Vec<u8> = (0..count).flat_map(|local| [&UNKNOWN[..], &set(local)].concat()).collect();
        let last: Vec<u8> = (0..count).flat_map(|local| [&get(local)[..], &KEEP].concat()).collect();
        let calls = call(1).repeat(size / 4);
        let mut module = Wasm::default();
        let nothing = module.ty(&[], &[]);
        module.global(I32, true, &number(1));
        let start = module.func(nothing, &[], &forever(&call(2)));
        module.func(nothing, &[], &[]);
        module.func(nothing, &[(count, I32)], &[first, calls, last].concat());
        module.export(b"_start", start);
        module.finish()
    }),
    Attack::new("a deep expression", "as many operands as fit wait for the first addition", |size| {
        let count = size / 3;
        called(&[], &[UNKNOWN.repeat(count), ADD.repeat(count - 1), KEEP.into()].concat())
    }),
    Attack::new("a long expression", "each operation of one byte depends on the one before", |size| {
        called(&[], &[&UNKNOWN[..], &[0x45].repeat(size), &KEEP].concat())
    }),
    Attack::new("selections", "each selection depends on the one before", |size| {
        called(&[], &[&UNKNOWN[..], &[&UNKNOWN[..], &UNKNOWN, &[0x1B]].concat().repeat(size / 5), &KEEP].concat())
    }),
    Attack::new("shuffles", "each shuffle of vectors has a constant of its own", |size| {
        let shuffle = |i: usize| {
            let lanes: Vec<u8> = (0..16).map(|lane| ((i * 7 + lane * 5) % 32) as u8).collect();
            [get(i % 16), get((i + 1) % 16), vec![0xFD, 0x0D], lanes, set((i + 2) % 16)].concat()
        };
        called(&[(16, V128)], &(0..size / 24).flat_map(shuffle).collect::<Vec<u8>>())
    }),
    Attack::new(
        "instructions of much code",
        "conversions of one and two bytes, each of which is dozens of bytes of machine code",
        |size| {
            // f64 → u64 → f64
            let unit = [0xFC, 0x07, 0xBA];
            called(&[(1, F64)], &[get(0), unit.repeat(size / unit.len()), set(0)].concat())
        },
    ),
    Attack::new("vectors of much code", "operations on vectors that have no instruction of the processor", |size| {
        // i8x16.popcnt, i8x16.shl, i64x2.mul, each with the vector twice.
        let unit =
            [&get(0)[..], &[0xFD, 0x62], &number(3), &[0xFD, 0x6B], &tee(0), &get(0), &[0xFD, 0xD5, 0x01], &set(0)].concat();
        called(&[(1, V128)], &unit.repeat(size / unit.len()))
    }),
    Attack::new("loops that are each hot", "each loop of a function is continued in code of its own", |size| {
        let unit = repeat(0, 3000, &[]);
        called(&[(1, I32)], &unit.repeat(size / unit.len()))
    }),
    Attack::new("a function that keeps changing", "another arm of a table is hot every ten thousand calls", changing),
    Attack::new("functions that are each hot", "thousands of small functions are called in turn through a table", hot_functions),
    Attack::new("functions of all signatures", "each function has the signature that no other has, and is called", signatures),
];

/// A global that the compiler does not know: `global.get 0`.
const UNKNOWN: [u8; 2] = [0x23, 0];
/// `global.set 0`
const KEEP: [u8; 2] = [0x24, 0];

/// A module of which `_start` calls this code without end.
fn called(locals: &[(usize, u8)], code: &[u8]) -> Vec<u8> {
    let mut module = Wasm::default();
    let nothing = module.ty(&[], &[]);
    module.memory(1);
    module.global(I32, true, &number(0));
    let start = module.func(nothing, &[], &forever(&call(1)));
    module.func(nothing, locals, code);
    module.export(b"_start", start);
    module.finish()
}

/// The same, with a second type.
fn thousands(params: &[u8], results: &[u8], code: &[u8]) -> Vec<u8> {
    let mut module = Wasm::default();
    let nothing = module.ty(&[], &[]);
    let thousand = module.ty(params, results);
    module.global(I32, true, &number(0));
    let start = module.func(nothing, &[], &forever(&call(2)));
    let values: Vec<u8> = if params.is_empty() { UNREACHABLE.into() } else { (0..params.len()).flat_map(get).collect() };
    module.func(thousand, &[], &values);
    module.func(nothing, &[], code);
    module.export(b"_start", start);
    module.finish()
}

/// Code from a thousand values to a thousand values, for which there is type 1 and function 1.
fn with_thousand(code: &[u8]) -> Vec<u8> {
    thousands(&[I32; 1000], &[I32; 1000], &[&UNKNOWN.repeat(1000), code, &DROP.repeat(1000)].concat())
}

/// Nested blocks with one table of all labels.
fn chain(size: usize) -> Vec<u8> {
    let count = (size / 6).max(1);
    [BLOCK.repeat(count), UNKNOWN.into(), table(0..count), END.repeat(count)].concat()
}

fn jumps_in_a_chain(size: usize) -> Vec<u8> {
    called(&[], &chain(size))
}

fn hot_chain(size: usize) -> Vec<u8> {
    let mut module = Wasm::default();
    let nothing = module.ty(&[], &[]);
    module.global(I32, true, &number(0));
    let start = module.func(nothing, &[], &[call(1), call(2), forever(&call(3))].concat());
    for _ in 0..2 {
        module.func(nothing, &[(1, I32)], &[repeat(0, 60_000_000, &[]), chain(size / 2)].concat());
    }
    module.func(nothing, &[(1, I32)], &repeat(0, 1000, &[]));
    module.export(b"_start", start);
    module.finish()
}

fn tables_of_far_labels(size: usize) -> Vec<u8> {
    const DEPTH: usize = 1000;
    let labels = (size / 2).clamp(1, 20_000);
    let one = [&UNKNOWN[..], &[0x04, 0x40], &UNKNOWN, &table((0..labels).map(|i| 1 + i % DEPTH)), &END].concat();
    called(&[], &[BLOCK.repeat(DEPTH), one.repeat((size / one.len()).max(1)), END.repeat(DEPTH)].concat())
}

/// A loop around a table, of which one arm is much more frequent than the others for a time, then another.
fn changing(size: usize) -> Vec<u8> {
    let arms = (size / 24).clamp(2, 5000);
    let arm = |i: usize| [&END[..], &get(0), &number(i), &[0x73], &set(0), &[0x0C], &leb(arms - 1 - i)].concat();
    let pick = [get(1), number(10_000), vec![0x6E], number(arms), vec![0x70]].concat();
    let choice = [BLOCK.repeat(arms + 1), pick, table(0..arms)].concat();
    let code = [choice, (0..arms).flat_map(arm).collect(), END.into()].concat();
    let count = [get(1), number(1), ADD.into(), set(1)].concat();
    let mut module = Wasm::default();
    let nothing = module.ty(&[], &[]);
    let step = module.ty(&[I32, I32], &[I32]);
    let start = [get(0), get(1), call(1), set(0), count].concat();
    let start = module.func(nothing, &[(2, I32)], &forever(&start));
    module.func(step, &[], &[code, get(0)].concat());
    module.export(b"_start", start);
    module.finish()
}

/// Function `i` of a table computes with the number `i`.
fn hot_functions(size: usize) -> Vec<u8> {
    let count = (size / 24).max(1);
    let mut module = Wasm::default();
    let nothing = module.ty(&[], &[]);
    let step = module.ty(&[I32], &[I32]);
    module.table(0x70, count);
    let body = |i: usize| [get(0), number(i), ADD.into(), number(i | 1), vec![0x6C], number(i), vec![0x73]].concat();
    let indirect = [&get(0)[..], &get(1), &[0x11], &leb(step), &[0]].concat();
    let next = [get(1), number(1), ADD.into(), number(count), vec![0x70], set(1)].concat();
    let start = module.func(nothing, &[(2, I32)], &forever(&[indirect, set(0), next].concat()));
    let funcs: Vec<u8> = (0..count).flat_map(|i| leb(module.func(step, &[], &body(i)))).collect();
    module.elem(&[&[0][..], &number(0), &END, &leb(count), &funcs].concat());
    module.export(b"_start", start);
    module.finish()
}

/// Signatures of twelve parameters, each an i32 or an f64.
fn signatures(size: usize) -> Vec<u8> {
    let count = (size / 60).clamp(1, 4000);
    let mut module = Wasm::default();
    let nothing = module.ty(&[], &[]);
    let params = |i: usize| -> Vec<u8> { (0..12).map(|bit| if i >> bit & 1 == 0 { I32 } else { F64 }).collect() };
    let zeros = |i: usize| -> Vec<u8> {
        let zero = |ty: u8| if ty == I32 { number(0) } else { [&[0x44][..], &[0; 8]].concat() };
        params(i).into_iter().flat_map(zero).collect()
    };
    let calls: Vec<u8> = (0..count).flat_map(|i| [zeros(i), call(i + 1)].concat()).collect();
    let start = module.func(nothing, &[], &forever(&calls));
    for i in 0..count {
        let ty = module.ty(&params(i), &[]);
        module.func(ty, &[], &RETURN);
    }
    module.export(b"_start", start);
    module.finish()
}
