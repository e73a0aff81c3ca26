//! Tables, references, and operations of runtime helpers.

use super::calls::Arg;
use super::compiler::Compiler;
use super::numeric::index_kind;
use super::values::{Kind, Popped};
use crate::regalloc::{Class, Reg};
use crate::seeded::{self, Fault};
use crate::x64::abi;
use crate::x64::insts::{Asm, Cond, Inst, Mem, Width};
use std::mem::offset_of;
use weir_bytecode::{Opcode, Trap};
use weir_contract::{Helper, TableCtx, TableEntry};

/// Two indices in the form that a helper takes.
fn pair(low: u32, high: u32) -> i64 {
    (u64::from(low) | u64::from(high) << 32) as i64
}

impl Compiler<'_> {
    pub fn ref_func(&mut self, func: u32) {
        self.call_helper(Helper::RefFunc, &[Arg::Const(func.into())]);
        self.push(Kind::Ref, abi::RAX);
    }

    pub fn ref_as_non_null(&mut self) {
        let mut popped = self.pop();
        let reg = self.writable(&mut popped);
        self.emit(&Inst::new(Asm::Test, Width::Q).src(reg).reg(reg));
        self.trap_if(Cond::E, Trap::NullReference);
        self.push(popped.kind, reg);
    }

    pub fn table_get(&mut self, table: u32) {
        let mut index = self.pop();
        let entry = self.table_entry(table, &mut index, Trap::TableOutOfBounds);
        self.load_field(entry, entry, offset_of!(TableEntry, reference));
        self.push(Kind::of_heap(self.module.tables[table as usize].ty.element.heap), entry);
    }

    pub fn table_grow(&mut self, table: u32) {
        let kind = index_kind(self.module.tables[table as usize].ty.table64);
        self.growing_helper(Opcode::TableGrow, Helper::TableGrow, table, kind);
    }

    pub fn memory_grow(&mut self, memory: u32) {
        let kind = index_kind(self.module.memories[memory as usize].memory64);
        self.growing_helper(Opcode::MemoryGrow, Helper::MemoryGrow, memory, kind);
    }

    /// An instruction with an index as immediate, which a helper executes.
    pub fn helper_with_index(&mut self, op: Opcode, helper: Helper) {
        let index = self.reader.u32();
        self.checked_helper(op, helper, index.into());
    }

    /// A copy, which a helper executes. The immediates are the destination and the source.
    pub fn helper_to_from(&mut self, op: Opcode, helper: Helper) {
        let (to, from) = (self.reader.u32(), self.reader.u32());
        self.checked_helper(op, helper, pair(to, from));
    }

    /// An initialisation, which a helper executes. The immediates are the segment and the destination.
    pub fn helper_with_segment(&mut self, op: Opcode, helper: Helper) {
        let (segment, to) = (self.reader.u32(), self.reader.u32());
        self.checked_helper(op, helper, pair(to, segment));
    }

    /// The arguments of the helper that executes `op`: `selector`, then the operands.
    fn arguments(&mut self, op: Opcode, selector: i64) -> Vec<Arg> {
        let (count, _) = op.effect().arity().expect("no helper executes a control instruction");
        let operands = self.pop_list(count);
        std::iter::once(Arg::Const(selector)).chain(operands.into_iter().map(Arg::Operand)).collect()
    }

    fn checked_helper(&mut self, op: Opcode, helper: Helper, selector: i64) {
        let args = self.arguments(op, selector);
        self.call_checked_helper(helper, &args);
    }

    fn growing_helper(&mut self, op: Opcode, helper: Helper, index: u32, kind: Kind) {
        let args = self.arguments(op, index.into());
        self.call_helper(helper, &args);
        if kind == Kind::I32 { self.push_unextended(abi::RAX) } else { self.push(kind, abi::RAX) }
    }

    /// The address of a table element. Traps with `trap` if the index is out of bounds. Speculative execution after that accesses the first
    /// element.
    pub fn table_entry(&mut self, table: u32, index: &mut Popped, trap: Trap) -> Reg {
        self.extended(index);
        let index = self.writable(index);
        let record = self.fresh(Class::Int);
        self.load_field(record, abi::INSTANCE, self.layout.table(table) as usize);
        let len = Mem::at(record, offset_of!(TableCtx, len) as i32);
        if !seeded::is(Fault::TableCheckDropped) {
            self.emit(&Inst::new(Asm::Cmp, Width::Q).src(index).mem(len));
            self.trap_if(Cond::AE, trap);
            if self.request.options.spectre_mitigation && !seeded::is(Fault::TableMaskDropped) {
                self.mask_index(Cond::AE, index);
            }
        }
        const { assert!(size_of::<TableEntry>() == 1 << 5) };
        self.emit(&Inst::new(Asm::Shl, Width::Q).dst(index).src(index).imm(5));
        let entries = Mem::at(record, offset_of!(TableCtx, entries) as i32);
        self.emit(&Inst::new(Asm::Add, Width::Q).dst(index).src(index).mem(entries));
        self.release(record);
        index
    }

    pub fn table_size(&mut self, table: u32) {
        let kind = index_kind(self.module.tables[table as usize].ty.table64);
        let reg = self.fresh(Class::Int);
        self.load_field(reg, abi::INSTANCE, self.layout.table(table) as usize);
        self.load_field(reg, reg, offset_of!(TableCtx, len));
        self.push(kind, reg);
    }

    pub fn ref_is_null(&mut self) {
        let mut popped = self.pop();
        let reg = self.reg(&mut popped);
        self.emit(&Inst::new(Asm::Test, Width::Q).src(reg).reg(reg));
        self.condition(Cond::E);
    }

    /// The reference stays if the branch is not taken.
    pub fn branch_on_null(&mut self, depth: u32) {
        let mut popped = self.pop();
        let reg = self.writable(&mut popped);
        // The label's operands are below it; the reference must not be in a result register.
        let kept = self.park(reg);
        self.emit(&Inst::new(Asm::Test, Width::Q).src(kept).reg(kept));
        self.branch_if(depth, Cond::E);
        self.push(popped.kind, kept);
    }

    /// The reference is passed to the label, and dropped if the branch is not taken.
    pub fn branch_on_non_null(&mut self, depth: u32) {
        let mut popped = self.pop();
        let reg = self.writable(&mut popped);
        self.emit(&Inst::new(Asm::Test, Width::Q).src(reg).reg(reg));
        self.push(popped.kind, reg);
        self.branch_if(depth, Cond::NE);
        self.drop();
    }

    /// Moves the value of `reg`, which is locked, to a register that is neither `rax` nor a pin, which is locked too. A branch may
    /// write both.
    fn park(&mut self, reg: Reg) -> Reg {
        if reg != abi::RAX && !self.pins.set.contains(reg) {
            return reg;
        }
        let other = self.moved(reg);
        self.registers.locked.remove(reg);
        other
    }

    /// Copies a general-purpose register to another one, which is locked.
    pub fn moved(&mut self, reg: Reg) -> Reg {
        let other = self.fresh(Class::Int);
        self.copy(other, reg);
        other
    }
}
