//! What an instruction that does not branch does to the state. An instruction without an arm here makes what it writes unknown, and its
//! memory operand is checked like any other.

use crate::access::{self, Access, Kind, Loaded, access, address, number, operand_class};
use crate::contract::Context;
use crate::fault::{Rule, Violation};
use crate::flags::{decide, negated, refine};
use crate::state::{Area, Flags, State};
use crate::value::{Base, Bound, Class, MAX32, NONE, Value};
use iced_x86::{Code, ConditionCode, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register};

/// Executes instructions.
#[derive(Debug)]
pub struct Transfer<'c> {
    cx: &'c Context<'c>,
    factory: InstructionInfoFactory,
    /// The accesses of the last instruction.
    pub accesses: Vec<(Kind, bool)>,
}

type Done = Result<(), Violation>;

impl<'c> Transfer<'c> {
    /// Executes the instructions of a function.
    pub fn new(cx: &'c Context<'c>) -> Transfer<'c> {
        Transfer { cx, factory: InstructionInfoFactory::new(), accesses: Vec::new() }
    }

    /// Executes an instruction that continues with the next one.
    pub fn step(&mut self, state: &mut State, inst: &Instruction) -> Done {
        self.accesses.clear();
        let wide = inst.op_count() > 0 && inst.op_kind(0) == OpKind::Register && inst.op0_register().is_gpr64();
        let short = inst.op_count() > 0 && inst.op_kind(0) == OpKind::Register && inst.op0_register().is_gpr32();
        match inst.mnemonic() {
            Mnemonic::Nop | Mnemonic::Vzeroupper | Mnemonic::Endbr64 => Ok(()),
            Mnemonic::Mov if wide || short => {
                let class = self.operand(state, inst, 1)?;
                self.put(state, inst, class);
                Ok(())
            }
            Mnemonic::Mov if inst.op0_kind() == OpKind::Memory => self.store(state, inst),
            Mnemonic::Movzx | Mnemonic::Movsx | Mnemonic::Movsxd if wide || short => self.extend(state, inst),
            Mnemonic::Lea if wide || short => {
                if inst.has_segment_prefix() {
                    return Err(Violation(Rule::Segment, "`lea` of an address in a segment".into()));
                }
                let at = address(self.cx, state, inst)?;
                let class = if at.class != NONE { at.class } else { state.class(at.value) };
                self.put(state, inst, class);
                Ok(())
            }
            Mnemonic::Add | Mnemonic::Sub | Mnemonic::And | Mnemonic::Or | Mnemonic::Xor if wide || short => {
                self.arithmetic(state, inst)
            }
            Mnemonic::Shl | Mnemonic::Shr | Mnemonic::Sar if wide || short => self.shift(state, inst),
            Mnemonic::Imul if (wide || short) && inst.op_count() == 3 => self.multiply(state, inst),
            Mnemonic::Inc | Mnemonic::Dec if wide => {
                let class = state.reg(inst.op0_register().number());
                let k = if inst.mnemonic() == Mnemonic::Inc { 1 } else { -1 };
                let value = access::plus(&access::part(state, class, 0), k);
                state.set(inst.op0_register().number(), value);
                state.flags = Flags::Unknown;
                Ok(())
            }
            Mnemonic::Cmp => self.compare(state, inst),
            Mnemonic::Test => self.test(state, inst),
            Mnemonic::Push => self.push(state, inst),
            Mnemonic::Pop => self.pop(state, inst),
            Mnemonic::Leave if inst.code() == Code::Leaveq => self.leave(state),
            Mnemonic::Vmovq | Mnemonic::Movq => self.move_between(state, inst),
            Mnemonic::Rdgsbase | Mnemonic::Rdfsbase | Mnemonic::Wrgsbase | Mnemonic::Wrfsbase | Mnemonic::Swapgs => {
                self.segment_base(state, inst)
            }
            Mnemonic::Popcnt | Mnemonic::Lzcnt | Mnemonic::Tzcnt => {
                self.other(state, inst)?;
                if wide || short {
                    state.set(inst.op0_register().full_register().number(), Value::range(0, 64));
                }
                Ok(())
            }
            _ if inst.condition_code() != ConditionCode::None && (wide || short) && is_move(inst) => self.select(state, inst),
            _ => self.other(state, inst),
        }
    }

    /// The bytes of an operand.
    fn bytes(inst: &Instruction, operand: u32) -> i64 {
        match inst.op_kind(operand) {
            OpKind::Memory => inst.memory_size().size() as i64,
            OpKind::Register => inst.op_register(operand).size() as i64,
            _ => 0,
        }
    }

    /// Loads the memory operand.
    fn load(&mut self, state: &mut State, inst: &Instruction) -> Result<Class, Violation> {
        let at = address(self.cx, state, inst)?;
        let bytes = inst.memory_size().size() as i64;
        let Access { kind, loaded } = access(self.cx, state, inst, &at, bytes, None)?;
        self.accesses.push((kind, false));
        Ok(match loaded {
            Loaded::Class(class) => class,
            Loaded::Value(value) if bytes < 8 && value.is_any() => state.class(Value::range(0, (1 << (8 * bytes)) - 1)),
            Loaded::Value(value) => state.class(value),
        })
    }

    fn store_class(&mut self, state: &mut State, inst: &Instruction, class: Class) -> Done {
        let at = address(self.cx, state, inst)?;
        let bytes = inst.memory_size().size() as i64;
        let done = access(self.cx, state, inst, &at, bytes, Some(class))?;
        self.accesses.push((done.kind, true));
        Ok(())
    }

    /// `mov` to memory.
    fn store(&mut self, state: &mut State, inst: &Instruction) -> Done {
        let class = match inst.op_kind(1) {
            OpKind::Register if inst.op1_register().is_gpr64() => operand_class(state, inst, 1),
            OpKind::Register => NONE,
            _ => state.class(Value::constant(inst.immediate(1))),
        };
        self.store_class(state, inst, class)
    }

    /// The number that an operand has, of 4 or 8 bytes.
    fn operand(&mut self, state: &mut State, inst: &Instruction, operand: u32) -> Result<Class, Violation> {
        match inst.op_kind(operand) {
            OpKind::Memory => self.load(state, inst),
            OpKind::Register => {
                let reg = inst.op_register(operand);
                let Some(n) = number(reg) else { return Ok(NONE) };
                let class = state.reg(n);
                Ok(match reg.size() {
                    8 => class,
                    4 if is_half(&state.value(class)) => class,
                    4 => state.class(Value::range(0, MAX32)),
                    2 if state.value(class).is_int() && state.value(class).high <= 0xFFFF => class,
                    1 if state.value(class).is_int() && state.value(class).high <= 0xFF && is_low_byte(reg) => class,
                    2 => state.class(Value::range(0, 0xFFFF)),
                    _ => state.class(Value::range(0, 0xFF)),
                })
            }
            _ => {
                if let Some(reloc) = self.cx.immediate(inst) {
                    let value = self.cx.target(reloc, false, 0).map_err(|what| Violation(Rule::Instruction, what.into()))?;
                    return Ok(state.class(value));
                }
                let other = if operand == 0 { 1 } else { 0 };
                let value = inst.immediate(operand);
                Ok(state.class(Value::constant(if Self::bytes(inst, other) == 8 { value } else { value & MAX32 })))
            }
        }
    }

    /// Writes a number to the first operand, a register of 4 or 8 bytes.
    fn put(&mut self, state: &mut State, inst: &Instruction, class: Class) {
        let reg = inst.op0_register();
        let n = reg.full_register().number();
        state.regs[n] = match reg.size() {
            8 => class,
            _ if is_half(&state.value(class)) => class,
            _ => state.class(Value::range(0, MAX32)),
        };
    }

    fn extend(&mut self, state: &mut State, inst: &Instruction) -> Done {
        let bytes = Self::bytes(inst, 1);
        let class = self.operand(state, inst, 1)?;
        let value = state.value(class);
        let zero = inst.mnemonic() == Mnemonic::Movzx;
        let wide = inst.op0_register().is_gpr64();
        let sign = 1u64 << (8 * bytes - 1);
        let n = inst.op0_register().full_register().number();
        if !value.is_int() || value.high < sign || zero {
            // The number stays the same: also an entry of a jump table, which is a distance.
            state.regs[n] = class;
        } else {
            state.set(n, if wide { Value::any() } else { Value::range(0, MAX32) });
        }
        Ok(())
    }

    fn arithmetic(&mut self, state: &mut State, inst: &Instruction) -> Done {
        let (wide, n) = (inst.op0_register().is_gpr64(), inst.op0_register().full_register().number());
        let zeroes = matches!(inst.mnemonic(), Mnemonic::Xor | Mnemonic::Sub)
            && inst.op1_kind() == OpKind::Register
            && inst.op0_register() == inst.op1_register();
        if zeroes {
            state.set(n, Value::constant(0));
            state.flags = Flags::Tested(state.regs[n], 8);
            return Ok(());
        }
        let a = self.operand(state, inst, 0)?;
        let b = self.operand(state, inst, 1)?;
        if a == b && a != NONE && matches!(inst.mnemonic(), Mnemonic::Xor | Mnemonic::Sub) {
            state.set(n, Value::constant(0));
            state.flags = Flags::Unknown;
            return Ok(());
        }
        let (x, y) = (state.value(a), state.value(b));
        let limit = if wide { u64::MAX } else { MAX32 };
        let mut value = match inst.mnemonic() {
            Mnemonic::Add => match self.target(&x, &y) {
                Some(target) => target,
                None => access::add(&access::part(state, a, 0), &access::part(state, b, 0)),
            },
            Mnemonic::Sub => match y.known() {
                Some(known) => access::plus(&access::part(state, a, 0), (known as i64).wrapping_neg()),
                None if x.is_int() && y.is_int() && x.low >= y.high => Value::range(x.low - y.high, x.high - y.low),
                None => Value::any(),
            },
            Mnemonic::And if x.is_int() && y.is_int() => Value::range(0, x.high.min(y.high)),
            Mnemonic::Or | Mnemonic::Xor if x.is_int() && y.is_int() => Value::range(0, bits(x.high | y.high)),
            _ => Value::any(),
        };
        let fits = value.is_int() && value.high <= limit;
        if !fits && !wide {
            value = Value::range(0, MAX32);
        }
        let adds = (inst.mnemonic() == Mnemonic::Add && wide).then(|| y.known().or(x.known())).flatten();
        state.set(n, value);
        state.flags = match inst.mnemonic() {
            Mnemonic::Sub => Flags::Compared(a, b, if wide { 8 } else { 4 }),
            Mnemonic::Add => match adds {
                Some(k) => Flags::Added(state.reg(n), k),
                None => Flags::Unknown,
            },
            _ => Flags::Tested(state.reg(n), if wide { 8 } else { 4 }),
        };
        Ok(())
    }

    /// The sum of the address of a jump table and one of its entries.
    fn target(&self, x: &Value, y: &Value) -> Option<Value> {
        let (table, entry) = match (&x.base, &y.base) {
            (Base::Own(_), Base::Distance(..)) => (x, y),
            (Base::Distance(..), Base::Own(_)) => (y, x),
            _ => return None,
        };
        let (Base::Own(places), Base::Distance(at, count)) = (&table.base, &entry.base) else { return None };
        (**places == [*at] && table.fixed() == Some(0)).then(|| Value::at(Base::Target(*at, *count)))
    }

    fn shift(&mut self, state: &mut State, inst: &Instruction) -> Done {
        let (wide, n) = (inst.op0_register().is_gpr64(), inst.op0_register().full_register().number());
        let a = self.operand(state, inst, 0)?;
        let x = state.value(a);
        let count = matches!(inst.op1_kind(), OpKind::Immediate8).then(|| inst.immediate8() & if wide { 63 } else { 31 });
        let limit = if wide { u64::MAX } else { MAX32 };
        let value = match (inst.mnemonic(), count) {
            _ if !x.is_int() => Value::any(),
            (Mnemonic::Shl, Some(count)) if wide => access::part(state, a, count),
            (Mnemonic::Shl, Some(count)) if x.high <= limit >> count => access::part(state, a, count),
            (Mnemonic::Shr, Some(count)) => Value::range(x.low >> count, x.high >> count),
            (Mnemonic::Shr, None) => Value::range(0, x.high),
            (Mnemonic::Sar, Some(count)) if x.high <= limit >> 1 => Value::range(x.low >> count, x.high >> count),
            _ => Value::any(),
        };
        state.set(n, if wide || value.is_short() { value } else { Value::range(0, MAX32) });
        state.flags = Flags::Unknown;
        Ok(())
    }

    fn multiply(&mut self, state: &mut State, inst: &Instruction) -> Done {
        let (wide, n) = (inst.op0_register().is_gpr64(), inst.op0_register().full_register().number());
        let a = self.operand(state, inst, 1)?;
        let k = inst.immediate(2);
        let x = state.value(a);
        let value = if k.is_power_of_two() && wide {
            access::part(state, a, k.trailing_zeros() as u8)
        } else {
            match (x.low.checked_mul(k), x.high.checked_mul(k)) {
                (Some(low), Some(high)) if x.is_int() => Value::range(low, high),
                _ => Value::any(),
            }
        };
        state.set(n, if wide || value.is_short() { value } else { Value::range(0, MAX32) });
        state.flags = Flags::Unknown;
        Ok(())
    }

    fn compare(&mut self, state: &mut State, inst: &Instruction) -> Done {
        let a = self.operand(state, inst, 0)?;
        let b = self.operand(state, inst, 1)?;
        let bytes = Self::bytes(inst, 0).max(Self::bytes(inst, 1));
        state.flags = match bytes {
            1..=8 => Flags::Compared(a, b, bytes as u8),
            _ => Flags::Unknown,
        };
        Ok(())
    }

    fn test(&mut self, state: &mut State, inst: &Instruction) -> Done {
        let mut a = self.operand(state, inst, 0)?;
        let same = inst.op1_kind() == OpKind::Register
            && inst.op0_kind() == OpKind::Register
            && inst.op0_register() == inst.op1_register();
        let bytes = Self::bytes(inst, 0);
        if let Some(n) = number(inst.op0_register()).filter(|_| same && bytes >= 4) {
            a = state.reg(n);
        }
        state.flags = if same && matches!(bytes, 1..=8) { Flags::Tested(a, bytes as u8) } else { Flags::Unknown };
        Ok(())
    }

    fn select(&mut self, state: &mut State, inst: &Instruction) -> Done {
        let n = inst.op0_register().full_register().number();
        let wide = inst.op0_register().is_gpr64();
        let condition = inst.condition_code();
        let old = self.operand(state, inst, 0)?;
        let new = self.operand(state, inst, 1)?;
        let class = match decide(state, condition) {
            Some(true) => self.masked(state, new, old),
            Some(false) => self.masked(state, old, new),
            None => {
                // Each is taken where the condition, or its opposite, holds.
                let (mut taken, mut kept) = (state.clone(), state.clone());
                refine(self.cx, &mut taken, condition);
                refine(self.cx, &mut kept, negated(condition));
                let (x, y) = (taken.value(new), kept.value(old));
                let value = match (taken.dead, kept.dead) {
                    (true, false) => y,
                    (false, true) => x,
                    _ if old == new => x,
                    // What is known of it holds whatever the processor expects the condition to be.
                    _ => Value { masked: true, ..self.either(&x, &y) },
                };
                state.class(value)
            }
        };
        state.regs[n] = match wide || state.value(class).is_short() {
            true => class,
            false => state.class(Value::range(0, MAX32)),
        };
        Ok(())
    }

    /// The number that a conditional move certainly gives, of which the processor may take the other one as long as it does not know the
    /// condition. The number is masked if the other one is harmless: 0, the length of a memory or the first element of a table. The condition
    /// has to be a comparison of the number, unless that is an address.
    fn masked(&self, state: &mut State, class: Class, other: Class) -> Class {
        if !self.cx.options().masks {
            return class;
        }
        let is_compared = |class: Class| matches!(state.flags, Flags::Compared(a, b, _) if class == a || class == b);
        let (compared, clamped) = (is_compared(class), is_compared(class) && is_compared(other));
        let (value, other) = (state.value(class), state.value(other));
        if clamped && other.known().is_some_and(|bound| bound > 0) {
            // The smaller of both: it may be the bound as well.
            let masked = Value { masked: true, ..self.either(&value, &other) };
            return state.class(masked);
        }
        let is_address = matches!(value.base, Base::Memory(_) | Base::Table(_));
        let is_length = value.is_int() && other.bounds.iter().any(|bound| matches!(bound, (Bound::Memory(_), 0)));
        let harmless = match is_address {
            true => other.known() == Some(0) || other.is(value.base.clone()),
            false => compared && (other.known() == Some(0) || is_length),
        };
        if !harmless {
            return class;
        }
        let masked = match value.is_int() {
            // It is not to be taken for the sum of which it is, which is not masked.
            true => Value { masked: true, var: None, disp: 0, ..value },
            false => Value { masked: true, ..value },
        };
        state.class(masked)
    }

    /// One of two numbers.
    fn either(&self, x: &Value, y: &Value) -> Value {
        if x.is_int() && y.is_int() {
            let mut both = Value::range(x.low.min(y.low), x.high.max(y.high));
            for &(bound, room) in &x.bounds {
                if let Some(other) = y.room(bound) {
                    both.bind(bound, room.min(other));
                }
            }
            return both;
        }
        let null = |address: &Value, other: &Value| {
            (other.known() == Some(0) && matches!(address.base, Base::Memory(_) | Base::Table(_)))
                .then(|| Value { or_null: true, ..address.clone() })
        };
        if (&x.base, x.var, x.disp) == (&y.base, y.var, y.disp) {
            return Value { bounds: Vec::new(), sig: None, or_null: x.or_null || y.or_null, ..x.clone() };
        }
        null(x, y).or_else(|| null(y, x)).or_else(|| x.union(y, self.cx.frame_bytes)).unwrap_or_else(Value::any)
    }

    fn push(&mut self, state: &mut State, inst: &Instruction) -> Done {
        let class = match inst.op0_kind() {
            OpKind::Register if inst.op0_register().is_gpr64() => operand_class(state, inst, 0),
            OpKind::Memory => return Err(Violation(Rule::Instruction, "a push of memory".into())),
            _ if inst.stack_pointer_increment() != -8 => {
                return Err(Violation(Rule::Instruction, "a push of less than 8 bytes".into()));
            }
            _ => state.class(Value::constant(inst.immediate(0))),
        };
        self.accesses.push((Kind::NativeFrame, true));
        push(state, class)
    }

    fn pop(&mut self, state: &mut State, inst: &Instruction) -> Done {
        let class = pop(state)?;
        let Some(n) =
            number(inst.op0_register()).filter(|_| inst.op0_kind() == OpKind::Register && inst.op0_register().is_gpr64())
        else {
            return Err(Violation(Rule::Instruction, "a pop to something else than a register".into()));
        };
        self.accesses.push((Kind::NativeFrame, false));
        state.regs[n] = class;
        Ok(())
    }

    fn leave(&mut self, state: &mut State) -> Done {
        state.regs[4] = state.reg(5);
        if state.stack_pointer().is_none() {
            return Err(Violation(Rule::Convention, "the frame pointer is not known".into()));
        }
        state.regs[5] = pop(state)?;
        Ok(())
    }

    /// Reads the base of `gs`. Code does nothing else with bases.
    fn segment_base(&mut self, state: &mut State, inst: &Instruction) -> Done {
        if !self.cx.options().segment {
            return Err(Violation(Rule::Segment, "the base of a segment in code that uses none".into()));
        }
        if inst.mnemonic() != Mnemonic::Rdgsbase || !inst.op0_register().is_gpr64() || inst.op0_register() == Register::RSP {
            return Err(Violation(Rule::Segment, "a base that is written, or is not that of `gs`".into()));
        }
        state.set(inst.op0_register().number(), Value::at(Base::Segment));
        Ok(())
    }

    /// Whether an instruction leaves the stack and all registers but `rax` and `r10` as they are.
    pub fn leaves_untouched(&mut self, inst: &Instruction) -> bool {
        let writes = |access| !matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::None | OpAccess::NoMemAccess);
        let info = self.factory.info(inst);
        let is_free = |reg: Register| matches!(reg.full_register(), Register::RAX | Register::R10);
        info.used_registers().iter().all(|used| !writes(used.access()) || is_free(used.register()))
            && !info.used_memory().iter().any(|used| writes(used.access()))
    }

    /// Moves between registers of both kinds, and memory.
    fn move_between(&mut self, state: &mut State, inst: &Instruction) -> Done {
        let class = match inst.op_kind(1) {
            OpKind::Memory => self.load(state, inst)?,
            _ => operand_class(state, inst, 1),
        };
        match inst.op0_kind() {
            OpKind::Memory => return self.store_class(state, inst, class),
            OpKind::Register if inst.op0_register().is_xmm() => state.xmms[inst.op0_register().number()] = class,
            OpKind::Register => match number(inst.op0_register()) {
                Some(n) => state.regs[n] = class,
                None => return self.other(state, inst),
            },
            _ => return self.other(state, inst),
        }
        Ok(())
    }

    /// An instruction about which only its operands are known.
    fn other(&mut self, state: &mut State, inst: &Instruction) -> Done {
        let copied = is_vector_copy(inst).then(|| operand_class(state, inst, 1));
        let info = self.factory.info(inst);
        let writes: Vec<Register> = info
            .used_registers()
            .iter()
            .filter(|used| {
                matches!(used.access(), OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite | OpAccess::ReadCondWrite)
            })
            .map(|used| used.register())
            .collect();
        let implicit = info.used_memory().len();
        let operands: Vec<(u32, OpAccess)> =
            (0..inst.op_count()).filter(|&n| inst.op_kind(n) == OpKind::Memory).map(|n| (n, info.op_access(n))).collect();
        if implicit != operands.iter().filter(|operand| operand.1 != OpAccess::NoMemAccess).count() {
            return Err(Violation(Rule::Instruction, "memory that is no operand".into()));
        }
        let mut loaded = NONE;
        for (_, kind) in operands {
            let reads = matches!(kind, OpAccess::Read | OpAccess::CondRead | OpAccess::ReadWrite | OpAccess::ReadCondWrite);
            let stores = matches!(kind, OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite);
            if reads {
                loaded = self.load(state, inst)?;
            }
            if stores {
                // Followed are copies of all bits.
                let class = if is_vector_store(inst) { operand_class(state, inst, 1) } else { NONE };
                self.store_class(state, inst, class)?;
            }
        }
        let halves = inst.op_count() > 0 && Self::bytes(inst, 0) == 4 || inst.mnemonic() == Mnemonic::Cdq;
        for reg in writes {
            if reg.is_segment_register() {
                return Err(Violation(Rule::Segment, "an instruction that changes a segment".into()));
            }
            if reg.is_xmm() || reg.is_ymm() || reg.is_zmm() {
                state.xmms[reg.number() & 15] = NONE;
                continue;
            }
            let Some(n) = number(reg) else { continue };
            if n == 4 {
                return Err(Violation(Rule::Convention, "an instruction that changes the stack pointer otherwise".into()));
            }
            let short = match reg.size() {
                // The disassembler names the register of which a half is written, and the other half cleared, by all of it.
                8 => halves,
                4 => true,
                _ => state.value(state.regs[n]).is_short(),
            };
            state.set(n, if short { Value::range(0, MAX32) } else { Value::any() });
        }
        if inst.rflags_modified() != 0 {
            state.flags = Flags::Unknown;
        }
        let vector = inst.op_count() > 0 && inst.op_kind(0) == OpKind::Register && inst.op0_register().is_xmm();
        if vector && let Some(class) = copied {
            let memory = inst.op_kind(1) == OpKind::Memory;
            state.xmms[inst.op0_register().number()] = if memory { loaded } else { class };
        }
        Ok(())
    }
}

