//! The contract of each stub: what its registers hold at the entry, what it calls with which arguments, and what holds where it ends.

use super::fields as f;
use super::machine::{Area, Condition, Flags, Memory, RBP, RSP, State, Symbol, Value, refuse};
use crate::fault::{Rule, Violation};
use weir_bytecode::{FuncType, ValType};
use weir_contract::stubs::{Callee, Stub, StubCode};
use weir_contract::{
    INT_ARG_REGS, INT_RESULT_REGS, OVERFLOW_SLOTS, PRESERVED_REGS, Place, Status, call_words, param_places, result_places,
    slot_words,
};

const RAX: usize = 0;
const RCX: usize = 1;
const RDX: usize = 2;
const RSI: usize = 6;
const RDI: usize = 7;
const R8: usize = 8;
const R9: usize = 9;
const R10: usize = 10;
const R11: usize = 11;
const R15: usize = 15;

/// What an `enter` stub has saved above its boundary, from the lowest address: r15 r14 r13 r12 rbx rbp, and the return address.
const SAVED: [usize; 6] = [15, 14, 13, 12, 3, 5];
/// The order of the words in the vm's record of registers at a landing: the preserved registers, then these, and the target.
const AT_LANDING: [usize; 3] = [RBP, RSP, R15];

/// A stub with its signature.
#[derive(Debug)]
pub struct Rules<'s> {
    pub stub: Stub,
    pub ty: &'s FuncType,
    pub code: &'s StubCode,
}

type Done = Result<(), Violation>;

/// The content of a register or slot after some number of calls, in all bits or in the lower half.
fn register(calls: u32, reg: usize) -> Value {
    Value::of(Symbol::Register(calls, reg as u8))
}

fn half(value: Value) -> Value {
    Value { half: true, ..value }
}

fn content(calls: u32, area: Area, offset: i64) -> Value {
    Value::of(Symbol::Content(calls, area, offset))
}

fn require(holds: bool, what: impl FnOnce() -> String) -> Done {
    if holds { Ok(()) } else { refuse(Rule::Convention, what()) }
}

impl Memory for Rules<'_> {
    fn may_access(&self, area: Area, offset: i64, bytes: i64, write: bool) -> bool {
        let field = |fields: &[i64]| bytes == 8 && fields.contains(&offset);
        let within = |words: usize| offset >= 0 && offset + bytes <= 8 * words as i64;
        let dispatch = [f::DISPATCH_CODE, f::DISPATCH_ARGS, f::DISPATCH_INSTANCE];
        match (area, write) {
            (Area::Instance, false) => {
                field(&[f::STACK, f::STORE, f::OWNER])
                    || self.stub == Stub::Host && field(&[f::HOST_CALL])
                    || self.stub == Stub::Relocate && field(&[f::MEMORY0_BASE])
            }
            (Area::Stack, false) => field(&[f::OVERFLOW, f::VALUE_SP, f::BOUNDARY, f::EXIT_FP]) || field(&dispatch),
            (Area::Stack, true) => field(&[f::BOUNDARY, f::EXIT_FP]),
            (Area::Store, false) => field(&[f::FUEL, f::EPOCH, f::WAKE_FUEL, f::WAKE_EPOCH]),
            (Area::Store, true) => field(&[f::TRAP_PC, f::TRAP_FP]),
            (Area::Epoch, false) => field(&[0]),
            (Area::Assembly, false) => self.code.assembly.is_some_and(|(_, begin)| field(&[begin.into()])),
            (Area::Overflow, _) => within(OVERFLOW_SLOTS),
            (Area::Slots, false) => within(self.slots()) || self.reads_below(offset),
            (Area::Slots, true) => within(self.slots()),
            (Area::Results, false) => offset >= -8 * self.ty.results.len() as i64 && offset + bytes <= 0,
            _ => false,
        }
    }

    fn constant(&self, number: i64) -> Value {
        match self.code.assembly {
            Some((table, _)) if self.stub == Stub::ToRust && number == table as i64 => Value::at(Area::Assembly, 0),
            _ => Value::constant(number),
        }
    }

    fn may_set_segment(&self) -> bool {
        self.stub == Stub::Relocate
    }
}

