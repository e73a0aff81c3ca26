//! Counts for the profile: the directions of branches, and the targets of indirect calls.

use super::compiler::Compiler;
use super::frame::SCRATCH;
use super::parts::{Case, Direction};
use crate::regalloc::{Class, Reg};
use crate::request::{Options, Reloc, RelocTarget, Stripe};
use crate::x64::abi;
use crate::x64::encode::Bytes;
use crate::x64::forms::Field;
use crate::x64::insts::{Asm, Cond, Inst, Mem, Width};
use std::mem::offset_of;
use weir_contract::profile::CallCounters;
use weir_contract::{FuncRef, InstanceCtx, TableEntry};

/// The offset of an entry's counters.
fn counter_at(entry: u32) -> i32 {
    8 * entry as i32
}

/// The callee of an indirect call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Callee {
    /// A `TableEntry`.
    Entry,
    /// A `FuncRef`.
    Reference,
}

/// The stripe of counters that code of these options uses.
pub fn stripe(options: &Options) -> Stripe {
    if options.striped { Stripe::Any } else { Stripe::First }
}

/// Subtracts a number from a counter. Returns offset and addend of its relocation. Flags and `r11` are destroyed.
pub fn subtract(out: &mut Bytes, stripe: Stripe, value: i32) -> (u32, i32) {
    match stripe {
        Stripe::First => {
            let (field, after) = out.subtract_near(value);
            (field as u32, -4 - after as i32)
        }
        Stripe::Any => {
            load_stripe(out);
            (out.subtract_from(SCRATCH, value) as u32, 0)
        }
    }
}

/// Loads the address of the store's stripe of counters into `r11`.
fn load_stripe(out: &mut Bytes) {
    let stripe = Mem::at(abi::INSTANCE, offset_of!(InstanceCtx, counters) as i32);
    out.encode(&Inst::new(Asm::Mov, Width::Q).dst(SCRATCH).mem(stripe));
}

