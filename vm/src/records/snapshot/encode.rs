//! Writes a module with another initial state. Sections that do not depend on it are copied byte for byte, so every index, every
//! offset of code and every name stays what it was.

use super::error::SnapshotError;
use super::names;
use super::ranges::ranges;
use super::state::{State, Value};
use crate::records::error::{Error, Result};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use wasm_encoder::{
    AbstractHeapType, ConstExpr, DataCountSection, DataSection, ElementSection, Elements, ExportKind, ExportSection,
    GlobalSection, GlobalType, HeapType as EncodedHeap, MemorySection, MemoryType, RawSection, RefType as EncodedRef, Section,
    SectionId, TableSection, TableType, ValType as EncodedVal,
};
use wasmparser::{BinaryReader, ElementSectionReader, GlobalSectionReader};
use weir_bytecode::Module;
use weir_bytecode::instrs::{Imm, Instrs};
use weir_bytecode::module::{ConstOp, ElemItems, ElemMode, ElemSegment, ExternIndex};
use weir_bytecode::opcodes::Opcode;
use weir_bytecode::types::{HeapType, RefType, ValType};

/// A change of the exports.
#[derive(Clone, Debug, Default)]
pub(crate) struct Exports {
    /// Names that are left out.
    pub removed: BTreeSet<String>,
    /// New names, each with the old one. An export that has another's new name is left out.
    pub renamed: Vec<(String, String)>,
}

impl Exports {
    /// Returns the names under which an export is written.
    fn names<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        let new: Vec<&str> = self.renamed.iter().filter(|(_, old)| old == name).map(|(new, _)| new.as_str()).collect();
        let is_left_out = self.removed.contains(name) || self.renamed.iter().any(|(new, _)| new == name);
        if new.is_empty() && !is_left_out { vec![name] } else { new }
    }
}

/// The most data segments that engines accept.
const MAX_DATA_SEGMENTS: usize = 100_000;

/// The most bytes of data in a module. Engines accept no module of more.
const MAX_DATA: usize = 1 << 30;

/// Equal elements between two ranges of elements that differ; fewer are written again.
const TABLE_GAP: usize = 4;

/// The sections in the order of a module, and the place of custom sections, which is anywhere.
const ORDER: [SectionId; 13] = [
    SectionId::Type,
    SectionId::Import,
    SectionId::Function,
    SectionId::Table,
    SectionId::Memory,
    SectionId::Tag,
    SectionId::Global,
    SectionId::Export,
    SectionId::Start,
    SectionId::Element,
    SectionId::DataCount,
    SectionId::Code,
    SectionId::Data,
];

/// Returns the bytes of a module that begins with `state`: its memories, tables and globals begin with the contents of the state, segments
/// that were dropped are empty, there is no start function, and exports are changed.
///
/// # Errors
/// A table needs an initial value that the module cannot name; or the memories have more data than a module.
pub(crate) fn encode(module: &Module, state: &State<'_>, exports: &Exports) -> Result<Vec<u8>> {
    let sections = module.sections();
    let content =
        |id: SectionId| sections.iter().find(|(section, _)| *section == id as u8).map(|(_, range)| &module.bytes[range.clone()]);
    let has_data_count = content(SectionId::DataCount).is_some();

    let (tables, table_elements) = tables(module, state)?;
    let elements = elements(module, state, exports, content(SectionId::Element), &table_elements)?;
    let data = data(module, state, has_data_count)?;
    let mut replaced = Replaced::default();
    replaced.add(&tables, tables.is_empty());
    replaced.add(&memories(module, state), state.memories.is_empty());
    replaced.add(&globals(module, state, content(SectionId::Global))?, module.global_inits.is_empty());
    let section = self::exports(module, exports);
    replaced.add(&section, section.is_empty());
    replaced.add(&elements, elements.is_empty());
    replaced.add(&DataCountSection { count: data.len() }, !has_data_count);
    replaced.add(&data, data.is_empty());

    let mut out = wasm_encoder::Module::new();
    let is_there = |wanted: SectionId| sections.iter().any(|(id, _)| *id == wanted as u8);
    for (id, range) in &sections {
        let copied = &module.bytes[range.clone()];
        if *id != SectionId::Custom as u8 && !replaced.write(*id, &mut out)
            || *id == SectionId::Custom as u8 && !is_unread(copied)
        {
            out.section(&RawSection { id: *id, data: copied });
        }
        // Sections that the module does not have come at once, so that the custom sections at the end stay there.
        let place = ORDER.iter().position(|known| *known as u8 == *id);
        let later = place.map_or(&[][..], |place| &ORDER[place + 1..]);
        for absent in later.iter().take_while(|section| !is_there(**section)) {
            replaced.write(*absent as u8, &mut out);
        }
    }
    Ok(out.finish())
}

