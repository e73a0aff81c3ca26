//! Symbolic execution of stubs: each path of a stub is executed, with the numbers that registers and memory have at the entry as symbols.
//! Loops whose count is known are executed as often.

use crate::fault::{Rule, Violation};
use iced_x86::{Code, ConditionCode, Instruction, MemorySize, Mnemonic, OpKind, Register};
use std::collections::{BTreeMap, BTreeSet};

/// A part of memory. No two overlap.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Area {
    /// The native stack, by offset from `rsp` at the entry.
    Frame,
    /// The context of the instance, or of a function of the host.
    Instance,
    /// The stack's context.
    Stack,
    /// The store's context.
    Store,
    /// The engine's epoch.
    Epoch,
    /// The overflow area.
    Overflow,
    /// The slots of arguments and results.
    Slots,
    /// The results of the interpreter's assembly, below this address.
    Results,
    /// The table of the interpreter's assembly.
    Assembly,
    /// A boundary on the native stack, by its distance in the chain from the innermost one.
    Boundary(u32),
}

/// A number that is not known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Symbol {
    /// None: a constant.
    Constant,
    /// The address of an area.
    Address(Area),
    /// What an integer register holds after this number of calls, by its encoding.
    Register(u32, u8),
    /// A half of a vector register after this number of calls.
    Vector(u32, u8, u8),
    /// A word of an area, after this number of calls that may change it.
    Content(u32, Area, i64),
    /// The address of the code of the stubs.
    Code,
    /// The base of `gs` at the entry.
    Segment,
}

/// A symbol plus a constant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Value {
    /// The symbol.
    pub symbol: Symbol,
    /// The constant.
    pub plus: i64,
    /// Whether only the lower 32 bits are those of the sum.
    pub half: bool,
}

impl Value {
    /// A constant.
    pub fn constant(number: i64) -> Value {
        Value { symbol: Symbol::Constant, plus: number, half: false }
    }

    /// A symbol.
    pub fn of(symbol: Symbol) -> Value {
        Value { symbol, plus: 0, half: false }
    }

    /// An address in an area.
    pub fn at(area: Area, offset: i64) -> Value {
        Value { symbol: Symbol::Address(area), plus: offset, half: false }
    }

    /// The sum with a constant.
    pub fn add(self, number: i64) -> Value {
        Value { plus: self.plus.wrapping_add(number), ..self }
    }

    /// The area and the offset of an address.
    pub fn place(self) -> Option<(Area, i64)> {
        match self.symbol {
            Symbol::Address(area) if !self.half => Some((area, self.plus)),
            _ => None,
        }
    }

    /// The number, if it is a constant.
    pub fn known(self) -> Option<i64> {
        (self.symbol == Symbol::Constant).then_some(self.plus)
    }
}

/// What the flags are of.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Flags {
    /// Something else.
    Unknown,
    /// A comparison.
    Compared(Value, Value),
    /// What the interpreter's assembly returns.
    Assembly,
}

/// A condition that was found to hold or not to hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Condition {
    /// Two numbers are equal.
    Equal(Value, Value),
    /// One is less than the other, without sign.
    Below(Value, Value),
    /// One is greater than the other, with sign.
    Greater(Value, Value),
    /// The interpreter's assembly has returned with carry.
    Carry,
}

/// The state on a path.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct State {
    /// The integer registers, by encoding.
    pub regs: [Value; 16],
    /// The halves of the vector registers.
    pub vectors: [[Value; 2]; 16],
    /// Words that were written or read.
    pub memory: BTreeMap<(Area, i64), Value>,
    /// The base of `gs`, which calls preserve.
    pub segment: Value,
    /// The flags.
    pub flags: Flags,
    /// The conditions that hold (`true`) or do not hold on this path.
    pub facts: BTreeSet<(Condition, bool)>,
    /// The number of calls so far.
    pub calls: u32,
    /// The end of the part of the native stack that the stub may write.
    pub top: i64,
    /// `rsp` at the entry, modulo 16.
    pub alignment: i64,
}

/// `rsp`.
pub const RSP: usize = 4;
/// `rbp`.
pub const RBP: usize = 5;

pub fn refuse<T>(rule: Rule, what: impl Into<String>) -> Result<T, Violation> {
    Err(Violation(rule, what.into()))
}

/// The memory that a stub may access.
pub trait Memory {
    /// Whether it may read or write these bytes of an area other than the frame and boundaries.
    fn may_access(&self, area: Area, offset: i64, bytes: i64, write: bool) -> bool;

