//! Calls, tail calls, and calls of the runtime's helpers.

use super::compiler::Compiler;
use super::counts;
use super::frame::{self, FLOAT_SCRATCH, SCRATCH};
use super::label::merge_register;
use super::parts::Argument;
use super::values::{At, Kind, Popped, Set, Value};
use crate::regalloc::{Class, Reg};
use crate::request::{Reloc, RelocTarget};
use crate::x64::abi::{self, ArgLocation};
use crate::x64::forms::Field;
use crate::x64::insts::{Asm, Cond, Inst, Mem, Width};
use smallvec::SmallVec;
use std::mem::offset_of;
use weir_bytecode::{FuncType, Trap, ValType};
use weir_contract::{Helper, TableEntry, TrapSite};

/// The target of a call.
#[derive(Clone, Copy, Debug)]
enum Callee {
    /// A function of this module, called through its cell.
    Cell(u32),
    /// The function whose `FuncRef` or `TableEntry` is at the address in this register.
    Reference(Reg),
    /// A function of this instance, whose `TableEntry` is at the address in this register.
    OwnElement(Reg),
}

/// An argument of a helper.
#[derive(Clone, Copy, Debug)]
pub enum Arg {
    Operand(Popped),
    Const(i64),
}

pub type Operands = SmallVec<[Popped; 8]>;

impl<'c> Compiler<'c> {
    pub fn call(&mut self, func: u32) {
        let (ty, callee) = self.direct(func);
        self.call_of(ty, callee);
    }

    pub fn return_call(&mut self, func: u32) {
        let (ty, callee) = self.direct(func);
        self.tail_call_of(ty, callee);
    }

    pub fn call_indirect(&mut self, ty: u32, table: u32) {
        let (ty, callee) = self.indirect(ty, table);
        self.call_of(ty, callee);
    }

    pub fn return_call_indirect(&mut self, ty: u32, table: u32) {
        let (ty, callee) = self.indirect(ty, table);
        self.tail_call_of(ty, callee);
    }

    pub fn call_ref(&mut self, ty: u32) {
        let callee = self.reference();
        self.call_of(&self.module.types[ty as usize], callee);
    }

    pub fn return_call_ref(&mut self, ty: u32) {
        let callee = self.reference();
        self.tail_call_of(&self.module.types[ty as usize], callee);
    }

    fn direct(&mut self, func: u32) -> (&'c FuncType, Callee) {
        let ty = self.module.func_type(func);
        if func >= self.module.imported_funcs {
            return (ty, Callee::Cell(func));
        }
        let reg = self.fresh(Class::Int);
        let import = Mem::at(abi::INSTANCE, self.layout.import(func) as i32);
        self.emit(&Inst::new(Asm::Mov, Width::Q).dst(reg).mem(import));
        (ty, Callee::Reference(reg))
    }

    /// Pops the index, and checks the element and its type.
    fn indirect(&mut self, ty: u32, table: u32) -> (&'c FuncType, Callee) {
        let mut index = self.pop();
        let entry = self.table_entry(table, &mut index, Trap::TableOutOfBounds);
        self.check_signature(entry, ty);
        self.count_target(counts::Callee::Entry, entry);
        let callee = match self.module.own_elements(table) {
            Some(_) => Callee::OwnElement(entry),
            None => Callee::Reference(entry),
        };
        (&self.module.types[ty as usize], callee)
    }

    /// Pops a reference, and checks that it is not null.
    fn reference(&mut self) -> Callee {
        let mut popped = self.pop();
        let reg = self.writable(&mut popped);
        self.emit(&Inst::new(Asm::Test, Width::Q).src(reg).reg(reg));
        self.trap_if(Cond::E, Trap::NullReference);
        self.count_target(counts::Callee::Reference, reg);
        Callee::Reference(reg)
    }

    /// Pops `count` operands, in the order in which they were pushed.
    pub fn pop_list(&mut self, count: usize) -> Operands {
        let mut operands: Operands = (0..count).map(|_| self.pop()).collect();
        operands.reverse();
        operands
    }

