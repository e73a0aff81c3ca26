//! A module as plain data over its own private copy of the bytes.

pub use crate::body::{Body, FuncBody};

use crate::account::{Account, Aside};
use crate::bytes::Bytes;
use crate::effects::Effects;
use crate::hints::{self, Hint, HintKind, HintSections};
use crate::names::Names;
use crate::places::{Places, PlainSegment};
use crate::types::{FuncType, GlobalType, MemoryType, RefType, TableType};
use crate::validate::code::Code;
use crate::validate::{InvalidModule, Unvalidated, bodies};
use smallvec::{SmallVec, smallvec};
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use wasmparser::{BinaryReader, BinaryReaderError, Parser, Payload};

/// A validated module. All indices are in range, and the code of validated bodies is well typed.
#[derive(Debug, Default)]
pub struct Module {
    /// The whole file, copied before validation; only this copy is ever executed. A `pc`, also that of a trap, is an offset
    /// into it.
    pub bytes: Bytes,
    /// Function types.
    pub types: Box<[FuncType]>,
    /// Imports, in order.
    pub imports: Box<[Import]>,
    /// Type index of each function, imported ones first.
    pub funcs: Box<[u32]>,
    /// Tables, imported ones first.
    pub tables: Box<[Table]>,
    /// Memories, imported ones first.
    pub memories: Box<[MemoryType]>,
    /// Type index of each tag, imported ones first. The type has no results; its parameters are the payload.
    pub tags: Box<[u32]>,
    /// Types of the globals, imported ones first.
    pub globals: Box<[GlobalType]>,
    /// Initial values of the globals that are defined here.
    pub global_inits: Box<[ConstExpr]>,
    /// Exports, in order.
    pub exports: Box<[Export]>,
    /// The start function.
    pub start: Option<u32>,
    /// Element segments.
    pub elems: Box<[ElemSegment]>,
    /// Data segments.
    pub data: Box<[DataSegment]>,
    /// Bodies of the functions that are defined here; body `i` is function `imported_funcs + i`.
    pub bodies: Box<[Body]>,
    /// The state needed to validate the bodies, if the module was parsed with [`lazy`](crate::validate::Options::lazy).
    pub unvalidated: Option<Unvalidated>,
    /// Where the results of an earlier validation are, of a module whose bodies are not validated.
    pub results: Option<Arc<dyn Results>>,
    /// See [`Module::accepted_bytes`]; of bodies that were not left for later.
    pub accepted: u64,
    /// Number of imported functions.
    pub imported_funcs: u32,
    /// Number of imported tables.
    pub imported_tables: u32,
    /// Number of imported memories.
    pub imported_memories: u32,
    /// Number of imported globals.
    pub imported_globals: u32,
    /// Number of imported tags.
    pub imported_tags: u32,
    /// What its bodies may do.
    pub effects: Effects,
    /// For which tables [`Module::own_elements`] returns a number, once it was called.
    pub own_tables: OnceLock<Box<[bool]>>,
    /// The names in the name section.
    pub names: Names,
    /// Its compilation hints.
    pub hint_sections: HintSections,
    /// Whether it has debugging information: a custom section whose name begins with `.debug_`.
    pub has_debugging: bool,
    /// Whether a parameter, a result, a global or a table has a type of references into the collected heap. If not, such references are null
    /// in all code that catches no exceptions: one that is not null comes from one of these or from a handler. Tags, and blocks with an
    /// index, have their types among those of functions.
    pub has_collected: bool,
    /// The account of the memory that it takes.
    pub account: Arc<Account>,
    /// That of bodies that only compilers have asked for.
    pub aside: Aside,
    /// Held while a body is validated that was left for later: the one with the body's index, modulo their number.
    pub validating: [Mutex<()>; 16],
}

/// The results of an earlier validation of the same bytes with the same options.
pub trait Results: fmt::Debug + Send + Sync {
    /// Returns that of the body with this index, if it is there and not damaged.
    fn body(&self, index: u32) -> Option<FuncBody>;

    /// Returns whether function `func` may run before its body is validated, because there is code of it.
    fn may_run(&self, func: u32) -> bool;
}

/// One import.
#[derive(Clone, Debug)]
pub struct Import {
    /// Module name.
    pub module: Box<str>,
    /// Field name.
    pub name: Box<str>,
    /// The type that the imported item must have.
    pub ty: ExternType,
}