    /// What a constant of the code is.
    fn constant(&self, number: i64) -> Value;

    /// Whether it may change the base of `gs`.
    fn may_set_segment(&self) -> bool;
}

impl State {
    /// With symbols everywhere.
    pub fn new(alignment: i64) -> State {
        let mut state = State {
            regs: [Value::constant(0); 16],
            vectors: [[Value::constant(0); 2]; 16],
            memory: BTreeMap::new(),
            segment: Value::of(Symbol::Segment),
            flags: Flags::Unknown,
            facts: BTreeSet::new(),
            calls: 0,
            top: 0,
            alignment,
        };
        (0..16).for_each(|reg| state.forget(reg));
        (0..16).for_each(|reg| state.forget_vector(reg));
        state.regs[RSP] = Value::at(Area::Frame, 0);
        state.regs[15] = Value::at(Area::Instance, 0);
        state
    }

    /// Gives a register a new symbol.
    pub fn forget(&mut self, reg: usize) {
        self.regs[reg] = Value::of(Symbol::Register(self.calls, reg as u8));
    }

    /// Gives a vector register new symbols.
    pub fn forget_vector(&mut self, reg: usize) {
        self.vectors[reg] = [0, 1].map(|half| Value::of(Symbol::Vector(self.calls, reg as u8, half)));
    }

    /// `rsp`, as an offset in the frame.
    pub fn top_of_stack(&self) -> Result<i64, Violation> {
        match self.regs[RSP].place() {
            Some((Area::Frame, offset)) => Ok(offset),
            _ => refuse(Rule::Convention, "the stack pointer is not in the stub's frame"),
        }
    }

    /// Whether `rsp` is a multiple of 16.
    pub fn is_aligned(&self) -> bool {
        self.top_of_stack().is_ok_and(|top| (top + self.alignment) % 16 == 0)
    }

    /// Whether a condition is known to hold or not to hold.
    pub fn knows(&self, condition: Condition, holds: bool) -> bool {
        self.facts.contains(&(condition, holds))
    }

    /// The word at a place.
    pub fn word(&mut self, area: Area, offset: i64) -> Value {
        let calls = self.calls;
        *self.memory.entry((area, offset)).or_insert_with(|| initial(area, offset, calls))
    }

    fn check(&self, rules: &dyn Memory, area: Area, offset: i64, bytes: i64, write: bool) -> Result<(), Violation> {
        let allowed = match area {
            Area::Frame => {
                let top = self.top_of_stack()?;
                offset >= top && offset + bytes <= if write { self.top } else { self.top.max(8) }
            }
            // The record, and what the stub that made it has saved above.
            Area::Boundary(_) => !write && offset >= 0 && offset + bytes <= BOUNDARY_FRAME,
            _ => rules.may_access(area, offset, bytes, write),
        };
        match allowed && offset % 8 == 0 {
            true => Ok(()),
            false => {
                refuse(Rule::Access, format!("{bytes} bytes at {offset} of {area:?}{}", if write { ", written" } else { "" }))
            }
        }
    }

    /// Reads a word.
    pub fn load(&mut self, rules: &dyn Memory, at: Value) -> Result<Value, Violation> {
        let Some((area, offset)) = at.place() else { return refuse(Rule::Access, format!("a load at {at:?}")) };
        self.check(rules, area, offset, 8, false)?;
        Ok(self.word(area, offset))
    }

    /// Writes a word.
    pub fn store(&mut self, rules: &dyn Memory, at: Value, value: Value) -> Result<(), Violation> {
        let Some((area, offset)) = at.place() else { return refuse(Rule::Access, format!("a store at {at:?}")) };
        self.check(rules, area, offset, 8, true)?;
        self.memory.insert((area, offset), value);
        Ok(())
    }

    /// Pushes a word.
    pub fn push(&mut self, rules: &dyn Memory, value: Value) -> Result<(), Violation> {
        self.regs[RSP] = Value::at(Area::Frame, self.top_of_stack()? - 8);
        self.store(rules, self.regs[RSP], value)
    }

    /// Pops a word.
    pub fn pop(&mut self, rules: &dyn Memory) -> Result<Value, Violation> {
        let value = self.load(rules, self.regs[RSP])?;
        self.regs[RSP] = self.regs[RSP].add(8);
        if let Some((Area::Frame, top)) = self.regs[RSP].place() {
            self.top = self.top.max(top);
        }
        Ok(value)
    }

