//! Runs a function: the meaning of SSA, and the oracle of every pass.
//!
//! What a function sees of its surroundings is a [`World`]; what operations compute is
//! [`weir_bytecode::semantics`]' business. Simple rather than fast: a value per instruction, a match per step.

use super::func::{Block, Func, Value};
use super::ops::{Fields, Op, Type, vector_opcode};
use weir_bytecode::semantics::{self, vector};
use weir_bytecode::{Opcode, Trap};

/// What a function reaches beyond its own values. All values are slots: see [`semantics`].
pub trait World {
    /// Reads `width` bytes at `address + offset`, computed without wrap-around, as a little-endian number.
    ///
    /// # Errors
    /// Out of bounds.
    fn load(&mut self, memory: u32, address: u64, offset: u64, width: u32) -> Result<u64, Trap>;

    /// Writes the low `width` bytes of `value`.
    ///
    /// # Errors
    /// Out of bounds.
    fn store(&mut self, memory: u32, address: u64, offset: u64, width: u32, value: u64) -> Result<(), Trap>;

    /// Size of a memory in pages.
    fn memory_size(&mut self, memory: u32) -> u64;

    /// Grows a memory by `delta` pages: its former size, or `None` if it stays as it is.
    fn memory_grow(&mut self, memory: u32, delta: u64) -> Option<u64>;

    /// `memory.fill`
    ///
    /// # Errors
    /// Out of bounds.
    fn memory_fill(&mut self, memory: u32, to: u64, byte: u8, len: u64) -> Result<(), Trap>;

    /// `memory.copy` between the memories `(to, from)`.
    ///
    /// # Errors
    /// Out of bounds.
    fn memory_copy(&mut self, memories: (u32, u32), to: u64, from: u64, len: u64) -> Result<(), Trap>;

    /// `memory.init`
    ///
    /// # Errors
    /// Out of bounds, of memory or segment.
    fn memory_init(&mut self, memory: u32, segment: u32, to: u64, from: u32, len: u32) -> Result<(), Trap>;

    /// `data.drop`
    fn data_drop(&mut self, segment: u32);

    /// The reference to a function, which is not 0.
    fn ref_func(&mut self, func: u32) -> u64;

    /// `table.get`
    ///
    /// # Errors
    /// Out of bounds.
    fn table_get(&mut self, table: u32, index: u64) -> Result<u64, Trap>;

    /// `table.set`
    ///
    /// # Errors
    /// Out of bounds.
    fn table_set(&mut self, table: u32, index: u64, reference: u64) -> Result<(), Trap>;

    /// Number of elements of a table.
    fn table_size(&mut self, table: u32) -> u64;

    /// Grows a table by `delta` elements that are `reference`: its former size, or `None` if it stays as it is.
    fn table_grow(&mut self, table: u32, reference: u64, delta: u64) -> Option<u64>;

    /// `table.fill`
    ///
    /// # Errors
    /// Out of bounds.
    fn table_fill(&mut self, table: u32, index: u64, reference: u64, len: u64) -> Result<(), Trap>;

    /// `table.copy` between the tables `(to, from)`.
    ///
    /// # Errors
    /// Out of bounds.
    fn table_copy(&mut self, tables: (u32, u32), to: u64, from: u64, len: u64) -> Result<(), Trap>;

    /// `table.init`
    ///
    /// # Errors
    /// Out of bounds, of table or segment.
    fn table_init(&mut self, table: u32, segment: u32, to: u64, from: u32, len: u32) -> Result<(), Trap>;

    /// `elem.drop`
    fn elem_drop(&mut self, segment: u32);

    /// Value of a global.
    fn global(&mut self, global: u32) -> u64;

    /// Writes a global.
    fn set_global(&mut self, global: u32, value: u64);

    /// Calls, and returns all results.
    ///
    /// # Errors
    /// Whatever the callee, or finding it, traps with.
    fn call(&mut self, callee: Callee, args: &[u64]) -> Result<Vec<u64>, Trap>;

    /// Charges fuel.
    ///
    /// # Errors
    /// [`Trap::OutOfFuel`]
    fn fuel(&mut self, cost: u64) -> Result<(), Trap>;

