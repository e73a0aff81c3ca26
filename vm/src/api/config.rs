//! The settings of an engine, as the embedder makes them.

use crate::api::events::{self, TierEvent};
use crate::records::config::{Allocator, Config, Tier};
use crate::records::events::Profiler;
#[cfg(feature = "jit")]
use weir_contract::code::MachineText;
use weir_contract::code::Padding;

impl Config {
    /// The defaults: every tier, no fuel, no interruption.
    pub fn new() -> Config {
        Config::default()
    }

    /// Chooses who runs functions. Default: [`Tier::Auto`].
    pub fn tier(&mut self, tier: Tier) -> &mut Config {
        self.tier = tier;
        self
    }

    /// Charges fuel for every instruction; a store out of fuel traps. The amount is the same in every tier. Default:
    /// off.
    ///
    /// | instruction | units |
    /// |---|---|
    /// | `nop`, `block`, `loop`, `else`, `end` | 0 |
    /// | `memory.fill` `copy` `init`, `table.fill` `copy` `init` | 1, and 1 for every 64 bytes or elements |
    /// | every other one, calls, branches and `drop` included | 1 |
    ///
    /// What runs straight through (up to a branch, a call or a label) is charged as a whole before its first instruction,
    /// and nothing is given back if it traps midway. So the guest stops *before* the run of instructions that its fuel
    /// does not cover, with [`Trap::OutOfFuel`](crate::Trap::OutOfFuel), and changes nothing beyond.
    /// [`Store::set_fuel`](crate::Store::set_fuel) and its like for callers set what is left at any time, during a call by a host
    /// function too: accounting goes on from there. Instantiation costs what the start function costs; host functions cost
    /// nothing but what they take themselves.
    pub fn consume_fuel(&mut self, enable: bool) -> &mut Config {
        self.consume_fuel = enable;
        self
    }

    /// Makes running code stop at its next loop or call once the engine's epoch has reached the store's deadline.
    /// Default: off.
    pub fn epoch_interruption(&mut self, enable: bool) -> &mut Config {
        self.epoch_interruption = enable;
        self
    }

    /// How many bytes of the calling thread's native stack the guest may use. The thread must have
    /// [`NATIVE_STACK_RESERVE`](weir_contract::NATIVE_STACK_RESERVE) (128 KiB) more. Default: 512 KiB.
    pub fn max_wasm_stack(&mut self, bytes: usize) -> &mut Config {
        self.max_wasm_stack = bytes;
        self
    }

    /// How many bytes a store's value stack has, on which interpreted functions have their frames. It is address space
    /// until it is used. Default: 4 MiB.
    pub fn value_stack_size(&mut self, bytes: usize) -> &mut Config {
        self.value_stack_size = bytes;
        self
    }

    /// For testing: forces tier switches, delays and failures of compilations, chosen by this seed. Default: none.
    pub fn stress(&mut self, seed: Option<u64>) -> &mut Config {
        self.stress = seed;
        self
    }

    /// For testing: interprets with the portable loop alone, not with the handlers in assembly that there are for x86-64.
    /// Metering and canonical NaNs do that, too. Default: off.
    pub fn portable_interpreter(&mut self, enable: bool) -> &mut Config {
        self.portable_interpreter = enable;
        self
    }