    /// The address of the memory operand.
    fn address(&self, inst: &Instruction) -> Result<Value, Violation> {
        let segment = inst.has_segment_prefix();
        if !segment && inst.memory_base() == Register::RIP {
            return Ok(Value::of(Symbol::Code).add(inst.ip_rel_memory_address() as i64));
        }
        if segment || inst.memory_index() != Register::None || !inst.memory_base().is_gpr64() {
            return refuse(Rule::Access, "an address of a kind that stubs do not have");
        }
        Ok(self.regs[inst.memory_base().number()].add(inst.memory_displacement64() as i64))
    }

    /// A source operand.
    pub fn operand(&mut self, rules: &dyn Memory, inst: &Instruction, operand: u32) -> Result<Value, Violation> {
        match inst.op_kind(operand) {
            OpKind::Register => {
                let reg = inst.op_register(operand);
                let value = match reg.is_xmm() {
                    true => self.vectors[reg.number()][0],
                    false => self.regs[reg.full_register().number()],
                };
                Ok(if reg.is_gpr32() && value.known().is_none() { Value { half: true, ..value } } else { value })
            }
            OpKind::Memory if inst.memory_size().size() == 8 => {
                let at = self.address(inst)?;
                self.load(rules, at)
            }
            OpKind::Memory => refuse(Rule::Access, "an access of a width that stubs do not have"),
            _ => Ok(rules.constant(inst.immediate(operand) as i64)),
        }
    }

    fn set(&mut self, inst: &Instruction, value: Value) -> Result<(), Violation> {
        let reg = inst.op0_register();
        if inst.op0_kind() != OpKind::Register || !reg.is_gpr64() && !reg.is_gpr32() {
            return refuse(Rule::Instruction, "a result that stubs do not have");
        }
        let number = reg.full_register().number();
        if number == RSP {
            self.moved(value)?;
        }
        self.regs[number] = match value.known() {
            Some(known) if reg.is_gpr32() => Value::constant(i64::from(known as u32)),
            Some(_) => value,
            None => Value { half: value.half || reg.is_gpr32(), ..value },
        };
        Ok(())
    }

    /// Checks where `rsp` is moved.
    fn moved(&mut self, to: Value) -> Result<(), Violation> {
        match to.place() {
            Some((Area::Frame, top)) if top <= self.top => Ok(()),
            Some((Area::Boundary(_), 0)) => Ok(()),
            _ if self.is_landing(to) => Ok(()),
            _ => refuse(Rule::Convention, "the stack pointer is moved to a place that is not known"),
        }
    }

    /// Whether this may be the `rsp` that the vm gives for a landing.
    fn is_landing(&self, to: Value) -> bool {
        matches!(to.symbol, Symbol::Content(calls, Area::Frame, _) if calls == self.calls && calls > 0 && to.plus == 0)
    }