/// The least number of the form 2ⁿ - 1 that is not less.
fn bits(number: u64) -> u64 {
    u64::MAX.checked_shr(number.leading_zeros()).unwrap_or(0)
}

/// Whether a register is the lowest byte of another one.
fn is_low_byte(reg: Register) -> bool {
    !matches!(reg, Register::AH | Register::BH | Register::CH | Register::DH)
}

/// Whether a number has no bits above the lower 32.
fn is_half(value: &Value) -> bool {
    value.is_short() || matches!(value.base, Base::SignatureOf(_) | Base::Signature(_))
}

fn is_move(inst: &Instruction) -> bool {
    inst.op_count() == 2 && !inst.is_jcc_short_or_near() && !matches!(inst.op0_kind(), OpKind::NearBranch64)
}

/// Whether it copies the lower 8 bytes of a vector register, or a memory operand that begins there.
fn is_vector_copy(inst: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(inst.mnemonic(), M::Vmovups | M::Vmovaps | M::Vmovdqu | M::Vmovdqa | M::Vmovupd | M::Vmovapd | M::Movups | M::Movaps)
        || matches!(inst.mnemonic(), M::Movdqu | M::Movdqa | M::Movapd | M::Movupd)
        || matches!(inst.mnemonic(), M::Vmovsd | M::Movsd) && inst.op_count() == 2
}

fn is_vector_store(inst: &Instruction) -> bool {
    is_vector_copy(inst) && inst.op0_kind() == OpKind::Memory
}

/// Pushes a number.
pub fn push(state: &mut State, class: Class) -> Done {
    let Some(top) = state.stack_pointer() else {
        return Err(Violation(Rule::Convention, "the stack pointer is not known".into()));
    };
    state.set(4, Value { disp: top - 8, ..Value::at(Base::Frame) });
    state.write(Area::Native, (top - 8) as i32, 8, Some(class));
    Ok(())
}

/// Pops a number.
pub fn pop(state: &mut State) -> Result<Class, Violation> {
    let Some(top) = state.stack_pointer().filter(|&top| top < 0) else {
        return Err(Violation(Rule::Convention, "a pop of what is above the frame".into()));
    };
    let class = state.slot(Area::Native, top as i32).unwrap_or(NONE);
    state.forget(Area::Native, top as i32, top as i32 + 8);
    state.set(4, Value { disp: top + 8, ..Value::at(Base::Frame) });
    Ok(class)
}
