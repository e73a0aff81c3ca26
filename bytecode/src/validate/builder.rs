//! Writes the side table of one body, in one pass over its instructions as they are validated.
//!
//! The target of a forward branch is not known yet: its entry's `pc` links it to the label's other open entries, until
//! the label's `end` fills them all in.
//!
//! Code is *dead* between an instruction that never falls through and the next `else` or `end` of the same block. The
//! validator's operand heights have no meaning there, and the code is never executed: it costs no fuel, writes no local
//! and raises no operand count, but it owns its branch entries.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new operation must be named by the compiler")]

mod exceptions;

use super::code::Code;
use super::tables::{Placed, Tables, add};
use super::work::{Around, Weights, Work};
use crate::account::Allocated;
use crate::cost::Costs;
use crate::effects::Effects;
use crate::opcodes::{CallKind, Control, Effect, Opcode, StackType};
use crate::reader::{Labels, Reader};
use crate::sidetable::{BranchEntry, Handler, LocalSet, LoopInfo, NO_REGION, Segment, TryRegion};
use crate::types::{FuncType, ValType, has_vector};

/// The class of an instruction, as far as the side table depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// Costs fuel and has no other effect on the side table.
    Plain,
    Nop,
    Block,
    Loop,
    If,
    Else,
    End,
    Br,
    BrIf,
    BrTable,
    BrOnNull,
    BrOnNonNull,
    Call,
    /// `call_indirect`, `call_ref`
    CallIndirect,
    ReturnCall,
    /// `return_call_indirect`, `return_call_ref`
    ReturnCallIndirect,
    /// `return`, `unreachable`
    Stop,
    TryTable,
    Try,
    Catch,
    CatchAll,
    Delegate,
    Throw,
    ThrowRef,
    Rethrow,
    /// `local.set`, `local.tee`
    Write,
    /// `global.get`, `global.set`
    Global,
    /// A vector instruction: plain, but makes its function wide.
    Vector,
}

impl Class {
    /// What an instruction costs in an engine without a table of costs.
    #[inline]
    const fn cost(self) -> u32 {
        match self {
            Class::Nop | Class::Block | Class::Loop | Class::Else | Class::End => 0,
            Class::TryTable | Class::Try | Class::Catch | Class::CatchAll | Class::Delegate => 0,
            Class::Plain | Class::If | Class::Br | Class::BrIf | Class::BrTable | Class::BrOnNull | Class::BrOnNonNull => 1,
            Class::Call | Class::CallIndirect | Class::ReturnCall | Class::ReturnCallIndirect | Class::Stop => 1,
            Class::Throw | Class::ThrowRef | Class::Rethrow | Class::Write | Class::Global | Class::Vector => 1,
        }
    }

    /// The class of the instructions that begin with `byte`, or `None` if TABLE 1 has none.
    #[inline]
    pub fn of(byte: u8) -> Option<Class> {
        const CLASSES: [Option<Class>; 256] = {
            let mut classes = [None; 256];
            let mut byte = 0;
            while byte < 256 {
                classes[byte] = Class::of_code(byte as u16);
                byte += 1;
            }
            classes
        };
        CLASSES[byte as usize]
    }

    const fn of_code(code: u16) -> Option<Class> {
        // The assertion below checks these classes; the validator rejects unknown instructions.
        if code == 0xFC {
            return Some(Class::Plain);
        }
        if code == 0xFD {
            return Some(Class::Vector);
        }
        let Some(op) = Opcode::from_code(code) else { return None };
        Some(Class::of_effect(op.effect()))
    }

    const fn of_effect(effect: Effect) -> Class {
        match effect {
            Effect::Control(control) => Class::of_control(control),
            Effect::Typed { operands: [StackType::Local], .. } => Class::Write,
            Effect::Typed { operands: [StackType::Global], .. } | Effect::Typed { results: [StackType::Global], .. } => {
                Class::Global
            }
            Effect::Fixed { .. } | Effect::Typed { .. } => Class::Plain,
        }
    }

