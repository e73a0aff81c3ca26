//! Branches and returns.

use super::compiler::Compiler;
use super::frame::{FLOAT_SCRATCH, SCRATCH, scratch_of};
use super::label::{Chain, Jump, Types, merge_register};
use super::parts::{Direction, JumpTable};
use super::values::{At, Kind, Popped};
use crate::meter::Ended;
use crate::regalloc::{Class, Reg};
use crate::request::{Backend, Refusal};
use crate::seeded::{self, Fault};
use crate::x64::abi::{self, ArgLocation};
use crate::x64::insts::{Asm, Cond, Inst, Mem, Width};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use weir_bytecode::instrs::Labels;

/// The target of a table entry.
#[derive(Clone, Copy, Debug)]
enum Landing {
    /// The header of a loop.
    Head(usize),
    /// The pad with this index.
    Pad(usize),
    /// The end of the block at this depth.
    Label(u32),
}

/// Code that moves values and jumps to the label at `depth`.
#[derive(Debug)]
struct Pad {
    depth: u32,
    jumps: Chain,
}

/// Tables with at most this number of labels besides the default become comparisons.
const COMPARED: usize = 3;

/// The maximum size of a move from slot to slot in bytes.
const MOVE_BYTES: usize = 32;

impl<'c> Compiler<'c> {
    /// The types that the label at `depth` takes, the index of its first value, and the header if it is a loop's.
    fn target(&self, depth: u32) -> (Types<'c>, usize, Option<usize>) {
        let label = &self.labels[self.labels.len() - 1 - depth as usize];
        (label.takes(), label.height(), label.head())
    }

    fn is_function(&self, depth: u32) -> bool {
        depth as usize + 1 == self.labels.len()
    }

    /// Marks the following instruction as unreachable.
    pub fn stop(&mut self) {
        let height = self.labels.last().map_or(self.locals, |label| label.height());
        self.forget_all(height.min(self.values.len()));
        self.live = false;
    }

    /// Compiles `br`, and the end of an `if`'s first arm.
    pub fn branch(&mut self, depth: u32) {
        let (takes, height, head) = self.target(depth);
        if self.is_function(depth) {
            self.place_function_results(takes);
        } else if takes.len() == 0 {
            self.flush_below(height);
        } else if takes.len() == 1 && head.is_none() {
            let popped = self.pop();
            self.flush_below(height);
            let reg = merge_register(takes.only());
            self.move_to(popped, reg);
        } else {
            let moved = self.pop_list(takes.len());
            self.flush_below(height);
            self.store_from(&moved, height);
        }
        self.settle(depth);
        self.jump_to_label(depth);
        self.stop();
    }

    /// Records a jump to the end of the block at `depth`.
    fn record(&mut self, depth: u32, jump: Jump) {
        let index = self.labels.len() - 1 - depth as usize;
        if !self.is_function(depth) {
            self.meet(index);
        }
        self.labels[index].jumps.push(&mut self.jumps, jump);
    }

    /// Stores popped operands to the slots from `height` on.
    pub fn store_from(&mut self, operands: &[Popped], height: usize) {
        // Each goes to its own slot or to a lower one, whose value has been moved already.
        for (i, &popped) in operands.iter().enumerate() {
            self.store_popped(popped, height + i);
        }
    }

    fn store_popped(&mut self, popped: Popped, index: usize) {
        match popped.at {
            At::Slot if popped.index == index => {}
            At::Reg(reg) => self.store_slot(reg, popped.kind, index),
            At::Const(_) | At::Slot | At::Local(_) => {
                let scratch = scratch_of(popped.kind.class());
                self.move_to(popped, scratch);
                self.store_slot(scratch, popped.kind, index);
            }
        }
    }

    /// Compiles a branch on the flags.
    pub fn branch_if(&mut self, depth: u32, cond: Cond) {
        let entry = self.take_entry();
        let (takes, height, head) = self.target(depth);
        let count = takes.len();
        if count == 1 && head.is_none() {
            let reg = merge_register(takes.only());
            let popped = self.pop();
            if !self.is_function(depth) {
                self.flush_below(height);
            }
            if popped.at != At::Reg(reg) {
                self.claim(reg, &mut []);
                self.move_to(popped, reg);
            }
            self.jump_counted(depth, cond, entry, None);
            self.push(popped.kind, reg);
            return;
        }
        let in_place = self.values.len() - count == height;
        if count == 0 || in_place {
            let stored = if count == 0 { height } else { self.values.len() };
            if count > 0 || !self.is_function(depth) {
                self.flush_below(stored);
            }
            self.settle(depth);
            return self.jump_counted(depth, cond, entry, None);
        }
        self.flush();
        self.settle(depth);
        self.jump_counted(depth, cond, entry, Some((takes, height)));
    }

