//! Code after the function: traps, polls, the requests of better code, and the rare parts of instructions.

use super::compiler::Compiler;
use super::counts::{stripe, subtract};
use super::frame::{self, SCRATCH};
use super::parts::{Case, Cold, Head};
use crate::meter::Ended;
use crate::regalloc::{Class, Reg};
use crate::request::{Reloc, RelocTarget, Stripe, TrapEntry};
use crate::seeded::{self, Fault};
use crate::x64::abi;
use crate::x64::encode::Bytes;
use crate::x64::forms::Field;
use crate::x64::insts::{Asm, Cond, Inst, Mem, Width};
use std::mem::offset_of;
use weir_bytecode::Trap;
use weir_contract::{Helper, InstanceCtx, NULL_SIG, StoreCtx, TableEntry, TrapSite};

/// Subtracts work from a function's ticks, and sets the sign flag if none are left. `r11` is destroyed.
pub fn subtract_ticks(out: &mut Bytes, stripe: Stripe, func: u32, work: u32) -> Reloc {
    let (offset, addend) = subtract(out, stripe, work.min(i32::MAX as u32) as i32);
    Reloc { offset, target: RelocTarget::Ticks(stripe), index: func, addend }
}

/// The offset of the helper table's entry.
fn helper_at(helper: Helper) -> i32 {
    8 * helper as i32
}

