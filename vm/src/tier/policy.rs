//! Decides which entries are compiled, when, and by which back end. All thresholds are here.
//!
//! There are two levels of compilation: baseline code, which [`Config::baseline`] turns off, and the best code that the settings
//! allow. Baseline code is compiled where the function is called, unless that takes too long, and counts the ticks that are left
//! until the other level.
//!
//! Ticks are bytes of bytecode executed. A function starts with [`Policy::first_ticks`]. The interpreter subtracts the
//! [work](weir_bytecode::sidetable) of each call and each loop iteration, and requests code when the ticks run out. If
//! interpreting has taken as long by then as compiling will, the sum of both is at most twice the better choice (the ski-rental
//! argument). [`Threshold`] says why the thresholds are lower. While the function is being compiled, it checks for code every
//! [`POLL_TICKS`], or [`BASELINE_POLL_TICKS`] in baseline code.
//!
//! A configured threshold, and those of stress, count calls and iterations instead: the work of each is then 1.

use super::entry::Level;
use crate::records::config::{Config, Tier};
use crate::sys::thread;
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use weir_bytecode::FuncBody;
use weir_contract::Entry;
use weir_jit::Backend;

/// Ticks between two checks for code that is being compiled, of interpreted functions: about 15 µs.
pub(crate) const POLL_TICKS: i32 = 8 << 10;
/// The same of functions in baseline code: about 15 µs, too. A check takes about half a microsecond. With [`POLL_TICKS`], Lua took up
/// to 1.5 times as long as in baseline code alone while its functions waited to be optimised.
const BASELINE_POLL_TICKS: i32 = 128 << 10;
/// A loop without a request for this long was left: a frame in it requests its code each time that these ticks run out.
pub(crate) const LEFT: Duration = Duration::from_millis(1);
/// Ticks that never run out in practice, for functions that will not be compiled.
pub(crate) const NEVER: i32 = i32::MAX;

/// Nanoseconds that a byte of bytecode takes in the interpreter, in baseline code and in the optimiser's code. These and the prices for each
/// byte are the medians that `weir-bench fit` prints, over 25 programs.
const INTERPRETER_NS: f64 = 0.308;
const BASELINE_NS: f64 = 0.029;
const OPTIMISED_NS: f64 = 0.022;

/// The price of compiling a function, in nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Price {
    /// For each byte of its code.
    per_byte: f64,
    /// For publishing the code: an estimate of the work of locks, listeners and first touches of pages.
    publish: f64,
}

impl Price {
    /// Returns the price of a function with `bytes` of code.
    fn of(self, bytes: u32) -> f64 {
        self.per_byte * f64::from(bytes) + self.publish
    }
}

/// The price of baseline code, and of the optimiser's. In a large module a byte of baseline code takes only 24 to 30 ns; most programs have
/// so little code that the first use of each stencil weighs.
const BASELINE_PRICE: Price = Price { per_byte: 57.0, publish: 6_000.0 };
const OPTIMISED_PRICE: Price = Price { per_byte: 343.0, publish: 10_000.0 };

/// The threshold of a function: the ticks until it is compiled.
#[derive(Clone, Copy, Debug)]
struct Threshold {
    /// For every function.
    base: i32,
    /// For each byte of its code.
    per_byte: i32,
}

impl Threshold {
    /// Compiling a function of `price` has paid when as much time was lost by executing it in `slow` instead of `fast` nanoseconds for
    /// each byte (the ski-rental rule, which is the best one if nothing is known of the function's future). But a function that has
    /// executed much will mostly execute many times as much: the distribution of work has a heavy tail. Code is therefore requested
    /// `earlier` times as early. That factor is fitted to the total time of programs, with the measurements given with each threshold.
    const fn of(price: Price, slow: f64, fast: f64, earlier: f64) -> Threshold {
        let ticks = 1.0 / ((slow - fast) * earlier);
        Threshold { base: (price.publish * ticks) as i32, per_byte: (price.per_byte * ticks) as i32 }
    }

    /// Returns the ticks of a function with `bytes` of code.
    fn ticks(self, bytes: u32) -> i32 {
        i32::try_from(bytes).unwrap_or(NEVER).saturating_mul(self.per_byte).saturating_add(self.base)
    }
}

/// The threshold of baseline code: 1,654 ticks and 15 for each byte. CPython printed after 126, 119 and 114 ms with 3,000 and 30, with
/// 1,500 and 15, and with 1,000 and 10; a Lua script of 16 ms took 6 % less with either than with the first, and SQLite printed 0.5 ms
/// later with the last two, because each function's code takes pages.
const FIRST: Threshold = Threshold::of(BASELINE_PRICE, INTERPRETER_NS, BASELINE_NS, 13.0);

