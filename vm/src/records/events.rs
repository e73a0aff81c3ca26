//! Events of the tiers, before the API converts them to public types.

use super::stats::RefusedBy;
use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;
use weir_bytecode::Module as Bytecode;

/// The profiler for which compiled code is named: see [`Config::profiler`](crate::Config::profiler).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ProfilingStrategy {
    /// None.
    #[default]
    None,
    /// `perf report`, through `/tmp/perf-PID.map`: names only. No further step is needed.
    PerfMap,
    /// `perf inject --jit`, through `jit-PID.dump` in the working directory. `perf annotate` then shows the machine
    /// code. Record with `perf record -k mono`.
    JitDump,
    /// VTune, which Weir does not support: an error of [`Engine::new`](crate::Engine::new).
    VTune,
    /// wasmtime's interpreter, which Weir does not have: an error of [`Engine::new`](crate::Engine::new).
    Pulley,
}

/// A compiler of functions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CompiledBy {
    /// The native back end.
    Native,
    /// Cranelift.
    Cranelift,
    /// The baseline compiler.
    Baseline,
}

/// The kind of a tier event.
#[derive(Debug)]
#[non_exhaustive]
pub enum TierEventKind<'a> {
    /// The function was compiled, and its code is in place.
    #[non_exhaustive]
    Compiled {
        /// Its compiler.
        by: CompiledBy,
        /// The code. It does not move until it is retired or the module is dropped; retired code may stay in use for a
        /// while.
        code: &'a [u8],
        /// Time spent compiling.
        time: Duration,
    },
    /// The code was retired. Running stores may still be in it. Its memory may be used for other code later.
    #[non_exhaustive]
    Retired {
        /// Size of the code in bytes.
        bytes: usize,
    },
    /// The compiler panicked, which is a bug in Weir. Another back end may still have compiled the function.
    #[non_exhaustive]
    Panicked {
        /// The message of the panic.
        message: &'a str,
    },
    /// The function was translated to SSA, which is evaluated. Only of [`Tier::Ssa`](crate::Tier::Ssa).
    #[non_exhaustive]
    Translated {
        /// Time spent translating.
        time: Duration,
    },
    /// The module has no native code, because code memory was refused or has no room. All its functions are interpreted;
    /// with a tier that must compile, no instance is made. Reported once, for the module's first instance.
    #[non_exhaustive]
    NoNativeCode {
        /// Why.
        reason: &'a str,
    },
    /// A back end refused the function, or something before or after the back ends did.
    #[non_exhaustive]
    Refused {
        /// The part of Weir that refused it.
        by: RefusedBy,
        /// Why.
        reason: &'a str,
        /// Whether the function stays in the interpreter, which is temporary if code memory has no room. Otherwise
        /// another back end compiled it, and [`Compiled`](TierEventKind::Compiled) follows.
        interpreted: bool,
    },
}

/// An event of a tier.
///
/// The module's record is type-erased, because its type contains the engine's settings, which contain the callback.
pub(crate) struct Event<'a> {
    /// An `Arc<ModuleRecord>`.
    pub module: &'a Arc<dyn Any + Send + Sync>,
    /// Index of the function; `None` for an event of the module.
    pub func: Option<u32>,
    /// For an OSR body, the offset in the module of the `loop` at which it begins; `None` for code that is called.
    pub osr: Option<u32>,
    pub kind: TierEventKind<'a>,
}

/// Returns the function's name in the module's name section, or `function N`; with the loop's offset for an OSR body.
pub(crate) fn name(module: &Bytecode, func: u32, osr: Option<u32>) -> String {
    let name = module.func_name(func).map_or(format!("function {func}"), String::from);
    osr.map_or(name.clone(), |pc| format!("{name} loop {pc:#x}"))
}

/// The callback of a configuration.
#[derive(Clone)]
pub(crate) struct Callback(pub Arc<dyn Fn(Event<'_>) + Send + Sync>);

impl Callback {
    /// Calls it with an event of `module`, which is an `Arc<ModuleRecord>`. A panic in it is caught, because compiled
    /// code may be below this on the stack.
    pub fn call(&self, module: Arc<dyn Any + Send + Sync>, func: Option<u32>, osr: Option<u32>, kind: TierEventKind<'_>) {
        // The panic hook has printed the message.
        let _ = catch_unwind(AssertUnwindSafe(|| (self.0)(Event { module: &module, func, osr, kind })));
    }
}

impl fmt::Debug for Callback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Callback")
    }
}