/// The sections that are written anew; without contents if they are left out.
#[derive(Default)]
struct Replaced(Vec<(u8, Option<Vec<u8>>)>);

impl Replaced {
    fn add(&mut self, section: &impl Section, is_empty: bool) {
        let mut bytes = Vec::new();
        section.encode(&mut bytes);
        self.0.push((section.id(), (!is_empty).then_some(bytes)));
    }

    /// Writes a section, if it is one of these or is left out.
    fn write(&self, id: u8, out: &mut wasm_encoder::Module) -> bool {
        if id == SectionId::Start as u8 {
            return true;
        }
        let Some((_, section)) = self.0.iter().find(|(replaced, _)| *replaced == id) else { return false };
        if let Some(section) = section {
            // The encoder's own form of a section begins with its size.
            let mut reader = BinaryReader::new(section, 0);
            let size = reader.read_var_u32().expect("it has been written") as usize;
            out.section(&RawSection { id, data: &section[section.len() - size..] });
        }
        true
    }
}

/// Whether a custom section is one with debugging information of which only the name was read: see [`weir_bytecode::file`].
fn is_unread(section: &[u8]) -> bool {
    let mut reader = BinaryReader::new(section, 0);
    let is_debugging = reader.read_string().is_ok_and(|name| name.starts_with(".debug_"));
    /// The bytes that are read with the name.
    const READ: usize = 32;
    let contents = reader.read_bytes(reader.bytes_remaining()).unwrap_or_default();
    is_debugging && contents.get(READ..).is_some_and(|rest| !rest.is_empty() && rest.iter().all(|&byte| byte == 0))
}

fn memories(module: &Module, state: &State<'_>) -> MemorySection {
    let mut section = MemorySection::new();
    for (ty, contents) in module.memories[module.imported_memories as usize..].iter().zip(&state.memories) {
        section.memory(MemoryType {
            minimum: contents.pages,
            maximum: ty.limits.max,
            memory64: ty.memory64,
            shared: ty.shared,
            page_size_log2: (ty.page_size_log2 != 16).then_some(ty.page_size_log2.into()),
        });
    }
    section
}

/// Returns the tables and, for each of them, all of its initial elements.
fn tables(module: &Module, state: &State<'_>) -> Result<(TableSection, Vec<Vec<Value>>)> {
    let (mut section, mut initial) = (TableSection::new(), Vec::new());
    for (i, elements) in (module.imported_tables..).zip(&state.tables) {
        let table = &module.tables[i as usize];
        let ty = TableType {
            element_type: reference(table.ty.element),
            table64: table.ty.table64,
            minimum: elements.len() as u64,
            maximum: table.ty.limits.max,
            shared: false,
        };
        let value = match &table.init {
            None => Value::Null,
            Some(init) => evaluate(&init.0, state).ok_or_else(|| {
                let place = format!("the initial value of {}", names::table(module, i));
                Error::new(SnapshotError::Reference { place, held: "a reference of the host" })
            })?,
        };
        match (value, table.ty.element.nullable) {
            (Value::Null, true) => section.table(ty),
            (value, _) => section.table_with_init(ty, &constant(value, table.ty.element.into())),
        };
        initial.push(vec![value; elements.len()]);
    }
    Ok((section, initial))
}

