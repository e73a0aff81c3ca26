//! Vector instructions: accesses to memory are compiled here, the others by stencils.

use super::compiler::Compiler;
use super::stencil::{Immediate, unsupported};
use super::values::Kind;
use crate::construct::{VectorAccess, vector_access_of};
use crate::regalloc::Class;
use crate::request::Refusal;
use crate::x64::insts::{Asm, Inst, Mem, Width};
use weir_bytecode::Opcode;

impl Compiler<'_> {
    pub fn vector_constant(&mut self, bits: u128) {
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

    /// An access to memory, of the whole vector or, `of_lane`, of one lane.
    pub fn vector_access(&mut self, op: Opcode, of_lane: bool) -> Result<(), Refusal> {
        let arg = self.reader.mem_arg();
        let lane = if of_lane { self.reader.byte() } else { 0 };
        match vector_access_of(op).ok_or_else(|| unsupported(op))? {
            VectorAccess::Store => {
                let (mut value, mut address) = (self.pop(), self.pop());
                self.store_popped_value(&mut value, &mut address, Width::X, arg);
                Ok(())
            }
            VectorAccess::Load(op, ty, then) => {
                self.access(op, Kind::of_ssa(ty), arg)?;
                self.unlock();
                then.map_or(Ok(()), |then| self.stencil(then, Immediate::None))
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
                self.stencil(replace, Immediate::Lane(lane))
            }
            VectorAccess::StoreLane(store, extract) => {
                self.stencil(extract, Immediate::Lane(lane))?;
                self.unlock();
                let kind = self.values[self.values.len() - 1].kind;
                self.access(store, kind, arg)
            }
        }
    }
}
