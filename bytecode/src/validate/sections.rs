//! Validated sections as plain data, except function bodies, which [`super::bodies`] handles.

use super::convert::{func_type, global_type, memory_type, ref_type, table_type};
use super::invalid::InvalidModule;
use super::options::Options;
use crate::account::{ALLOCATION, Account, Allocated, Aside, flat};
use crate::hints::HintSections;
use crate::module::{
    ConstExpr, ConstOp, DataSegment, ElemItems, ElemMode, ElemSegment, Export, ExternIndex, ExternType, Import, Module, Table,
};
use crate::names::Names;
use crate::opcodes::Opcode;
use crate::places::PlainSegment;
use crate::types::{FuncType, GlobalType, HeapType, MemoryType, RefType, ValType};
use smallvec::{SmallVec, smallvec};
use std::ops::Range;
use std::sync::Arc;
use wasmparser::{
    BinaryReader, DataKind, ElementItems, ElementKind, ExternalKind, FunctionBody, Operator, Payload, TableInit, TypeRef,
};

type Result<T> = std::result::Result<T, InvalidModule>;

/// Bytes that are read before they are charged. Charging is an operation on memory that threads share.
const CHUNK: usize = 64 << 10;

/// The sections read so far.
#[derive(Default)]
pub(super) struct Sections {
    account: Arc<Account>,
    /// Bytes that are not charged yet.
    uncharged: usize,
    pub types: Vec<FuncType>,
    pub funcs: Vec<u32>,
    pub imported_funcs: u32,
    imports: Vec<Import>,
    tables: Vec<Table>,
    memories: Vec<MemoryType>,
    tags: Vec<u32>,
    globals: Vec<GlobalType>,
    global_inits: Vec<ConstExpr>,
    exports: Vec<Export>,
    start: Option<u32>,
    elems: Vec<ElemSegment>,
    data: Vec<DataSegment>,
    imported_tables: u32,
    imported_memories: u32,
    imported_globals: u32,
    imported_tags: u32,
    names: Names,
    hints: HintSections,
    has_debugging: bool,
}

impl Sections {
    /// Creates those of a module with this account.
    pub fn new(account: Arc<Account>) -> Sections {
        Sections { account, ..Sections::default() }
    }

    /// Counts an item that is added, whose own allocations are these.
    fn grow<T>(&mut self, allocated: usize) -> Result<()> {
        self.uncharged += size_of::<T>() + allocated;
        if self.uncharged < CHUNK {
            return Ok(());
        }
        // The error has no place: what it counts is spread over several items.
        self.account.charge(std::mem::take(&mut self.uncharged)).map_err(|error| InvalidModule::exceeding(error, 0))
    }

