//! The rules for branches: where they lead, and what the code there expects.

use crate::access::{Kind, Loaded, access, address, number};
use crate::contract::Context;
use crate::fault::{Rule, Violation};
use crate::operands::LoopOperands;
use crate::state::{Area, Flags, State};
use crate::value::{Base, NONE, Value};
use iced_x86::{Instruction, OpKind};
use std::collections::HashMap;
use weir_bytecode::sidetable::{TryRegion, region_at};
use weir_bytecode::types::{HeapType, RefType};
use weir_bytecode::{FuncType, ValType};
use weir_contract::code::{Backend, Landing};
use weir_contract::{
    Entry, Helper, INT_ARG_REGS, INT_RESULT_REGS, NO_LOOP, PRESERVED_REGS, Place, param_places, result_places, slot_words,
};

const RSP: usize = 4;
const RBP: usize = 5;
const RDI: usize = 7;
const R10: usize = 10;
const R11: usize = 11;
const R15: usize = 15;

/// What a branch leads to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Target {
    /// An instruction of the function.
    Own,
    /// A function of the module, through its cell or, itself, directly.
    Function,
    /// A table's element or a reference, after its checks.
    Reference,
    /// A helper.
    Helper,
    /// A jump table.
    Table,
    /// Where a helper lets the code continue.
    Continue,
    /// The caller.
    Return,
    /// A subroutine of the function.
    Subroutine,
}

/// Where a call continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum After {
    /// At the next instruction, and maybe at landings.
    Next,
    /// At the next instruction: nothing is thrown.
    Quiet,
    /// Only at landings.
    Landing,
    /// Nowhere.
    Nowhere,
    /// At this offset, and after its return at the next instruction.
    Subroutine(u32),
}

/// The possible offsets after a jump; none if it leaves the function.
#[derive(Clone, Default, Debug)]
pub struct Jumps {
    /// The offsets.
    pub to: Vec<u32>,
    /// The offset and the number of entries of the jump table that it uses.
    pub table: Option<(u32, u32)>,
}

fn refuse<T>(rule: Rule, what: impl Into<String>) -> Result<T, Violation> {
    Err(Violation(rule, what.into()))
}

/// The address to which a call or an indirect jump leads.
fn target(cx: &Context<'_>, state: &mut State, inst: &Instruction) -> Result<(Value, Option<Kind>), Violation> {
    match inst.op0_kind() {
        OpKind::Register => {
            let Some(n) = number(inst.op0_register()) else { return refuse(Rule::Branch, "no address") };
            let class = state.reg(n);
            Ok((state.value(class), None))
        }
        OpKind::Memory => {
            let at = address(cx, state, inst)?;
            let access = access(cx, state, inst, &at, 8, None)?;
            let value = match access.loaded {
                Loaded::Class(class) => state.value(class),
                Loaded::Value(value) => value,
            };
            Ok((value, Some(access.kind)))
        }
        _ => refuse(Rule::Branch, "a branch of a kind that is not known"),
    }
}

/// The state in which code is entered.
pub fn entry(cx: &Context<'_>, entry: Entry, operands: &LoopOperands) -> State {
    let osr = matches!(entry, Entry::Osr(_));
    let mut state = State::new(if osr { i64::MAX } else { crate::contract::RESERVE });
    for reg in PRESERVED_REGS.into_iter().chain([RBP as u8]) {
        state.set(reg.into(), Value::at(Base::Saved(reg)));
    }
    state.set(R15, Value::at(Base::Instance));
    state.set(RSP, Value::at(Base::Frame));
    state.value_sp = state.class(Value::at(Base::ValueSp));
    if let Entry::Osr(pc) = entry {
        state.set(RDI, Value::at(Base::Given));
        for &(operand, ty) in operands.at(pc) {
            let class = state.class(Context::typed(ty));
            state.write(Area::Frame, cx.operand(operand.into()) as i32, 8, Some(class));
        }
        return state;
    }
    let params = &cx.module().func_type(cx.function.func).params;
    define(&mut state, params, param_places(params), &INT_ARG_REGS);
    state
}

/// Gives places the values that their types allow.
fn define(state: &mut State, types: &[ValType], places: impl Iterator<Item = Place>, regs: &[u8]) {
    for (&ty, place) in types.iter().zip(places) {
        let value = Context::typed(ty);
        if value.is_any() {
            continue;
        }
        match place {
            Place::Int(n) => state.set(regs[n as usize].into(), value),
            Place::Overflow(slot) => {
                let class = state.class(value);
                state.write(Area::Overflow, 8 * slot as i32, 8, Some(class));
            }
            Place::Float(_) => {}
        }
    }
}

