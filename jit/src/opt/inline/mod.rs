//! Inlining: the SSA of a function takes the place of a call of it.
//!
//! ```text
//! b0: v1: i32 = param 0            b0: v1: i32 = param 0
//!     v2: i32 = call f5(v1)   →        v4: i32 = add v1, v1      f5 returns twice its parameter
//!     return v2                        return v4
//! ```
//!
//! An indirect call is inlined if the profile says that it mostly calls one function, or if a private table has only one function of its type. A
//! guard compares the callee: a table element, or a reference, is that function *of this instance*. Otherwise the call is made as before, and continues at
//! the same place:
//!
//! ```text
//!     v2: i64 = element_differs f5 table0 v0
//!     v3: i32 = eqz v2
//!     branch v3, b1, b2           b1: the code of f5        b2: v4: i32 = call_indirect t0 table0 (v1, v0)
//! ```
//!
//! If the table is private and has the function once, the guard compares the index with that of the function, and loads nothing. Such a guard
//! also pays before a direct call, or a direct tail call: the callee need not be inlined.
//!
//! The profile may be that of the beginning of a program, which later calls another function. So b2 counts a `miss` where hardly any is expected; after many
//! of them the runtime profiles the code again, once.
//!
//! Construction makes the callee's SSA, once for all calls of it, and it is simplified; `splice` copies it. `choose` decides which calls
//! are inlined. What cannot be seen from outside stays as it is:
//!
//! - **Traps and backtraces.** Each copy has pcs of its own, from which the frames of all functions around an instruction
//!   follow: see [`ir::inlined`](crate::ir::inlined).
//! - **Fuel and polls.** The callee's charges and polls are copied, that at its entry included: guests yield at the same places, after
//!   the same fuel, in every tier.
//! - **Tail calls** of the callee become calls, because the caller's frame stays. In a backtrace they have the place of the inlined
//!   call, since the callee's frame would be gone.
//! - **Exceptions.** The calls of the copy get the handlers that the call had. A function that has handlers or throws is not inlined, nor,
//!   in a module with tags, one that calls.
//!
//! Only the code of the native back end has inlined functions: Cranelift attributes the trap of a load that it folds to the instruction
//! that uses the load, which may be in another function.
//!
//! It is the first pass, so that the others see the copies. Cost: linear in the caller and in what is copied, which the budgets of
//! `choose` bound.

mod choose;
mod splice;

use super::pass::{Analysis, Build, Changed, Context, Pass};
use super::{cfg_edit, dce, products, simplify};
use crate::analysis::{Cfg, frequency::Frequencies};
use crate::ir::inlined::Copy;
use crate::ir::{Block, Entry, Func, Op, Probability, Value};
use crate::profile::weigh;
use choose::{Budget, Callable, Candidate, Candidates};
use rustc_hash::FxHashMap;
use splice::{Constants, CopiedCall, Site};
use std::rc::Rc;
use weir_bytecode::Module;
use weir_contract::profile::Profile;

/// A guard that holds less often than this may fail often without the profile being wrong.
const EXPECTED: f32 = 31.0 / 32.0;

/// The number of types of calls through tables for which a function's calls are looked up.
const MOST_TYPES: usize = 16;

/// That a call reaches the only function of its type in a private table. Otherwise it traps.
const ALWAYS: Probability = Probability::MOST;

/// In a module with more elements or segments of them, they are not searched: that is done for each call, and for each guard.
const MOST_ELEMENTS: usize = 1 << 16;
const MOST_SEGMENTS: usize = 1 << 10;

/// Inlining.
pub const PASS: Pass = Pass { name: "inline", run, needs: &[Analysis::Cfg], keeps: &[] };

