//! Validates function bodies, one instruction at a time, while [`Builder`] writes the side table. All bodies are
//! validated at once, on several threads if there is enough code, or each when it is first needed.

use super::acceptor::Acceptor;
use super::builder::{Builder, Class, Step};
use super::code::Code;
use super::convert::val_type;
use super::invalid::InvalidModule;
use super::options::{FEATURES, Options};
use super::tables::{Placed, Shared, Tables};
use crate::body::{Body, FuncBody};
use crate::types::ValType;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use wasmparser::{BinaryReader, FuncToValidate, FuncValidator, FuncValidatorAllocations, FunctionBody, ValidatorResources};

/// Maximum number of locals of all functions of a module together. Each function may have 50,000, declared in a few
/// bytes; without this limit a small file could cause any amount of memory to be allocated. Real modules have a
/// hundredth of this.
const MAX_LOCALS: usize = 10_000_000;

/// Minimum bytes of code for each thread: validating them takes about 15 times as long as starting the thread.
const BYTES_PER_THREAD: usize = 128 << 10;

/// Bytes of code that a thread takes at a time: few enough that all threads finish together, enough that the cost of
/// distribution is negligible.
const BYTES_PER_BATCH: usize = 32 << 10;

/// The body with this index and range, which a module that was parsed lazily has left for later.
pub(crate) fn validate_one(code: &Code<'_>, index: u32, range: Range<u32>) -> Result<FuncBody, InvalidModule> {
    let mut worker = Worker::default();
    let placed = worker.validate(code, index as usize, range)?;
    Ok(worker.tables.share().body(&placed))
}

/// The result of validating all bodies.
pub(super) struct Validated {
    pub bodies: Box<[Body]>,
    /// Whether a tail call in them may leave the instance.
    pub foreign_tail_calls: bool,
}

/// All bodies, validated as the options say.
///
/// # Errors
/// The first of a module's bodies that is invalid.
pub(super) fn validate_all(code: &Code<'_>, ranges: &[Range<u32>], options: Options) -> Result<Validated, InvalidModule> {
    let bytes = ranges.iter().map(Range::len).sum::<usize>();
    let threads = options.threads.min(bytes / BYTES_PER_THREAD).max(1);
    let mut bodies = Vec::with_capacity(ranges.len());
    if threads == 1 {
        let mut worker = Worker::new(bytes);
        let placed = ranges.iter().enumerate().map(|(i, range)| worker.validate(code, i, range.clone()));
        let placed = placed.collect::<Result<Vec<_>, _>>()?;
        let (tables, foreign_tail_calls) = worker.share();
        bodies.extend(placed.iter().map(|placed| Body::from(tables.body(placed))));
        return Ok(Validated { bodies: bodies.into(), foreign_tail_calls });
    }
    let batches = Batches { code, ranges, ends: batches(ranges), next: AtomicUsize::new(0), bytes: bytes / threads };
    let validated = std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(|| batches.validate())).collect();
        let mut validated = vec![batches.validate()];
        for helper in helpers {
            validated.push(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        validated
    });
    let mut foreign_tail_calls = false;
    let mut done: Vec<Option<(Batch, Arc<Shared>)>> = batches.ends.iter().map(|_| None).collect();
    for (batches, worker) in validated {
        let (tables, foreign) = worker.share();
        let tables = Arc::new(tables);
        foreign_tail_calls |= foreign;
        for (number, batch) in batches {
            done[number] = Some((batch, tables.clone()));
        }
    }
    // Before the first batch that is invalid, none is missing.
    for (batch, tables) in done.into_iter().flatten() {
        bodies.extend(batch?.iter().map(|placed| Body::from(tables.body(placed))));
    }
    Ok(Validated { bodies: bodies.into(), foreign_tail_calls })
}

/// The ends of the batches of bodies.
fn batches(ranges: &[Range<u32>]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut bytes = 0;
    for (i, range) in ranges.iter().enumerate() {
        bytes += range.len();
        if bytes >= BYTES_PER_BATCH || i + 1 == ranges.len() {
            ends.push(i + 1);
            bytes = 0;
        }
    }
    ends
}

/// Shared by the threads that validate the bodies of one module.
struct Batches<'b> {
    code: &'b Code<'b>,
    ranges: &'b [Range<u32>],
    ends: Vec<usize>,
    /// The next batch for a thread to take.
    next: AtomicUsize,
    /// Bytes of code that a thread takes on average.
    bytes: usize,
}

/// The bodies of a batch, whose tables are the thread's, or the reason why one of them is invalid.
type Batch = Result<Vec<Placed>, InvalidModule>;