    fn call_of(&mut self, ty: &FuncType, callee: Callee) {
        self.needs.calls = true;
        let args = self.pop_arguments(&ty.params);
        self.flush();
        self.place_arguments(args, callee);
        self.forget_clobbered();
        match callee {
            Callee::Cell(func) => {
                let field = self.out.call_through();
                self.relocate(field, func);
            }
            Callee::Reference(_) | Callee::OwnElement(_) => {
                self.load_callee(callee);
                self.out.indirect(2, Mem::at(SCRATCH, 0));
            }
        }
        let offset = self.offset() as u32;
        self.calls.push((offset, self.pc));
        if matches!(callee, Callee::Reference(_)) || self.module.effects.foreign_tail_calls {
            frame::restore_instance(&mut self.out);
        }
        self.unlock();
        self.take_results(ty);
    }

    fn tail_call_of(&mut self, ty: &FuncType, callee: Callee) {
        self.needs.calls = true;
        let args = self.pop_arguments(&ty.params);
        self.place_arguments(args, callee);
        frame::epilogue(&mut self.out, self.needs.saved, abi::RAX);
        match callee {
            Callee::Cell(func) => {
                let field = self.out.jump_through();
                self.relocate(field, func);
            }
            Callee::Reference(_) | Callee::OwnElement(_) => {
                self.load_callee(callee);
                self.out.indirect(4, Mem::at(SCRATCH, 0));
            }
        }
        self.stop();
    }

    /// The operand, or the local of which it is a copy.
    pub fn resolved(&self, popped: Popped) -> Popped {
        let At::Local(local) = popped.at else { return popped };
        Popped { at: self.values[local as usize].at, index: local as usize, ..popped }
    }

    /// Loads the cell of the function to be called, in place of the address of its `FuncRef` or `TableEntry`, and its instance unless it is
    /// this one. A `FuncRef` has the needed fields of a `TableEntry` at the same offsets.
    fn load_callee(&mut self, callee: Callee) {
        if matches!(callee, Callee::Reference(_)) {
            let instance = Mem::at(SCRATCH, offset_of!(TableEntry, instance) as i32);
            self.emit(&Inst::new(Asm::Mov, Width::Q).dst(abi::INSTANCE).mem(instance));
        }
        let cell = Mem::at(SCRATCH, offset_of!(TableEntry, cell) as i32);
        self.emit(&Inst::new(Asm::Mov, Width::Q).dst(SCRATCH).mem(cell));
    }

    fn relocate(&mut self, field: Field, func: u32) {
        self.relocs.push(Reloc { offset: field as u32, target: RelocTarget::Cell, index: func, addend: -4 });
    }

    /// Pops the arguments of a call.
    fn pop_arguments(&mut self, types: &[ValType]) -> Vec<Argument> {
        let mut args = std::mem::take(&mut self.arguments);
        debug_assert!(args.is_empty());
        let first = self.values.len() - types.len();
        for (location, index) in abi::params(types).zip(first..) {
            let Value { kind, at, .. } = self.values[index];
            self.lock_popped(at);
            args.push(Argument { location, operand: Popped { kind, at, index } });
        }
        self.values.truncate(first);
        self.unstored_from = self.unstored_from.min(first);
        args
    }

