//! Settings of wasmtime that Weir has in another form, or that change nothing here. A host that sets them compiles and behaves as it
//! does there. What would be wrong to ignore is an error of [`Engine::new`](crate::Engine::new).

#[cfg(feature = "coredump")]
use crate::api::coredump;
use crate::records::config::{Config, ModuleVersionStrategy, Tier, Unavailable, WasmBacktraceDetails};
use crate::records::error::{Error, Result};
use crate::records::events::ProfilingStrategy;
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;
use std::sync::Arc;
use weir_bytecode::cost::{Costs, OperatorCost};
use weir_bytecode::shape::EnforcedLimits;

/// The compiler that a host asks for: see [`Config::strategy`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Strategy {
    /// The one that the library considers best.
    Auto,
    /// wasmtime's optimising compiler.
    Cranelift,
    /// wasmtime's compiler of one pass.
    Winch,
}

/// The level of optimisation: see [`Config::cranelift_opt_level`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OptLevel {
    /// No optimisation.
    None,
    /// Fast code.
    Speed,
    /// Fast and small code.
    SpeedAndSize,
}

/// A register allocator of Cranelift: see [`Config::cranelift_regalloc_algorithm`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RegallocAlgorithm {
    /// The one that makes the better code.
    Backtracking,
    /// The faster one.
    SinglePass,
}

/// A garbage collector of wasmtime: see [`Config::collector`].
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Collector {
    /// The one that the library considers best.
    #[default]
    Auto,
    /// Counts references.
    DeferredReferenceCounting,
    /// Frees nothing.
    Null,
    /// Copies.
    Copying,
}

/// The calls that are inlined: see [`Config::compiler_inlining`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Inlining {
    /// All.
    Yes,
    /// Between modules, and within a module that has collected objects.
    InterModuleAndIntraGc,
    /// Between modules.
    InterModule,
    /// Those of intrinsics.
    Intrinsics,
    /// None.
    No,
}

impl fmt::Display for Inlining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Inlining::Yes => "yes",
            Inlining::InterModuleAndIntraGc => "gc",
            Inlining::InterModule => "inter-module",
            Inlining::Intrinsics => "intrinsics",
            Inlining::No => "no",
        })
    }
}

impl FromStr for Inlining {
    type Err = Error;

    fn from_str(text: &str) -> Result<Inlining, Error> {
        match text {
            "y" | "yes" | "true" => Ok(Inlining::Yes),
            "n" | "no" | "false" => Ok(Inlining::No),
            "gc" | "inter-module" => Ok(Inlining::InterModuleAndIntraGc),
            "intrinsics" => Ok(Inlining::Intrinsics),
            _ => Err(Error::msg(format!("`{text}` is none of yes, no, gc, inter-module and intrinsics"))),
        }
    }
}

/// Settings of wasmtime that have another form here.
impl Config {
    /// Refuses modules whose shape exceeds a limit, before they are validated: with an error that downcasts to
    /// [`EnforcedLimitsError`](crate::EnforcedLimitsError). Default: no limits.
    pub fn enforced_limits(&mut self, limits: EnforcedLimits) -> &mut Config {
        self.shape = Some(limits);
        self
    }

    /// Charges these costs of instructions in place of those of [`Config::consume_fuel`], if fuel is consumed: a call that returns costs
    /// what it costs in wasmtime with the same table. A call of a function of the guest costs a unit besides its instructions; a `loop` costs
    /// what the table has for it when control enters it, and nothing in later iterations. Bulk instructions cost the product of their
    /// length and of what [`OperatorCost::variable`] has for a byte or an element, and growing the product with the pages or elements that
    /// are asked for, also if it fails. Sums saturate. Segments are charged as they are without a table, and so is the search for the handler
    /// of an exception, which costs nothing in wasmtime.
    ///
    /// The default table, [`OperatorCost::new`], has wasmtime's costs and not those of an engine without a table.
    /// [`Module::deserialize`](crate::Module::deserialize) refuses modules that were serialised with other costs.
    pub fn operator_cost(&mut self, cost: OperatorCost) -> &mut Config {
        self.costs = Some(Arc::new(Costs::from(&cost)));
        self
    }