/// Checks that places have values of their types.
fn passes(
    cx: &Context<'_>,
    state: &State,
    types: &[ValType],
    places: impl Iterator<Item = Place>,
    regs: &[u8],
) -> Result<(), Violation> {
    for (&ty, place) in types.iter().zip(places) {
        let class = match place {
            Place::Int(n) => state.regs[regs[n as usize] as usize],
            Place::Overflow(slot) => state.slot(Area::Overflow, 8 * slot as i32).unwrap_or(NONE),
            Place::Float(_) => continue,
        };
        let value = state.value(class);
        if let Err(what) = cx.is_of(ty, &value) {
            return refuse(Rule::Convention, format!("a value of type {ty:?} in {place:?}: {what}"));
        }
    }
    Ok(())
}

/// Checks what the contract says about a call that may run guest code.
fn may_call(cx: &Context<'_>, state: &State) -> Result<(), Violation> {
    if state.inner {
        return refuse(Rule::Branch, "a subroutine calls something");
    }
    let Some(top) = state.stack_pointer() else { return refuse(Rule::Convention, "the stack pointer is not known") };
    if (top + 8) % 16 != 0 {
        return refuse(Rule::Convention, "the stack pointer is not aligned at a call");
    }
    if !state.checked {
        return refuse(Rule::Convention, "the stack's limit was not checked before a call");
    }
    let value_sp = state.value(state.value_sp);
    if cx.function.backend == Backend::Baseline && value_sp.base == Base::ValueSp && value_sp.fixed() == Some(0) {
        return refuse(Rule::Convention, "`value_sp` is not above the frame at a call");
    }
    Ok(())
}

/// Checks that the caller's frame is back.
fn has_left(state: &State) -> Result<(), Violation> {
    if state.stack_pointer() != Some(0) {
        return refuse(Rule::Convention, "the stack pointer is not what it was at the entry");
    }
    for reg in PRESERVED_REGS.into_iter().chain([RBP as u8]) {
        if !state.value(state.regs[reg as usize]).is(Base::Saved(reg)) {
            return refuse(Rule::Convention, format!("register {reg} is not what it was at the entry"));
        }
    }
    let value_sp = state.value(state.value_sp);
    if value_sp.base != Base::ValueSp || value_sp.fixed() != Some(0) {
        return refuse(Rule::Convention, "`value_sp` is not what it was at the entry");
    }
    Ok(())
}

fn has_instance(state: &State) -> Result<(), Violation> {
    match state.value(state.regs[R15]).is(Base::Instance) {
        true => Ok(()),
        false => refuse(Rule::Convention, "the pinned register does not have the instance"),
    }
}

/// The callee of a call or a tail call.
struct Callee<'m> {
    ty: &'m FuncType,
    kind: Target,
    /// Whether it is a function of this instance.
    own: bool,
}

/// The callee at an address, after the checks of what it is called with.
fn callee<'m>(cx: &Context<'m>, state: &State, target: &Value) -> Result<Option<Callee<'m>>, Violation> {
    let module = cx.module();
    let callee = match target.base {
        Base::Code(func) if target.fixed() == Some(0) => {
            has_instance(state)?;
            Callee { ty: module.func_type(func), kind: Target::Function, own: true }
        }
        Base::EntryOf(found) if target.fixed() == Some(0) => {
            let element = state.value(found);
            let own = matches!(element.base, Base::Table(table) if module.own_elements(table).is_some());
            let instance = state.value(state.regs[R15]);
            if found == NONE || !(instance.is(Base::InstanceOf(found)) || own && instance.is(Base::Instance)) {
                return refuse(Rule::Branch, "the pinned register does not have the instance of the function that is called");
            }
            let ty = match (&element.base, element.sig) {
                (Base::Table(_), Some(ty)) => ty,
                (Base::Table(_), None) => return refuse(Rule::Branch, "the signature of the table's element was not checked"),
                (&Base::Reference(HeapType::Concrete(ty), false), _) => ty,
                (Base::Reference(..), _) => return refuse(Rule::Branch, "the reference may be null, or its type is not known"),
                _ => return refuse(Rule::Branch, "the entry of something that is no function"),
            };
            Callee { ty: &module.types[ty as usize], kind: Target::Reference, own }
        }
        _ => return Ok(None),
    };
    passes(cx, state, &callee.ty.params, param_places(&callee.ty.params), &INT_ARG_REGS)?;
    Ok(Some(callee))
}

