//! What the contract says about the function: its frames, and the fields of contexts and records that code may read or write.

use crate::value::{Base, Bound, Class, Value};
use crate::{Function, Options};
use iced_x86::{ConstantOffsets, Decoder, DecoderOptions, Instruction};
use std::mem::offset_of;
use weir_bytecode::types::{HeapType, RefType};
use weir_bytecode::{Module, ValType};
use weir_contract::code::{Reloc, RelocTarget};
use weir_contract::profile::CallCounters;
use weir_contract::{
    Entry, FRAME_HEADER, FuncRef, Helper, InstanceCtx, Layout, MemoryCtx, OVERFLOW_SLOTS, StackCtx, StoreCtx, TableCtx,
    TableEntry, TrapSite, VALUE_STACK_RESERVE,
};

/// The function, and what follows from the contract for it.
#[derive(Debug)]
pub struct Context<'f> {
    /// The code and its tables.
    pub function: &'f Function<'f>,
    /// The layout of the instance.
    pub layout: Layout,
    /// Bytes of the interpreter's frame.
    pub frame_bytes: i64,
    /// The first byte of the frame's header, which no code accesses.
    pub header: i64,
    /// Bytes of a slot of the interpreter's frame.
    pub slot: i64,
}

/// The result of reading a field.
pub type Field = Result<Value, &'static str>;

const STORE: i64 = offset_of!(InstanceCtx, store) as i64;
const STACK: i64 = offset_of!(InstanceCtx, stack) as i64;
const BASE: i64 = offset_of!(InstanceCtx, memory0_base) as i64;
const HELPERS: i64 = offset_of!(InstanceCtx, helpers) as i64;
const COUNTERS: i64 = offset_of!(InstanceCtx, counters) as i64;
const FUEL: i64 = offset_of!(StoreCtx, fuel) as i64;
const EPOCH: i64 = offset_of!(StoreCtx, epoch) as i64;
const DEADLINE: i64 = offset_of!(StoreCtx, deadline) as i64;
const TRAP: i64 = offset_of!(StoreCtx, trap) as i64;
const OPERAND: i64 = offset_of!(StoreCtx, operand) as i64;
const OSR_TICKS: i64 = offset_of!(StoreCtx, osr_ticks) as i64;
const MISSES: i64 = offset_of!(StoreCtx, misses) as i64;
const NATIVE_LIMIT: i64 = offset_of!(StackCtx, native_limit) as i64;
/// See [`Context::stack_field`].
pub const VALUE_SP: i64 = offset_of!(StackCtx, value_sp) as i64;
const VALUE_LIMIT: i64 = offset_of!(StackCtx, value_limit) as i64;
const OVERFLOW: i64 = offset_of!(StackCtx, overflow) as i64;
/// Bytes that are always there above `value_sp`.
pub const RESERVE: i64 = 8 * VALUE_STACK_RESERVE as i64;