    /// Compiles for this target, which must be the host's: `x86_64-unknown-linux-gnu` where this library is built for that.
    ///
    /// # Errors
    /// [`Unavailable`]: it is another one.
    pub fn target(&mut self, target: &str) -> Result<&mut Config> {
        const HOST: &str = env!("WEIR_TARGET");
        if target == HOST {
            return Ok(self);
        }
        Err(Error::new(Unavailable::new(format!("Weir compiles for `{HOST}`, its host, and not for `{target}`"))))
    }

    /// Selects the version that serialised modules have. A module of another version is refused by
    /// [`Module::deserialize`](crate::Module::deserialize) and not found in a cache. Whatever the version, only the build that has
    /// serialised a module loads it. Default: [`ModuleVersionStrategy::WasmtimeVersion`].
    ///
    /// # Errors
    /// The host's version has more than 255 bytes.
    pub fn module_version(&mut self, strategy: ModuleVersionStrategy) -> Result<&mut Config> {
        if let ModuleVersionStrategy::Custom(version) = &strategy
            && version.len() > 255
        {
            return Err(Error::msg(format!("custom module version cannot be more than 255 bytes: {version}")));
        }
        self.module_version = strategy;
        Ok(self)
    }

    /// Selects engines by the name of wasmtime's compilers: [`Strategy::Winch`] is [`Tier::Baseline`]; the others are [`Tier::Auto`],
    /// because they are what a host asks for that wants fast code. [`Config::tier`] selects exactly, Cranelift too.
    pub fn strategy(&mut self, strategy: Strategy) -> &mut Config {
        self.tier(match strategy {
            Strategy::Winch => Tier::Baseline,
            Strategy::Auto | Strategy::Cranelift => Tier::Auto,
        })
    }

    /// Turns the passes of the optimiser off with [`OptLevel::None`], and on with the others. Without them functions are still compiled,
    /// by the same tiers, to slower code. Default: on.
    pub fn cranelift_opt_level(&mut self, level: OptLevel) -> &mut Config {
        self.optimises = level != OptLevel::None;
        self
    }

    /// Inlines calls within a module with [`Inlining::Yes`] and [`Inlining::InterModuleAndIntraGc`], as far as that pays, and with the
    /// others none. Calls between modules are never inlined. Default: on.
    pub fn compiler_inlining(&mut self, inlining: Inlining) -> &mut Config {
        self.inlines = match inlining {
            Inlining::Yes | Inlining::InterModuleAndIntraGc => true,
            Inlining::InterModule | Inlining::Intrinsics | Inlining::No => false,
        };
        self
    }

    /// Makes arithmetic produce the canonical NaN in every tier, which [`Config::deterministic`] does too. Default: off.
    pub fn cranelift_nan_canonicalization(&mut self, enable: bool) -> &mut Config {
        self.canonical_nans = enable;
        self
    }

    /// Moves every object of the collected heap at every safepoint, and makes the memory that they had inaccessible, so that a reference that the
    /// collector does not know leads to a crash. For tests of this library.
    #[doc(hidden)]
    pub fn gc_stress(&mut self, enable: bool) -> &mut Config {
        self.gc_stress = enable;
        self
    }

    /// Uses several threads, or one: those of [`Config::parallel_validation`], and of [`Config::compiler_threads`] unless their number
    /// is set. Default: on.
    pub fn parallel_compilation(&mut self, parallel: bool) -> &mut Config {
        self.parallel_validation = parallel;
        self.parallel_compilation = parallel;
        self
    }

    /// Collects the frames of [`WasmBacktrace`](crate::WasmBacktrace), or none. Default: on.
    pub fn wasm_backtrace(&mut self, enable: bool) -> &mut Config {
        self.max_backtrace = if enable { crate::records::config::DEFAULT_MAX_BACKTRACE } else { 0 };
        self
    }

