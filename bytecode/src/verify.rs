//! Verifies a body's side table. The expected table derives from TABLE 1 alone: [`Walk`] gives the operands at each branch, and
//! [`Instr::branch_entries`] the entries that each instruction owns. Validation's builder writes the table in one pass, from the
//! heights of wasmparser's operand stack. This module finds the ends of blocks first, and shares no code with the builder.
//!
//! Everything that [`sidetable`](crate::sidetable) states is checked: each entry's target, `stp`, `keep` and `drop`, dead code's
//! included; the number of entries; loops with their heights and the locals they assign; segments with their costs; and
//! [`FuncBody::max_operands`]. An estimate of work is checked for its bounds. `wide` must hold where a live value is a vector.
//!
//! The time is that of a walk over the body, and for each write of a local a step for each loop around it.

use crate::body::FuncBody;
use crate::cost::Costs;
use crate::instrs::{Instr, Instrs};
use crate::module::Module;
use crate::opcodes::{Control, Effect, StackType};
use crate::reader::Imm;
use crate::sidetable::{BranchEntry, Handler, LocalSet, LoopInfo, NO_REGION, Segment, TryRegion};
use crate::types::{FuncType, ValType, has_vector};
use crate::walk::{BlockKind, Walk};
use std::collections::BTreeSet;
use std::fmt::Debug;

/// An exact set of assigned locals may be replaced by [`LocalSet::All`] only where all sets together could have more members
/// than this for each byte of the body.
const SET_MEMBERS_PER_BYTE: u64 = 4;

/// A part of a side table that differs from the one derived from the body's instructions.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("at {pc:#x}: {what} is {found}, expected {expected}")]
pub struct Fault {
    /// Offset of the instruction that the part belongs to.
    pub pc: u32,
    /// The part.
    pub what: &'static str,
    /// The part as the instructions give it.
    pub expected: String,
    /// The part as the side table has it.
    pub found: String,
}

/// Verifies the side table in `body`, the body of the function with index `func` of `module`, which was validated with these
/// [`costs`](crate::validate::Options::costs).
///
/// # Errors
/// The first part that is wrong.
///
/// # Panics
/// The bytes of the body are not validated code of the module.
pub fn side_table(module: &Module, func: u32, body: &FuncBody, costs: Option<&Costs>) -> Result<(), Fault> {
    let mut verifier = Verifier::new(module, module.func_type(func), body, costs);
    Instrs::new(module, body.entry, body.end).try_for_each(|instr| verifier.instruction(instr))?;
    verifier.finish()
}

/// A place that a branch can lead to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Place {
    pc: u32,
    /// The number of entries that the instructions before it own.
    stp: u32,
}

/// A block's places.
#[derive(Clone, Copy, Debug, Default)]
struct Places {
    /// The opcode that opens it.
    start: Place,
    /// After its `else`, if it has one.
    second_arm: Option<Place>,
    /// Past its `end`; of the function, its `end`.
    end: Place,
}

/// The blocks of a body in the order of their opening, the function's own first.
fn blocks(module: &Module, body: &FuncBody) -> Vec<Places> {
    let mut blocks = vec![Places::default()];
    let mut open = vec![0];
    let mut instrs = Instrs::new(module, body.entry, body.end);
    let mut stp = 0;
    while let Some(instr) = instrs.next() {
        let before = Place { pc: instr.pc, stp };
        stp += instr.branch_entries() as u32;
        let after = Place { pc: instrs.pc(), stp };
        match control(&instr) {
            Some(Control::Block | Control::Loop | Control::If | Control::TryTable | Control::Try) => {
                open.push(blocks.len());
                blocks.push(Places { start: before, ..Places::default() });
            }
            Some(Control::Else) => blocks[open[open.len() - 1]].second_arm = Some(after),
            Some(Control::End | Control::Delegate) => {
                let block = open.pop().expect("validated code nests");
                blocks[block].end = if open.is_empty() { before } else { after };
            }
            Some(Control::Unreachable | Control::Nop | Control::Br | Control::BrIf | Control::BrTable) | None => {}
            Some(Control::BrOnNull | Control::BrOnNonNull) => {}
            Some(Control::Catch | Control::CatchAll | Control::Throw | Control::ThrowRef | Control::Rethrow) => {}
            Some(Control::Return | Control::Call(_) | Control::ReturnCall(_)) => {}
        }
    }
    blocks
}