/// Returns the value of a constant expression; `None` if it is imported, and not one that a module can have.
fn evaluate(ops: &[ConstOp], state: &State<'_>) -> Option<Value> {
    match *ops {
        [ConstOp::I32(value)] => Some(Value::I32(value)),
        [ConstOp::I64(value)] => Some(Value::I64(value)),
        [ConstOp::RefNull] => Some(Value::Null),
        [ConstOp::RefFunc(func)] => Some(Value::Func(func)),
        [ConstOp::GlobalGet(global)] => state.globals[global as usize],
        _ => None,
    }
}

fn globals(module: &Module, state: &State<'_>, section: Option<&[u8]>) -> Result<GlobalSection> {
    let mut globals = GlobalSection::new();
    let Some(section) = section else { return Ok(globals) };
    let original = items(section, |reader| {
        GlobalSectionReader::new(reader).map(|section| section.into_iter_with_offsets().map(offset).collect())
    })?;
    for (i, range) in (module.imported_globals as usize..).zip(original) {
        let ty = module.globals[i];
        match state.globals[i] {
            // An immutable global is determined by the module and its imports.
            Some(value) if ty.mutable => {
                let encoded = GlobalType { val_type: val_type(ty.value), mutable: true, shared: false };
                globals.global(encoded, &constant(value, ty.value))
            }
            _ => globals.raw(&section[range]),
        };
    }
    Ok(globals)
}

fn offset<T>(item: wasmparser::Result<(u64, T)>) -> wasmparser::Result<u64> {
    item.map(|(at, _)| at)
}

/// Returns the bytes of each item of a section, whose offsets `read` finds.
fn items<'a>(
    section: &'a [u8],
    read: impl FnOnce(BinaryReader<'a>) -> wasmparser::Result<wasmparser::Result<Vec<u64>>>,
) -> Result<Vec<Range<usize>>> {
    let starts = read(BinaryReader::new(section, 0)).flatten().map_err(Error::new)?;
    let ends = starts.iter().skip(1).copied().chain([section.len() as u64]);
    Ok(starts.iter().zip(ends).map(|(&start, end)| start as usize..end as usize).collect())
}

fn exports(module: &Module, exports: &Exports) -> ExportSection {
    let mut section = ExportSection::new();
    for export in &module.exports {
        let (kind, index) = match export.item {
            ExternIndex::Func(index) => (ExportKind::Func, index),
            ExternIndex::Table(index) => (ExportKind::Table, index),
            ExternIndex::Memory(index) => (ExportKind::Memory, index),
            ExternIndex::Global(index) => (ExportKind::Global, index),
            ExternIndex::Tag(index) => (ExportKind::Tag, index),
        };
        for name in exports.names(&export.name) {
            section.export(name, kind, index);
        }
    }
    section
}

/// Returns the element segments: those of the module, and then those that make the tables what they are in `state`.
fn elements(
    module: &Module,
    state: &State<'_>,
    exports: &Exports,
    original: Option<&[u8]>,
    initial: &[Vec<Value>],
) -> Result<ElementSection> {
    let mut section = ElementSection::new();
    let mut tables = initial.to_vec();
    let mut declared = BTreeSet::new();
    let raw = original.unwrap_or_default();
    let ranges = match original {
        Some(_) => items(raw, |reader| {
            ElementSectionReader::new(reader).map(|section| section.into_iter_with_offsets().map(offset).collect())
        })?,
        None => Vec::new(),
    };
    for (i, (segment, range)) in module.elems.iter().zip(ranges).enumerate() {
        declared.extend(functions(segment).iter());
        let is_kept = match &segment.mode {
            ElemMode::Passive => state.elem_live[i],
            ElemMode::Declared => true,
            ElemMode::Active { table, offset } => apply(segment, table - module.imported_tables, offset, &mut tables),
        };
        if is_kept {
            section.raw(&raw[range]);
        } else {
            // It has no elements at run time, as one that was dropped, and functions that code refers to stay declared.
            section.declared(declaration(segment));
        }
    }
    for (i, (now, written)) in state.tables.iter().zip(&tables).enumerate() {
        let (index, ty) = (module.imported_tables + i as u32, module.tables[module.imported_tables as usize + i].ty);
        for range in differences(now, written) {
            let start = if ty.table64 { Value::I64(range.start as i64) } else { Value::I32(range.start as i32) };
            let values = &now[range];
            declared.extend(values.iter().filter_map(function));
            let offset = constant(start, ValType::I32);
            section.active((index > 0).then_some(index), &offset, elements_of(values, ty.element));
        }
    }
    let missing = undeclared(module, state, exports, &declared)?;
    if !missing.is_empty() {
        section.declared(Elements::Functions(missing.into()));
    }
    Ok(section)
}