fn run(func: &mut Func<'_>, cx: &Context<'_>) -> Changed {
    let Some((module, build)) = cx.module.zip(cx.build).filter(|_| cx.native) else { return Changed(0) };
    let budget = Budget::new(module, func.index, cx.profile.is_some(), cx.options.opt_all);
    let callees = Callees { module, build, cx, built: FxHashMap::default() };
    let mut inliner = Inliner { module, cx, budget, candidates: Candidates::default(), callees, only: Vec::new() };
    let mut calls: Vec<(Block, Value, Callable)> = Vec::new();
    for (block, call) in calls_of(func) {
        if !cx.goes_on(1) {
            return Changed(0);
        }
        let counts = (cx.profile, func.inst(call).pc);
        calls.extend(inliner.callee(func, call, counts).map(|found| (block, call, found)));
    }
    if calls.is_empty() {
        return Changed(0);
    }
    let frequencies = Frequencies::of(func, cx.cfg());
    let _ = cx.meter.ask();
    for (block, call, found) in calls {
        if !cx.goes_on(1) {
            return Changed(0);
        }
        let frequency = frequencies.get(block);
        inliner.candidates.push(module, Candidate { call, block, found, counted: func.index, frequency });
    }
    inliner.inline(func)
}

/// The calls with their blocks, and the tail calls through tables. An indirect call whose exceptions have handlers is left as it is.
fn calls_of<'f>(func: &'f Func<'_>) -> impl Iterator<Item = (Block, Value)> + 'f {
    let is_call = move |block: Block, value: Value| {
        let op = func.op(value);
        op == Op::ReturnCallIndirect || op.calls_function() && (op == Op::Call || func.exceptional_edges(block) == 0)
    };
    let calls = move |block: Block| func.block(block).insts.iter().copied().filter(move |&value| is_call(block, value));
    func.blocks().flat_map(move |block| calls(block).map(move |value| (block, value)))
}

struct Inliner<'i, 'a> {
    module: &'i Module,
    cx: &'i Context<'i>,
    budget: Budget,
    candidates: Candidates,
    callees: Callees<'i, 'a>,
    /// By table and type, the only function that calls can reach, if there is only one.
    only: Vec<((u32, u32), Option<u32>)>,
}