/// The threshold of functions that are interpreted until the optimiser compiles them: 6,993 ticks and 239 for each byte. On one core, 225
/// for each byte took less time in total than 450 and 900.
const INTERPRETED: Threshold = Threshold::of(OPTIMISED_PRICE, INTERPRETER_NS, OPTIMISED_NS, 5.0);
/// The threshold of interpreted functions if another core compiles: 3,496 ticks and 119 for each byte. The guest does not wait then; only
/// functions later in the queue do.
const INTERPRETED_ELSEWHERE: Threshold = Threshold::of(OPTIMISED_PRICE, INTERPRETER_NS, OPTIMISED_NS, 10.0);
/// The threshold of functions that run in baseline code until the optimiser compiles them: 14,285 ticks and 489 for each byte. The
/// functions in which the two differ most decide, and they differ much more than the median. With factors between 225 and 4,000 for
/// each byte, total times on one core differ little.
const BASELINE: Threshold = Threshold::of(OPTIMISED_PRICE, BASELINE_NS, OPTIMISED_NS, 100.0);
/// The threshold of functions in baseline code if another core compiles: 8,928 ticks and 306 for each byte.
const BASELINE_ELSEWHERE: Threshold = Threshold::of(OPTIMISED_PRICE, BASELINE_NS, OPTIMISED_NS, 160.0);
/// Without baseline code, a function's profile begins after the fraction 1/`COLD_SHARE` of its ticks, so that cold functions need
/// no memory for counters. With baseline code, it begins after half of the ticks until baseline code is compiled.
const COLD_SHARE: i32 = 4;

/// Returns how many bytes of code must have been retired since the last time for retired code to be reclaimed, though there is room in a
/// budget of `max_code_size`. A fence takes microseconds; new code in fresh pages would take longer.
pub(crate) fn reclaim_bytes(max_code_size: usize) -> usize {
    (max_code_size / 16).min(1 << 20)
}

/// The second-chance sweep examines this many times the bytes wanted. In steady state, code is evicted if it is not
/// used while a quarter of the budget is filled anew.
pub(crate) const SWEEP_FACTOR: usize = 4;
/// Binary logarithm of the longest back-off, in requests.
const MAX_BACKOFF_LOG2: u32 = 10;

/// Under stress, the code of a function is retired at most this many times: more tests nothing new.
pub(crate) const MAX_STRESS_EVICTIONS: u32 = 20;

/// Maximum number of OSR bodies of a function. Each repeats the loop nest it enters, and a function that is hot in more
/// loops is soon called again.
const MAX_OSR_BODIES: u32 = 8;
/// Maximum bytes of bytecode in all OSR bodies of a function beyond the second. The main loop of a big interpreter
/// contains many others; compiling the function again for each would take too long.
const OSR_BYTES: u32 = 64 << 10;

/// Returns the maximum number of OSR bodies of a function with `bytes` of code; `calls_wait` is whether the code of its calls is still to be
/// compiled. If that takes long, a second body does not come before it, because later calls need none.
pub(crate) fn osr_bodies(bytes: u32, calls_wait: bool) -> u32 {
    if calls_wait && is_long(bytes, Level::Top) { 1 } else { (OSR_BYTES / bytes.max(1)).clamp(2, MAX_OSR_BODIES) }
}

/// Returns the number of bytes to free for `bytes` of code that did not fit `failures` times in a row. It doubles each
/// time, because free space may be fragmented, and smaller code may take it first.
pub(crate) fn wanted(bytes: usize, failures: u32) -> usize {
    bytes.saturating_mul(1 << failures.min(MAX_BACKOFF_LOG2))
}

/// Functions with more bytes of code get their baseline code from a compiler thread: compiling them on the guest's thread would
/// take more than about a millisecond. For a byte of so large a function it takes 30 to 40 ns.
const BASELINE_HERE: u32 = 28 << 10;

/// The gain of optimising `bytes` of code for each byte that the function executes in a second, up to a factor that is the same
/// for all. A loop counts four times, because it is running now and the function may not be called again.
pub(crate) fn value(bytes: u32, entry: Entry) -> f64 {
    let weight = if entry == Entry::Call { 1.0 } else { 4.0 };
    weight / OPTIMISED_PRICE.of(bytes)
}

/// The number of later processes that are expected to load a module from the cache. The price of optimising a function while nothing else
/// is to be compiled is divided among them.
const PROCESSES: f64 = 1_000.0;

