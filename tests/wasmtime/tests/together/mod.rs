//! Guests of wasmtime and of Weir in one process. Both runtimes install handlers for the same signals. Each fault becomes a trap of the runtime that
//! runs the guest. This holds in either order of installation, and when guests of the two call each other through the host.

#[path = "../../../src/engines.rs"]
#[allow(dead_code, reason = "the tests of the workspace use all of it")]
mod engines;

#[path = "."]
mod ours {
    pub use weir as vm;
    #[path = "guest.rs"]
    pub mod guest;
}

#[path = "."]
#[allow(clippy::duplicate_mod, reason = "the same text for the other crate")]
mod theirs {
    pub use wasmtime as vm;
    #[path = "guest.rs"]
    pub mod guest;
}

use weir::Tier;

/// What a guest's host function does.
pub type Other = Box<dyn FnMut(i32) -> Result<i32, String> + Send>;

/// The calls that trap, with the names of the traps, which are the same in both runtimes.
const TRAPS: [(&str, i32, &str); 4] = [
    ("load", 3, "MemoryOutOfBounds"),
    ("divide", 7, "IntegerDivisionByZero"),
    ("unreachable", 0, "UnreachableCodeReached"),
    ("deep", 0, "StackOverflow"),
];
/// The result of `sum(SUM)`.
const SUM: i32 = 1000;
const SUM_OF: i32 = SUM * (SUM + 1) / 2;
/// What the host function returns if it goes on, and the number at address 0 after `sum`.
const RETURNED: i32 = 5;
const STORED: i32 = 1;
/// The rounds of each thread. One of this many has stack overflows, which take longer.
const ROUNDS: usize = 1000;
const DEEP_EVERY: usize = 50;
const THREADS: usize = 4;

/// A function of a guest, called by name.
type Call<'a> = &'a mut dyn FnMut(&str, i32) -> Result<i32, String>;

/// The host function of guests that call no other guest.
fn nothing() -> Other {
    Box::new(Ok)
}

/// A host function that calls a function of the other runtime's guest, which traps. It goes on, or fails with the name of the trap.
fn calling(mut other: impl FnMut(&str, i32) -> Result<i32, String> + Send + 'static) -> Other {
    Box::new(move |arg| {
        let arg = arg as usize;
        let (name, of, trap) = TRAPS[arg % TRAPS.len()];
        assert_eq!(other(name, of), Err(trap.to_string()));
        if arg < TRAPS.len() { Ok(RETURNED) } else { Err(format!("{trap} of the other one")) }
    })
}

/// Calls that return, trap, and call the other runtime's guest through the host.
fn round(call: Call<'_>, deep: bool) {
    assert_eq!(call("sum", SUM), Ok(SUM_OF));
    let is_run = |&(_, trap): &(usize, &(&str, i32, &str))| deep || trap.0 != "deep";
    for (i, &(name, arg, trap)) in TRAPS.iter().enumerate().filter(is_run) {
        assert_eq!(call(name, arg), Err(trap.to_string()));
        // The memory is read after the host function has returned. In that of the other guest this number is 0.
        assert_eq!(call("calls", i as i32), Ok(RETURNED + STORED));
        assert_eq!(call("calls", (i + TRAPS.len()) as i32), Err(format!("{trap} of the other one")));
    }
}

/// Runs guests of both in turn, on this thread.
fn rounds(engines: &(weir::Engine, wasmtime::Engine)) {
    let (our_engine, their_engine) = engines;
    let mut their_inner = theirs::guest::Guest::new(their_engine, nothing());
    let mut our_inner = ours::guest::Guest::new(our_engine, nothing());
    let mut ours = ours::guest::Guest::new(our_engine, calling(move |name, arg| their_inner.call(name, arg)));
    let mut theirs = theirs::guest::Guest::new(their_engine, calling(move |name, arg| our_inner.call(name, arg)));
    for i in 0..ROUNDS {
        round(&mut |name, arg| ours.call(name, arg), i % DEEP_EVERY == 0);
        round(&mut |name, arg| theirs.call(name, arg), i % DEEP_EVERY == 0);
    }
}

/// The signals of faults that the standard library does not catch: of the bits of `SigCgt`, those of SIGILL and SIGFPE.
fn caught() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
    u64::from_str_radix(mask.trim(), 16).unwrap() & (1 << 3 | 1 << 7)
}

/// An engine of Weir, in which a guest has run compiled code and trapped, unless the tier has no compiler.
fn our_engine(tier: Tier) -> weir::Engine {
    let mut config = weir::Config::new();
    config.tier(tier).synchronous_compilation(true).tier_up_threshold(Some(1));
    let engine = engines::engine(&config).unwrap();
    let mut guest = ours::guest::Guest::new(&engine, nothing());
    (0..2).for_each(|_| assert_eq!(guest.call("load", 3), Err(TRAPS[0].2.to_string())));
    let compiled = engine.stats().functions;
    assert_eq!(tier != Tier::Interpreter, compiled.baseline + compiled.native + compiled.cranelift > 0, "{tier:?}: {compiled:?}");
    engine
}

/// An engine of wasmtime, in which a guest has trapped.
fn their_engine() -> wasmtime::Engine {
    let engine = wasmtime::Engine::default();
    assert_eq!(theirs::guest::Guest::new(&engine, nothing()).call("load", 3), Err(TRAPS[0].2.to_string()));
    engine
}

/// Installs the handlers of one runtime and then those of the other, and runs guests of both on several threads, in each tier of Weir.
pub fn test(wasmtime_first: bool) {
    assert_eq!(caught(), 0, "a handler is there already");
    let first = wasmtime_first.then(their_engine);
    // The interpreter's engine installs none, so it comes last.
    let tiers = [Tier::Baseline, Tier::Native, Tier::Cranelift, Tier::Auto, Tier::Interpreter];
    let ours = tiers.map(|tier| {
        let before = caught();
        let engine = our_engine(tier);
        assert!(wasmtime_first == (before != 0) || tier != tiers[0], "the order of the handlers");
        assert_ne!(caught(), 0, "Weir's handlers are there");
        engine
    });
    let theirs = first.unwrap_or_else(their_engine);
    for engine in ours {
        let both = (engine, theirs.clone());
        std::thread::scope(|scope| (0..THREADS).for_each(|_| _ = scope.spawn(|| rounds(&both))));
    }
}