impl<'a> Inliner<'_, 'a> {
    /// The function that `call` probably calls, if it may be inlined, or be called directly behind a guard.
    /// The call is at this offset in the function of the profile.
    fn callee(&mut self, func: &Func<'_>, call: Value, counts: (Option<&Profile>, u32)) -> Option<Callable> {
        let counted = choose::callee_of(self.module, counts, func, call);
        let (callee, guard) = match counted {
            Some(counted) => counted,
            None => (self.only_callee(func, call)?, Some(ALWAYS)),
        };
        // The frame of an inlined function would be in place of the caller's.
        let stays = !func.op(call).is_tail_call();
        let inlines = stays && self.budget.may_inline(self.module, self.cx.options, func, call, callee);
        (inlines || guard.is_some()).then_some(Callable { callee, guard, inlines })
    }

    /// The only function that an indirect call may reach: the table is private, and has one function of the type. The first types of a function are
    /// searched.
    fn only_callee(&mut self, func: &Func<'_>, call: Value) -> Option<u32> {
        let inst = func.inst(call);
        let by_element = matches!(inst.op, Op::CallIndirect | Op::ReturnCallIndirect);
        if !by_element || self.module.own_elements(inst.imm as u32).is_none() {
            return None;
        }
        let (table, ty) = (inst.imm as u32, inst.aux);
        if let Some(&(_, found)) = self.only.iter().find(|only| only.0 == (table, ty)) {
            return found;
        }
        if self.only.len() == MOST_TYPES || !self.may_search() {
            return None;
        }
        let found = self.module.only_callee(table, ty);
        self.only.push(((table, ty), found));
        found
    }

    /// Whether the elements of tables may be searched. Several of them are compared in the time of a step.
    fn may_search(&self) -> bool {
        let (elements, segments) = (self.module.num_elements(), self.module.elems.len());
        elements <= MOST_ELEMENTS && segments <= MOST_SEGMENTS && self.cx.goes_on(segments + elements / 8)
    }

    /// Whether the other way of a guard that holds with this probability counts misses.
    fn counts_misses(&self, func: &Func<'_>, probability: Probability) -> bool {
        let options = self.cx.options;
        options.leaves && func.entry == Entry::Call && (options.opt_all || probability.as_f32() >= EXPECTED)
    }

    /// The only index of `callee` in the table through which `call` calls, if that is a private table.
    fn own_index(&self, func: &Func<'_>, call: Value, callee: u32) -> Option<u64> {
        let table = func.inst(call).imm as u32;
        let by_element = matches!(func.op(call), Op::CallIndirect | Op::ReturnCallIndirect);
        if !by_element || self.module.own_elements(table).is_none() {
            return None;
        }
        self.may_search().then(|| self.module.own_index(table, callee))?
    }

    /// Makes an indirect call, or tail call, of a function that is not inlined a direct one after a guard, if the guard compares indices: it then saves the
    /// table's bound, element and signature. It counts no misses, which cost little. Returns whether it did.
    fn call_directly(&mut self, func: &mut Func<'_>, site: Site, found: Callable, frequency: f32) -> bool {
        let Callable { callee, guard: Some(probability), .. } = found else { return false };
        if !self.budget.allows_guard(frequency) {
            return false;
        }
        // Searches for an index in vain count, too.
        self.budget.spend_guard();
        let Some(index) = self.own_index(func, site.call, callee) else { return false };
        if !self.cx.goes_on(splice::steps_of_split(func, site.block)) || !self.cx.spend() {
            return false;
        }
        if func.op(site.call).is_tail_call() {
            splice::guard_tail_call(func, &site, (callee, index), probability);
            return true;
        }
        let (_, rest) = splice::guard(func, &site, (callee, Some(index)), probability, None);
        self.candidates.moved(func, rest);
        true
    }

    /// Inlines the best candidates as far as the budget allows.
    fn inline(mut self, func: &mut Func<'a>) -> Changed {
        let module = self.module;
        let mut constants = Constants::of(func);
        let _ = self.cx.meter.ask();
        let mut changed = 0;
        while let Some(Candidate { call, block, found, counted, frequency }) = self.candidates.pop() {
            if !self.cx.goes_on(1) || !self.cx.meter.allows_more_code(func.size()) {
                break;
            }
            let Callable { callee, guard, inlines } = found;
            let inlines = inlines && self.budget.allows(self.callees.size(callee), frequency);
            let built = if inlines { self.callees.get(func.arena, callee, func.index) } else { None };
            let Some(built) = built else {
                changed += u32::from(self.call_directly(func, Site { block, call }, found, frequency));
                continue;
            };
            if !self.cx.goes_on(built.func.num_values() + splice::steps_of_split(func, block)) {
                break;
            }
            let (origin, len) = extent(module, callee);
            let start = func.copies.next_pc(module.bytes.len() as u32);
            let copy = Copy { start, len, func: callee, origin, call: func.inst(call).pc };
            if !self.cx.spend() || func.copies.push(copy).is_err() {
                continue;
            }
            let mut site = Site { block, call };
            if let Some(probability) = guard {
                let counted = self.counts_misses(func, probability).then_some(counted);
                let index = self.own_index(func, call, callee);
                let (direct, rest) = splice::guard(func, &site, (callee, index), probability, counted);
                self.candidates.moved(func, rest);
                site = direct;
            }
            let spliced = splice::splice(func, &mut constants, site, &built.func, copy);
            self.budget.spend(built.size);
            self.candidates.moved(func, spliced.rest);
            if !self.cx.goes_on(func.block(spliced.rest).insts.len()) {
                break;
            }
            let profile = built.profile.as_ref().or(self.cx.profile.filter(|_| callee == func.index));
            for CopiedCall { call, block, from, pc } in spliced.calls {
                if func.op(call) != Op::Call && func.exceptional_edges(block) > 0 {
                    continue;
                }
                if let Some(found) = self.callee(func, call, (profile, pc)) {
                    let frequency = frequency * built.frequencies.get(from);
                    let candidate = Candidate { call, block, found, counted: callee, frequency };
                    self.candidates.push(module, candidate);
                }
            }
            changed += 1;
        }
        if changed > 0 {
            constants.insert(func);
            func.settle();
            cfg_edit::remove_unreachable(func);
        }
        Changed(changed)
    }
}