    const fn of_control(control: Control) -> Class {
        match control {
            Control::Nop => Class::Nop,
            Control::Block => Class::Block,
            Control::Loop => Class::Loop,
            Control::If => Class::If,
            Control::Else => Class::Else,
            Control::End => Class::End,
            Control::Br => Class::Br,
            Control::BrIf => Class::BrIf,
            Control::BrTable => Class::BrTable,
            Control::BrOnNull => Class::BrOnNull,
            Control::BrOnNonNull => Class::BrOnNonNull,
            Control::Call(CallKind::Direct) => Class::Call,
            Control::Call(CallKind::Indirect | CallKind::Reference) => Class::CallIndirect,
            Control::ReturnCall(CallKind::Direct) => Class::ReturnCall,
            Control::ReturnCall(CallKind::Indirect | CallKind::Reference) => Class::ReturnCallIndirect,
            Control::Unreachable | Control::Return => Class::Stop,
            Control::TryTable => Class::TryTable,
            Control::Try => Class::Try,
            Control::Catch => Class::Catch,
            Control::CatchAll => Class::CatchAll,
            Control::Delegate => Class::Delegate,
            Control::Throw => Class::Throw,
            Control::ThrowRef => Class::ThrowRef,
            Control::Rethrow => Class::Rethrow,
        }
    }
}

// All instructions with prefix 0xFC are plain, and those with prefix 0xFD are plain, except that they make their function wide.
const _: () = {
    let mut i = 0;
    while i < Opcode::ALL.len() {
        let op = Opcode::ALL[i];
        let plain = matches!(Class::of_effect(op.effect()), Class::Plain);
        match op as u16 {
            0..0x100 => assert!(!op.is_vector(), "a vector instruction has prefix 0xFD"),
            0x100..0x200 => assert!(plain && !op.is_vector(), "an instruction with prefix 0xFC is plain"),
            0x200..0x400 => assert!(plain && op.is_vector(), "an instruction with prefix 0xFD is plain, and on vectors"),
            0x400.. => panic!("a prefix without a class"),
        }
        i += 1;
    }
};

/// One instruction, already validated.
#[derive(Clone, Copy)]
pub(super) struct Step {
    pub class: Class,
    /// Offset of its opcode.
    pub pc: u32,
    /// Offset after it.
    pub next: u32,
    /// Operands on the stack before it.
    pub before: u32,
}

/// The side table under construction. Its memory is reused from body to body.
#[derive(Default)]
pub(super) struct Builder {
    /// What the bodies seen so far may do.
    pub effects: Effects,
    branches: Vec<BranchEntry>,
    loops: Vec<LoopInfo>,
    work: Work,
    segments: Vec<Segment>,
    max_operands: u32,
    /// See [`FuncBody::wide`](crate::FuncBody::wide).
    wide: bool,
    /// See [`FuncBody::indirect_calls`](crate::FuncBody::indirect_calls).
    indirect_calls: u32,
    regions: Vec<TryRegion>,
    handlers: Vec<Handler>,
    /// See [`FuncBody::exceptions`](crate::FuncBody::exceptions).
    exceptions: bool,
    /// The innermost region that is open, [`NO_REGION`] if none.
    region: u32,
    /// The handlers of each open `try`, those of the innermost last.
    open_handlers: Vec<Handler>,
    /// Number of open blocks that are in a `catch` or `catch_all`.
    open_catches: u32,
    /// Number of locals for the exceptions that `rethrow` needs.
    saved: u32,
    /// Blocks that are open, the function's own first.
    labels: Vec<Label>,
    /// Number of declared locals, parameters included.
    locals: u32,
    /// Whether the next instruction is not dead.
    live: bool,
    /// Whether the side table gets fuel segments.
    segmented: bool,
    /// Head and cost so far of the current segment.
    segment_pc: u32,
    segment_cost: u32,
    /// Loops that are open, outermost first.
    open_loops: Vec<OpenLoop>,
    /// Locals written in open loops: those of the innermost are the last ones.
    writes: Vec<u32>,
    /// The set of a loop that is being closed.
    set: Vec<u32>,
    /// For each local the id of an open loop that has it in its part of `writes`, or of one that is closed.
    writers: Vec<u32>,
    /// Id of the last loop in any body. There are fewer than 2³¹, as each takes three bytes.
    last_loop_id: u32,
    /// Remaining number of members that the exact local sets of this body may have.
    set_budget: usize,
}

