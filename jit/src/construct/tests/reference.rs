//! A minimal bytecode interpreter that uses only the side table and the semantics: the reference for SSA.

use crate::ir::{Callee, World};
use weir_bytecode::sidetable::BranchEntry;
use weir_bytecode::{FuncBody, FuncType, Imm, Instr, Instrs, Module, Opcode, Trap, semantics};

/// How a function ended: with a return or a tail call.
pub type Done = crate::ir::Outcome;

/// The state of a function at a `loop` opcode.
pub struct Arrival<'w, W> {
    pub pc: u32,
    pub locals: &'w [u64],
    pub operands: &'w [u64],
    pub world: &'w W,
}

pub struct Reference<'m, W> {
    module: &'m Module,
    body: &'m FuncBody,
    world: &'m mut W,
    locals: Vec<u64>,
    stack: Vec<u64>,
    pc: u32,
    stp: usize,
    steps: u64,
}

impl<'m, W: World<Failure = Trap>> Reference<'m, W> {
    /// Runs `func` for at most `steps` instructions. Returns `None` if it takes more, and a trap with its pc. `arrive` is
    /// called at every arrival at a `loop`.
    pub fn run(
        module: &'m Module,
        func: u32,
        world: &'m mut W,
        args: &[u64],
        steps: u64,
        arrive: &mut dyn FnMut(Arrival<'_, W>),
    ) -> Result<Option<Done>, (Trap, u32)> {
        let body = module.body(func).unwrap();
        let mut locals = args.to_vec();
        locals.resize(body.locals.len(), 0);
        let mut this = Reference { module, body, world, locals, stack: Vec::new(), pc: body.entry, stp: 0, steps };
        this.world.poll().map_err(|trap| (trap, body.entry))?;
        let results = module.func_type(func).results.len();
        loop {
            let pc = this.pc;
            match this.step(results, arrive).map_err(|trap| (trap, pc))? {
                None if this.steps == 0 => return Ok(None),
                None => this.steps -= 1,
                done => return Ok(done),
            }
        }
    }

    fn step(&mut self, results: usize, arrive: &mut dyn FnMut(Arrival<'_, W>)) -> Result<Option<Done>, Trap> {
        let mut instrs = Instrs::new(self.module, self.pc, self.body.end);
        let instr = instrs.next().unwrap();
        if instr.op == Opcode::Loop {
            arrive(Arrival { pc: self.pc, locals: &self.locals, operands: &self.stack, world: self.world });
            self.world.poll()?;
        }
        let head = self.pc + u32::from(instr.op == Opcode::Loop);
        if let Ok(i) = self.body.segments.binary_search_by_key(&head, |segment| segment.pc) {
            self.world.fuel(self.body.segments[i].cost.into())?;
        }
        self.pc = instrs.pc();
        let done = |stack: &mut Vec<u64>| Ok(Some(Done::Return(wide(stack.split_off(stack.len() - results)))));
        match (instr.op, instr.imm) {
            (Opcode::Unreachable, _) => return Err(Trap::UnreachableCodeReached),
            (Opcode::Return, _) => return done(&mut self.stack),
            (Opcode::End, _) if self.pc == self.body.end => return done(&mut self.stack),
            (Opcode::Nop | Opcode::Block | Opcode::End, _) => {}
            (Opcode::Loop, _) => self.stp += 1,
            (Opcode::If, _) => match self.pop() {
                0 => self.take(0),
                _ => self.stp += 1,
            },
            (Opcode::Else | Opcode::Br, _) => self.take(0),
            (Opcode::BrIf, _) => match self.pop() {
                0 => self.stp += 1,
                _ => self.take(0),
            },
            (Opcode::BrTable, Imm::Labels(labels)) => {
                let index = self.pop() as usize;
                self.take(index.min(labels.len() - 1));
            }
            (Opcode::Call, Imm::Index(func)) => {
                let args = self.args(self.module.func_type(func));
                let values = self.world.call(Callee::Direct(func), &args)?;
                self.results(self.module.func_type(func), &values);
            }
            (Opcode::CallIndirect, Imm::CallIndirect { ty, table }) => {
                let index = self.pop();
                let func_type = &self.module.types[ty as usize];
                let args = self.args(func_type);
                let values = self.world.call(Callee::Indirect { ty, table, index }, &args)?;
                self.results(func_type, &values);
            }
            (Opcode::ReturnCall, Imm::Index(func)) => {
                let args = self.args(self.module.func_type(func));
                return Ok(Some(Done::TailCall { callee: Callee::Direct(func), args, pc: instr.pc }));
            }
            _ => self.plain(instr)?,
        }
        Ok(None)
    }

    /// Executes an instruction after which the next one follows.
    fn plain(&mut self, instr: Instr<'_>) -> Result<(), Trap> {
        match (instr.op, instr.imm) {
            (Opcode::Drop, _) => {
                self.pop();
            }
            (Opcode::Select | Opcode::SelectT, _) => {
                let [a, b, condition] = self.pops();
                self.stack.push(if condition != 0 { a } else { b });
            }
            (Opcode::LocalGet, Imm::Index(local)) => self.stack.push(self.locals[local as usize]),
            (Opcode::LocalSet, Imm::Index(local)) => self.locals[local as usize] = self.pop(),
            (Opcode::LocalTee, Imm::Index(local)) => self.locals[local as usize] = *self.stack.last().unwrap(),
            (Opcode::GlobalGet, Imm::Index(global)) => {
                let value = self.world.global(global);
                self.stack.push(value as u64);
            }
            (Opcode::GlobalSet, Imm::Index(global)) => {
                let value = self.pop();
                self.world.set_global(global, value.into());
            }
            (_, Imm::I32(value)) => self.stack.push(u64::from(value as u32)),
            (_, Imm::I64(value)) => self.stack.push(value as u64),
            (_, Imm::F32(bits)) => self.stack.push(bits.into()),
            (_, Imm::F64(bits)) => self.stack.push(bits),
            (op, Imm::Mem(arg)) => {
                let access = semantics::access(op).unwrap();
                if access.store {
                    let [address, value] = self.pops();
                    self.world.store(arg.memory, address, arg.offset, access.width, value.into())?;
                } else {
                    let address = self.pop();
                    let raw = self.world.load(arg.memory, address, arg.offset, access.width)?;
                    self.stack.push(access.extend(raw as u64));
                }
            }
            (Opcode::MemorySize, Imm::Index(memory)) => {
                let size = self.world.memory_size(memory);
                self.stack.push(size);
            }
            (Opcode::MemoryGrow, Imm::Index(memory)) => {
                let delta = self.pop();
                let old = self.world.memory_grow(memory, delta)?.unwrap_or(u32::MAX.into());
                self.stack.push(old);
            }
            (Opcode::MemoryFill, Imm::Index(memory)) => {
                let [to, byte, len] = self.pops();
                self.world.memory_fill(memory, to, byte as u8, len)?;
            }
            (Opcode::MemoryCopy, Imm::Index2(to_memory, from_memory)) => {
                let [to, from, len] = self.pops();
                self.world.memory_copy((to_memory, from_memory), to, from, len)?;
            }
            (op, _) => {
                let operands = op.signature().unwrap().operands.len();
                let args = self.stack.split_off(self.stack.len() - operands);
                self.stack.push(semantics::eval(op, &args).unwrap()?);
            }
        }
        Ok(())
    }

    fn pop(&mut self) -> u64 {
        self.stack.pop().unwrap()
    }

    fn pops<const N: usize>(&mut self) -> [u64; N] {
        self.stack.split_off(self.stack.len() - N).try_into().unwrap()
    }

    fn take(&mut self, which: usize) {
        let BranchEntry { pc, stp, keep, drop } = self.body.branches[self.stp + which];
        let kept = self.stack.len() - keep as usize;
        self.stack.drain(kept - drop as usize..kept);
        (self.pc, self.stp) = (pc, stp as usize);
    }

    fn args(&mut self, ty: &FuncType) -> Vec<u128> {
        wide(self.stack.split_off(self.stack.len() - ty.params.len()))
    }

    fn results(&mut self, ty: &FuncType, values: &[u128]) {
        use weir_bytecode::ValType::{F32, I32};
        let low = |(ty, &value)| if matches!(ty, &I32 | &F32) { value as u64 & 0xFFFF_FFFF } else { value as u64 };
        self.stack.extend(ty.results.iter().zip(values).map(low));
    }
}

/// Slots in the form that a [`World`] uses.
pub fn wide(slots: Vec<u64>) -> Vec<u128> {
    slots.into_iter().map(u128::from).collect()
}
