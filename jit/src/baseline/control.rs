//! The body from its first instruction to its last: blocks, loops, and joins at their ends.

use super::compiler::Compiler;
use super::frame;
use super::label::{Chain, Jump, Label, LabelKind, Signature, Types, merge_register};
use super::parts::Direction;
use super::values::{At, Kind, Value};
use crate::regalloc::{Class, Reg};
use crate::request::Refusal;
use crate::x64::abi::{self, ArgLocation};
use crate::x64::insts::{Asm, Cond, Inst, Mem, Width};
use std::mem::offset_of;
use weir_bytecode::instrs::{BlockType, Nesting};
use weir_bytecode::{Instr, Opcode, ValType};
use weir_contract::profile::Counted;
use weir_contract::{InstanceCtx, StackCtx};

/// The bytes of code that take a step.
const CODE_OF_STEP: usize = 16;

impl<'c> Compiler<'c> {
    /// Returns the offset in the module of the instruction that is read next.
    pub fn next_pc(&self) -> u32 {
        self.body.entry + self.reader.at as u32
    }

    /// Compiles the body without the prologue.
    pub fn function(&mut self) -> Result<(), Refusal> {
        let ty = self.module.func_type(self.request.func);
        self.take_parameters(&ty.params);
        for index in ty.params.len()..self.locals {
            self.add_local(index, At::Const(0));
        }
        self.labels.push(Label::new(LabelKind::Function, self.locals, Signature::Func(ty)));
        self.poll();
        let mut counted = self.reader.at + self.offset() / CODE_OF_STEP;
        while !self.labels.is_empty() {
            // An instruction may have many labels, and one of two bytes may move thousands of values.
            let done = self.reader.at + self.offset() / CODE_OF_STEP;
            self.meter.spend(done - counted)?;
            counted = done;
            self.pc = self.next_pc();
            let op = self.reader.opcode();
            if !self.live {
                self.skip(op);
                continue;
            }
            self.charge(self.pc);
            // The most frequent instructions emit nothing and lock no register: calling `instruction` would cost more than they do.
            if op == Opcode::LocalGet {
                let local = self.reader.u32();
                self.local_get(local);
                continue;
            }
            if op == Opcode::I32Const {
                let value = self.reader.i64();
                self.i32_const(value);
                continue;
            }
            self.instruction(op)?;
            self.unlock();
        }
        self.cold_code()?;
        Ok(())
    }

    fn add_local(&mut self, index: usize, at: At) {
        let stored = at == At::Slot;
        self.values.push(Value { kind: Kind::of(self.body.locals[index]), at, stored });
        if !stored {
            self.unstored_locals.push(index as u32);
        }
        if let At::Reg(reg) = at {
            self.registers.give(reg, index);
        }
        self.unstored_from = self.values.len();
    }

    /// Parameters stay in their registers; those without one are stored to their slots at once.
    fn take_parameters(&mut self, types: &[ValType]) {
        let mut area = false;
        for (index, location) in abi::params(types).enumerate() {
            let kind = Kind::of(types[index]);
            let at = match location {
                ArgLocation::Reg(reg) => At::Reg(reg),
                ArgLocation::Overflow(slot) => {
                    if !std::mem::replace(&mut area, true) {
                        self.load_overflow_area(frame::SCRATCH);
                    }
                    let (op, op_to, via) = match kind.class() {
                        Class::Int => (Asm::Mov, Asm::MovTo, abi::RAX),
                        Class::Float => (Asm::Vmov, Asm::VmovTo, frame::FLOAT_SCRATCH),
                    };
                    let mem = Mem::at(frame::SCRATCH, 8 * slot as i32);
                    self.emit_any(&Inst::new(op, kind.width()).dst(via).mem(mem));
                    let slot = self.slots.mem(index);
                    self.emit_any(&Inst::new(op_to, kind.width()).src(via).mem(slot));
                    At::Slot
                }
            };
            self.add_local(index, at);
            if let (At::Reg(reg), Kind::I32) = (at, kind) {
                self.registers.unextended.insert(reg);
            }
        }
    }

