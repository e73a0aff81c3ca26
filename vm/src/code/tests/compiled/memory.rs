//! Loads, stores, bounds, globals, and the helpers for the rest.

use super::super::rig::PAGE;
use super::{Guest, OUTSIDE, Options};
use weir_bytecode::Trap;
use weir_contract::Helper;

/// Memory 0 has 32-bit addresses, memory 1 has 64-bit addresses.
const MEMORIES: &str = "(module (memory 1) (memory i64 1)
    (func (param i32 i64) (result i64) unreachable)
    (func (param i64 i64) (result i64) unreachable))";

fn with_bounds(mut run: impl FnMut(Guest)) {
    for guard_regions in [true, false] {
        let mut guest = Guest::with_options(MEMORIES, Options { guard_regions, verify: true, ..Options::default() });
        for memory in &mut guest.world.memories {
            for (i, byte) in memory.bytes().iter_mut().enumerate() {
                *byte = (i * 7 + i / 256) as u8 | 0x80;
            }
        }
        run(guest);
    }
}

/// Addresses around the last at which an access of `width` bytes at `offset` is in bounds.
fn around_the_end(width: u64, offset: u64) -> [u64; 6] {
    let last = (PAGE as u64).wrapping_sub(width).wrapping_sub(offset);
    [0, 1, last.wrapping_sub(1), last, last.wrapping_add(1), u64::MAX - offset]
}

const WIDTHS: [(&str, &str, u64); 14] = [
    ("i32", "load", 4),
    ("i64", "load", 8),
    ("f32", "load", 4),
    ("f64", "load", 8),
    ("i32", "load8_s", 1),
    ("i32", "load8_u", 1),
    ("i32", "load16_s", 2),
    ("i32", "load16_u", 2),
    ("i64", "load8_s", 1),
    ("i64", "load8_u", 1),
    ("i64", "load16_s", 2),
    ("i64", "load16_u", 2),
    ("i64", "load32_s", 4),
    ("i64", "load32_u", 4),
];

const OFFSETS: [u64; 6] = [0, 3, 60000, 0x7fff_fff0, 0x8000_0000, 0xffff_ffff];

/// The instructions that turn `v2: ty` into `v9: i64`.
fn to_i64(ty: &str) -> &'static str {
    match ty {
        "i32" => "v9: i64 = extend_u v2",
        "i64" => "v3: i64 = const 0\n v9: i64 = add v2, v3",
        "f32" => "v3: i32 = reinterpret v2\n v9: i64 = extend_s v3",
        _ => "v9: i64 = reinterpret v2",
    }
}

fn loads_of_every_width_and_bounds() {
    with_bounds(|mut guest| {
        for (ty, op, width) in WIDTHS {
            for (func, memory, address) in [(0, "", "i32"), (1, " mem1", "i64")] {
                for offset in OFFSETS {
                    let text = format!(
                        "func {func} ({address}, i64) -> i64\n b0:\n v0: {address} = param 0\n v2: {ty} = {op}{memory} v0 +{offset}\n {}\n return v9",
                        to_i64(ty)
                    );
                    let cases = around_the_end(width, offset).map(|at| [if func == 0 { at & 0xffff_ffff } else { at }, 0]);
                    guest.agree(&text, &cases.each_ref().map(|case| &case[..]));
                }
            }
        }
    });
}

/// A store that reaches over the end leaves memory as it was.
fn stores_of_every_width_and_bounds() {
    with_bounds(|mut guest| {
        let stores = [
            ("i32", "store", 4),
            ("i64", "store", 8),
            ("i32", "store8", 1),
            ("i64", "store8", 1),
            ("i32", "store16", 2),
            ("i64", "store16", 2),
            ("i64", "store32", 4),
        ];
        for (ty, op, width) in stores {
            for (func, memory, address) in [(0, "", "i32"), (1, " mem1", "i64")] {
                for offset in [0, 60000, 0x8000_0000] {
                    let value = if ty == "i32" { "v2: i32 = wrap v1" } else { "v2: i64 = rotl v1, v1" };
                    let text = format!(
                        "func {func} ({address}, i64) -> i64\n b0:\n v0: {address} = param 0\n v1: i64 = param 1\n {value}\n {op}{memory} v0 +{offset}, v2\n return v1"
                    );
                    let cases = around_the_end(width, offset)
                        .map(|at| [if func == 0 { at & 0xffff_ffff } else { at }, 0x1122_3344_5566_7788]);
                    guest.agree(&text, &cases.each_ref().map(|case| &case[..]));
                }
            }
        }
    });
}

