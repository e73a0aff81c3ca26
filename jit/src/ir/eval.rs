//! Runs a function: the meaning of SSA, and the oracle of every pass.
//!
//! A function sees its environment as a [`World`]; the results of operations are computed by
//! [`weir_bytecode::semantics`]. The evaluator is simple rather than fast: one value per instruction and one match per
//! step. The VM's tier `ssa` runs whole programs with it, with one call of [`eval()`] for each call of a function.

use super::family::{self, Accounting, Exception, Family, Global, Leaf, Memory, Reference, Simd, Store, Table, Terminator};
use super::func::{Func, Inst};
use super::index::{Block, Value};
use super::ops::{NO_TAG, Op, Type, vector_opcode};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use weir_bytecode::semantics::{self, vector};
use weir_bytecode::{Opcode, Trap};
use weir_contract::Entry;

/// The environment of a function. Values are passed as *wide slots*: a vector is its 16 bytes, and any other value is
/// as in [`semantics`]; bits above the value's own may be anything.
pub trait World {
    /// The reason for which the environment ends the function: a trap, or another failure of the implementation.
    type Failure: From<Trap>;

    /// Reads `width` bytes (at most 16) at `address + offset`, computed without wrap-around, as a little-endian number.
    ///
    /// # Errors
    /// Out of bounds.
    fn load(&mut self, memory: u32, address: u64, offset: u64, width: u32) -> Result<u128, Trap>;

    /// Writes the low `width` bytes (at most 16) of `value`.
    ///
    /// # Errors
    /// Out of bounds.
    fn store(&mut self, memory: u32, address: u64, offset: u64, width: u32, value: u128) -> Result<(), Trap>;

    /// Announces the values of the function that is about to run. Those with the indices `roots` are references into the collected heap,
    /// or 0. The environment may change them in a call and in a throw.
    fn roots(&mut self, _values: &[Cell<u128>], _roots: &[u32]) {}

    /// Announces the instruction at `pc`, or the call at `pc` in whose place it was inlined. It may call another function or the host.
    fn at(&mut self, _pc: u32) {}

    /// The size of a memory in pages.
    fn memory_size(&mut self, memory: u32) -> u64;

    /// Grows a memory by `delta` pages. Returns its former size, or `None` if it did not grow.
    ///
    /// # Errors
    /// The failure of a limiter that ends the function instead.
    fn memory_grow(&mut self, memory: u32, delta: u64) -> Result<Option<u64>, Self::Failure>;

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

    /// The number of elements of a table.
    fn table_size(&mut self, table: u32) -> u64;

    /// Grows a table by `delta` elements with the value `reference`. Returns its former size, or `None` if it did not grow.
    ///
    /// # Errors
    /// As for [`World::memory_grow`].
    fn table_grow(&mut self, table: u32, reference: u64, delta: u64) -> Result<Option<u64>, Self::Failure>;

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

    /// The value of a global.
    fn global(&mut self, global: u32) -> u128;

    /// Writes a global.
    fn set_global(&mut self, global: u32, value: u128);

    /// Calls a function and returns all its results.
    ///
    /// # Errors
    /// A failure of the callee or of finding it.
    fn call(&mut self, callee: Callee, args: &[u128]) -> Result<Vec<u128>, Self::Failure>;

    /// Throws an exception with this tag and payload. Returns the failure that it is.
    fn throw(&mut self, tag: u32, payload: &[u128]) -> Self::Failure;

    /// Throws the exception to which the reference, which is not null, refers. Returns the failure that it is.
    fn throw_ref(&mut self, reference: u64) -> Self::Failure;

    /// Decides whether a call or throw that failed continues at one of these handlers of the function. Returns the index of the
    /// handler, and the values that it passes on.
    ///
    /// # Errors
    /// The failure, if it does not.
    fn catch(&mut self, failure: Self::Failure, handlers: &[Caught]) -> Result<(usize, Vec<u128>), Self::Failure>;

    /// Charges fuel.
    ///
    /// # Errors
    /// [`Trap::OutOfFuel`]
    fn fuel(&mut self, cost: u64) -> Result<(), Trap>;

    /// The remaining fuel, negative if it is overdrawn; asked only where fuel is charged.
    fn fuel_left(&mut self) -> i64;

    /// The epoch.
    fn epoch(&mut self) -> u64;

