//! Builds a module around its bodies.

use super::shape::{
    FUEL_GLOBAL, Global, Import, MAX_PAGES, Memory, PASSIVE_DATA, PASSIVE_ELEM_SEGMENT, PASSIVE_ELEMS, Shape, Table, encoder_type,
};
use super::{Action, Value};
use crate::rng::Rng;
use std::borrow::Cow;
use wasm_encoder as enc;
use weir_bytecode::types::ValType;

/// Returns the module with these bodies.
pub(super) fn assemble(shape: &Shape, rng: &mut Rng, code: &[enc::Function]) -> Vec<u8> {
    let mut types = enc::TypeSection::new();
    for ty in &shape.types {
        types.ty().function(ty.params.iter().copied().map(encoder_type), ty.results.iter().copied().map(encoder_type));
    }
    let nothing = types.len();
    types.ty().function([], []);

    let mut funcs = enc::FunctionSection::new();
    shape.funcs.iter().filter(|func| func.import.is_none()).for_each(|func| {
        funcs.function(func.ty);
    });
    let reset = shape.funcs.len() as u32;
    let start = reset + 1;
    funcs.function(nothing);
    let mut bodies = enc::CodeSection::new();
    for body in code {
        bodies.function(body);
    }
    let mut body = enc::Function::new([]);
    body.instructions().i32_const(shape.fuel()).global_set(FUEL_GLOBAL).end();
    bodies.function(&body);
    if shape.start {
        funcs.function(nothing);
        bodies.function(&start_function(shape, rng, reset));
    }

    let mut module = enc::Module::new();
    module.section(&types).section(&imports(shape)).section(&funcs).section(&tables(shape)).section(&memories(shape));
    module.section(&globals(shape)).section(&exports(shape, reset));
    if shape.start {
        module.section(&enc::StartSection { function_index: start });
    }
    let (elements, data) = (elements(shape, rng), data(shape, rng));
    module.section(&elements).section(&enc::DataCountSection { count: data.len() }).section(&bodies).section(&data);
    module.finish()
}

fn constant(value: Value) -> enc::ConstExpr {
    match value {
        Value::I32(x) => enc::ConstExpr::i32_const(x),
        Value::I64(x) => enc::ConstExpr::i64_const(x),
        Value::F32(x) => enc::ConstExpr::f32_const(enc::Ieee32::new(x)),
        Value::F64(x) => enc::ConstExpr::f64_const(enc::Ieee64::new(x)),
        Value::V128(x) => enc::ConstExpr::v128_const(x as i128),
    }
}

const FUEL_TYPE: enc::GlobalType = enc::GlobalType { val_type: enc::ValType::I32, mutable: true, shared: false };

fn global_type(global: &Global) -> enc::GlobalType {
    enc::GlobalType { val_type: encoder_type(global.ty), mutable: global.mutable, shared: false }
}

fn table_type(table: &Table) -> enc::TableType {
    enc::TableType {
        element_type: enc::RefType::FUNCREF,
        table64: table.index == ValType::I64,
        minimum: table.len.into(),
        maximum: Some(table.max.into()),
        shared: false,
    }
}

fn memory_type(memory: &Memory) -> enc::MemoryType {
    enc::MemoryType {
        minimum: memory.pages.into(),
        maximum: Some(MAX_PAGES.into()),
        memory64: memory.address == ValType::I64,
        shared: false,
        page_size_log2: None,
    }
}

/// Imports are named as the exports of their kind, but functions of the host by what they do.
fn imports(shape: &Shape) -> enc::ImportSection {
    let mut section = enc::ImportSection::new();
    if shape.imports_fuel() {
        section.import("h", "fuel", FUEL_TYPE);
    }
    let mut add = |import: Option<Import>, kind: &str, ty: enc::EntityType| {
        let (module, number) = match import {
            Some(Import::Host(number)) => ("h", number),
            Some(Import::Other(number)) => ("o", number),
            None => return,
        };
        section.import(module, &format!("{kind}{number}"), ty);
    };
    for func in &shape.funcs {
        let kind = if matches!(func.import, Some(Import::Host(_))) { Action::prefix(func.calm) } else { "f" };
        add(func.import, kind, enc::EntityType::Function(func.ty));
    }
    for memory in &shape.memories {
        add(memory.import, "m", memory_type(memory).into());
    }
    for table in &shape.tables {
        add(table.import, "t", table_type(table).into());
    }
    for global in &shape.globals {
        add(global.import, "g", global_type(global).into());
    }
    section
}

fn tables(shape: &Shape) -> enc::TableSection {
    let mut section = enc::TableSection::new();
    shape.tables.iter().filter(|table| table.import.is_none()).for_each(|table| {
        section.table(table_type(table));
    });
    section
}

fn memories(shape: &Shape) -> enc::MemorySection {
    let mut section = enc::MemorySection::new();
    shape.memories.iter().filter(|memory| memory.import.is_none()).for_each(|memory| {
        section.memory(memory_type(memory));
    });
    section
}

fn globals(shape: &Shape) -> enc::GlobalSection {
    let mut section = enc::GlobalSection::new();
    if !shape.imports_fuel() {
        section.global(FUEL_TYPE, &enc::ConstExpr::i32_const(shape.fuel()));
    }
    shape.globals.iter().filter(|global| global.import.is_none()).for_each(|global| {
        section.global(global_type(global), &constant(global.value));
    });
    if shape.calls_global().is_some() {
        section.global(FUEL_TYPE, &enc::ConstExpr::i32_const(0));
    }
    section
}

