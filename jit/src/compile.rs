//! The pipeline.

use crate::construct::{BuildStats, build};
use crate::ir::Func;
use crate::opt;
use bumpalo::Bump;
use std::time::Instant;

pub use crate::request::{Backend, CompileStats, Compiled, Options, Refusal, Reloc, Request, TrapEntry, add_to};

/// Scratch memory reused from function to function.
#[derive(Debug, Default)]
pub struct Context {
    arena: Bump,
    scratch: Bump,
}

/// Compiles one function: bytecode → SSA → optimised SSA → machine code.
///
/// # Errors
/// A [`Refusal`] when the back end cannot or will not compile it.
///
/// # Panics
/// If [`Options::verify`] is on and some stage's result is malformed.
pub fn compile(cx: &mut Context, request: &Request<'_>) -> Result<Compiled, Refusal> {
    cx.arena.reset();
    let mut stats = CompileStats::default();
    let func = translate(&cx.arena, &mut cx.scratch, request, &mut stats)?;
    back_end(&func, request, &mut stats)
}

/// All that comes before a back end, and is the same for each: bytecode → SSA → optimised SSA. `scratch` is the passes', and
/// empty behind them.
///
/// # Errors
/// A [`Refusal`] of what has no SSA or too much.
///
/// # Panics
/// As [`compile`].
pub fn translate<'a>(
    arena: &'a Bump,
    scratch: &mut Bump,
    request: &Request<'_>,
    stats: &mut CompileStats,
) -> Result<Func<'a>, Refusal> {
    let mut func = construct(arena, request, stats)?;
    optimise(&mut func, scratch, request, stats);
    stats.values = func.blocks().map(|block| func.block(block).insts.len() as u32).sum();
    Ok(func)
}

/// From optimised SSA to machine code.
pub(crate) fn back_end(func: &Func<'_>, request: &Request<'_>, stats: &mut CompileStats) -> Result<Compiled, Refusal> {
    match request.backend {
        #[cfg(feature = "cranelift")]
        Backend::Cranelift => crate::cranelift::compile(func, request, stats),
        #[cfg(not(feature = "cranelift"))]
        Backend::Cranelift => {
            Err(Refusal::Unsupported { backend: Backend::Cranelift, what: "anything: it is not built in".into() })
        }
        Backend::Native => crate::x64::compile(func, request, stats),
    }
}

pub(crate) fn construct<'a>(arena: &'a Bump, request: &Request<'_>, stats: &mut CompileStats) -> Result<Func<'a>, Refusal> {
    let start = Instant::now();
    let mut counts = BuildStats::default();
    let mut func = build(arena, request.module, request.func, request.entry, request.options, &mut counts)?;
    if let Some(profile) = request.profile {
        crate::profile::weigh(profile, &mut func);
    }
    stats.phases.push(("build", start.elapsed().as_nanos() as u64));
    (stats.phis, stats.trivial_phis, stats.shared) = (counts.phis, counts.trivial_phis, counts.shared);
    Ok(func)
}

fn optimise(func: &mut Func<'_>, scratch: &mut Bump, request: &Request<'_>, stats: &mut CompileStats) {
    let mut passes = opt::Context { scratch: std::mem::take(scratch), ..passes(request) };
    opt::run(func, &mut passes);
    *scratch = std::mem::take(&mut passes.scratch);
    stats.phases.extend(passes.stats.iter().map(|pass| (pass.name, pass.nanos)));
    stats.gated = passes.gated.get();
    stats.changes.extend(passes.stats.iter().map(|pass| (pass.name, pass.changes)));
}

/// What surrounds the passes of a request.
pub(crate) fn passes<'r>(request: &Request<'r>) -> opt::Context<'r> {
    let options = request.options;
    opt::Context {
        module: Some(request.module),
        verify: options.verify,
        off: &options.passes_off,
        fuel: options.rewrite_fuel.into(),
        limits: options.limits,
        ..opt::Context::default()
    }
}
