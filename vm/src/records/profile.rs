//! The counters of a warm function, which the interpreter and baseline code increment. A snapshot of them is a
//! [`weir_contract::profile`].
//!
//! Branches are counted by the index of their entry in the side table, which the interpreter has in a register.
//! Indirect calls have no entry. The interpreter finds them by pc; that search is cheap compared with a call through a
//! table. Baseline code knows their numbers. The counters are separate from the side table, so that it stays immutable
//! and cold functions need no memory for counters. Their layout is [`weir_contract::profile::CallCounters`]'s.
//!
//! Counts are not exact when threads share a module: an increment that races with another may be lost.

use std::fmt::Debug;
use std::mem::offset_of;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use weir_bytecode::account::ALLOCATION;
use weir_bytecode::instrs::{Instr, Instrs};
use weir_bytecode::opcodes::{Control, Effect};
use weir_bytecode::{FuncBody, Module as Bytecode, Opcode};
use weir_contract::STRIPES;
use weir_contract::profile::{BranchProfile, CallCounters, CallProfile, Counted, CounterCounts, Profile};

/// A counter. The interpreter's increments saturate; those of baseline code wrap around.
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct Count(AtomicU32);

impl Count {
    #[inline(always)]
    fn bump(&self) {
        self.0.store(self.get().saturating_add(1), Ordering::Relaxed);
    }

    fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of a function.
#[derive(Debug)]
pub(crate) struct Counters {
    /// The counters of [`Directions`] for each entry of the side table, of which those of `br`, `else` and `loop` stay zero,
    /// then those of [`Site`] for each indirect call. They are the first stripe of `memory`, in which the interpreter counts.
    words: NonNull<[AtomicU32]>,
    memory: Box<dyn Memory>,
    /// The number of entries of the side table.
    entries: usize,
    /// Found when it is first needed, by the compiler as a rule.
    instructions: OnceLock<Instructions>,
}

/// The memory of counters, which are all 0 at first and have a place in one or more stripes: the heap's or, for functions that can have
/// code, memory that code reaches.
pub(crate) trait Memory: Debug + Send + Sync {
    /// Returns the counters in a stripe, if that exists. The first one does, and none moves.
    fn stripe(&self, stripe: usize) -> Option<&[AtomicU32]>;

    /// Returns the offset of the counters in a stripe that code reaches, if they are in such.
    fn offset(&self) -> Option<u32>;
}

impl Memory for Box<[AtomicU32]> {
    fn stripe(&self, stripe: usize) -> Option<&[AtomicU32]> {
        (stripe == 0).then_some(self)
    }

    fn offset(&self) -> Option<u32> {
        None
    }
}

// SAFETY: `words` are atomics in `memory`, which is `Send` and `Sync` and whose stripes do not move.
unsafe impl Send for Counters {}
// SAFETY: as above.
unsafe impl Sync for Counters {}

/// The instructions to which the counters belong, so that the body is decoded once.
#[derive(Debug)]
struct Instructions {
    /// The branches, ascending by pc.
    branches: Box<[Owner]>,
    /// The pcs of the indirect calls, ascending.
    calls: Box<[u32]>,
}

impl Instructions {
    /// Finds those of a function of `module`.
    fn of(module: &Bytecode, body: &FuncBody) -> Instructions {
        let (mut branches, mut calls, mut next) = (Vec::new(), Vec::new(), 0);
        let mut instrs = Instrs::new(module, body.entry, body.end);
        // Only instructions of control have entries or are counted.
        while let Some(instr) = instrs.next_control() {
            let Instr { pc, op, .. } = instr;
            let entries = next..next + instr.branch_entries() as u32;
            next = entries.end;
            match Counted::of(&instr) {
                Some(Counted::Branch { .. }) => branches.push(Owner { pc, order: Order::of(op), entries }),
                Some(Counted::Call) => calls.push(pc),
                None => (),
            }
        }
        debug_assert_eq!(calls.len(), body.indirect_calls as usize, "validation counts the indirect calls");
        Instructions { branches: branches.into(), calls: calls.into() }
    }
}

/// The number of times a branch was taken, and was not taken.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Directions {
    pub taken: Count,
    pub passed: Count,
}

/// A conditional branch, and its entries in the side table.
#[derive(Debug)]
struct Owner {
    pc: u32,
    order: Order,
    entries: Range<u32>,
}

/// The order of a branch's counts: see [`BranchProfile::counts`].
#[derive(Clone, Copy, Debug)]
enum Order {
    /// Each entry is taken for a label.
    Labels,
    /// Not taken, taken: an `if` branches where its condition is false.
    PassedFirst,
    /// Taken, not taken.
    TakenFirst,
}

