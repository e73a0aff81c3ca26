//! The settings of an engine, and decisions that follow directly from them.

use crate::records::error::{Error, Result};
use crate::records::events::{Callback, ProfilingStrategy};
use crate::records::host_memory::Creator;
use crate::records::pooling::InstanceAllocationStrategy;
use crate::records::precompiled::cache::Directory;
use crate::sys::mapping::is_limited;
use crate::sys::segment;
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use weir_bytecode::account::Account;
use weir_bytecode::cost::Costs;
use weir_bytecode::shape::EnforcedLimits;
use weir_bytecode::validate::{self, Proposals, WasmFeatures};
use weir_bytecode::{Bytes, Module as Bytecode, Trap};
#[cfg(feature = "async")]
use weir_contract::NATIVE_STACK_RESERVE;
#[cfg(feature = "jit")]
use weir_contract::code::FunctionText;
use weir_contract::code::Padding;

/// Default of [`Config::max_wasm_stack`](crate::Config::max_wasm_stack).
const DEFAULT_MAX_WASM_STACK: usize = 512 << 10;
/// Default of [`Config::async_stack_size`](crate::Config::async_stack_size).
#[cfg(feature = "async")]
const DEFAULT_ASYNC_STACK: usize = 2 << 20;
/// Default of [`Config::value_stack_size`](crate::Config::value_stack_size): room for the depth of recursion that the
/// default native stack gives compiled code.
const DEFAULT_VALUE_STACK: usize = 4 << 20;
/// Default of [`Config::wasm_backtrace_max_frames`](crate::Config::wasm_backtrace_max_frames).
pub(crate) const DEFAULT_MAX_BACKTRACE: usize = 20;
/// Default of [`Config::max_module_memory`](crate::Config::max_module_memory): this, and more for each of the module's bytes.
const MODULE_MEMORY: usize = 64 << 20;
/// Programs that compilers produce take less than a tenth of this.
const MODULE_MEMORY_PER_BYTE: usize = 64;
/// A memory without guard regions that may outgrow what the settings reserve for it reserves at least this, or its maximum if that is less.
const GROWTH_MAX: u64 = 8 << 30;

/// Selects the engines that run functions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Tier {
    /// All engines: every function starts in the interpreter, hot ones are compiled.
    #[default]
    Auto,
    /// The interpreter only. No executable memory is made.
    Interpreter,
    /// Weir's native back end compiles every function at its first call. Functions that it refuses are compiled by
    /// Cranelift.
    Native,
    /// Cranelift compiles every function at its first call.
    Cranelift,
    /// The baseline compiler compiles every function at its first call; a function that it refuses is interpreted.
    Baseline,
    /// The SSA evaluator: every function is translated to optimised SSA at its first call and evaluated, and nothing is
    /// compiled. Back ends start from the same SSA, so this tier shows which part of the compiler is at fault. If it is
    /// right and native code is wrong, the fault is in the back end. If it is wrong, [`Config::rewrite_fuel`] finds the
    /// faulty rewrite; if it is wrong without rewrites, the fault is in construction.
    ///
    /// All features work as in other tiers, fuel and deadlines included, but slower than in the interpreter. Each call
    /// within the guest takes about a kilobyte of the native stack (three in a debug build): deep recursion may need a
    /// higher [`Config::max_wasm_stack`], and otherwise traps with [`Trap::StackOverflow`].
    Ssa,
}

/// The settings require something that this build or host does not have.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unavailable(Cow<'static, str>);

impl Unavailable {
    /// Creates the error with this text.
    pub(crate) fn new(text: impl Into<Cow<'static, str>>) -> Unavailable {
        Unavailable(text.into())
    }
}

/// The register allocator of Weir's native back end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Allocator {
    /// Weir's allocator, a linear scan on SSA form with live-range splitting.
    #[default]
    LinearScan,
    /// The crate `regalloc2`, where the build has it (cargo feature `regalloc2`).
    Regalloc2,
}

