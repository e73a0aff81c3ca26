//! Tables, references, and what helpers of the runtime do.

use super::calls::Arg;
use super::compiler::Compiler;
use super::numeric::index_kind;
use super::values::{At, Kind, Popped};
use crate::regalloc::{Class, Reg};
use crate::x64::abi;
use crate::x64::insts::{Asm, Cond, Inst, Mem, Width};
use std::mem::offset_of;
use weir_bytecode::{Imm, Opcode, Trap};
use weir_contract::{Helper, TableCtx, TableEntry};

/// Two indices as a helper takes them.
fn pair(low: u32, high: u32) -> i64 {
    (u64::from(low) | u64::from(high) << 32) as i64
}

impl Compiler<'_> {
    /// Compiles an instruction on tables, references or whole memories; returns whether `op` is one.
    pub fn table_or_memory(&mut self, op: Opcode, imm: Imm<'_>) -> bool {
        match (op, imm) {
            (Opcode::RefNull, _) => self.push_at(Kind::Ref, At::Const(0)),
            (Opcode::RefIsNull, _) => self.ref_is_null(),
            (Opcode::RefFunc, Imm::Index(func)) => {
                self.call_helper(Helper::RefFunc, &[Arg::Const(func.into())]);
                self.push(Kind::Ref, abi::RAX);
            }
            (Opcode::RefAsNonNull, _) => {
                let mut popped = self.pop();
                let reg = self.writable(&mut popped);
                self.emit(&Inst::new(Asm::Test, Width::Q).src(reg).reg(reg));
                self.trap_if(Cond::E, Trap::NullReference);
                self.push(Kind::Ref, reg);
            }
            (Opcode::TableGet, Imm::Index(table)) => {
                let mut index = self.pop();
                let entry = self.table_entry(table, &mut index, Trap::TableOutOfBounds);
                self.load_field(entry, entry, offset_of!(TableEntry, reference));
                self.push(Kind::Ref, entry);
            }
            (Opcode::TableSet, Imm::Index(table)) => self.checked_helper(Helper::TableSet, table.into(), 2),
            (Opcode::TableSize, Imm::Index(table)) => self.table_size(table),
            (Opcode::TableGrow, Imm::Index(table)) => {
                let kind = index_kind(self.module.tables[table as usize].ty.table64);
                self.growing_helper(Helper::TableGrow, table, 2, kind);
            }
            (Opcode::TableFill, Imm::Index(table)) => self.checked_helper(Helper::TableFill, table.into(), 3),
            (Opcode::TableCopy, Imm::Index2(to, from)) => self.checked_helper(Helper::TableCopy, pair(to, from), 3),
            (Opcode::TableInit, Imm::Index2(segment, table)) => self.checked_helper(Helper::TableInit, pair(table, segment), 3),
            (Opcode::ElemDrop, Imm::Index(segment)) => self.checked_helper(Helper::ElemDrop, segment.into(), 0),
            (Opcode::MemorySize, Imm::Index(memory)) => self.memory_size(memory),
            (Opcode::MemoryGrow, Imm::Index(memory)) => {
                let kind = index_kind(self.module.memories[memory as usize].memory64);
                self.growing_helper(Helper::MemoryGrow, memory, 1, kind);
            }
            (Opcode::MemoryFill, Imm::Index(memory)) => self.checked_helper(Helper::MemoryFill, memory.into(), 3),
            (Opcode::MemoryCopy, Imm::Index2(to, from)) => self.checked_helper(Helper::MemoryCopy, pair(to, from), 3),
            (Opcode::MemoryInit, Imm::Index2(segment, memory)) => {
                self.checked_helper(Helper::MemoryInit, pair(memory, segment), 3)
            }
            (Opcode::DataDrop, Imm::Index(segment)) => self.checked_helper(Helper::DataDrop, segment.into(), 0),
            _ => return false,
        }
        true
    }

    /// The arguments of a helper: `selector`, then the top `count` operands.
    fn arguments(&mut self, selector: i64, count: usize) -> Vec<Arg> {
        let operands = self.pop_list(count);
        std::iter::once(Arg::Const(selector)).chain(operands.into_iter().map(Arg::Operand)).collect()
    }

    fn checked_helper(&mut self, helper: Helper, selector: i64, count: usize) {
        let args = self.arguments(selector, count);
        self.call_checked_helper(helper, &args);
    }

    fn growing_helper(&mut self, helper: Helper, index: u32, count: usize, kind: Kind) {
        let args = self.arguments(index.into(), count);
        self.call_helper(helper, &args);
        if kind == Kind::I32 { self.push_unextended(abi::RAX) } else { self.push(kind, abi::RAX) }
    }

    /// The address of a table's element; traps with `trap` beyond the end.
    pub fn table_entry(&mut self, table: u32, index: &mut Popped, trap: Trap) -> Reg {
        self.extended(index);
        let index = self.writable(index);
        let record = self.fresh(Class::Int);
        self.load_field(record, abi::INSTANCE, self.layout.table(table) as usize);
        let len = Mem::at(record, offset_of!(TableCtx, len) as i32);
        self.emit(&Inst::new(Asm::Cmp, Width::Q).src(index).mem(len));
        self.trap_if(Cond::AE, trap);
        const { assert!(size_of::<TableEntry>() == 1 << 5) };
        self.emit(&Inst::new(Asm::Shl, Width::Q).dst(index).src(index).imm(5));
        let entries = Mem::at(record, offset_of!(TableCtx, entries) as i32);
        self.emit(&Inst::new(Asm::Add, Width::Q).dst(index).src(index).mem(entries));
        self.release(record);
        index
    }

    fn table_size(&mut self, table: u32) {
        let kind = index_kind(self.module.tables[table as usize].ty.table64);
        let reg = self.fresh(Class::Int);
        self.load_field(reg, abi::INSTANCE, self.layout.table(table) as usize);
        self.load_field(reg, reg, offset_of!(TableCtx, len));
        self.push(kind, reg);
    }

    fn ref_is_null(&mut self) {
        let mut popped = self.pop();
        let reg = self.reg(&mut popped);
        self.emit(&Inst::new(Asm::Test, Width::Q).src(reg).reg(reg));
        self.condition(Cond::E);
    }

    /// The reference stays if the branch is not taken.
    pub fn branch_on_null(&mut self, depth: u32) {
        let mut popped = self.pop();
        let reg = self.writable(&mut popped);
        // What the label takes is below it; the reference is in no register that results travel in.
        let kept = self.park(reg);
        self.emit(&Inst::new(Asm::Test, Width::Q).src(kept).reg(kept));
        self.branch_if(depth, Cond::E);
        self.push(Kind::Ref, kept);
    }

    /// The reference goes with the branch and is gone if that is not taken.
    pub fn branch_on_non_null(&mut self, depth: u32) {
        let mut popped = self.pop();
        let reg = self.writable(&mut popped);
        self.emit(&Inst::new(Asm::Test, Width::Q).src(reg).reg(reg));
        self.push(Kind::Ref, reg);
        self.branch_if(depth, Cond::NE);
        self.drop();
    }

    /// The value of `reg`, which is locked, in a register other than `rax`, locked too.
    fn park(&mut self, reg: Reg) -> Reg {
        if reg != abi::RAX {
            return reg;
        }
        let other = self.fresh(Class::Int);
        self.out.copy(other, reg);
        self.registers.locked.remove(reg);
        other
    }
}
