//! The choice of the calls that are inlined.
//!
//! Calls compete for a budget of bytes of bytecode, by their estimated executions for each byte of the callee. After its first copy a
//! function counts as the bytes of what simplification has left of it. Without a profile, the function's frequencies are those of
//! loops only, and the budget is small.

use crate::ir::{Block, Func, Op, Probability, Value};
use crate::request::Options;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use weir_bytecode::{FuncBody, Module};
use weir_contract::profile::Profile;

/// A callee of at most this many bytes costs no more than the call.
const TINY: u32 = 16;
/// The size of the largest callee that is inlined outside of loops, in bytes.
const SMALL: u32 = 60;
/// The size of the largest callee that is inlined in loops, in bytes.
const LARGE: u32 = 400;
/// The size of the largest callee that is inlined without a profile.
const UNPROFILED: u32 = 100;
/// A call that is executed less often, per call of the function, is not inlined.
const RARE: f32 = 0.125;
/// A call that is executed at least this often, per call of the function, is in a loop.
const OFTEN: f32 = 4.0;
/// The number of calls that are inlined in a function.
const CALLS: u32 = 60;
/// The number of indirect calls in a function that become direct ones behind guards.
const GUARDS: u32 = 60;
/// The size of the largest function that is inlined, once, in itself.
const RECURSIVE: u32 = 120;
/// The number of calls in whose place code may be, one inside the other.
const DEPTH: u32 = 5;
/// The bytes that are inlined in a small function, in any function, and for each byte of the function.
const LEAST: u32 = 200;
const MOST: u32 = 4 << 10;
const PER_BYTE: f32 = 0.5;
/// The same without a profile.
const LEAST_UNPROFILED: u32 = 60;
const MOST_UNPROFILED: u32 = 1 << 10;
const PER_BYTE_UNPROFILED: f32 = 0.125;

/// The bytes and calls that may still be inlined.
pub(super) struct Budget {
    bytes: u32,
    calls: u32,
    guards: u32,
    profiled: bool,
    all: bool,
}

impl Budget {
    /// That of a function of `module`.
    pub fn new(module: &Module, func: u32, profiled: bool, all: bool) -> Budget {
        let len = module.body(func).map_or(0, |body| body.len()) as f32;
        let bytes = match profiled {
            _ if all => MOST,
            true => ((len * PER_BYTE) as u32).clamp(LEAST, MOST),
            false => ((len * PER_BYTE_UNPROFILED) as u32).clamp(LEAST_UNPROFILED, MOST_UNPROFILED),
        };
        Budget { bytes, calls: CALLS, guards: GUARDS, profiled, all }
    }

    /// Whether `callee` can be inlined in place of `call` in `func` at all.
    pub fn may_inline(&self, module: &Module, options: &Options, func: &Func<'_>, call: Value, callee: u32) -> bool {
        let inst = func.inst(call);
        let Some(body) = body(module, callee) else { return false };
        // A text takes the place of a function's bytecode in tests.
        let replaced = options.texts.iter().any(|text| text.func == callee);
        let largest = if self.profiled || self.all { LARGE } else { UNPROFILED };
        body.len() <= largest && body.handlers.is_empty() && !replaced && {
            let around = func.copies.frames(func.index, inst.pc);
            let (depth, active) =
                around.fold((0, 0), |(depth, active), (func, _)| (depth + 1, active + u32::from(func == callee)));
            let recursive = body.len() <= RECURSIVE;
            depth <= DEPTH && active <= u32::from(recursive)
        }
    }

    /// Whether the budget is enough for a call of a function that counts as `len` bytes, which is executed with this frequency.
    pub fn allows(&self, len: u32, frequency: f32) -> bool {
        if len <= TINY {
            return self.calls > 0;
        }
        let largest = match (frequency, self.profiled) {
            _ if self.all => LARGE,
            (..RARE, _) => 0,
            (OFTEN.., true) => LARGE,
            (OFTEN.., false) => UNPROFILED,
            (_, true) => SMALL,
            (_, false) => TINY,
        };
        self.calls > 0 && len <= largest && len <= self.bytes
    }

    /// Whether an indirect call that is executed with this frequency may become a direct one behind a guard.
    pub fn allows_guard(&self, frequency: f32) -> bool {
        self.guards > 0 && (self.all || frequency >= RARE)
    }