/// Destroys what a call of this convention does not preserve.
fn clobber(state: &mut State) {
    for reg in [0, 1, 2, 6, 7, 8, 9, 10, 11] {
        state.regs[reg] = NONE;
    }
    state.xmms = [NONE; 16];
    state.after_foreign_code();
}

/// Executes a call, up to its return.
pub fn call(
    cx: &Context<'_>,
    state: &mut State,
    inst: &Instruction,
    accesses: &mut Vec<(Kind, bool)>,
) -> Result<(After, Target), Violation> {
    let own = &cx.module().func_type(cx.function.func);
    if inst.op0_kind() == OpKind::NearBranch64 {
        if cx.reloc_within(inst) {
            return refuse(Rule::Branch, "a direct call of another function");
        }
        if inst.near_branch64() == 0 && !cx.is_osr() {
            may_call(cx, state)?;
            has_instance(state)?;
            passes(cx, state, &own.params, param_places(&own.params), &INT_ARG_REGS)?;
            returned(cx, state, own, true);
            return Ok((After::Next, Target::Function));
        }
        if state.inner {
            return refuse(Rule::Branch, "a subroutine calls something");
        }
        has_instance(state)?;
        return Ok((After::Subroutine(inst.near_branch64() as u32), Target::Subroutine));
    }
    let (target, kind) = target(cx, state, inst)?;
    accesses.extend(kind.map(|kind| (kind, false)));
    if let (Base::Helper(index), Some(0)) = (&target.base, target.fixed()) {
        return Ok((helper(cx, state, *index)?, Target::Helper));
    }
    may_call(cx, state)?;
    let Some(Callee { ty, kind, own }) = callee(cx, state, &target)? else {
        return refuse(Rule::Branch, "a call of an address that is not known");
    };
    returned(cx, state, ty, own);
    Ok((After::Next, kind))
}

/// The state after a call of a function of this type.
fn returned(cx: &Context<'_>, state: &mut State, ty: &FuncType, own: bool) {
    clobber(state);
    if !own || cx.module().effects.foreign_tail_calls {
        state.regs[R15] = NONE;
    }
    define(state, &ty.results, result_places(&ty.results), &INT_RESULT_REGS);
}

fn helper(cx: &Context<'_>, state: &mut State, index: u32) -> Result<After, Violation> {
    let helper = Helper::ALL[index as usize];
    has_instance(state)?;
    match helper {
        Helper::Relocate => return refuse(Rule::Segment, "the helper that changes the base of `gs` is called, not jumped to"),
        Helper::Raise => {
            return Ok(After::Nowhere);
        }
        // The host can change and move tables, and the caller of a subroutine keeps its facts about them.
        Helper::Poll | Helper::Tick if state.inner => return refuse(Rule::Branch, "a subroutine calls the host"),
        Helper::Poll => {
            state.regs[0] = NONE;
            state.after_foreign_code();
            return Ok(After::Quiet);
        }
        Helper::Tick => {
            state.set(0, Value::at(Base::Continue(true)));
            let slots = std::mem::take(&mut state.slots);
            state.after_foreign_code();
            state.slots = slots;
            return Ok(After::Quiet);
        }
        _ => {}
    }
    may_call(cx, state)?;
    if !state.value(state.regs[RDI]).is(Base::Instance) {
        return refuse(Rule::Convention, "the first argument of a helper is not the instance");
    }
    let second = state.value(state.regs[6]);
    let reference = match helper {
        Helper::RefFunc => {
            let func = second.known().filter(|&func| func < cx.module().funcs.len() as u64);
            let Some(func) = func else { return refuse(Rule::Convention, "`ref.func` of a function that is not known") };
            Some(Value::at(Base::Reference(HeapType::Concrete(cx.module().funcs[func as usize]), false)))
        }
        Helper::OsrTarget => Some(Value::at(Base::Continue(true))),
        Helper::ThrowRef => {
            let exception = ValType::Ref(RefType { nullable: false, heap: HeapType::Exn });
            cx.is_of(exception, &second).map_err(|what| Violation(Rule::Convention, format!("an exception: {what}")))?;
            None
        }
        Helper::TableSet | Helper::TableFill | Helper::TableGrow => {
            let index = second.known().and_then(|index| cx.module().tables.get(index as usize));
            let Some(table) = index else { return refuse(Rule::Convention, "an operation on a table that is not known") };
            let reg = if helper == Helper::TableGrow { 2 } else { 1 };
            let element = state.value(state.regs[reg]);
            let what = cx.is_of(ValType::Ref(table.ty.element), &element);
            what.map_err(|what| Violation(Rule::Convention, format!("an element of the table: {what}")))?;
            None
        }
        Helper::Throw => {
            let tag = second.known().map(|at| at as u32).filter(|&tag| (tag as usize) < cx.module().tags.len());
            let Some(tag) = tag else { return refuse(Rule::Convention, "a tag that is not known") };
            let types = &cx.module().tag_type(tag).params;
            let words = slot_words(types) as u32;
            passes(cx, state, types, (0..types.len() as u32).map(|i| Place::Overflow(i * words)), &[])?;
            None
        }
        _ => None,
    };
    clobber(state);
    if let Some(reference) = reference {
        state.set(0, reference);
    }
    Ok(match helper {
        Helper::Throw | Helper::ThrowRef => After::Landing,
        // No other helper throws.
        _ => After::Quiet,
    })
}