/// For testing: how every module is serialised and made again: see [`Config::round_trip`]. A quarter of the modules reads its bytes in parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RoundTrip {
    /// In this process.
    Here,
    /// The bytes are written to a file in this folder, for [`RoundTrip::From`]. The module is used as it is.
    To(PathBuf),
    /// The bytes are read from the file in this folder that another process wrote. Modules that it did not load are errors.
    From(PathBuf),
}

/// Settings of an [`Engine`](crate::Engine).
///
/// ```
/// use weir::{Config, Engine, Tier};
///
/// let mut config = Config::new();
/// config.tier(Tier::Interpreter).consume_fuel(true);
/// let engine = Engine::new(&config)?;
/// # Ok::<(), weir::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Config {
    pub(crate) tier: Tier,
    pub(crate) consume_fuel: bool,
    /// The embedder's costs of instructions.
    pub(crate) costs: Option<Arc<Costs>>,
    pub(crate) epoch_interruption: bool,
    pub(crate) max_wasm_stack: usize,
    pub(crate) async_support: bool,
    /// `None` for the default, [`Config::fiber_stack`].
    pub(crate) async_stack_size: Option<usize>,
    pub(crate) value_stack_size: usize,
    pub(crate) stress: Option<u64>,
    pub(crate) portable_interpreter: bool,
    pub(crate) count_crossings: bool,
    pub(crate) synchronous_compilation: bool,
    pub(crate) tier_up_threshold: Option<u32>,
    pub(crate) guard_regions: bool,
    pub(crate) segment: bool,
    pub(crate) spectre_mitigation: bool,
    pub(crate) signals_based_traps: bool,
    pub(crate) interpret_calls: Vec<String>,
    pub(crate) baseline_calls: Vec<String>,
    pub(crate) allocator: Allocator,
    #[cfg(feature = "jit")]
    pub(crate) function_texts: Vec<FunctionText>,
    pub(crate) lazy_validation: bool,
    pub(crate) parallel_validation: bool,
    pub(crate) passes_off: Vec<String>,
    /// Whether the passes of the optimiser run, and whether `inline` does.
    pub(crate) optimises: bool,
    pub(crate) inlines: bool,
    pub(crate) rewrite_fuel: Option<u64>,
    pub(crate) opt_all: bool,
    pub(crate) padding: Padding,
    pub(crate) baseline: bool,
    pub(crate) profile: Option<bool>,
    pub(crate) keep_profiles: bool,
    pub(crate) round_trip: Option<RoundTrip>,
    pub(crate) cache: Option<Arc<Directory>>,
    pub(crate) deterministic: bool,
    pub(crate) canonical_nans: bool,
    pub(crate) gc_stress: bool,
    pub(crate) verify: bool,
    pub(crate) proposals: Proposals,
    pub(crate) shape: Option<EnforcedLimits>,
    /// What the settings demand and Weir does not have.
    pub(crate) unmet: Vec<&'static str>,
    /// The features that the settings demand and Weir does not have.
    pub(crate) unmet_features: WasmFeatures,
    pub(crate) module_version: ModuleVersionStrategy,
    pub(crate) compiler_threads: Option<usize>,
    pub(crate) parallel_compilation: bool,
    pub(crate) max_code_size: usize,
    pub(crate) max_module_size: usize,
    pub(crate) max_validation_steps: u64,
    /// `None` for the default, which depends on the module.
    pub(crate) max_module_memory: Option<usize>,
    pub(crate) max_engine_memory: usize,
    pub(crate) max_backtrace: usize,
    pub(crate) backtrace_details: WasmBacktraceDetails,
    pub(crate) backtrace_on_throw: bool,
    pub(crate) memory_reservation: Option<u64>,
    pub(crate) memory_reservation_for_growth: Option<u64>,
    pub(crate) memory_may_move: bool,
    pub(crate) memory_guard_size: Option<u64>,
    pub(crate) host_memory: Option<Creator>,
    pub(crate) allocation_strategy: InstanceAllocationStrategy,
    pub(crate) profiler: ProfilingStrategy,
    pub(crate) tier_events: Option<Callback>,
    /// Adds a core dump to the error of a guest, whose store's record this is.
    pub(crate) coredump: Option<AddCoreDump>,
}