    /// Loads the address of the overflow area into `reg`.
    pub fn load_overflow_area(&mut self, reg: Reg) {
        let stack = Mem::at(abi::INSTANCE, offset_of!(InstanceCtx, stack) as i32);
        self.emit(&Inst::new(Asm::Mov, Width::Q).dst(reg).mem(stack));
        let overflow = Mem::at(reg, offset_of!(StackCtx, overflow) as i32);
        self.emit(&Inst::new(Asm::Mov, Width::Q).dst(reg).mem(overflow));
    }

    /// Skips an unreachable instruction, and the rest of the block that it opens.
    fn skip(&mut self, op: Opcode) {
        match op.nesting() {
            Nesting::Else => {
                if op == Opcode::Else {
                    self.else_instruction();
                } else {
                    self.catch(op);
                }
                self.unlock();
            }
            Nesting::End => {
                if op == Opcode::Delegate {
                    self.skip_instruction(op);
                }
                self.end();
                self.unlock();
            }
            Nesting::Open => {
                self.skip_instruction(op);
                self.skip_block();
            }
            Nesting::Same => self.skip_instruction(op),
        }
        // Only live code has segments.
    }

    /// Passes over the rest of an instruction, with its entries in the side table and its counters.
    pub fn skip_instruction(&mut self, op: Opcode) {
        let imm = self.reader.immediates(op);
        let instr = Instr { pc: self.pc, op, imm };
        self.entry += instr.branch_entries() as u32;
        self.indirect_calls += usize::from(Counted::of(&instr) == Some(Counted::Call));
    }

    /// Skips the unreachable rest of a block.
    fn skip_block(&mut self) {
        let mut open = 1;
        while open > 0 {
            let op = self.reader.opcode();
            self.skip_instruction(op);
            match op.nesting() {
                Nesting::Open => open += 1,
                Nesting::End => open -= 1,
                Nesting::Else | Nesting::Same => {}
            }
        }
    }

    fn open(&mut self, kind: LabelKind, ty: BlockType) {
        let ty = match ty {
            BlockType::Empty => Signature::Empty,
            BlockType::Value(ty) => Signature::Value(ty),
            BlockType::Func(ty) => Signature::Func(&self.module.types[ty as usize]),
        };
        let height = self.values.len() - ty.params().len();
        self.labels.push(Label::new(kind, height, ty));
    }

    pub fn block(&mut self, ty: BlockType) {
        // One path through the block may write the local while another does not.
        self.store_copies();
        self.open(LabelKind::Block, ty);
    }

    pub fn loop_(&mut self, ty: BlockType) {
        let entry = self.take_entry();
        debug_assert!(
            self.body.loop_at(self.pc).is_none_or(|info| info.stp == entry),
            "entries of the side table are passed in order"
        );
        self.flush();
        self.pin(self.labels.len());
        let head = self.offset();
        self.open(LabelKind::Loop(head), ty);
        if let Ok(index) = self.body.loops.binary_search_by_key(&self.pc, |info| info.pc) {
            self.tick(index as u32);
        }
        self.poll();
        self.charge(self.pc + 1);
    }

    /// Compiles an `if` on the flags.
    pub fn if_(&mut self, ty: BlockType, cond: Cond) {
        let entry = self.take_entry();
        self.flush();
        let field = self.jump_if(cond.inverted());
        let mut copies = self.spare.take();
        copies.set(&self.registers, self.values.len());
        self.open(LabelKind::If { field, copies, entry }, ty);
        self.count(entry, Direction::Passed);
    }

    /// `else`, which has an entry of its own.
    pub fn else_instruction(&mut self) {
        self.take_entry();
        self.else_();
    }