fn float_stores() {
    with_bounds(|mut guest| {
        guest.agree(
            "func 0 (i32, i64) -> i64
             b0:
               v0: i32 = param 0
               v1: i64 = param 1
               v2: f64 = reinterpret v1
               v3: i32 = wrap v1
               v4: f32 = reinterpret v3
               store v0 +16, v2
               store mem1 v1, v4
               return v1",
            &[&[8, 0x100], &[8, 0xffff], &[0xffff, 8]],
        );
    });
}

/// A value stored in one memory is loaded from another if both are one memory, imported twice.
fn memories_may_alias() {
    let mut guest = Guest::new(
        "(module (memory (import \"\" \"\") 1) (memory (import \"\" \"\") 1) (func (param i32 i32) (result i32) unreachable))",
    );
    let layout = guest.world.layout;
    *guest.world.tail(layout.memory(1)) = *guest.world.tail(layout.memory(0));
    guest.define(
        "func 0 (i32, i32) -> i32
         b0:
           v0: i32 = param 0
           v1: i32 = param 1
           v2: i32 = load mem1 v0
           store v0, v1
           v3: i32 = load mem1 v0
           v4: i32 = sub v3, v2
           return v4",
    );
    guest.world.memories[0].bytes()[..4].copy_from_slice(&5_u32.to_le_bytes());
    assert_eq!(guest.call(0, &[0, 47]), Ok(vec![42]));
}

/// A load whose value is unused still traps, and a trap comes after the stores before it.
fn traps_are_effects() {
    with_bounds(|mut guest| {
        guest.agree(
            "func 0 (i32, i64) -> i64
             b0:
               v0: i32 = param 0
               v1: i64 = param 1
               v2: i32 = const 16
               store v2, v1
               v3: i64 = load v0
               store v2 +8, v1
               return v1",
            &[&[0, 77], &[65530, 78], &[0xffff_ffff, 79]],
        );
    });
}