/// Writes the elements of an active segment that can stay as it is, because it depends on no import, to `tables`. Returns whether it can.
fn apply(segment: &ElemSegment, table: u32, offset: &weir_bytecode::module::ConstExpr, tables: &mut [Vec<Value>]) -> bool {
    let Some(start) = offset.address() else { return false };
    let constant = |ops: &[ConstOp]| match *ops {
        [ConstOp::RefNull] => Some(Value::Null),
        [ConstOp::RefFunc(func)] => Some(Value::Func(func)),
        _ => None,
    };
    let values: Option<Vec<Value>> = match &segment.items {
        ElemItems::Funcs(funcs) => Some(funcs.iter().map(|&func| Value::Func(func)).collect()),
        ElemItems::Exprs(exprs) => exprs.iter().map(|expr| constant(&expr.0)).collect(),
    };
    let Some(values) = values else { return false };
    let range = start as usize..start as usize + values.len();
    match tables.get_mut(table as usize).and_then(|table| table.get_mut(range)) {
        Some(elements) => elements.copy_from_slice(&values),
        None => return false,
    }
    true
}

/// Returns the ranges in which two tables differ.
fn differences(now: &[Value], written: &[Value]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (at, _) in now.iter().zip(written).enumerate().filter(|(_, (now, written))| now != written) {
        match ranges.last_mut() {
            Some(last) if at - last.end <= TABLE_GAP => last.end = at + 1,
            _ => ranges.push(at..at + 1),
        }
    }
    ranges
}

/// Returns the elements of a segment for a table with this type of elements, in the form of the first version of WebAssembly if possible.
fn elements_of(values: &[Value], ty: RefType) -> Elements<'static> {
    let funcs: Option<Vec<u32>> = values.iter().map(function).collect();
    match funcs {
        Some(funcs) if ty == RefType::FUNCREF => Elements::Functions(funcs.into()),
        _ => Elements::Expressions(reference(ty), values.iter().map(|&value| constant(value, ty.into())).collect()),
    }
}

fn function(value: &Value) -> Option<u32> {
    match *value {
        Value::Func(func) => Some(func),
        Value::I32(_) | Value::I64(_) | Value::F32(_) | Value::F64(_) | Value::V128(_) | Value::Null => None,
    }
}

/// Returns the functions that a segment refers to.
fn functions(segment: &ElemSegment) -> Cow<'_, [u32]> {
    match &segment.items {
        ElemItems::Funcs(funcs) => Cow::Borrowed(funcs),
        ElemItems::Exprs(exprs) => Cow::Owned(exprs.iter().flat_map(|expr| references(&expr.0)).collect()),
    }
}

fn references(ops: &[ConstOp]) -> impl Iterator<Item = u32> {
    ops.iter().filter_map(|op| match *op {
        ConstOp::RefFunc(func) => Some(func),
        _ => None,
    })
}

/// Returns elements of the type of a segment's, so that instructions that name it stay valid, for its functions only.
fn declaration(segment: &ElemSegment) -> Elements<'_> {
    match &segment.items {
        ElemItems::Funcs(funcs) => Elements::Functions(Cow::Borrowed(funcs)),
        ElemItems::Exprs(_) => {
            let funcs = functions(segment);
            Elements::Expressions(reference(segment.ty), funcs.iter().map(|&func| ConstExpr::ref_func(func)).collect())
        }
    }
}

