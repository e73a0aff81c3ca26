//! What happened: how many functions ran in which tier, what compiling cost.

use weir_contract::stats::Counters;

/// Counts and times of a module, or of all modules of an engine.
///
/// ```
/// use weir::{Engine, Instance, Module, Store};
///
/// let engine = Engine::default();
/// let module = Module::new(&engine, r#"(module (func (export "f")) (func))"#)?;
/// let mut store = Store::new(&engine, ());
/// Instance::new(&mut store, &module, &[])?.get_typed_func::<(), ()>(&mut store, "f")?.call(&mut store, ())?;
/// assert_eq!(module.stats().functions.total, 2);
/// # Ok::<(), weir::Error>(())
/// ```
#[derive(Clone, PartialEq, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Milliseconds spent decoding and validating.
    pub validate_ms: f64,
    /// Which engines ran how many functions.
    pub functions: FunctionStats,
    /// How often a running loop was continued in compiled code.
    pub osr_entries: u64,
    /// How often the compiler panicked, which is a fault of Weir's: each time a back end counts as having refused.
    pub compiler_panics: u64,
    /// Why there is no native code at all, in a module or in the engine, where there was to be some.
    pub no_native_code: Option<String>,
    /// The functions that were compiled because they were hot, in that order.
    pub tier_up: Vec<TierUp>,
    /// Milliseconds spent compiling, by phase, in the order of the pipeline; `refused` is what attempts took that a back end ended.
    pub compile_ms: Vec<(String, f64)>,
    /// Bytes of bytecode in the functions that were compiled: each once, whatever was compiled of it how often.
    pub bytecode_bytes_compiled: u64,
    /// Bytes of machine code that came out.
    pub code_bytes: u64,
    /// How often a function or loop was compiled again whose code had been retired, or had found no room.
    pub recompiled: u64,
    /// How often code was retired: taken out of use before its module was dropped.
    pub retired: u64,
    /// Bytes of that code.
    pub retired_bytes: u64,
    /// Bytes of that code whose memory is free again, because no store can return to it any more.
    pub freed_bytes: u64,
    /// Rewrites by pass of the optimiser, in order.
    pub opt: Vec<(String, u64)>,
    /// What the compiler counted.
    pub compiler: Counters,
}

/// See [`Stats::functions`]. A function may be counted as interpreted and as compiled.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct FunctionStats {
    /// Defined in the modules.
    pub total: u64,
    /// Called at least once.
    pub called: u64,
    /// Called, and never compiled or evaluated, not even a loop of them.
    pub interpreted: u64,
    /// Compiled by the native back end.
    pub native: u64,
    /// Compiled by Cranelift.
    pub cranelift: u64,
    /// Evaluated as SSA.
    pub evaluated: u64,
    /// Functions that a back end or SSA construction refused, with the reason.
    pub fallbacks: Vec<Fallback>,
}

/// A function that a back end or SSA construction refused.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Fallback {
    /// The function's index.
    pub func: u32,
    /// Why.
    pub reason: String,
}

/// A function that was compiled because it was hot.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TierUp {
    /// The function's index.
    pub func: u32,
    /// Its name, if it has one.
    pub name: Option<String>,
    /// About how many bytes of it the interpreter had executed when the code for its calls was ready; with
    /// [`Config::tier_up_threshold`](crate::Config::tier_up_threshold) how many calls and loop iterations.
    pub ticks: u64,
}

impl Fallback {
    /// A refusal.
    pub fn new(func: u32, reason: String) -> Fallback {
        Fallback { func, reason }
    }
}

impl TierUp {
    /// A tier-up.
    pub fn new(func: u32, name: Option<String>, ticks: u64) -> TierUp {
        TierUp { func, name, ticks }
    }
}
