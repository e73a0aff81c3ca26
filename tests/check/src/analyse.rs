//! The fixpoint: states at the beginnings of blocks, which are found on the way. After it, every block is checked once more and counted.

use crate::Function;
use crate::access::Kind;
use crate::branch::{self, After, Target};
use crate::contract::Context;
use crate::fault::{Fault, Rule, Violation};
use crate::flags::{negated, refine};
use crate::operands::LoopOperands;
use crate::state::{Area, State};
use crate::transfer::Transfer;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Formatter, Instruction, InstructionInfoFactory, Mnemonic, NasmFormatter, OpAccess,
    OpKind,
};
use std::collections::{BTreeMap, BTreeSet};
use weir_contract::{Entry, MAX_NATIVE_FRAME};

/// Joins of a block after which intervals are widened.
const WIDEN: u32 = 3;
/// Instructions executed for each byte of code after which the analysis gives up.
const STEPS: u64 = 200;

/// Bytes of the largest native frame, including registers that are pushed.
const LARGEST_FRAME: i64 = MAX_NATIVE_FRAME as i64 + 256;

/// Counts of the code that was proved.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Statistics {
    /// Functions.
    pub functions: u64,
    /// Bytes of code.
    pub bytes: u64,
    /// Instructions on some path.
    pub instructions: u64,
    /// Loads and stores, by their memory; the second of a pair says that it is a store.
    pub accesses: BTreeMap<(Kind, bool), u64>,
    /// Branches, by their target.
    pub branches: BTreeMap<Target, u64>,
}

impl Statistics {
    /// Adds those of other functions.
    pub fn add(&mut self, other: &Statistics) {
        self.functions += other.functions;
        self.bytes += other.bytes;
        self.instructions += other.instructions;
        for (key, count) in &other.accesses {
            *self.accesses.entry(*key).or_default() += count;
        }
        for (key, count) in &other.branches {
            *self.branches.entry(*key).or_default() += count;
        }
    }
}

/// Checks the code of a function.
///
/// # Errors
/// The first fault that was found.
pub fn check(function: &Function<'_>) -> Result<Statistics, Box<Fault>> {
    let fault = |what: &str| {
        let (text, operands) = (String::new(), String::new());
        Box::new(Fault { offset: 0, text, rule: Rule::Instruction, what: what.into(), operands })
    };
    let cx = Context::new(function).ok_or_else(|| fault("the function is not one of the module's own"))?;
    let mut analysis = Analysis::new(&cx);
    analysis.run()?;
    analysis.count()
}

struct Block {
    state: State,
    joins: u32,
}

struct Analysis<'c> {
    cx: &'c Context<'c>,
    transfer: Transfer<'c>,
    /// By offset, one more than the index of the instruction that begins there.
    starts: Vec<u32>,
    /// By offset, whether it is within an instruction.
    inside: Vec<bool>,
    insts: Vec<Instruction>,
    /// By offset and [`State::context`].
    blocks: BTreeMap<(u32, u32), Block>,
    work: BTreeSet<(u32, u32)>,
    /// The jump tables, by offset, with the number of their entries.
    tables: BTreeMap<u32, u32>,
    statistics: Option<Statistics>,
    /// By offset, whether the instruction is in the statistics.
    counted: Vec<bool>,
    /// Instructions executed.
    steps: u64,
}