/// The value of code that pays within a twentieth of them.
const SOON: f64 = 20.0;

/// One engine in this many also compiles code of a lower value.
const PATIENT: u64 = 4;

/// What a function takes in a process that has no code of it from the start, in nanoseconds, however often it is called: reading the results
/// of its validation, interpreting it from cold caches, and installing its code alone. In CPython's start these are 13 ms for 1,900 functions.
const UNPREPARED_NS: f64 = 5_000.0;

/// What installing baseline code takes longer than optimised code, for each byte of the function, in nanoseconds.
const LOADING_NS: f64 = 1.5;

/// Returns the price of compiling a function with `bytes` of code.
fn price(bytes: u32, level: Level) -> f64 {
    match level {
        Level::Baseline => BASELINE_PRICE.of(bytes),
        Level::Top => OPTIMISED_PRICE.of(bytes),
    }
}

/// Returns what compiling a function with `bytes` of code for later processes is worth, if this one has executed `executed` of
/// its bytes without optimised code. It pays if the result is 1 or more. `prepared` is whether it has baseline code.
pub(crate) fn value_later(bytes: u32, level: Level, prepared: bool, executed: u64) -> f64 {
    let better = executed as f64 * (BASELINE_NS - OPTIMISED_NS) + f64::from(bytes) * LOADING_NS;
    let gain = if prepared { 0.0 } else { UNPREPARED_NS } + if level == Level::Top { better } else { 0.0 };
    gain * PROCESSES / price(bytes, level)
}

/// The most time that a process leaves to later ones to compile. It also leaves no more than eight times as long as it ran, because a
/// process reads all of it before it compiles.
const NEXT: Duration = Duration::from_millis(50);

/// Returns whether a process that has run for `ran` leaves a function to the next one to compile, after others that take `before`
/// nanoseconds: what takes longer than such a process will not be ready in the next one either. `tried` processes ended while they
/// compiled it; after each, it is expected to take twice as long.
pub(crate) fn leaves(bytes: u32, level: Level, tried: u32, before: &mut f64, ran: Duration) -> bool {
    let price = price_after(bytes, level, tried);
    let next = NEXT.min(8 * ran).as_nanos() as f64;
    let leaves = price <= (ran + wait(ran)).as_nanos() as f64 && *before + price <= next;
    if leaves {
        *before += price;
    }
    leaves
}

/// As [`price`], of a function that `tried` processes did not compile to the end.
fn price_after(bytes: u32, level: Level, tried: u32) -> f64 {
    price(bytes, level) * f64::from(1_u32 << tried.min(16))
}

/// Returns when a compilation that begins now probably ends.
pub(crate) fn end_of(bytes: u32, level: Level, now: Instant) -> Instant {
    now + Duration::from_nanos(price(bytes, level) as u64)
}

/// Returns how long the end of a process that has run for `ran` may wait for code for later ones.
pub(crate) fn wait(ran: Duration) -> Duration {
    const MOST: Duration = Duration::from_millis(3);
    MOST.min(ran / 8)
}

/// Returns whether compiling a function, which `tried` processes did not do to the end, takes no longer than this.
pub(crate) fn ends_within(bytes: u32, level: Level, tried: u32, time: Duration) -> bool {
    price_after(bytes, level, tried) <= time.as_nanos() as f64
}

/// Returns whether it is too late to optimise an entry of a function, if this much time is left. `tried` processes did not do this to the end for
/// its calls: code that is requested is expected to take four times as long at most.
/// Code that is entered at a loop is for this process alone, and must be ready long before its end. Otherwise an interpreter's loop is compiled in
/// each short process, in vain, while nothing is compiled for later ones.
pub(crate) fn is_late(bytes: u32, entry: Entry, tried: u32, left: Duration) -> bool {
    match entry {
        Entry::Call => !ends_within(bytes, Level::Top, tried.min(2), left),
        Entry::Osr(_) => !ends_within(bytes, Level::Top, 0, left / 4),
    }
}

/// Returns the time for compiling that is left to a process that has run for `ran`, if it ends when earlier ones did: after `lasted`. `None`
/// if nothing is known, or if it has run longer. What takes longer than this time is not worth beginning: the processor, which may
/// share a core with the guest's, would only slow the guest down.
pub(crate) fn time_left(ran: Duration, lasted: Option<Duration>) -> Option<Duration> {
    let lasted = lasted.filter(|lasted| ran < *lasted)?;
    Some(lasted + wait(lasted) - ran)
}

