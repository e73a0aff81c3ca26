//! Exceptions: blocks with handlers, throws, and the landings at which handlers continue.
//!
//! Calls store everything, so every value of a handler's frame is in its slot. The landing loads what its label expects in a register.

use super::calls::Arg;
use super::compiler::Compiler;
use super::frame::{self, SCRATCH};
use super::label::{Jump, merge_register};
use super::parts::Landing;
use super::values::{Kind, Popped, Registers};
use crate::x64::insts::{Asm, Cond, Inst, Width};
use weir_bytecode::instrs::{BlockType, Clauses};
use weir_bytecode::types::has_vector;
use weir_bytecode::{Opcode, Trap};
use weir_contract::{Helper, code};

impl<'c> Compiler<'c> {
    pub fn try_table(&mut self, ty: BlockType, clauses: Clauses<'_>) {
        // The first entry leads to the next instruction.
        self.take_entry();
        for clause in clauses.iter() {
            let entry = self.take_entry();
            self.clause(entry, clause.label);
        }
        self.block(ty);
    }

    /// A clause that branches to the label at `depth`.
    fn clause(&mut self, entry: u32, depth: u32) {
        let index = self.labels.len() - 1 - depth as usize;
        let label = &self.labels[index];
        let (takes, height) = (label.takes(), label.height());
        if let Some(target) = label.head() {
            let pins = if self.pins.label == index { self.pins.list.as_slice() } else { &[] };
            self.landings.push(Landing { entry, target, loaded: None, pins: pins.into() });
            return;
        }
        let loaded = (takes.len() == 1).then(|| (height, takes.only()));
        let landing = self.landings.len() as u32;
        self.landings.push(Landing { entry, target: 0, loaded, pins: Box::default() });
        // No register has a copy of a value.
        self.labels[index].meet(&Registers::new(), &mut self.spare);
        self.labels[index].jumps.push(&mut self.jumps, Jump::Landing(landing));
    }

    /// `catch` and `catch_all`, whose opcode has been read.
    pub fn catch(&mut self, op: Opcode) {
        self.take_entry();
        let entry = self.take_entry();
        let module = self.module;
        let payload = if op == Opcode::Catch { &*module.tag_type(self.reader.u32()).params } else { &[] };
        if self.live {
            self.branch(0);
        }
        let height = self.labels.last().map_or(self.locals, |label| label.height());
        self.forget_all(height.min(self.values.len()));
        payload.iter().for_each(|&ty| self.push_stored(Kind::of(ty)));
        self.live = true;
        let target = self.offset();
        self.landings.push(Landing { entry, target, loaded: None, pins: Box::default() });
    }

    pub fn throw(&mut self, tag: u32) {
        let types = &self.module.tag_type(tag).params;
        let words = 1 + usize::from(has_vector(types));
        let payload = self.pop_list(types.len());
        self.flush();
        if !payload.is_empty() {
            self.load_overflow_area(SCRATCH);
        }
        for (i, &operand) in payload.iter().enumerate() {
            let operand = self.resolved(operand);
            self.store_overflow(operand, (8 * i * words) as i32);
        }
        self.unlock();
        self.call_helper(Helper::Throw, &[Arg::Const(i64::from(tag) | i64::from(self.pc) << 32)]);
        self.stop();
    }

    pub fn throw_ref(&mut self) {
        let reference = self.pop();
        self.throw_reference(reference);
    }

    /// Throws the exception to which the operand refers, after a check for null.
    fn throw_reference(&mut self, mut reference: Popped) {
        let reg = self.writable(&mut reference);
        self.emit(&Inst::new(Asm::Test, Width::Q).src(reg).reg(reg));
        self.trap_if(Cond::E, Trap::NullReference);
        self.call_helper(Helper::ThrowRef, &[Arg::Operand(reference)]);
        self.stop();
    }

    /// Throws the exception that the handler with this label has stored.
    pub fn rethrow(&mut self, _depth: u32) {
        let entry = self.take_entry();
        self.local_get(self.body.branches[entry as usize].pc);
        let exception = self.pop();
        self.throw_reference(exception);
    }

    /// Writes the landings.
    pub fn write_landings(&mut self) -> Vec<code::Landing> {
        let landings = std::mem::take(&mut self.landings);
        let write = |landing: Landing| {
            let offset = self.offset() as u32;
            frame::land(&mut self.out, self.needs);
            if let Some((index, kind)) = landing.loaded {
                self.load_slot(merge_register(kind), kind, index);
            }
            for &(local, reg) in &*landing.pins {
                self.load_slot(reg, self.values[local as usize].kind, local as usize);
            }
            self.jump_back(landing.target);
            code::Landing { entry: landing.entry, call: 0, offset }
        };
        let mut landings: Vec<code::Landing> = landings.into_iter().map(write).collect();
        landings.sort_unstable();
        landings
    }
}