/// A function that adds a core dump of a store, of which it receives the record, to an error.
pub(crate) type AddCoreDump = unsafe fn(*mut (), Error) -> Error;

/// Whether backtraces have source files and lines: see [`Config::wasm_backtrace_details`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WasmBacktraceDetails {
    /// Always.
    Enable,
    /// Never.
    Disable,
    /// If the environment variable `WEIR_BACKTRACE_DETAILS` is `1`.
    Environment,
}

/// The version in serialised modules: see [`Config::module_version`].
#[derive(Clone, PartialEq, Eq, Hash, Default, Debug)]
pub enum ModuleVersionStrategy {
    /// That of Weir. The name is wasmtime's.
    #[default]
    WasmtimeVersion,
    /// The embedder's, of at most 255 bytes.
    Custom(String),
    /// None: modules have none, and those of each version are accepted.
    None,
}

impl ModuleVersionStrategy {
    /// Returns the version; it is empty if there is none.
    pub fn as_str(&self) -> &str {
        match self {
            ModuleVersionStrategy::WasmtimeVersion => env!("CARGO_PKG_VERSION"),
            ModuleVersionStrategy::Custom(version) => version,
            ModuleVersionStrategy::None => "",
        }
    }
}

/// The variant of the interpreter's loop that an engine runs. Each includes the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LoopKind {
    /// Counts ticks only.
    Plain,
    /// Also counts branches and calls for the profiles of warm functions.
    Profiling,
    /// Also polls, or canonicalises NaNs, with or without profiling.
    Polling,
    /// Also charges fuel, with or without the rest.
    Fuelled,
}

impl Config {
    /// Returns whether code polls at functions' entries and at loops.
    pub(crate) fn polls(&self) -> bool {
        self.epoch_interruption || self.consume_fuel && self.async_support && cfg!(feature = "async")
    }

    /// Returns the bytes of a native stack for asynchronous calls.
    #[cfg(feature = "async")]
    pub(crate) fn fiber_stack(&self) -> usize {
        let default = DEFAULT_ASYNC_STACK.max(self.max_wasm_stack.saturating_add(NATIVE_STACK_RESERVE));
        self.async_stack_size.unwrap_or(default).max(2 * NATIVE_STACK_RESERVE)
    }

    /// Returns whether backtraces have source files and lines.
    #[cfg(feature = "addr2line")]
    pub(crate) fn has_details(&self) -> bool {
        match self.backtrace_details {
            WasmBacktraceDetails::Enable => true,
            WasmBacktraceDetails::Disable => false,
            WasmBacktraceDetails::Environment => std::env::var_os("WEIR_BACKTRACE_DETAILS").is_some_and(|value| value == "1"),
        }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            tier: Tier::Auto,
            consume_fuel: false,
            costs: None,
            epoch_interruption: false,
            max_wasm_stack: DEFAULT_MAX_WASM_STACK,
            async_support: true,
            async_stack_size: None,
            value_stack_size: DEFAULT_VALUE_STACK,
            stress: None,
            portable_interpreter: false,
            count_crossings: false,
            synchronous_compilation: false,
            tier_up_threshold: None,
            guard_regions: true,
            segment: true,
            spectre_mitigation: true,
            signals_based_traps: true,
            interpret_calls: Vec::new(),
            baseline_calls: Vec::new(),
            allocator: Allocator::default(),
            #[cfg(feature = "jit")]
            function_texts: Vec::new(),
            lazy_validation: false,
            parallel_validation: true,
            passes_off: Vec::new(),
            optimises: true,
            inlines: true,
            rewrite_fuel: None,
            opt_all: false,
            padding: Padding::default(),
            baseline: true,
            profile: None,
            keep_profiles: false,
            round_trip: None,
            cache: None,
            deterministic: false,
            canonical_nans: false,
            gc_stress: false,
            verify: cfg!(debug_assertions),
            proposals: Proposals::default(),
            shape: None,
            unmet: Vec::new(),
            unmet_features: WasmFeatures::empty(),
            module_version: ModuleVersionStrategy::default(),
            compiler_threads: None,
            parallel_compilation: true,
            max_code_size: usize::MAX,
            max_module_size: usize::MAX,
            max_validation_steps: u64::MAX,
            max_module_memory: None,
            max_engine_memory: usize::MAX,
            max_backtrace: DEFAULT_MAX_BACKTRACE,
            backtrace_details: WasmBacktraceDetails::Environment,
            backtrace_on_throw: false,
            memory_reservation: None,
            memory_reservation_for_growth: None,
            memory_may_move: true,
            memory_guard_size: None,
            host_memory: None,
            allocation_strategy: InstanceAllocationStrategy::OnDemand,
            profiler: ProfilingStrategy::None,
            tier_events: None,
            coredump: None,
        }
    }
}