/// Returns whether a function is compiled because nothing else is to be compiled: other functions of this process may become hot meanwhile.
pub(crate) fn is_short(bytes: u32, level: Level) -> bool {
    const SHORT: f64 = 10e6;
    price(bytes, level) <= SHORT
}

/// The most bytes of stored code that are installed before it is called, in an engine with room for `max_code` bytes of code: what takes
/// some 5 ms.
pub(crate) fn ahead_bytes(max_code: usize) -> u64 {
    const MOST: u64 = 8 << 20;
    MOST.min(max_code as u64 / 4)
}

/// Returns whether compiling a function takes so long that it matters whether the process ends before.
pub(crate) fn is_long(bytes: u32, level: Level) -> bool {
    const LONG: f64 = 1e6;
    price(bytes, level) >= LONG
}

/// The bytes of memory that compilations of a module that run at the same time may take together. One of them may take more.
pub(crate) const COMPILATIONS: usize = 64 << 20;

/// The most bytes of a function's code that are kept for later processes. A function of a megabyte may have 20 MB of baseline code, which
/// would be in memory while the function is optimised. Of compilers' output, only functions of about a megabyte have more than this.
pub(crate) const MAX_KEPT: usize = 4 << 20;

/// The bytes of memory that a compilation may take, or 0 if they are few: nearly all functions have fewer than 20 KB. The most that was seen for
/// compilers' output is 190 for each byte, and for the baseline compiler 90.
pub(crate) fn memory(bytes: u32, level: Level) -> usize {
    const FEW: usize = 4 << 20;
    let per_byte = if level == Level::Baseline { 90 } else { 190 };
    Some(bytes as usize * per_byte).filter(|&memory| memory > FEW).unwrap_or(0)
}

/// Whether Cranelift compiles a function that another back end has refused. It cannot be stopped, and takes at most 40 ms for these functions. Its
/// time depends on the shape: 32 KiB of arithmetic take 20 ms, and 8 KiB of loops 60, because it is quadratic in the number of blocks.
pub(crate) fn is_for_cranelift(body: &FuncBody) -> bool {
    const MOST: usize = 16 << 10;
    /// The bytes that take as long as an entry of the side table or a loop.
    const BRANCH: usize = 32;
    body.len() as usize + BRANCH * (body.branches.len() + body.loops.len()) <= MOST
}

/// Returns the budget of steps for all compilations of a module with this many bytes. It suffices to compile each of its functions some
/// hundred times.
pub(crate) fn module_steps(bytes: usize) -> u64 {
    const STEPS: u64 = 100_000_000;
    const STEPS_PER_BYTE: u64 = 2_000;
    STEPS + STEPS_PER_BYTE * bytes as u64
}

/// Returns the number of threads that compile a whole module ahead of time.
pub(crate) fn all_threads() -> usize {
    thread::parallelism().unwrap_or(1)
}

/// Returns the maximum number of compiler threads by default.
pub(crate) fn compiler_threads() -> usize {
    thread::parallelism().map_or(1, threads_for)
}

/// Returns the maximum number of compiler threads on this many cores: one core is left to the guest.
fn threads_for(cores: usize) -> usize {
    cores.saturating_sub(1).clamp(1, 4)
}

/// The first OSR body of a loop is replaced after this many times the heat at which the optimiser compiles the function. The body
/// has then run for a few times as long as compiling it again takes.
const OSR_FACTOR: u64 = 128;
/// The ticks of OSR bodies between two calls of the runtime.
const OSR_TICKS: i64 = 1 << 20;
/// With a configured threshold: how often an OSR body calls the runtime before it is replaced. The ticks between two calls are the
/// threshold.
const OSR_EXPIRIES: u32 = 64;
/// The misses of code between two calls of the runtime.
const MISSES: i64 = 1 << 12;
/// How often these misses run out in a function before it is profiled again.
pub(crate) const MISSES_EXPIRIES: u32 = 4;

/// Where a frame of an OSR body continues whose ticks have run out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Exit {
    /// It stays.
    Stay,
    /// In the optimiser's code for the loop at whose header it is.
    Code,
    /// In the optimiser's code for the loop, which is compiled again for this frame. Only under stress.
    NewCode,
    /// In code that counts, while the loop is compiled again.
    Profile,
    /// In baseline code, if there is some. Only under stress.
    Baseline,
    /// In the interpreter.
    Interpreter,
}

