//! `memory.copy` and `memory.fill` of every short length, at every distance, and at the ends of the memory.

use crate::common::{each_engine, instance};
use weir::{Trap, TypedFunc};

const PAGE: u32 = 65536;

/// Both instructions on memory 0, and copies through another memory; `index` is the type of addresses in memory 0.
fn module(index: &str) -> String {
    let operand = |local: u32| match index {
        "i64" => format!("(i64.extend_i32_u (local.get {local}))"),
        _ => format!("(local.get {local})"),
    };
    let [to, second, len] = [0, 1, 2].map(operand);
    // Addresses and lengths that have 64 bits.
    let far = match index {
        "i64" => {
            "(memory.copy (local.get 0) (i64.const 100) (local.get 1)) (memory.fill (local.get 0) (i32.const 1) (local.get 1))"
        }
        _ => "",
    };
    format!(
        r#"(module (memory (export "memory") {index} 1 1) (memory 1)
            (func (export "copy") (param i32 i32 i32) (memory.copy {to} {second} {len}))
            (func (export "fill") (param i32 i32 i32) (memory.fill {to} (local.get 1) {len}))
            (func (export "far") (param i64 i64) {far})
            (func (export "through") (param i32 i32 i32)
                (memory.copy 1 0 (i32.const 5) {second} (local.get 2))
                (memory.copy 0 1 {to} (i32.const 5) (local.get 2))))"#
    )
}

/// Lengths on both sides of each power of two up to 256, and long ones.
fn lengths() -> impl Iterator<Item = u32> {
    let near = |n: u32| n.saturating_sub(1)..n + 2;
    (0..36).chain([48, 64, 96, 128, 256, 1024, 4096, PAGE].into_iter().flat_map(near))
}

/// Pairs of addresses for copies of `len` bytes: apart, overlapping by every number of bytes up to 40, at both ends of the memory, and beyond them.
fn places(len: u32) -> impl Iterator<Item = (u32, u32)> {
    let around = (0..=80).map(|distance| (1000 + distance, 1040));
    let ends = (0..70).step_by(3).chain(30..35).map(move |end| (end, PAGE - (len + end).min(PAGE)));
    let beyond = [(PAGE - len.min(PAGE) + 1, 0), (0, PAGE - len.min(PAGE) + 1), (u32::MAX, 8), (8, u32::MAX)];
    around.chain(ends.clone()).chain(ends.map(|(to, from)| (from, to))).chain(beyond)
}

/// What the instruction does to `bytes`.
fn expected(bytes: &mut [u8], name: &str, (to, second, len): (u32, u32, u32)) -> Option<Trap> {
    let range = |at: u32| at as usize..at as usize + len as usize;
    let is_within = |at: u32| u64::from(at) + u64::from(len) <= u64::from(PAGE);
    if !is_within(to) || name == "copy" && !is_within(second) {
        return Some(Trap::MemoryOutOfBounds);
    }
    match name {
        "copy" => bytes.copy_within(range(second), to as usize),
        _ => bytes[range(to)].fill(second as u8),
    }
    None
}

fn check(change: impl Fn(&mut weir::Config), fueled: bool, index: &str) {
    const FUEL: u64 = 1_000_000;
    each_engine(
        |config| {
            config.wasm_memory64(true).wasm_multi_memory(true);
            change(config);
        },
        |engine| {
            let (mut store, instance) = instance(engine, &module(index));
            let memory = instance.get_memory(&store, "memory").unwrap();
            let mut bytes: Vec<u8> = (0..PAGE).map(|i| (i * 7 + i / 256) as u8).collect();
            memory.data_mut(&mut store).copy_from_slice(&bytes);
            for name in ["copy", "fill"] {
                let call: TypedFunc<(u32, u32, u32), ()> = instance.get_typed_func(&mut store, name).unwrap();
                let mut without = None;
                for args in lengths().flat_map(|len| places(len).map(move |(to, second)| (to, second, len))) {
                    if fueled {
                        store.set_fuel(FUEL).unwrap();
                    }
                    let trap = call.call(&mut store, args).err().map(|error| *error.downcast_ref::<Trap>().unwrap());
                    assert_eq!(trap, expected(&mut bytes, name, args), "{name} {args:?}");
                    let (to, len) = (args.0 as usize, args.2 as usize);
                    let near = to.saturating_sub(100).min(bytes.len())..(to + len + 100).min(bytes.len());
                    assert!(memory.data(&store)[near.clone()] == bytes[near], "{name} {args:?}");
                    if fueled && trap.is_none() {
                        let taken = FUEL - store.get_fuel().unwrap();
                        let without = *without.get_or_insert(taken - u64::from(args.2) / 64);
                        assert_eq!(taken, without + u64::from(args.2) / 64, "{name} {args:?}");
                    }
                }
                assert!(memory.data(&store) == bytes, "{name}: elsewhere");
            }
            if index == "i64" {
                let far: TypedFunc<(u64, u64), ()> = instance.get_typed_func(&mut store, "far").unwrap();
                for to in [(1 << 32) + 8, 1 << 63, u64::MAX - 7, u64::MAX] {
                    for len in [8, 63, 1 << 32, u64::MAX] {
                        let error = far.call(&mut store, (to, len)).unwrap_err();
                        assert_eq!(error.downcast_ref(), Some(&Trap::MemoryOutOfBounds), "{to} {len}");
                    }
                }
                far.call(&mut store, (100, u64::MAX)).unwrap_err();
                assert!(memory.data(&store) == bytes, "after traps");
            }
            let through: TypedFunc<(u32, u32, u32), ()> = instance.get_typed_func(&mut store, "through").unwrap();
            if fueled {
                store.set_fuel(FUEL).unwrap();
            }
            through.call(&mut store, (2000, 3000, 33)).unwrap();
            bytes.copy_within(3000..3033, 2000);
            assert!(memory.data(&store) == bytes, "another memory");
        },
    );
}

#[test]
fn short_copies_and_fills() {
    check(|_| (), false, "");
}

#[test]
fn short_copies_and_fills_with_fuel() {
    check(
        |config| {
            config.consume_fuel(true);
        },
        true,
        "",
    );
}

#[test]
fn short_copies_and_fills_with_long_addresses() {
    check(|_| (), false, "i64");
}
