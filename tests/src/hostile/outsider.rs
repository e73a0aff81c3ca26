//! Attacks whose author did not write the code that they attack.

use super::attack::{Attack, ELEMENT};
use super::wasm::{
    ADD, BR_IF_0, DROP, END, FUNCREF, I32, I64, LOOP, UNREACHABLE, V128, Wasm, call, forever, get, leb, number, repeat, set,
    signed, text,
};

/// Every attack.
pub const ALL: &[Attack] = &[
    Attack::new(
        "callees of many locals",
        "sixty calls to inline in each function, and each callee of six bytes has thirty thousand locals",
        callees,
    ),
    Attack::new(
        "loops that become vectors",
        "each loop becomes one of vectors, one of what is left, and the checks before them",
        |size| {
            const LOAD: [u8; 3] = [0x28, 2, 0];
            const STORE: [u8; 3] = [0x36, 2, 0];
            let next = |local| [get(local), number(4), ADD.into(), set(local)].concat();
            let body = [&get(1)[..], &get(2), &LOAD, &get(3), &ADD, &STORE, &next(1), &next(2)].concat();
            let one = [number(0), set(1), number(1 << 15), set(2), repeat(0, 64, &body)].concat();
            program(&[(4, I32)], &one.repeat((size / one.len()).max(1)))
        },
    ),
    Attack::new("constants that differ in their upper bits", "a hash that multiplies leaves their lower bits equal", |size| {
        let one = |i: usize| [&get(0)[..], &[0x42], &signed((i as i64) << 40), &[0x85], &set(0)].concat();
        program(&[(1, I64)], &(1..=(size / 13).max(1)).flat_map(one).collect::<Vec<u8>>())
    }),
    Attack::new("a write of many buffers", "a call of the host writes 64 gigabytes, a thousand times the same memory", |_| {
        text(
            r#"(module
                (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
                (memory (export "memory") 1024)
                (func (export "_start") (local $at i32)
                    (loop $next
                        (i32.store offset=4 (local.get $at) (i32.const 67108864))
                        (br_if $next (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 8))) (i32.const 8192))))
                    (loop (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1024) (i32.const 8192))) (br 0))))"#,
        )
    })
    .holding(|_| 64 << 20),
    Attack::new("a million subscriptions", "a call of the host waits for more than a million clocks, which are over", |_| {
        text(
            r#"(module
                (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
                (memory (export "memory") 2048)
                (func (export "_start") (loop
                    (drop (call $poll (i32.const 0) (i32.const 67108864) (i32.const 1398101) (i32.const 134217720)))
                    (br 0))))"#,
        )
    })
    .holding(|_| 128 << 20),
    Attack::new("exceptions of a thousand vectors", "each throw of two bytes makes an object of sixteen kilobytes", |_| {
        let mut module = Wasm::default();
        let (nothing, payload) = (module.ty(&[], &[]), module.ty(&[V128; 1000], &[]));
        let caught = module.ty(&[], &[V128; 1000]);
        module.tag(payload);
        let throw = [&[0x1F, 0x40, 1, 0, 0, 0][..], &get(0).repeat(1000), &[0x08, 0], &END, &UNREACHABLE].concat();
        let code = [&[0x02, caught as u8][..], &throw, &END, &DROP.repeat(1000)].concat();
        let start = module.func(nothing, &[(1, V128)], &forever(&code));
        module.export(b"_start", start);
        module.finish()
    }),
    Attack::new(
        "initialisations of a table in a row",
        "no loop: each instruction writes all elements, which are expressions",
        |size| {
            let count = (size / 6).max(1);
            let mut module = Wasm::default();
            let nothing = module.ty(&[], &[]);
            module.table(FUNCREF, count);
            module.elem(&[&[5, FUNCREF][..], &leb(count), &[0xD2, 0, 0x0B].repeat(count)].concat());
            let init = [&number(0)[..], &number(0), &number(count), &[0xFC, 0x0C, 0, 0]].concat();
            let start = module.func(nothing, &[], &init.repeat((size / 2 / init.len()).max(1)));
            module.export(b"_start", start);
            module.finish()
        },
    )
    .holding(|size| (size as u64 / 6).max(1) * ELEMENT),
    Attack::new(
        "every local in every loop",
        "as many loops in each other as fit beside fifty thousand locals, all of which the innermost assigns",
        |size| {
            let locals = (size / 12).clamp(1, 49_000);
            let assigned: Vec<u8> = (0..locals).flat_map(|local| [number(1), set(local)].concat()).collect();
            let back = [&number(0)[..], &BR_IF_0, &END].concat();
            let depth = (size.saturating_sub(assigned.len()) / (LOOP.len() + back.len())).max(1);
            program(&[(locals, I32)], &[LOOP.repeat(depth), assigned, back.repeat(depth)].concat())
        },
    ),
    Attack::new(
        "functions of middle size",
        "functions of a hundred kilobytes are hot together, and each takes the compiler some ten milliseconds",
        |size| {
            const BYTES: usize = 100 << 10;
            let (count, bytes) = ((size / BYTES).max(1), size.min(BYTES));
            let code = [&LOOP[..], &get(0), &BR_IF_0, &END].concat();
            called_in_turn(count, &number(0), |module| {
                let ty = module.ty(&[I32], &[]);
                (0..count).for_each(|_| _ = module.func(ty, &[], &code.repeat((bytes / code.len()).max(1))));
            })
        },
    ),
    Attack::new(
        "functions for Cranelift",
        "no native frame has room for their values, so that the compiler that cannot be stopped gets them",
        for_cranelift,
    ),
];