    /// Counts such a call.
    pub fn spend_guard(&mut self) {
        self.guards -= 1;
    }

    /// Counts a call of a function that counts as `len` bytes, which was inlined.
    pub fn spend(&mut self, len: u32) {
        self.calls -= 1;
        self.bytes = self.bytes.saturating_sub(len);
    }
}

/// The body of a function that may be inlined: one that is defined in the module, valid, and not large.
fn body(module: &Module, func: u32) -> Option<&FuncBody> {
    let index = func.checked_sub(module.imported_funcs)?;
    let range = module.bodies[index as usize].range();
    (range.len() <= 2 * LARGE as usize).then(|| module.body_to_copy(func)).flatten()
}

/// The bytes of a function's bytecode.
pub(super) fn len(module: &Module, func: u32) -> u32 {
    body(module, func).map_or(u32::MAX, FuncBody::len)
}

/// The share of an indirect call's executions that the most frequent callee must have.
const SHARE: f32 = 0.75;

/// The function that `call` probably calls and, if it is an indirect call, the probability. It is at this offset in the function of the profile.
pub(super) fn callee_of(
    module: &Module,
    (profile, pc): (Option<&Profile>, u32),
    func: &Func<'_>,
    call: Value,
) -> Option<(u32, Option<Probability>)> {
    let inst = func.inst(call);
    if inst.op == Op::Call {
        return Some((inst.aux, None));
    }
    let counts = profile?.call(pc)?;
    let &(Some(callee), most) = counts.targets.first()? else { return None };
    let others = counts.targets[1..].iter().fold(counts.others, |sum, target| sum.saturating_add(target.1));
    let probability = Probability::of_counts(most, others);
    let seen = u64::from(most) + u64::from(others) >= Profile::SEEN;
    let fits = module.func_type(callee) == &module.types[inst.aux as usize];
    (seen && fits && probability.as_f32() >= SHARE).then_some((callee, Some(probability)))
}

/// The function that a call probably calls.
#[derive(Clone, Copy, Debug)]
pub(super) struct Callable {
    pub callee: u32,
    /// For an indirect call, the probability that it calls the callee.
    pub guard: Option<Probability>,
    /// Whether it may be inlined at all.
    pub inlines: bool,
}

/// A call that may be inlined, or be made directly.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub call: Value,
    pub block: Block,
    pub found: Callable,
    /// The function whose profile says so.
    pub counted: u32,
    /// Its estimated executions per call of the function.
    pub frequency: f32,
}

/// The calls that may be inlined, the best first.
#[derive(Default)]
pub(super) struct Candidates {
    order: BinaryHeap<Ranked>,
    all: Vec<Candidate>,
    /// By value, the number in `all` of a call, plus 1. The values of calls are regular, and a hash of them clusters.
    numbers: Vec<u32>,
}

impl Candidates {
    pub fn push(&mut self, module: &Module, candidate: Candidate) {
        let gain = candidate.frequency / len(module, candidate.found.callee).max(1) as f32;
        self.order.push(Ranked { gain, call: candidate.call });
        let at = candidate.call.index();
        self.numbers.resize(self.numbers.len().max(at + 1), 0);
        self.all.push(candidate);
        self.numbers[at] = self.all.len() as u32;
    }

    /// The best candidate.
    pub fn pop(&mut self) -> Option<Candidate> {
        let best = self.order.pop()?;
        let number = std::mem::take(&mut self.numbers[best.call.index()]);
        Some(self.all[number.checked_sub(1)? as usize])
    }

    /// Says that the contents of `block` were in another one before.
    pub fn moved(&mut self, func: &Func<'_>, block: Block) {
        for value in &func.block(block).insts {
            if let Some(number) = self.numbers.get(value.index()).and_then(|number| number.checked_sub(1)) {
                self.all[number as usize].block = block;
            }
        }
    }
}

/// A call and its gain: estimated executions for each byte of the callee. Of equal gains, the call with the lower number comes first, so
/// that the choice is deterministic.
#[derive(Clone, Copy, Debug)]
struct Ranked {
    gain: f32,
    call: Value,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Ranked) -> Ordering {
        self.gain.total_cmp(&other.gain).then(other.call.cmp(&self.call))
    }
}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Ranked) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ranked {
    fn eq(&self, other: &Ranked) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ranked {}
