//! When to compile what, with which back end: every threshold is here.
//!
//! Compiled code is never compiled again while it is in use: there is one level of compilation, and nothing replaces code by
//! better code.
//!
//! Ticks are bytes of bytecode executed. A function starts with [`Policy::first_ticks`]; the interpreter subtracts the
//! [work](weir_bytecode::sidetable) of each call and each loop iteration and asks when they are gone. Interpreting has then taken
//! about as long as compiling will, so the sum of both is never much more than twice the better choice (the ski-rental argument). While
//! a compilation is under way the function asks again every [`POLL_TICKS`].
//!
//! A threshold that is configured, and those of stress, count calls and iterations instead: there the work of each is 1.

use crate::records::config::{Config, Tier};
use crate::sys::thread;
use std::sync::Mutex;
use weir_contract::Entry;
use weir_jit::Backend;

/// Ticks between two questions while code is being made.
pub(crate) const POLL_TICKS: i32 = 8 << 10;
/// Ticks that never run out in practice: nothing will change for this function.
pub(crate) const NEVER: i32 = i32::MAX;

/// Ticks that every function gets: publishing its code takes some microseconds.
const BASE_TICKS: i32 = 4_000;
/// Ticks for each byte of a function. Compiling a byte takes as long as interpreting some 870, but the work that is estimated is
/// less than what is executed, and code that is this hot goes on: on one core 225 took less time in all than 450 and 900.
const TICKS_PER_BYTE: i32 = 225;
/// The same where another core compiles: the guest loses no time to it, only the functions after it in the queue do.
const TICKS_PER_BYTE_ELSEWHERE: i32 = 120;
/// A function is profiled after one in so many of its ticks: what never grows warm costs no counters.
const COLD_SHARE: i32 = 4;

/// How many times the wanted bytes the second-chance sweep examines: in steady state, it evicts code that is not used while a
/// quarter of the budget is filled anew.
pub(crate) const SWEEP_FACTOR: usize = 4;
/// The longest rest is two to the power of this.
const MAX_REST: u32 = 10;

/// How often a function loses its code under stress: compiling it again and again tests nothing new.
pub(crate) const MAX_SETBACKS: u32 = 50;

/// OSR bodies per function: each repeats the loop nest it enters, and a function hot in more loops than this is soon called.
const MAX_OSR_BODIES: u32 = 8;
/// Bytes of bytecode in all OSR bodies of a function, beyond the second: the loop of a big interpreter holds many others, and
/// the compiler has better things to do than translating it for each.
const OSR_BYTES: u32 = 64 << 10;

/// How many OSR bodies a function with `bytes` of code may have.
pub(crate) fn osr_bodies(bytes: u32) -> u32 {
    (OSR_BYTES / bytes.max(1)).clamp(2, MAX_OSR_BODIES)
}

/// Bytes to free for `bytes` of code that found no room so many times in a row: twice as many each time, because what is freed may
/// lie in pieces that are too small, and what needs less takes of it.
pub(crate) fn wanted(bytes: usize, failures: u32) -> usize {
    bytes.saturating_mul(1 << failures.min(MAX_REST))
}

/// The priority of compiling `bytes` of code in the queue: the shortest first, because it keeps the others waiting for less, and about
/// as much has been spent interpreting each of them for each byte. A waiting loop runs now; a function may be called again.
pub(crate) fn priority(bytes: u32, entry: Entry) -> u64 {
    let weight = if entry == Entry::Call { 1 } else { 4 };
    weight * u64::from(u32::MAX) / u64::from(bytes.max(1))
}

/// What to do about a function or loop that has no code yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    /// Interpret it, and ask again after this many ticks.
    Interpret(i32),
    /// Compile it now, in the thread that asks.
    Compile(Backend),
    /// Have it compiled in the background.
    Queue(Backend),
    /// Behave as if the compiler had refused.
    Refuse,
}

/// The policy of one engine.
#[derive(Debug)]
pub(crate) struct Policy {
    tier: Tier,
    synchronous: bool,
    threshold: Option<u32>,
    stress: Option<Mutex<Rng>>,
    profile: bool,
    ticks_per_byte: i32,
}

impl Policy {
    /// The policy for these settings.
    pub(crate) fn new(config: &Config) -> Policy {
        let synchronous = config.synchronous_compilation || config.deterministic;
        let elsewhere = !synchronous && thread::parallelism().is_ok_and(|cores| cores > 1);
        Policy {
            tier: config.tier,
            synchronous,
            ticks_per_byte: if elsewhere { TICKS_PER_BYTE_ELSEWHERE } else { TICKS_PER_BYTE },
            threshold: config.tier_up_threshold,
            stress: config.stress.map(|seed| Mutex::new(Rng(seed))),
            profile: config.profiles(),
        }
    }

