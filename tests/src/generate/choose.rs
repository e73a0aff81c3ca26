//! Chooses the declarations of a program. Most programs have one memory, two tables and no imports; each other feature is in a quarter or a
//! third of them.

use super::Value;
use super::shape::{Func, Global, Import, Memory, SMALL_TABLE, Shape, Table, types};
use crate::rng::Rng;
use weir_bytecode::types::{FuncType, ValType};

/// The limit of the product of the iterations of nested loops in a brief program.
const BRIEF_TRIPS: u32 = 100;

/// Chooses the declarations of a program, or of a brief one.
pub(super) fn shape(rng: &mut Rng, brief: bool) -> Shape {
    let (vectors, beyond_wasmi) = (rng.one_in(2), rng.one_in(4));
    let of = types(vectors);
    let types = func_types(rng, of);
    let linked = rng.one_in(4);
    let defined = if brief { 1 + rng.below(2) } else { 3 + rng.below(5) };
    let funcs = funcs(rng, types.len() as u32, defined, linked);
    let globals = globals(rng, of, linked);
    let memories = memories(rng, linked, &globals);
    let tables = tables(rng, linked, &globals, &funcs);
    let start = rng.one_in(3) || tables.iter().any(Table::filled_at_start);
    let max_trips = match brief {
        true => BRIEF_TRIPS,
        false if rng.one_in(16) => 1000,
        false => 30,
    };
    // Drawn from nothing, so that all other programs are those that they were before there were such loops.
    let dispatches = beyond_wasmi && memories.len() == 1;
    Shape { types, funcs, globals, memories, tables, start, brief, dispatches, max_trips, vectors, beyond_wasmi }
}

fn random_types(rng: &mut Rng, types: &[ValType], len: u32) -> Box<[ValType]> {
    // Sequences of one kind of register fill the registers of a calling convention.
    let kind = rng.below(4);
    let ty = |rng: &mut Rng| match kind {
        0 => *rng.pick(&types[..2]),
        1 => *rng.pick(&types[2..]),
        _ => *rng.pick(types),
    };
    (0..len).map(|_| ty(rng)).collect()
}

fn func_types(rng: &mut Rng, of: &[ValType]) -> Vec<FuncType> {
    // There are few different result lists, so that tail calls find targets.
    let results: Vec<Box<[ValType]>> = (0..2 + rng.below(2))
        .map(|_| {
            let len = *rng.pick(&[0, 1, 1, 1, 1, 2, 3, 12]);
            random_types(rng, of, len)
        })
        .collect();
    let mut types: Vec<FuncType> = Vec::new();
    for _ in 0..3 + rng.below(4) {
        let len = if rng.one_in(5) { 5 + rng.below(8) } else { rng.below(5) };
        let ty = FuncType { params: random_types(rng, of, len), results: rng.pick(&results).clone() };
        if !types.contains(&ty) {
            types.push(ty);
        }
    }
    types
}

/// Distinct indices of items, one at least, for the other instance to provide.
fn some(rng: &mut Rng, count: usize) -> Vec<usize> {
    let first = rng.below(count as u32) as usize;
    (0..count).filter(|&i| i == first || rng.one_in(4)).collect()
}

fn funcs(rng: &mut Rng, types: u32, defined: u32, linked: bool) -> Vec<Func> {
    let defined: Vec<Func> = (0..defined).map(|_| Func { ty: rng.below(types), import: None, calm: false }).collect();
    let mut funcs = Vec::new();
    if rng.one_in(3) {
        for i in 0..1 + rng.below(3) {
            // Names are distinct.
            let import = Some(Import::Host(4 * rng.below(1000) + i));
            funcs.push(Func { ty: rng.below(types), import, calm: rng.one_in(2) });
        }
    }
    if linked {
        let of_other = some(rng, defined.len()).into_iter();
        funcs.extend(of_other.map(|k| Func { import: Some(Import::Other(k as u32)), ..defined[k].clone() }));
    }
    funcs.extend(defined);
    funcs
}