/// The type of an import or export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExternType {
    /// A function with this type index.
    Func(u32),
    /// A table.
    Table(TableType),
    /// A memory.
    Memory(MemoryType),
    /// A global.
    Global(GlobalType),
    /// A tag with this type index.
    Tag(u32),
}

/// One export.
#[derive(Clone, Debug)]
pub struct Export {
    /// Name of the export.
    pub name: Box<str>,
    /// The exported item.
    pub item: ExternIndex,
}

/// An index into one of the index spaces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExternIndex {
    /// A function.
    Func(u32),
    /// A table.
    Table(u32),
    /// A memory.
    Memory(u32),
    /// A global.
    Global(u32),
    /// A tag.
    Tag(u32),
}

/// A table of the module.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its type.
    pub ty: TableType,
    /// Value of every element at first; `None` is null.
    pub init: Option<ConstExpr>,
}

/// A constant expression: a program for a small operand stack that leaves one value. Nearly all are one instruction, and a module may
/// have tens of thousands of them.
#[derive(Clone, PartialEq, Debug)]
pub struct ConstExpr(pub SmallVec<[ConstOp; 1]>);

impl ConstExpr {
    /// Returns the value of an address or an index, if it does not depend on the instance.
    pub fn address(&self) -> Option<u64> {
        match *self.0 {
            [ConstOp::I32(value)] => Some(u64::from(value as u32)),
            [ConstOp::I64(value)] => Some(value as u64),
            _ => None,
        }
    }
}

/// An instruction of a constant expression.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ConstOp {
    /// `i32.const`
    I32(i32),
    /// `i64.const`
    I64(i64),
    /// `f32.const`, as bits.
    F32(u32),
    /// `f64.const`, as bits.
    F64(u64),
    /// `v128.const`, in little-endian order: a `u128` would double the size of all.
    V128([u8; 16]),
    /// `global.get`
    GlobalGet(u32),
    /// `ref.null`
    RefNull,
    /// `ref.func`
    RefFunc(u32),
    /// `i32.add`, `i32.sub`, `i32.mul`, `i64.add`, `i64.sub` or `i64.mul`
    Binary(crate::opcodes::Opcode),
}

/// An element segment.
#[derive(Clone, Debug)]
pub struct ElemSegment {
    /// Element type.
    pub ty: RefType,
    /// The elements.
    pub items: ElemItems,
    /// The use of the segment at instantiation.
    pub mode: ElemMode,
}

/// The elements of a segment, in one of the two ways in which the format gives them.
#[derive(Clone, PartialEq, Debug)]
pub enum ElemItems {
    /// Functions, as in nearly all segments.
    Funcs(Box<[u32]>),
    /// Any expressions.
    Exprs(Box<[ConstExpr]>),
}

impl ElemItems {
    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        match self {
            ElemItems::Funcs(funcs) => funcs.len(),
            ElemItems::Exprs(exprs) => exprs.len(),
        }
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The use of an element segment at instantiation.
#[derive(Clone, Debug)]
pub enum ElemMode {
    /// None: `table.init` reads it.
    Passive,
    /// None: it only declares references.
    Declared,
    /// It is written into a table, then dropped.
    Active {
        /// The table.
        table: u32,
        /// First index.
        offset: ConstExpr,
    },
}

/// A data segment.
#[derive(Clone, Debug)]
pub struct DataSegment {
    /// Its bytes within [`Module::bytes`].
    pub range: Range<u32>,
    /// Memory and offset it is written to at instantiation; `None` if passive.
    pub active: Option<(u32, ConstExpr)>,
}

impl DataSegment {
    /// The segment as a plain one, if it is.
    fn plain(&self) -> Option<PlainSegment> {
        let address = match &self.active {
            None => None,
            Some((0, ConstExpr(ops))) => match ops[..] {
                [ConstOp::I32(address)] => Some(address),
                _ => return None,
            },
            Some(_) => return None,
        };
        Some(PlainSegment { contents: self.range.clone(), address })
    }
}

impl From<PlainSegment> for DataSegment {
    fn from(PlainSegment { contents, address }: PlainSegment) -> DataSegment {
        let active = address.map(|address| (0, ConstExpr(smallvec![ConstOp::I32(address)])));
        DataSegment { range: contents, active }
    }
}

impl Module {
    /// Where its bodies and data segments are.
    pub fn places(&self) -> Places {
        let bodies = self.bodies.iter().map(Body::range).collect();
        Places { bodies, data: self.data.iter().map(DataSegment::plain).collect() }
    }