impl Order {
    /// Returns the order for an instruction that is [`Counted::Branch`].
    fn of(op: Opcode) -> Order {
        let Effect::Control(control) = op.effect() else { panic!("{op:?} is no branch") };
        match control {
            Control::BrTable => Order::Labels,
            Control::If => Order::PassedFirst,
            Control::BrIf | Control::BrOnNull | Control::BrOnNonNull => Order::TakenFirst,
            Control::Unreachable | Control::Nop | Control::Block | Control::Loop | Control::Else | Control::End => {
                panic!("{op:?} is no conditional branch")
            }
            Control::Br | Control::Return | Control::Call(_) | Control::ReturnCall(_) => {
                panic!("{op:?} is no conditional branch")
            }
            Control::TryTable | Control::Try | Control::Catch | Control::CatchAll | Control::Delegate => {
                panic!("{op:?} is no conditional branch")
            }
            Control::Throw | Control::ThrowRef | Control::Rethrow => panic!("{op:?} is no conditional branch"),
        }
    }
}

/// A target of an indirect call.
#[derive(Debug)]
#[repr(C)]
struct Target {
    /// Function index plus one, [`CallCounters::OTHER_INSTANCE`] or [`CallCounters::UNUSED`].
    func: AtomicU32,
    /// The number of its calls.
    calls: Count,
}

/// The counters of an indirect call.
#[derive(Debug)]
#[repr(C)]
struct Site {
    /// In the order of the first call.
    targets: [Target; CallCounters::TARGETS],
    others: Count,
    unused: Count,
}

/// Words of the counters of an entry of the side table.
const DIRECTIONS: usize = size_of::<Directions>() / size_of::<AtomicU32>();

const _: () = assert!(size_of::<Site>() == 4 * CallCounters::WORDS && offset_of!(Site, others) == CallCounters::OTHERS as usize);
const _: () = assert!(offset_of!(Directions, taken) == 0 && offset_of!(Directions, passed) == size_of::<AtomicU32>());
const _: () = assert!(size_of::<Target>() == CallCounters::TARGET as usize && offset_of!(Target, calls) == 4);

