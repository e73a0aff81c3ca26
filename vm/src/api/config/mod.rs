//! The settings of an engine: the methods of [`Config`].

pub(crate) mod choices;
mod memories;
mod proposals;

use crate::api::events::{self, TierEvent};
use crate::records::config::{Allocator, Config, RoundTrip, Tier};
#[cfg(feature = "jit")]
use weir_contract::code::FunctionText;
use weir_contract::code::Padding;

impl Config {
    /// Creates the default settings: every tier, no fuel, no interruption.
    pub fn new() -> Config {
        Config::default()
    }

    /// Selects the engine that runs functions. Default: [`Tier::Auto`].
    pub fn tier(&mut self, tier: Tier) -> &mut Config {
        self.tier = tier;
        self
    }

    /// Charges fuel for every instruction; a store out of fuel traps. The amount is the same in every tier. Default:
    /// off. [`Config::operator_cost`] sets other costs than these.
    ///
    /// | instruction | units |
    /// |---|---|
    /// | `nop`, `block`, `loop`, `else`, `end` | 0 |
    /// | `try_table`, `try`, `catch`, `catch_all`, `delegate` | 0 |
    /// | a throw | 1, and 1 for every catch clause that is tested and every frame that is left |
    /// | `memory.fill` `copy` `init`, `table.fill` `copy` `init` | 1, and 1 for every 64 bytes or elements |
    /// | every other one, calls, branches and `drop` included | 1 |
    ///
    /// A straight-line segment (up to a branch, a call or a label) is charged as a whole before its first instruction,
    /// without a refund if it traps midway. The guest therefore stops with [`Trap::OutOfFuel`](crate::Trap::OutOfFuel)
    /// *before* a segment that its fuel does not cover, and executes nothing of it.
    /// [`Store::set_fuel`](crate::Store::set_fuel) and the methods of the same name set the remaining fuel at any time,
    /// also in a host function during a call. Instantiation costs the fuel of the start function. Host functions cost
    /// nothing unless they subtract fuel themselves.
    pub fn consume_fuel(&mut self, enable: bool) -> &mut Config {
        self.consume_fuel = enable;
        self
    }

    /// Makes running code stop at its next loop iteration or call once the engine's epoch has reached the store's
    /// deadline. Default: off.
    pub fn epoch_interruption(&mut self, enable: bool) -> &mut Config {
        self.epoch_interruption = enable;
        self
    }

    /// Sets the number of bytes of the calling thread's native stack that the guest may use. The thread must have
    /// [`NATIVE_STACK_RESERVE`](weir_contract::NATIVE_STACK_RESERVE) (128 KiB) more. Default: 512 KiB.
    pub fn max_wasm_stack(&mut self, bytes: usize) -> &mut Config {
        self.max_wasm_stack = bytes;
        self
    }

    /// Lets guests yield after fuel ([`Store::fuel_async_yield_interval`](crate::Store::fuel_async_yield_interval)), or be stopped when it
    /// has run out ([`Func::call_resumable`](crate::Func::call_resumable)), in an engine that consumes fuel: its code polls, as with
    /// [`Config::epoch_interruption`]. That takes five instructions in each loop and function. An embedder that needs neither turns
    /// it off. It has no other effect, and none without the feature `async`. Default: on.
    pub fn async_support(&mut self, enable: bool) -> &mut Config {
        self.async_support = enable;
        self
    }

    /// Sets the size in bytes of the native stacks on which guests run that are called asynchronously. It must not be less than
    /// [`Config::max_wasm_stack`]. The rest, of which at least [`NATIVE_STACK_RESERVE`](weir_contract::NATIVE_STACK_RESERVE) (128 KiB)
    /// is kept, is for host functions. Address space is reserved; memory is used only where it is touched. Default: 2 MiB, or more if
    /// [`Config::max_wasm_stack`] asks for it.
    pub fn async_stack_size(&mut self, bytes: usize) -> &mut Config {
        self.async_stack_size = Some(bytes);
        self
    }