impl Config {
    /// Returns the options for validating a module.
    pub(crate) fn validation(&self, lazy: bool) -> validate::Options {
        let threads = if self.parallel_validation { crate::sys::thread::parallelism().unwrap_or(1) } else { 1 };
        let work = self.tier_up_threshold.is_none() && self.stress.is_none();
        let (segments, costs) = (self.consume_fuel, self.costs.clone().filter(|_| self.consume_fuel));
        validate::Options {
            threads,
            lazy,
            accept: true,
            work,
            segments,
            costs,
            proposals: self.proposals,
            max_steps: self.max_validation_steps,
        }
    }

    /// Checks the size of a module before it is loaded.
    ///
    /// # Errors
    /// It exceeds the limit.
    pub(crate) fn check_size(&self, len: usize) -> Result<()> {
        let max = self.max_module_size;
        if len <= max {
            return Ok(());
        }
        Err(Error::msg(format!("a module of {len} bytes is larger than the {max} bytes that are allowed")))
    }

    /// Checks the shape of a module that is to be loaded.
    ///
    /// # Errors
    /// It exceeds a limit.
    pub(crate) fn check_shape(&self, bytes: &Bytes) -> Result<()> {
        self.check_size(bytes.len())?;
        let Some(limits) = self.shape else { return Ok(()) };
        limits.check(bytes.all().map_err(Trap::from)?).map_err(Error::new)
    }

    /// Returns the account of the memory that the modules of an engine take together.
    pub(crate) fn engine_account(&self) -> Account {
        Account::new(self.max_engine_memory, "the engine's modules take", "Config::max_engine_memory")
    }

    /// Returns the account of the memory that a module of `len` bytes takes, which is a part of that of its engine.
    pub(crate) fn module_account(&self, len: usize, engine: &Arc<Account>) -> Account {
        let default = MODULE_MEMORY.saturating_add(MODULE_MEMORY_PER_BYTE.saturating_mul(len));
        let max = self.max_module_memory.unwrap_or(default);
        Account::new(max, "the module takes", "Config::max_module_memory").within(engine.clone())
    }

    /// Returns whether the interpreter executes superinstructions. Where functions get baseline code, most are not interpreted for long
    /// enough: finding their superinstructions takes as long as interpreting each byte some ten times.
    pub(crate) fn fuses(&self) -> bool {
        let interprets = match self.tier {
            Tier::Interpreter => true,
            Tier::Auto => !self.has_baseline(),
            Tier::Native | Tier::Cranelift | Tier::Baseline | Tier::Ssa => false,
        };
        self.has_assembly() && interprets
    }