    /// The epoch from which on a poll calls the host.
    fn deadline(&mut self) -> u64;

    /// Polls for interruption.
    ///
    /// # Errors
    /// [`Trap::Interrupt`], or the failure of the callback.
    fn poll(&mut self) -> Result<(), Self::Failure>;
}

/// A handler of exceptions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Caught {
    /// The index of its branch entry.
    pub entry: u32,
    /// The tag, or `None` for all exceptions.
    pub tag: Option<u32>,
}

/// The function that a call calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Callee {
    /// The function with this index.
    Direct(u32),
    /// An element of a table.
    Indirect {
        /// The type index of the expected signature.
        ty: u32,
        /// The table.
        table: u32,
        /// The element.
        index: u64,
    },
    /// A function reference, which is not null.
    Reference {
        /// The type index of its signature.
        ty: u32,
        /// The reference's slot.
        reference: u64,
    },
}

/// The end of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// With results.
    Return(Vec<u128>),
    /// With a tail call. The caller of [`eval()`] makes it, so that a chain of tail calls takes constant stack.
    TailCall {
        /// The function to call.
        callee: Callee,
        /// The arguments.
        args: Vec<u128>,
        /// The offset of the Wasm instruction, because finding the callee may still fail.
        pc: u32,
    },
}

/// The reason why a function did not finish.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EvalError<F = Trap> {
    /// It trapped or failed.
    #[error("{why}")]
    Failed {
        /// The trap, or the [`World`]'s failure.
        why: F,
        /// The offset of the Wasm instruction that failed.
        pc: u32,
    },
    /// The step budget ran out.
    #[error("the step budget is used up")]
    Steps,
}

/// Runs `func` for at most `steps` instructions. `args` are the parameters, or the frame's words for an OSR body.
///
/// # Errors
/// A trap or another failure, or the end of the budget.
///
/// # Panics
/// If `func` is malformed or `args` has too few values.
pub fn eval<W: World>(func: &Func<'_>, world: &mut W, args: &[u128], steps: u64) -> Result<Outcome, EvalError<W::Failure>> {
    // The arguments follow the values.
    let args = args.iter().map(|&arg| Cell::new(arg));
    let values: Vec<Cell<u128>> = std::iter::repeat_n(Cell::new(0), func.num_values()).chain(args).collect();
    let params = (func.entry == Entry::Call).then_some(&func.params).into_iter().flatten().copied();
    let types = (0..func.num_values() as u32).map(|value| func.ty(Value(value))).chain(params);
    let roots: Vec<u32> = (0..).zip(types).filter(|(_, ty)| *ty == Type::Gc).map(|(index, _)| index).collect();
    world.roots(&values, &roots);
    let mut machine = Machine { func, world, values: &values, upper: FxHashMap::default(), results: Vec::new() };
    let mut block = Block::ENTRY;
    let mut left = steps;
    loop {
        for &value in &func.block(block).insts {
            left = left.checked_sub(1).ok_or(EvalError::Steps)?;
            let inst = func.inst(value);
            let next = if func.has_v256(value) { machine.step_halves(value, inst) } else { machine.step(block, value, inst) };
            match next.or_else(|why| machine.catch(block, why, inst))? {
                Next::Value(slot) => machine.values[value.index()].set(truncate(slot, inst.ty)),
                Next::Edge(succ) => {
                    block = machine.take(block, succ);
                    break;
                }
                Next::End(outcome) => return Ok(outcome),
            }
        }
    }
}

struct Machine<'m, 'a, W> {
    func: &'m Func<'a>,
    world: &'m mut W,
    /// Wide slots, by value; the bits above a value's own are zero. For a v256, its lower half. Then the arguments.
    values: &'m [Cell<u128>],
    /// The upper halves of v256.
    upper: FxHashMap<Value, u128>,
    /// Results of the last call or `catch`.
    results: Vec<u128>,
}

/// The continuation of the execution after an instruction.
enum Next {
    /// With the next instruction. This is the value, or 0 if the instruction has none.
    Value(u128),
    /// With the block that this successor edge leads to.
    Edge(usize),
    /// The function ends.
    End(Outcome),
}

/// The way in which a call names its callee.
enum Call {
    Direct,
    Indirect,
    Reference,
}