/// The instruction's effect on control, if it opens, ends or leaves a block, or calls.
fn control(instr: &Instr<'_>) -> Option<Control> {
    match instr.op.effect() {
        Effect::Control(control) => Some(control),
        Effect::Fixed { .. } | Effect::Typed { .. } => None,
    }
}

/// The number of locals for `rethrow`: one for each level of handlers at which a live one needs it.
fn saved_locals(module: &Module, body: &FuncBody) -> u32 {
    let mut walk = Walk::new(module, body);
    let mut count = 0;
    for instr in Instrs::new(module, body.entry, body.end) {
        if let (Some(Control::Rethrow), Imm::Label(depth), true) = (control(&instr), instr.imm, walk.is_live()) {
            let block = walk.blocks.len() - 1 - depth as usize;
            let level = walk.blocks[..block].iter().filter(|block| matches!(block.kind, BlockKind::Catch { .. })).count();
            count = count.max(level as u32 + 1);
        }
        walk.step(instr);
    }
    count
}

struct Verifier<'m> {
    module: &'m Module,
    body: &'m FuncBody,
    ty: &'m FuncType,
    blocks: Vec<Places>,
    /// The number of `blocks` that have been opened.
    opened: usize,
    /// The blocks that are open, those in dead code included.
    open: Vec<usize>,
    walk: Walk<'m>,
    /// The number of entries that the instructions so far own.
    stp: usize,
    loops: Loops,
    tries: Tries,
    /// The first local for an exception that `rethrow` needs, or the number of locals.
    first_saved: u32,
    segments: Segments<'m>,
    max_operands: usize,
    /// Whether a local, a result or a live operand is a vector.
    vectors: bool,
}

/// The loops so far.
#[derive(Default)]
struct Loops {
    /// Their number.
    count: usize,
    /// Those that are open, each with its index among the blocks.
    open: Vec<(usize, usize)>,
    /// The locals that each assigns.
    assigned: Vec<BTreeSet<u32>>,
    /// Pairs of an instruction that writes a local and a loop around it.
    writes: u64,
}

/// The regions so far.
#[derive(Default)]
struct Tries {
    /// With the handlers of each.
    regions: Vec<(TryRegion, Vec<Handler>)>,
    /// The regions that are open, each with the index of its block among the open ones.
    open: Vec<(usize, u32)>,
    /// The region of each open block that is a `try` in a `catch`, with the block's index among the open ones.
    catches: Vec<(usize, u32)>,
    /// Whether there is an instruction of exception handling.
    any: bool,
}

/// The fuel segments so far.
struct Segments<'m> {
    costs: Option<&'m Costs>,
    done: Vec<Segment>,
    current: Option<Segment>,
    /// Whether the next instruction begins a segment.
    starts: bool,
}