/// The states at the landings of a call that returns to `to`.
pub fn landings(cx: &Context<'_>, state: &State, to: u32) -> Vec<(u32, State)> {
    let all = cx.function.landings;
    let Some(body) = cx.module().body(cx.function.func).filter(|_| !all.is_empty()) else { return Vec::new() };
    let (mut entries, mut heights) = (Vec::new(), HashMap::new());
    let mut region = cx.pc(to).and_then(|pc| region_at(&body.regions, pc));
    'handlers: while let Some(&TryRegion { first, count, next, height, .. }) = region {
        for handler in body.handlers.iter().skip(first as usize).take(count as usize) {
            heights.insert(handler.entry, height);
            entries.push(handler.entry);
            if handler.tag.is_none() {
                break 'handlers;
            }
        }
        region = body.regions.get(next as usize);
    }
    let state_at = |entry: u32| {
        let offset = Landing::find(all, entry, to)?;
        let mut state = state.clone();
        clobber(&mut state);
        state.set(R15, Value::at(Base::Instance));
        // The operands below the handler's stay.
        state.forget(Area::Frame, i32::MIN, cx.operand(0) as i32);
        if let Some(handler) = body.handlers.iter().find(|handler| handler.entry == entry) {
            let types: &[ValType] = handler.tag.map_or(&[], |tag| &cx.module().tag_type(tag).params);
            let words = slot_words(types) as u32;
            let count = types.len() as u32;
            define(&mut state, types, (0..count).map(|i| Place::Overflow(i * words)), &[]);
            if handler.needs_object() {
                let exception = ValType::Ref(RefType { nullable: false, heap: HeapType::Exn });
                define(&mut state, &[exception], [Place::Overflow(count * words)].into_iter(), &[]);
            }
            let reference = handler.reference.then_some(ValType::Ref(RefType { nullable: false, heap: HeapType::Exn }));
            let operands: Vec<ValType> = types.iter().copied().chain(reference).collect();
            if let (Some(height), Some(branch)) = (heights.get(&entry), body.branches.get(entry as usize)) {
                let first = i64::from(*height) + operands.len() as i64 - i64::from(branch.keep) - i64::from(branch.drop);
                state.forget(Area::Frame, cx.operand(first) as i32, i32::MAX);
                for (operand, &ty) in (first..).zip(&operands) {
                    let class = state.class(Context::typed(ty));
                    state.write(Area::Frame, cx.operand(operand) as i32, 8, Some(class));
                }
                return Some((offset, state));
            }
        }
        state.forget(Area::Frame, i32::MIN, i32::MAX);
        Some((offset, state))
    };
    entries.into_iter().filter_map(state_at).collect()
}

