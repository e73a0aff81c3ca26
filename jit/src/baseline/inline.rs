//! Compiles instructions by their stencils: written in place, or called.

use super::calls::{Moves, Operands};
use super::compiler::Compiler;
use super::stencil::{Form, Immediate, Inline, Key, SimpleSequence, Stencil, Subroutine};
use super::values::{At, Kind, Popped, Set};
use crate::regalloc::{Constraint, Reg, Role};
use crate::request::Refusal;
use crate::x64::abi::{self, ArgLocation};
use crate::x64::insts::{self, Asm, Encoding, Inst, Rm, Width};
use smallvec::SmallVec;
use std::rc::Rc;
use weir_bytecode::{Opcode, ValType};

impl Compiler<'_> {
    /// Compiles an instruction by its stencil.
    pub fn stencil(&mut self, op: Opcode, imm: Immediate) -> Result<(), Refusal> {
        let key = Key { op, imm, canonical: self.request.options.canonical_nans };
        let stencil = self.stencils.get(key, self.request.options, self.native)?;
        let operands = self.pop_list(stencil.operands.len());
        match &stencil.form {
            Form::Inline(inline) => self.write_inline(inline, operands, stencil.results),
            Form::Subroutine { clobbers, .. } => {
                self.call_subroutine(&stencil, key, *clobbers, &operands);
            }
        }
        Ok(())
    }

    fn write_inline(&mut self, inline: &Inline, operands: Operands, results: &[ValType]) {
        let mut regs = vec![Reg::NONE; inline.last_use.len()];
        for (param, mut popped) in inline.params.iter().zip(operands) {
            if let Some(param) = param {
                regs[param.index()] = self.reg(&mut popped);
            }
        }
        for (i, inst) in inline.insts.iter().enumerate() {
            let mut inst = *inst;
            self.choose_registers(&mut inst, i, inline, &mut regs);
            if let Rm::Mem(mem) = &mut inst.rm
                && mem.pooled
            {
                mem.disp = self.pooled(&inline.pool, mem.disp as usize) as i32;
            }
            self.write(&inst);
        }
        for (&result, &ty) in inline.results.iter().zip(results) {
            let (kind, mut reg) = (Kind::of(ty), regs[result.index()]);
            if self.registers.owned.contains(reg) {
                // It is an operand that belongs to a local.
                let own = self.fresh(kind.class());
                self.copy(own, reg);
                reg = own;
            }
            if kind == Kind::I32 { self.push_unextended(reg) } else { self.push(kind, reg) }
        }
    }

    /// Replaces the virtual registers of instruction `i`.
    fn choose_registers(&mut self, inst: &mut Inst, i: usize, inline: &Inline, regs: &mut [Reg]) {
        // Operands come first: those that are not read later may be overwritten.
        let (mut left, mut ended, mut result, mut reuses) = (Reg::NONE, SmallVec::<[Reg; 4]>::new(), None, false);
        inst.visit(&mut [], |mut field, constraint, role, _| {
            let virt = field.get();
            match role {
                Role::Use => {
                    let reg = regs[virt.index()];
                    field.set(reg);
                    if left.is_none() {
                        left = reg;
                    }
                    if inline.last_use[virt.index()] == i {
                        ended.push(reg);
                    }
                }
                Role::Def => {
                    result = Some(virt);
                    reuses = matches!(constraint, Constraint::Reuse(_));
                }
            }
        });
        let Some(result) = result else { return };
        let own = |compiler: &Self, reg: Reg| ended.contains(&reg) && !compiler.registers.owned.contains(reg);
        let dst = if reuses {
            if own(self, left) {
                left
            } else {
                let dst = self.fresh(left.class());
                self.out.copy(dst, left);
                inst.src = dst;
                dst
            }
        } else {
            let class = result.class();
            match ended.iter().copied().find(|&reg| reg.class() == class && own(self, reg) && !cleared_first(inst)) {
                Some(reg) => reg,
                None => self.fresh(class),
            }
        };
        for &reg in ended.iter().filter(|&&reg| reg != dst) {
            self.release(reg);
        }
        self.registers.unextended.remove(dst);
        inst.dst = dst;
        regs[result.index()] = dst;
    }

    /// The offset in the function's pool of the constant at `offset` in a stencil's pool.
    fn pooled(&mut self, pool: &[u8], offset: usize) -> u32 {
        let aligned = |width: usize| offset.is_multiple_of(width) && offset + width <= pool.len();
        let width = [16, 8, 4].into_iter().find(|&width| aligned(width)).unwrap_or(4);
        let mut bits = [0; 16];
        bits[..width].copy_from_slice(&pool[offset..offset + width]);
        self.pool.offset(u128::from_le_bytes(bits), width)
    }

    /// Writes a simple instruction: see `stencil`.
    fn write(&mut self, inst: &Inst) {
        let Encoding::Sequence(sequence) = inst.op.encoding() else { return self.emit_any(inst) };
        match SimpleSequence::of(sequence) {
            Some(SimpleSequence::Constant) => self.out.constant(inst.dst, inst.imm),
            Some(SimpleSequence::Zero) => self.out.clear(inst.dst),
            Some(SimpleSequence::Ones) => {
                self.emit(&Inst::new(Asm::Pcmpeq, Width::D).dst(inst.dst).src(inst.dst).reg(inst.dst));
            }
            Some(SimpleSequence::FromFloat) => match inst.rm {
                Rm::Reg(src) => self.out.float_bits(inst.dst, src, inst.width),
                Rm::None | Rm::Mem(_) | Rm::Slot(_) => self.emit(&Inst::new(Asm::Mov, inst.width).dst(inst.dst).rm(inst.rm)),
            },
            // It is not simple: `encode` refuses it.
            None => self.emit_any(inst),
        }
    }

    fn call_subroutine(&mut self, stencil: &Rc<Stencil>, key: Key, clobbers: Set, operands: &[Popped]) {
        let mut destroyed = clobbers;
        let params: SmallVec<[Reg; 4]> = abi::params(stencil.operands).filter_map(ArgLocation::reg).collect();
        params.iter().for_each(|&reg| destroyed.insert(reg));
        let results: SmallVec<[Reg; 2]> = abi::results(stencil.results).filter_map(ArgLocation::reg).collect();
        results.iter().for_each(|&reg| destroyed.insert(reg));
        // Arguments that are copies of locals are read before the locals' registers are evicted.
        let mut moves = Moves::new();
        let mut loads: SmallVec<[(Popped, Reg); 4]> = SmallVec::new();
        for (to, &popped) in params.into_iter().zip(operands) {
            let popped = self.resolved(popped);
            match popped.at {
                At::Reg(from) => moves.push((from, to)),
                At::Slot | At::Const(_) | At::Local(_) => loads.push((popped, to)),
            }
        }
        self.evict_all(destroyed);
        self.parallel_move(moves);
        for (popped, to) in loads {
            self.move_to(popped, to);
        }
        let field = self.out.call();
        match self.subroutines.iter_mut().find(|subroutine| subroutine.key == key) {
            Some(subroutine) => subroutine.calls.push(field),
            None => self.subroutines.push(Subroutine { stencil: stencil.clone(), key, calls: vec![field] }),
        }
        self.unlock();
        for (&ty, reg) in stencil.results.iter().zip(results) {
            let kind = Kind::of(ty);
            if kind == Kind::I32 { self.push_unextended(reg) } else { self.push(kind, reg) }
        }
    }

    /// Writes the subroutines that the function calls.
    pub fn write_subroutines(&mut self) {
        for Subroutine { stencil, calls, .. } in std::mem::take(&mut self.subroutines) {
            let Form::Subroutine { code, .. } = &stencil.form else { continue };
            // Their constants are aligned relative to their beginning.
            while !self.offset().is_multiple_of(16) {
                self.out.int3();
            }
            let start = self.offset();
            calls.into_iter().for_each(|field| self.link(field, start));
            self.out.machine_code(code);
        }
    }
}

/// Whether the code of the instruction first clears its destination, which therefore is not an operand.
fn cleared_first(inst: &Inst) -> bool {
    match inst.op.encoding() {
        Encoding::Opcode(insts::Opcode::FromInteger(_)) => true,
        Encoding::Opcode(
            insts::Opcode::Legacy(..)
            | insts::Opcode::ByteSource(_)
            | insts::Opcode::Alu(_)
            | insts::Opcode::Test
            | insts::Opcode::Store(..)
            | insts::Opcode::Group(..)
            | insts::Opcode::Cond(_)
            | insts::Opcode::Vex(..)
            | insts::Opcode::HighProduct(..)
            | insts::Opcode::Scalar(..)
            | insts::Opcode::Merge(..)
            | insts::Opcode::Round
            | insts::Opcode::Packed(_)
            | insts::Opcode::Lanes(..)
            | insts::Opcode::LaneShift(_)
            | insts::Opcode::Insert
            | insts::Opcode::Extract,
        )
        | Encoding::Sequence(_) => matches!(inst.rm, Rm::Mem(_)),
    }
}