/// The maximum number of arguments of an instruction that is not a phi, call or return.
const MAX_ARGS: usize = 3;

impl<W: World> Machine<'_, '_, W> {
    fn get(&self, value: Value) -> u128 {
        self.values[value.index()].get()
    }

    fn arg(&self, index: u64) -> u128 {
        self.values[self.func.num_values() + index as usize].get()
    }

    fn list(&self, values: &[Value]) -> Vec<u128> {
        values.iter().map(|&value| self.get(value)).collect()
    }

    /// A half of a v256, or any other value.
    fn half(&self, value: Value, upper: bool) -> u128 {
        if upper && self.func.ty(value) == Type::V256 { self.upper[&value] } else { self.get(value) }
    }

    /// Sets the phis of the target in parallel, and returns the target.
    fn take(&mut self, from: Block, succ: usize) -> Block {
        let (to, index) = self.func.edge(from, succ);
        let halves = |phi: Value| [false, true].map(|upper| self.half(self.func.args(phi)[index], upper));
        let new: Vec<(Value, [u128; 2])> = self.func.phis(to).map(|phi| (phi, halves(phi))).collect();
        for (phi, [lower, upper]) in new {
            self.values[phi.index()].set(lower);
            if self.func.ty(phi) == Type::V256 {
                self.upper.insert(phi, upper);
            }
        }
        to
    }

    /// Executes an instruction on a v256: on the upper halves of its arguments, and then on the lower ones.
    fn step_halves(&mut self, value: Value, inst: &Inst<'_>) -> Result<Next, W::Failure> {
        if inst.op == Op::Phi {
            return Ok(Next::Value(self.get(value)));
        }
        let run = |machine: &mut Self, upper: bool| -> Result<u128, Trap> {
            let mut args = [0; MAX_ARGS];
            args.iter_mut().zip(inst.args.iter()).for_each(|(slot, &arg)| *slot = machine.half(arg, upper));
            if upper && machine.func.widens(value) {
                args[0] >>= 64;
            }
            let args = &args[..inst.args.len().min(MAX_ARGS)];
            Ok(match inst.op.family() {
                Family::Leaf(_) => unreachable!("the verifier allows no v256 here"),
                Family::Simd(Simd::Half) => machine.half(inst.args[0], inst.imm != 0),
                Family::Simd(Simd::Join) => args[usize::from(upper)],
                Family::Simd(Simd::Splice) => {
                    // Of the four halves in sequence, the 16 bytes that begin 32 - imm bytes, and for the upper half 16 more, after the
                    // first one.
                    let halves = [0, 0, 1, 1].map(|i| inst.args[i]).into_iter().zip([false, true, false, true]);
                    let halves: Vec<u128> = halves.map(|(arg, upper)| machine.half(arg, upper)).collect();
                    let first = 32 - inst.imm as usize + if upper { 16 } else { 0 };
                    let (at, bits) = (first / 16, 8 * (first % 16) as u32);
                    halves[at] >> bits | halves[at + 1].checked_shl(128 - bits).unwrap_or(0)
                }
                Family::Simd(Simd::Vector) => machine.vector(value, inst, args),
                // The upper half comes first: if it is in bounds, the lower one is, so that no store is done in part.
                Family::Load(_) | Family::Store(Store::Store) => {
                    machine.access_at(value, inst, args, if upper { 16 } else { 0 })?
                }
                Family::Store(_) | Family::Integer(_) | Family::Compare(_) | Family::Bits(_) | Family::Convert(_) => {
                    unreachable!("the verifier allows no v256 here")
                }
                Family::Float(_) | Family::FloatUnary(_) | Family::FloatCompare(_) | Family::Reference(_) => {
                    unreachable!("the verifier allows no v256 here")
                }
                Family::Memory(_) | Family::Global(_) | Family::Table(_) | Family::Call(_) | Family::Accounting(_) => {
                    unreachable!("the verifier allows no v256 here")
                }
                Family::Exception(_) | Family::Terminator(_) => unreachable!("the verifier allows no v256 here"),
            })
        };
        let upper = run(self, true)?;
        if inst.ty == Type::V256 {
            self.upper.insert(value, upper);
        }
        Ok(Next::Value(run(self, false)?))
    }

