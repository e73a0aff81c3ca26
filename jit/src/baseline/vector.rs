//! Instructions on vectors: accesses to memory here, the others by stencils.

use super::compiler::Compiler;
use super::values::Kind;
use crate::construct::{VectorAccess, vector_access_of};
use crate::regalloc::Class;
use crate::request::Refusal;
use crate::x64::insts::{Asm, Inst, Mem, Width};
use weir_bytecode::instrs::MemArg;
use weir_bytecode::{Imm, Opcode};

impl Compiler<'_> {
    pub fn vector(&mut self, op: Opcode, imm: Imm<'_>) -> Result<(), Refusal> {
        // Only instructions that do nothing with lanes access memory.
        let access = if op.lanes().is_none() { vector_access_of(op) } else { None };
        match (access, imm) {
            (Some(access), Imm::Mem(arg)) => self.vector_access(access, arg, 0),
            (Some(access), Imm::MemLane(arg, lane)) => self.vector_access(access, arg, lane),
            (_, Imm::V128(bits)) => {
                self.vector_constant(bits);
                Ok(())
            }
            (_, Imm::Shuffle(lanes)) => self.stencil(op, u128::from_le_bytes(lanes)),
            (_, Imm::Lane(lane)) => self.stencil(op, lane.into()),
            _ => self.stencil(op, 0),
        }
    }

    fn vector_constant(&mut self, bits: u128) {
        let reg = self.fresh(Class::Float);
        match bits {
            0 => self.out.clear(reg),
            bits => {
                let mem = Mem::constant(self.pool.offset(bits, 16));
                self.emit(&Inst::new(Asm::Vmov, Width::X).dst(reg).mem(mem));
            }
        }
        self.push(Kind::V128, reg);
    }

    fn vector_access(&mut self, access: VectorAccess, arg: MemArg, lane: u8) -> Result<(), Refusal> {
        match access {
            VectorAccess::Store => {
                let (mut value, mut address) = (self.pop(), self.pop());
                self.store_popped_value(&mut value, &mut address, Width::X, arg);
                Ok(())
            }
            VectorAccess::Load(op, ty, then) => {
                self.access(op, Kind::of_ssa(ty), arg)?;
                self.unlock();
                then.map_or(Ok(()), |then| self.stencil(then, 0))
            }
            VectorAccess::LoadLane(op, ty, replace) => {
                // The vector is above the address.
                let mut vector = self.pop();
                let reg = self.writable(&mut vector);
                self.access(op, Kind::of_ssa(ty), arg)?;
                let mut loaded = self.pop();
                let loaded_reg = self.reg(&mut loaded);
                self.push(Kind::V128, reg);
                self.push(loaded.kind, loaded_reg);
                self.unlock();
                self.stencil(replace, lane.into())
            }
            VectorAccess::StoreLane(store, extract) => {
                self.stencil(extract, lane.into())?;
                self.unlock();
                let kind = self.values[self.values.len() - 1].kind;
                self.access(store, kind, arg)
            }
        }
    }
}
