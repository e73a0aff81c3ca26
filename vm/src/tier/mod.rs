//! When functions become native code, and how the interpreter gets there.
//!
//! The interpreter and the runtime know this interface and nothing of code memory or back ends. [`policy`] decides, with every
//! threshold; [`compiler`] makes code and keeps what there is of it; [`queue`] has the threads that compile; [`evict`] chooses
//! code to retire, [`reclaim`] frees it; [`record`] what `--stats` tells, [`listeners`] who is told at once, [`perf`] for the
//! profiler; [`profile`] what is counted for the compiler, [`unwind`] what is done about a trap. Where there is no native code at
//! all, `portable` answers "interpret".
//!
//! [`evaluated`] is the tier that runs SSA in the place of code, on any host; what it runs it in is [`world`].

mod evaluated;
pub(crate) mod reclaim;
mod record;
mod world;

#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
mod compiler;
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
mod evict;
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
mod listeners;
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
mod native;
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
mod perf;
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
mod policy;
#[cfg(not(all(feature = "jit", target_arch = "x86_64", target_os = "linux")))]
mod portable;
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
mod queue;
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
mod unwind;

#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
pub(crate) use native::*;
#[cfg(not(all(feature = "jit", target_arch = "x86_64", target_os = "linux")))]
pub(crate) use portable::*;

use crate::Engine;
use crate::records::func_code::FuncCode;
use weir_bytecode::Module as Bytecode;
use weir_bytecode::module::Body;

/// The execution state of every function defined in a module, before any is called.
pub(crate) fn new_code(engine: &Engine, bytecode: &Bytecode) -> Box<[FuncCode]> {
    // Whoever calls a function that is not validated yet must ask first.
    let ticks = |body: &Body| body.get().map_or(0, |body| first_ticks(engine, body.len()));
    bytecode.bodies.iter().map(|body| FuncCode::new(ticks(body))).collect()
}

/// What the interpreter does next, after the policy was asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// Go on.
    Interpret,
    /// Leave for this code: a function's entry when asked at a call, an OSR body when asked at a loop.
    Enter(*const u8),
}