    /// The type of function `func`.
    pub fn func_type(&self, func: u32) -> &FuncType {
        &self.types[self.funcs[func as usize] as usize]
    }

    /// The type of tag `tag`: its parameters are the payload.
    pub fn tag_type(&self, tag: u32) -> &FuncType {
        &self.types[self.tags[tag as usize] as usize]
    }

    /// The name of tag `tag`: that of its export or import, or else that in the name section, or else its index.
    pub fn tag_name(&self, tag: u32) -> String {
        if let Some(export) = self.exports.iter().find(|export| export.item == ExternIndex::Tag(tag)) {
            return export.name.to_string();
        }
        let mut imports = self.imports.iter().filter(|import| matches!(import.ty, ExternType::Tag(_)));
        match imports.nth(tag as usize) {
            Some(import) => format!("{}.{}", import.module, import.name),
            None => self.names.tag(&self.bytes, &self.account, tag).map_or_else(|| format!("tag {tag}"), str::to_string),
        }
    }

    /// The body of function `func`, or `None` if it is imported or its body not validated.
    pub fn body(&self, func: u32) -> Option<&FuncBody> {
        self.bodies[func.checked_sub(self.imported_funcs)? as usize].get()
    }

    /// Returns the bytes of the host's memory that it takes.
    pub fn host_memory(&self) -> usize {
        self.account.used() + self.aside.account().used()
    }

    /// The body of function `func`, validated now if it has not been; `None` if the function is imported.
    ///
    /// # Errors
    /// The body is invalid, or its tables take [more memory](InvalidModule::exceeded) than is allowed. Only the latter may change later.
    pub fn validated_body(&self, func: u32) -> Option<Result<&FuncBody, InvalidModule>> {
        let index = func.checked_sub(self.imported_funcs)?;
        let body = &self.bodies[index as usize];
        if let Some(result) = body.result() {
            return Some(result);
        }
        let _guard = self.lock(index);
        // Another thread may have validated it.
        if let Some(result) = body.result() {
            return Some(result);
        }
        Some(self.keep(body, self.validate(index, body.range(), &self.account)))
    }