    /// Executes an instruction. The edge by which a block was entered has already set its phis.
    fn step(&mut self, block: Block, value: Value, inst: &Inst<'_>) -> Result<Next, W::Failure> {
        let mut args = [0; MAX_ARGS];
        args.iter_mut().zip(inst.args.iter()).for_each(|(slot, &arg)| *slot = self.get(arg));
        let args = &args[..inst.args.len().min(MAX_ARGS)];
        let mut slots = [0; MAX_ARGS];
        slots.iter_mut().zip(args).for_each(|(slot, &arg)| *slot = arg as u64);
        let slots = &slots[..args.len()];
        Ok(Next::Value(match inst.op.family() {
            Family::Leaf(leaf) => self.leaf(leaf, value, inst, args),
            Family::Integer(_) | Family::Compare(_) | Family::Bits(_) | Family::Convert(_) => self.numeric(inst, slots)?.into(),
            Family::Float(_) | Family::FloatUnary(_) | Family::FloatCompare(_) => self.numeric(inst, slots)?.into(),
            Family::Simd(Simd::Vector) => self.vector(value, inst, args),
            Family::Simd(Simd::Half | Simd::Join | Simd::Splice) => unreachable!("it has a v256"),
            Family::Load(_) | Family::Store(_) => self.access(value, inst, args)?,
            Family::Reference(op) => match op {
                Reference::RefIsNull => (semantics::ref_is_null(slots[0] as i64) as u32).into(),
                Reference::RefFunc => self.world.ref_func(inst.aux).into(),
                Reference::NonNull if slots[0] == 0 => return Err(Trap::NullReference.into()),
                Reference::NonNull => args[0],
                Reference::ElementDiffers => {
                    let element = self.world.table_get(inst.imm as u32, slots[0])?;
                    u128::from(element != self.world.ref_func(inst.aux))
                }
                Reference::FuncDiffers => u128::from(slots[0] != self.world.ref_func(inst.aux)),
            },
            Family::Memory(op) => self.memory(op, inst, slots)?.into(),
            Family::Table(op) => self.table(op, inst, slots)?.into(),
            Family::Global(op) => match op {
                Global::GlobalGet => self.world.global(inst.aux),
                Global::GlobalSet => {
                    self.world.set_global(inst.aux, args[0]);
                    0
                }
            },
            Family::Accounting(op) => {
                match op {
                    Accounting::Fuel => self.world.fuel(inst.imm)?,
                    Accounting::Poll => {
                        self.world.at(self.func.copies.outermost(inst.pc));
                        self.world.poll()?;
                    }
                    Accounting::FuelLeft => return Ok(Next::Value((self.world.fuel_left() as u64).into())),
                    Accounting::Epoch => return Ok(Next::Value(self.world.epoch().into())),
                    Accounting::Deadline => return Ok(Next::Value(self.world.deadline().into())),
                    // The evaluator does not leave a body: no ticks are taken, and there is no better code.
                    Accounting::OsrTick | Accounting::OsrTarget | Accounting::OsrStore => {}
                    // It concerns the runtime only.
                    Accounting::Miss => {}
                }
                0
            }
            Family::Call(op) => self.call(op, inst)?,
            // The edge has set the results.
            Family::Exception(Exception::Catch) => self.results.first().copied().unwrap_or(0),
            Family::Terminator(op) => return self.terminate(op, block, inst),
        }))
    }

    fn leaf(&self, leaf: Leaf, value: Value, inst: &Inst<'_>, args: &[u128]) -> u128 {
        match leaf {
            Leaf::Const => inst.imm.into(),
            Leaf::OsrSlot if inst.ty == Type::V128 => self.arg(inst.imm) | self.arg(inst.imm + 1) << 64,
            Leaf::Param | Leaf::OsrSlot => self.arg(inst.imm),
            Leaf::Phi => self.get(value),
            Leaf::Result => self.results[inst.imm as usize],
            Leaf::Select => args[if args[0] != 0 { 1 } else { 2 }],
        }
    }

    /// Executes a call that returns to this function. Its value is the first result.
    fn call(&mut self, op: family::Call, inst: &Inst<'_>) -> Result<u128, W::Failure> {
        self.world.at(self.func.copies.outermost(inst.pc));
        let call = match op {
            family::Call::Call => Call::Direct,
            family::Call::CallIndirect => Call::Indirect,
            family::Call::CallRef => Call::Reference,
        };
        let (callee, args) = self.callee(call, inst);
        self.results = self.world.call(callee, &args)?;
        Ok(self.results.first().copied().unwrap_or(0))
    }