    /// Puts arguments where the callee expects them, and its reference into `r11`. Other values in registers are stored.
    fn place_arguments(&mut self, mut args: Vec<Argument>, callee: Callee) {
        let (mut overflow, mut moves) = (false, Moves::new());
        if let Callee::Reference(reg) | Callee::OwnElement(reg) = callee {
            moves.push((reg, SCRATCH));
        }
        for Argument { location, operand } in &mut args {
            *operand = self.resolved(*operand);
            match (*location, operand.at) {
                (ArgLocation::Reg(to), At::Reg(from)) => moves.push((from, to)),
                (ArgLocation::Reg(_), At::Slot | At::Const(_) | At::Local(_)) => {}
                (ArgLocation::Overflow(_), _) => overflow = true,
            }
        }
        if overflow {
            self.load_overflow_area(SCRATCH);
            for &Argument { location, operand } in &args {
                if let ArgLocation::Overflow(slot) = location {
                    self.store_overflow(operand, 8 * slot as i32);
                }
            }
        }
        self.parallel_move(moves);
        for Argument { location, operand } in args.drain(..) {
            match (location, operand.at) {
                (ArgLocation::Reg(to), At::Slot | At::Const(_) | At::Local(_)) => self.move_to(operand, to),
                (ArgLocation::Overflow(_), _) | (ArgLocation::Reg(_), At::Reg(_)) => {}
            }
        }
        self.arguments = args;
    }

    /// Stores an argument at an offset from `r11`, without using a general-purpose register.
    pub fn store_overflow(&mut self, arg: Popped, offset: i32) {
        let (mem, width) = (Mem::at(SCRATCH, offset), arg.kind.width());
        match arg.at {
            At::Reg(reg) => {
                let op = if reg.class() == Class::Float { Asm::VmovTo } else { Asm::MovTo };
                self.emit_any(&Inst::new(op, width).src(reg).mem(mem));
            }
            At::Const(bits) if arg.kind != Kind::V128 => {
                let half =
                    |at: i32, half: u32| Inst::new(Asm::MovTo, Width::D).mem(Mem::at(SCRATCH, at)).imm(i64::from(half as i32));
                self.emit(&half(offset, bits as u32));
                if width == Width::Q {
                    self.emit(&half(offset + 4, (bits >> 32) as u32));
                }
            }
            At::Slot => {
                let from = self.slots.mem(arg.index);
                self.emit(&Inst::new(Asm::Vmov, width).dst(FLOAT_SCRATCH).mem(from));
                self.emit(&Inst::new(Asm::VmovTo, width).src(FLOAT_SCRATCH).mem(mem));
            }
            At::Const(_) | At::Local(_) => {
                self.move_to(arg, FLOAT_SCRATCH);
                self.emit(&Inst::new(Asm::VmovTo, width).src(FLOAT_SCRATCH).mem(mem));
            }
        }
    }

    /// Pushes the results of a call.
    fn take_results(&mut self, ty: &FuncType) {
        if let [ty] = *ty.results {
            let kind = Kind::of(ty);
            let reg = merge_register(kind);
            return if kind == Kind::I32 { self.push_unextended(reg) } else { self.push(kind, reg) };
        }
        let mut area = None;
        let base = self.values.len();
        for (i, location) in abi::results(&ty.results).enumerate() {
            let ArgLocation::Overflow(slot) = location else { continue };
            // The registers of results are not free, but `r11` is.
            if area.is_none() {
                self.load_overflow_area(SCRATCH);
                area = Some(SCRATCH);
            }
            let kind = Kind::of(ty.results[i]);
            self.copy_to_slot(kind, Mem::at(SCRATCH, 8 * slot as i32), base + i);
        }
        for (i, location) in abi::results(&ty.results).enumerate() {
            let kind = Kind::of(ty.results[i]);
            let ArgLocation::Reg(reg) = location else {
                self.push_stored(kind);
                continue;
            };
            if kind == Kind::I32 { self.push_unextended(reg) } else { self.push(kind, reg) }
        }
    }

    /// Copies a value from memory to a slot, through registers that hold no value.
    fn copy_to_slot(&mut self, kind: Kind, from: Mem, index: usize) {
        // A float register can hold the bits of any kind.
        let to = self.slots.mem(index);
        self.emit(&Inst::new(Asm::Vmov, kind.width()).dst(FLOAT_SCRATCH).mem(from));
        self.emit(&Inst::new(Asm::VmovTo, kind.width()).src(FLOAT_SCRATCH).mem(to));
    }