    /// Looks whether to interrupt.
    ///
    /// # Errors
    /// [`Trap::Interrupt`]
    fn poll(&mut self) -> Result<(), Trap>;
}

/// What a call calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Callee {
    /// The function with this index.
    Direct(u32),
    /// An element of a table.
    Indirect {
        /// Type index of the expected signature.
        ty: u32,
        /// The table.
        table: u32,
        /// The element.
        index: u64,
    },
    /// A function reference, which is not null.
    Reference {
        /// Type index of its signature.
        ty: u32,
        /// The reference's slot.
        reference: u64,
    },
}

/// How a function ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// With results.
    Return(Vec<u64>),
    /// With a tail call, which is the caller's to do, so that a chain of them takes constant stack.
    TailCall(Callee, Vec<u64>),
}

/// Why a function did not end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Stop {
    /// It trapped.
    #[error("{0}")]
    Trap(#[from] Trap),
    /// A vector is a parameter, a result, an argument of a call or a global, none of which a [`World`] has.
    #[error("a vector crosses the function's border")]
    Vectors,
    /// The step budget ran out.
    #[error("the step budget is used up")]
    Steps,
}

/// Runs `func` for at most `steps` instructions. `args` are the parameters, or the slots of the frame for an OSR body.
///
/// # Errors
/// A trap, or the end of the budget.
///
/// # Panics
/// If `func` is malformed or `args` too few.
pub fn eval(func: &Func<'_>, world: &mut impl World, args: &[u64], steps: u64) -> Result<Outcome, Stop> {
    if func.blocks().flat_map(|block| &func.block(block).insts).any(|&value| crosses(func, value)) {
        return Err(Stop::Vectors);
    }
    let mut machine = Machine { func, world, args, values: vec![0; func.num_values()], results: Vec::new() };
    let mut block = Block::ENTRY;
    let mut left = steps;
    loop {
        for &value in &func.block(block).insts {
            left = left.checked_sub(1).ok_or(Stop::Steps)?;
            let op = func.op(value);
            if op == Op::Phi {
                continue;
            }
            if !op.is_terminator() {
                machine.values[value.index()] = machine.step(value)?;
                continue;
            }
            match machine.terminate(block, value)? {
                Next::End(outcome) => return Ok(outcome),
                Next::Edge(succ) => block = machine.take(block, succ),
            }
        }
    }
}

/// Whether a vector comes from a [`World`] with this instruction, or goes to it other than to memory.
fn crosses(func: &Func<'_>, value: Value) -> bool {
    let vector = |value: Value| func.ty(value) == Type::V128;
    match func.op(value) {
        Op::Param | Op::OsrSlot | Op::Result | Op::GlobalGet => vector(value),
        Op::Call | Op::CallIndirect | Op::ReturnCall | Op::ReturnCallIndirect | Op::GlobalSet | Op::Return => {
            vector(value) || func.args(value).iter().any(|&arg| vector(arg))
        }
        _ => false,
    }
}

struct Machine<'m, 'a, W> {
    func: &'m Func<'a>,
    world: &'m mut W,
    args: &'m [u64],
    /// Slots, of 16 bytes for the sake of vectors.
    values: Vec<u128>,
    /// Of the last call.
    results: Vec<u64>,
}

enum Next {
    /// Along this successor.
    Edge(usize),
    End(Outcome),
}

impl<W: World> Machine<'_, '_, W> {
    fn get(&self, value: Value) -> u64 {
        self.wide(value) as u64
    }

    fn wide(&self, value: Value) -> u128 {
        self.values[value.index()]
    }

    fn list(&self, values: &[Value]) -> Vec<u64> {
        values.iter().map(|&value| self.get(value)).collect()
    }

    /// Gives the target's phis their values, all at once, and returns the target.
    fn take(&mut self, from: Block, succ: usize) -> Block {
        let (to, index) = self.func.edge(from, succ);
        let new: Vec<u128> = self.func.phis(to).map(|phi| self.wide(self.func.args(phi)[index])).collect();
        for (phi, value) in self.func.phis(to).zip(new) {
            self.values[phi.index()] = value;
        }
        to
    }