/// The decision about an entry without code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Decision {
    /// Interpret it, and check again after this many ticks.
    Interpret(i32),
    /// Compile it now, on the requesting thread.
    Compile(Backend),
    /// Compile it in the background.
    Queue(Backend),
    /// Behave as if the compiler had refused.
    Refuse,
}

/// The policy of an engine.
#[derive(Debug)]
pub(crate) struct Policy {
    tier: Tier,
    synchronous: bool,
    threshold: Option<u32>,
    stress: Option<Mutex<Rng>>,
    profile: bool,
    /// Whether functions get baseline code first.
    baseline: bool,
    /// Whether loops are compiled again that have run for long in their first OSR body, and functions whose guards often fail.
    replaces: bool,
    /// The threshold of the optimiser, unless one is configured.
    optimised: Threshold,
    /// See [`Policy::pays_later`].
    least_value: f64,
}

impl Policy {
    /// Creates the policy for these settings.
    pub(crate) fn new(config: &Config) -> Policy {
        let synchronous = config.synchronous_compilation || config.deterministic;
        let elsewhere = !synchronous && thread::parallelism().is_ok_and(|cores| cores > 1);
        Policy {
            tier: config.tier,
            synchronous,
            optimised: match (config.has_baseline(), elsewhere) {
                (false, false) => INTERPRETED,
                (false, true) => INTERPRETED_ELSEWHERE,
                (true, false) => BASELINE,
                (true, true) => BASELINE_ELSEWHERE,
            },
            threshold: config.tier_up_threshold,
            stress: config.stress.map(|seed| Mutex::new(Rng(seed))),
            profile: config.profiles(),
            baseline: config.has_baseline(),
            // With kept profiles, each entry is compiled once, so that its code can be shown later.
            replaces: config.has_baseline() && config.profiles() && !config.keep_profiles,
            least_value: if RandomState::new().hash_one(()).is_multiple_of(PATIENT) { 1.0 } else { SOON },
        }
    }

    /// Returns the ticks of a function with `bytes` of code until its profile begins or, if it has none, until it
    /// requests code.
    pub(crate) fn first_ticks(&self, bytes: u32) -> i32 {
        match self.tier {
            Tier::Interpreter if self.profile => 0,
            Tier::Auto if self.baseline => self.baseline_ticks(bytes) / if self.profile { 2 } else { 1 },
            Tier::Auto if self.profile => self.ticks(bytes) / COLD_SHARE,
            _ => self.ticks(bytes),
        }
    }

    /// Returns the ticks of a function with `bytes` of code until it gets baseline code.
    fn baseline_ticks(&self, bytes: u32) -> i32 {
        match self.threshold {
            _ if self.stress.is_some() => self.random(3) as i32,
            Some(ticks) => (ticks / 2).min(NEVER as u32) as i32,
            None => FIRST.ticks(bytes),
        }
    }

    /// Returns the ticks left until the optimiser compiles a function that has used `spent` of them; `None` if the function is
    /// not to run in baseline code until then. `cold` returns whether the optimiser has not been asked for the function; under
    /// stress, functions return to baseline code.
    pub(crate) fn until_top(&self, bytes: u32, spent: u64, cold: impl FnOnce() -> bool) -> Option<i32> {
        match self.stress {
            _ if !self.baseline => None,
            Some(_) => (self.random(4) != 0).then(|| self.stress_ticks(12)),
            None => self.not_hot(bytes, spent, cold),
        }
    }

    /// Returns the ticks left until the optimiser is asked for a function that has used `spent` of them, if it was not asked before and any
    /// are left. `None` under stress.
    pub(crate) fn not_hot(&self, bytes: u32, spent: u64, cold: impl FnOnce() -> bool) -> Option<i32> {
        if self.stress.is_some() || !cold() {
            return None;
        }
        let left = i64::from(self.ticks(bytes)).saturating_sub_unsigned(spent);
        i32::try_from(left).ok().filter(|&left| left > 0)
    }

    /// Returns whether a function is to run in baseline code while its optimised code is not ready.
    pub(crate) fn bridges(&self) -> bool {
        self.baseline && self.random(2) == 0
    }

    /// Returns the ticks of a function without a profile from the start of its profile until it requests code; `None`
    /// if it requests code at once.
    pub(crate) fn profile_ticks(&self, bytes: u32) -> Option<i32> {
        match self.tier {
            Tier::Interpreter if self.profile => Some(NEVER),
            Tier::Auto if self.profile && self.baseline => {
                let ticks = self.baseline_ticks(bytes);
                Some(ticks - ticks / 2 - 1).filter(|&ticks| ticks >= 0)
            }
            Tier::Auto if self.profile => {
                let ticks = self.ticks(bytes);
                // Includes the tick that ran out.
                Some(ticks - ticks / COLD_SHARE - 1).filter(|&ticks| ticks >= 0)
            }
            _ => None,
        }
    }