fn globals(rng: &mut Rng, of: &[ValType], linked: bool) -> Vec<Global> {
    let each = of.len();
    let mut defined: Vec<Global> = (0..each + rng.below(6) as usize)
        .map(|i| {
            let (ty, mutable) = (of[i % each], i < each || rng.percent(70));
            Global { ty, mutable, value: Value::random(ty, rng), import: None }
        })
        .collect();
    let mut globals = Vec::new();
    if rng.one_in(3) {
        for i in 0..1 + rng.below(3) {
            let number = 4 * rng.below(1000) + i;
            let (ty, mutable) = match rng.below(4) {
                0 => (ValType::I32, false),
                1 => (ValType::I64, false),
                _ => (*rng.pick(of), true),
            };
            let value = Value::of_global(&number.to_string(), ty, mutable);
            globals.push(Global { ty, mutable, value, import: Some(Import::Host(number)) });
        }
    }
    if linked && rng.one_in(2) {
        let of_other = some(rng, defined.len());
        let imports = globals.len() + of_other.len();
        for k in of_other {
            let (number, global) = ((imports + k) as u32, &mut defined[k]);
            // The offset of a segment is the same in both instances.
            global.value = Value::of_global(&number.to_string(), global.ty, global.mutable);
            globals.push(Global { import: Some(Import::Other(number)), ..global.clone() });
        }
    }
    globals.extend(defined);
    globals
}

/// The type of addresses or indices.
fn index_type(rng: &mut Rng) -> ValType {
    if rng.one_in(4) { ValType::I64 } else { ValType::I32 }
}

/// An immutable imported global of type `ty` as the offset of a segment.
fn offset(rng: &mut Rng, globals: &[Global], ty: ValType) -> Option<usize> {
    let fits = |global: &Global| global.import.is_some() && !global.mutable && global.ty == ty;
    let candidates: Vec<usize> = (0..globals.len()).filter(|&i| fits(&globals[i])).collect();
    (!candidates.is_empty() && rng.percent(75)).then(|| *rng.pick(&candidates))
}

fn memories(rng: &mut Rng, linked: bool, globals: &[Global]) -> Vec<Memory> {
    let count = if rng.one_in(3) { 1 + rng.below(3) } else { 1 };
    let memories = (0..count).map(|i| {
        let address = index_type(rng);
        let import = rng.one_in(5).then_some(Import::Host(i));
        Memory { address, pages: 1 + rng.below(2), import, offset: offset(rng, globals, address) }
    });
    let (mut memories, defined): (Vec<Memory>, Vec<Memory>) = memories.partition(|memory| memory.import.is_some());
    if let Some(first) = defined.first().filter(|_| linked && count < 3) {
        // Of the other instance it is the first memory that the module defines, after this import.
        let import = Some(Import::Other(memories.len() as u32 + 1));
        memories.push(Memory { import, ..first.clone() });
    }
    memories.extend(defined);
    memories
}

fn tables(rng: &mut Rng, linked: bool, globals: &[Global], funcs: &[Func]) -> Vec<Table> {
    let called_len = 8 << rng.below(2);
    let tables = [(called_len, called_len + 4), (SMALL_TABLE, SMALL_TABLE)].into_iter().zip(0..).map(|((len, max), i)| {
        let index = index_type(rng);
        let import = rng.one_in(5).then_some(Import::Host(i));
        let private = i == 0 && import.is_none() && !linked && rng.one_in(2);
        let mut table = Table { index, len, max, import, first: 0, elements: Vec::new(), offset: None, private };
        if private {
            let own = (0..).zip(funcs).filter(|(_, func)| func.import.is_none()).map(|(i, _)| i);
            table.elements = own.take(len as usize).collect();
            let first = rng.below(table.elements.len() as u32);
            table.elements.rotate_left(first as usize);
        } else if i == 0 {
            table.offset = offset(rng, globals, index);
            table.first = table.offset.map_or(0, |global| globals[global].value.canonical_bits() as u32);
            table.elements = (0..len - rng.below(3) - table.first).map(|_| rng.below(funcs.len() as u32)).collect();
        }
        table
    });
    let (mut tables, defined): (Vec<Table>, Vec<Table>) = tables.partition(|table| table.import.is_some());
    if let Some(first) = defined.first().filter(|_| linked) {
        let import = Some(Import::Other(tables.len() as u32 + 1));
        tables.push(Table { import, offset: None, ..first.clone() });
    }
    tables.extend(defined);
    tables
}