    /// Limits the number of frames of a [`WasmBacktrace`](crate::WasmBacktrace), innermost first; `None` collects no frames.
    /// Default: 20.
    pub fn wasm_backtrace_max_frames(&mut self, limit: Option<NonZeroUsize>) -> &mut Config {
        self.max_backtrace = limit.map_or(0, NonZeroUsize::get);
        self
    }

    /// Whether backtraces and messages of exceptions have source files and lines, as far as the module has DWARF:
    /// [`FrameInfo::symbols`](crate::FrameInfo::symbols). They are looked up when they are asked for, the first of them after all debugging
    /// information of the module has been read, from the file of [`Module::from_file`](crate::Module::from_file) once more. Needs the
    /// feature `addr2line`. Default: [`WasmBacktraceDetails::Environment`].
    pub fn wasm_backtrace_details(&mut self, details: WasmBacktraceDetails) -> &mut Config {
        self.backtrace_details = details;
        self
    }

    /// Takes a backtrace at each throw of a new exception. If it leaves the guest, also after handlers have thrown it again, the error has
    /// this backtrace; otherwise it has that of the last throw. A throw then costs a walk over the whole stack. Default: off.
    pub fn backtrace_on_throw(&mut self, enable: bool) -> &mut Config {
        self.backtrace_on_throw = enable;
        self
    }

    /// Reports all compiled code to a profiler. Default: [`ProfilingStrategy::None`].
    pub fn profiler(&mut self, profiler: ProfilingStrategy) -> &mut Config {
        self.profiler = profiler;
        self
    }

    /// Makes a [`WasmCoreDump`](crate::WasmCoreDump) a context of the error of a guest that traps, or in which a host function fails.
    /// Default: off.
    #[cfg(feature = "coredump")]
    pub fn coredump_on_trap(&mut self, enable: bool) -> &mut Config {
        self.coredump = enable.then_some(coredump::attach);
        self
    }

    /// Checks the compiler's output, and ends the process with a panic of the compiler where it is wrong. Default: off, and on
    /// in debug builds.
    pub fn cranelift_debug_verifier(&mut self, enable: bool) -> &mut Config {
        self.verify = enable;
        self
    }
}

/// Defines methods without a function.
macro_rules! without_function {
    ($($(#[doc = $doc:literal])* $name:ident($ty:ty);)*) => {
        /// Settings of wasmtime that change nothing here, each for its reason.
        impl Config {
            $(
                $(#[doc = $doc])*
                pub fn $name(&mut self, _: $ty) -> &mut Config {
                    self
                }
            )*
        }
    };
}

without_function! {
    /// Cranelift compiles only what the native back end refuses; [`Config::register_allocator`] selects the latter's allocator.
    cranelift_regalloc_algorithm(RegallocAlgorithm);
    /// Native code has frame pointers, by which debuggers and profilers unwind it.
    native_unwind_info(bool);
    /// Addresses are always mapped to the module's, for traps and backtraces.
    generate_address_map(bool);
    /// [`Config::profiler`] names compiled code; there is no other table of symbols.
    debug_symbols(bool);
    /// There is no debugging information for debuggers of native code.
    debug_info(bool);
    /// A module's data is copied for its first instance and mapped for the others.
    memory_init_cow(bool);
    /// See [`Config::memory_init_cow`].
    memory_guaranteed_dense_image_size(u64);
    /// Tables are filled when they are made.
    table_lazy_init(bool);
    /// No code accesses addresses before a memory: indices are unsigned.
    guard_before_linear_memory(bool);
    /// Relaxed vector instructions are deterministic with and without this setting.
    relaxed_simd_deterministic(bool);
    /// There is one collector, which copies (Cheney's algorithm).
    collector(Collector);
    /// The heap of references is made with the first object, and grows as needed.
    gc_heap_initial_size(u64);
    /// The heap of references reserves 16 GiB, or less where there is less.
    gc_heap_reservation(u64);
    /// No code accesses the heap of references beyond objects.
    gc_heap_guard_size(u64);
    /// The heap of references does not grow beyond its reservation.
    gc_heap_reservation_for_growth(u64);
    /// The reservation of the heap of references never moves.
    gc_heap_may_move(bool);
    /// macOS is not supported.
    macos_use_mach_ports(bool);
}