    /// Executes an instruction that does not branch.
    pub fn step(&mut self, rules: &dyn Memory, inst: &Instruction) -> Result<(), Violation> {
        let unknown = || refuse(Rule::Instruction, "an instruction that stubs do not have");
        let is_vector = |operand: u32| inst.op_kind(operand) == OpKind::Register && inst.op_register(operand).is_xmm();
        match inst.mnemonic() {
            Mnemonic::Nop | Mnemonic::Vzeroupper => {}
            Mnemonic::Mov if inst.op0_kind() == OpKind::Memory => {
                let value = self.operand(rules, inst, 1)?;
                if inst.memory_size().size() != 8 {
                    return refuse(Rule::Access, "a store of a width that stubs do not have");
                }
                let at = self.address(inst)?;
                self.store(rules, at, value)?;
            }
            Mnemonic::Mov => {
                let value = self.operand(rules, inst, 1)?;
                self.set(inst, value)?;
            }
            Mnemonic::Lea => {
                let at = self.address(inst)?;
                self.set(inst, at)?;
            }
            Mnemonic::Rdgsbase => self.set(inst, self.segment)?,
            Mnemonic::Wrgsbase if inst.op0_register().is_gpr64() => {
                if !rules.may_set_segment() {
                    return refuse(Rule::Segment, "a stub that may not change the base of `gs`");
                }
                self.segment = self.operand(rules, inst, 0)?;
            }
            Mnemonic::Push if inst.stack_pointer_increment() == -8 => {
                let value = self.operand(rules, inst, 0)?;
                self.push(rules, value)?;
            }
            Mnemonic::Pop if inst.op0_kind() == OpKind::Register && inst.op0_register().is_gpr64() => {
                let value = self.pop(rules)?;
                self.set(inst, value)?;
            }
            Mnemonic::Leave if inst.code() == Code::Leaveq => {
                self.moved(self.regs[RBP])?;
                self.regs[RSP] = self.regs[RBP];
                self.regs[RBP] = self.pop(rules)?;
            }
            Mnemonic::Add | Mnemonic::Sub if inst.op1_kind() != OpKind::Register && inst.op1_kind() != OpKind::Memory => {
                let by = inst.immediate(1) as i64;
                let value = self.operand(rules, inst, 0)?.add(if inst.mnemonic() == Mnemonic::Sub { -by } else { by });
                self.set(inst, value)?;
                self.flags = Flags::Unknown;
            }
            Mnemonic::Dec => {
                let value = self.operand(rules, inst, 0)?.add(-1);
                self.set(inst, value)?;
                self.flags = Flags::Compared(value, Value::constant(0));
            }
            Mnemonic::And if inst.op0_kind() == OpKind::Register && inst.op0_register() == Register::RSP => {
                let top = self.top_of_stack()?;
                if inst.immediate(1) as i64 != -16 {
                    return unknown();
                }
                self.regs[RSP] = Value::at(Area::Frame, top - (top + self.alignment).rem_euclid(16));
                self.flags = Flags::Unknown;
            }
            Mnemonic::Xor if inst.op1_kind() == OpKind::Register && inst.op0_kind() == OpKind::Register => {
                if inst.op0_register() != inst.op1_register() {
                    return unknown();
                }
                self.set(inst, Value::constant(0))?;
                self.flags = Flags::Unknown;
            }
            Mnemonic::Test => {
                let (a, b) = (self.operand(rules, inst, 0)?, self.operand(rules, inst, 1)?);
                self.flags = if a == b { Flags::Compared(a, Value::constant(0)) } else { Flags::Unknown };
            }
            Mnemonic::Cmp => self.flags = Flags::Compared(self.operand(rules, inst, 0)?, self.operand(rules, inst, 1)?),
            Mnemonic::Movsd if is_vector(0) && !is_vector(1) => {
                let value = self.operand(rules, inst, 1)?;
                self.vectors[inst.op0_register().number()] = [value, Value::constant(0)];
            }
            Mnemonic::Movq if is_vector(0) => {
                let value = self.operand(rules, inst, 1)?;
                self.vectors[inst.op0_register().number()] = [value, Value::constant(0)];
            }
            Mnemonic::Movq | Mnemonic::Movsd if is_vector(1) && inst.op0_kind() == OpKind::Memory => {
                let at = self.address(inst)?;
                self.store(rules, at, self.vectors[inst.op1_register().number()][0])?;
            }
            Mnemonic::Movq if is_vector(1) => {
                let value = self.operand(rules, inst, 1)?;
                self.set(inst, value)?;
            }
            Mnemonic::Movups | Mnemonic::Movaps => self.vector(rules, inst)?,
            Mnemonic::Movsq if inst.has_rep_prefix() => {
                let Some(count @ 0..=4096) = self.regs[1].known() else { return unknown() };
                for _ in 0..count {
                    let value = self.load(rules, self.regs[6])?;
                    self.store(rules, self.regs[7], value)?;
                    self.regs[6] = self.regs[6].add(8);
                    self.regs[7] = self.regs[7].add(8);
                }
                self.regs[1] = Value::constant(0);
            }
            _ => return unknown(),
        }
        Ok(())
    }

    /// A move of 16 bytes between memory and a vector register.
    fn vector(&mut self, rules: &dyn Memory, inst: &Instruction) -> Result<(), Violation> {
        let at = self.address(inst)?;
        let is_aligned = inst.mnemonic() == Mnemonic::Movups
            || matches!(at.place(), Some((Area::Frame, offset)) if (offset + self.alignment) % 16 == 0);
        if !is_aligned {
            return refuse(Rule::Access, "an access that is not aligned");
        }
        match (inst.op0_kind(), inst.op1_kind()) {
            (OpKind::Register, OpKind::Memory) => {
                let value = [self.load(rules, at)?, self.load(rules, at.add(8))?];
                self.vectors[inst.op0_register().number()] = value;
            }
            (OpKind::Memory, OpKind::Register) if inst.memory_size() == MemorySize::Packed128_Float32 => {
                let [low, high] = self.vectors[inst.op1_register().number()];
                self.store(rules, at, low)?;
                self.store(rules, at.add(8), high)?;
            }
            _ => return refuse(Rule::Instruction, "an instruction that stubs do not have"),
        }
        Ok(())
    }