    /// Continues after a failure of an instruction: at a landing block, if the failure is an exception for which `block` has one.
    fn catch(&mut self, block: Block, why: W::Failure, inst: &Inst<'_>) -> Result<Next, EvalError<W::Failure>> {
        let edges = if inst.op.calls_function() || inst.op.is_terminator() { self.func.exceptional_edges(block) } else { 0 };
        let failed = |why| EvalError::Failed { why, pc: self.func.copies.outermost(inst.pc) };
        if edges == 0 {
            return Err(failed(why));
        }
        let handler = |&landing: &Block| {
            let catch = self.func.inst(self.func.catch(landing).expect("the edge leads to a landing block"));
            Caught { entry: catch.imm as u32, tag: Some(catch.aux).filter(|&tag| tag != NO_TAG) }
        };
        let handlers: Vec<Caught> = self.func.block(block).succs[..edges].iter().map(handler).collect();
        let (succ, values) = self.world.catch(why, &handlers).map_err(failed)?;
        self.results = values;
        Ok(Next::Edge(succ))
    }

    /// Executes a vector instruction.
    fn vector(&mut self, value: Value, inst: &Inst<'_>, args: &[u128]) -> u128 {
        if let Some(bits) = self.func.as_vector(value) {
            return bits;
        }
        let opcode = vector_opcode(inst.aux).expect("an instruction on vectors");
        if opcode == Opcode::I8x16Shuffle {
            let [a, b, lanes] = [args[0], args[1], args[2]].map(u128::to_le_bytes);
            return u128::from_le_bytes(vector::i8x16_shuffle(a, b, lanes));
        }
        let plain = vector::eval(opcode, args);
        plain.or_else(|| vector::eval_lane(opcode, args, inst.imm as u8)).expect("the two have all other instructions")
    }

    /// Executes a load, whose value is returned, or a store.
    fn access(&mut self, value: Value, inst: &Inst<'_>, args: &[u128]) -> Result<u128, Trap> {
        self.access_at(value, inst, args, 0)
    }

    /// Executes a load or store, or the half of one that begins `distance` bytes after it.
    fn access_at(&mut self, value: Value, inst: &Inst<'_>, args: &[u128], distance: u64) -> Result<u128, Trap> {
        let (memory, address) = (inst.aux, args[0] as u64);
        let offset = inst.imm.checked_add(distance).ok_or(Trap::MemoryOutOfBounds)?;
        let ty = self.func.operand_type(value).half();
        let width = inst.op.access_width(ty).expect("loads and stores have a width");
        if let Some(&stored) = args.get(1) {
            return self.world.store(memory, address, offset, width, stored).map(|()| 0);
        }
        let loaded = self.world.load(memory, address, offset, width)?;
        if ty == Type::V128 {
            return Ok(loaded);
        }
        let opcode = inst.op.opcode(ty, ty).expect("a load of this type");
        Ok(semantics::access(opcode).expect("TABLE 2 names loads and stores").extend(loaded as u64).into())
    }

    /// Executes an operation that is defined by a numeric instruction.
    fn numeric(&mut self, inst: &Inst<'_>, args: &[u64]) -> Result<u64, Trap> {
        if inst.op == Op::MulHigh {
            return Ok(semantics::i64_mul_wide_u([args[0] as i64, args[1] as i64])[1] as u64);
        }
        let opcode = inst.op.opcode(self.func.ty(inst.args[0]), inst.ty).expect("a numeric operation of these types");
        semantics::eval(opcode, args).expect("TABLE 2 names numeric instructions")
    }

    /// Executes an operation on a memory other than a load or store.
    fn memory(&mut self, op: Memory, inst: &Inst<'_>, args: &[u64]) -> Result<u64, W::Failure> {
        let (aux, imm) = (inst.aux, inst.imm);
        match op {
            Memory::MemorySize => return Ok(self.world.memory_size(aux)),
            Memory::MemoryGrow => {
                self.world.at(self.func.copies.outermost(inst.pc));
                return Ok(self.world.memory_grow(aux, args[0])?.unwrap_or(u64::MAX));
            }
            Memory::MemoryFill => self.world.memory_fill(aux, args[0], args[1] as u8, args[2])?,
            Memory::MemoryCopy => self.world.memory_copy((aux, imm as u32), args[0], args[1], args[2])?,
            Memory::MemoryInit => self.world.memory_init(aux, imm as u32, args[0], args[1] as u32, args[2] as u32)?,
            Memory::DataDrop => self.world.data_drop(imm as u32),
        }
        Ok(0)
    }