/// A module of which `_start` calls this code without end.
fn program(locals: &[(usize, u8)], code: &[u8]) -> Vec<u8> {
    let mut module = Wasm::default();
    let nothing = module.ty(&[], &[]);
    module.memory(1);
    let start = module.func(nothing, &[], &forever(&call(1)));
    module.func(nothing, locals, code);
    module.export(b"_start", start);
    module.finish()
}

/// A module of which `_start` calls `count` functions in turn, without end, each after the code `args`. `add` adds them, and a type.
fn called_in_turn(count: usize, args: &[u8], add: impl FnOnce(&mut Wasm)) -> Vec<u8> {
    let mut module = Wasm::default();
    let nothing = module.ty(&[], &[]);
    let calls: Vec<u8> = (1..=count).flat_map(|func| [args.to_vec(), call(func)].concat()).collect();
    let start = module.func(nothing, &[], &forever(&calls));
    add(&mut module);
    module.export(b"_start", start);
    module.finish()
}

fn callees(size: usize) -> Vec<u8> {
    const CALLEES: usize = 60;
    const LOCALS: usize = 30_000;
    let count = (size / 140).max(1);
    let mut module = Wasm::default();
    let nothing = module.ty(&[], &[]);
    // The callees come first, so that a call of one has two bytes.
    let callers: Vec<u8> = (1..=count).flat_map(|caller| call(CALLEES + caller)).collect();
    let start = module.func(nothing, &[], &forever(&callers));
    (0..CALLEES).for_each(|_| _ = module.func(nothing, &[(LOCALS, I64)], &[0x01]));
    let calls: Vec<u8> = (1..=CALLEES).flat_map(call).collect();
    (0..count).for_each(|_| _ = module.func(nothing, &[(1, I32)], &repeat(0, 4, &calls)));
    module.export(b"_start", start);
    module.finish()
}

/// Functions with 2,162 vectors that live at once: the differences of 47.
fn for_cranelift(size: usize) -> Vec<u8> {
    const LOCALS: usize = 47;
    const SPLAT: [u8; 2] = [0xFD, 0x11];
    const LESS: [u8; 2] = [0xFD, 0x71];
    const XOR: [u8; 2] = [0xFD, 0x51];
    let first = 2..2 + LOCALS;
    let assigned = first.clone().flat_map(|local| [&get(0)[..], &number(local), &ADD, &SPLAT, &set(local)].concat());
    let pairs = first.clone().flat_map(|a| first.clone().filter(move |b| a != *b).map(move |b| (a, b)));
    let values = pairs.flat_map(|(a, b)| [&get(a)[..], &get(b), &LESS].concat());
    let divided = [&get(1)[..], &[0x04, 0x40], &get(0), &get(1), &[0x6E], &set(1), &END].concat();
    let code = |mix: usize| {
        let mixed = call(mix).repeat(LOCALS * (LOCALS - 1) / 2);
        [assigned.clone().collect(), values.clone().collect(), divided.clone(), mixed].concat()
    };
    let count = (size / code(0).len()).max(1);
    called_in_turn(count, &[number(5), number(6)].concat(), |module| {
        let (two, mix) = (module.ty(&[I32, I32], &[]), module.ty(&[V128, V128], &[]));
        module.global(V128, true, &[&[0xFD, 0x0C][..], &[1; 16]].concat());
        (0..count).for_each(|_| _ = module.func(two, &[(LOCALS, V128)], &code(count + 1)));
        module.func(mix, &[], &[&[0x23, 0][..], &get(0), &get(1), &LESS, &XOR, &[0x24, 0]].concat());
    })
}