    /// The states after a conditional branch, taken or not, that are possible.
    pub fn branch(self, condition: ConditionCode) -> Vec<(State, bool)> {
        let (tested, when_taken) = match (self.flags, condition) {
            (Flags::Compared(a, b), ConditionCode::e) => (Some(Condition::Equal(a, b)), true),
            (Flags::Compared(a, b), ConditionCode::ne) => (Some(Condition::Equal(a, b)), false),
            (Flags::Compared(a, b), ConditionCode::ae) => (Some(Condition::Below(a, b)), false),
            (Flags::Compared(a, b), ConditionCode::le) => (Some(Condition::Greater(a, b)), false),
            (Flags::Assembly, ConditionCode::b) => (Some(Condition::Carry), true),
            (Flags::Assembly, ConditionCode::ae) => (Some(Condition::Carry), false),
            _ => (None, true),
        };
        let Some(tested) = tested else { return vec![(self.clone(), true), (self, false)] };
        let known = match tested {
            Condition::Equal(a, b) if a.symbol == b.symbol && a.half == b.half => Some(a.plus == b.plus),
            _ if self.knows(tested, true) => Some(true),
            _ if self.knows(tested, false) => Some(false),
            _ => None,
        };
        let with = |holds: bool| {
            let mut state = self.clone();
            state.facts.insert((tested, holds));
            if let (Condition::Equal(found, known), true) = (tested, holds) {
                state.replace(found, known);
            }
            (state, holds == when_taken)
        };
        match known {
            Some(holds) => vec![(self, holds == when_taken)],
            None => vec![with(true), with(false)],
        }
    }

    /// Replaces the content of a word by the address to which it was found equal.
    fn replace(&mut self, found: Value, known: Value) {
        if !matches!(found.symbol, Symbol::Content(..)) || known.place().is_none() {
            return;
        }
        let words = self.regs.iter_mut().chain(self.memory.values_mut());
        words.filter(|word| **word == found).for_each(|word| *word = known);
    }

    /// The same state with boundaries numbered from the first one that it mentions: the chain looks the same from each of them.
    pub fn shifted(&self) -> State {
        let area = |area: Area, by: u32| match area {
            Area::Boundary(n) => Area::Boundary(n.saturating_sub(by)),
            other => other,
        };
        let Some((Area::Boundary(by), _)) = self.regs[RSP].place() else { return self.clone() };
        let value = |value: Value| {
            let symbol = match value.symbol {
                Symbol::Address(at) => Symbol::Address(area(at, by)),
                Symbol::Content(calls, at, offset) => Symbol::Content(calls, area(at, by), offset),
                other => other,
            };
            Value { symbol, ..value }
        };
        let flags = match self.flags {
            Flags::Compared(a, b) => Flags::Compared(value(a), value(b)),
            other => other,
        };
        let before = |at: Area| matches!(at, Area::Boundary(n) if n < by);
        State {
            regs: self.regs.map(value),
            memory: self
                .memory
                .iter()
                .filter(|((at, _), _)| !before(*at))
                .map(|(&(at, offset), &word)| ((area(at, by), offset), value(word)))
                .collect(),
            facts: self
                .facts
                .iter()
                .filter(|(fact, _)| !matches!(fact, Condition::Equal(a, _) if matches!(a.symbol, Symbol::Content(_, at, _) if before(at))))
                .map(|&(fact, holds)| match fact {
                    Condition::Equal(a, b) => (Condition::Equal(value(a), value(b)), holds),
                    Condition::Below(..) | Condition::Greater(..) | Condition::Carry => (fact, holds),
                })
                .collect(),
            flags,
            ..self.clone()
        }
    }
}

/// Bytes of a boundary with what its stub has saved above it, up to and including its return address.
pub const BOUNDARY_FRAME: i64 = 80;

/// The content of a word before anything is written to it.
fn initial(area: Area, offset: i64, calls: u32) -> Value {
    use super::fields as f;
    match (area, offset) {
        (Area::Instance, f::STACK) => Value::at(Area::Stack, 0),
        (Area::Instance, f::STORE) => Value::at(Area::Store, 0),
        (Area::Store, f::EPOCH) => Value::at(Area::Epoch, 0),
        (Area::Stack, f::OVERFLOW) => Value::at(Area::Overflow, 0),
        (Area::Stack, f::VALUE_SP) => Value::at(Area::Slots, 0),
        (Area::Stack, f::BOUNDARY) => Value::at(Area::Boundary(0), 0),
        (Area::Boundary(n), f::PREV) => Value::at(Area::Boundary(n + 1), 0),
        _ => Value::of(Symbol::Content(calls, area, offset)),
    }
}