    /// Executes moves between registers in parallel.
    pub fn parallel_move(&mut self, mut moves: Moves) {
        moves.retain(|(from, to)| from != to);
        if moves.iter().any(|(from, _)| from.class() == Class::Float) {
            let floats: Moves = moves.iter().copied().filter(|(from, _)| from.class() == Class::Float).collect();
            moves.retain(|(from, _)| from.class() == Class::Int);
            self.parallel_move_of_class(&mut moves);
            moves = floats;
        }
        self.parallel_move_of_class(&mut moves);
    }

    fn parallel_move_of_class(&mut self, moves: &mut Moves) {
        while !moves.is_empty() {
            let sources = moves.iter().fold(Set::EMPTY, |set, &(from, _)| set.with(from));
            match moves.iter().position(|&(_, to)| !sources.contains(to)) {
                Some(i) => {
                    let (from, to) = moves.swap_remove(i);
                    match from.class() != to.class() {
                        true => self.out.float_bits(to, from, Width::Q),
                        false => self.copy(to, from),
                    }
                }
                // Only cycles are left: one register is parked, so that its cycle ends before the next one is broken.
                None => {
                    let parked = moves[0].0;
                    match parked.class() {
                        Class::Int => self.emit(&Inst::new(Asm::ToFloat, Width::Q).dst(FLOAT_SCRATCH).reg(parked)),
                        Class::Float => self.out.copy(FLOAT_SCRATCH, parked),
                    }
                    moves.iter_mut().filter(|(from, _)| *from == parked).for_each(|(from, _)| *from = FLOAT_SCRATCH);
                }
            }
        }
    }

    /// Calls a helper of the runtime after storing everything; its result is in `rax`.
    pub fn call_helper(&mut self, helper: Helper, args: &[Arg]) {
        self.needs.calls = true;
        self.flush();
        let mut moves = Moves::new();
        let registers = abi::SYSTEM_V_ARGS[1..].iter().copied();
        let args: SmallVec<[Arg; 4]> = args.iter().map(|&arg| self.extended_argument(arg)).collect();
        for (to, arg) in registers.clone().zip(&args) {
            if let Arg::Operand(Popped { at: At::Reg(from), .. }) = *arg {
                moves.push((from, to));
            }
        }
        self.parallel_move(moves);
        for (to, arg) in registers.zip(&args) {
            match *arg {
                Arg::Operand(Popped { at: At::Reg(_), .. }) => {}
                Arg::Operand(popped) => self.move_to(popped, to),
                Arg::Const(value) => self.out.constant(to, value),
            }
        }
        self.forget_clobbered();
        self.out.copy(Reg::int(7), abi::INSTANCE);
        self.load_helpers();
        self.call_mem(Mem::at(abi::RAX, 8 * helper as i32));
        let offset = self.offset() as u32;
        self.calls.push((offset, self.pc));
        self.unlock();
    }

    /// An argument; if it is an i32 in a register, its upper half is zero.
    fn extended_argument(&mut self, arg: Arg) -> Arg {
        let Arg::Operand(popped) = arg else { return arg };
        let mut popped = self.resolved(popped);
        if let At::Reg(_) = popped.at {
            self.extended(&mut popped);
        }
        Arg::Operand(popped)
    }

    /// Calls a helper that returns whether it traps, after storing everything.
    pub fn call_checked_helper(&mut self, helper: Helper, args: &[Arg]) {
        self.call_helper(helper, args);
        self.emit(&Inst::new(Asm::Test, Width::D).src(abi::RAX).reg(abi::RAX));
        self.trap_site_if(Cond::NE, TrapSite::Stored);
    }

    /// Evicts the values in the registers that a subroutine clobbers.
    pub fn evict_all(&mut self, clobbers: Set) {
        for reg in self.registers.owned.and(clobbers).iter() {
            self.evict(reg);
        }
    }
}

pub type Moves = SmallVec<[(Reg, Reg); 8]>;
