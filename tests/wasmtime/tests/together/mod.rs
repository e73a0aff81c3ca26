//! Guests of both runtimes in one process, each of which has handlers for the same signals: every fault is a trap of the runtime whose guest it
//! is, whoever's handlers came first, also where guests call each other through the host.

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
/// The repetitions on each of the threads, and of how many one has stack overflows, which take longer.
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
        if arg < TRAPS.len() { Ok(5) } else { Err(format!("{trap} of the other one")) }
    })
}

/// Calls that return, trap, and call the other runtime's guest through the host.
fn round(call: Call<'_>, deep: bool) {
    assert_eq!(call("sum", SUM), Ok(SUM_OF));
    let is_run = |&(_, trap): &(usize, &(&str, i32, &str))| deep || trap.0 != "deep";
    for (i, &(name, arg, trap)) in TRAPS.iter().enumerate().filter(is_run) {
        assert_eq!(call(name, arg), Err(trap.to_string()));
        // The memory is read after the host function has returned: it has what `sum` left there.
        assert_eq!(call("calls", i as i32), call("load", 0).map(|first| first + 5));
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

/// Makes the engines, and so installs the handlers of wasmtime or those of Weir first, and runs guests of both on several threads, in each tier.
pub fn test(wasmtime_first: bool) {
    let theirs = || {
        let engine = wasmtime::Engine::default();
        // Handlers may be installed no earlier than by the first guest.
        let guest = theirs::guest::Guest::new(&engine, nothing()).call("load", 3);
        assert_eq!(guest, Err("MemoryOutOfBounds".to_string()));
        engine
    };
    let mut their_engine = wasmtime_first.then(theirs);
    for tier in [Tier::Interpreter, Tier::Baseline, Tier::Native, Tier::Cranelift, Tier::Auto] {
        let mut config = weir::Config::new();
        config.tier(tier).synchronous_compilation(true).tier_up_threshold(Some(1));
        let our_engine = engines::engine(&config).unwrap();
        let guest = ours::guest::Guest::new(&our_engine, nothing()).call("load", 3);
        assert_eq!(guest, Err("MemoryOutOfBounds".to_string()));
        let both = (our_engine, their_engine.get_or_insert_with(theirs).clone());
        std::thread::scope(|scope| (0..THREADS).for_each(|_| _ = scope.spawn(|| rounds(&both))));
    }
}