    /// Returns the ticks of a function with `bytes` of code until it requests code.
    pub(crate) fn ticks(&self, bytes: u32) -> i32 {
        match self.tier {
            Tier::Interpreter => NEVER,
            Tier::Native | Tier::Cranelift | Tier::Baseline | Tier::Ssa => 0,
            Tier::Auto if self.stress.is_some() => self.random(4) as i32,
            Tier::Auto => match self.threshold {
                Some(ticks) => ticks.saturating_sub(1).min(NEVER as u32) as i32,
                None => self.optimised.ticks(bytes),
            },
        }
    }

    /// Returns the ticks until a function checks again, if its code of this level is being compiled or is ready for another entry. If it
    /// can have baseline code, it runs in that while it waits for optimised code.
    pub(super) fn next_ticks(&self, level: Level) -> i32 {
        match self.stress {
            Some(_) => self.stress_ticks(16),
            None if self.threshold.is_some() => self.ticks(0),
            None if self.baseline && level == Level::Top => BASELINE_POLL_TICKS,
            None => POLL_TICKS,
        }
    }

    /// Decides about an entry without code.
    pub(crate) fn decide(&self, entry: Entry) -> Decision {
        match self.tier {
            Tier::Interpreter | Tier::Ssa => Decision::Interpret(NEVER),
            Tier::Native | Tier::Cranelift | Tier::Baseline if entry != Entry::Call => Decision::Interpret(NEVER),
            Tier::Native => Decision::Compile(Backend::Native),
            Tier::Cranelift => Decision::Compile(Backend::Cranelift),
            Tier::Baseline => Decision::Compile(Backend::Baseline),
            Tier::Auto if self.stress.is_some() => match self.random(20) {
                0..=5 => Decision::Interpret(self.stress_ticks(24)),
                6..=9 if cfg!(feature = "cranelift") => Decision::Compile(Backend::Cranelift),
                // Optimised code has no ticks. Calls of the refused functions go on changing the engine of the others. A refused loop
                // would only end the changes of its frames.
                10..=13 if entry == Entry::Call || self.random(8) == 0 => Decision::Refuse,
                _ => Decision::Compile(Backend::Native),
            },
            Tier::Auto if self.synchronous => Decision::Compile(Backend::Native),
            Tier::Auto => Decision::Queue(Backend::Native),
        }
    }

    /// Returns whether baseline code counts in the stripe of its store. `several` is whether stores use several.
    pub(crate) fn stripes(&self, several: bool) -> bool {
        if self.stress.is_some() { self.random(2) == 0 } else { several }
    }

    /// Decides about the baseline code of a function with `bytes` of code.
    pub(crate) fn decide_baseline(&self, bytes: u32) -> Decision {
        if bytes > BASELINE_HERE && !self.synchronous && self.stress.is_none() {
            Decision::Queue(Backend::Baseline)
        } else {
            Decision::Compile(Backend::Baseline)
        }
    }

    /// Returns whether it is an error if the engine cannot compile.
    pub(crate) fn must_compile(&self) -> bool {
        matches!(self.tier, Tier::Native | Tier::Cranelift | Tier::Baseline)
    }

    /// Returns the ticks until a function with a refused entry checks again: another entry of the function may still be
    /// compiled.
    pub(super) fn refused_ticks(&self, level: Level) -> i32 {
        if self.tier == Tier::Auto { self.next_ticks(level) } else { NEVER }
    }

    /// Returns the number of requests before an entry is compiled again, if its code did not fit or was retired. It
    /// doubles each time, so that code that does not fit permanently costs little.
    pub(crate) fn backoff(&self, count: u32) -> u32 {
        if self.stress.is_some() { 0 } else { 1 << count.min(MAX_BACKOFF_LOG2) }
    }

    /// Returns the ticks between two such requests of a function with `bytes` of code: as many as before its first
    /// compilation.
    pub(crate) fn backoff_ticks(&self, bytes: u32) -> i32 {
        match self.threshold {
            _ if self.stress.is_some() => self.next_ticks(Level::Top),
            Some(ticks) => ticks.min(NEVER as u32) as i32,
            None => self.ticks(bytes).max(POLL_TICKS),
        }
    }