/// An open block.
struct Label {
    kind: LabelKind,
    /// Whether its opcode was live.
    live: bool,
    /// Operands below its parameters. Meaningless if it is dead.
    height: u32,
    params: u32,
    results: u32,
    /// The first of the entries that wait for its `end`, [`NO_ENTRY`] if none.
    open_entries: u32,
    weights: Weights,
    /// The innermost region around it.
    region: u32,
}

#[derive(Clone, Copy)]
enum LabelKind {
    /// A block, the `else` arm of an `if`, or the function's body.
    Block,
    /// The first arm of an `if`, whose entry has this index.
    If(u32),
    /// The loop with this index.
    Loop(u32),
    /// A `try_table`, or a `try` before its first `catch`, that is this region, [`NO_REGION`] if it is dead. The handlers of a
    /// `try` begin at `handlers` among the open ones.
    Try { region: u32, handlers: usize },
    /// A `try` in a `catch` or `catch_all`. Its handlers begin at `handlers` among the open ones; if it is dead there are none. It is
    /// inside `level` other blocks of this kind.
    Catch { region: u32, handlers: usize, level: u32 },
}

struct OpenLoop {
    index: u32,
    id: u32,
    /// The index of its label.
    label: usize,
    /// The beginning of its part of [`Builder::writes`].
    writes: usize,
    around: Around,
}

/// Bytes of an open block in wasmparser.
const VALIDATORS_BLOCK: usize = 48;

const NO_ENTRY: u32 = u32::MAX;

/// Maximum number of members that all exact local sets of a body may have together, per byte of it. An instruction that
/// writes a local has two bytes and counts once for each enclosing loop, so only a body whose code is on average inside
/// more than eight loops exceeds this.
const SET_MEMBERS_PER_BYTE: usize = 4;

impl Builder {
    /// Begins a body of type `ty` with these locals, `len` bytes of code from `entry` on.
    pub fn begin(&mut self, code: &Code<'_>, ty: &FuncType, locals: &[ValType], entry: u32, len: u32) {
        self.branches.clear();
        self.loops.clear();
        self.segments.clear();
        self.segmented = code.unvalidated.options.segments;
        self.max_operands = 0;
        self.wide = has_vector(locals) || has_vector(&ty.results);
        self.indirect_calls = 0;
        self.regions.clear();
        self.handlers.clear();
        self.exceptions = false;
        self.region = NO_REGION;
        self.open_handlers.clear();
        (self.open_catches, self.saved) = (0, 0);
        self.labels.clear();
        self.locals = locals.len() as u32;
        self.live = true;
        self.segment_pc = entry;
        self.segment_cost = if code.unvalidated.options.costs.is_some() { Costs::CALL } else { 0 };
        self.work = Work::begin(entry);
        self.open_loops.clear();
        self.writes.clear();
        if self.writers.len() < locals.len() {
            self.writers.resize(locals.len(), 0);
        }
        self.set_budget = SET_MEMBERS_PER_BYTE * len as usize;
        // Its parameters are locals: none is on the operand stack.
        self.open(LabelKind::Block, 0, (0, ty.results.len()));
    }

    /// Processes the next instruction.
    #[inline]
    pub fn instruction(&mut self, code: &Code<'_>, step: Step) {
        if step.class == Class::Plain {
            self.charge(code, step);
        } else {
            self.special(code, step);
        }
    }

    /// Processes instructions of class [`Class::Plain`], or that [write a local](Self::local_write), which cost this much together.
    #[inline]
    pub fn plain(&mut self, cost: u32) {
        self.segment_cost = self.segment_cost.saturating_add(if self.live { cost } else { 0 });
    }

