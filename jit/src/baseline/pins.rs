//! Pinned locals: registers that locals keep around an innermost loop.
//!
//! At a loop header every value is in its slot. Without pins, a local that the loop writes would go through memory in
//! each iteration, which takes four to five cycles. A pinned local is in its register whenever the header is reached,
//! as a copy of its slot. Within the loop, the register is used for other values only if no other is free, and values
//! written to the local go there, so that the copies at joins within the loop agree. Correctness depends only on the
//! back edges, which load a pinned local again if it was moved elsewhere.

use super::compiler::Compiler;
use super::values::{At, Kind, PinnedLocals, Pins, Popped, Set};
use crate::regalloc::{Class, Reg};
use crate::x64::insts::{Asm, Inst, Width};
use smallvec::SmallVec;
use weir_bytecode::Opcode;
use weir_bytecode::opcodes::{Control, Effect};

/// The registers of pins, those first that instructions and calls need least. Loops with calls use only the first
/// [`PRESERVED_PINS`]. `rax` is none of them: at a header it holds addresses of code.
const INT_PINS: [Reg; 6] = [Reg::int(12), Reg::int(13), Reg::int(10), Reg::int(9), Reg::int(8), Reg::int(6)];
const FLOAT_PINS: [Reg; 6] = [Reg::float(14), Reg::float(13), Reg::float(12), Reg::float(11), Reg::float(10), Reg::float(9)];
/// The number of pins that calls preserve.
const PRESERVED_PINS: usize = 2;

/// The maximum number of instructions of a loop with pins. In a longer loop, memory delays little, and searching for
/// locals takes time.
const LONGEST: usize = 512;
/// The maximum number of locals that are considered.
const CONSIDERED: usize = 24;

/// The accesses of a loop to a local.
struct Use {
    local: u32,
    count: u32,
    written: bool,
    /// Whether the first access is a read, so that the value comes from before the loop or from the previous iteration.
    read_first: bool,
}