    /// Under stress, chooses one of a module's `functions` functions at random to return to the interpreter, and
    /// whether its code is retired. `None` half of the time.
    pub(crate) fn stress_victim(&self, functions: usize) -> Option<(usize, bool)> {
        let chosen = self.stress.is_some() && self.random(2) == 0;
        chosen.then(|| (self.random(functions as u64) as usize, self.random(16) == 0))
    }

    /// Returns whether an entry's code is prepared to be replaced. `first` is whether it was not yet. Code of calls always is: it may be stored
    /// for later processes, in which other guards fail.
    pub(crate) fn leaves(&self, entry: Entry, first: bool) -> bool {
        match self.stress {
            Some(_) => self.replaces && self.random(8) != 0,
            None => self.replaces && (first || entry == Entry::Call),
        }
    }

    /// Returns the ticks of OSR bodies between two calls of the runtime.
    pub(crate) fn osr_ticks(&self) -> i64 {
        self.until_runtime(OSR_TICKS)
    }

    /// Returns how often code may miss between two calls of the runtime.
    pub(crate) fn misses(&self) -> i64 {
        self.until_runtime(MISSES)
    }

    /// Returns `usual`, or the threshold in its place: what optimised code counts down between two calls of the runtime.
    fn until_runtime(&self, usual: i64) -> i64 {
        match self.threshold {
            _ if self.stress.is_some() => self.random(4) as i64,
            Some(ticks) => ticks.into(),
            None => usual,
        }
    }

    /// Returns how often the first OSR body of a loop calls the runtime before it is replaced, in a function with `bytes` of code.
    pub(crate) fn osr_expiries(&self, bytes: u32) -> u32 {
        match self.threshold {
            Some(_) => OSR_EXPIRIES,
            None => (OSR_FACTOR * self.optimised.ticks(bytes).unsigned_abs() as u64 / OSR_TICKS as u64).clamp(1, u32::MAX.into())
                as u32,
        }
    }

    /// Returns whether functions are optimised that are not hot, while nothing else is to be compiled.
    pub(crate) fn fills(&self) -> bool {
        self.tier == Tier::Auto && !self.synchronous && self.threshold.is_none() && self.stress.is_none()
    }

    /// Returns whether an idle compiler thread compiles code of this [value](value_later) for later processes. Every engine compiles code that pays
    /// within 50 processes. One engine in [`PATIENT`], chosen at random, compiles all code that pays: a compiler thread slows the guest down by a
    /// fifth if both share a core.
    pub(crate) fn pays_later(&self, value: f64) -> bool {
        value >= self.least_value
    }

    /// Returns whether stored code is installed before it is called.
    pub(crate) fn installs_ahead(&self) -> bool {
        self.stress.is_none()
    }

    /// Returns whether decisions are taken at random.
    pub(crate) fn is_stressed(&self) -> bool {
        self.stress.is_some()
    }

    /// Under stress, returns where a frame of an OSR body continues.
    pub(crate) fn stress_exit(&self) -> Option<Exit> {
        self.stress.as_ref()?;
        const EXITS: [Exit; 6] = [Exit::Stay, Exit::Code, Exit::NewCode, Exit::Profile, Exit::Baseline, Exit::Interpreter];
        Some(EXITS[self.random(EXITS.len() as u64) as usize])
    }

    /// Under stress, returns whether baseline code whose ticks have run out continues in the interpreter.
    pub(crate) fn stress_resumes(&self) -> bool {
        self.stress.is_some() && self.random(3) == 0
    }

    /// Returns the ticks after which a function changes the engine under stress: below `few`, or sometimes as many as many calls
    /// take, so that functions of all engines call each other.
    fn stress_ticks(&self, few: u64) -> i32 {
        let bound = if self.random(64) == 0 { 1 << 11 } else { few };
        self.random(bound) as i32
    }

