//! What the tiers report as it happens, before the API gives it the types that embedders know.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use weir_bytecode::Module as Bytecode;

/// For which profiler compiled code is named: see [`Config::profiler`](crate::Config::profiler).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profiler {
    /// `perf report`, through `/tmp/perf-PID.map`: names and nothing else, and no work afterwards.
    PerfMap,
    /// `perf inject --jit`, through `jit-PID.dump` in the working directory: `perf annotate` then shows the machine code. Record with
    /// `perf record -k mono`.
    JitDump,
}

/// What happened to a function.
#[derive(Debug)]
#[non_exhaustive]
pub enum TierEventKind<'a> {
    /// It was compiled, and its code is in place.
    #[non_exhaustive]
    Compiled {
        /// By Weir's own back end, and not by Cranelift.
        native: bool,
        /// The code. It stays where it is until it is retired or the module is dropped; what is retired may stay in use for a while.
        code: &'a [u8],
        /// What compiling took.
        time: Duration,
    },
    /// Its code is not used any more, but by those who are in it. What is compiled next may stand in its place.
    #[non_exhaustive]
    Retired {
        /// How many bytes of code that is.
        bytes: usize,
    },
    /// The compiler panicked over it, which is a fault of Weir's. Another back end may have compiled it nevertheless.
    #[non_exhaustive]
    Panicked {
        /// What the panic says.
        message: &'a str,
    },
    /// There is no code: it stays in the interpreter, or if only room was wanting, for a while.
    #[non_exhaustive]
    Refused {
        /// What each back end said, or that there is no room.
        reasons: &'a [String],
    },
}

/// Something that a tier did.
///
/// The module's record is type-erased: it has a type that holds the engine's settings, and those hold the callback.
pub(crate) struct Event<'a> {
    /// An `Arc<ModuleRecord>`.
    pub module: &'a Arc<dyn Any + Send + Sync>,
    /// Index of the function.
    pub func: u32,
    /// The offset in the module of the `loop` at which OSR code begins; `None` for code that is called.
    pub osr: Option<u32>,
    pub kind: TierEventKind<'a>,
}

/// The function's name in the module's name section, or `function N`; with the loop's offset for code of a loop.
pub(crate) fn name(module: &Bytecode, func: u32, osr: Option<u32>) -> String {
    let name = module.func_name(func).map_or(format!("function {func}"), String::from);
    osr.map_or(name.clone(), |pc| format!("{name} loop {pc:#x}"))
}

/// The callback of a configuration.
#[derive(Clone)]
pub(crate) struct Callback(pub Arc<dyn Fn(Event<'_>) + Send + Sync>);

impl fmt::Debug for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback")
    }
}