    /// Keeps the result of a body's validation, unless there was no room for it. An error that is kept is charged.
    fn keep<'m>(&self, body: &'m Body, result: Result<FuncBody, InvalidModule>) -> Result<&'m FuncBody, InvalidModule> {
        if let Err(error) = &result
            && error.exceeded().is_none()
        {
            self.account.charge_anyway(error.size());
        }
        body.set_result(result)
    }

    /// The body with this index and range, from the results of an earlier validation or by validating it. Its tables are charged to `account`.
    fn validate(&self, index: u32, range: Range<u32>, account: &Account) -> Result<FuncBody, InvalidModule> {
        let func = self.imported_funcs + index;
        // A function with stored code may run before its body is needed, which must then be there.
        let may_refuse = !self.results.as_ref().is_some_and(|results| results.may_run(func));
        let unvalidated = self.unvalidated.as_ref().expect("only a module parsed lazily has bodies that are not validated");
        let code = Code { account, ..self.code(unvalidated, may_refuse) };
        // The bytes of a validated body are always readable.
        let bytes = self.bytes.try_part(range.start as usize..range.end as usize);
        let bytes = bytes.map_err(|unreadable| InvalidModule::of_unreadable(unreadable, range.start as usize).within(func))?;
        let stored = self.results.as_ref().and_then(|results| results.body(index));
        let Some(stored) = stored.filter(|stored| stored.is_within(range.clone())) else {
            return bodies::validate_one(&Code { bytes, start: range.start, ..code }, index, range);
        };
        code.charge(stored.size(), range.start).map_err(|error| error.within(func))?;
        Ok(stored)
    }

    /// The body of function `func`, for a compiler that inlines it. The body is validated now if it has not been: the choice does not depend on
    /// which functions were called. With a limit of validation's steps it is not: only functions that are called count toward that limit. Nor
    /// is it once there was no room [aside](Aside) for its tables. Functions that are called have the same room as without it.
    /// No function is validated twice. `None` if the function is imported, invalid or not validated.
    pub fn body_to_copy(&self, func: u32) -> Option<&FuncBody> {
        if self.unvalidated.as_ref().is_some_and(Unvalidated::has_max_steps) {
            return self.body(func);
        }
        let index = func.checked_sub(self.imported_funcs)?;
        let body = &self.bodies[index as usize];
        let _guard = match body.result() {
            Some(result) => return result.ok(),
            None => self.lock(index),
        };
        if let Some(result) = body.result() {
            return result.ok();
        }
        if !self.aside.is_open() {
            return None;
        }
        let result = self.validate(index, body.range(), self.aside.account());
        match &result {
            Ok(validated) if self.aside.is_exceeded() => {
                self.aside.account().give_back(validated.size());
                self.aside.close();
                return None;
            }
            // If it was for want of the engine's room, there may be some later.
            Err(error) if error.exceeded().is_some() && self.aside.is_open() => self.aside.close(),
            Ok(_) | Err(_) => (),
        }
        self.keep(body, result).ok()
    }

    /// Locks the body with this index for its validation.
    fn lock(&self, index: u32) -> MutexGuard<'_, ()> {
        let lock = &self.validating[index as usize % self.validating.len()];
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the name and the contents of each custom section, in order. Sections with debugging
    /// information have zeros as contents if only the [needed](crate::file::needed) bytes of the module's file were read. None if the
    /// module is [unreadable](crate::Unreadable).
    pub fn custom_sections(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let payloads = Parser::new(0).parse_all(self.bytes.all().unwrap_or_default()).map_while(Result::ok);
        payloads.filter_map(|payload| {
            let Payload::CustomSection(section) = payload else { return None };
            Some((section.name(), section.data()))
        })
    }

    /// Returns the id of each section, in order, and where its contents are in the module's bytes.
    pub fn sections(&self) -> Vec<(u8, Range<usize>)> {
        const PREAMBLE: usize = 8;
        let mut reader = BinaryReader::new(&self.bytes[PREAMBLE..], PREAMBLE as u64);
        let section = |reader: &mut BinaryReader<'_>| -> Result<_, BinaryReaderError> {
            let id = reader.read_u8()?;
            let size = reader.read_var_u32()? as usize;
            let start = reader.original_position() as usize;
            reader.read_bytes(size)?;
            Ok((id, start..start + size))
        };
        let mut sections = Vec::new();
        while !reader.eof() {
            sections.push(section(&mut reader).expect("the module was decoded"));
        }
        sections
    }

    /// Returns its [hints](HintSections::hints) of this kind.
    pub fn hints(&self, kind: HintKind) -> Vec<Hint<&[u8]>> {
        self.hint_sections.hints(kind, &self.bytes)
    }

    /// Returns its bytes with [these hints](hints::replace).
    pub fn with_hints(&self, sections: &[(HintKind, Vec<u8>)]) -> Vec<u8> {
        hints::replace(&self.bytes, &self.sections(), sections)
    }

    /// Returns the number of bytes of instructions in the bodies that were validated without wasmparser.
    pub fn accepted_bytes(&self) -> u64 {
        self.accepted + self.unvalidated.as_ref().map_or(0, Unvalidated::accepted)
    }

    /// Returns the data for validating its bodies, without their bytes. `may_refuse` is whether they may be refused for want of memory.
    pub(crate) fn code<'m>(&'m self, unvalidated: &'m Unvalidated, may_refuse: bool) -> Code<'m> {
        let Module { types, globals, funcs, tags, account, imported_funcs, .. } = self;
        let (bytes, module_len) = (&[][..], self.bytes.len());
        Code {
            bytes,
            start: 0,
            module_len,
            types,
            globals,
            funcs,
            tags,
            imported_funcs: *imported_funcs,
            unvalidated,
            account,
            may_refuse,
        }
    }

    /// The module's own name, from the name section.
    pub fn name(&self) -> Option<&str> {
        self.names.module(&self.bytes, &self.account)
    }

    /// The name of function `func` in the name section. Malformed names are left out, and all if the module has no memory left for them.
    pub fn func_name(&self, func: u32) -> Option<&str> {
        if func as usize >= self.funcs.len() {
            return None;
        }
        self.names.func(&self.bytes, &self.account, func)
    }

    /// The first name by which function `func` is exported.
    pub fn export_of(&self, func: u32) -> Option<&str> {
        self.exports.iter().find(|export| export.item == ExternIndex::Func(func)).map(|export| &*export.name)
    }

    /// The function whose body contains `pc`.
    pub fn func_at(&self, pc: u32) -> Option<u32> {
        let i = self.bodies.partition_point(|body| body.range().start <= pc).checked_sub(1)?;
        (pc < self.bodies[i].range().end).then_some(self.imported_funcs + i as u32)
    }
}