impl Counters {
    /// Creates the counters of a function, all 0, in what `allocate` returns for their number, or in memory of their own.
    pub fn new<M: Memory + 'static>(counts: CounterCounts, allocate: impl FnOnce(usize) -> Option<M>) -> Counters {
        let (entries, calls) = (counts.entries as usize, counts.calls as usize);
        let count = DIRECTIONS * entries + CallCounters::WORDS * calls;
        let own = || -> Box<dyn Memory> { Box::new((0..count).map(|_| AtomicU32::new(0)).collect::<Box<[AtomicU32]>>()) };
        let memory = allocate(count).map_or_else(own, |memory| -> Box<dyn Memory> { Box::new(memory) });
        let words = memory.stripe(0).expect("the first stripe exists").into();
        Counters { words, memory, entries, instructions: OnceLock::new() }
    }

    /// Returns the bytes that the counters of a function take, with those of [`Instructions`], at most. Stripes after the first are not counted:
    /// they are a part of the engine's code memory.
    pub fn size(counts: CounterCounts) -> usize {
        let (entries, calls) = (counts.entries as usize, counts.calls as usize);
        let instructions = entries * size_of::<Owner>() + calls * size_of::<u32>();
        let counters = entries * size_of::<Directions>() + calls * size_of::<Site>();
        size_of::<Counters>() + instructions + counters + 4 * ALLOCATION
    }

    /// Sets all counters to 0. Increments meanwhile may be lost, or be all that is counted of a call's target.
    pub fn clear(&self) {
        self.stripes().flatten().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Returns the offset of the counters in a stripe that code reaches, if they are in such.
    pub fn offset(&self) -> Option<u32> {
        self.memory.offset()
    }

    /// Returns the counters of entry 0, followed by those of the other entries and of the indirect calls.
    pub fn directions(&self) -> *const Directions {
        self.words.cast().as_ptr()
    }

    /// The counters in each stripe.
    fn stripes(&self) -> impl Iterator<Item = &[AtomicU32]> {
        (0..STRIPES).filter_map(|stripe| self.memory.stripe(stripe))
    }

    /// The counters of the indirect call with this number, in a stripe.
    fn site<'w>(&self, words: &'w [AtomicU32], i: usize) -> &'w Site {
        let at = DIRECTIONS * self.entries + CallCounters::WORDS * i;
        let words = &words[at..at + CallCounters::WORDS];
        // SAFETY: a `Site` consists of this number of such words.
        unsafe { &*words.as_ptr().cast() }
    }

    /// Counts an execution of the branch that owns entry `entry`.
    ///
    /// # Safety
    /// The function has that entry.
    #[inline(always)]
    pub unsafe fn branch(&self, entry: usize, taken: bool) {
        debug_assert!(entry < self.entries);
        // SAFETY: the caller's promise.
        let directions = unsafe { &*self.directions().add(entry) };
        if taken { directions.taken.bump() } else { directions.passed.bump() }
    }

    /// Returns the instructions to which the counters belong. They are those of `body` of `module`.
    fn instructions(&self, module: &Bytecode, body: &FuncBody) -> &Instructions {
        self.instructions.get_or_init(|| Instructions::of(module, body))
    }

    /// Counts a call at `pc` of a function of the same instance, or with `None` of any other function. The counters are those of `body`
    /// of `module`.
    pub fn call(&self, module: &Bytecode, body: &FuncBody, pc: u32, target: Option<u32>) {
        let Ok(i) = self.instructions(module, body).calls.binary_search(&pc) else { return };
        let called = target.map_or(CallCounters::OTHER_INSTANCE, |func| func + 1);
        // SAFETY: they are `memory`'s.
        let site = self.site(unsafe { self.words.as_ref() }, i);
        for Target { func, calls } in &site.targets {
            match func.load(Ordering::Relaxed) {
                CallCounters::UNUSED => func.store(called, Ordering::Relaxed),
                target if target != called => continue,
                _ => (),
            }
            return calls.bump();
        }
        site.others.bump();
    }

    /// Returns the counts so far of `body` of `module`, to which the counters belong.
    pub fn snapshot(&self, module: &Bytecode, body: &FuncBody) -> Profile {
        let Instructions { branches, calls } = self.instructions(module, body);
        let stripes: Vec<&[AtomicU32]> = self.stripes().collect();
        let sum =
            |word: u32| stripes.iter().map(|stripe| stripe[word as usize].load(Ordering::Relaxed)).fold(0, u32::saturating_add);
        // In the order of the fields of `Directions`.
        let (taken, passed) = (|entry| sum(DIRECTIONS as u32 * entry), |entry| sum(DIRECTIONS as u32 * entry + 1));
        let branch = |owner: &Owner| {
            let own = owner.entries.clone();
            let counts = match owner.order {
                Order::Labels => own.map(taken).collect(),
                Order::PassedFirst => own.flat_map(|entry| [passed(entry), taken(entry)]).collect(),
                Order::TakenFirst => own.flat_map(|entry| [taken(entry), passed(entry)]).collect(),
            };
            BranchProfile { pc: owner.pc, counts }
        };
        let branches = branches.iter().map(branch).collect();
        let call = |(i, &pc): (usize, &u32)| snapshot(stripes.iter().map(|stripe| self.site(stripe, i)), pc);
        let calls = calls.iter().enumerate().filter_map(call).collect();
        Profile { branches, calls }
    }
}

/// Returns the counts of the call at `pc` so far, if it was executed. `sites` are its counters in all stripes.
fn snapshot<'s>(sites: impl Iterator<Item = &'s Site>, pc: u32) -> Option<CallProfile> {
    let (mut targets, mut others) = (Vec::<(Option<u32>, u32)>::new(), 0u32);
    for site in sites {
        others = others.saturating_add(site.others.get());
        for Target { func, calls } in &site.targets {
            let (func, calls) = match func.load(Ordering::Relaxed) {
                CallCounters::UNUSED => break,
                CallCounters::OTHER_INSTANCE => (None, calls.get()),
                func => (Some(func - 1), calls.get()),
            };
            match targets.iter_mut().find(|(other, _)| *other == func) {
                Some((_, sum)) => *sum = sum.saturating_add(calls),
                None => targets.push((func, calls)),
            }
        }
    }
    targets.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let rest = targets.drain(CallCounters::TARGETS.min(targets.len())..).map(|(_, count)| count);
    let others = rest.fold(others, u32::saturating_add);
    (!targets.is_empty()).then(|| CallProfile { pc, targets: targets.into(), others })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stop_at_the_highest() {
        let count = Count(AtomicU32::new(u32::MAX - 1));
        for _ in 0..3 {
            count.bump();
        }
        assert_eq!(count.get(), u32::MAX);
    }
}