    /// Records that an instruction writes a local.
    #[inline]
    pub fn local_write(&mut self, local: u32) {
        if self.live {
            self.write(|| local);
        }
    }

    /// Records that the instruction accesses a global; only one of type v128 makes a difference.
    #[inline]
    pub fn global(&mut self, vector: bool) {
        self.wide |= vector;
    }

    /// Returns the highest number of operands so far.
    #[inline]
    pub fn max_operands(&self) -> u32 {
        self.max_operands
    }

    /// Returns the number of locals for the exceptions that `rethrow` needs.
    pub fn saved_locals(&self) -> usize {
        self.saved as usize
    }

    /// Returns the bytes of the blocks that are open, with those of wasmparser.
    #[inline]
    pub fn open_blocks(&self) -> usize {
        self.labels.len() * (size_of::<Label>() + VALIDATORS_BLOCK) + self.open_loops.len() * size_of::<OpenLoop>()
    }

    /// Gives back the memory of blocks.
    pub fn give_back_labels(&mut self) {
        (self.labels, self.open_loops) = (Vec::new(), Vec::new());
    }

    /// Gives back what is larger than this many bytes, after a body. Few bodies of real modules have such tables.
    pub fn give_back(&mut self, bytes: usize) {
        fn shrink<T>(items: &mut Vec<T>, bytes: usize) {
            if items.capacity() * size_of::<T>() > bytes {
                *items = Vec::new();
            }
        }
        shrink(&mut self.branches, bytes);
        shrink(&mut self.loops, bytes);
        shrink(&mut self.segments, bytes);
        shrink(&mut self.regions, bytes);
        shrink(&mut self.handlers, bytes);
        shrink(&mut self.open_handlers, bytes);
        shrink(&mut self.writes, bytes);
        shrink(&mut self.set, bytes);
    }

    /// Records the number of operands on the stack after an instruction.
    #[inline]
    pub fn operands(&mut self, after: u32) {
        // Once it has grown, few instructions make it grow further.
        if after > self.max_operands && self.live {
            self.max_operands = after;
        }
    }

    /// Adds the side table of the body, with estimated work or with 1, to `tables`. The caller sets the body's place.
    pub fn finish(&mut self, work: bool, locals: &[ValType], tables: &mut Tables) -> Placed {
        if !work {
            self.loops.iter().for_each(|info| self.branches[info.stp as usize].drop = 1);
        }
        Placed {
            entry: 0,
            end: 0,
            max_operands: self.max_operands,
            wide: self.wide,
            work: if work { self.work.of_call() } else { 1 },
            indirect_calls: self.indirect_calls,
            locals: {
                let saved = std::iter::repeat_n(ValType::EXNREF, self.saved as usize);
                add(&mut tables.locals, locals.iter().copied().chain(saved))
            },
            branches: add(&mut tables.branches, self.branches.iter().copied()),
            loops: {
                tables.sets += self.loops.iter().map(LoopInfo::allocated).sum::<usize>();
                add(&mut tables.loops, self.loops.drain(..))
            },
            segments: add(&mut tables.segments, self.segments.iter().copied()),
            regions: add(&mut tables.regions, self.regions.iter().copied()),
            handlers: add(&mut tables.handlers, self.handlers.iter().copied()),
            exceptions: self.exceptions,
        }
    }