impl<'c> Analysis<'c> {
    fn new(cx: &'c Context<'c>) -> Analysis<'c> {
        let len = cx.function.code.len();
        Analysis {
            cx,
            transfer: Transfer::new(cx),
            starts: vec![0; len],
            inside: vec![false; len],
            insts: Vec::with_capacity(len / 4),
            blocks: BTreeMap::new(),
            work: BTreeSet::new(),
            tables: BTreeMap::new(),
            statistics: None,
            counted: vec![false; len],
            steps: 0,
        }
    }

    fn run(&mut self) -> Result<(), Box<Fault>> {
        let cx = self.cx;
        let Function { func, entry, headers, .. } = *cx.function;
        let violation = |what: &str| Violation(Rule::Instruction, what.into());
        let located = |violation| self::located(cx, 0, &State::new(0), violation);
        let body = cx.module().body(func).ok_or_else(|| located(violation("the function is not one of the module's own")))?;
        let is_osr = matches!(entry, Entry::Osr(_));
        let operands = if is_osr || !headers.is_empty() { LoopOperands::of(cx.module(), body) } else { LoopOperands::default() };
        let first = State { untouched: true, ..branch::entry(cx, entry, &operands) };
        self.reach(0, 0, &first).map_err(located)?;
        for &(index, offset) in headers {
            let info =
                body.loops.get(index as usize).ok_or_else(|| located(violation("an entry at a loop that is not there")))?;
            let state = State { context: index + 1, ..branch::entry(cx, Entry::Osr(info.pc), &operands) };
            self.reach(0, offset, &state).map_err(located)?;
        }
        let limit = STEPS * cx.function.code.len() as u64 + STEPS;
        while let Some(at) = self.work.pop_first() {
            self.block(at)?;
            if self.steps > limit {
                let violation = Violation(Rule::Instruction, "the analysis takes too long".into());
                return Err(self::located(cx, at.0, &State::new(0), violation));
            }
        }
        Ok(())
    }

    /// Executes every block once more, with the states of the fixpoint, and counts.
    fn count(&mut self) -> Result<Statistics, Box<Fault>> {
        let bytes = self.cx.function.code.len() as u64;
        self.statistics = Some(Statistics { functions: 1, bytes, ..Statistics::default() });
        let blocks: Vec<(u32, u32)> = self.blocks.keys().copied().collect();
        for at in blocks {
            self.block(at)?;
        }
        for (&table, &count) in &self.tables {
            let end = u64::from(table) + 4 * u64::from(count);
            let overlaps = self.tables.range(table + 1..).next().is_some_and(|next| u64::from(*next.0) < end)
                || (table as usize..end as usize).any(|byte| self.starts[byte] != 0 || self.inside[byte]);
            if overlaps {
                let violation = Violation(Rule::Branch, "a jump table overlaps another one, or instructions".into());
                return Err(located(self.cx, table, &State::new(0), violation));
            }
        }
        Ok(self.statistics.take().unwrap_or_default())
    }

    /// A path leads from an instruction to this offset, with this state. Every loop has a path that leads back.
    fn reach(&mut self, from: u32, at: u32, state: &State) -> Result<(), Violation> {
        if at as usize >= self.starts.len() {
            return Err(Violation(Rule::Branch, "a branch out of the function".into()));
        }
        if self.inside[at as usize] {
            return Err(Violation(Rule::Branch, "a branch into the middle of an instruction".into()));
        }
        if state.dead {
            return Ok(());
        }
        let bytes = self.cx.frame_bytes;
        let key = (at, state.context);
        let mut others = self.blocks.range((at, 0)..=(at, u32::MAX)).peekable();
        let is_new = others.peek().is_none();
        if others.any(|(_, block)| block.state.inner != state.inner) {
            return Err(Violation(Rule::Branch, "a branch between the function and a subroutine".into()));
        }
        if let Some(block) = self.blocks.get_mut(&key) {
            let joined = block.state.join(state, at <= from && block.joins >= WIDEN, bytes);
            if joined != block.state {
                if self.statistics.is_some() {
                    return Err(Violation(Rule::Instruction, "the analysis has not come to an end".into()));
                }
                block.joins += 1;
                block.state = joined;
                self.work.insert(key);
            }
            return Ok(());
        }
        // The block before may have been executed past this place.
        if is_new
            && self.starts[at as usize] != 0
            && let Some((&(before, _), _)) = self.blocks.range(..(at, 0)).next_back()
        {
            self.work.extend(self.blocks.range((before, 0)..(at, 0)).map(|(&key, _)| key));
        }
        let joined = state.join(state, false, bytes);
        self.blocks.insert(key, Block { state: joined, joins: 0 });
        self.work.insert(key);
        Ok(())
    }

    fn decode(&mut self, at: u32) -> Result<Instruction, Violation> {
        if let Some(index) = self.starts[at as usize].checked_sub(1) {
            return Ok(self.insts[index as usize]);
        }
        let code = &self.cx.function.code[at as usize..];
        let inst = Decoder::with_ip(64, code, at.into(), DecoderOptions::NONE).decode();
        if inst.is_invalid() {
            return Err(Violation(Rule::Instruction, "no instruction".into()));
        }
        for byte in at as usize + 1..inst.next_ip() as usize {
            if self.starts[byte] != 0 {
                return Err(Violation(Rule::Instruction, "instructions overlap".into()));
            }
            self.inside[byte] = true;
        }
        if self.inside[at as usize] {
            return Err(Violation(Rule::Instruction, "instructions overlap".into()));
        }
        self.insts.push(inst);
        self.starts[at as usize] = self.insts.len() as u32;
        Ok(inst)
    }

    /// Executes the instructions from the beginning of a block to its end.
    fn block(&mut self, key: (u32, u32)) -> Result<(), Box<Fault>> {
        let mut state = self.blocks[&key].state.clone();
        let start = key.0;
        let mut at = start;
        loop {
            let cx = self.cx;
            if at as usize >= cx.function.code.len() {
                let violation = Violation(Rule::Branch, "the end of the code is reached".into());
                return Err(located(cx, at, &state, violation));
            }
            if at != start && self.blocks.range((at, 0)..=(at, u32::MAX)).next().is_some() {
                self.reach(start, at, &state).map_err(|violation| located(cx, at, &state, violation))?;
                break;
            }
            let inst = self.decode(at).map_err(|violation| located(cx, at, &state, violation))?;
            let next = match self.instruction(&mut state, &inst) {
                Ok(next) => next,
                Err(violation) => return Err(located(cx, at, &self.replay(key, at), violation)),
            };
            at = inst.next_ip() as u32;
            if !next {
                break;
            }
        }
        Ok(())
    }

    /// The state before an instruction of a block.
    fn replay(&mut self, key: (u32, u32), end: u32) -> State {
        let mut state = self.blocks[&key].state.clone();
        let mut at = key.0;
        while at < end {
            let Ok(inst) = self.decode(at) else { break };
            if self.instruction(&mut state, &inst).is_err() {
                break;
            }
            at = inst.next_ip() as u32;
        }
        state
    }

    /// Executes an instruction, and says whether the next one follows.
    fn instruction(&mut self, state: &mut State, inst: &Instruction) -> Result<bool, Violation> {
        let (cx, from, next) = (self.cx, inst.ip() as u32, inst.next_ip() as u32);
        let mut target = None;
        self.transfer.accesses.clear();
        self.steps += 1;
        let mut follows = true;
        state.untouched = match inst.flow_control() {
            FlowControl::Next => state.untouched && self.transfer.leaves_untouched(inst),
            FlowControl::Call | FlowControl::IndirectCall => false,
            _ => state.untouched,
        };
        match inst.flow_control() {
            FlowControl::Next => {
                let top = state.regs[4];
                self.division(state, inst)?;
                self.transfer.step(state, inst)?;
                if state.regs[4] != top {
                    let Some(top) = state.stack_pointer().filter(|&top| top <= 0) else {
                        return Err(Violation(Rule::Convention, "the stack pointer is not known, or above the frame".into()));
                    };
                    if top < -LARGEST_FRAME {
                        return Err(Violation(Rule::Convention, "the native frame is too large".into()));
                    }
                    state.forget(Area::Native, i32::MIN, top as i32);
                }
            }
            FlowControl::UnconditionalBranch => {
                follows = false;
                target = Some(self.direct(state, inst)?);
            }
            FlowControl::ConditionalBranch if inst.is_jcc_short_or_near() => {
                let mut taken = state.clone();
                refine(cx, &mut taken, inst.condition_code());
                refine(cx, state, negated(inst.condition_code()));
                target = Some(self.direct(&taken, inst)?);
                self.reach(from, next, state)?;
                follows = false;
            }
            FlowControl::IndirectBranch => {
                let (jumps, kind) = branch::jump(cx, state, inst, &mut self.transfer.accesses)?;
                target = Some(kind);
                if let Some((table, count)) = jumps.table {
                    let known = self.tables.entry(table).or_default();
                    *known = count.max(*known);
                }
                // Where the entries at loops part again.
                state.context = 0;
                for to in jumps.to {
                    self.reach(from, to, state)?;
                }
                follows = false;
            }
            FlowControl::Call | FlowControl::IndirectCall => {
                let (after, kind) = branch::call(cx, state, inst, &mut self.transfer.accesses)?;
                target = Some(kind);
                follows = self.after_call(state, after, next)?;
            }
            FlowControl::Return if inst.op_count() == 0 => {
                target = Some(Target::Return);
                if state.inner {
                    branch::subroutine_ends(state)?
                } else {
                    branch::ret(cx, state)?
                }
                follows = false;
            }
            FlowControl::Exception if inst.mnemonic() == Mnemonic::Ud2 => {
                if cx.trap(inst.ip() as u32).is_none() {
                    return Err(Violation(Rule::TrapSite, "`ud2` is no trap site".into()));
                }
                follows = false;
            }
            _ => return Err(Violation(Rule::Instruction, "no instruction that compiled code has".into())),
        }
        if let Some(statistics) = &mut self.statistics
            && !std::mem::replace(&mut self.counted[from as usize], true)
        {
            statistics.instructions += 1;
            for &access in &self.transfer.accesses {
                *statistics.accesses.entry(access).or_default() += 1;
            }
            if let Some(target) = target {
                *statistics.branches.entry(target).or_default() += 1;
            }
        }
        Ok(follows)
    }

    fn direct(&mut self, state: &State, inst: &Instruction) -> Result<Target, Violation> {
        if self.cx.reloc_within(inst) || inst.op0_kind() != OpKind::NearBranch64 {
            return Err(Violation(Rule::Branch, "a direct branch out of the function".into()));
        }
        let to = u32::try_from(inst.near_branch64()).unwrap_or(u32::MAX);
        // The code at offset 0 is analysed with the state of an entry, which this state is an instance of.
        if to == 0 && branch::enters_itself(self.cx, state) {
            return Ok(Target::Function);
        }
        self.reach(inst.ip() as u32, to, state)?;
        Ok(Target::Own)
    }

    /// Continues after a call; says whether the next instruction follows.
    fn after_call(&mut self, state: &mut State, after: After, next: u32) -> Result<bool, Violation> {
        match after {
            After::Quiet => Ok(true),
            After::Nowhere => Ok(false),
            After::Next | After::Landing => {
                for (offset, landing) in branch::landings(self.cx, state, next) {
                    self.reach(next, offset, &landing)?;
                }
                Ok(after == After::Next)
            }
            After::Subroutine(to) => {
                let written = self.subroutine(to)?;
                self.reach(next, to, &branch::subroutine(state))?;
                branch::after_subroutine(state, written.into_iter());
                Ok(true)
            }
        }
    }

    /// The registers that a subroutine writes.
    fn subroutine(&mut self, start: u32) -> Result<BTreeSet<usize>, Violation> {
        let (mut seen, mut work, mut written) = (BTreeSet::new(), vec![start], BTreeSet::new());
        let mut factory = InstructionInfoFactory::new();
        while let Some(at) = work.pop() {
            if at as usize >= self.starts.len() {
                return Err(Violation(Rule::Branch, "a branch out of the function".into()));
            }
            if !seen.insert(at) {
                continue;
            }
            let inst = self.decode(at)?;
            match inst.flow_control() {
                FlowControl::Next => work.push(inst.next_ip() as u32),
                FlowControl::UnconditionalBranch => work.push(inst.near_branch64() as u32),
                FlowControl::ConditionalBranch => work.extend([inst.near_branch64() as u32, inst.next_ip() as u32]),
                // A call of a helper that does not return: the analysis of the subroutine refuses all others.
                FlowControl::Return | FlowControl::Exception | FlowControl::IndirectCall => continue,
                _ => return Err(Violation(Rule::Branch, "a subroutine with a branch that is not known".into())),
            }
            let registers = factory.info(&inst).used_registers().iter();
            let writes = |access| !matches!(access, OpAccess::Read | OpAccess::CondRead | OpAccess::None | OpAccess::NoMemAccess);
            written
                .extend(registers.filter(|used| writes(used.access())).filter_map(|used| crate::access::number(used.register())));
        }
        Ok(written)
    }

    /// A division faults if the divisor is zero.
    fn division(&mut self, state: &mut State, inst: &Instruction) -> Result<(), Violation> {
        if !matches!(inst.mnemonic(), Mnemonic::Div | Mnemonic::Idiv) || self.cx.trap(inst.ip() as u32).is_some() {
            return Ok(());
        }
        let divisor = crate::access::number(inst.op0_register()).filter(|_| inst.op0_kind() == OpKind::Register);
        let value = divisor.map(|reg| state.value(state.regs[reg]));
        let wide = inst.op0_register().is_gpr64();
        if value.is_some_and(|value| value.half || value.low > 0 && (wide || value.is_short())) {
            return Ok(());
        }
        Err(Violation(Rule::TrapSite, "a division that may fault is no trap site".into()))
    }
}