    /// Returns whether the interpreter's fast paths in assembly run. They enter native code by its stubs, which the evaluator of SSA
    /// does not have.
    pub(crate) fn has_assembly(&self) -> bool {
        cfg!(target_arch = "x86_64") && !self.portable_interpreter && self.tier != Tier::Ssa
    }

    /// Returns the variant of the interpreter's loop.
    pub(crate) fn loop_kind(&self) -> LoopKind {
        match self {
            Config { consume_fuel: true, .. } => LoopKind::Fuelled,
            Config { epoch_interruption: true, .. } => LoopKind::Polling,
            config if config.canonicalises_nans() => LoopKind::Polling,
            config if config.profiles() => LoopKind::Profiling,
            _ => LoopKind::Plain,
        }
    }

    /// Returns whether functions get baseline code before the optimiser compiles them.
    pub(crate) fn has_baseline(&self) -> bool {
        self.tier == Tier::Auto && (self.baseline || self.stress.is_some()) && cfg!(feature = "jit")
    }

    /// Returns whether memories have guard regions, whose faults are traps.
    pub(crate) fn guards_memory(&self) -> bool {
        self.reserves_guards() && self.signals_based_traps
    }

    /// Returns whether memories have the address space of guard regions. Without signal handlers no access may reach it, but speculative
    /// execution may, which finds nothing there. So it is not reserved then if the process has a limit on it.
    pub(crate) fn reserves_guards(&self) -> bool {
        let reserves = self.memory_reservation.is_none_or(|bytes| bytes >= 1 << 32);
        self.guard_regions && self.guard_bytes() > 0 && reserves && (self.signals_based_traps || !is_limited())
    }

    /// Returns whether native code accesses memory 0 relative to `gs`.
    pub(crate) fn uses_segment(&self) -> bool {
        self.segment && self.guards_memory() && segment::is_available()
    }

    /// Returns the number of bytes for which wasmtime reserves address space at once, if that suffices for the memory.
    pub(crate) fn reserved_bytes(&self) -> u64 {
        self.memory_reservation.unwrap_or(4 << 30)
    }

    /// Returns the size of wasmtime's guard regions.
    pub(crate) fn guard_bytes(&self) -> u64 {
        self.memory_guard_size.unwrap_or(32 << 20)
    }

    /// Returns the number of bytes that a memory without guard regions and with a minimum of `min` bytes reserves at most, which is how
    /// far it can grow. wasmtime moves a memory that outgrows its reservation, unless that is turned off; Weir reserves more beforehand.
    pub(crate) fn unguarded_reservation(&self, min: usize) -> usize {
        let reserved = match min as u64 <= self.reserved_bytes() {
            true => self.reserved_bytes(),
            false => (min as u64).saturating_add(self.memory_reservation_for_growth.unwrap_or(2 << 30)),
        };
        let bytes = if self.memory_may_move { reserved.max(GROWTH_MAX) } else { reserved };
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// Returns whether arithmetic produces the canonical NaN.
    pub(crate) fn canonicalises_nans(&self) -> bool {
        self.canonical_nans || self.deterministic
    }

    /// Returns whether the interpreter counts branches and calls.
    pub(crate) fn profiles(&self) -> bool {
        self.profile.unwrap_or(self.tier == Tier::Auto)
    }

    /// Returns whether calls of function `func` always enter the interpreter.
    pub(crate) fn interprets(&self, module: &Bytecode, func: u32) -> bool {
        is_named(&self.interpret_calls, module, func)
    }

    /// Returns whether function `func` is compiled by the baseline compiler where the native back end would compile it.
    pub(crate) fn compiles_simply(&self, module: &Bytecode, func: u32) -> bool {
        self.tier == Tier::Native && is_named(&self.baseline_calls, module, func)
    }
}

/// Returns whether the name of function `func` is among `names`.
fn is_named(names: &[String], module: &Bytecode, func: u32) -> bool {
    !names.is_empty() && module.func_name(func).is_some_and(|name| names.iter().any(|other| other == name))
}