impl<'m> Verifier<'m> {
    fn new(module: &'m Module, ty: &'m FuncType, body: &'m FuncBody, costs: Option<&'m Costs>) -> Verifier<'m> {
        let first = Segment { pc: body.entry, cost: costs.map_or(0, |_| Costs::CALL) };
        Verifier {
            module,
            body,
            ty,
            blocks: blocks(module, body),
            opened: 1,
            open: vec![0],
            walk: Walk::new(module, body),
            stp: 0,
            loops: Loops::default(),
            tries: Tries::default(),
            first_saved: (body.locals.len() as u32).wrapping_sub(saved_locals(module, body)),
            segments: Segments { costs, done: Vec::new(), current: Some(first), starts: false },
            max_operands: 0,
            vectors: has_vector(&body.locals) || has_vector(&ty.results),
        }
    }

    /// Verifies the parts that belong to the next instruction.
    fn instruction(&mut self, instr: Instr<'_>) -> Result<(), Fault> {
        let control = control(&instr);
        self.entries(&instr, control)?;
        self.exceptions(&instr, control);
        if control == Some(Control::Loop) {
            self.begin_loop(&instr)?;
        }
        if self.walk.is_live() {
            self.assign(&instr);
        }
        let was_live = self.walk.is_live();
        self.segments.before(&instr, control, was_live);
        let ended = self.nest(control);
        self.walk.step(instr);
        if self.walk.is_live() {
            assert_eq!(self.walk.blocks.len(), self.open.len(), "the walk and the instructions nest alike");
            self.max_operands = self.max_operands.max(self.walk.operands.len());
            self.vectors |= has_vector(&self.walk.operands);
        }
        let ended_loop = ended.is_some_and(|block| self.loops.end(block));
        self.segments.after(control, ended_loop && was_live);
        Ok(())
    }

    /// Verifies the entries that the instruction owns.
    fn entries(&mut self, instr: &Instr<'_>, control: Option<Control>) -> Result<(), Fault> {
        let first = self.stp;
        self.stp += instr.branch_entries();
        let own = self.body.branches.get(first..self.stp);
        let own = own
            .ok_or_else(|| fault(instr.pc, "the number of entries", format!("{} or more", self.stp), self.body.branches.len()))?;
        for (i, found) in own.iter().enumerate() {
            // A handler is as live as its block.
            let handler = i == 1 && matches!(control, Some(Control::Catch | Control::CatchAll)) && self.walk.is_block_live();
            let expected = if control == Some(Control::Loop) {
                self.work(instr.pc, found.drop)?;
                BranchEntry { pc: self.loops.count as u32, stp: 0, keep: 0, drop: found.drop }
            } else if self.walk.is_live() || handler {
                self.live_entry(instr, control.expect("only control flow owns entries"), i)
            } else {
                BranchEntry { pc: instr.pc, stp: first as u32, keep: 0, drop: 0 }
            };
            same(instr.pc, "the entry", expected, *found)?;
        }
        Ok(())
    }

    /// The `index`th entry of a live instruction.
    fn live_entry(&self, instr: &Instr<'_>, control: Control, index: usize) -> BranchEntry {
        let operands = self.walk.operands.len();
        match (control, instr.imm) {
            // Without the condition, the operands are as at the beginning of the arm.
            (Control::If, Imm::Block(ty)) => {
                let block = self.blocks[self.opened];
                let target = block.second_arm.unwrap_or(block.end);
                BranchEntry { pc: target.pc, stp: target.stp, keep: ty.arity(self.module).0 as u32, drop: 0 }
            }
            (Control::Else, _) => self.branch(0, operands),
            (Control::Br, Imm::Label(depth)) => self.branch(depth, operands),
            // The branch does not pass on the condition, or the null reference.
            (Control::BrIf | Control::BrOnNull, Imm::Label(depth)) => self.branch(depth, operands - 1),
            // The branch passes the reference on.
            (Control::BrOnNonNull, Imm::Label(depth)) => self.branch(depth, operands),
            (Control::BrTable, Imm::Labels(labels)) => {
                let depth = labels.iter().nth(index).expect("an entry for each label");
                self.branch(depth, operands - 1)
            }
            (Control::Catch | Control::CatchAll, _) if index == 0 => self.branch(0, operands),
            (Control::Catch, Imm::Index(tag)) => self.next(instr, self.module.tag_type(tag).params.len()),
            (Control::CatchAll | Control::Delegate, _) => self.next(instr, 0),
            (Control::TryTable, Imm::TryTable(..)) if index == 0 => self.next(instr, 0),
            (Control::TryTable, Imm::TryTable(ty, clauses)) => {
                let depth = clauses.iter().nth(index - 1).expect("an entry for each clause").label;
                let label = self.walk.blocks[self.open.len() - 1 - depth as usize];
                let (params, results) = label.ty.arity(self.module);
                let keep = match label.kind {
                    BlockKind::Function => self.ty.results.len(),
                    BlockKind::Loop { .. } => params,
                    BlockKind::Block | BlockKind::If | BlockKind::Try { .. } | BlockKind::Catch { .. } => results,
                };
                self.branch(depth, operands - ty.arity(self.module).0 + keep)
            }
            (Control::Rethrow, Imm::Label(depth)) => {
                BranchEntry { pc: self.saved_local(self.open.len() - 1 - depth as usize), stp: 0, keep: 0, drop: 0 }
            }
            (Control::Catch | Control::TryTable | Control::Rethrow, imm)
            | (Control::If | Control::Br | Control::BrIf | Control::BrOnNull | Control::BrOnNonNull | Control::BrTable, imm) => {
                panic!("{} has no immediates {imm:?}", instr.op.mnemonic())
            }
            (Control::Unreachable | Control::Nop | Control::Block | Control::Loop | Control::End | Control::Return, _)
            | (Control::Call(_) | Control::ReturnCall(_), _)
            | (Control::Try | Control::Throw | Control::ThrowRef, _) => panic!("{} owns no entry", instr.op.mnemonic()),
        }
    }

    /// The entry that leads to the instruction after `instr`.
    fn next(&self, instr: &Instr<'_>, keep: usize) -> BranchEntry {
        BranchEntry { pc: self.pc_after(instr), stp: self.stp as u32, keep: keep as u32, drop: 0 }
    }

    fn pc_after(&self, instr: &Instr<'_>) -> u32 {
        let mut instrs = Instrs::new(self.module, instr.pc, self.body.end);
        instrs.next();
        instrs.pc()
    }

    /// The local that has the exception of the `catch` whose block has this index among the open ones.
    fn saved_local(&self, block: usize) -> u32 {
        let level = self.walk.blocks[..block].iter().filter(|block| matches!(block.kind, BlockKind::Catch { .. })).count();
        self.first_saved + level as u32
    }

    /// Adds the regions and handlers that the instruction begins or ends.
    fn exceptions(&mut self, instr: &Instr<'_>, control: Option<Control>) {
        let (live, innermost, operands) = (self.walk.is_live(), self.open.len().wrapping_sub(1), self.walk.operands.len());
        let start = self.pc_after(instr);
        let first = (self.stp - instr.branch_entries()) as u32;
        match (control, instr.imm) {
            (Some(Control::TryTable), Imm::TryTable(ty, clauses)) => {
                self.tries.any = true;
                let handler = |(entry, clause): (u32, crate::reader::Clause)| Handler {
                    tag: clause.tag,
                    reference: clause.reference,
                    saved: None,
                    entry,
                };
                let handlers = (first + 1..).zip(clauses.iter()).map(handler).collect();
                if live {
                    self.tries.open(self.open.len(), start, operands - ty.arity(self.module).0, handlers);
                }
            }
            (Some(Control::Try), Imm::Block(ty)) => {
                self.tries.any = true;
                if live {
                    self.tries.open(self.open.len(), start, operands - ty.arity(self.module).0, Vec::new());
                }
            }
            (Some(Control::Catch | Control::CatchAll), imm) if self.walk.is_block_live() => {
                let tag = if let Imm::Index(tag) = imm { Some(tag) } else { None };
                self.tries.catch(innermost, instr.pc, Handler { tag, reference: false, saved: None, entry: first + 1 });
            }
            (Some(Control::Delegate), Imm::Label(depth)) if self.walk.is_block_live() => {
                self.tries.delegate(innermost, instr.pc, innermost - 1 - depth as usize);
            }
            (Some(Control::End), _) if self.walk.is_block_live() => self.tries.end(innermost, instr.pc),
            (Some(Control::Rethrow), Imm::Label(depth)) => {
                self.tries.any = true;
                if live {
                    let block = self.open.len() - 1 - depth as usize;
                    self.tries.save(block, self.saved_local(block));
                }
            }
            (Some(Control::Throw | Control::ThrowRef), _) => self.tries.any = true,
            _ => {}
        }
    }

    /// Verifies the regions and their handlers.
    fn regions(&self, end: u32) -> Result<(), Fault> {
        let body = self.body;
        same(end, "the number of regions", self.tries.regions.len(), body.regions.len())?;
        for ((expected, handlers), found) in self.tries.regions.iter().zip(&body.regions) {
            // The order of the regions' handlers is free.
            same(expected.start, "the region", TryRegion { first: found.first, ..*expected }, *found)?;
            let own = body.handlers.get(found.first as usize..).and_then(|rest| rest.get(..found.count as usize));
            same(expected.start, "the handlers", Some(&**handlers), own)?;
        }
        let handlers: usize = self.tries.regions.iter().map(|(_, handlers)| handlers.len()).sum();
        same(end, "the number of handlers", handlers, body.handlers.len())?;
        let saved = body.locals.get(self.first_saved as usize..).unwrap_or_default();
        same(end, "whether the last locals are exceptions", true, saved.iter().all(|ty| *ty == ValType::EXNREF))?;
        same(end, "whether it has exceptions", self.tries.any, body.exceptions)
    }

    /// A branch to the label at `depth` with `operands` on the stack.
    fn branch(&self, depth: u32, operands: usize) -> BranchEntry {
        let at = self.open.len() - 1 - depth as usize;
        let (label, places) = (self.walk.blocks[at], self.blocks[self.open[at]]);
        let (params, results) = label.ty.arity(self.module);
        let (target, keep) = match label.kind {
            BlockKind::Function => (Place { stp: 0, ..places.end }, self.ty.results.len()),
            BlockKind::Loop { .. } => (places.start, params),
            BlockKind::Block | BlockKind::If | BlockKind::Try { .. } | BlockKind::Catch { .. } => (places.end, results),
        };
        let drop = operands - label.height - keep;
        BranchEntry { pc: target.pc, stp: target.stp, keep: keep as u32, drop: drop as u32 }
    }

    /// Verifies the loop that the instruction opens, except the locals that it assigns.
    fn begin_loop(&mut self, instr: &Instr<'_>) -> Result<(), Fault> {
        let index = self.loops.count;
        let found = self.body.loops.get(index);
        let found =
            found.ok_or_else(|| fault(instr.pc, "the number of loops", format!("more than {index}"), self.body.loops.len()))?;
        let expected = LoopInfo {
            pc: instr.pc,
            stp: self.stp as u32 - 1,
            height: if self.walk.is_live() { self.walk.operands.len() as u32 } else { found.height },
            parent: self.loops.open.last().map(|&(parent, _)| parent as u32),
            assigned: found.assigned.clone(),
        };
        same(instr.pc, "the loop", &expected, found)?;
        self.loops.open.push((index, self.opened));
        self.loops.assigned.push(BTreeSet::new());
        self.loops.count += 1;
        Ok(())
    }

    /// Adds the local that the instruction writes, if it writes one, to the sets of the loops around it.
    fn assign(&mut self, instr: &Instr<'_>) {
        if let (Effect::Typed { operands: [StackType::Local], .. }, Imm::Index(local)) = (instr.op.effect(), instr.imm) {
            self.loops.writes += self.loops.open.len() as u64;
            for &(index, _) in &self.loops.open {
                self.loops.assigned[index].insert(local);
            }
        }
    }

    /// Opens or ends a block; returns the block that is ended.
    fn nest(&mut self, control: Option<Control>) -> Option<usize> {
        match control? {
            Control::Block | Control::Loop | Control::If | Control::TryTable | Control::Try => {
                self.open.push(self.opened);
                self.opened += 1;
                None
            }
            Control::End | Control::Delegate => self.open.pop(),
            Control::Catch | Control::CatchAll | Control::Throw | Control::ThrowRef | Control::Rethrow => None,
            Control::Unreachable | Control::Nop | Control::Else | Control::Br | Control::BrIf | Control::BrTable => None,
            Control::BrOnNull | Control::BrOnNonNull => None,
            Control::Return | Control::Call(_) | Control::ReturnCall(_) => None,
        }
    }

    /// Verifies the parts that depend on the whole body.
    fn finish(mut self) -> Result<(), Fault> {
        let (body, end) = (self.body, self.body.end - 1);
        same(end, "the number of entries", self.stp, body.branches.len())?;
        same(end, "the number of loops", self.loops.count, body.loops.len())?;
        let may_be_inexact = self.loops.writes > SET_MEMBERS_PER_BYTE * u64::from(body.len());
        for (info, assigned) in body.loops.iter().zip(&self.loops.assigned) {
            let exact = LocalSet::Only(assigned.iter().copied().collect());
            if !(may_be_inexact && info.assigned == LocalSet::All) {
                same(info.pc, "the assigned locals", &exact, &info.assigned)?;
            }
        }
        self.regions(end)?;
        self.segments.end();
        for (expected, found) in self.segments.done.iter().zip(&body.segments) {
            same(expected.pc, "the segment", expected, found)?;
        }
        same(end, "the number of segments", self.segments.done.len(), body.segments.len())?;
        // The results are on the stack at the end, even if only branches reach it or nothing does.
        same(end, "the most operands", self.max_operands.max(self.ty.results.len()), body.max_operands as usize)?;
        same(end, "whether a function with vectors is wide", true, body.wide || !self.vectors)?;
        self.work(end, body.work)
    }

    /// Verifies the bounds of an estimate of work: no byte counts more than once.
    fn work(&self, pc: u32, work: u32) -> Result<(), Fault> {
        let bounds = 1..=self.body.len();
        if bounds.contains(&work) { Ok(()) } else { Err(fault(pc, "the work", format!("{bounds:?}"), work)) }
    }
}