    /// Sets the size in bytes of a store's value stack, which holds the frames of interpreted functions. Its address
    /// space is reserved; memory is used only where it is touched. Default: 4 MiB.
    pub fn value_stack_size(&mut self, bytes: usize) -> &mut Config {
        self.value_stack_size = bytes;
        self
    }

    /// For testing: forces tier switches, delays and failures of compilations, chosen by this seed. Default: none.
    pub fn stress(&mut self, seed: Option<u64>) -> &mut Config {
        self.stress = seed;
        self
    }

    /// For testing: counts how often frames of one engine follow those of another, which makes calls of compiled code much
    /// slower: see [`Stats::crossings`](crate::Stats::crossings). Default: off.
    pub fn count_crossings(&mut self, enable: bool) -> &mut Config {
        self.count_crossings = enable;
        self
    }

    /// For testing: interprets with the portable loop only, without the handlers in x86-64 assembly. Metering and
    /// canonical NaNs have the same effect. Default: off.
    pub fn portable_interpreter(&mut self, enable: bool) -> &mut Config {
        self.portable_interpreter = enable;
        self
    }

    /// For testing: calls of functions with one of these names (from the name section) always enter the interpreter.
    /// Their loops may still continue in compiled code. Default: none.
    pub fn interpret_calls(&mut self, names: &[&str]) -> &mut Config {
        self.interpret_calls = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// For testing: in [`Tier::Native`], the baseline compiler compiles functions with one of these names. Default: none.
    pub fn baseline_calls(&mut self, names: &[&str]) -> &mut Config {
        self.baseline_calls = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// Compiles on the running thread, immediately, instead of in the background, so that runs are reproducible.
    /// Default: off.
    pub fn synchronous_compilation(&mut self, enable: bool) -> &mut Config {
        self.synchronous_compilation = enable;
        self
    }

    /// Sets the maximum number of background compiler threads, shared by all modules of an engine; at least one. A thread
    /// starts when code is requested and all others are busy, and ends when it has been idle for a while. While a compilation takes longer
    /// than some milliseconds, at most four threads more compile for modules that would have none.
    /// Default: one less than the cores that the process may use, at least 1 and at most 4.
    pub fn compiler_threads(&mut self, threads: usize) -> &mut Config {
        self.compiler_threads = Some(threads.max(1));
        self
    }

    /// Limits the bytes of machine code, stubs included, that an engine holds at a time. When the budget is used up,
    /// code that has not been called recently is evicted, and functions that are called less often stay in the
    /// interpreter. Evicted code is freed once every store has returned from the guest at least once since: a program
    /// that never returns to its host keeps its code. The code of a module is freed when the module is dropped.
    /// Default: the maximum that an engine supports, 240 MiB.
    pub fn max_code_size(&mut self, bytes: usize) -> &mut Config {
        self.max_code_size = bytes;
        self
    }

    /// Limits the bytes of a module in the binary format, custom sections included. Loading a larger one is an error, and a larger file is
    /// not read; a pipe is. Default: less than 4 GiB.
    pub fn max_module_size(&mut self, bytes: usize) -> &mut Config {
        self.max_module_size = bytes;
        self
    }

    /// Limits the steps that validating the functions of a module may take. Loading a module that would take more is an error; with
    /// [`lazy_validation`](Config::lazy_validation) it is one of the function that exceeds the limit, when that is first called. A module
    /// with ordinary code takes as many steps as it has bytes. The number is the same on every machine. Default: no limit.
    pub fn max_validation_steps(&mut self, steps: u64) -> &mut Config {
        self.max_validation_steps = steps;
        self
    }

    /// Limits the bytes of the host's memory that a module takes: its bytes, and what is made of them when it is loaded and while it is used, such
    /// as types, the tables of its functions, names, profiles and tables of compiled code. Machine code has
    /// [a limit](Config::max_code_size) of its own, and so have instances, memories and tables in their [stores](crate::Store::limiter).
    ///
    /// Loading a module that takes more is the error [`ModuleMemoryExceeded`](crate::ModuleMemoryExceeded), before much more is taken. It
    /// needs more than is held afterwards: most modules a few per cent, those with thousands of globals or types half as much, those with thousands of
    /// imports or exports up to four times as much, and a function with a deep stack the stack. So a limit near
    /// [`Module::host_memory`](crate::Module::host_memory), which is what a module holds, refuses to load it again.
    ///
    /// Afterwards, each call of a function for whose tables there is no room is an error, with [`lazy_validation`](Config::lazy_validation), until
    /// there is some; functions have no profile, or stay in the tiers where they are, until there is; and names, source lines and hints
    /// for which there was no room when they were first wanted are missing as long as the module lives, as are images of data, which are
    /// copied instead. With lazy validation or a cache, functions that a compiler inlines before they are called may take an eighth more than the
    /// limit. Default: 64 MiB, and 64 for each byte of the module.
    pub fn max_module_memory(&mut self, bytes: usize) -> &mut Config {
        self.max_module_memory = Some(bytes);
        self
    }

    /// Limits the bytes of the host's memory that all modules of an engine take together, each as [`Config::max_module_memory`] says, and more
    /// while it is loaded. A module gives back what it takes when it is dropped with its instances and when none of its compilations
    /// runs any more, some milliseconds later. A type that several modules have counts for each of them.
    /// At the limit the same happens as at that of a module. Default: no limit.
    pub fn max_engine_memory(&mut self, bytes: usize) -> &mut Config {
        self.max_engine_memory = bytes;
        self
    }

    /// Compiles a function after this many calls and loop iterations, whatever its size. Default: `None`, which weighs
    /// the cost of compiling it.
    pub fn tier_up_threshold(&mut self, ticks: Option<u32>) -> &mut Config {
        self.tier_up_threshold = ticks;
        self
    }

    /// Validates each function before its first execution instead of validating all of them when the module is loaded,
    /// so that a big module that executes few of its functions starts sooner. Everything else is validated at once.
    /// Each call of an invalid function fails with its [`InvalidModule`](crate::InvalidModule). Default: off.
    pub fn lazy_validation(&mut self, enable: bool) -> &mut Config {
        self.lazy_validation = enable;
        self
    }

    /// Validates the functions of a big module on several threads, which end before loading returns. Default: on.
    pub fn parallel_validation(&mut self, enable: bool) -> &mut Config {
        self.parallel_validation = enable;
        self
    }

    /// Lets compiled code fault where it traps. Handlers for SIGSEGV, SIGBUS, SIGILL and SIGFPE turn the faults into
    /// traps. They are installed once per process, with the first module of such an engine, and forward all other
    /// signals to the previous handlers. If off, for processes that manage these signals themselves, no handler and no
    /// alternate signal stack is installed, and code checks every access, divisor and conversion. Memories reserve the address space of
    /// guard regions all the same, which [speculative execution](Config::spectre_mitigation) may reach, unless the process has a limit on
    /// its address space. Default: on.
    pub fn signals_based_traps(&mut self, enable: bool) -> &mut Config {
        self.signals_based_traps = enable;
        self
    }

    /// For debugging: disables passes of the optimiser by name. Unknown names are ignored. Default: none.
    pub fn passes_off(&mut self, names: &[&str]) -> &mut Config {
        self.passes_off = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// For debugging: limits the number of rewrites that the optimiser makes in each function, so that a wrong result
    /// can be bisected to one rewrite. Default: `None`, no limit.
    pub fn rewrite_fuel(&mut self, rewrites: Option<u64>) -> &mut Config {
        self.rewrite_fuel = rewrites;
        self
    }

    /// For debugging: lets the passes of the optimiser run wherever they can, however little they are expected to gain, so that
    /// calls are inlined and loops vectorised even if they are rarely executed. With [`Tier::Ssa`], backtraces then
    /// lack functions that were inlined. Default: off.
    pub fn opt_all(&mut self, enable: bool) -> &mut Config {
        self.opt_all = enable;
        self
    }

    /// With [`Tier::Auto`]: functions get code of the baseline compiler before the optimiser compiles them. Default: on.
    pub fn baseline(&mut self, baseline: bool) -> &mut Config {
        self.baseline = baseline;
        self
    }

    /// For measuring how the speed of machine code depends on addresses: adds padding to the code of the native back
    /// end. Default: none.
    pub fn padding(&mut self, padding: Padding) -> &mut Config {
        self.padding = padding;
        self
    }

    /// Counts, in interpreted functions and in baseline code, the directions of branches and the targets of indirect calls:
    /// see [`Module::profile`](crate::Module::profile). With [`Tier::Auto`] counting begins when the function has executed a
    /// quarter of the bytecode after which it is compiled, or half of that after which it gets baseline code; with
    /// [`Tier::Interpreter`] and [`Tier::Baseline`] at its first call. Default: on with [`Tier::Auto`], else off.
    pub fn profile(&mut self, enable: bool) -> &mut Config {
        self.profile = Some(enable);
        self
    }

    /// Lets profiles outlive the process: see [`Module::saved_profile`](crate::Module::saved_profile) and
    /// [`Module::use_profile`](crate::Module::use_profile). Modules are hashed when they are loaded (a few milliseconds
    /// for 26 MB), and the counts that each compilation used are kept. Default: off.
    pub fn keep_profiles(&mut self, enable: bool) -> &mut Config {
        self.keep_profiles = enable;
        self
    }

    /// For testing: every module is serialised, if it can be, and made again from the bytes. Default: `None`.
    pub fn round_trip(&mut self, way: Option<RoundTrip>) -> &mut Config {
        self.round_trip = way;
        self
    }

    /// Calls `callback` whenever a function or loop has been compiled, translated to SSA for the evaluator, refused by a
    /// back end, or retired, and when a module has no native code because code memory was refused. Each refusal names the part
    /// that refused and its reason. The callback runs on
    /// the compiling thread, concurrently with the guest if that is a background thread. It must be short and must not
    /// call into a store. A panic in it is caught and ignored. Default: none.
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

    /// Makes runs with the same settings, imports and inputs give the same results, bit for bit.
    ///
    /// - Arithmetic produces the canonical NaN in every tier. Otherwise the sign and payload of a NaN are the
    ///   processor's. This costs a comparison and a selection for each floating-point operation.
    /// - Functions are compiled immediately on the running thread, as with
    ///   [`synchronous_compilation`](Config::synchronous_compilation), so that the depth at which the stack is
    ///   exhausted does not depend on the speed of a compiler thread. It still depends on [`tier`](Config::tier),
    ///   because frames of compiled functions are smaller.
    /// - Relaxed vector instructions are deterministic with and without this setting.
    ///
    /// Imports are under the embedder's control: clocks and random numbers above all, for which the contexts of
    /// `weir_wasi` have a setting of their own. The time at which a deadline
    /// ([`epoch_interruption`](Config::epoch_interruption)) is noticed and the success of growing a memory still depend
    /// on the system. Default: off.
    pub fn deterministic(&mut self, enable: bool) -> &mut Config {
        self.deterministic = enable;
        self
    }

    /// Selects the register allocator of Weir's native back end, for comparison. The default is that of [`Allocator`].
    pub fn register_allocator(&mut self, allocator: Allocator) -> &mut Config {
        self.allocator = allocator;
        self
    }

    /// For tests of the compiler: texts from which these functions of every module are compiled or evaluated, instead of
    /// from their bytecode. A text that differs in meaning from its function breaks the guest; one of machine code may
    /// break the host.
    #[doc(hidden)]
    #[cfg(feature = "jit")]
    pub fn function_texts(&mut self, texts: Vec<FunctionText>) -> &mut Config {
        self.function_texts = texts;
        self
    }
}