/// Returns the functions to which code refers, and which the new module would not declare: it has other exports and initial values of
/// globals. `declared` are those of its element segments.
fn undeclared(module: &Module, state: &State<'_>, exports: &Exports, declared: &BTreeSet<u32>) -> Result<Vec<u32>> {
    let mut lost = BTreeSet::new();
    let mut declared = declared.clone();
    for export in &module.exports {
        if let ExternIndex::Func(func) = export.item {
            let is_kept = !exports.names(&export.name).is_empty();
            if is_kept { &mut declared } else { &mut lost }.insert(func);
        }
    }
    for (i, init) in (module.imported_globals as usize..).zip(&module.global_inits) {
        let is_constant = !module.globals[i].mutable;
        if is_constant { &mut declared } else { &mut lost }.extend(references(&init.0));
        declared.extend(state.globals[i].as_ref().filter(|_| !is_constant).and_then(function));
    }
    lost.retain(|func| !declared.contains(func));
    if lost.is_empty() {
        return Ok(Vec::new());
    }
    let mut used = BTreeSet::new();
    for func in module.imported_funcs..module.funcs.len() as u32 {
        let Some(body) = module.validated_body(func) else { continue };
        let body = body.map_err(Error::new)?;
        let end = module.bodies[(func - module.imported_funcs) as usize].range().end;
        used.extend(Instrs::new(module, body.entry, end).filter_map(|instr| match instr.imm {
            Imm::Index(func) if instr.op == Opcode::RefFunc => Some(func),
            _ => None,
        }));
    }
    Ok(lost.intersection(&used).copied().collect())
}

/// Returns the data segments: those of the module that are live, and the contents of the memories. These are in the places of segments that
/// were dropped, which have no bytes at run time either, and after all others. Without a data count no code refers to the module's own.
fn data(module: &Module, state: &State<'_>, has_data_count: bool) -> Result<DataSection> {
    let live = if has_data_count { &state.data_live[..] } else { &[] };
    let kept = live.iter().filter(|live| **live).count();
    let mut contents = Vec::new();
    for (i, memory) in state.memories.iter().enumerate() {
        let later = state.memories.len() - i - 1;
        let limit = MAX_DATA_SEGMENTS.saturating_sub(kept + contents.len() + later);
        let ranges = ranges(memory.bytes, limit).into_iter();
        contents.extend(ranges.map(|range| (module.imported_memories + i as u32, range.start, &memory.bytes[range])));
    }
    let total: usize = contents.iter().map(|(_, _, bytes)| bytes.len()).sum();
    if total > MAX_DATA {
        let message = format!("the memories have {total} bytes that are not zero, and a module has room for {MAX_DATA}");
        return Err(Error::msg(message));
    }
    let mut section = DataSection::new();
    let mut contents = contents.into_iter();
    let write = |section: &mut DataSection, (memory, start, bytes): (u32, usize, &[u8])| {
        let is_64 = module.memories[memory as usize].memory64;
        let start = if is_64 { Value::I64(start as i64) } else { Value::I32(start as i32) };
        section.active(memory, &constant(start, ValType::I32), bytes.iter().copied());
    };
    for (segment, is_live) in module.data.iter().zip(live) {
        match (is_live, contents.as_slice().is_empty()) {
            (true, _) => {
                let bytes = &module.bytes[segment.range.start as usize..segment.range.end as usize];
                section.passive(bytes.iter().copied());
            }
            (false, true) => _ = section.passive([]),
            (false, false) => contents.by_ref().take(1).for_each(|next| write(&mut section, next)),
        }
    }
    contents.for_each(|next| write(&mut section, next));
    Ok(section)
}

/// Returns the expression for a value. The type is that of a null.
fn constant(value: Value, ty: ValType) -> ConstExpr {
    match value {
        Value::I32(value) => ConstExpr::i32_const(value),
        Value::I64(value) => ConstExpr::i64_const(value),
        Value::F32(bits) => ConstExpr::f32_const(wasm_encoder::Ieee32::new(bits)),
        Value::F64(bits) => ConstExpr::f64_const(wasm_encoder::Ieee64::new(bits)),
        Value::V128(bits) => ConstExpr::v128_const(bits as i128),
        Value::Func(func) => ConstExpr::ref_func(func),
        Value::Null => {
            let heap = ty.as_ref().map_or(HeapType::Func, |ty| ty.heap);
            ConstExpr::ref_null(heap_type(heap))
        }
    }
}