    /// Reads a section that the validator has accepted: it has as many items as it declares.
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "these are the parser's payloads, and the others hold nothing that a module record needs"
    )]
    pub fn read(&mut self, payload: Payload<'_>) -> Result<()> {
        match payload {
            Payload::TypeSection(reader) => {
                self.grow::<()>(reader.count() as usize * size_of::<FuncType>())?;
                self.types.reserve_exact(reader.count() as usize);
                for ty in reader.into_iter_err_on_gc_types() {
                    let ty = func_type(&ty?)?;
                    self.grow::<()>(ty.allocated())?;
                    self.types.push(ty);
                }
            }
            Payload::ImportSection(reader) => {
                for import in reader.into_imports_with_offsets() {
                    let (offset, import) = import?;
                    self.import(import, offset)?;
                }
            }
            Payload::FunctionSection(reader) => {
                self.grow::<()>(reader.count() as usize * size_of::<u32>())?;
                self.funcs.reserve_exact(reader.count() as usize);
                for ty in reader {
                    self.funcs.push(ty?);
                }
            }
            Payload::TableSection(reader) => {
                for table in reader {
                    let table = table?;
                    let init = match &table.init {
                        TableInit::RefNull => None,
                        TableInit::Expr(expr) => Some(self.const_expr(expr)?),
                    };
                    self.grow::<Table>(0)?;
                    self.tables.push(Table { ty: table_type(table.ty)?, init });
                }
            }
            Payload::MemorySection(reader) => {
                for memory in reader {
                    self.grow::<MemoryType>(0)?;
                    self.memories.push(memory_type(memory?));
                }
            }
            Payload::TagSection(reader) => {
                for tag in reader {
                    self.grow::<u32>(0)?;
                    self.tags.push(tag?.func_type_idx);
                }
            }
            Payload::GlobalSection(reader) => {
                for global in reader {
                    let global = global?;
                    self.globals.push(global_type(global.ty)?);
                    let init = self.const_expr(&global.init_expr)?;
                    self.grow::<(GlobalType, ConstExpr)>(0)?;
                    self.global_inits.push(init);
                }
            }
            Payload::ExportSection(reader) => {
                for export in reader.into_iter_with_offsets() {
                    let (offset, export) = export?;
                    let export = Export { name: export.name.into(), item: extern_index(&export, offset)? };
                    self.grow::<Export>(export.allocated())?;
                    self.exports.push(export);
                }
            }
            Payload::StartSection { func, .. } => self.start = Some(func),
            Payload::ElementSection(reader) => {
                for elem in reader {
                    self.elem(elem?)?;
                }
            }
            Payload::DataSection(reader) => {
                self.grow::<()>(reader.count() as usize * size_of::<DataSegment>())?;
                self.data.reserve_exact(reader.count() as usize);
                for data in reader {
                    let data = self.data_segment(data?)?;
                    self.data.push(data);
                }
            }
            Payload::CustomSection(reader) => {
                // Offsets fit: the file is below 4 GiB.
                let start = reader.data_offset() as u32;
                self.custom(reader.name().as_bytes(), start..start + reader.data().len() as u32);
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds a custom section with this name and these contents.
    pub fn custom(&mut self, name: &[u8], contents: Range<u32>) {
        match str::from_utf8(name) {
            Ok("name") => self.names.add(contents),
            Ok(name) if name.starts_with(".debug_") => self.has_debugging = true,
            Ok(name) => self.hints.add(name, contents),
            Err(_) => {}
        }
    }

    /// Adds what `segments` finds in the data section, if all of it is [plain](PlainSegment) and the first memory is one of 32 bits. Then it is valid.
    /// Returns whether that is so; if not, nothing is added. Validation in general takes five times as long.
    pub fn read_data(&mut self, segments: impl FnOnce() -> Option<Vec<DataSegment>>) -> bool {
        let is_32 = self.memories.first().is_some_and(|memory| !memory.memory64);
        let Some(data) = is_32.then(segments).flatten() else { return false };
        self.uncharged += flat(&data);
        self.data = data;
        true
    }

    /// Everything but the bytes and the bodies.
    pub fn finish(self) -> Module {
        let mut values = self.types.iter().flat_map(|ty| ty.params.iter().chain(&ty.results));
        let mut elements = self.tables.iter().map(|table| table.ty.element.heap);
        let has_collected = values.any(ValType::is_collected)
            || self.globals.iter().any(|global| global.value.is_collected())
            || elements.any(HeapType::is_collected);
        Module {
            aside: Aside::of(&self.account),
            account: self.account,
            types: self.types.into(),
            imports: self.imports.into(),
            funcs: self.funcs.into(),
            tables: self.tables.into(),
            memories: self.memories.into(),
            tags: self.tags.into(),
            globals: self.globals.into(),
            global_inits: self.global_inits.into(),
            exports: self.exports.into(),
            start: self.start,
            elems: self.elems.into(),
            data: self.data.into(),
            imported_funcs: self.imported_funcs,
            imported_tables: self.imported_tables,
            imported_memories: self.imported_memories,
            imported_globals: self.imported_globals,
            imported_tags: self.imported_tags,
            names: self.names,
            hint_sections: self.hints,
            has_debugging: self.has_debugging,
            has_collected,
            ..Module::default()
        }
    }

    fn elem(&mut self, elem: wasmparser::Element<'_>) -> Result<()> {
        let items = match &elem.items {
            ElementItems::Functions(funcs) => funcs.count() as usize * size_of::<u32>(),
            ElementItems::Expressions(_, exprs) => exprs.count() as usize * size_of::<ConstExpr>(),
        };
        self.grow::<ElemSegment>(items)?;
        let segment = self.elem_segment(elem)?;
        self.elems.push(segment);
        Ok(())
    }

    fn elem_segment(&mut self, elem: wasmparser::Element<'_>) -> Result<ElemSegment> {
        let mode = match &elem.kind {
            ElementKind::Passive => ElemMode::Passive,
            ElementKind::Declared => ElemMode::Declared,
            ElementKind::Active { table_index, offset_expr } => {
                ElemMode::Active { table: table_index.unwrap_or(0), offset: self.const_expr(offset_expr)? }
            }
        };
        // With exactly the room that was counted: `collect` would double it as it grows.
        let (ty, items) = match elem.items {
            ElementItems::Functions(funcs) => {
                let mut all = Vec::with_capacity(funcs.count() as usize);
                for func in funcs {
                    all.push(func?);
                }
                (RefType::FUNCREF, ElemItems::Funcs(all.into()))
            }
            ElementItems::Expressions(ty, exprs) => {
                let mut all = Vec::with_capacity(exprs.count() as usize);
                for expr in exprs {
                    all.push(self.const_expr(&expr?)?);
                }
                (ref_type(ty)?, ElemItems::Exprs(all.into()))
            }
        };
        Ok(ElemSegment { ty, items, mode })
    }

    fn data_segment(&mut self, data: wasmparser::Data<'_>) -> Result<DataSegment> {
        let active = match &data.kind {
            DataKind::Passive => None,
            DataKind::Active { memory_index, offset_expr } => Some((*memory_index, self.const_expr(offset_expr)?)),
        };
        // The bytes are the last thing in their segment. Offsets fit: the file is below 4 GiB.
        let end = data.range.end as u32;
        Ok(DataSegment { range: end - data.data.len() as u32..end, active })
    }

    /// Converts an expression that the validator has accepted, and charges what it allocates.
    #[expect(clippy::wildcard_enum_match_arm, reason = "these are the parser's operators, and an unknown one is an error")]
    fn const_expr(&mut self, expr: &wasmparser::ConstExpr<'_>) -> Result<ConstExpr> {
        if let Some(value) = i32_const(&mut expr.get_binary_reader()) {
            return Ok(ConstExpr(smallvec![ConstOp::I32(value)]));
        }
        // The last one ends it. Room for all is charged and made at once.
        let count = expr.get_operators_reader().into_iter().take_while(std::result::Result::is_ok).count().saturating_sub(1);
        let mut ops = SmallVec::new();
        if count > ops.inline_size() {
            self.grow::<()>(count * size_of::<ConstOp>() + ALLOCATION)?;
            ops.reserve_exact(count);
        }
        for op in expr.get_operators_reader().into_iter_with_offsets() {
            let (op, offset) = op?;
            ops.push(match op {
                Operator::I32Const { value } => ConstOp::I32(value),
                Operator::I64Const { value } => ConstOp::I64(value),
                Operator::F32Const { value } => ConstOp::F32(value.bits()),
                Operator::F64Const { value } => ConstOp::F64(value.bits()),
                Operator::V128Const { value } => ConstOp::V128(*value.bytes()),
                Operator::GlobalGet { global_index } => ConstOp::GlobalGet(global_index),
                Operator::RefNull { .. } => ConstOp::RefNull,
                Operator::RefFunc { function_index } => ConstOp::RefFunc(function_index),
                Operator::I32Add => ConstOp::Binary(Opcode::I32Add),
                Operator::I32Sub => ConstOp::Binary(Opcode::I32Sub),
                Operator::I32Mul => ConstOp::Binary(Opcode::I32Mul),
                Operator::I64Add => ConstOp::Binary(Opcode::I64Add),
                Operator::I64Sub => ConstOp::Binary(Opcode::I64Sub),
                Operator::I64Mul => ConstOp::Binary(Opcode::I64Mul),
                Operator::End => break,
                _ => return Err(InvalidModule::new("constant expression not supported", offset)),
            });
        }
        Ok(ConstExpr(ops))
    }

    fn import(&mut self, import: wasmparser::Import<'_>, offset: u64) -> Result<()> {
        let ty = match import.ty {
            TypeRef::Func(ty) => {
                self.funcs.push(ty);
                self.imported_funcs += 1;
                ExternType::Func(ty)
            }
            TypeRef::Table(ty) => {
                let ty = table_type(ty)?;
                self.tables.push(Table { ty, init: None });
                self.imported_tables += 1;
                ExternType::Table(ty)
            }
            TypeRef::Memory(ty) => {
                let ty = memory_type(ty);
                self.memories.push(ty);
                self.imported_memories += 1;
                ExternType::Memory(ty)
            }
            TypeRef::Global(ty) => {
                let ty = global_type(ty)?;
                self.globals.push(ty);
                self.imported_globals += 1;
                ExternType::Global(ty)
            }
            TypeRef::Tag(tag) => {
                self.tags.push(tag.func_type_idx);
                self.imported_tags += 1;
                ExternType::Tag(tag.func_type_idx)
            }
            TypeRef::FuncExact(_) => {
                return Err(InvalidModule::new("imports of exact functions are not supported", offset));
            }
        };
        let import = Import { module: import.module.into(), name: import.name.into(), ty };
        // The largest item that an import adds to the index spaces.
        self.grow::<(Import, Table)>(import.allocated())?;
        self.imports.push(import);
        Ok(())
    }
}

fn extern_index(export: &wasmparser::Export<'_>, offset: u64) -> Result<ExternIndex> {
    match export.kind {
        ExternalKind::Func => Ok(ExternIndex::Func(export.index)),
        ExternalKind::Table => Ok(ExternIndex::Table(export.index)),
        ExternalKind::Memory => Ok(ExternIndex::Memory(export.index)),
        ExternalKind::Global => Ok(ExternIndex::Global(export.index)),
        ExternalKind::Tag => Ok(ExternIndex::Tag(export.index)),
        ExternalKind::FuncExact => Err(InvalidModule::new("exports of exact functions are not supported", offset)),
    }
}

/// Finds the bodies of a code section, which has `count` of them in this range of the module; also returns the first. `None` if there are not
/// exactly as many, or there is none. The parser and the validator take three times as long for this as the cache misses that it is.
pub(super) fn bodies(module: &[u8], count: u32, section: Range<usize>) -> Option<(Vec<Range<u32>>, FunctionBody<'_>)> {
    let bytes = module.get(section.clone())?;
    // Each takes a byte.
    let mut bodies = Vec::with_capacity((count as usize).min(bytes.len()));
    let mut reader = BinaryReader::new(bytes, section.start as u64);
    for _ in 0..count {
        let len = reader.read_var_u32().ok().filter(|&len| len <= MAX_BODY_LEN)?;
        // Offsets fit: the file is below 4 GiB.
        let start = reader.original_position() as u32;
        reader.read_bytes(len as usize).ok()?;
        bodies.push(start..start + len);
    }
    let first = bodies.first().filter(|_| reader.eof())?;
    let first = BinaryReader::new(&module[first.start as usize..first.end as usize], first.start.into());
    Some((bodies, FunctionBody::new(first)))
}

/// Most bytes that a body may have.
const MAX_BODY_LEN: u32 = 7_654_321;

/// Most data segments that a module may have.
const MAX_DATA_SEGMENTS: u32 = 100_000;

/// Reads a data section, which is in this range, of [plain](PlainSegment) segments: all of nearly every module, which may have tens of thousands.
/// Of their contents nothing is read. `None` if it has others, or too many.
pub(super) fn plain_segments(bytes: &[u8], section: Range<usize>, options: &Options) -> Option<Vec<DataSegment>> {
    let has_passive = options.features().bulk_memory();
    let mut reader = BinaryReader::new(bytes.get(section.clone())?, section.start as u64);
    // As many as validation allows.
    let count = reader.read_var_u32().ok().filter(|count| *count <= MAX_DATA_SEGMENTS)?;
    let mut segments = Vec::with_capacity((count as usize).min(section.len()));
    for _ in 0..count {
        let segment = plain_segment(&mut reader).filter(|segment| segment.address.is_some() || has_passive)?;
        segments.push(segment.into());
    }
    reader.eof().then_some(segments)
}

/// A segment, if it is plain. Its contents are passed over.
fn plain_segment(reader: &mut BinaryReader<'_>) -> Option<PlainSegment> {
    let address = match reader.read_u8().ok()? {
        0 => Some(i32_const(reader)?),
        1 => None,
        _ => return None,
    };
    let len = reader.read_var_u32().ok()?;
    // Offsets fit: the file is below 4 GiB.
    let start = reader.original_position() as u32;
    reader.read_bytes(len as usize).ok()?;
    Some(PlainSegment { contents: start..start + len, address })
}

/// The value of an expression that consists of `i32.const`.
fn i32_const(reader: &mut BinaryReader<'_>) -> Option<i32> {
    (reader.read_u8().ok()? == Opcode::I32Const as u8).then_some(())?;
    let value = reader.read_var_i32().ok()?;
    (reader.read_u8().ok()? == Opcode::End as u8).then_some(value)
}

#[cfg(test)]
mod tests {
    use crate::validate::{Options, Proposals, parse_with};

    #[test]
    fn references_that_are_collected_have_a_type_in_a_section() {
        let has_collected = |fields: &str| {
            let bytes = wat::parse_str(format!("(module {fields})")).unwrap();
            let options = Options { proposals: Proposals::all(), ..Options::default() };
            parse_with(bytes.into(), options).unwrap().has_collected
        };
        for fields in [
            "(func (param i32 externref))",
            "(func (result exnref) unreachable)",
            r#"(import "" "f" (func (param externref)))"#,
            r#"(import "" "g" (global externref))"#,
            r#"(import "" "t" (table 1 externref))"#,
            r#"(import "" "e" (tag (param externref)))"#,
            "(global exnref (ref.null exn))",
            "(global (ref null noexn) (ref.null noexn))",
            "(table 1 externref)",
            "(type (func (result i32 externref)))",
            "(func (block (result i32 externref) unreachable) drop drop)",
        ] {
            assert!(has_collected(fields), "{fields}");
        }
        for fields in [
            "",
            "(type $t (func)) (global (ref null $t) (ref.null $t)) (table 1 funcref) (func (param funcref (ref null $t)))",
            // Here they are null.
            "(func (local externref) (local.set 0 (ref.null extern)))",
            "(func (drop (block (result externref) (ref.null extern))))",
            "(elem externref (ref.null extern))",
        ] {
            assert!(!has_collected(fields), "{fields}");
        }
    }
}