    /// For testing: calls of functions with one of these names, by the name section, always enter the interpreter. Their
    /// loops may still be continued in compiled code. Default: none.
    pub fn interpret_calls(&mut self, names: &[&str]) -> &mut Config {
        self.interpret_calls = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// Compiles on the thread that runs, at once, so that runs are reproducible, instead of in the background.
    /// Default: off.
    pub fn synchronous_compilation(&mut self, enable: bool) -> &mut Config {
        self.synchronous_compilation = enable;
        self
    }

    /// How many threads at most compile in the background for all of an engine's modules; at least one. Default: 1, which leaves the
    /// other core of the smallest machines to the guest.
    pub fn compiler_threads(&mut self, threads: usize) -> &mut Config {
        self.compiler_threads = threads.max(1);
        self
    }

    /// How many bytes of machine code an engine may have at a time, stubs included. When they are
    /// all in use, code that has not been called lately gives way, and what was never called so often stays in the interpreter. The
    /// room is there once every store has been outside the guest since: a program that never returns to its host keeps what it
    /// has. A module's code is given back when the module is dropped. Default: the most that an engine can have, 240 MiB.
    pub fn max_code_size(&mut self, bytes: usize) -> &mut Config {
        self.max_code_size = bytes;
        self
    }

    /// After how many calls and loop iterations a function is compiled, whatever its size. Default: `None`, which
    /// weighs the cost of compiling it.
    pub fn tier_up_threshold(&mut self, ticks: Option<u32>) -> &mut Config {
        self.tier_up_threshold = ticks;
        self
    }

    /// Validates each function before its first execution, not all when the module is loaded: a big module of which little runs
    /// starts sooner. Everything else is validated at once; calling a function that is invalid ends with its
    /// [`InvalidModule`](crate::InvalidModule), each time. Default: off.
    pub fn lazy_validation(&mut self, enable: bool) -> &mut Config {
        self.lazy_validation = enable;
        self
    }

    /// Validates the functions of a big module on several threads, which end before the module is made. Default: on.
    pub fn parallel_validation(&mut self, enable: bool) -> &mut Config {
        self.parallel_validation = enable;
        self
    }

    /// Surrounds 32-bit memories with inaccessible address space (6 GiB each), so that compiled code needs no
    /// bounds checks. Off: every access is checked. Default: on.
    pub fn guard_regions(&mut self, enable: bool) -> &mut Config {
        self.guard_regions = enable;
        self
    }

    /// Lets compiled code fault where it traps, which handlers for SIGSEGV, SIGBUS, SIGILL and SIGFPE turn into traps: they are
    /// installed once per process, with the first module of such an engine, and pass on whatever is not theirs. Off: no handler is
    /// installed and no alternate signal stack made; there are no guard regions, and code checks every access, divisor and
    /// conversion, for processes whose signals belong to somebody else. Default: on.
    pub fn signals_based_traps(&mut self, enable: bool) -> &mut Config {
        self.signals_based_traps = enable;
        self
    }

    /// For finding bugs: passes of the optimiser, by name, that do not run. A name that no pass has is ignored. Default:
    /// none.
    pub fn passes_off(&mut self, names: &[&str]) -> &mut Config {
        self.passes_off = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// For finding bugs: how many rewrites the optimiser may make in each function, so that a wrong result can be
    /// bisected to one of them. Default: `None`, any number.
    pub fn rewrite_fuel(&mut self, rewrites: Option<u64>) -> &mut Config {
        self.rewrite_fuel = rewrites;
        self
    }

    /// For finding out how the speed of machine code depends on addresses: adds padding to the code of the native back end. Default:
    /// none.
    pub fn padding(&mut self, padding: Padding) -> &mut Config {
        self.padding = padding;
        self
    }

    /// Counts, in functions that are interpreted, which way branches go and what indirect calls call: see
    /// [`Module::profile`](crate::Module::profile). With [`Tier::Auto`] a function's counts begin when it has executed a quarter of
    /// the bytecode after which it is compiled, with [`Tier::Interpreter`] at its first call. Default: on with [`Tier::Auto`], else off.
    pub fn profile(&mut self, enable: bool) -> &mut Config {
        self.profile = Some(enable);
        self
    }

    /// Lets profiles outlive the process: [`Module::saved_profile`](crate::Module::saved_profile) and
    /// [`Module::use_profile`](crate::Module::use_profile). Modules are hashed when they are loaded (some milliseconds for 26 MB),
    /// and the counts that each compilation used are kept. Default: off.
    pub fn keep_profiles(&mut self, enable: bool) -> &mut Config {
        self.keep_profiles = enable;
        self
    }

    /// Tells a profiler of all code that is compiled. Default: `None`.
    pub fn profiler(&mut self, profiler: Option<Profiler>) -> &mut Config {
        self.profiler = profiler;
        self
    }

    /// Calls `callback` whenever a function or a loop has been compiled, or could not be. It runs on the thread that compiled, with
    /// whatever the guest was doing going on meanwhile: so it must be short and must not call into a store. A panic in it goes no
    /// further. Default: none.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use weir::{Config, Engine, TierEventKind};
    ///
    /// static CODE_BYTES: AtomicUsize = AtomicUsize::new(0);
    ///
    /// let mut config = Config::new();
    /// config.on_tier_event(|event| {
    ///     if let TierEventKind::Compiled { code, time, .. } = &event.kind {
    ///         CODE_BYTES.fetch_add(code.len(), Ordering::Relaxed);
    ///         println!("{} compiled in {time:?}", event.name());
    ///     }
    /// });
    /// let engine = Engine::new(&config)?;
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn on_tier_event(&mut self, callback: impl Fn(&TierEvent<'_>) + Send + Sync + 'static) -> &mut Config {
        self.tier_events = Some(events::callback(callback));
        self
    }

    /// Leaves nothing to chance that the guest could see: runs with the same settings, imports and inputs give the same results,
    /// bit for bit.
    ///
    /// - A NaN that arithmetic makes is the canonical one, in every tier; otherwise its sign and payload are the
    ///   processor's. This costs a comparison and a selection for each operation on floats.
    /// - Functions are compiled on the thread that runs and at once, as with
    ///   [`synchronous_compilation`](Config::synchronous_compilation): so the depth at which the stack is exhausted does not depend on
    ///   how fast a compiler thread is. It still depends on [`tier`](Config::tier), as frames of compiled functions are smaller.
    /// - Relaxed vector instructions always do the same, with this setting and without.
    ///
    /// What the guest imports is the embedder's: clocks and random numbers above all, for which `weir_wasi`'s contexts have a
    /// setting of their own. Deadlines ([`epoch_interruption`](Config::epoch_interruption)) come when they come, and memory grows
    /// while the system has some. Default: off.
    pub fn deterministic(&mut self, enable: bool) -> &mut Config {
        self.deterministic = enable;
        self
    }

    /// Who allocates registers in Weir's own back end; for comparison. The default is what [`Allocator`] says.
    pub fn register_allocator(&mut self, allocator: Allocator) -> &mut Config {
        self.allocator = allocator;
        self
    }

    /// Machine code that the native back end takes for these functions of every module instead of compiling them: for tests of the
    /// compiler. Code that is not what the function does breaks the guest, and may break the host.
    #[doc(hidden)]
    #[cfg(feature = "jit")]
    pub fn machine_code(&mut self, code: Vec<MachineText>) -> &mut Config {
        self.machine_code = code;
        self
    }
}