fn val_type(ty: ValType) -> EncodedVal {
    match ty {
        ValType::I32 => EncodedVal::I32,
        ValType::I64 => EncodedVal::I64,
        ValType::F32 => EncodedVal::F32,
        ValType::F64 => EncodedVal::F64,
        ValType::V128 => EncodedVal::V128,
        ValType::Ref(ty) => EncodedVal::Ref(reference(ty)),
    }
}

fn reference(ty: RefType) -> EncodedRef {
    EncodedRef { nullable: ty.nullable, heap_type: heap_type(ty.heap) }
}

fn heap_type(heap: HeapType) -> EncodedHeap {
    match heap {
        HeapType::Func => EncodedHeap::FUNC,
        HeapType::Extern => EncodedHeap::EXTERN,
        HeapType::Exn => EncodedHeap::Abstract { shared: false, ty: AbstractHeapType::Exn },
        HeapType::NoExn => EncodedHeap::Abstract { shared: false, ty: AbstractHeapType::NoExn },
        HeapType::Concrete(index) => EncodedHeap::Concrete(index),
    }
}

#[cfg(all(test, feature = "wat"))]
mod tests {
    use super::*;
    use crate::records::snapshot::state::Contents;
    use weir_bytecode::validate::{Options, Proposals, parse_with};

    fn module(bytes: &[u8]) -> Module {
        parse_with(bytes.into(), Options { proposals: Proposals::all(), ..Options::default() }).unwrap()
    }

    fn of_text(wat: &str) -> Module {
        module(&wat::parse_str(wat).unwrap())
    }

    /// The sections of a module: ids and contents.
    fn contents(module: &Module) -> Vec<(u8, &[u8])> {
        module.sections().into_iter().map(|(id, range)| (id, &module.bytes[range])).collect()
    }

    fn section(module: &Module, id: SectionId) -> Option<&[u8]> {
        contents(module).into_iter().find(|(section, _)| *section == id as u8).map(|(_, contents)| contents)
    }

