//! Loads and stores: every width at every kind of immediate and memory, and the edges of bounds.

use super::{assert_none_refused, call, engines_of_every_instruction, instantiate, run, run_trap, trap};
use crate::{Config, Trap, ValType};
use weir_bytecode::Opcode;
use weir_bytecode::semantics::{Access, access};

/// Functions `load` and `store` around `op`, between an address and the bits of the value as an i64.
fn module(op: Opcode, access: Access, memories: &str, operand: &str) -> String {
    let name = op.mnemonic();
    let (from_bits, to_bits) = match access.ty {
        ValType::I32 => ("i32.wrap_i64", "i64.extend_i32_u"),
        ValType::F32 => ("i32.wrap_i64 f32.reinterpret_i32", "i32.reinterpret_f32 i64.extend_i32_u"),
        ValType::F64 => ("f64.reinterpret_i64", "i64.reinterpret_f64"),
        _ => ("", ""),
    };
    let address = if memories.contains("i64") { "local.get 0" } else { "local.get 0 i32.wrap_i64" };
    let func = match access.store {
        true => format!("(func (export \"f\") (param i64 i64) {address} local.get 1 {from_bits} {name} {operand})"),
        false => format!("(func (export \"f\") (param i64) (result i64) {address} {name} {operand} {to_bits})"),
    };
    format!("(module {memories} {func})")
}

/// Declarations of memories, the immediates of an access to the exported memory, and the offset among them. The address
/// is chosen so that the access is at the memory's end.
const PLACES: &[(&str, &str, u64)] = &[
    ("(memory (export \"memory\") 1)", "", 0),
    ("(memory (export \"memory\") 1)", "offset=100", 100),
    ("(memory (export \"memory\") 1)", "offset=1000", 1000),
    ("(memory 0) (memory (export \"memory\") 1)", "1", 0),
    ("(memory (export \"memory\") i64 1)", "offset=5000", 5000),
    ("(memory 0) (memory (export \"memory\") i64 1)", "1 offset=7", 7),
];

#[test]
fn every_load_and_store_at_the_end_of_memory() {
    engines_of_every_instruction().iter().for_each(every_load_and_store_in);
}

fn every_load_and_store_in(config: &Config) {
    const PATTERN: [u8; 8] = [0x81, 0x92, 0xA3, 0xB4, 0xC5, 0xD6, 0xE7, 0xF8];
    let pattern = u64::from_le_bytes(PATTERN);
    for (op, access) in Opcode::ALL.iter().filter_map(|&op| Some((op, access(op)?))) {
        for &(memories, operand, offset) in PLACES {
            let what = format!("{} {operand} of {memories}", op.mnemonic());
            let width = access.width as usize;
            let (mut store, instance) = instantiate(config, &module(op, access, memories, operand));
            let memory = instance.get_memory(&mut store, "memory").unwrap();
            let last = 65536 - width;
            let address = (last as u64 - offset) as i64;
            if access.store {
                memory.write(&mut store, last - 1, &[0x55]).unwrap();
                call::<_, ()>(&mut store, instance, "f", (address, pattern as i64)).expect(&what);
                let bytes = &memory.data(&store)[last - 1..];
                assert_eq!((bytes[0], &bytes[1..]), (0x55, &PATTERN[..width]), "{what}");
                let error = call::<_, ()>(&mut store, instance, "f", (address + 1, 0i64)).unwrap_err();
                assert_eq!(trap(&error), Trap::MemoryOutOfBounds, "{what}");
                assert_eq!(&memory.data(&store)[last..], &PATTERN[..width], "{what} is all or nothing");
            } else {
                memory.write(&mut store, last, &PATTERN[..width]).unwrap();
                let found: i64 = call(&mut store, instance, "f", address).expect(&what);
                assert_eq!(found as u64, access.extend(pattern), "{what}");
                let error = call::<_, i64>(&mut store, instance, "f", address + 1).unwrap_err();
                assert_eq!(trap(&error), Trap::MemoryOutOfBounds, "{what}");
            }
            assert_none_refused(config, &store, instance);
        }
    }
}