    /// Jumps to the label at `depth` on a condition, and counts both directions. If `moves` has types and a height, that many values are
    /// moved there first: see [`Compiler::move_slots`].
    fn jump_counted(&mut self, depth: u32, cond: Cond, entry: u32, moves: Option<(Types<'c>, usize)>) {
        if moves.is_none() && !self.request.options.counts {
            match self.target(depth).2 {
                Some(head) => self.jump_back_if(cond, head),
                None => {
                    let field = self.jump_if(cond);
                    self.record(depth, Jump::Field(field));
                }
            }
            return;
        }
        let passed = self.jump_if(cond.inverted());
        self.count(entry, Direction::Taken);
        if let Some((takes, height)) = moves {
            self.move_slots(takes, height);
        }
        self.jump_to_label(depth);
        self.bind(passed);
        self.count(entry, Direction::Passed);
    }

    /// Jumps to the label at `depth`: to the head of a loop, or to the end of a block.
    fn jump_to_label(&mut self, depth: u32) {
        match self.target(depth).2 {
            Some(head) => self.jump_back(head),
            None => {
                let field = self.jump();
                self.record(depth, Jump::Field(field));
            }
        }
    }

    /// Copies the top values, which are stored, to the slots from `height` on, without other effects.
    fn move_slots(&mut self, takes: Types<'_>, height: usize) {
        let from = self.values.len() - takes.len();
        for (i, kind) in takes.kinds().enumerate() {
            if from != height {
                let scratch = scratch_of(kind.class());
                self.load_slot(scratch, kind, from + i);
                self.store_slot(scratch, kind, height + i);
            }
        }
    }

    /// # Errors
    /// If `more` additional bytes exceed the budget.
    #[inline]
    pub fn check_code_budget(&self, more: usize) -> Result<(), Refusal> {
        if self.offset() + more > self.code_limit { Err(self.over_budget()) } else { Ok(()) }
    }

    #[cold]
    fn over_budget(&self) -> Refusal {
        Refusal::Budget { backend: Some(Backend::Baseline), what: "the baseline compiler's code", limit: self.code_limit }
    }

    pub fn branch_table(&mut self, labels: Labels<'_>) -> Result<(), Refusal> {
        let depths: SmallVec<[u32; 32]> = labels.iter().collect();
        let Some((&default, others)) = depths.split_last() else { return Ok(()) };
        let entry = self.entry;
        self.entry += depths.len() as u32;
        let mut index = self.pop();
        let (takes, ..) = self.target(default);
        let mut single = None;
        if takes.len() == 1 {
            let popped = self.pop();
            let reg = merge_register(takes.only());
            self.flush();
            if popped.at != At::Reg(reg) {
                self.claim(reg, &mut [&mut index]);
                self.move_to(popped, reg);
            }
            self.registers.locked.insert(reg);
            single = Some(reg);
        } else {
            self.flush();
        }
        self.extended(&mut index);
        let index = self.writable(&mut index);
        let index = if self.pins.set.contains(index) { self.moved(index) } else { index };
        for &depth in &depths {
            self.meter.spend(1)?;
            self.settle(depth);
        }
        self.count_table(entry, depths.len(), index);
        let (targets, mut pads) = self.landings(&depths, takes, single.is_some())?;
        self.check_code_budget(pads.len() * takes.len() * MOVE_BYTES)?;
        if others.len() <= COMPARED {
            for (i, &target) in targets[..others.len()].iter().enumerate() {
                self.emit(&Inst::new(Asm::Cmp, Width::D).reg(index).imm(i as i64));
                self.jump_to(target, Some(Cond::E), &mut pads);
            }
            self.jump_to(targets[others.len()], None, &mut pads);
        } else {
            self.emit(&Inst::new(Asm::Cmp, Width::D).reg(index).imm(others.len() as i64));
            let outside = if seeded::is(Fault::JumpTableOffByOne) { Cond::A } else { Cond::AE };
            self.jump_to(targets[others.len()], Some(outside), &mut pads);
            if self.request.options.spectre_mitigation && !seeded::is(Fault::JumpMaskDropped) {
                self.mask_index(outside, index);
            }
            self.jump_by_table(index, &targets[..others.len()], &mut pads)?;
        }
        self.write_pads(pads, takes, single);
        self.stop();
        Ok(())
    }

    /// For each label of a table, the target of its jump. `single`: the value that the labels take is in its register.
    fn landings(&self, depths: &[u32], takes: Types<'_>, single: bool) -> Result<(Vec<Landing>, Vec<Pad>), Ended> {
        let mut pads: Vec<Pad> = Vec::new();
        let mut known = FxHashMap::default();
        let from = self.values.len() - if single { 0 } else { takes.len() };
        let landing = |&depth: &u32| {
            self.meter.spend(1)?;
            let (_, height, head) = self.target(depth);
            let moves = if single {
                head.is_some()
            } else {
                takes.len() > 1 && height != from || head.is_some() && height != from && takes.len() > 0
            };
            Ok(match head {
                _ if moves => Landing::Pad(*known.entry(depth).or_insert_with(|| {
                    pads.push(Pad { depth, jumps: Chain::EMPTY });
                    pads.len() - 1
                })),
                Some(head) => Landing::Head(head),
                None => Landing::Label(depth),
            })
        };
        let landings = depths.iter().map(landing).collect::<Result<_, _>>()?;
        Ok((landings, pads))
    }

    fn jump_to(&mut self, target: Landing, cond: Option<Cond>, pads: &mut [Pad]) {
        match (target, cond) {
            (Landing::Head(head), Some(cond)) => self.jump_back_if(cond, head),
            (Landing::Head(head), None) => self.jump_back(head),
            (Landing::Pad(_) | Landing::Label(_), cond) => {
                let field = match cond {
                    Some(cond) => self.jump_if(cond),
                    None => self.jump(),
                };
                self.land(target, Jump::Field(field), pads);
            }
        }
    }

    /// Records a jump to a label or pad.
    fn land(&mut self, target: Landing, jump: Jump, pads: &mut [Pad]) {
        match target {
            Landing::Head(_) => {}
            Landing::Pad(pad) => pads[pad].jumps.push(&mut self.jumps, jump),
            Landing::Label(depth) => self.record(depth, jump),
        }
    }

    fn jump_by_table(&mut self, index: Reg, targets: &[Landing], pads: &mut [Pad]) -> Result<(), Ended> {
        let field = self.out.address(SCRATCH);
        let table = self.jump_tables.len();
        self.jump_tables.push(JumpTable { field, targets: vec![0; targets.len()] });
        self.emit(&Inst::new(Asm::Movsxd, Width::Q).dst(index).mem(Mem::indexed(SCRATCH, index, 2, 0)));
        self.emit(&Inst::new(Asm::Add, Width::Q).dst(index).src(index).reg(SCRATCH));
        self.out.jump_register(index);
        for (i, &target) in targets.iter().enumerate() {
            self.meter.spend(1)?;
            match target {
                Landing::Head(head) => self.jump_tables[table].targets[i] = head,
                Landing::Pad(_) | Landing::Label(_) => self.land(target, Jump::Entry(table as u32, i as u32), pads),
            }
        }
        Ok(())
    }

    /// Writes the code between a table and those of its labels that expect the values elsewhere.
    fn write_pads(&mut self, pads: Vec<Pad>, takes: Types<'_>, single: Option<Reg>) {
        for Pad { depth, jumps } in pads {
            self.bind_all(jumps);
            let (_, height, _) = self.target(depth);
            match single {
                Some(reg) => self.store_slot(reg, takes.only(), height),
                None => self.move_slots(takes, height),
            }
            self.jump_to_label(depth);
        }
    }

    /// Loads the function's results from the first slots of the operands to where the caller expects them.
    pub fn load_results(&mut self, results: Types<'_>) {
        let Types::Many(types) = results else { return };
        // Results without a register come first, because the address of their area is in one of the result registers.
        let overflow = abi::results(types).any(|location| location.reg().is_none());
        if overflow {
            self.load_overflow_area(abi::RAX);
        }
        for (i, location) in abi::results(types).enumerate() {
            let ArgLocation::Overflow(slot) = location else { continue };
            let kind = Kind::of(types[i]);
            let (op, scratch) = match kind.class() {
                Class::Int => (Asm::MovTo, SCRATCH),
                Class::Float => (Asm::VmovTo, FLOAT_SCRATCH),
            };
            self.load_slot(scratch, kind, self.locals + i);
            self.emit_any(&Inst::new(op, kind.width()).src(scratch).mem(Mem::at(abi::RAX, 8 * slot as i32)));
        }
        for (i, location) in abi::results(types).enumerate() {
            let ArgLocation::Reg(reg) = location else { continue };
            self.load_slot(reg, Kind::of(types[i]), self.locals + i);
        }
    }
}