fn same<T: PartialEq + Debug>(pc: u32, what: &'static str, expected: T, found: T) -> Result<(), Fault> {
    if expected == found { Ok(()) } else { Err(fault(pc, what, format!("{expected:?}"), found)) }
}

fn fault(pc: u32, what: &'static str, expected: String, found: impl Debug) -> Fault {
    Fault { pc, what, expected, found: format!("{found:?}") }
}

impl Loops {
    /// Closes the innermost loop if `block` is that loop.
    fn end(&mut self, block: usize) -> bool {
        let is_loop = self.open.last().is_some_and(|&(_, open)| open == block);
        if is_loop {
            self.open.pop();
        }
        is_loop
    }
}

impl Tries {
    /// Opens the region of a block that will have this index among the open ones.
    fn open(&mut self, block: usize, start: u32, height: usize, handlers: Vec<Handler>) {
        let parent = self.open.last().map_or(NO_REGION, |&(_, region)| region);
        let count = handlers.len() as u32;
        self.open.push((block, self.regions.len() as u32));
        let region = TryRegion { start, end: 0, height: height as u32, parent, next: parent, first: 0, count };
        self.regions.push((region, handlers));
    }

    /// Ends the region of the block with this index among the open ones, if it is open.
    fn close(&mut self, block: usize, pc: u32) -> Option<u32> {
        let (_, region) = self.open.pop_if(|(open, _)| *open == block)?;
        self.regions[region as usize].0.end = pc;
        Some(region)
    }

