//! Validates function bodies, one instruction at a time, while [`Builder`] writes the side table: each when it is first needed, or
//! for [`super::threads`] many in the same memory.
//!
//! A step is a byte that the acceptor reads, an instruction that wasmparser validates, and each value of a type that it compares for one: a
//! branch table compares the types of all its labels. That is counted, as for the widest type, before wasmparser sees the instruction.

use super::acceptor::Acceptor;
use super::builder::{Builder, Class, Step};
use super::code::Code;
use super::convert::val_type;
use super::invalid::InvalidModule;
use super::memory::OPERAND;
use super::tables::{Placed, Shared, Tables};
use crate::body::FuncBody;
use crate::effects::Effects;
use crate::opcodes::Opcode;
use crate::reader::Reader;
use crate::types::ValType;
use std::ops::Range;
use wasmparser::{BinaryReader, FuncToValidate, FuncValidator, FuncValidatorAllocations, FunctionBody, ValidatorResources};

/// Returns the maximum number of locals of all functions together, of a module with this many bytes. Each function may have 50,000,
/// declared in a few bytes; without this limit a small file could cause any amount of memory to be allocated. Real modules have
/// some 100,000.
fn max_locals(bytes: usize) -> usize {
    2_000_000 + 4 * bytes
}

/// The locals that a thread validates before it adds them to those of all threads.
const LOCALS_PER_COUNT: usize = 100_000;

/// The steps that a thread takes before it adds them to those of all threads.
const STEPS_PER_COUNT: u64 = 1_000_000;

/// The bytes of tables that a thread writes before it charges them, and of stacks while it validates a body.
const BYTES_PER_CHARGE: usize = 64 << 10;

/// The body with this index and range, which a module that was parsed lazily has left for later.
pub(crate) fn validate_one(code: &Code<'_>, index: u32, range: Range<u32>) -> Result<FuncBody, InvalidModule> {
    let (mut worker, start) = (Worker::default(), range.start);
    let validated = worker.validate(code, index as usize, range).and_then(|placed| {
        let body = std::mem::take(&mut worker.tables).share().body(&placed);
        code.replace(worker.charged, body.size(), start).map_err(|error| error.within(code.imported_funcs + index))?;
        worker.charged = 0;
        Ok(body)
    });
    code.account.give_back(worker.charged);
    worker.count(code);
    validated
}

/// Validates one body after the other, in the same memory.
#[derive(Default)]
pub(super) struct Worker {
    acceptor: Acceptor,
    builder: Builder,
    allocations: FuncValidatorAllocations,
    /// The types of a body's locals.
    locals: Vec<ValType>,
    /// The tables of its bodies.
    tables: Tables,
    /// Their locals that are not counted yet, and those of all threads when the last ones were.
    uncounted_locals: usize,
    counted_locals: usize,
    /// Bytes of instructions that the acceptor has validated and that are not counted yet.
    uncounted_bytes: u64,
    /// The steps that are not counted yet, and those of all threads when the last ones were.
    uncounted_steps: u64,
    counted_steps: u64,
    /// The bytes of tables that are charged.
    charged: usize,
}

impl Worker {
    /// For bodies of about this many bytes together.
    pub fn new(bytes: usize) -> Worker {
        Worker { tables: Tables::with_capacity(bytes), ..Worker::default() }
    }

    /// The bytes of the tables of its bodies.
    pub fn size(&self) -> usize {
        self.tables.size()
    }

    /// The tables of its bodies, and what they may do.
    pub fn share(self) -> (Shared, Effects) {
        (self.tables.share(), self.builder.effects)
    }

