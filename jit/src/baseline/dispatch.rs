//! Instructions one by one. The match has no wildcard, so that the compiler names a row of TABLE 1 without an arm.

use super::compiler::Compiler;
use super::stencil::{Immediate, unsupported};
use super::values::{At, Kind, Value};
use crate::ir::Op;
use crate::request::Refusal;
use crate::x64::insts::Cond;
use weir_bytecode::instrs::Imm;
use weir_bytecode::{Opcode, Trap, for_each_lane, for_each_lane_access, for_each_load, for_each_numeric, for_each_store};
use weir_bytecode::{for_each_vector, for_each_vector_load};
use weir_contract::Helper;

/// The pattern of all instructions in a table of [`weir_bytecode::semantics`].
macro_rules! any {
    ($($op:ident, $name:ident, ($($arg:ident: $ty:ty),* $(; $lane:ident)?) -> $result:ty, $meaning:expr;)*) => {
        $(Opcode::$op)|*
    };
    ($($op:ident, $ty:ident, $from:ident as $to:ident;)*) => {
        $(Opcode::$op)|*
    };
    ($($op:ident, $($kind:ident,)? $width:literal, $name:ident;)*) => {
        $(Opcode::$op)|*
    };
}

impl Compiler<'_> {
    /// Compiles the instruction whose opcode has been read.
    ///
    /// # Errors
    /// The code is too long for the bytecode, or the native back end refuses the instruction's stencil.
    pub fn instruction(&mut self, op: Opcode) -> Result<(), Refusal> {
        // Calls a method with the immediate that this method of the reader gives.
        macro_rules! with {
            ($method:ident, $read:ident) => {{
                let immediate = self.reader.$read();
                self.$method(immediate)
            }};
        }
        self.check_code_budget(0)?;
        match op {
            Opcode::LocalGet => with!(local_get, u32),
            Opcode::LocalSet => with!(local_set, u32),
            Opcode::LocalTee => with!(local_tee, u32),
            Opcode::GlobalGet => with!(global_get, u32),
            Opcode::GlobalSet => with!(global_set, u32),
            Opcode::I32Const => with!(i32_const, i64),
            Opcode::I64Const => with!(i64_const, i64),
            Opcode::F32Const => with!(f32_const, f32),
            Opcode::F64Const => with!(f64_const, f64),
            Opcode::Drop => self.drop(),
            Opcode::Select => self.select_by_operand(),
            Opcode::SelectT => {
                self.reader.immediates(op);
                self.select_by_operand();
            }

            for_each_load!(any) | for_each_store!(any) => self.memory_access(op)?,
            for_each_numeric!(any) => self.numeric_instruction(op)?,
            Opcode::I64Add128 | Opcode::I64Sub128 | Opcode::I64MulWideS | Opcode::I64MulWideU => {
                self.stencil(op, Immediate::None)?
            }
            Opcode::V128Const => with!(vector_constant, v128),
            Opcode::I8x16Shuffle => {
                let lanes = self.reader.v128();
                self.stencil(op, Immediate::Shuffle(lanes))?;
            }
            for_each_vector!(any) => self.stencil(op, Immediate::None)?,
            for_each_lane!(any) => {
                let lane = self.reader.byte();
                self.stencil(op, Immediate::Lane(lane))?;
            }
            Opcode::V128Store | for_each_vector_load!(any) => self.vector_access(op, false)?,
            for_each_lane_access!(any) => self.vector_access(op, true)?,

            Opcode::TryTable => {
                let ty = self.reader.block_type();
                let clauses = self.reader.clauses();
                self.try_table(ty, clauses);
            }
            Opcode::Try => with!(block, block_type),
            Opcode::Catch | Opcode::CatchAll => self.catch(op),
            Opcode::Delegate => {
                self.take_entry();
                self.reader.u32();
                self.end();
            }
            Opcode::Throw => with!(throw, u32),
            Opcode::ThrowRef => self.throw_ref(),
            Opcode::Rethrow => with!(rethrow, u32),
            Opcode::Nop => {}
            Opcode::Unreachable => self.unreachable(),
            Opcode::Block => with!(block, block_type),
            Opcode::Loop => with!(loop_, block_type),
            Opcode::If => {
                let ty = self.reader.block_type();
                self.test_condition();
                self.if_(ty, Cond::NE);
            }
            Opcode::Else => self.else_instruction(),
            Opcode::End => self.end(),
            Opcode::Br => {
                self.take_entry();
                with!(branch, u32)
            }
            Opcode::BrIf => {
                let depth = self.reader.u32();
                self.test_condition();
                self.branch_if(depth, Cond::NE);
            }
            Opcode::BrTable => with!(branch_table, labels)?,
            Opcode::BrOnNull => with!(branch_on_null, u32),
            Opcode::BrOnNonNull => with!(branch_on_non_null, u32),
            Opcode::Return => self.branch(self.labels.len() as u32 - 1),

            Opcode::Call => with!(call, u32),
            Opcode::CallIndirect | Opcode::ReturnCallIndirect => {
                let (ty, table) = (self.reader.u32(), self.reader.u32());
                match op == Opcode::CallIndirect {
                    true => self.call_indirect(ty, table),
                    false => self.return_call_indirect(ty, table),
                }
            }
            Opcode::CallRef => with!(call_ref, u32),
            Opcode::ReturnCall => with!(return_call, u32),
            Opcode::ReturnCallRef => with!(return_call_ref, u32),

            Opcode::RefNull => {
                let Imm::Heap(heap) = self.reader.immediates(op) else { return Err(unsupported(op)) };
                self.push_at(Kind::of_heap(heap), At::Const(0));
            }
            Opcode::RefIsNull => self.ref_is_null(),
            Opcode::RefFunc => with!(ref_func, u32),
            Opcode::RefAsNonNull => self.ref_as_non_null(),
            Opcode::TableGet => with!(table_get, u32),
            Opcode::TableSet => self.helper_with_index(op, Helper::TableSet),
            Opcode::TableSize => with!(table_size, u32),
            Opcode::TableGrow => with!(table_grow, u32),
            Opcode::TableFill => self.helper_with_index(op, Helper::TableFill),
            Opcode::TableCopy => self.helper_to_from(op, Helper::TableCopy),
            Opcode::TableInit => self.helper_with_segment(op, Helper::TableInit),
            Opcode::ElemDrop => self.helper_with_index(op, Helper::ElemDrop),
            Opcode::MemorySize => with!(memory_size, u32),
            Opcode::MemoryGrow => with!(memory_grow, u32),
            Opcode::MemoryFill => self.helper_with_index(op, Helper::MemoryFill),
            Opcode::MemoryCopy => self.helper_to_from(op, Helper::MemoryCopy),
            Opcode::MemoryInit => self.helper_with_segment(op, Helper::MemoryInit),
            Opcode::DataDrop => self.helper_with_index(op, Helper::DataDrop),
        }
        Ok(())
    }

    /// A load or a store of a number.
    fn memory_access(&mut self, op: Opcode) -> Result<(), Refusal> {
        let (access, ty, _) = Op::from_opcode(op).ok_or_else(|| unsupported(op))?;
        let arg = self.reader.mem_arg();
        self.access(access, Kind::of_ssa(ty), arg)
    }

    fn numeric_instruction(&mut self, op: Opcode) -> Result<(), Refusal> {
        let (numeric, operand, result) = Op::from_opcode(op).ok_or_else(|| unsupported(op))?;
        self.numeric(op, numeric.family(), operand, result)
    }

    #[inline]
    pub fn i32_const(&mut self, value: i64) {
        self.push_at(Kind::I32, At::Const((value as u32).into()));
    }

    fn i64_const(&mut self, value: i64) {
        self.push_at(Kind::I64, At::Const(value as u64));
    }

    fn f32_const(&mut self, bits: u32) {
        self.push_at(Kind::F32, At::Const(bits.into()));
    }

    fn f64_const(&mut self, bits: u64) {
        self.push_at(Kind::F64, At::Const(bits));
    }

    fn local_set(&mut self, local: u32) {
        let popped = self.pop();
        self.set_local(local as usize, popped);
    }

    fn local_tee(&mut self, local: u32) {
        self.local_set(local);
        self.local_get(local);
    }

    fn select_by_operand(&mut self) {
        self.test_condition();
        self.select(Cond::NE);
    }

    fn unreachable(&mut self) {
        self.trap(Trap::UnreachableCodeReached);
        self.stop();
    }

    #[inline(always)]
    pub fn local_get(&mut self, local: u32) {
        let Value { kind, at, .. } = self.values[local as usize];
        match at {
            At::Const(_) => self.push_at(kind, at),
            At::Slot | At::Reg(_) | At::Local(_) => self.push_copy(local),
        }
    }
}