    /// Processes an instruction that is not plain. Inlined: a call for each costs validation 3 %.
    #[inline]
    fn special(&mut self, code: &Code<'_>, step: Step) {
        let Step { class, pc, next, before, .. } = step;
        let mut immediates = Reader { bytes: code.bytes, at: code.place(pc) + 1 };
        // A `loop` belongs to the segment before it: it is executed when control enters it, and not by back edges.
        self.charge(code, step);
        match class {
            Class::Plain | Class::Nop => {}
            Class::Block => self.open(LabelKind::Block, before, immediates.block_type().arity_in(code.types)),
            Class::Loop => self.open_loop(pc, before, immediates.block_type().arity_in(code.types)),
            Class::Else => self.begin_else(pc, next, before),
            Class::End => self.end(pc, next),
            Class::TryTable | Class::Try | Class::Catch | Class::CatchAll | Class::Delegate => self.exception_block(code, step),
            Class::Write if self.live => self.write(|| immediates.u32()),
            Class::Write => {}
            Class::Vector => self.wide = true,
            Class::Global => self.wide |= code.is_vector_global(|| immediates.u32()),
            Class::If => {
                self.open_if(pc, next, before.wrapping_sub(1), immediates.block_type().arity_in(code.types));
            }
            // The branch does not pass on the null, nor does `br_if` its condition.
            Class::BrIf | Class::BrOnNull => self.branch_if(pc, next, immediates.u32(), before.wrapping_sub(1)),
            Class::BrOnNonNull => self.branch_if(pc, next, immediates.u32(), before),
            Class::Br => {
                let weight = self.work.branch(next, 1);
                self.branch(pc, immediates.u32(), before, weight);
                self.live = false;
            }
            Class::BrTable => {
                let labels = immediates.labels();
                let weight = self.work.branch(next, labels.len() as u32);
                self.branch_table(pc, labels, before.wrapping_sub(1), weight);
                self.live = false;
            }
            Class::Call | Class::CallIndirect => {
                self.indirect_calls += u32::from(class == Class::CallIndirect);
                self.wide |= calls_with_vectors(code, pc, immediates);
                self.begin_segment(next);
            }
            Class::ReturnCall => {
                self.wide |= calls_with_vectors(code, pc, immediates.clone());
                self.effects.foreign_tail_calls |= immediates.u32() < code.imported_funcs;
                self.work.stop(next);
                self.live = false;
            }
            Class::ReturnCallIndirect => {
                self.indirect_calls += 1;
                self.wide |= calls_with_vectors(code, pc, immediates);
                self.effects.foreign_tail_calls = true;
                self.work.stop(next);
                self.live = false;
            }
            Class::Stop => {
                self.work.stop(next);
                self.live = false;
            }
            Class::Throw | Class::ThrowRef | Class::Rethrow => {
                self.exceptions = true;
                if class == Class::Rethrow {
                    self.rethrow(pc, immediates.u32());
                }
                self.work.stop(next);
                self.live = false;
            }
        }
    }

    /// Adds the cost of an instruction to the current segment, unless it is dead.
    #[inline]
    fn charge(&mut self, code: &Code<'_>, step: Step) {
        if self.live {
            let cost = match &code.unvalidated.options.costs {
                None => step.class.cost(),
                Some(costs) => costs.at(code.bytes, code.place(step.pc)),
            };
            self.segment_cost = self.segment_cost.saturating_add(cost);
        }
    }

    /// Ends the current segment; the next one begins at `pc`.
    fn begin_segment(&mut self, pc: u32) {
        if self.segmented && self.segment_cost > 0 {
            self.segments.push(Segment { pc: self.segment_pc, cost: self.segment_cost });
        }
        (self.segment_pc, self.segment_cost) = (pc, 0);
    }

    /// Opens a block that has its parameters on top of the `operands` on the stack.
    fn open(&mut self, kind: LabelKind, operands: u32, arity: (usize, usize)) {
        let weights = self.work.open();
        self.open_with(kind, operands, arity, weights);
    }

    #[inline]
    fn open_with(&mut self, kind: LabelKind, operands: u32, (params, results): (usize, usize), weights: Weights) {
        let (params, results) = (params as u32, results as u32);
        let height = operands.wrapping_sub(params);
        let region = self.region;
        self.labels.push(Label { kind, live: self.live, height, params, results, open_entries: NO_ENTRY, weights, region });
    }