    /// The state of a module without imports, globals and tables, and with these memories.
    fn memories<'a>(module: &Module, memories: &[&'a [u8]]) -> State<'a> {
        State {
            memories: memories.iter().map(|bytes| Contents { pages: (bytes.len() >> 16) as u64, bytes }).collect(),
            data_live: module.data.iter().map(|segment| segment.active.is_none()).collect(),
            elem_live: vec![false; module.elems.len()],
            ..State::default()
        }
    }

    #[test]
    fn sections_are_in_order_and_others_are_copied() {
        let module = of_text(
            r#"(module (@custom "first" (before first) "1") (type (func)) (memory 1) (tag) (func $f) (func (export "f") (call $f))
                (@custom "middle" (before code) "2") (@custom "last" (after last) "3"))"#,
        );
        let mut bytes = vec![0; 1 << 16];
        bytes[100] = 1;
        let new = self::module(&encode(&module, &memories(&module, &[&bytes]), &Exports::default()).unwrap());
        let ids = |module: &Module| contents(module).iter().map(|(id, _)| *id).collect::<Vec<_>>();
        let mut expected = ids(&module);
        let code = expected.iter().position(|id| *id == SectionId::Code as u8).unwrap();
        expected.insert(code + 1, SectionId::Data as u8);
        assert_eq!(ids(&new), expected, "the module had no data section");
        for id in [SectionId::Type, SectionId::Function, SectionId::Memory, SectionId::Tag, SectionId::Export, SectionId::Code] {
            assert_eq!(section(&new, id), section(&module, id));
        }
        assert_eq!(new.custom_sections().collect::<Vec<_>>(), module.custom_sections().collect::<Vec<_>>());
        assert_eq!(section(&new, SectionId::Data), Some(&[1, 0, 0x41, 0xe4, 0, 0x0b, 1, 1][..]));
    }

    #[test]
    fn a_module_without_state_keeps_its_bytes() {
        let module = of_text(r#"(module (import "a" "b" (func)) (func (export "f") (call 0)) (func (export "g")))"#);
        assert_eq!(encode(&module, &State::default(), &Exports::default()).unwrap(), &*module.bytes);
    }

    #[test]
    fn the_state_is_written_in_the_first_form_of_the_format_if_possible() {
        let module = of_text(
            r#"(module (table 3 funcref) (memory 1) (global (mut f32) (f32.const 0)) (elem (i32.const 0) $f) (data (i32.const 0) "x")
                (func $f (export "f")) (start $f))"#,
        );
        let bytes = vec![0; 2 << 16];
        let mut state = memories(&module, &[&bytes]);
        state.globals = vec![Some(Value::F32(0x7fa0_0000))];
        state.tables = vec![vec![Value::Func(0), Value::Null, Value::Func(0)]];
        let new = self::module(&encode(&module, &state, &Exports::default()).unwrap());
        let ids: Vec<u8> = contents(&new).iter().map(|(id, _)| *id).collect();
        let first_version = |id: &u8| (*id <= SectionId::Data as u8) && *id != SectionId::Start as u8;
        assert!(ids.iter().all(first_version), "neither start nor data count: {ids:?}");
        assert_eq!(section(&new, SectionId::Memory), Some(&[1, 0, 2][..]));
        assert_eq!(section(&new, SectionId::Global), Some(&[1, 0x7d, 1, 0x43, 0, 0, 0xa0, 0x7f, 0x0b][..]));
        let segments = [2, 0, 0x41, 0, 0x0b, 1, 0, 0, 0x41, 2, 0x0b, 1, 0];
        assert_eq!(section(&new, SectionId::Element), Some(&segments[..]));
        assert_eq!(section(&new, SectionId::Data), None, "the memory is zero");
    }

    #[test]
    fn debugging_information_that_was_not_read_is_left_out() {
        let zeros = r"\00".repeat(100);
        let module = of_text(&format!(
            r#"(module (@custom ".debug_info" "{zeros}") (@custom ".debug_line" "{}") (@custom "zeros" "{zeros}"))"#,
            "a".repeat(100)
        ));
        let new = self::module(&encode(&module, &State::default(), &Exports::default()).unwrap());
        assert_eq!(new.custom_sections().map(|(name, _)| name).collect::<Vec<_>>(), [".debug_line", "zeros"]);
    }

    #[test]
    fn more_data_than_a_module_has_room_for_is_refused() {
        let module = of_text(&format!("(module {})", "(memory 1024)".repeat(17)));
        let bytes = vec![1; 1024 << 16];
        let state = memories(&module, &[&*bytes; 17]);
        let error = encode(&module, &state, &Exports::default()).unwrap_err();
        assert!(error.to_string().contains("1140850688 bytes that are not zero"), "{error}");
    }

    #[test]
    fn elements_that_differ_are_written_in_runs() {
        let row = |text: &str| -> Vec<Value> { text.bytes().map(|byte| Value::Func(byte.into())).collect() };
        assert_eq!(differences(&row("abc"), &row("abc")), []);
        assert_eq!(differences(&row("xbcdexgh"), &row("abcdefgh")), std::slice::from_ref(&(0..6)));
        assert_eq!(differences(&row("xbcdefxhy"), &row("abcdefghi")), [0..1, 6..9].to_vec());
    }

    #[test]
    fn exports_have_their_new_names() {
        let pair = |new: &str, old: &str| (new.to_owned(), old.to_owned());
        let exports = Exports {
            removed: ["gone".to_owned(), "renamed".to_owned()].into(),
            renamed: vec![pair("b", "a"), pair("c", "a"), pair("d", "renamed")],
        };
        assert_eq!((exports.names("a"), exports.names("b")), (vec!["b", "c"], vec![]));
        assert_eq!((exports.names("gone"), exports.names("renamed"), exports.names("e")), (vec![], vec!["d"], vec!["e"]));
    }
}