impl Compiler<'_> {
    /// Chooses the pins of the loop whose body begins here, loads and returns them. Everything must be stored.
    pub fn pin(&mut self, label: usize) {
        debug_assert!(self.pins.list.is_empty());
        let list = self.choose_pins();
        let mut moves = SmallVec::new();
        for &(local, to) in &list {
            if let At::Reg(from) = self.values[local as usize].at {
                self.extend(self.values[local as usize].kind, from);
                moves.push((from, to));
            }
        }
        let loaded: PinnedLocals =
            list.iter().copied().filter(|pin| !matches!(self.values[pin.0 as usize].at, At::Reg(_))).collect();
        self.forget(self.registers.owned);
        self.parallel_move(moves);
        for &(local, reg) in &loaded {
            self.load_slot(reg, self.values[local as usize].kind, local as usize);
        }
        for &(local, reg) in &list {
            self.values[local as usize].at = At::Reg(reg);
            self.registers.unextended.remove(reg);
            self.registers.give(reg, local as usize);
        }
        let set = list.iter().fold(Set::EMPTY, |set, pin| set.with(pin.1));
        self.pins = Pins { label, list, set };
    }

    /// Removes the pins at the end of the loop with this label.
    pub fn unpin(&mut self, label: usize) {
        if self.pins.label == label {
            self.pins = Pins::default();
        }
    }

    /// Moves pinned locals to the registers in which the header expects them, before a jump to the label at `depth`. Does
    /// nothing if that is not the loop with the pins. Every local and operand must be in its slot. Preserves the flags.
    pub fn settle(&mut self, depth: u32) {
        if self.pins.label != self.labels.len() - 1 - depth as usize {
            return;
        }
        for i in 0..self.pins.list.len() {
            let (local, reg) = self.pins.list[i];
            let kind = self.values[local as usize].kind;
            let at = self.values[local as usize].at;
            if at != At::Reg(reg) {
                if self.registers.owned.contains(reg) {
                    self.evict(reg);
                }
                self.move_to(Popped { kind, at, index: local as usize }, reg);
                if let At::Reg(from) = at {
                    self.registers.owned.remove(from);
                }
                self.values[local as usize].at = At::Reg(reg);
                self.registers.give(reg, local as usize);
            }
            self.extend(kind, reg);
        }
    }

    /// Clears the upper half of a register with an i32.
    pub fn extend(&mut self, kind: Kind, reg: Reg) {
        if kind == Kind::I32 && self.registers.unextended.contains(reg) {
            self.emit(&Inst::new(Asm::Mov, Width::D).dst(reg).reg(reg));
            self.registers.unextended.remove(reg);
        }
    }

    /// The register of a pinned local.
    pub fn pin_of(&self, local: usize) -> Option<Reg> {
        self.pins.list.iter().find(|pin| pin.0 as usize == local).map(|pin| pin.1)
    }

    /// The pinned register of the local that the next instruction writes, if the old value is no longer needed: the destination
    /// for the result of the current instruction, which may still read it.
    pub fn destination(&self, class: Class) -> Option<Reg> {
        if self.pins.list.is_empty() {
            return None;
        }
        let mut next = self.reader.clone();
        if !matches!(next.bytes[next.at], SET | TEE) {
            return None;
        }
        next.at += 1;
        let local = next.u32() as usize;
        let reg = self.pin_of(local).filter(|reg| reg.class() == class)?;
        (self.copies[local] == 0 && (self.is_free(reg) || self.values[local].at == At::Reg(reg))).then_some(reg)
    }

    fn choose_pins(&self) -> PinnedLocals {
        let mut pins = SmallVec::new();
        let Some((mut uses, calls)) = self.uses_in_loop() else { return pins };
        // Locals that would otherwise go through memory come before those that would only be loaded.
        uses.sort_by_key(|of| std::cmp::Reverse((of.written, of.count)));
        let count = if calls { PRESERVED_PINS } else { INT_PINS.len() };
        let (mut ints, mut floats) = (INT_PINS[..count].iter(), FLOAT_PINS[..if calls { 0 } else { FLOAT_PINS.len() }].iter());
        // A reference that the collector may change is in no register after a call.
        let pinned = |of: &&Use| of.read_first && !(calls && self.values[of.local as usize].kind == Kind::Gc);
        for of in uses.iter().filter(pinned) {
            let reg = match self.values[of.local as usize].kind.class() {
                Class::Int => ints.next(),
                Class::Float => floats.next(),
            };
            pins.extend(reg.map(|&reg| (of.local, reg)));
        }
        pins
    }

    /// The locals that the loop whose body begins here uses, and whether the loop contains calls; `None` if it contains loops
    /// or is too long.
    fn uses_in_loop(&self) -> Option<(SmallVec<[Use; CONSIDERED]>, bool)> {
        let (mut uses, mut calls): (SmallVec<[Use; CONSIDERED]>, bool) = (SmallVec::new(), false);
        let (mut reader, mut open) = (self.reader.clone(), 1);
        for _ in 0..LONGEST {
            let op = reader.opcode();
            if matches!(op, Opcode::LocalGet | Opcode::LocalSet | Opcode::LocalTee) {
                let (local, write) = (reader.u32(), op != Opcode::LocalGet);
                if let Some(of) = uses.iter_mut().find(|of| of.local == local) {
                    of.count += 1;
                    of.written |= write;
                } else if uses.len() < CONSIDERED {
                    uses.push(Use { local, count: 1, written: write, read_first: !write });
                }
                continue;
            }
            if let Effect::Control(control) = op.effect() {
                match control {
                    Control::Loop => return None,
                    Control::Block | Control::If | Control::TryTable | Control::Try => open += 1,
                    Control::End | Control::Delegate => open -= 1,
                    Control::Catch | Control::CatchAll | Control::Throw | Control::ThrowRef | Control::Rethrow => {}
                    Control::Call(_) => calls = true,
                    Control::Unreachable | Control::Nop | Control::Else | Control::Br | Control::BrIf | Control::BrTable => {}
                    Control::BrOnNull | Control::BrOnNonNull | Control::Return | Control::ReturnCall(_) => {}
                }
            }
            if open == 0 {
                return Some((uses, calls));
            }
            reader.skip(op);
        }
        None
    }
}

const SET: u8 = Opcode::LocalSet as u8;
const TEE: u8 = Opcode::LocalTee as u8;