impl<'f> Context<'f> {
    /// That of a function, if it is one of the module's own.
    pub fn new(function: &'f Function<'f>) -> Option<Context<'f>> {
        let body = function.module.body(function.func)?;
        let slot = 8 * body.words() as i64;
        let header = slot * body.locals.len() as i64;
        let frame_bytes = header + 8 * i64::from(FRAME_HEADER) + slot * i64::from(body.max_operands);
        Some(Context { function, layout: Layout::of(function.module), frame_bytes, header, slot })
    }

    /// The module.
    pub fn module(&self) -> &'f Module {
        self.function.module
    }

    /// The options.
    pub fn options(&self) -> &'f Options<'f> {
        &self.function.options
    }

    /// Whether the code is entered with an interpreter's frame.
    pub fn is_osr(&self) -> bool {
        matches!(self.function.entry, Entry::Osr(_))
    }

    /// The offset of an operand's slot in the interpreter's frame.
    pub fn operand(&self, index: i64) -> i64 {
        self.header + 8 * i64::from(FRAME_HEADER) + self.slot * index
    }

    /// The relocation of an instruction's displacement, and the bytes between the field and the instruction's end.
    pub fn field(&self, inst: &Instruction) -> Option<(Reloc, i64)> {
        let (reloc, offsets) = self.relocated(inst)?;
        let at = offsets.has_displacement().then(|| inst.ip() as u32 + offsets.displacement_offset() as u32)?;
        (at == reloc.offset).then(|| (reloc, inst.next_ip() as i64 - i64::from(at) - 4))
    }

    /// The relocation of an instruction's immediate.
    pub fn immediate(&self, inst: &Instruction) -> Option<Reloc> {
        let (reloc, offsets) = self.relocated(inst)?;
        let at = offsets.has_immediate().then(|| inst.ip() as u32 + offsets.immediate_offset() as u32)?;
        (at == reloc.offset).then_some(reloc)
    }

    /// Whether a field of the instruction is relocated.
    pub fn reloc_within(&self, inst: &Instruction) -> bool {
        self.relocated(inst).is_some()
    }

    fn relocated(&self, inst: &Instruction) -> Option<(Reloc, ConstantOffsets)> {
        let (relocs, from, to) = (self.function.relocs, inst.ip() as u32, inst.next_ip() as u32);
        let reloc = *relocs.get(relocs.partition_point(|reloc| reloc.offset < from))?;
        if reloc.offset >= to {
            return None;
        }
        let mut decoder = Decoder::with_ip(64, &self.function.code[from as usize..], from.into(), DecoderOptions::NONE);
        let inst = decoder.decode();
        Some((reloc, decoder.get_constant_offsets(&inst)))
    }

    /// The offset in the module of the function's own instruction whose code has the call that returns to this offset.
    pub fn pc(&self, to: u32) -> Option<u32> {
        let Function { calls, inlining, func, .. } = *self.function;
        let call = calls.binary_search_by_key(&to, |call| call.0).ok()?;
        inlining.expand(func, calls[call].1, inlining.of_call(call)).last().map(|frame| frame.1)
    }

    /// The trap of the trap site at exactly this offset.
    pub fn trap(&self, offset: u32) -> Option<TrapSite> {
        let traps = self.function.traps;
        let at = traps.binary_search_by_key(&offset, |trap| trap.offset).ok()?;
        Some(traps[at].site)
    }

    /// The address or number that a relocated field gives, of which `relative` says whether it is relative to its own end, `after` bytes
    /// before that of the instruction.
    pub fn target(&self, reloc: Reloc, relative: bool, after: i64) -> Field {
        let distance = i64::from(reloc.addend) + if relative { 4 + after } else { 0 };
        let value = match reloc.target {
            RelocTarget::Cell => Value::at(Base::Cell(reloc.index)),
            RelocTarget::Ticks(_) => Value::at(Base::Counters(false)),
            RelocTarget::Counters(_) => Value::at(Base::Counters(true)),
            RelocTarget::Signature if !relative => return Ok(Value::at(Base::Signature(reloc.index))),
            RelocTarget::Signature => return Err("a relative field has the identity of a type"),
        };
        let own = matches!(reloc.target, RelocTarget::Cell) || reloc.index == self.function.func;
        if !own {
            return Err("the counters belong to another function");
        }
        Ok(Value { disp: distance, ..value })
    }

    /// A value of this type, in a register or slot of 8 bytes.
    pub fn typed(ty: ValType) -> Value {
        match ty {
            ValType::Ref(RefType { nullable, heap }) => Value::at(Base::Reference(heap, nullable)),
            ValType::I32 | ValType::I64 | ValType::F32 | ValType::F64 | ValType::V128 => Value::any(),
        }
    }

    /// Reads `bytes` of the instance.
    pub fn instance_field(&self, at: i64, bytes: i64) -> Field {
        if let Some((global, from)) = self.global(at) {
            let ty = self.module().globals[global as usize].value;
            if self.layout.global_is_pointer(global) {
                return if from == 0 && bytes == 8 { Ok(Value::at(Base::Global(global))) } else { Err("a part of a pointer") };
            }
            return if from + bytes <= 16 {
                Ok(if from == 0 { Self::typed(ty) } else { Value::any() })
            } else {
                Err("past a global")
            };
        }
        if bytes != 8 {
            return Err("a part of a field of the instance");
        }
        let module = self.module();
        let index_in = |from: u32, count: usize| {
            let index = (at - i64::from(from)) / 8;
            (at >= i64::from(from) && (at - i64::from(from)) % 8 == 0 && index < count as i64).then_some(index as u32)
        };
        match at {
            STORE => return Ok(Value::at(Base::Store)),
            STACK => return Ok(Value::at(Base::Stack)),
            BASE => return Ok(Value::at(Base::Memory(0))),
            HELPERS => return Ok(Value::at(Base::Helpers)),
            COUNTERS => return Ok(Value::at(Base::Stripe)),
            _ => {}
        }
        if let Some(memory) = index_in(self.layout.memory(0), module.memories.len()) {
            return Ok(Value::at(Base::MemoryRecord(memory)));
        }
        if let Some(table) = index_in(self.layout.table(0), module.tables.len()) {
            return Ok(Value::at(Base::TableRecord(table)));
        }
        if let Some(func) = index_in(self.layout.import(0), module.imported_funcs as usize) {
            return Ok(Value::at(Base::Reference(HeapType::Concrete(module.funcs[func as usize]), false)));
        }
        Err("no field of the instance that code may read")
    }

    /// The global whose slot contains this offset, and the offset in it.
    pub fn global(&self, at: i64) -> Option<(u32, i64)> {
        let from = at - i64::from(self.layout.global(0));
        let count = self.module().globals.len() as i64;
        (from >= 0 && from / 16 < count).then_some(((from / 16) as u32, from % 16))
    }

    /// Reads `bytes` of the slot of an imported global.
    pub fn global_field(&self, global: u32, at: i64, bytes: i64) -> Field {
        match at {
            0 if bytes <= 16 => Ok(Self::typed(self.module().globals[global as usize].value)),
            1..16 if at + bytes <= 16 => Ok(Value::any()),
            _ => Err("past a global"),
        }
    }

    /// Whether a global may be written with this value.
    pub fn may_set(&self, global: u32, at: i64, bytes: i64, stored: &Value) -> Result<(), &'static str> {
        let ty = self.module().globals[global as usize];
        if at < 0 || at + bytes > 16 {
            return Err("past a global");
        }
        if !ty.mutable {
            return Err("the global is immutable");
        }
        self.is_of(ty.value, stored)
    }

    /// Whether a value may be passed as one of this type.
    pub fn is_of(&self, ty: ValType, value: &Value) -> Result<(), &'static str> {
        let ValType::Ref(RefType { nullable, heap }) = ty else { return Ok(()) };
        let found = match value.base {
            Base::Reference(found, null) if value.fixed() == Some(0) => {
                (is_same(self.module(), found, heap, 0) || is_subtype(found, heap)) && (nullable || !null)
            }
            Base::Int => nullable && value.known() == Some(0),
            _ => false,
        };
        if found { Ok(()) } else { Err("it is not known to be a reference of the type") }
    }

    /// Reads 8 bytes of the store.
    pub fn store_field(at: i64, bytes: i64) -> Field {
        match (at, bytes) {
            (EPOCH, 8) => Ok(Value::at(Base::Epoch)),
            (FUEL | DEADLINE | OSR_TICKS | MISSES, 8) => Ok(Value::any()),
            _ => Err("no field of the store that code may read"),
        }
    }

    /// Whether code may write 8 bytes of the store.
    pub fn may_write_store(at: i64, bytes: i64) -> Result<(), &'static str> {
        match (at, bytes) {
            (FUEL | OSR_TICKS | MISSES | OPERAND | TRAP, 8) => Ok(()),
            _ => Err("no field of the store that code may write"),
        }
    }

    /// Reads 8 bytes of the stack's context, except `value_sp`.
    pub fn stack_field(at: i64, bytes: i64) -> Field {
        match (at, bytes) {
            (NATIVE_LIMIT, 8) => Ok(Value::at(Base::NativeLimit)),
            (VALUE_LIMIT, 8) => Ok(Value::at_most(Bound::ValueLimit)),
            (OVERFLOW, 8) => Ok(Value::at(Base::Overflow)),
            _ => Err("no field of the stack that code may read"),
        }
    }

    /// Reads 8 bytes of a memory's record.
    pub fn memory_field(&self, memory: u32, at: i64, bytes: i64) -> Field {
        let ty = &self.module().memories[memory as usize];
        let largest = match (ty.memory64, ty.page_size_log2) {
            // Both are parts of the address space.
            (true, _) => i64::MAX as u64,
            // The number of pages, of one byte, has 32 bits.
            (false, 0) => u32::MAX.into(),
            (false, _) => 1 << 32,
        };
        match (at as usize, bytes) {
            (at, 8) if at == offset_of!(MemoryCtx, base) => Ok(Value::at(Base::Memory(memory))),
            (at, 8) if at == offset_of!(MemoryCtx, len) => {
                Ok(Value { low: self.least_length(memory), high: largest, ..Value::at_most(Bound::Memory(memory)) })
            }
            _ => Err("no field of a memory's record"),
        }
    }

    /// The least length of a memory in bytes.
    pub fn least_length(&self, memory: u32) -> u64 {
        let ty = &self.module().memories[memory as usize];
        ty.limits.min.checked_shl(ty.page_size_log2.into()).unwrap_or(0)
    }

    /// Reads 8 bytes of a table's record.
    pub fn table_field(&self, table: u32, at: i64, bytes: i64) -> Field {
        let is_64 = self.module().tables[table as usize].ty.table64;
        // All elements have addresses.
        let largest = if is_64 { i64::MAX as u64 / size_of::<TableEntry>() as u64 } else { u32::MAX.into() };
        match (at as usize, bytes) {
            (at, 8) if at == offset_of!(TableCtx, entries) => Ok(Value::at(Base::Table(table))),
            (at, 8) if at == offset_of!(TableCtx, len) => Ok(Value { high: largest, ..Value::at_most(Bound::Table(table)) }),
            // A table of 32 bits is shorter than that.
            (at, 4) if at == offset_of!(TableCtx, len) && !is_64 => Ok(Value::range(0, u32::MAX.into())),
            _ => Err("no field of a table's record"),
        }
    }

    /// Reads a field of a table's element, whose address is this class with this value.
    pub fn element_field(&self, table: u32, at: i64, bytes: i64, class: Class, value: &Value) -> Field {
        let ty = self.module().tables[table as usize].ty.element;
        match (at as usize, bytes) {
            (at, 8) if at == offset_of!(TableEntry, reference) => {
                Ok(Value::at(Base::Reference(ty.heap, ty.nullable && value.sig.is_none())))
            }
            (at, 8) if at == offset_of!(TableEntry, cell) => Ok(Value::at(Base::CellOf(class))),
            (at, 8) if at == offset_of!(TableEntry, instance) => Ok(Value::at(Base::InstanceOf(class))),
            (at, 4) if at == offset_of!(TableEntry, sig) => Ok(Value::at(Base::SignatureOf(class))),
            _ => Err("no field of a table's element"),
        }
    }

    /// Reads a field of a function reference.
    pub fn reference_field(at: i64, bytes: i64, class: Class) -> Field {
        match (at as usize, bytes) {
            (at, 8) if at == offset_of!(FuncRef, cell) => Ok(Value::at(Base::CellOf(class))),
            (at, 8) if at == offset_of!(FuncRef, instance) => Ok(Value::at(Base::InstanceOf(class))),
            (at, 4) if at == offset_of!(FuncRef, sig) => Ok(Value::at(Base::SignatureOf(class))),
            (at, 4) if at == offset_of!(FuncRef, index) => Ok(Value::range(0, u32::MAX.into())),
            _ => Err("no field of a function reference"),
        }
    }

    /// Reads an element of the list of helpers.
    pub fn helper(at: i64, bytes: i64) -> Field {
        let is_one = bytes == 8 && at >= 0 && at % 8 == 0 && at / 8 < Helper::COUNT as i64;
        if is_one { Ok(Value::at(Base::Helper((at / 8) as u32))) } else { Err("no helper") }
    }

    /// Whether bytes from `low` to `high` of the interpreter's frame are of one of its slots, of which `room` bytes are there.
    pub fn is_slot(&self, low: i64, high: i64, room: i64) -> Result<(), &'static str> {
        let after = self.header + 8 * i64::from(FRAME_HEADER);
        let is_local = low >= 0 && high <= self.header;
        let is_operand = low >= after && high <= self.frame_bytes;
        if !is_local && !is_operand {
            return Err("no local or operand of the frame");
        }
        if high <= room { Ok(()) } else { Err("the frame is not known to fit into the value stack") }
    }

    /// The type of the local whose slot begins at this offset of the frame.
    pub fn local(&self, at: i64) -> Option<ValType> {
        let locals = &self.module().body(self.function.func)?.locals;
        if at < 0 || at % self.slot != 0 {
            return None;
        }
        locals.get((at / self.slot) as usize).copied()
    }

    /// Whether bytes are of the overflow area.
    pub fn is_overflow(low: i64, high: i64) -> Result<(), &'static str> {
        if low >= 0 && high <= 8 * OVERFLOW_SLOTS as i64 { Ok(()) } else { Err("outside the overflow area") }
    }

    /// Whether bytes are of the counters (`true`) or the ticks of the function.
    pub fn is_counter(&self, counters: bool, low: i64, high: i64) -> Result<(), &'static str> {
        let body = self.module().body(self.function.func);
        let bytes = match (counters, body) {
            (true, Some(body)) => CallCounters::offset(body.branches.len(), body.indirect_calls as usize) as i64,
            _ => 4,
        };
        if low >= 0 && high <= bytes { Ok(()) } else { Err("outside the function's counters") }
    }
}

/// Whether all values of a heap type are of another.
pub fn is_subtype(of: HeapType, other: HeapType) -> bool {
    matches!((of, other), (HeapType::Concrete(_), HeapType::Func) | (HeapType::NoExn, HeapType::Exn))
}

/// Whether two heap types are the same: types are equal if their parts are.
fn is_same(module: &Module, a: HeapType, b: HeapType, depth: u32) -> bool {
    let (HeapType::Concrete(x), HeapType::Concrete(y)) = (a, b) else { return a == b };
    let (Some(f), Some(g)) = (module.types.get(x as usize), module.types.get(y as usize)) else { return false };
    let same = |a: &[ValType], b: &[ValType]| {
        let part = |(a, b): (&ValType, &ValType)| match (a, b) {
            (ValType::Ref(a), ValType::Ref(b)) => a.nullable == b.nullable && is_same(module, a.heap, b.heap, depth + 1),
            (a, b) => a == b,
        };
        a.len() == b.len() && a.iter().zip(b).all(part)
    };
    x == y || depth < 16 && same(&f.params, &g.params) && same(&f.results, &g.results)
}