    /// Validates the body of the module's own function number `index`.
    pub fn validate(&mut self, code: &Code<'_>, index: usize, range: Range<u32>) -> Result<Placed, InvalidModule> {
        let index = code.imported_funcs + index as u32;
        self.counted_steps = code.unvalidated.steps();
        self.spend(code, u64::from(range.end - range.start), range.start).map_err(|error| error.within(index))?;
        let entry = match self.accept(code, index, &range) {
            Some(entry) => entry,
            None => self.validate_slowly(code, index, &range).map_err(|error| error.within(index))?,
        };
        self.uncounted_locals += self.locals.len() + self.builder.saved_locals();
        if self.uncounted_locals >= LOCALS_PER_COUNT {
            self.count(code);
        }
        let max = max_locals(code.module_len);
        if code.may_refuse && self.counted_locals + self.uncounted_locals > max {
            let message = format!("more than {max} locals in all functions together are not supported");
            return Err(InvalidModule::new(message, range.start.into()).within(index));
        }
        let placed = self.builder.finish(code.unvalidated.options.work, &self.locals, &mut self.tables);
        self.builder.give_back(BYTES_PER_CHARGE);
        let uncharged = self.tables.size() - self.charged;
        if uncharged >= BYTES_PER_CHARGE {
            code.charge(uncharged, range.start).map_err(|error| error.within(index))?;
            self.charged += uncharged;
        }
        Ok(Placed { entry, end: range.end, ..placed })
    }

    /// Adds to the counts that threads share. After each body it would make threads wait for each other's cache line.
    pub fn count(&mut self, code: &Code<'_>) {
        self.counted_locals = code.unvalidated.add_locals(std::mem::take(&mut self.uncounted_locals));
        code.unvalidated.add_accepted(std::mem::take(&mut self.uncounted_bytes));
        self.counted_steps = code.unvalidated.add_steps(std::mem::take(&mut self.uncounted_steps));
    }

    /// Counts the steps of the body or instruction at `pc`.
    fn spend(&mut self, code: &Code<'_>, steps: u64, pc: u32) -> Result<(), InvalidModule> {
        self.uncounted_steps = self.uncounted_steps.saturating_add(steps);
        if self.uncounted_steps >= STEPS_PER_COUNT {
            self.counted_steps = code.unvalidated.add_steps(std::mem::take(&mut self.uncounted_steps));
        }
        if !code.may_refuse {
            return Ok(());
        }
        code.unvalidated.check_steps(self.counted_steps.saturating_add(self.uncounted_steps), pc)
    }

    /// The offset of the first instruction, unless the body is left to wasmparser.
    fn accept(&mut self, code: &Code<'_>, index: u32, range: &Range<u32>) -> Option<u32> {
        let Worker { acceptor, builder, locals, .. } = self;
        let effects = builder.effects;
        let entry = acceptor.accept(code, code.funcs[index as usize], range, locals, builder);
        match entry {
            Some(entry) => self.uncounted_bytes += u64::from(range.end - entry),
            None => builder.effects = effects,
        }
        entry
    }

    /// Has wasmparser validate a body; returns the offset of its first instruction. Stacks that are charged are not kept for other bodies.
    fn validate_slowly(&mut self, code: &Code<'_>, index: u32, range: &Range<u32>) -> Result<u32, InvalidModule> {
        let mut stacks = 0;
        let entry = self.validate_within(code, index, range, &mut stacks);
        if stacks > 0 {
            self.allocations = FuncValidatorAllocations::default();
            self.builder.give_back_labels();
            code.account.give_back(stacks);
        }
        entry
    }