    fn else_(&mut self) {
        if self.live {
            self.branch(0);
        }
        self.begin_second_arm();
    }

    /// Sets the state at the beginning of the second arm of the innermost `if`, whose first arm has ended.
    fn begin_second_arm(&mut self) {
        let label = self.labels.last_mut().expect("an `if` is open");
        let LabelKind::If { field, copies, entry } = std::mem::replace(&mut label.kind, LabelKind::Block) else { return };
        let (height, params) = (label.height(), label.ty.params());
        self.bind(field);
        self.count(entry, Direction::Taken);
        self.forget_all(height);
        params.kinds().for_each(|kind| self.push_stored(kind));
        self.restore(&copies);
        self.spare.put(copies);
        self.live = true;
    }

    pub fn end(&mut self) {
        if let Some(Label { kind: LabelKind::If { .. }, .. }) = self.labels.last() {
            // The second arm does nothing.
            self.else_();
        }
        let Some(mut label) = self.labels.pop() else { return };
        match label.kind {
            LabelKind::Loop(_) => {
                self.unpin(self.labels.len());
                return self.forget_if_dead();
            }
            LabelKind::Function => return self.end_function(&label),
            LabelKind::Block | LabelKind::If { .. } => {}
        }
        if label.jumps.is_empty() {
            return self.forget_if_dead();
        }
        let results = label.ty.results();
        if self.live {
            self.place_results(results);
            label.meet(&self.registers, &mut self.spare);
        }
        self.forget_all(label.height());
        self.bind_all(label.jumps);
        if results.len() != 1 {
            results.kinds().for_each(|kind| self.push_stored(kind));
        }
        if let Some(copies) = label.copies.take() {
            self.restore(&copies);
            self.spare.put(copies);
        }
        if results.len() == 1 {
            self.push(results.only(), merge_register(results.only()));
        }
        self.live = true;
    }

    /// After a block whose end is unreachable, sets the state to that of the enclosing block.
    fn forget_if_dead(&mut self) {
        if !self.live
            && let Some(label) = self.labels.last()
        {
            let height = label.height();
            self.forget_all(height.min(self.values.len()));
        }
    }

    pub fn bind_all(&mut self, jumps: Chain) {
        let here = self.offset();
        for jump in jumps.iter(&self.jumps) {
            match jump {
                Jump::Field(field) => self.out.link(field, here),
                Jump::Entry(table, entry) => self.jump_tables[table as usize].targets[entry as usize] = here,
                Jump::Landing(landing) => self.landings[landing as usize].target = here,
            }
        }
    }

    /// Puts the results on top of the stack where the label's end expects them, and stores all other values.
    fn place_results(&mut self, results: Types<'_>) {
        if results.len() != 1 {
            return self.flush();
        }
        let popped = self.pop();
        self.flush();
        let reg = merge_register(results.only());
        self.move_to(popped, reg);
    }

    /// Intersects the state of the jumps to a label with the current state.
    pub fn meet(&mut self, label: usize) {
        self.labels[label].meet(&self.registers, &mut self.spare);
    }

    fn end_function(&mut self, label: &Label<'c>) {
        let results = label.ty.results();
        if self.live {
            self.place_function_results(results);
        }
        if !self.live && label.jumps.is_empty() {
            return;
        }
        self.bind_all(label.jumps);
        if results.len() > 1 {
            self.load_results(results);
        }
        frame::epilogue(&mut self.out, self.needs.saved, frame::SCRATCH);
        self.out.ret();
    }

    /// Puts the function's results, which are on top of the stack, where its end expects them: a single one in its register,
    /// several in the first slots of the operands.
    pub fn place_function_results(&mut self, results: Types<'_>) {
        match results.len() {
            0 => {}
            1 => {
                let popped = self.pop();
                self.move_to(popped, merge_register(results.only()));
            }
            count => {
                let moved = self.pop_list(count);
                self.store_from(&moved, self.locals);
            }
        }
    }
}