/// The offset in the module of a function's body, and its length.
fn extent(module: &Module, func: u32) -> (u32, u32) {
    let body = module.body(func).expect("an imported function is not inlined");
    (body.entry, body.len())
}

/// A function that is inlined.
struct Callee<'a> {
    func: Func<'a>,
    /// Its counts; none of the function that has the calls, which are the context's.
    profile: Option<Profile>,
    frequencies: Frequencies,
    /// The bytes of bytecode that it counts as.
    size: u32,
}

/// Simplifies a function of `len` bytes, once for all its copies. Returns the bytes that it counts as: the share of the instructions that are left,
/// since products of halves, for example, become one instruction each.
fn simplified_size(func: &mut Func<'_>, cfg: &Cfg, len: u32, cx: &Context<'_>) -> u32 {
    let insts = |func: &Func<'_>| func.blocks().map(|block| func.block(block).insts.len() as u64).sum::<u64>();
    let before = insts(func);
    if !cx.is_off(&simplify::PASS) {
        simplify::sweep(func, cfg, cx);
    }
    for pass in [&products::PASS, &dce::PASS].into_iter().filter(|pass| !cx.is_off(pass)) {
        (pass.run)(func, cx);
    }
    (u64::from(len) * insts(func)).div_ceil(before.max(1)).min(len.into()) as u32
}

/// The functions that are inlined, by index; `None` for those that turned out not to be suitable.
struct Callees<'c, 'a> {
    module: &'c Module,
    build: Build,
    cx: &'c Context<'c>,
    built: FxHashMap<u32, Option<Rc<Callee<'a>>>>,
}

impl<'a> Callees<'_, 'a> {
    /// The bytes of bytecode that `func` counts as: all of them if it has not been inlined yet.
    fn size(&self, func: u32) -> u32 {
        let built = self.built.get(&func).and_then(Option::as_deref);
        built.map_or_else(|| choose::len(self.module, func), |callee| callee.size)
    }

    /// The function `func`, for calls in the function `caller`.
    fn get(&mut self, arena: &'a bumpalo::Bump, func: u32, caller: u32) -> Option<Rc<Callee<'a>>> {
        let Callees { module, build, cx, built } = self;
        let made = || {
            let mut func = build(arena, module, func, cx.options, &cx.meter)?;
            let ops = || func.blocks().flat_map(|block| func.block(block).insts.iter().map(|&value| func.op(value)));
            let throws = ops().any(|op| matches!(op, Op::Throw | Op::ThrowRef));
            // The cache of handlers has no frames of several functions, so that throws through them take longer.
            let passes_throws = !module.tags.is_empty() && ops().any(|op| op.calls_function() || op.is_tail_call());
            if throws || passes_throws && !cx.options.opt_all {
                return None;
            }
            let own = cx.profile.filter(|_| func.index == caller);
            let profile = cx.callees.filter(|_| func.index != caller).and_then(|callees| callees.counts(func.index));
            if let Some(profile) = profile.as_ref().or(own) {
                weigh(profile, &mut func);
            }
            let cfg = Cfg::compute(&func);
            let len = choose::len(module, func.index);
            let size = simplified_size(&mut func, &cfg, len, cx);
            let frequencies = Frequencies::of(&func, &cfg);
            Some(Rc::new(Callee { func, profile, frequencies, size }))
        };
        built.entry(func).or_insert_with(made).clone()
    }
}