fn located(cx: &Context<'_>, at: u32, state: &State, violation: Violation) -> Box<Fault> {
    let Violation(rule, what) = violation;
    let mut text = String::new();
    let mut operands = Vec::new();
    let decoded =
        Decoder::with_ip(64, &cx.function.code[(at as usize).min(cx.function.code.len())..], at.into(), DecoderOptions::NONE)
            .into_iter()
            .next();
    if let Some(inst) = decoded {
        NasmFormatter::new().format(&inst, &mut text);
        let mut factory = InstructionInfoFactory::new();
        for used in factory.info(&inst).used_registers() {
            if let Some(reg) = crate::access::number(used.register()) {
                let class = state.regs[reg];
                let value = state.values.get(class as usize);
                operands.push(format!("{:?} = {}", used.register().full_register(), describe(value)));
            }
        }
    }
    Box::new(Fault { offset: at, text, rule, what, operands: operands.join(", ") })
}

fn describe(value: Option<&crate::value::Value>) -> String {
    let Some(value) = value else { return "anything".into() };
    let mut text = if value.is_int() { format!("{:#x}..={:#x}", value.low, value.high) } else { format!("{:?}", value.base) };
    if let Some((class, shift)) = value.var {
        text += &format!(" + #{class} << {shift}");
    }
    if value.disp != 0 {
        text += &format!(" + {:#x}", value.disp);
    }
    for (bound, room) in &value.bounds {
        text += &format!(", + {room} <= {bound:?}");
    }
    text
}