/// Checks a jump that is not direct, and returns the offsets to which it may lead in the function.
pub fn jump(
    cx: &Context<'_>,
    state: &mut State,
    inst: &Instruction,
    accesses: &mut Vec<(Kind, bool)>,
) -> Result<(Jumps, Target), Violation> {
    let (target, kind) = target(cx, state, inst)?;
    accesses.extend(kind.map(|kind| (kind, false)));
    match (&target.base, target.fixed()) {
        (&Base::Target(table, count), Some(0)) => {
            let code = cx.function.code;
            let entry = |i: u32| {
                let at = table as usize + 4 * i as usize;
                let distance = i32::from_le_bytes(code.get(at..at + 4)?.try_into().ok()?);
                u32::try_from(i64::from(table) + i64::from(distance)).ok().filter(|&to| (to as usize) < code.len())
            };
            let Some(mut targets) = (0..count).map(entry).collect::<Option<Vec<u32>>>() else {
                return refuse(Rule::Branch, "an entry of the jump table leads out of the function");
            };
            targets.sort_unstable();
            targets.dedup();
            return Ok((Jumps { to: targets, table: Some((table, count)) }, Target::Table));
        }
        (&Base::Helper(helper), Some(0)) if Helper::ALL[helper as usize] == Helper::Relocate => {
            relocates(cx, state)?;
            return Ok((Jumps::default(), Target::Helper));
        }
        (Base::Own(places), Some(0)) => return Ok((Jumps { to: places.to_vec(), table: None }, Target::Own)),
        (&Base::Continue(null), Some(0)) => {
            if null {
                return refuse(Rule::Branch, "the address at which to continue may be null");
            }
            has_left(state)?;
            has_instance(state)?;
            if state.inner {
                return refuse(Rule::Branch, "a subroutine continues elsewhere");
            }
            let frame = state.value(state.regs[RDI]);
            let argument = state.value(state.regs[R11]).known();
            let own = argument.is_some_and(|argument| argument as u32 == cx.function.func);
            let at_entry = argument.is_some_and(|argument| (argument >> 32) as u32 == NO_LOOP);
            let framed = matches!(frame.base, Base::ValueSp | Base::Given | Base::ValueFrame) && frame.fixed() == Some(0);
            if !own || !at_entry && !framed {
                return refuse(Rule::Branch, "the code at which to continue does not get the function, the loop and the frame");
            }
            if at_entry {
                let params = &cx.module().func_type(cx.function.func).params;
                passes(cx, state, params, param_places(params), &INT_ARG_REGS)?;
            }
            return Ok((Jumps::default(), Target::Continue));
        }
        _ => {}
    }
    if state.inner {
        return refuse(Rule::Branch, "a subroutine jumps to a function");
    }
    has_left(state)?;
    match callee(cx, state, &target)? {
        Some(Callee { kind, .. }) => Ok((Jumps::default(), kind)),
        None => refuse(Rule::Branch, "a jump to an address that is not known"),
    }
}

/// Whether a jump to the beginning of the code is a tail call of the function: all is as the contract says of its entry.
pub fn enters_itself(cx: &Context<'_>, state: &State) -> bool {
    let params = &cx.module().func_type(cx.function.func).params;
    let own = !cx.is_osr() && !state.inner && !state.dead && has_left(state).is_ok() && has_instance(state).is_ok();
    own && passes(cx, state, params, param_places(params), &INT_ARG_REGS).is_ok()
}

/// Checks a jump to the helper that calls the code again with another base of `gs`: it expects what the code's own entry expects.
fn relocates(cx: &Context<'_>, state: &mut State) -> Result<(), Violation> {
    if !cx.options().segment {
        return refuse(Rule::Segment, "the base of `gs` is changed for code that does not use it");
    }
    if !state.untouched {
        return refuse(Rule::Segment, "the stack or a register is not what it was at the entry where the code is entered again");
    }
    let begins = state.value(state.regs[R10]);
    if !matches!(&begins.base, Base::Own(places) if **places == [0]) || begins.fixed() != Some(0) {
        return refuse(Rule::Segment, "`r10` does not have the address of the code's entry");
    }
    has_left(state)?;
    has_instance(state)
}

/// Checks a return.
pub fn ret(cx: &Context<'_>, state: &State) -> Result<(), Violation> {
    has_left(state)?;
    let results = &cx.module().func_type(cx.function.func).results;
    passes(cx, state, results, result_places(results), &INT_RESULT_REGS)
}

/// The state in which a subroutine of the function begins that is called in this state. It gets what registers hold, and has a frame of its
/// own: it preserves what a function preserves.
pub fn subroutine(state: &State) -> State {
    let mut inner = State::new(0);
    for reg in 0..16 {
        inner.set(reg, state.value(state.regs[reg]).alone());
    }
    for reg in PRESERVED_REGS.into_iter().chain([RBP as u8]) {
        inner.set(reg.into(), Value::at(Base::Saved(reg)));
    }
    inner.set(RSP, Value::at(Base::Frame));
    inner.value_sp = inner.class(Value::at(Base::ValueSp));
    inner.segment = state.segment;
    inner.inner = true;
    inner
}

/// Checks the end of a subroutine.
pub fn subroutine_ends(state: &State) -> Result<(), Violation> {
    has_left(state)?;
    has_instance(state)
}

/// The state after a subroutine that writes these registers.
pub fn after_subroutine(state: &mut State, written: impl Iterator<Item = usize>) {
    let kept = |reg: usize| reg == RSP || reg == RBP || PRESERVED_REGS.contains(&(reg as u8));
    written.filter(|&reg| !kept(reg)).for_each(|reg| state.regs[reg] = NONE);
    state.xmms = [NONE; 16];
    state.flags = Flags::Unknown;
}