impl Compiler<'_> {
    /// Writes a jump on a condition of the processor. Returns the field for its distance.
    pub fn jump_if(&mut self, cond: Cond) -> Field {
        self.out.jump_if(cond)
    }

    /// Writes a jump. Returns the field for its distance.
    pub fn jump(&mut self) -> Field {
        self.out.jump()
    }

    /// Makes the jump with this field lead to the current position.
    pub fn bind(&mut self, field: Field) {
        let here = self.offset();
        self.link(field, here);
    }

    /// Makes the jump with this field lead to `target`.
    pub fn link(&mut self, field: Field, target: usize) {
        self.out.link(field, target);
    }

    /// Writes a jump back to code that is already written.
    pub fn jump_back(&mut self, target: usize) {
        let distance = target as i64 - (self.offset() as i64 + 2);
        match i8::try_from(distance) {
            Ok(short) => self.out.jump_short(short),
            Err(_) => {
                let field = self.jump();
                self.link(field, target);
            }
        }
    }

    /// Writes a conditional jump back to code that is already written.
    pub fn jump_back_if(&mut self, cond: Cond, target: usize) {
        let distance = target as i64 - (self.offset() as i64 + 2);
        match i8::try_from(distance) {
            Ok(short) => self.out.jump_short_if(cond, short),
            Err(_) => {
                let field = self.jump_if(cond);
                self.link(field, target);
            }
        }
    }

    /// Records a jump to cold code, which returns here if it returns.
    pub fn push_cold(&mut self, field: Field, case: Case) {
        let back = self.offset() as u32;
        self.cold.push(Cold { field: field as u32, back, pc: self.pc, case });
    }

    /// Traps on a condition.
    pub fn trap_if(&mut self, cond: Cond, trap: Trap) {
        self.trap_site_if(cond, TrapSite::Trap(trap));
    }

    /// Traps on a condition. A helper may have stored the trap's code.
    pub fn trap_site_if(&mut self, cond: Cond, site: TrapSite) {
        let field = self.jump_if(cond);
        self.push_cold(field, Case::Trap(site));
    }

    /// Traps on a condition because the access that ends at the address in `r11` is out of bounds.
    pub fn out_of_bounds_if(&mut self, cond: Cond) {
        let field = self.jump_if(cond);
        self.push_cold(field, Case::OutOfBounds);
    }

    /// Traps because a stack has no room for the function's frame.
    pub fn stack_overflow(&mut self) {
        self.raise(TrapSite::Trap(Trap::StackOverflow), self.body.entry);
    }

    /// Traps.
    pub fn trap(&mut self, trap: Trap) {
        self.raise(TrapSite::Trap(trap), self.pc);
    }

    fn raise(&mut self, site: TrapSite, pc: u32) {
        if self.request.options.signals {
            self.note_trap(site, pc);
            return self.out.ud2();
        }
        self.load_helpers();
        self.call_mem(Mem::at(abi::RAX, helper_at(Helper::Raise)));
        let offset = self.offset() as u32 - 1;
        self.traps.push(TrapEntry { offset, site, pc });
    }

    /// Records that the next instruction may fault.
    pub fn note_trap(&mut self, site: TrapSite, pc: u32) {
        let offset = self.offset() as u32;
        self.traps.push(TrapEntry { offset, site, pc });
    }

    /// Loads the address of the helper table into `rax`.
    pub fn load_helpers(&mut self) {
        let helpers = Mem::at(abi::INSTANCE, offset_of!(InstanceCtx, helpers) as i32);
        self.emit(&Inst::new(Asm::Mov, Width::Q).dst(abi::RAX).mem(helpers));
    }

    /// `call [mem]`, whose base is `rax` or another of the first eight registers, `r11` or `r15`.
    pub fn call_mem(&mut self, mem: Mem) {
        self.out.indirect(2, mem);
    }

    /// Traps unless the signature of the table entry in `entry` is `sig`.
    pub fn check_signature(&mut self, entry: Reg, ty: u32) {
        if seeded::is(Fault::SignatureDropped) {
            return;
        }
        let field = self.out.compare_with_field(Mem::at(entry, offset_of!(TableEntry, sig) as i32));
        self.relocs.push(Reloc { offset: field as u32, target: RelocTarget::Signature, index: ty, addend: 0 });
        let field = self.jump_if(Cond::NE);
        self.push_cold(field, Case::Signature(entry));
    }

    /// Subtracts the work of an iteration of the loop with this index from the ticks. If none are left, [`Compiler::leave_loop`] follows.
    /// The loop's header is an entry of the code.
    pub fn tick(&mut self, index: u32) {
        if !self.request.options.ticks {
            return;
        }
        self.heads.push(Head { index, at: self.offset() as u32, pins: self.pins.list.as_slice().into() });
        let work = self.body.branches[self.body.loops[index as usize].stp as usize].drop;
        let reloc = subtract_ticks(&mut self.out, stripe(self.request.options), self.request.func, work);
        self.relocs.push(reloc);
        let field = self.jump_if(Cond::S);
        self.push_cold(field, Case::Tick(index));
    }

    /// Continues elsewhere, in better code for the loop or in the interpreter, if the helper says so: every local and operand is in its
    /// slot. The target may read the helper's argument in `r11`, which the helper has preserved.
    fn leave_loop(&mut self, index: u32, back: usize) {
        self.call_tick(index);
        self.jump_back_if(Cond::E, back);
        let fp = Mem::at(frame::FRAME, -frame::BIAS);
        self.emit(&Inst::new(Asm::Lea, Width::Q).dst(abi::RDI).mem(fp));
        frame::epilogue(&mut self.out, self.needs.saved, abi::RDX);
        self.out.jump_register(abi::RAX);
    }

    /// Calls the helper. The zero flag is set if the code continues here; otherwise the address to continue at is in `rax`.
    pub fn call_tick(&mut self, index: u32) {
        self.load_helpers();
        let argument = u64::from(self.request.func) | u64::from(index) << 32;
        self.out.constant(SCRATCH, argument as i64);
        self.call_mem(Mem::at(abi::RAX, helper_at(Helper::Tick)));
        self.emit(&Inst::new(Asm::Test, Width::Q).src(abi::RAX).reg(abi::RAX));
    }

    /// Compares the epoch with the deadline.
    pub fn poll(&mut self) {
        if !self.request.options.poll {
            return;
        }
        self.needs.calls = true;
        let load = |base, offset: usize| Inst::new(Asm::Mov, Width::Q).dst(SCRATCH).mem(Mem::at(base, offset as i32));
        let store = self.fresh(Class::Int);
        self.emit(&load(abi::INSTANCE, offset_of!(InstanceCtx, store)).dst(store));
        self.emit(&load(store, offset_of!(StoreCtx, epoch)));
        self.emit(&load(SCRATCH, 0));
        let deadline = Mem::at(store, offset_of!(StoreCtx, deadline) as i32);
        self.emit(&Inst::new(Asm::Cmp, Width::Q).src(SCRATCH).mem(deadline));
        let field = self.jump_if(Cond::AE);
        self.push_cold(field, Case::Poll);
        self.unlock();
    }

    /// Charges the fuel segment that begins at `pc`, which is the current instruction, or after the current `loop` opcode; if one does and
    /// if code charges fuel.
    #[inline]
    pub fn charge(&mut self, pc: u32) {
        if self.request.options.fuel {
            self.charge_segment(pc);
        }
    }

    fn charge_segment(&mut self, pc: u32) {
        // Segments of unreachable code have been skipped.
        while self.body.segments.get(self.segment).is_some_and(|segment| segment.pc < pc) {
            self.segment += 1;
        }
        let Some(segment) = self.body.segments.get(self.segment).filter(|segment| segment.pc == pc) else { return };
        self.segment += 1;
        let store = Mem::at(abi::INSTANCE, offset_of!(InstanceCtx, store) as i32);
        self.emit(&Inst::new(Asm::Mov, Width::Q).dst(SCRATCH).mem(store));
        let fuel = Mem::at(SCRATCH, offset_of!(StoreCtx, fuel) as i32);
        let charge = Inst::new(Asm::SubTo, Width::Q).mem(fuel);
        match i32::try_from(segment.cost) {
            Ok(cost) => self.emit(&charge.imm(cost.into())),
            Err(_) => {
                let cost = self.fresh(Class::Int);
                self.out.constant(cost, segment.cost.into());
                self.emit(&charge.src(cost));
                self.unlock();
            }
        }
        self.trap_if(Cond::S, Trap::OutOfFuel);
    }

    /// After a comparison of the divisor with -1: divides by it, and returns to the code after the division, which
    /// [`Compiler::end_division`] marks.
    pub fn divide_by_minus_one(&mut self, quotient: bool, width: Width) {
        let field = self.jump_if(Cond::E);
        self.push_cold(field, if quotient { Case::QuotientByMinusOne(width) } else { Case::RemainderByMinusOne });
    }

    /// Marks the end of the division: see [`Compiler::divide_by_minus_one`].
    pub fn end_division(&mut self) {
        let here = self.offset();
        if let Some(cold) = self.cold.last_mut() {
            cold.back = here as u32;
        }
    }

    /// Traps on a condition because the float in `reg` is not in the range of the result's type.
    pub fn untruncated_if(&mut self, cond: Cond, reg: Reg, width: Width) {
        let field = self.jump_if(cond);
        self.push_cold(field, Case::Untruncated(reg, width));
    }

    /// Writes the cold code to which jumps lead.
    pub fn cold_code(&mut self) -> Result<(), Ended> {
        let mut cold = std::mem::take(&mut self.cold);
        for Cold { field, back, pc, case } in cold.drain(..) {
            self.meter.spend(1)?;
            let back = back as usize;
            self.bind(field as usize);
            match case {
                Case::Trap(site) => self.raise(site, pc),
                Case::Poll => self.poll_host(back, pc),
                Case::Tick(index) => self.leave_loop(index, back),
                Case::OutOfBounds => self.raise_because(Trap::MemoryOutOfBounds, SCRATCH, abi::RAX, pc),
                Case::Signature(entry) => self.refuse_signature(entry, pc),
                Case::Target { func, site, foreign } => self.count_other_target(func, site, foreign as usize, back),
                Case::QuotientByMinusOne(width) => {
                    // The division overflows exactly when the negation does.
                    self.emit(&Inst::new(Asm::Neg, width).dst(abi::RAX).src(abi::RAX));
                    self.jump_back_if(Cond::NO, back);
                    self.raise(TrapSite::Trap(Trap::IntegerOverflow), pc);
                }
                Case::RemainderByMinusOne => {
                    self.out.clear(abi::RDX);
                    self.jump_back(back);
                }
                Case::Untruncated(reg, width) => {
                    self.emit(&Inst::new(Asm::Vucomi, width).src(reg).reg(reg));
                    let nan = self.jump_if(Cond::P);
                    self.raise(TrapSite::Trap(Trap::IntegerOverflow), pc);
                    self.bind(nan);
                    self.raise(TrapSite::Trap(Trap::BadConversionToInteger), pc);
                }
            }
        }
        self.cold = cold;
        self.target_subroutine();
        Ok(())
    }

    /// The helper preserves all registers except `rax`.
    fn poll_host(&mut self, back: usize, pc: u32) {
        self.out.push(abi::RAX);
        self.load_helpers();
        self.call_mem(Mem::at(abi::RAX, helper_at(Helper::Poll)));
        let offset = self.offset() as u32;
        self.calls.push((offset, pc));
        self.emit(&Inst::new(Asm::Test, Width::D).src(abi::RAX).reg(abi::RAX));
        self.out.pop(abi::RAX);
        self.jump_back_if(Cond::E, back);
        self.raise(TrapSite::Stored, pc);
    }

    fn refuse_signature(&mut self, entry: Reg, pc: u32) {
        let sig = Mem::at(entry, offset_of!(TableEntry, sig) as i32);
        self.emit(&Inst::new(Asm::Cmp, Width::D).mem(sig).imm(i64::from(NULL_SIG as i32)));
        let other = self.jump_if(Cond::NE);
        self.raise(TrapSite::Trap(Trap::IndirectCallToNull), pc);
        self.bind(other);
        self.raise_because(Trap::BadSignature, entry, SCRATCH, pc);
    }

    /// Traps because of the number or address in `operand`.
    fn raise_because(&mut self, trap: Trap, operand: Reg, scratch: Reg, pc: u32) {
        self.load_field(scratch, abi::INSTANCE, offset_of!(InstanceCtx, store));
        let field = Mem::at(scratch, offset_of!(StoreCtx, operand) as i32);
        self.emit(&Inst::new(Asm::MovTo, Width::Q).src(operand).mem(field));
        self.raise(TrapSite::Trap(trap), pc);
    }
}