    fn table(&mut self, op: Table, inst: &Inst<'_>, args: &[u64]) -> Result<u64, W::Failure> {
        let (aux, imm) = (inst.aux, inst.imm);
        match op {
            Table::TableGet => return Ok(self.world.table_get(aux, args[0])?),
            Table::TableSize => return Ok(self.world.table_size(aux)),
            Table::TableGrow => {
                self.world.at(self.func.copies.outermost(inst.pc));
                return Ok(self.world.table_grow(aux, args[0], args[1])?.unwrap_or(u64::MAX));
            }
            Table::TableSet => self.world.table_set(aux, args[0], args[1])?,
            Table::TableFill => self.world.table_fill(aux, args[0], args[1], args[2])?,
            Table::TableCopy => self.world.table_copy((aux, imm as u32), args[0], args[1], args[2])?,
            Table::TableInit => self.world.table_init(aux, imm as u32, args[0], args[1] as u32, args[2] as u32)?,
            Table::ElemDrop => self.world.elem_drop(imm as u32),
        }
        Ok(0)
    }

    /// The callee and arguments of a call.
    fn callee(&self, call: Call, inst: &Inst<'_>) -> (Callee, Vec<u128>) {
        let mut args = self.list(&inst.args);
        let callee = match call {
            Call::Direct => Callee::Direct(inst.aux),
            Call::Reference => {
                let reference = args.pop().expect("the reference is the last argument") as u64;
                Callee::Reference { ty: inst.aux, reference }
            }
            Call::Indirect => {
                let index = args.pop().expect("the table index is the last argument") as u64;
                Callee::Indirect { ty: inst.aux, table: inst.imm as u32, index }
            }
        };
        (callee, args)
    }

    fn terminate(&mut self, op: Terminator, block: Block, inst: &Inst<'_>) -> Result<Next, W::Failure> {
        let tail_call = |call| {
            let (callee, args) = self.callee(call, inst);
            Next::End(Outcome::TailCall { callee, args, pc: self.func.copies.outermost(inst.pc) })
        };
        Ok(match op {
            Terminator::Jump => Next::Edge(0),
            Terminator::Branch => Next::Edge(usize::from(self.get(inst.args[0]) == 0)),
            Terminator::BrTable => {
                let default = self.func.block(block).succs.len() - 1;
                Next::Edge(default.min(self.get(inst.args[0]) as usize))
            }
            Terminator::Return => Next::End(Outcome::Return(self.list(&inst.args))),
            Terminator::ReturnCall => tail_call(Call::Direct),
            Terminator::ReturnCallIndirect => tail_call(Call::Indirect),
            Terminator::ReturnCallRef => tail_call(Call::Reference),
            Terminator::OsrExit => unreachable!("`osr_target` gives 0"),
            Terminator::Throw => {
                let payload = self.list(&inst.args);
                self.world.at(self.func.copies.outermost(inst.pc));
                return Err(self.world.throw(inst.aux, &payload));
            }
            Terminator::ThrowRef => {
                let reference = self.get(inst.args[0]) as u64;
                self.world.at(self.func.copies.outermost(inst.pc));
                return Err(self.world.throw_ref(reference));
            }
            Terminator::Try => Next::Edge(self.func.block(block).succs.len() - 1),
            Terminator::Trap => {
                let trap = u8::try_from(inst.aux).ok().and_then(Trap::from_code);
                return Err(trap.expect("the code of a trap").into());
            }
        })
    }
}

/// The bits of a value of type `ty` in a wide slot.
fn truncate(slot: u128, ty: Type) -> u128 {
    match ty {
        Type::Void => 0,
        Type::I32 | Type::F32 => (slot as u32).into(),
        Type::I64 | Type::F64 | Type::Ref | Type::Gc => (slot as u64).into(),
        Type::V128 | Type::V256 => slot,
    }
}