fn globals_own_and_imported() {
    let mut guest = Guest::new(
        "(module
           (global (import \"\" \"a\") (mut i64)) (global (import \"\" \"b\") f64)
           (global (mut i32) (i32.const 0)) (global (mut f32) (f32.const 0)) (global i64 (i64.const 0))
           (func (param i64) (result i64 f64 i32 f32 i64) unreachable))",
    );
    let layout = guest.world.layout;
    guest.world.imported_globals[0] = 11;
    guest.world.imported_globals[1] = u128::from(2.5_f64.to_bits());
    *guest.world.tail(layout.global(2)) = 33;
    *guest.world.tail(layout.global(3)) = u64::from(4.5_f32.to_bits());
    *guest.world.tail(layout.global(4)) = 55;
    guest.agree(
        "func 0 (i64) -> (i64, f64, i32, f32, i64)
         b0:
           v0: i64 = param 0
           v1: i64 = global_get g0
           v2: f64 = global_get g1
           v3: i32 = global_get g2
           v4: f32 = global_get g3
           v5: i64 = global_get g4
           v6: i32 = wrap v0
           v7: f32 = reinterpret v6
           global_set g0 v0
           global_set g2 v6
           global_set g3 v7
           v8: i64 = global_get g0
           v9: i64 = add v8, v1
           return v9, v2, v3, v4, v5",
        &[&[0x1_0000_0007], &[5]],
    );
}

fn sizes_are_in_pages_of_the_memory() {
    let mut guest = Guest::new("(module (memory 1) (memory i64 1) (func (result i32 i64) unreachable))");
    guest.define("func 0 () -> (i32, i64)\n b0:\n v0: i32 = memory_size\n v1: i64 = memory_size mem1\n return v0, v1");
    guest.world.memories[1].ctx.len = 0x30000;
    assert_eq!(guest.call(0, &[]), Ok(vec![1, 3]));
}

/// Helpers get their immediates packed, everything else zero-extended, and their status becomes a trap.
fn bulk_operations_go_to_helpers() {
    let mut guest = Guest::new(
        "(module (memory 1) (memory i64 1) (data \"\") (data \"\") (func (param i32 i32 i32 i64) (result i32) unreachable))",
    );
    guest.define(
        "func 0 (i32, i32, i32, i64) -> i32
         b0:
           v0: i32 = param 0
           v1: i32 = param 1
           v2: i32 = param 2
           v3: i64 = param 3
           v4: i32 = memory_grow v0
           v5: i64 = memory_grow mem1 v3
           memory_fill v0, v1, v2
           memory_copy mem1 mem0 v3, v1, v2
           memory_init mem1 data1 v3, v1, v2
           data_drop data1
           return v4 @0x60",
    );
    let dirt = 0xabcd << 32;
    let args = [dirt | 0xffff_ffff, dirt | 2, dirt | 3, 0x4_0000_0004];
    assert_eq!(guest.call(0, &args), Ok(vec![0]));
    let expected = [
        (Helper::MemoryGrow, vec![0, 0xffff_ffff]),
        (Helper::MemoryGrow, vec![1, 0x4_0000_0004]),
        (Helper::MemoryFill, vec![0, 0xffff_ffff, 2, 3]),
        (Helper::MemoryCopy, vec![1, 0x4_0000_0004, 2, 3]),
        (Helper::MemoryInit, vec![1 | 1 << 32, 0x4_0000_0004, 2, 3]),
        (Helper::DataDrop, vec![1]),
    ];
    assert_eq!(OUTSIDE.with_borrow(|outside| outside.helpers.clone()), expected);

    OUTSIDE.with_borrow_mut(|outside| outside.status = 1);
    guest.world.store.trap = Trap::MemoryOutOfBounds as u64;
    assert_eq!(guest.call(0, &args), Err(Trap::MemoryOutOfBounds));
    OUTSIDE.with_borrow_mut(|outside| outside.status = u64::MAX);
    guest.define("func 0 (i32, i32, i32, i64) -> i32\n b0:\n v0: i32 = param 0\n v1: i32 = memory_grow v0\n return v1");
    assert_eq!(guest.call(0, &args), Ok(vec![0xffff_ffff]));
}

fn table_operations_go_to_helpers() {
    let mut guest = Guest::new(
        "(module (table 1 funcref) (table i64 1 funcref) (elem func 0) (elem func 0)
           (func (param i32 i32 i32 i64 funcref) (result i32) unreachable))",
    );
    guest.define(
        "func 0 (i32, i32, i32, i64, ref) -> i32
         b0:
           v0: i32 = param 0
           v1: i32 = param 1
           v2: i32 = param 2
           v3: i64 = param 3
           v4: ref = param 4
           v5: i32 = table_grow table0 v4, v0
           v6: ref = ref_func f0
           table_set table0 v1, v6
           table_fill table1 v3, v4, v3
           table_copy table1 table0 v3, v1, v2
           table_init table1 elem1 v3, v1, v2
           elem_drop elem1
           v7: i32 = ref_is_null v4
           v8: i32 = add v5, v7
           return v8 @0x60",
    );
    let (dirt, far) = (0xabcd << 32, 0x4_0000_0004);
    assert_eq!(guest.call(0, &[dirt | 0xffff_ffff, dirt | 2, dirt | 3, far, 1 << 32]), Ok(vec![0]));
    let expected = [
        (Helper::TableGrow, vec![0, 1 << 32, 0xffff_ffff]),
        (Helper::RefFunc, vec![0]),
        (Helper::TableSet, vec![0, 2, 0]),
        (Helper::TableFill, vec![1, far, 1 << 32, far]),
        (Helper::TableCopy, vec![1, far, 2, 3]),
        (Helper::TableInit, vec![1 | 1 << 32, far, 2, 3]),
        (Helper::ElemDrop, vec![1]),
    ];
    assert_eq!(OUTSIDE.with_borrow(|outside| outside.helpers.clone()), expected);
    assert_eq!(guest.call(0, &[0, 0, 0, 0, 0]), Ok(vec![1]));

    OUTSIDE.with_borrow_mut(|outside| outside.status = 1);
    guest.world.store.trap = Trap::TableOutOfBounds as u64;
    assert_eq!(guest.call(0, &[0, 0, 0, 0, 0]), Err(Trap::TableOutOfBounds));
}

each_back_end! {
    loads_of_every_width_and_bounds
    stores_of_every_width_and_bounds
    float_stores
    memories_may_alias
    traps_are_effects
    globals_own_and_imported
    sizes_are_in_pages_of_the_memory
    bulk_operations_go_to_helpers
    table_operations_go_to_helpers
}