    fn open_if(&mut self, pc: u32, next: u32, operands: u32, arity: (usize, usize)) {
        self.begin_segment(next);
        let entry = self.branches.len() as u32;
        if self.live {
            self.branches.push(BranchEntry { pc: NO_ENTRY, stp: 0, keep: arity.0 as u32, drop: 0 });
        } else {
            self.branches.push(dead_entry(pc, entry));
        }
        let weights = self.work.open_if(next);
        self.open_with(LabelKind::If(entry), operands, arity, weights);
    }

    fn begin_else(&mut self, pc: u32, next: u32, operands: u32) {
        let weight = self.work.branch(next, 1);
        self.branch(pc, 0, operands, weight);
        self.begin_segment(next);
        let Some(label) = self.labels.last_mut() else { return };
        self.work.begin_else(label.weights);
        self.live = label.live;
        if let LabelKind::If(entry) = std::mem::replace(&mut label.kind, LabelKind::Block) {
            self.land_if(entry, next);
        }
    }

    fn open_loop(&mut self, pc: u32, operands: u32, arity: (usize, usize)) {
        self.begin_segment(pc + 1);
        let around = self.work.open_loop(pc);
        let index = self.loops.len() as u32;
        let parent = self.open_loops.last().map(|open| open.index);
        let assigned = LocalSet::Only([].into());
        self.loops.push(LoopInfo { pc, stp: self.branches.len() as u32, height: operands, parent, assigned });
        self.branches.push(BranchEntry { pc: index, stp: 0, keep: 0, drop: 0 });
        self.last_loop_id += 1;
        let (label, id, writes) = (self.labels.len(), self.last_loop_id, self.writes.len());
        self.open_loops.push(OpenLoop { index, label, id, writes, around });
        self.open(LabelKind::Loop(index), operands, arity);
    }

    fn end(&mut self, pc: u32, next: u32) {
        let Some(label) = self.labels.pop() else { return };
        // The function's own label is its final `end`, which returns.
        let (target, stp) = if self.labels.is_empty() { (pc, 0) } else { (next, self.branches.len() as u32) };
        let mut open = label.open_entries;
        while open != NO_ENTRY {
            let entry = &mut self.branches[open as usize];
            (open, entry.pc, entry.stp) = (entry.pc, target, stp);
        }
        match label.kind {
            LabelKind::Block => self.work.end(next, label.weights),
            LabelKind::If(entry) => {
                self.land_if(entry, target);
                self.work.end_if(next, label.weights);
            }
            LabelKind::Loop(_) => self.close_loop(next),
            LabelKind::Try { region, .. } => {
                self.close_region(region, pc);
                self.work.end(next, label.weights);
            }
            LabelKind::Catch { region, handlers, .. } => {
                self.open_catches -= 1;
                if let Some(region) = self.regions.get_mut(region as usize) {
                    (region.first, region.count) = (self.handlers.len() as u32, (self.open_handlers.len() - handlers) as u32);
                    self.handlers.extend(self.open_handlers.drain(handlers..));
                }
                self.work.end(next, label.weights);
            }
        }
        // No branch leads to the end of a loop: if its body falls through, its segment continues.
        if !(matches!(label.kind, LabelKind::Loop(_)) && self.live) {
            self.begin_segment(next);
        }
        self.live = label.live;
    }

    /// Sets the target of an `if`'s entry, unless it is dead, to `pc`, which is reached if the condition is false.
    fn land_if(&mut self, entry: u32, pc: u32) {
        let stp = self.branches.len() as u32;
        let entry = &mut self.branches[entry as usize];
        if entry.pc == NO_ENTRY {
            (entry.pc, entry.stp) = (pc, stp);
        }
    }

    /// A conditional branch at `pc`, before `next`, to the label at `depth`, with `operands` on the stack.
    fn branch_if(&mut self, pc: u32, next: u32, depth: u32, operands: u32) {
        self.begin_segment(next);
        let weight = self.work.branch_if(next);
        self.branch(pc, depth, operands, weight);
    }