    /// Does an instruction that is no phi and no terminator, and returns its value, 0 if it has none.
    fn step(&mut self, value: Value) -> Result<u128, Trap> {
        let inst = self.func.inst(value);
        if inst.ty == Type::V128 || inst.op == Op::Vector {
            return self.vector(value);
        }
        self.scalar(value).map(u128::from)
    }

    /// Does an instruction whose value or operands are vectors.
    fn vector(&mut self, value: Value) -> Result<u128, Trap> {
        let inst = self.func.inst(value);
        if let Some(bits) = self.func.as_vector(value) {
            return Ok(bits);
        }
        let args: Vec<u128> = inst.args.iter().map(|&arg| self.wide(arg)).collect();
        if inst.op == Op::Select {
            return Ok(args[if args[0] != 0 { 1 } else { 2 }]);
        }
        if inst.op.fields() == Fields::Access {
            return self.load_vector(value);
        }
        let opcode = vector_opcode(inst.aux).expect("an instruction on vectors");
        if opcode == Opcode::I8x16Shuffle {
            let [a, b, lanes] = [args[0], args[1], args[2]].map(u128::to_le_bytes);
            return Ok(u128::from_le_bytes(vector::i8x16_shuffle(a, b, lanes)));
        }
        let plain = vector::eval(opcode, &args);
        Ok(plain.or_else(|| vector::eval_lane(opcode, &args, inst.imm as u8)).expect("the two have all other instructions"))
    }

    /// The bytes of a load, zero-extended. Of 16, the upper half is first, as it decides whether all are in bounds.
    fn load_vector(&mut self, value: Value) -> Result<u128, Trap> {
        let inst = self.func.inst(value);
        let (memory, address, offset) = (inst.aux, self.get(inst.args[0]), inst.imm);
        let width = inst.op.access_width(inst.ty).expect("a load has a width");
        if width < 16 {
            return self.world.load(memory, address, offset, width).map(u128::from);
        }
        let upper = self.world.load(memory, address, offset.checked_add(8).ok_or(Trap::MemoryOutOfBounds)?, 8)?;
        let lower = self.world.load(memory, address, offset, 8)?;
        Ok(u128::from(upper) << 64 | u128::from(lower))
    }

    /// Stores all bytes of a vector, the upper half first, as it decides whether they are in bounds.
    fn store_vector(&mut self, value: Value) -> Result<(), Trap> {
        let inst = self.func.inst(value);
        let (memory, address, offset) = (inst.aux, self.get(inst.args[0]), inst.imm);
        let stored = self.wide(inst.args[1]);
        let upper = offset.checked_add(8).ok_or(Trap::MemoryOutOfBounds)?;
        self.world.store(memory, address, upper, 8, (stored >> 64) as u64)?;
        self.world.store(memory, address, offset, 8, stored as u64)
    }

    /// Does an instruction without vectors, or one without a value.
    fn scalar(&mut self, value: Value) -> Result<u64, Trap> {
        let inst = self.func.inst(value);
        let args = self.list(inst.args);
        if inst.op.calls_function() {
            let (callee, args) = self.callee(value);
            self.results = self.world.call(callee, &args)?;
            return Ok(if inst.ty == Type::Void { 0 } else { truncate(self.results[0], inst.ty) });
        }
        if inst.ty == Type::Void {
            return self.act(value, &args).map(|()| 0);
        }
        let slot = match inst.op {
            Op::Const => inst.imm,
            Op::Param | Op::OsrSlot => self.args[inst.imm as usize],
            Op::Result => self.results[inst.imm as usize],
            Op::Select => args[if args[0] != 0 { 1 } else { 2 }],
            Op::MemorySize => self.world.memory_size(inst.aux),
            Op::MemoryGrow => self.world.memory_grow(inst.aux, args[0]).unwrap_or(u64::MAX),
            Op::GlobalGet => self.world.global(inst.aux),
            Op::RefIsNull => semantics::ref_is_null(args[0] as i64) as u64,
            Op::RefFunc => self.world.ref_func(inst.aux),
            Op::TableGet => self.world.table_get(inst.aux, args[0])?,
            Op::TableSize => self.world.table_size(inst.aux),
            Op::TableGrow => self.world.table_grow(inst.aux, args[0], args[1]).unwrap_or(u64::MAX),
            Op::NonNull if args[0] == 0 => return Err(Trap::NullReference),
            Op::NonNull => args[0],
            Op::MulHigh => semantics::i64_mul_wide_u([args[0] as i64, args[1] as i64])[1] as u64,
            _ if inst.op.fields() == Fields::Access => {
                let access = self.access(value);
                access.extend(self.world.load(inst.aux, args[0], inst.imm, access.width)?)
            }
            _ => {
                let opcode = inst.op.opcode(self.func.operand_type(value), inst.ty).expect("a numeric operation of these types");
                semantics::eval(opcode, &args).expect("TABLE 2 names numeric instructions")?
            }
        };
        Ok(truncate(slot, inst.ty))
    }