/// Exports everything but the start function and private tables: imported functions only so that the elements of tables can be named.
fn exports(shape: &Shape, reset: u32) -> enc::ExportSection {
    let mut section = enc::ExportSection::new();
    for i in 0..shape.globals.len() as u32 {
        section.export(&format!("g{i}"), enc::ExportKind::Global, 1 + i);
    }
    section.export("fuel", enc::ExportKind::Global, FUEL_GLOBAL);
    if let Some(calls) = shape.calls_global() {
        section.export("calls", enc::ExportKind::Global, calls);
    }
    let imported = shape.imported_funcs();
    for i in 0..imported {
        section.export(&format!("i{i}"), enc::ExportKind::Func, i);
    }
    for i in imported..reset {
        section.export(&format!("f{}", i - imported), enc::ExportKind::Func, i);
    }
    section.export("reset", enc::ExportKind::Func, reset);
    for i in 0..shape.memories.len() as u32 {
        section.export(&format!("m{i}"), enc::ExportKind::Memory, i);
    }
    for (i, _) in (0..).zip(&shape.tables).filter(|(_, table)| !table.private) {
        section.export(&format!("t{i}"), enc::ExportKind::Table, i);
    }
    section
}

/// The offset of an active segment.
fn offset(global: Option<usize>, ty: ValType) -> enc::ConstExpr {
    match global {
        Some(global) => enc::ConstExpr::global_get(1 + global as u32),
        None if ty == ValType::I64 => enc::ConstExpr::i64_const(0),
        None => enc::ConstExpr::i32_const(0),
    }
}

/// The tables that the start function fills, each from the passive segment with the same place after the first one.
fn filled_at_start(shape: &Shape) -> impl Iterator<Item = (u32, &Table)> {
    (0..).zip(&shape.tables).filter(|(_, table)| table.filled_at_start())
}

fn elements(shape: &Shape, rng: &mut Rng) -> enc::ElementSection {
    let mut section = enc::ElementSection::new();
    let funcs = shape.funcs.len() as u32;
    let passive: Vec<u32> = (0..PASSIVE_ELEMS).map(|_| rng.below(funcs)).collect();
    section.passive(enc::Elements::Functions(passive.into()));
    for (_, table) in filled_at_start(shape) {
        section.passive(enc::Elements::Functions(Cow::Borrowed(&table.elements)));
    }
    for (i, table) in (0..).zip(&shape.tables) {
        if !table.elements.is_empty() && !table.filled_at_start() {
            let elements = enc::Elements::Functions(Cow::Borrowed(&table.elements));
            section.active((i != 0).then_some(i), &offset(table.offset, table.index), elements);
        }
    }
    section.declared(enc::Elements::Functions((0..funcs).collect()));
    section
}

fn data(shape: &Shape, rng: &mut Rng) -> enc::DataSection {
    let mut section = enc::DataSection::new();
    let mut random_bytes = |len: u32| (0..len).map(|_| rng.bits() as u8).collect::<Vec<u8>>();
    section.passive(random_bytes(PASSIVE_DATA));
    for (i, memory) in (0..).zip(&shape.memories) {
        section.active(i, &offset(memory.offset, memory.address), random_bytes(if i == 0 { 2048 } else { 256 }));
    }
    section
}

/// A function that does not trap: it fills tables of the other instance that are empty, writes to memories and a global, grows a memory, and
/// calls host functions that do not fail. In a program of two instances it calls none, because of one that is being made only the engine
/// knows which instance imports a function.
fn start_function(shape: &Shape, rng: &mut Rng, reset: u32) -> enc::Function {
    let mut body = enc::Function::new([]);
    let mut sink = body.instructions();
    sink.call(reset);
    for (segment, (i, table)) in (PASSIVE_ELEM_SEGMENT + 1..).zip(filled_at_start(shape)) {
        Value::integer(table.index, table.first.into()).push(&mut sink);
        sink.table_get(i).ref_is_null().if_(enc::BlockType::Empty);
        Value::integer(table.index, table.first.into()).push(&mut sink);
        sink.i32_const(0).i32_const(table.elements.len() as i32).table_init(i, segment).end();
    }
    for (i, memory) in (0..).zip(&shape.memories) {
        Value::integer(memory.address, rng.below(0x1000).into()).push(&mut sink);
        let at = enc::MemArg { offset: rng.below(64).into(), align: 0, target: enc::MemArgTarget::Memory(i), ordering: None };
        sink.i64_const(rng.bits() as i64).i64_store(at);
        Value::integer(memory.address, u64::from(rng.below(8) / 7)).push(&mut sink);
        sink.memory_grow(i).drop();
    }
    let mutable: Vec<usize> = (0..shape.globals.len()).filter(|&i| shape.globals[i].mutable).collect();
    let global = *rng.pick(&mutable);
    Value::random(shape.globals[global].ty, rng).push(&mut sink);
    sink.global_set(1 + global as u32);
    for (i, func) in (0..).zip(&shape.funcs).filter(|(_, func)| func.calm && !shape.is_linked()) {
        let ty = &shape.types[func.ty as usize];
        ty.params.iter().for_each(|&ty| Value::random(ty, rng).push(&mut sink));
        sink.call(i);
        ty.results.iter().for_each(|_| {
            sink.drop();
        });
    }
    sink.end();
    body
}