    /// The same. Adds the charges for its stacks to `stacks`: an instruction of two bytes may open a block or push a thousand operands.
    fn validate_within(
        &mut self,
        code: &Code<'_>,
        index: u32,
        range: &Range<u32>,
        stacks: &mut usize,
    ) -> Result<u32, InvalidModule> {
        let ty = code.funcs[index as usize];
        let features = code.unvalidated.options.features();
        let func = FuncToValidate { resources: code.unvalidated.resources(), index, ty, features };
        let ty = &code.types[ty as usize];
        let mut validator = func.into_validator(std::mem::take(&mut self.allocations));
        let bytes = &code.bytes[code.place(range.start)..code.place(range.end)];
        let mut reader = FunctionBody::new(BinaryReader::new(bytes, range.start.into())).get_binary_reader();
        reader.set_features(features);
        self.locals.clear();
        self.locals.extend_from_slice(&ty.params);
        read_locals(&mut reader, &mut validator, &mut self.locals)?;

        let (entry, end) = (reader.original_position() as u32, range.end);
        self.builder.begin(code, ty, &self.locals, entry, end - entry);
        // After one instruction the stack is as it is before the next.
        let (mut pc, mut before) = (entry, 0);
        while pc < end {
            let rest = &code.bytes[code.place(pc)..code.place(end)];
            let opcode = rest[0];
            let class = Class::of(opcode).ok_or_else(|| unknown_opcode(opcode, pc))?;
            self.spend(code, steps_of(rest, code.unvalidated.widest), pc)?;
            reader.visit_operator(&mut validator.visitor(pc.into()))??;
            let (next, after) = (reader.original_position() as u32, validator.operand_stack_height());
            self.builder.instruction(code, Step { class, pc, next, before });
            if let Some(table) = written_table(rest) {
                self.builder.effects.write_table(table);
            }
            self.builder.operands(after);
            // A stack doubles when it is full.
            let taken = 2 * (after as usize * OPERAND + self.builder.open_blocks());
            if taken > *stacks + BYTES_PER_CHARGE {
                code.charge(taken - *stacks, pc)?;
                *stacks = taken;
            }
            (pc, before) = (next, after);
        }
        reader.finish_expression(&validator.visitor(reader.original_position()))?;
        self.allocations = validator.into_allocations();
        Ok(entry)
    }
}

/// Returns the most steps that wasmparser takes for the instruction at the beginning of these bytes.
fn steps_of(bytes: &[u8], widest: u64) -> u64 {
    let mut reader = BinaryReader::new(&bytes[1..], 0);
    // What cannot be read is an error that wasmparser reports.
    let labels = match Opcode::from_code(bytes[0].into()) {
        Some(Opcode::BrTable) => reader.read_var_u32().unwrap_or_default(),
        Some(Opcode::TryTable) => reader.read_var_s33().and_then(|_| reader.read_var_u32()).unwrap_or_default(),
        _ => 0,
    };
    // Each label is a byte at least.
    let labels = u64::from(labels).min(bytes.len() as u64);
    let has_types = matches!(bytes[0], 0x02..=0x19 | 0x1F | 0xD4..=0xD6);
    if has_types { (1 + labels) * (1 + widest) } else { 1 }
}

/// Returns the table that a valid instruction at the beginning of these bytes writes or grows. The acceptor knows none of these instructions.
fn written_table(bytes: &[u8]) -> Option<u32> {
    if !matches!(bytes[0], 0x26 | 0xFC) {
        return None;
    }
    let mut reader = Reader { bytes, at: 0 };
    let op = reader.opcode();
    if op == Opcode::TableInit {
        let _segment = reader.u32();
        return Some(reader.u32());
    }
    let writes = matches!(op, Opcode::TableSet | Opcode::TableGrow | Opcode::TableFill | Opcode::TableCopy);
    writes.then(|| reader.u32())
}

/// Reads the declarations of locals, and adds them to the parameters in `locals`.
fn read_locals(
    reader: &mut BinaryReader<'_>,
    validator: &mut FuncValidator<ValidatorResources>,
    locals: &mut Vec<ValType>,
) -> Result<(), InvalidModule> {
    for _ in 0..reader.read_var_u32()? {
        let offset = reader.original_position();
        let count = reader.read_var_u32()?;
        let ty = reader.read()?;
        // Bounds the count, too.
        validator.define_locals(offset, count, ty)?;
        locals.extend(std::iter::repeat_n(val_type(ty)?, count as usize));
    }
    Ok(())
}

#[cold]
fn unknown_opcode(byte: u8, offset: u32) -> InvalidModule {
    // With the name in wasmparser's message.
    let (proposal, feature) = match byte {
        0xE0..=0xE6 => ("stack switching", "stack switching"),
        0xD3 | 0xFB => ("garbage collection", "gc"),
        0xFE => ("threads", "threads"),
        _ => return InvalidModule::new(format!("illegal opcode: {byte:#x}"), offset.into()),
    };
    let message = format!("proposal not supported: {proposal} (opcode {byte:#04x})");
    InvalidModule::new(message, offset.into()).found_as(&format!("{feature} support is not enabled"))
}