    /// Does an instruction without a value.
    fn act(&mut self, value: Value, args: &[u64]) -> Result<(), Trap> {
        let inst = self.func.inst(value);
        let (aux, imm) = (inst.aux, inst.imm);
        match inst.op {
            Op::MemoryFill => self.world.memory_fill(aux, args[0], args[1] as u8, args[2])?,
            Op::MemoryCopy => self.world.memory_copy((aux, imm as u32), args[0], args[1], args[2])?,
            Op::MemoryInit => self.world.memory_init(aux, imm as u32, args[0], args[1] as u32, args[2] as u32)?,
            Op::DataDrop => self.world.data_drop(imm as u32),
            Op::TableSet => self.world.table_set(aux, args[0], args[1])?,
            Op::TableFill => self.world.table_fill(aux, args[0], args[1], args[2])?,
            Op::TableCopy => self.world.table_copy((aux, imm as u32), args[0], args[1], args[2])?,
            Op::TableInit => self.world.table_init(aux, imm as u32, args[0], args[1] as u32, args[2] as u32)?,
            Op::ElemDrop => self.world.elem_drop(imm as u32),
            Op::GlobalSet => self.world.set_global(aux, args[0]),
            Op::Fuel => self.world.fuel(imm)?,
            Op::Poll => self.world.poll()?,
            _ if self.func.operand_type(value) == Type::V128 => self.store_vector(value)?,
            _ => self.world.store(aux, args[0], imm, self.access(value).width, args[1])?,
        }
        Ok(())
    }

    fn access(&self, value: Value) -> semantics::Access {
        let ty = self.func.operand_type(value);
        let opcode = self.func.op(value).opcode(ty, ty).expect("an access of this type");
        semantics::access(opcode).expect("TABLE 2 names loads and stores")
    }

    /// Callee and arguments of any call.
    fn callee(&self, call: Value) -> (Callee, Vec<u64>) {
        let inst = self.func.inst(call);
        let mut args = self.list(inst.args);
        let callee = match inst.op.fields() {
            Fields::Func => Callee::Direct(inst.aux),
            Fields::Type => {
                let reference = args.pop().expect("the reference is the last argument");
                Callee::Reference { ty: inst.aux, reference }
            }
            _ => {
                let index = args.pop().expect("the table index is the last argument");
                Callee::Indirect { ty: inst.aux, table: inst.imm as u32, index }
            }
        };
        (callee, args)
    }

    fn terminate(&self, block: Block, terminator: Value) -> Result<Next, Trap> {
        let inst = self.func.inst(terminator);
        Ok(match inst.op {
            Op::Jump => Next::Edge(0),
            Op::Branch => Next::Edge(usize::from(self.get(inst.args[0]) == 0)),
            Op::BrTable => {
                let default = self.func.block(block).succs.len() - 1;
                Next::Edge(default.min(self.get(inst.args[0]) as usize))
            }
            Op::Return => Next::End(Outcome::Return(self.list(inst.args))),
            op if op.is_tail_call() => {
                let (callee, args) = self.callee(terminator);
                Next::End(Outcome::TailCall(callee, args))
            }
            Op::Trap => return Err(u8::try_from(inst.aux).ok().and_then(Trap::from_code).expect("the code of a trap")),
            op => unreachable!("{op} is no terminator"),
        })
    }
}

/// The slot of type `ty` in `slot`, whose upper half may be anything.
fn truncate(slot: u64, ty: Type) -> u64 {
    match ty {
        Type::I32 | Type::F32 => slot & 0xFFFF_FFFF,
        _ => slot,
    }
}