impl Compiler<'_> {
    /// Advances past the current instruction's entry in the side table, and returns its index.
    pub fn take_entry(&mut self) -> u32 {
        self.entry += 1;
        self.entry - 1
    }

    /// Counts a direction of the branch with this entry in the side table. Flags and `r11` are destroyed.
    pub fn count(&mut self, entry: u32, direction: Direction) {
        if self.request.options.counts {
            let stripe = stripe(self.request.options);
            let (offset, addend) = subtract(&mut self.out, stripe, -1);
            let counter = counter_at(entry) + if direction == Direction::Taken { 0 } else { 4 };
            self.counters_at(offset, stripe, addend + counter);
        }
    }

    /// Counts a direction of a `br_table` with `count` entries from this one on, by the index in `index`. Flags and `r11` are destroyed.
    pub fn count_table(&mut self, entry: u32, count: usize, index: Reg) {
        if !self.request.options.counts {
            return;
        }
        self.emit(&Inst::new(Asm::Cmp, Width::D).reg(index).imm(count as i64 - 1));
        let default = self.jump_if(Cond::AE);
        self.counters_address();
        self.emit(&Inst::new(Asm::SubTo, Width::D).mem(Mem::indexed(SCRATCH, index, 3, counter_at(entry))).imm(-1));
        let counted = self.jump();
        self.bind(default);
        self.count(entry + count as u32 - 1, Direction::Taken);
        self.bind(counted);
    }

    /// The address of the function's counters in `r11`.
    fn counters_address(&mut self) {
        let stripe = stripe(self.request.options);
        let (field, addend) = match stripe {
            Stripe::First => (self.out.address(SCRATCH), -4),
            Stripe::Any => {
                load_stripe(&mut self.out);
                (self.out.address_from(SCRATCH, SCRATCH), 0)
            }
        };
        self.counters_at(field as u32, stripe, addend);
    }

    /// The field at `offset` receives the place of the function's counters.
    fn counters_at(&mut self, offset: u32, stripe: Stripe, addend: i32) {
        self.relocs.push(Reloc { offset, target: RelocTarget::Counters(stripe), index: self.request.func, addend });
    }

    /// Passes an indirect call, which is the current instruction, and counts its target. The address of the callee, which has passed
    /// all checks, is in `reg`. Flags and `r11` are destroyed.
    ///
    /// The code here counts calls of the target that was called first.
    pub fn count_target(&mut self, callee: Callee, reg: Reg) {
        let site = CallCounters::offset(self.body.branches.len(), self.indirect_calls) as i32;
        self.indirect_calls += 1;
        if !self.request.options.counts {
            return;
        }
        let func = self.fresh(Class::Int);
        let reference = match callee {
            Callee::Entry => {
                self.load_field(func, reg, offset_of!(TableEntry, reference));
                func
            }
            Callee::Reference => reg,
        };
        let index = Mem::at(reference, offset_of!(FuncRef, index) as i32);
        self.emit(&Inst::new(Asm::Mov, Width::D).dst(func).mem(index));
        self.emit(&Inst::new(Asm::Add, Width::D).dst(func).src(func).imm(1));
        self.counters_address();
        // A `FuncRef` has its instance at the same offset.
        const { assert!(offset_of!(TableEntry, instance) == offset_of!(FuncRef, instance)) };
        let instance = Mem::at(reg, offset_of!(TableEntry, instance) as i32);
        self.emit(&Inst::new(Asm::Cmp, Width::Q).src(abi::INSTANCE).mem(instance));
        let foreign = self.jump_if(Cond::NE);
        self.emit(&Inst::new(Asm::Cmp, Width::D).src(func).mem(Mem::at(SCRATCH, site)));
        let other = self.jump_if(Cond::NE);
        self.emit(&Inst::new(Asm::SubTo, Width::D).mem(Mem::at(SCRATCH, site + 4)).imm(-1));
        self.push_cold(other, Case::Target { func, site, foreign: foreign as u32 });
        self.release(func);
    }

    /// Counts a call of the function whose index plus one is in `func`, and which is not the first target of the counters at `site`. The jump `foreign` comes with a
    /// function of another instance.
    pub fn count_other_target(&mut self, func: Reg, site: i32, foreign: Field, back: usize) {
        let here = self.offset();
        self.out.push(abi::RAX);
        self.emit(&Inst::new(Asm::Lea, Width::Q).dst(SCRATCH).mem(Mem::at(SCRATCH, site)));
        if func != abi::RAX {
            self.emit(&Inst::new(Asm::Mov, Width::D).dst(abi::RAX).reg(func));
        }
        let field = self.out.call();
        self.target_calls.push(field);
        self.out.pop(abi::RAX);
        self.jump_back(back);
        self.bind(foreign);
        self.out.constant(func, CallCounters::OTHER_INSTANCE.into());
        self.jump_back(here);
    }

    /// Writes the subroutine that counts a call of the function whose index plus one is in `eax`, in the counters at `r11`, if the function
    /// calls it.
    pub fn target_subroutine(&mut self) {
        let calls = std::mem::take(&mut self.target_calls);
        if calls.is_empty() {
            return;
        }
        calls.into_iter().for_each(|field| self.bind(field));
        let increment = |at: i32| Inst::new(Asm::SubTo, Width::D).mem(Mem::at(SCRATCH, at)).imm(-1);
        for at in (0..CallCounters::OTHERS).step_by(CallCounters::TARGET as usize) {
            let (at, calls) = (Mem::at(SCRATCH, at as i32), at as i32 + 4);
            self.emit(&Inst::new(Asm::Cmp, Width::D).src(abi::RAX).mem(at));
            let same = self.jump_if(Cond::E);
            self.emit(&Inst::new(Asm::Cmp, Width::D).mem(at).imm(i64::from(CallCounters::UNUSED as i32)));
            let next = self.jump_if(Cond::NE);
            self.emit(&Inst::new(Asm::MovTo, Width::D).src(abi::RAX).mem(at));
            self.bind(same);
            self.emit(&increment(calls));
            self.out.ret();
            self.bind(next);
        }
        self.emit(&increment(CallCounters::OTHERS as i32));
        self.out.ret();
    }
}