#[test]
fn effective_addresses_do_not_wrap_around() {
    let load = |memory: &str, address: &str, offset: u64| {
        run_trap(&format!("(module (memory {memory}) (func (export \"f\") (drop (i32.load offset={offset} {address}))))"), ())
    };
    for offset in [1, 0x7FFF_FFFF, 0xFFFF_FFFF] {
        assert_eq!(load("1", "(i32.const -1)", offset), Trap::MemoryOutOfBounds);
    }
    for offset in [1, 4, 100, u64::MAX - 20, u64::MAX - 3, u64::MAX] {
        assert_eq!(load("i64 1", "(i64.const -1)", offset), Trap::MemoryOutOfBounds);
        assert_eq!(load("i64 1", "(i64.const -4)", offset), Trap::MemoryOutOfBounds);
        assert_eq!(load("i64 1", "(i64.const 20)", offset.max(65536)), Trap::MemoryOutOfBounds);
    }
    assert_eq!(load("i64 1", "(i64.const 0x100000000)", 0), Trap::MemoryOutOfBounds);
}

#[test]
fn the_upper_half_of_a_32_bit_address_is_ignored() {
    // The upper half of a wrapped i64 is unspecified.
    let wat = "(module (memory 1) (data (i32.const 8) \"\\2A\") (func (export \"f\") (param i64) (result i32)
        (i32.load8_u (i32.add (i32.wrap_i64 (local.get 0)) (i32.const -1)))))";
    assert_eq!(run::<_, i32>(wat, 0x7777_0000_0009i64).unwrap(), 42);
}

#[test]
fn growing_is_seen_at_once() {
    let wat = "(module (memory 1 3)
        (func $grow (param i32) (result i32) (memory.grow (local.get 0)))
        (func (export \"f\") (result i32)
            (drop (call $grow (i32.const 1)))
            (i32.store (i32.const 131068) (i32.const 7))
            (drop (memory.grow (i32.const 1)))
            (i32.store (i32.const 196604) (i32.const 8))
            (i32.add
                (i32.mul (memory.grow (i32.const 1)) (i32.const 1000))
                (i32.add
                    (i32.mul (memory.size) (i32.const 100))
                    (i32.add (i32.load (i32.const 131068)) (i32.load (i32.const 196604)))))))";
    assert_eq!(run::<_, i32>(wat, ()).unwrap(), -1000 + 300 + 15);
}

#[test]
fn a_module_without_memory_runs() {
    assert_eq!(run::<_, i32>("(module (func (export \"f\") (result i32) (i32.const 3)))", ()).unwrap(), 3);
}

#[test]
fn bulk_operations_check_bounds_first() {
    let bulk = |body: &str| {
        run_trap(
            &format!("(module (memory 1) (table 4 funcref) (elem $e func 0) (data $d \"abc\") (func (export \"f\") {body}))"),
            (),
        )
    };
    assert_eq!(bulk("(memory.fill (i32.const 65535) (i32.const 1) (i32.const 2))"), Trap::MemoryOutOfBounds);
    assert_eq!(bulk("(memory.copy (i32.const 0) (i32.const 65535) (i32.const 2))"), Trap::MemoryOutOfBounds);
    assert_eq!(bulk("(memory.init $d (i32.const 0) (i32.const 1) (i32.const 3))"), Trap::MemoryOutOfBounds);
    let dropped = "(data.drop $d) (memory.init $d (i32.const 0) (i32.const 0) (i32.const 1))";
    assert_eq!(bulk(dropped), Trap::MemoryOutOfBounds);
    assert_eq!(bulk("(table.fill (i32.const 3) (ref.null func) (i32.const 2))"), Trap::TableOutOfBounds);
    assert_eq!(bulk("(table.copy (i32.const 3) (i32.const 0) (i32.const 2))"), Trap::TableOutOfBounds);
    assert_eq!(bulk("(table.init $e (i32.const 0) (i32.const 1) (i32.const 1))"), Trap::TableOutOfBounds);
    assert_eq!(bulk("(drop (table.get (i32.const 4)))"), Trap::TableOutOfBounds);
    assert_eq!(bulk("(table.set (i32.const -1) (ref.null func))"), Trap::TableOutOfBounds);
}