    fn catch(&mut self, block: usize, pc: u32, handler: Handler) {
        if let Some(region) = self.close(block, pc) {
            self.catches.push((block, region));
        }
        if let Some(&(_, region)) = self.catches.iter().rfind(|(open, _)| *open == block) {
            let (region, handlers) = &mut self.regions[region as usize];
            handlers.push(handler);
            region.count += 1;
        }
    }

    /// The block's exceptions go to the handlers of the block with index `target`, or of those around it.
    fn delegate(&mut self, block: usize, pc: u32, target: usize) {
        if let Some(region) = self.close(block, pc) {
            let next = self.open.iter().rfind(|(open, _)| *open <= target).map_or(NO_REGION, |&(_, region)| region);
            self.regions[region as usize].0.next = next;
        }
    }

    fn end(&mut self, block: usize, pc: u32) {
        self.close(block, pc);
        self.catches.pop_if(|(open, _)| *open == block);
    }

    /// The current handler of the block stores the exception in this local.
    fn save(&mut self, block: usize, local: u32) {
        if let Some(&(_, region)) = self.catches.iter().rfind(|(open, _)| *open == block)
            && let Some(handler) = self.regions[region as usize].1.last_mut()
        {
            handler.saved = Some(local);
        }
    }
}

impl Segments<'_> {
    /// Adds an instruction to its segment. A `live` one costs what the table has for it or, without a table, a unit unless it is free.
    fn before(&mut self, instr: &Instr<'_>, control: Option<Control>, live: bool) {
        if self.starts {
            self.end();
            self.current = Some(Segment { pc: instr.pc, cost: 0 });
        }
        let is_free = matches!(control, Some(Control::Nop | Control::Block | Control::Loop | Control::Else | Control::End))
            || matches!(control, Some(Control::TryTable | Control::Try | Control::Catch | Control::CatchAll | Control::Delegate));
        let cost = self.costs.map_or(u32::from(!is_free), |costs| costs.of(instr.op));
        if let (Some(segment), true) = (&mut self.current, live) {
            segment.cost = segment.cost.saturating_add(cost);
        }
        if control == Some(Control::Loop) {
            self.end();
            self.current = Some(Segment { pc: instr.pc + 1, cost: 0 });
        }
    }

    /// Decides whether a segment begins after the instruction; `falls_out` says whether it ends a loop whose body falls through.
    fn after(&mut self, control: Option<Control>, falls_out: bool) {
        self.starts = match control {
            Some(Control::If | Control::Else | Control::BrIf | Control::BrOnNull | Control::BrOnNonNull) => true,
            Some(Control::Call(_)) => true,
            Some(Control::End) => !falls_out,
            Some(Control::Catch | Control::CatchAll | Control::Delegate) => true,
            Some(Control::TryTable | Control::Try | Control::Throw | Control::ThrowRef | Control::Rethrow) => false,
            Some(Control::Unreachable | Control::Nop | Control::Block | Control::Loop) | None => false,
            Some(Control::Br | Control::BrTable | Control::Return | Control::ReturnCall(_)) => false,
        };
    }

    /// Ends the current segment, which has no entry if it costs nothing.
    fn end(&mut self) {
        self.done.extend(self.current.take().filter(|segment| segment.cost > 0));
    }
}