    /// Adds the entry of a branch of this weight at `pc` to the label at `depth`, with `operands` on the stack.
    #[inline]
    fn branch(&mut self, pc: u32, depth: u32, operands: u32, weight: u32) {
        let index = self.branches.len() as u32;
        let entry = if self.live { self.entry(index, depth, operands, weight) } else { dead_entry(pc, index) };
        self.branches.push(entry);
    }

    /// Each branch has this weight.
    fn branch_table(&mut self, pc: u32, labels: Labels<'_>, operands: u32, weight: u32) {
        let first = self.branches.len() as u32;
        for (index, depth) in (first..).zip(labels.iter()) {
            let entry = if self.live { self.entry(index, depth, operands, weight) } else { dead_entry(pc, first) };
            self.branches.push(entry);
        }
    }

    /// The live entry with this index, for a branch of this weight to the label at `depth` with `operands` on the stack.
    #[inline]
    fn entry(&mut self, index: u32, depth: u32, operands: u32, weight: u32) -> BranchEntry {
        let at = self.labels.len() - 1 - depth as usize;
        let label = &mut self.labels[at];
        if let LabelKind::Loop(loop_index) = label.kind {
            let target = &self.loops[loop_index as usize];
            let drop = operands - label.height - label.params;
            return BranchEntry { pc: target.pc, stp: target.stp, keep: label.params, drop };
        }
        // An iteration of a loop begins with weight 1 however many branches lead to it: a branch that leaves loops has the weight
        // with which control enters the outermost of them.
        let weight = match self.open_loops.last() {
            Some(innermost) if innermost.label > at => {
                let outermost = self.open_loops.partition_point(|open| open.label < at);
                weight.min(1) * self.open_loops[outermost].around.entered
            }
            Some(_) | None => weight,
        };
        label.weights.pass(weight);
        let following = std::mem::replace(&mut label.open_entries, index);
        BranchEntry { pc: following, stp: 0, keep: label.results, drop: operands - label.height - label.results }
    }

    /// Records that an instruction writes a local. `local` is only called inside a loop.
    fn write(&mut self, local: impl FnOnce() -> u32) {
        let Some(open) = self.open_loops.last() else { return };
        let local = local();
        let writer = &mut self.writers[local as usize];
        if *writer != open.id {
            *writer = open.id;
            self.writes.push(local);
        }
    }

    /// Closes the innermost loop, whose `end` is before `next`: its locals go into its set and to the loop around it.
    fn close_loop(&mut self, next: u32) {
        let Some(open) = self.open_loops.pop() else { return };
        let stp = self.loops[open.index as usize].stp;
        self.branches[stp as usize].drop = self.work.end_loop(next, open.around);
        let members = self.writes.len() - open.writes;
        let assigned = &mut self.loops[open.index as usize].assigned;
        if members > self.set_budget {
            *assigned = LocalSet::All;
        } else {
            self.set_budget -= members;
            self.set.clear();
            self.set.extend(self.writes.drain(open.writes..));
            self.set.sort_unstable();
            self.set.dedup();
            if let Some(parent) = self.open_loops.last() {
                for &local in &self.set {
                    self.writers[local as usize] = parent.id;
                }
                self.writes.extend_from_slice(&self.set);
            }
            *assigned = LocalSet::Only(self.set.as_slice().into());
        }
        if self.open_loops.is_empty() {
            self.writes.clear();
        }
    }
}

/// The entry of a branch at `pc` that is dead: it leads to itself, whose first entry is `stp`.
fn dead_entry(pc: u32, stp: u32) -> BranchEntry {
    BranchEntry { pc, stp, keep: 0, drop: 0 }
}

/// Whether the callee of a call has a vector among its parameters or results.
fn calls_with_vectors(code: &Code<'_>, pc: u32, mut immediates: Reader<'_>) -> bool {
    // All but direct calls have a type index for their first immediate.
    let direct = [Opcode::Call as u8, Opcode::ReturnCall as u8].contains(&code.bytes[code.place(pc)]);
    code.is_vector_type(|| {
        let index = immediates.u32();
        if direct { code.funcs[index as usize] } else { index }
    })
}