impl Batches<'_> {
    /// Takes batches until there are no more, or one is invalid. Other threads have then taken all earlier batches. Returns them with
    /// their numbers.
    fn validate(&self) -> (Vec<(usize, Batch)>, Worker) {
        let mut worker = Worker::new(self.bytes);
        let mut done = Vec::new();
        loop {
            let batch = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(&end) = self.ends.get(batch) else { break };
            let start = batch.checked_sub(1).map_or(0, |before| self.ends[before]);
            let bodies = (start..end).map(|i| worker.validate(self.code, i, self.ranges[i].clone())).collect();
            let failed = Result::is_err(&bodies);
            done.push((batch, bodies));
            if failed {
                self.next.store(self.ends.len(), Ordering::Relaxed);
                break;
            }
        }
        (done, worker)
    }
}

/// Validates one body after the other, in the same memory.
#[derive(Default)]
struct Worker {
    acceptor: Acceptor,
    builder: Builder,
    allocations: FuncValidatorAllocations,
    /// The types of a body's locals.
    locals: Vec<ValType>,
    /// The tables of its bodies.
    tables: Tables,
}

impl Worker {
    /// For bodies of about this many bytes together.
    fn new(bytes: usize) -> Worker {
        Worker { tables: Tables::with_capacity(bytes), ..Worker::default() }
    }

    /// The tables of its bodies, and whether a tail call in them may leave the instance.
    fn share(self) -> (Shared, bool) {
        (self.tables.share(), self.builder.foreign_tail_calls)
    }

    /// Validates the body of the module's own function number `index`.
    fn validate(&mut self, code: &Code<'_>, index: usize, range: Range<u32>) -> Result<Placed, InvalidModule> {
        let index = code.imported_funcs + index as u32;
        let entry = match self.accept(code, index, &range) {
            Some(entry) => entry,
            None => self.validate_slowly(code, index, &range)?,
        };
        if code.unvalidated.add_locals(self.locals.len()) > MAX_LOCALS {
            let message = format!("more than {MAX_LOCALS} locals in all functions together are not supported");
            return Err(InvalidModule::new(message, range.start.into()));
        }
        let placed = self.builder.finish(code.unvalidated.options.work, &self.locals, &mut self.tables);
        Ok(Placed { entry, end: range.end, ..placed })
    }

    /// The offset of the first instruction, unless the body is left to wasmparser.
    fn accept(&mut self, code: &Code<'_>, index: u32, range: &Range<u32>) -> Option<u32> {
        let Worker { acceptor, builder, locals, .. } = self;
        let foreign_tail_calls = builder.foreign_tail_calls;
        let entry = acceptor.accept(code, code.funcs[index as usize], range, locals, builder);
        match entry {
            Some(entry) => code.unvalidated.add_accepted(range.end - entry),
            None => builder.foreign_tail_calls = foreign_tail_calls,
        }
        entry
    }

    /// Has wasmparser validate a body; returns the offset of its first instruction.
    fn validate_slowly(&mut self, code: &Code<'_>, index: u32, range: &Range<u32>) -> Result<u32, InvalidModule> {
        let ty = code.funcs[index as usize];
        let func = FuncToValidate { resources: code.unvalidated.resources(), index, ty, features: FEATURES };
        let ty = &code.types[ty as usize];
        let mut validator = func.into_validator(std::mem::take(&mut self.allocations));
        let bytes = &code.bytes[range.start as usize..range.end as usize];
        let mut reader = FunctionBody::new(BinaryReader::new(bytes, range.start.into())).get_binary_reader();
        reader.set_features(FEATURES);
        self.locals.clear();
        self.locals.extend_from_slice(&ty.params);
        read_locals(&mut reader, &mut validator, &mut self.locals)?;

        let (entry, end) = (reader.original_position() as u32, range.end);
        self.builder.begin(code, ty, &self.locals, entry, end - entry);
        // After one instruction the stack is as it is before the next.
        let (mut pc, mut before) = (entry, 0);
        while pc < end {
            let opcode = code.bytes[pc as usize];
            let class = Class::of(opcode).ok_or_else(|| unknown_opcode(opcode, pc))?;
            reader.visit_operator(&mut validator.visitor(pc.into()))??;
            let (next, after) = (reader.original_position() as u32, validator.operand_stack_height());
            self.builder.instruction(code, Step { class, pc, next, before });
            self.builder.operands(after);
            (pc, before) = (next, after);
        }
        reader.finish_expression(&validator.visitor(reader.original_position()))?;
        self.allocations = validator.into_allocations();
        Ok(entry)
    }
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
    let proposal = match byte {
        0x06..=0x0A | 0x18 | 0x19 | 0x1F => "exception handling",
        0xE0..=0xE6 => "stack switching",
        0xD3 | 0xFB => "garbage collection",
        0xFE => "threads",
        _ => return InvalidModule::new(format!("illegal opcode {byte:#04x}"), offset.into()),
    };
    InvalidModule::new(format!("proposal not supported: {proposal} (opcode {byte:#04x})"), offset.into())
}