    /// Ticks of a function with `bytes` of code before it first asks: for its profile if it is to have one, else for code.
    pub(crate) fn first_ticks(&self, bytes: u32) -> i32 {
        match self.tier {
            Tier::Interpreter if self.profile => 0,
            Tier::Auto if self.profile => self.ticks(bytes) / COLD_SHARE,
            _ => self.ticks(bytes),
        }
    }

    /// Ticks during which a function without a profile, which asks, is to be profiled before it asks for code; `None` if it is
    /// to ask for code at once.
    pub(crate) fn profile_ticks(&self, bytes: u32) -> Option<i32> {
        match self.tier {
            Tier::Interpreter if self.profile => Some(NEVER),
            Tier::Auto if self.profile => {
                let ticks = self.ticks(bytes);
                // The tick that asks is one of them.
                Some(ticks - ticks / COLD_SHARE - 1).filter(|&ticks| ticks >= 0)
            }
            _ => None,
        }
    }

    /// Ticks of a function with `bytes` of code before it asks for code.
    pub(crate) fn ticks(&self, bytes: u32) -> i32 {
        match self.tier {
            Tier::Interpreter => NEVER,
            Tier::Native | Tier::Cranelift | Tier::Ssa => 0,
            Tier::Auto if self.stress.is_some() => self.random(4) as i32,
            Tier::Auto => match self.threshold {
                Some(ticks) => ticks.saturating_sub(1).min(NEVER as u32) as i32,
                None => i32::try_from(bytes).unwrap_or(NEVER).saturating_mul(self.ticks_per_byte).saturating_add(BASE_TICKS),
            },
        }
    }

    /// Ticks until a function asks again whose code is being made, or is ready for another entry than the one it needs.
    pub(crate) fn next_ticks(&self) -> i32 {
        match self.stress {
            Some(_) => self.random(16) as i32,
            None if self.threshold.is_some() => self.ticks(0),
            None => POLL_TICKS,
        }
    }

    /// What to do about an entry without code.
    pub(crate) fn decide(&self, entry: Entry) -> Decision {
        match self.tier {
            Tier::Interpreter | Tier::Ssa => Decision::Interpret(NEVER),
            Tier::Native | Tier::Cranelift if entry != Entry::Call => Decision::Interpret(NEVER),
            Tier::Native => Decision::Compile(Backend::Native),
            Tier::Cranelift => Decision::Compile(Backend::Cranelift),
            Tier::Auto if self.stress.is_some() => match self.random(16) {
                0..=5 => Decision::Interpret(self.random(24) as i32),
                6..=9 if cfg!(feature = "cranelift") => Decision::Compile(Backend::Cranelift),
                10 => Decision::Refuse,
                _ => Decision::Compile(Backend::Native),
            },
            Tier::Auto if self.synchronous => Decision::Compile(Backend::Native),
            Tier::Auto => Decision::Queue(Backend::Native),
        }
    }

    /// Whether an engine that cannot compile is an error, and not one that interprets.
    pub(crate) fn must_compile(&self) -> bool {
        matches!(self.tier, Tier::Native | Tier::Cranelift)
    }

    /// Ticks until a function asks again whose entry was refused: another entry of it may still get code.
    pub(crate) fn refused_ticks(&self) -> i32 {
        if self.tier == Tier::Auto { self.next_ticks() } else { NEVER }
    }

    /// Questions about an entry that has no code for want of room, or had to give it up, before it is compiled again: twice as many
    /// each time, so that what has no room in the long run costs little.
    pub(crate) fn rest(&self, setbacks: u32) -> u32 {
        if self.stress.is_some() { 0 } else { 1 << setbacks.min(MAX_REST) }
    }

    /// Ticks between two such questions about a function with `bytes` of code: as many as it took to be compiled at first.
    pub(crate) fn rest_ticks(&self, bytes: u32) -> i32 {
        match self.threshold {
            _ if self.stress.is_some() => self.next_ticks(),
            Some(ticks) => ticks.min(NEVER as u32) as i32,
            None => self.ticks(bytes).max(POLL_TICKS),
        }
    }

    /// Under stress, now and then: which of a module's `functions` functions goes back to the interpreter, and whether it loses its
    /// code.
    pub(crate) fn demotes(&self, functions: usize) -> Option<(usize, bool)> {
        let chosen = self.stress.is_some() && self.random(4) == 0;
        chosen.then(|| (self.random(functions as u64) as usize, self.random(4) == 0))
    }

    /// A random number below `bound`; only ever asked for under stress.
    fn random(&self, bound: u64) -> u64 {
        let Some(rng) = &self.stress else { return 0 };
        rng.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next() % bound
    }
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Debug)]
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