    /// Returns a random number below `bound`; 0 without stress.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_body_of_a_long_function_waits_for_its_calls() {
        assert_eq!([false, true].map(|calls_wait| osr_bodies(1_000, calls_wait)), [8, 8]);
        assert_eq!([false, true].map(|calls_wait| osr_bodies(10_000, calls_wait)), [6, 1]);
        assert_eq!([false, true].map(|calls_wait| osr_bodies(60_000, calls_wait)), [2, 1]);
    }

    #[test]
    fn what_is_not_left_to_the_next_process_takes_none_of_its_time() {
        let (mut before, ran) = (0.0, Duration::from_millis(5));
        assert!(!leaves(1 << 20, Level::Top, 0, &mut before, ran), "it takes longer than the process ran");
        assert_eq!(before, 0.0);
        let left = (0..1_000).filter(|_| leaves(1_000, Level::Top, 0, &mut before, ran)).count();
        let most = (8 * ran).as_nanos() as f64;
        assert!(left > 100 && before <= most && before + price(1_000, Level::Top) > most, "{left} functions, {before} ns");
    }

    #[test]
    fn what_did_not_end_before_the_process_is_tried_only_in_longer_ones() {
        let (bytes, mut before, now) = (20_000, 0.0, Instant::now());
        let ran = end_of(bytes, Level::Top, now) - now;
        let mut leaves = |tried, ran| leaves(bytes, Level::Top, tried, &mut before, ran);
        assert!(leaves(0, ran) && !leaves(1, ran) && leaves(1, 2 * ran) && !leaves(40, 2 * ran));
        let will_end = |tried, at, lasted| time_left(at, lasted).is_none_or(|time| ends_within(bytes, Level::Top, tried, time));
        let zero = Duration::ZERO;
        assert!(will_end(0, zero, Some(ran)) && !will_end(1, zero, Some(ran)) && !will_end(0, ran / 2, Some(ran)));
        assert!(will_end(0, zero, None), "no process ran before");
        assert!(will_end(9, ran, Some(ran)), "it runs longer than those before");
    }

    #[test]
    fn code_for_a_loop_is_ready_long_before_the_end() {
        let takes = Duration::from_nanos(price(20_000, Level::Top) as u64 + 1);
        let is_late = |entry, tried, left| is_late(20_000, entry, tried, left);
        assert!(!is_late(Entry::Call, 0, takes) && is_late(Entry::Call, 1, takes) && is_late(Entry::Call, 0, takes / 2));
        assert!(is_late(Entry::Osr(7), 0, 3 * takes) && !is_late(Entry::Osr(7), 0, 5 * takes));
    }

    #[test]
    fn one_process_in_four_compiles_what_pays_late() {
        let all = 400;
        let patient = (0..all).filter(|_| {
            let policy = Policy::new(&Config::new());
            assert!(policy.pays_later(SOON) && !policy.pays_later(0.9));
            policy.pays_later(1.0)
        });
        // The probability of fewer or more is below one in a billion.
        assert!((50..160).contains(&patient.count()));
    }

    #[test]
    fn a_function_that_was_called_is_compiled_for_later() {
        // Baseline code first: it is worth more for its time.
        let [baseline, top] =
            [(Level::Baseline, false), (Level::Top, true)].map(|(level, prepared)| value_later(300, level, prepared, 300));
        assert!(baseline > top && top >= 1.0, "{baseline} {top}");
    }

    #[test]
    fn one_to_four_threads_compile() {
        let threads = [0, 1, 2, 3, 4, 5, 6, 64].map(threads_for);
        assert_eq!(threads, [1, 1, 1, 2, 3, 4, 4, 4]);
    }

    /// The thresholds are those that their comments name and for which they were measured.
    #[test]
    fn thresholds_follow_from_prices_and_speeds() {
        let all = [FIRST, INTERPRETED, INTERPRETED_ELSEWHERE, BASELINE, BASELINE_ELSEWHERE];
        let named = all.map(|threshold| (threshold.base, threshold.per_byte));
        assert_eq!(named, [(1_654, 15), (6_993, 239), (3_496, 119), (14_285, 489), (8_928, 306)]);
        // 1,000 ns lost at 0.5 ns a tick, and half as many if code is requested twice as early; 10 ns more for each byte.
        let price = Price { per_byte: 10.0, publish: 1_000.0 };
        let once = Threshold::of(price, 0.75, 0.25, 1.0);
        let twice = Threshold::of(price, 0.75, 0.25, 2.0);
        assert_eq!([once.ticks(0), once.ticks(7), twice.ticks(0), twice.ticks(7)], [2_000, 2_140, 1_000, 1_070]);
        assert_eq!(once.ticks(u32::MAX), NEVER);
    }

    /// A large function gets its baseline code from a compiler thread, except where compilations are to be synchronous.
    #[test]
    fn large_baseline_code_is_queued() {
        let [here, queued] = [Decision::Compile(Backend::Baseline), Decision::Queue(Backend::Baseline)];
        let decide = |config: &Config| [BASELINE_HERE, BASELINE_HERE + 1].map(|bytes| Policy::new(config).decide_baseline(bytes));
        assert_eq!(decide(&Config::new()), [here, queued]);
        assert_eq!(decide(Config::new().synchronous_compilation(true)), [here, here]);
        assert_eq!(decide(Config::new().deterministic(true)), [here, here]);
    }
}