impl Rules<'_> {
    /// Words of the slots of arguments and results.
    fn slots(&self) -> usize {
        match self.stub {
            Stub::InterpreterCall(words) => usize::from(words) * self.ty.params.len().max(self.ty.results.len()),
            _ => call_words(self.ty),
        }
    }

    /// Whether a stub for the assembly may read the slot below the results, if there is none of those.
    fn reads_below(&self, offset: i64) -> bool {
        matches!(self.stub, Stub::InterpreterCall(words) if self.ty.results.is_empty() && offset == -8 * i64::from(words))
    }

    /// Whether the stub's code has the search for the boundary to which a trap returns.
    pub fn unwinds_itself(&self) -> bool {
        let throws = matches!(self.stub, Stub::Trap | Stub::Unwind | Stub::Raise | Stub::Throw | Stub::ThrowRef);
        throws || matches!(self.stub, Stub::MemoryGrow | Stub::TableGrow | Stub::NoEntry)
    }

    fn is_native_call(&self) -> bool {
        matches!(self.stub, Stub::Enter | Stub::EnterOsr | Stub::InterpreterCall(_))
    }

    /// The states at the entry.
    pub fn entries(&self) -> Vec<State> {
        let alignments: &[i64] = match self.stub {
            Stub::Poll | Stub::Tick | Stub::Raise => &[0, 8],
            Stub::InterpreterCall(_) | Stub::Trap | Stub::Unwind => &[0],
            _ => &[8],
        };
        alignments.iter().map(|&alignment| self.entry(alignment)).collect()
    }

    fn entry(&self, alignment: i64) -> State {
        let mut state = State::new(alignment);
        state.memory.insert((Area::Frame, 0), content(0, Area::Frame, 0));
        match self.stub {
            Stub::Enter | Stub::EnterOsr => {
                state.regs[RSI] = Value::at(Area::Slots, 0);
                state.regs[RDX] = Value::at(Area::Instance, 0);
                state.regs[RCX] = Value::at(Area::Stack, 0);
                state.regs[R15] = register(0, R15);
                // Whatever it is.
                state.memory.insert((Area::Stack, f::BOUNDARY), content(0, Area::Stack, f::BOUNDARY));
            }
            Stub::InterpreterCall(words) => {
                state.regs[RDI] = Value::at(Area::Slots, 8 * i64::from(words) * self.ty.params.len() as i64);
                state.regs[R8] = Value::at(Area::Stack, 0);
            }
            Stub::Resume => state.regs[RDI] = Value::at(Area::Slots, 0),
            Stub::Reenter | Stub::ReenterOsr => {
                state.memory.insert((Area::Stack, f::DISPATCH_ARGS), Value::at(Area::Slots, 0));
            }
            _ => {}
        }
        state
    }

    /// Executes a call of this address, which returns to this offset.
    pub fn call(&self, state: &mut State, target: Value, returns: u32) -> Done {
        let begins = self.code.assembly.map(|(_, begin)| content(0, Area::Assembly, begin.into()));
        if self.stub == Stub::ToRust && begins == Some(target) {
            return self.assembly(state);
        }
        require(state.is_aligned(), || "the stack pointer is not aligned at a call".into())?;
        if self.stub == Stub::Relocate {
            return self.relocated(state, target, returns);
        }
        if self.is_native_call() {
            let reg = if matches!(self.stub, Stub::InterpreterCall(_)) { RAX } else { RDI };
            require(target == register(0, reg), || "a call of something else than the code".into())?;
            return self.native(state);
        }
        if self.stub == Stub::Host {
            require(target == content(0, Area::Instance, f::HOST_CALL), || "a call of something else than the function".into())?;
            self.left(state)?;
            self.stored_arguments(state)?;
            self.passes(state, &[(RDI, Value::at(Area::Instance, 0)), (RSI, Value::at(Area::Slots, 0))])?;
            return self.after(state, &[]);
        }
        let callee =
            self.code.callees.iter().find(|callee| target == Value::constant(callee.1 as i64) && self.may_call(callee.0));
        let Some(&(callee, _)) = callee else { return refuse(Rule::Branch, "a call of an address that is not known") };
        self.hook(state, callee)
    }

    /// Whether the stub calls this.
    fn may_call(&self, callee: Callee) -> bool {
        let own = match self.stub {
            Stub::ToRust => Callee::ToRust,
            Stub::Resume => Callee::Resume,
            Stub::Poll => Callee::Poll,
            Stub::Tick => Callee::Tick,
            Stub::OsrTarget => Callee::OsrTarget,
            Stub::MemoryGrow => Callee::MemoryGrow,
            Stub::TableGrow => Callee::TableGrow,
            Stub::Throw => Callee::Throw,
            Stub::ThrowRef => Callee::ThrowRef,
            Stub::NoEntry => Callee::NoEntry,
            _ => Callee::OnUnwind,
        };
        let unwinds = matches!(self.stub, Stub::MemoryGrow | Stub::TableGrow | Stub::NoEntry);
        callee == own || unwinds && callee == Callee::OnUnwind
    }

    fn passes(&self, state: &State, arguments: &[(usize, Value)]) -> Done {
        for &(reg, value) in arguments {
            let found = state.regs[reg];
            require(found == value || half(found) == value, || format!("register {reg} has {found:?} instead of {value:?}"))?;
        }
        Ok(())
    }

    /// Checks the frame from which compiled code is left: `rbp` is its address, and the stack's context has that.
    fn left(&self, state: &mut State) -> Done {
        require(state.word(Area::Stack, f::EXIT_FP) == state.regs[RBP], || "the frame that is left is not recorded".into())?;
        self.framed(state)?;
        self.preserved(state, &PRESERVED_REGS)
    }

    /// Checks that `rbp` has the address of the caller's frame pointer, below the return address.
    fn framed(&self, state: &mut State) -> Done {
        let frame = state.regs[RBP] == Value::at(Area::Frame, -8)
            && state.word(Area::Frame, -8) == register(0, RBP)
            && state.word(Area::Frame, 0) == content(0, Area::Frame, 0);
        require(frame && state.top_of_stack()? <= -8, || "`rbp` is not the address of a frame".into())
    }

    fn preserved(&self, state: &State, regs: &[u8]) -> Done {
        let lost = regs.iter().find(|&&reg| state.regs[reg as usize] != register(0, reg.into()));
        require(lost.is_none(), || format!("register {lost:?} is not what it was at the entry"))
    }

    fn hook(&self, state: &mut State, callee: Callee) -> Done {
        let instance = (RDI, Value::at(Area::Instance, 0));
        let mut record = None;
        match callee {
            Callee::ToRust => {
                self.left(state)?;
                let after_assembly = state.calls > 0;
                let index = if after_assembly { register(state.calls, RSI) } else { half(register(0, RAX)) };
                let refused =
                    [(Condition::Carry, true), (Condition::Equal(half(register(state.calls, RAX)), Value::constant(0)), false)];
                match after_assembly {
                    true => require(refused.iter().all(|&(fact, holds)| state.knows(fact, holds)), || {
                        "the assembly has run it".into()
                    })?,
                    false => self.stored_arguments(state)?,
                }
                self.passes(state, &[instance, (RSI, index), (RDX, Value::at(Area::Slots, 0))])?;
            }
            Callee::Resume => {
                self.left(state)?;
                self.passes(state, &[instance, (RSI, register(0, R11)), (RDX, Value::at(Area::Slots, 0))])?;
            }
            Callee::OnUnwind => {
                let (pc, fp) = match self.stub {
                    Stub::Trap => (register(0, RSI), register(0, RDX)),
                    Stub::Raise => (content(0, Area::Frame, 0).add(-1), register(0, RBP)),
                    Stub::Unwind => (Value::constant(0), register(0, RBP)),
                    _ => (Value::constant(0), Value::at(Area::Frame, -8)),
                };
                let failed = Condition::Equal(half(register(1, RDX)), Value::constant(0));
                let after_hook = match self.stub {
                    Stub::NoEntry => state.calls == 1,
                    Stub::MemoryGrow | Stub::TableGrow => state.calls == 1 && state.knows(failed, false),
                    _ => state.calls == 0,
                };
                require(after_hook, || "it unwinds for no reason".into())?;
                let first = if self.stub == Stub::Trap { (RDI, register(0, RDI)) } else { instance };
                self.passes(state, &[first, (RSI, pc), (RDX, fp), (RCX, state.regs[RSP])])?;
                if self.stub == Stub::Raise {
                    let stored = state.word(Area::Store, f::TRAP_PC) == pc && state.word(Area::Store, f::TRAP_FP) == fp;
                    require(stored, || "the place of the trap is not stored".into())?;
                }
                record = Some(state.top_of_stack()?);
            }
            Callee::Throw | Callee::ThrowRef => {
                self.left(state)?;
                self.passes(state, &[(RDI, register(0, RDI)), (RSI, register(0, RSI)), (RDX, state.regs[RSP])])?;
                record = Some(state.top_of_stack()?);
            }
            Callee::Poll => {
                self.left(state)?;
                self.passes(state, &[instance])?;
            }
            Callee::Tick => {
                self.left(state)?;
                self.passes(state, &[instance, (RSI, register(0, R11)), (RDX, register(0, RBP))])?;
            }
            Callee::OsrTarget => {
                self.left(state)?;
                self.passes(state, &[(RDI, register(0, RDI)), (RSI, register(0, RSI)), (RDX, register(0, RBP))])?;
            }
            Callee::MemoryGrow | Callee::TableGrow => {
                self.left(state)?;
                self.passes(state, &[RDI, RSI, RDX, RCX].map(|reg| (reg, register(0, reg))))?;
            }
            Callee::NoEntry => {
                self.left(state)?;
                self.passes(state, &[instance])?;
            }
            Callee::Unwind => return refuse(Rule::Branch, "unwinding is not called"),
        }
        if let Some(record) = record {
            self.recorded(state, record)?;
            let words: Vec<i64> = (0..8).map(|word| record + 8 * word).collect();
            return self.after(state, &words);
        }
        self.after(state, &[])
    }

    /// Checks the registers that are recorded for a landing.
    fn recorded(&self, state: &mut State, at: i64) -> Done {
        let regs = PRESERVED_REGS.iter().map(|&reg| usize::from(reg)).chain([RBP, R15]);
        for (word, reg) in [0, 1, 2, 3, 4, 6].into_iter().zip(regs) {
            let found = state.word(Area::Frame, at + 8 * word);
            let is_one = found == state.regs[reg] && (reg == RBP || reg == R15 || found == register(0, reg));
            require(is_one, || format!("register {reg} is not recorded"))?;
        }
        require(at + 64 <= state.top, || "there is no room for the registers".into())
    }

    /// The state after a function of the vm or the host, which writes these words of the frame.
    fn after(&self, state: &mut State, written: &[i64]) -> Done {
        let top = state.top_of_stack()?;
        state.calls += 1;
        for reg in [RAX, RCX, RDX, RSI, RDI, R8, R9, R10, R11] {
            state.forget(reg);
        }
        (0..16).for_each(|reg| state.forget_vector(reg));
        state.memory.retain(|&(area, at), _| match area {
            Area::Frame => at >= top && !written.contains(&at),
            Area::Instance | Area::Boundary(_) | Area::Assembly => true,
            _ => false,
        });
        state.flags = Flags::Unknown;
        Ok(())
    }

    /// A call of native code.
    fn native(&self, state: &mut State) -> Done {
        require(state.calls == 0, || "the code is called twice".into())?;
        require(state.regs[R15] == Value::at(Area::Instance, 0), || "the pinned register does not have the instance".into())?;
        if self.stub == Stub::EnterOsr {
            self.passes(state, &[(RDI, Value::at(Area::Slots, 0))])?;
        } else {
            self.loaded_arguments(state)?;
        }
        let boundary = state.regs[RSP];
        if !matches!(self.stub, Stub::InterpreterCall(_)) {
            self.framed(state)?;
            let top = state.top_of_stack()?;
            let saved =
                SAVED.iter().enumerate().all(|(i, &reg)| state.word(Area::Frame, top + 24 + 8 * i as i64) == register(0, reg));
            let record = state.word(Area::Frame, top + f::PREV) == content(0, Area::Stack, f::BOUNDARY)
                && state.word(Area::Frame, top + f::BOUNDARY_STACK) == Value::at(Area::Stack, 0)
                && state.word(Area::Frame, top + f::BOUNDARY_EXIT) == content(0, Area::Stack, f::EXIT_FP);
            let linked = state.word(Area::Stack, f::BOUNDARY) == boundary;
            require(saved && record && linked && top == -72, || "there is no boundary like that to which a trap returns".into())?;
        }
        self.after(state, &[])?;
        state.forget(R15);
        // In `InterpreterCall`, the stack's context is found through the instance: the callee's or that of a tail call.
        if matches!(self.stub, Stub::InterpreterCall(_)) {
            state.regs[R15] = Value::at(Area::Instance, 0);
        }
        state.memory.insert((Area::Stack, f::BOUNDARY), boundary);
        Ok(())
    }

    /// A call of the interpreter's assembly.
    fn assembly(&self, state: &mut State) -> Done {
        self.stored_arguments(state)?;
        let header = i64::from(weir_contract::FRAME_HEADER);
        let operands = 8 * (self.ty.params.len() as i64 + header);
        let owner = content(0, Area::Instance, f::OWNER);
        self.passes(
            state,
            &[
                (3, Value::at(Area::Slots, 0)),
                (RDI, Value::at(Area::Slots, operands)),
                (R10, Value::at(Area::Stack, 0)),
                (R11, owner),
                (R15, Value::at(Area::Assembly, 0)),
                (RAX, register(0, RAX)),
            ],
        )?;
        let top = state.top_of_stack()?;
        // The assembly finds what the stub has pushed there.
        let pushed = state.word(Area::Frame, top) == register(0, 3) && state.word(Area::Frame, top + 8) == register(0, RBP);
        require(pushed && top == -16, || "the registers that the assembly changes are not pushed".into())?;
        self.preserved(state, &[12, 13, 14])?;
        self.after(state, &[])?;
        state.regs[RDI] = Value::at(Area::Results, 0);
        state.regs[R15] = Value::at(Area::Instance, 0);
        state.forget(3);
        state.forget(RBP);
        state.flags = Flags::Assembly;
        Ok(())
    }

    /// The words that are those of a value in its slot, with their indices.
    fn words(ty: ValType) -> std::ops::Range<i64> {
        0..if ty == ValType::V128 { 2 } else { 1 }
    }

    /// Checks that the values that native code gave are in the slots.
    fn stored(&self, state: &mut State, types: &[ValType], places: Vec<Place>, regs: &[u8], slot: i64) -> Done {
        let calls = state.calls;
        for (i, (&ty, place)) in types.iter().zip(places).enumerate() {
            for word in Self::words(ty) {
                let expected = match place {
                    Place::Int(n) => register(calls, regs[n as usize].into()),
                    Place::Float(n) => Value::of(Symbol::Vector(calls, n, word as u8)),
                    Place::Overflow(n) => content(calls, Area::Overflow, 8 * (i64::from(n) + word)),
                };
                let found = state.word(Area::Slots, 8 * (slot * i as i64 + word));
                require(found == expected, || format!("slot {i} has {found:?} instead of {expected:?}"))?;
            }
        }
        Ok(())
    }

    /// Checks that the values in the slots of an area, whose last ends at `end`, are in the places where native code expects them. The last
    /// one may also be what `rax` held.
    fn loaded(
        &self,
        state: &mut State,
        types: &[ValType],
        places: Vec<Place>,
        regs: &[u8],
        (area, first, slot): (Area, i64, i64),
    ) -> Done {
        let calls = state.calls;
        for (i, (&ty, place)) in types.iter().zip(places).enumerate() {
            for word in Self::words(ty) {
                let found = match place {
                    Place::Int(n) => state.regs[regs[n as usize] as usize],
                    Place::Float(n) => state.vectors[n as usize][word as usize],
                    Place::Overflow(n) => state.word(Area::Overflow, 8 * (i64::from(n) + word)),
                };
                let expected = content(calls, area, first + 8 * (slot * i as i64 + word));
                let in_rax = area == Area::Results && i + 1 == types.len() && found == register(calls, RAX);
                require(found == expected || in_rax, || format!("{place:?} has {found:?} instead of {expected:?}"))?;
            }
        }
        Ok(())
    }

    fn slot(&self, types: &[ValType]) -> i64 {
        match self.stub {
            Stub::InterpreterCall(words) => words.into(),
            _ => slot_words(types) as i64,
        }
    }

    fn stored_arguments(&self, state: &mut State) -> Done {
        let types = &self.ty.params;
        self.stored(state, types, param_places(types).collect(), &INT_ARG_REGS, self.slot(types))
    }

    fn loaded_arguments(&self, state: &mut State) -> Done {
        let types = &self.ty.params;
        self.loaded(state, types, param_places(types).collect(), &INT_ARG_REGS, (Area::Slots, 0, self.slot(types)))
    }

    fn stored_results(&self, state: &mut State) -> Done {
        let types = &self.ty.results;
        self.stored(state, types, result_places(types).collect(), &INT_RESULT_REGS, self.slot(types))
    }

    fn loaded_results(&self, state: &mut State, area: Area) -> Done {
        let types = &self.ty.results;
        let slot = self.slot(types);
        let first = if area == Area::Results { -8 * slot * types.len() as i64 } else { 0 };
        self.loaded(state, types, result_places(types).collect(), &INT_RESULT_REGS, (area, first, slot))
    }

    /// Whether the stub's caller is a function that was called by this stub, of which the vm knows the return address.
    fn is_in_relocation(&self) -> Condition {
        let returns = Value::of(Symbol::Code).add(self.code.relocated.into());
        Condition::Equal(content(0, Area::Frame, 0), returns)
    }

    /// Checks that the function gets what it was called with, and the base of `gs` that its instance needs.
    fn enters_again(&self, state: &State, target: Value) -> Done {
        require(target == register(0, R10), || "something else than the function is entered".into())?;
        let base = content(0, Area::Instance, f::MEMORY0_BASE);
        match state.segment == base {
            true => {}
            false => return refuse(Rule::Segment, "the base of `gs` is not that of memory 0"),
        }
        require(state.regs[R15] == Value::at(Area::Instance, 0), || "the pinned register does not have the instance".into())?;
        self.preserved(state, &PRESERVED_REGS)?;
        self.preserved(state, &INT_ARG_REGS)?;
        self.passes(state, &[(R11, register(0, R11))])?;
        require(has_vectors(state, 0), || "a vector register is not what it was at the entry".into())
    }

    /// Executes the call of the function whose caller has another base of `gs`.
    fn relocated(&self, state: &mut State, target: Value, returns: u32) -> Done {
        require(state.calls == 0, || "the function is called twice".into())?;
        self.enters_again(state, target)?;
        self.framed(state)?;
        require(state.knows(self.is_in_relocation(), false), || "a function that was tail-called gets another frame".into())?;
        require(returns == self.code.relocated, || "the vm does not know the return address".into())?;
        // The vm reads it where it removes the frame.
        let saved = state.word(Area::Frame, -16) == Value::of(Symbol::Segment) && state.top_of_stack()? <= -16;
        require(saved, || "the base of `gs` is not saved below the frame pointer".into())?;
        self.after(state, &[])?;
        // It may be that of another instance.
        state.forget(R15);
        Ok(())
    }

    /// Checks the return from the function that was called again.
    fn leaves_relocation(&self, state: &mut State) -> Done {
        require(state.calls == 1, || "nothing was called".into())?;
        self.popped(state)?;
        let results = INT_RESULT_REGS.iter().map(|&reg| usize::from(reg)).chain([R15]);
        for reg in results {
            require(state.regs[reg] == register(1, reg), || format!("register {reg} is not what the function left there"))?;
        }
        require(has_vectors(state, 1), || "a vector register is not what the function left there".into())?;
        match state.segment == Value::of(Symbol::Segment) {
            true => Ok(()),
            false => refuse(Rule::Segment, "the base of `gs` is not what it was at the entry"),
        }
    }

    /// Checks a return.
    pub fn ret(&self, state: &mut State) -> Done {
        if self.stub == Stub::Relocate {
            return self.leaves_relocation(state);
        }
        if let Some((Area::Boundary(n), at)) = state.regs[RSP].place() {
            return self.unwound(state, n, at);
        }
        require(state.regs[RSP] == Value::at(Area::Frame, 0), || "the stack pointer is not what it was at the entry".into())?;
        require(state.word(Area::Frame, 0) == content(0, Area::Frame, 0), || {
            "the return address is not that of the caller".into()
        })?;
        // The assembly has saved `r13`, and the other registers are those of a caller that preserves them.
        let is_kept = |reg: &u8| *reg != 13 || !matches!(self.stub, Stub::InterpreterCall(_));
        let kept: Vec<u8> = PRESERVED_REGS.into_iter().chain([RBP as u8]).filter(is_kept).collect();
        self.preserved(state, &kept)?;
        let status = |calls: u32, status: Status| Condition::Equal(half(register(calls, RAX)), Value::constant(status as i64));
        let returned = |state: &State| state.knows(status(state.calls, Status::Return), true) || status_is_tested(state);
        require(state.calls > 0 || self.stub == Stub::Poll, || "nothing was called".into())?;
        if !self.is_native_call() {
            require(state.regs[R15] == Value::at(Area::Instance, 0), || "the pinned register does not have the instance".into())?;
        }
        match self.stub {
            Stub::Enter | Stub::EnterOsr => {
                self.preserved(state, &[R15 as u8])?;
                require(state.regs[RAX] == Value::constant(Status::Return as i64), || "no status".into())?;
                let unlinked = state.word(Area::Stack, f::BOUNDARY) == content(0, Area::Stack, f::BOUNDARY)
                    && state.word(Area::Stack, f::EXIT_FP) == content(0, Area::Stack, f::EXIT_FP);
                require(unlinked, || "the boundary is not unlinked".into())?;
                self.stored_results(state)
            }
            Stub::InterpreterCall(words) => {
                let end = 8 * i64::from(words) * self.ty.results.len() as i64;
                self.passes(state, &[(RDI, Value::at(Area::Slots, end))])?;
                let last = state.word(Area::Slots, end - 8 * i64::from(words));
                require(state.regs[RAX] == last, || "`rax` does not have the last result".into())?;
                self.stored_results(state)
            }
            Stub::Host | Stub::Resume => {
                require(returned(state), || "the function has not returned".into())?;
                self.loaded_results(state, Area::Slots)
            }
            Stub::ToRust if state.knows(Condition::Carry, false) => self.loaded_results(state, Area::Results),
            Stub::ToRust => {
                require(returned(state), || "the function has not returned".into())?;
                self.loaded_results(state, Area::Slots)
            }
            Stub::Poll | Stub::Tick => {
                for reg in (0..16).filter(|&reg| !matches!(reg, RAX | RSP | R15)) {
                    self.preserved(state, &[reg as u8])?;
                }
                require(has_vectors(state, 0), || "a vector register is not what it was at the entry".into())?;
                let store = |field| content(0, Area::Store, field);
                let awake = [
                    Condition::Greater(store(f::FUEL), store(f::WAKE_FUEL)),
                    Condition::Below(content(0, Area::Epoch, 0), store(f::WAKE_EPOCH)),
                ];
                let goes_on = awake.into_iter().all(|condition| state.knows(condition, true));
                let quick = goes_on
                    && self.stub == Stub::Poll
                    && state.calls == 0
                    && state.regs[RAX] == Value::constant(Status::Return as i64);
                require(quick || state.calls == 1 && state.regs[RAX] == register(1, RAX), || "no result".into())
            }
            Stub::OsrTarget => require(state.calls == 1 && state.regs[RAX] == register(1, RAX), || "no result".into()),
            Stub::MemoryGrow | Stub::TableGrow => {
                let grown = Condition::Equal(half(register(1, RDX)), Value::constant(0));
                require(state.calls == 1 && state.knows(grown, true), || "the status is not tested".into())?;
                require(state.regs[RAX] == register(1, RAX), || "no result".into())
            }
            _ => refuse(Rule::Branch, "a stub that does not return"),
        }
    }

    /// Checks the return to the Rust code around a boundary.
    fn unwound(&self, state: &mut State, n: u32, at: i64) -> Done {
        let own = Condition::Equal(content(state.calls, Area::Boundary(n), f::BOUNDARY_STACK), Value::at(Area::Stack, 0));
        require(state.knows(own, true), || "the boundary is not known to be of the stack".into())?;
        require(at == 72, || "the stack pointer is not that of the boundary's caller".into())?;
        let uncaught = Condition::Equal(half(register(state.calls, RAX)), Value::constant(0));
        require(state.calls > 0 && state.knows(uncaught, true), || "the exception may be caught".into())?;
        require(state.regs[RAX] == Value::constant(Status::Trap as i64), || "no status".into())?;
        for (i, &reg) in SAVED.iter().enumerate() {
            let saved = content(state.calls, Area::Boundary(n), 24 + 8 * i as i64);
            require(state.regs[reg] == saved, || format!("register {reg} is not that of the boundary's caller"))?;
        }
        let unlinked = state.word(Area::Stack, f::BOUNDARY) == Value::at(Area::Boundary(n + 1), 0)
            && state.word(Area::Stack, f::EXIT_FP) == content(state.calls, Area::Boundary(n), f::BOUNDARY_EXIT);
        require(unlinked, || "the boundary is not unlinked".into())
    }

    /// Checks a jump out of the code.
    pub fn jump(&self, state: &mut State, target: Value) -> Done {
        let is_unwind = |callee: &&(Callee, usize)| callee.0 == Callee::Unwind && target == Value::constant(callee.1 as i64);
        if matches!(self.stub, Stub::Host | Stub::ToRust | Stub::Resume)
            && self.code.callees.iter().any(|callee| is_unwind(&callee))
        {
            return self.unwinds(state);
        }
        match self.stub {
            Stub::Relocate => {
                require(state.calls == 0 && state.knows(self.is_in_relocation(), true), || {
                    "a function whose caller needs the base of `gs` is not called".into()
                })?;
                self.enters_again(state, target)?;
                self.popped(state)
            }
            Stub::ToRust | Stub::Resume => {
                require(target == register(state.calls, RDX), || "a jump to something else than the outcome's target".into())?;
                let dispatches = Condition::Equal(half(register(state.calls, RAX)), Value::constant(Status::Dispatch as i64));
                require(state.calls > 0 && state.knows(dispatches, true), || "the outcome is not known to dispatch".into())?;
                self.popped(state)?;
                require(state.regs[R15] == Value::at(Area::Instance, 0), || "the pinned register has no instance".into())
            }
            Stub::Reenter | Stub::ReenterOsr => {
                require(target == content(0, Area::Stack, f::DISPATCH_CODE), || "a jump to something else than the code".into())?;
                self.passes(state, &[(R15, content(0, Area::Stack, f::DISPATCH_INSTANCE))])?;
                self.popped(state)?;
                match self.stub {
                    Stub::ReenterOsr => self.passes(state, &[(RDI, Value::at(Area::Slots, 0))]),
                    _ => self.loaded_arguments(state),
                }
            }
            _ => self.lands(state, target),
        }
    }

    /// Checks that the stub's frame is gone.
    fn popped(&self, state: &mut State) -> Done {
        let gone = state.regs[RSP] == Value::at(Area::Frame, 0) && state.word(Area::Frame, 0) == content(0, Area::Frame, 0);
        require(gone, || "the stack pointer is not what it was at the entry".into())?;
        self.preserved(state, &PRESERVED_REGS)?;
        self.preserved(state, &[RBP as u8])
    }

    /// Checks a jump to the stub that unwinds.
    fn unwinds(&self, state: &mut State) -> Done {
        let status = |status: Status| Condition::Equal(half(register(state.calls, RAX)), Value::constant(status as i64));
        let abnormal = state.calls > 0
            && state.knows(status(Status::Return), false)
            && (self.stub == Stub::Host || state.knows(status(Status::Dispatch), false));
        require(abnormal, || "the status is not known to be a trap".into())?;
        require(state.regs[R15] == Value::at(Area::Instance, 0), || "the pinned register does not have the instance".into())?;
        require(state.is_aligned(), || "the stack pointer is not aligned".into())?;
        self.framed(state)?;
        self.preserved(state, &PRESERVED_REGS)
    }

    /// Checks a jump to the landing of an exception.
    fn lands(&self, state: &mut State, target: Value) -> Done {
        let catches = Condition::Equal(half(register(state.calls, RAX)), Value::constant(0));
        require(state.calls > 0 && state.knows(catches, false), || "nothing is known to catch the exception".into())?;
        let Symbol::Content(calls, Area::Frame, at) = target.symbol else {
            return refuse(Rule::Branch, "a jump to an address that is not known");
        };
        let record = at - 56;
        let regs = PRESERVED_REGS.iter().map(|&reg| usize::from(reg)).chain(AT_LANDING);
        for (i, reg) in regs.enumerate() {
            let expected = content(calls, Area::Frame, record + 8 * i as i64);
            let found = state.regs[reg];
            require(found == expected && calls == state.calls, || format!("register {reg} is not that of the landing"))?;
        }
        Ok(())
    }
}

/// Whether all vector registers hold what they did after this number of calls.
fn has_vectors(state: &State, calls: u32) -> bool {
    (0..16).all(|reg| state.vectors[reg] == [0, 1].map(|half| Value::of(Symbol::Vector(calls, reg as u8, half))))
}

/// Whether the function's status was found to be that of a return, after the interpreter's assembly has run it.
fn status_is_tested(state: &State) -> bool {
    let returned = Condition::Equal(half(register(state.calls, RAX)), Value::constant(0));
    state.knows(Condition::Carry, true) && state.knows(returned, true)
}
