//! Every compilation of a module: each function by call and, except by the baseline compiler, from each of its loops, under each
//! configuration.

use bumpalo::Bump;
use weir_bytecode::Module;
use weir_contract::profile::{BranchProfile, Profile};
use weir_jit::construct::{BuildStats, build};
use weir_jit::ir::{Entry, Op};
use weir_jit::{Backend, Options, Request};

/// One configuration.
pub struct Configuration {
    /// Its name in listings.
    pub name: &'static str,
    /// The compiler.
    pub backend: Backend,
    /// The options.
    pub options: Options,
    /// Whether branches have probabilities, made up from their pcs.
    pub profiled: bool,
}

/// Configurations that give different machine code of the native back end; `verify` as given.
pub fn configurations(verify: bool) -> Vec<Configuration> {
    let options = || Options { verify, ..Options::default() };
    let backend = Backend::Native;
    let configuration = |name, options, profiled| Configuration { name, backend, options, profiled };
    vec![
        configuration("default", options(), false),
        configuration("profile", options(), true),
        configuration("metered", Options { fuel: true, poll: true, lines: true, ..options() }, false),
        configuration("no-signals", Options { signals: false, guard_regions: false, ..options() }, true),
    ]
}

/// Calls `f` with each request for a function defined in `module`.
pub fn each(module: &Module, funcs: impl Iterator<Item = u32>, configuration: &Configuration, mut f: impl FnMut(&Request<'_>)) {
    let sig_ids: Vec<u32> = (0..module.types.len() as u32).collect();
    let options = &configuration.options;
    let mut arena = Bump::new();
    for func in funcs {
        let loops = module.body(func).into_iter().flat_map(|body| body.loops.iter().map(|info| Entry::Osr(info.pc)));
        let loops = loops.filter(|_| configuration.backend != Backend::Baseline);
        let entries: Vec<Entry> = std::iter::once(Entry::Call).chain(loops).collect();
        let profile = configuration.profiled.then(|| made_up(module, func, options, &mut arena));
        for entry in entries {
            let (backend, profile) = (configuration.backend, profile.as_ref());
            f(&Request { module, func, entry, sig_ids: &sig_ids, backend, profile, callees: None, options });
        }
    }
}

/// A profile in which each branch of `func` goes one way more or less often, depending on its pc.
fn made_up(module: &Module, func: u32, options: &Options, arena: &mut Bump) -> Profile {
    arena.reset();
    let Ok(ssa) = build(arena, module, func, Entry::Call, options, &mut BuildStats::default()) else {
        return Profile::default();
    };
    let ends = ssa.blocks().filter_map(|block| ssa.terminator(block));
    let mut pcs: Vec<u32> = ends.filter(|&last| ssa.op(last) == Op::Branch).map(|last| ssa.inst(last).pc).collect();
    pcs.sort_unstable();
    pcs.dedup();
    let counts = |pc: u32| [[1000, 1], [1, 1000], [3, 1], [1, 1]][(pc.wrapping_mul(2_654_435_769) >> 30) as usize];
    let branches = pcs.into_iter().map(|pc| BranchProfile { pc, counts: counts(pc).map(|n| n * 50).into() }).collect();
    Profile { branches, calls: [].into() }
}
