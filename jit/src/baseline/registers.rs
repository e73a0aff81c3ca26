//! The state of locals and operands while code is written: moving operands to registers, pushing results, storing.

use super::compiler::Compiler;
use super::frame::{FLOAT_SCRATCH, FLOATS, PRESERVED, SCRATCH, scratch_of};
use super::values::{At, Copies, Kind, Popped, Set, Value};
use crate::regalloc::{Class, Reg};
use crate::x64::insts::{Asm, Inst, Mem, Width};

/// The number of operands that are searched for copies of a local.
const NEAR: usize = 64;

impl Compiler<'_> {
    // Operands

    /// Pushes an operand that is not stored.
    #[inline]
    pub fn push_at(&mut self, kind: Kind, at: At) {
        let index = self.values.len();
        if let At::Reg(reg) = at {
            self.registers.give(reg, index);
        }
        self.values.push(Value { kind, at, stored: false });
    }

    /// Pushes the result in `reg`.
    pub fn push(&mut self, kind: Kind, reg: Reg) {
        self.push_at(kind, At::Reg(reg));
    }

    /// Pushes an i32 in a register whose upper half is unspecified.
    pub fn push_unextended(&mut self, reg: Reg) {
        self.push(Kind::I32, reg);
        self.registers.unextended.insert(reg);
    }

    /// Pushes an unread copy of a local.
    #[inline]
    pub fn push_copy(&mut self, local: u32) {
        self.copies[local as usize] += 1;
        self.unread += 1;
        self.push_at(self.values[local as usize].kind, At::Local(local));
    }

    /// Pushes an operand that is in its slot.
    pub fn push_stored(&mut self, kind: Kind) {
        self.values.push(Value { kind, at: At::Slot, stored: true });
        if self.unstored_from == self.values.len() - 1 {
            self.unstored_from += 1;
        }
    }

    /// Pops the top operand. Its register, if it has one, stays locked for the current instruction.
    pub fn pop(&mut self) -> Popped {
        let Value { kind, at, .. } = self.values.pop().expect("validated code pops operands that exist");
        let index = self.values.len();
        debug_assert!(index >= self.locals);
        self.unstored_from = self.unstored_from.min(index);
        self.lock_popped(at);
        Popped { kind, at, index }
    }

    /// Takes the place of an operand that has been popped from its owner, and locks its register for the current instruction.
    #[inline(always)]
    pub fn lock_popped(&mut self, at: At) {
        match at {
            At::Reg(reg) => {
                self.registers.owned.remove(reg);
                self.registers.locked.insert(reg);
            }
            At::Local(local) => {
                self.copies[local as usize] -= 1;
                self.unread -= 1;
                // Until the copy is read, the local's register must not be taken.
                if let At::Reg(reg) = self.values[local as usize].at {
                    self.registers.locked.insert(reg);
                }
            }
            At::Slot | At::Const(_) => {}
        }
    }

    /// Pops the top operand without using it.
    pub fn drop(&mut self) {
        let popped = self.pop();
        if let At::Reg(reg) = popped.at {
            self.registers.locked.remove(reg);
        }
    }

    /// Unlocks all registers at the end of an instruction.
    pub fn unlock(&mut self) {
        self.registers.locked = Set::EMPTY;
    }

    /// The bits of a constant operand.
    pub fn constant(&self, popped: Popped) -> Option<u64> {
        match popped.at {
            At::Const(bits) => Some(bits),
            At::Local(local) => match self.values[local as usize].at {
                At::Const(bits) => Some(bits),
                At::Slot | At::Reg(_) | At::Local(_) => None,
            },
            At::Slot | At::Reg(_) => None,
        }
    }

    /// A constant operand as an immediate, if it fits in 32 bits.
    pub fn immediate(&self, popped: Popped) -> Option<i64> {
        let bits = self.constant(popped)?;
        match popped.kind.width() {
            Width::D => Some(i64::from(bits as i32)),
            Width::Q => i32::try_from(bits as i64).ok().map(i64::from),
            Width::B | Width::W | Width::X => None,
        }
    }

    // Registers

    fn allocatable(&self, class: Class) -> Set {
        match class {
            Class::Int => self.ints,
            Class::Float => FLOATS,
        }
    }

    /// A register of `class` for the current instruction, locked.
    pub fn fresh(&mut self, class: Class) -> Reg {
        self.fresh_of(self.allocatable(class))
    }

    /// A register of `set`.
    pub fn fresh_of(&mut self, set: Set) -> Reg {
        // Pinned registers come last.
        let others = set.without(self.pins.set);
        let set = if others.without(self.registers.locked).is_empty() { set } else { others };
        let reg = match self.registers.free(set) {
            Some(reg) => reg,
            None => {
                let reg = self.registers.victim(set);
                self.evict(reg);
                reg
            }
        };
        self.registers.locked.insert(reg);
        self.registers.unextended.remove(reg);
        reg
    }

    /// Frees `reg` and locks it. If an operand of the current instruction is there, it is moved elsewhere, and updated in
    /// `operands`.
    pub fn claim(&mut self, reg: Reg, operands: &mut [&mut Popped]) {
        if self.registers.owned.contains(reg) {
            self.evict(reg);
        }
        let class = reg.class();
        let mut moved = None;
        for operand in operands.iter_mut().filter(|operand| operand.at == At::Reg(reg)) {
            let to = *moved.get_or_insert_with(|| {
                let mut others = self.allocatable(class);
                others.remove(reg);
                let to = self.fresh_of(others);
                self.out.copy(to, reg);
                if self.registers.unextended.contains(reg) {
                    self.registers.unextended.insert(to);
                }
                to
            });
            operand.at = At::Reg(to);
        }
        self.registers.locked.insert(reg);
        self.registers.unextended.remove(reg);
    }

    /// Stores the value in `reg` if it is not stored, and frees the register.
    pub fn evict(&mut self, reg: Reg) {
        let index = self.registers.owner(reg);
        if !self.values[index].stored {
            self.store_owned(index, reg);
        }
        self.values[index].at = At::Slot;
        self.registers.owned.remove(reg);
    }

    /// The operand in a register that is only read.
    #[inline(always)]
    pub fn reg(&mut self, popped: &mut Popped) -> Reg {
        match popped.at {
            At::Reg(reg) => reg,
            At::Local(local) if let At::Reg(reg) = self.values[local as usize].at => {
                self.registers.locked.insert(reg);
                reg
            }
            At::Slot | At::Const(_) | At::Local(_) => self.loaded(popped),
        }
    }

    /// [`Compiler::reg`] for an operand that is not in a register.
    fn loaded(&mut self, popped: &mut Popped) -> Reg {
        let reg = match popped.at {
            At::Reg(reg) => return reg,
            At::Const(bits) => {
                let reg = self.fresh(popped.kind.class());
                self.load_constant(reg, popped.kind, bits);
                reg
            }
            At::Slot => {
                let reg = self.fresh(popped.kind.class());
                self.load_slot(reg, popped.kind, popped.index);
                reg
            }
            At::Local(local) => return self.local_reg(popped, local as usize),
        };
        popped.at = At::Reg(reg);
        reg
    }

    /// The register of a local, which stays the local's.
    fn local_reg(&mut self, popped: &mut Popped, local: usize) -> Reg {
        let Value { kind, at, stored } = self.values[local];
        let reg = match at {
            At::Reg(reg) => reg,
            At::Const(bits) => {
                // The local stays constant.
                let reg = self.fresh(kind.class());
                self.load_constant(reg, kind, bits);
                popped.at = At::Reg(reg);
                return reg;
            }
            At::Slot | At::Local(_) => {
                debug_assert!(stored);
                let pin = self.pin_of(local).filter(|&pin| self.is_free(pin));
                let reg = pin.unwrap_or_else(|| self.fresh(kind.class()));
                self.load_slot(reg, kind, local);
                self.values[local].at = At::Reg(reg);
                self.registers.give(reg, local);
                reg
            }
        };
        self.registers.locked.insert(reg);
        reg
    }

    /// The operand in a register that the instruction may overwrite.
    pub fn writable(&mut self, popped: &mut Popped) -> Reg {
        let reg = self.reg(popped);
        if !self.registers.owned.contains(reg) {
            return reg;
        }
        let own = self.fresh(popped.kind.class());
        self.copy(own, reg);
        popped.at = At::Reg(own);
        own
    }

    /// Whether a register holds no value and is not in use by the current instruction.
    #[inline]
    pub fn is_free(&self, reg: Reg) -> bool {
        !self.registers.owned.contains(reg) && !self.registers.locked.contains(reg)
    }

    /// The operand in a register that may be overwritten, for an instruction that reads all operands before it writes its result,
    /// and writes nothing else. The register may be the pin of the local that the next instruction writes.
    pub fn overwritten(&mut self, popped: &mut Popped) -> Reg {
        let reg = self.reg(popped);
        match self.destination(popped.kind.class()) {
            Some(pin) if pin == reg => pin,
            Some(pin) if self.registers.owned.contains(reg) && !self.registers.locked.contains(pin) => {
                self.copy(pin, reg);
                self.registers.locked.insert(pin);
                popped.at = At::Reg(pin);
                pin
            }
            _ => self.writable(popped),
        }
    }

    /// A register for the result of an instruction that reads all operands before it writes the result.
    pub fn result(&mut self, class: Class) -> Reg {
        let Some(pin) = self.destination(class) else { return self.fresh(class) };
        self.registers.unextended.remove(pin);
        pin
    }

    /// Copies a register. The upper half of the copy is as unspecified as that of the original.
    pub fn copy(&mut self, to: Reg, from: Reg) {
        if to == from {
            return;
        }
        self.out.copy(to, from);
        if self.registers.unextended.contains(from) {
            self.registers.unextended.insert(to);
        } else {
            self.registers.unextended.remove(to);
        }
    }

    /// An i32 in a register whose upper half is zero.
    pub fn extended(&mut self, popped: &mut Popped) -> Reg {
        let reg = self.reg(popped);
        self.extend(popped.kind, reg);
        reg
    }

    /// Releases a register that the current instruction no longer needs.
    pub fn release(&mut self, reg: Reg) {
        if !self.registers.owned.contains(reg) {
            self.registers.locked.remove(reg);
        }
    }

    /// A register for the result of an instruction that reads all operands before it writes the result: the pin of the local that
    /// the next instruction writes, or the operand's register if it holds nothing else.
    pub fn result_like(&mut self, popped: Popped) -> Reg {
        let class = popped.kind.class();
        let reg = match (self.destination(class), popped.at) {
            (Some(pin), _) => pin,
            (None, At::Reg(reg)) if !self.registers.owned.contains(reg) => reg,
            (None, At::Reg(_) | At::Slot | At::Const(_) | At::Local(_)) => return self.fresh(class),
        };
        self.registers.unextended.remove(reg);
        reg
    }

    // Moves

    /// Loads a constant into a register and preserves the flags.
    pub fn load_constant(&mut self, reg: Reg, kind: Kind, bits: u64) {
        match kind {
            Kind::I32 | Kind::I64 | Kind::Ref | Kind::Gc => {
                self.out.constant(reg, if kind == Kind::I32 { i64::from(bits as u32) } else { bits as i64 })
            }
            Kind::F32 | Kind::F64 | Kind::V128 if bits == 0 => self.out.clear(reg),
            Kind::F32 | Kind::F64 | Kind::V128 => {
                let mem = self.float_constant(kind, bits);
                self.emit(&Inst::new(Asm::Vmov, kind.width()).dst(reg).mem(mem));
            }
        }
    }

    /// A float in the constant pool.
    pub fn float_constant(&mut self, kind: Kind, bits: u64) -> Mem {
        let bytes = if kind == Kind::F32 { 4 } else { 8 };
        Mem::constant(self.pool.offset(bits.into(), bytes))
    }

    /// Loads a value from the slot with this index.
    pub fn load_slot(&mut self, reg: Reg, kind: Kind, index: usize) {
        let mem = self.slots.mem(index);
        match kind.class() {
            Class::Int => self.emit(&Inst::new(Asm::Mov, kind.width()).dst(reg).mem(mem)),
            Class::Float => self.emit(&Inst::new(Asm::Vmov, kind.width()).dst(reg).mem(mem)),
        }
        self.registers.unextended.remove(reg);
    }

    /// Stores a register to the slot with this index.
    pub fn store_slot(&mut self, reg: Reg, kind: Kind, index: usize) {
        let mem = self.slots.mem(index);
        match kind.class() {
            Class::Int => self.emit(&Inst::new(Asm::MovTo, kind.width()).src(reg).mem(mem)),
            Class::Float => self.emit(&Inst::new(Asm::VmovTo, kind.width()).src(reg).mem(mem)),
        }
    }

    fn store_owned(&mut self, index: usize, reg: Reg) {
        let kind = self.values[index].kind;
        self.store_slot(reg, kind, index);
        self.values[index].stored = true;
    }

    /// Stores a constant to the slot with this index and preserves the flags.
    fn store_constant(&mut self, kind: Kind, bits: u64, index: usize) {
        let mem = self.slots.mem(index);
        let immediate = match kind.width() {
            Width::D => Some(i64::from(bits as i32)),
            Width::B | Width::W | Width::Q | Width::X => i32::try_from(bits as i64).ok().map(i64::from),
        };
        let width = if kind.width() == Width::D { Width::D } else { Width::Q };
        match immediate {
            _ if kind == Kind::V128 => {
                debug_assert_eq!(bits, 0, "other vectors are in registers");
                self.out.clear(FLOAT_SCRATCH);
                self.emit(&Inst::new(Asm::VmovTo, Width::X).src(FLOAT_SCRATCH).mem(mem));
            }
            Some(imm) => self.emit(&Inst::new(Asm::MovTo, width).mem(mem).imm(imm)),
            None => {
                self.out.constant(SCRATCH, bits as i64);
                self.emit(&Inst::new(Asm::MovTo, Width::Q).src(SCRATCH).mem(mem));
            }
        }
    }

    /// Moves an operand to a register of its class, whose old value is lost.
    pub fn move_to(&mut self, popped: Popped, to: Reg) {
        match popped.at {
            At::Reg(reg) => self.copy(to, reg),
            At::Const(bits) => {
                self.load_constant(to, popped.kind, bits);
                self.registers.unextended.remove(to);
            }
            At::Slot => self.load_slot(to, popped.kind, popped.index),
            At::Local(local) => {
                let Value { kind, at, .. } = self.values[local as usize];
                self.move_to(Popped { kind, at, index: local as usize }, to);
            }
        }
    }

    // Storing

    /// Stores every local, and the operands below `height`. Preserves the flags.
    pub fn flush_below(&mut self, height: usize) {
        // `store` stores no other locals.
        for i in 0..self.unstored_locals.len() {
            self.store(self.unstored_locals[i] as usize);
        }
        self.unstored_locals.clear();
        for index in self.unstored_from..height.min(self.values.len()) {
            self.store(index);
        }
        self.unstored_from = self.unstored_from.max(height.min(self.values.len()));
    }

    /// Stores everything. Preserves the flags.
    pub fn flush(&mut self) {
        self.flush_below(self.values.len());
    }

    fn store(&mut self, index: usize) {
        let Value { kind, at, stored } = self.values[index];
        if stored {
            return;
        }
        debug_assert_ne!(at, At::Slot, "value {index} is neither in its slot nor elsewhere");
        match at {
            At::Slot => {}
            At::Reg(reg) => self.store_slot(reg, kind, index),
            At::Const(bits) => {
                self.store_constant(kind, bits, index);
                self.values[index].at = At::Slot;
            }
            At::Local(local) => self.store_copy(index, local as usize),
        }
        self.values[index].stored = true;
    }

    /// Stores the operand at `index`, which is an unread copy of a local.
    fn store_copy(&mut self, index: usize, local: usize) {
        let Value { kind, at, .. } = self.values[local];
        match at {
            At::Reg(reg) => self.store_slot(reg, kind, index),
            At::Const(bits) => self.store_constant(kind, bits, index),
            At::Slot | At::Local(_) => {
                let scratch = scratch_of(kind.class());
                self.load_slot(scratch, kind, local);
                self.store_slot(scratch, kind, index);
            }
        }
        self.values[index].at = At::Slot;
        self.copies[local] -= 1;
        self.unread -= 1;
    }

    /// Stores the operands that are unread copies of locals, before code that may or may not write the locals.
    pub fn store_copies(&mut self) {
        // The search ends at the lowest copy. All operands above it were pushed since the last search, so its time is
        // proportional to that of pushing.
        let (mut lowest, mut left) = (self.values.len(), self.unread);
        while left > 0 {
            lowest -= 1;
            left -= usize::from(matches!(self.values[lowest].at, At::Local(_)));
        }
        for index in lowest..self.values.len() {
            if let At::Local(local) = self.values[index].at {
                self.store_copy(index, local as usize);
                self.values[index].stored = true;
            }
        }
    }

    // Locals

    /// Gives the operands that are unread copies of `local` values of their own, before the local is written.
    fn detach_copies(&mut self, local: usize) {
        let mut index = self.values.len();
        while self.copies[local] > 0 {
            index -= 1;
            // Too far down: searching all operands for each local would take quadratic time.
            if self.values.len() - index > NEAR {
                return self.store_copies();
            }
            if self.values[index].at != At::Local(local as u32) {
                continue;
            }
            self.copies[local] -= 1;
            self.unread -= 1;
            let at = self.values[local].at;
            self.values[index].at = match at {
                At::Const(_) => at,
                At::Reg(reg)
                    if self.copies[local] == 0 && !self.registers.locked.contains(reg) && !self.pins.set.contains(reg) =>
                {
                    // The local's value is lost with its register, because it is being replaced.
                    (self.values[local].at, self.values[local].stored) = (At::Slot, true);
                    self.registers.give(reg, index);
                    At::Reg(reg)
                }
                At::Reg(_) | At::Slot | At::Local(_) => {
                    let kind = self.values[local].kind;
                    let own = self.fresh(kind.class());
                    // `fresh` may have evicted the local.
                    let Value { at, .. } = self.values[local];
                    self.move_to(Popped { kind, at, index: local }, own);
                    self.registers.give(own, index);
                    // There may be more copies than registers.
                    self.registers.locked.remove(own);
                    At::Reg(own)
                }
            };
        }
    }

    /// Writes a local.
    pub fn set_local(&mut self, local: usize, mut popped: Popped) {
        if popped.at == At::Local(local as u32) {
            return;
        }
        if self.copies[local] > 0 {
            self.detach_copies(local);
        }
        let pin = self
            .pin_of(local)
            .filter(|&pin| self.values[local].at == At::Reg(pin) || self.is_free(pin) || popped.at == At::Reg(pin));
        let at = match popped.at {
            At::Const(_) if popped.kind != Kind::V128 => popped.at,
            _ if let Some(pin) = pin => {
                self.move_to(popped, pin);
                At::Reg(pin)
            }
            At::Const(_) | At::Slot | At::Reg(_) | At::Local(_) => At::Reg(self.writable(&mut popped)),
        };
        if let At::Reg(reg) = self.values[local].at {
            self.registers.owned.remove(reg);
        }
        if let At::Reg(reg) = at {
            self.registers.give(reg, local);
        }
        let value = &mut self.values[local];
        let was_stored = value.stored;
        (value.at, value.stored) = (at, false);
        if was_stored {
            self.unstored_locals.push(local as u32);
        }
    }

    // Joins

    /// Frees the registers of `set`, all of whose values are stored.
    pub fn forget(&mut self, set: Set) {
        for reg in self.registers.owned.and(set).iter() {
            let index = self.registers.owner(reg);
            debug_assert!(self.values[index].stored, "value {index} in {reg:?} is not stored");
            self.values[index].at = At::Slot;
            self.registers.owned.remove(reg);
        }
    }

    /// Frees the registers that a call clobbers, and those of references that the collector may change.
    pub fn forget_clobbered(&mut self) {
        self.forget(self.registers.owned.without(PRESERVED));
        for reg in self.registers.owned.iter() {
            if self.values[self.registers.owner(reg)].kind == Kind::Gc {
                self.forget(Set::EMPTY.with(reg));
            }
        }
    }

    /// The state in unreachable code: `height` values, all in their slots.
    pub fn forget_all(&mut self, height: usize) {
        for reg in self.registers.owned.iter() {
            let index = self.registers.owner(reg);
            (self.values[index].at, self.values[index].stored) = (At::Slot, true);
        }
        self.registers.owned = Set::EMPTY;
        for local in self.unstored_locals.drain(..) {
            let value = &mut self.values[local as usize];
            (value.at, value.stored) = (At::Slot, true);
        }
        for index in self.unstored_from..self.values.len() {
            let value = &mut self.values[index];
            if let At::Local(local) = value.at {
                self.copies[local as usize] -= 1;
                self.unread -= 1;
            }
            (value.at, value.stored) = (At::Slot, true);
        }
        self.values.truncate(height);
        self.unstored_from = self.values.len();
    }

    /// Sets the registers to these copies; everything is stored.
    pub fn restore(&mut self, copies: &Copies) {
        debug_assert!(self.registers.owned.is_empty());
        for (reg, index) in copies.iter() {
            self.values[index].at = At::Reg(reg);
            self.registers.give(reg, index);
        }
        self.registers.unextended = copies.unextended();
    }
}
