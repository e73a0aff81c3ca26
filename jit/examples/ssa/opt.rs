//! The passes on whole modules: rewrites and time of each pass, facts that gates prove, and the size of the code with
//! passes and without.

use crate::measure::median;
use crate::whole::{RUNS, compile_all, defined};
use bumpalo::Bump;
use std::collections::BTreeMap;
use std::time::Instant;
use weir_bytecode::Module;
use weir_contract::stats::Counters;
use weir_jit::analysis::{Cfg, DefBlocks, Dominators};
use weir_jit::construct::{BuildStats, build};
use weir_jit::ir::{Entry, Func};
use weir_jit::meter::Meter;
use weir_jit::opt::constprop::solve;
use weir_jit::opt::{Pass, passes};
use weir_jit::pipeline::{self, Finished, Form, Phase, Unit};
use weir_jit::settings::PropagationLimits;
use weir_jit::{Backend, Options, Request};

/// The output besides rewrites and times.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Extent {
    /// Nothing.
    Times,
    /// Facts that gates prove, and the size of machine code with all passes and with none.
    Usual,
    /// Also the size of machine code with each pass off, and with each pass alone.
    Each,
}

/// Prints the figures of one module.
pub fn opt(name: &str, module: &Module, extent: Extent) {
    let bytes = times(name, module);
    if extent != Extent::Times {
        gates(module);
        code(module, bytes, extent);
    }
}

/// Calls `f` with every function that can be built, and the counts of its construction.
fn each_function(module: &Module, mut f: impl FnMut(u32, Func<'_>, &BuildStats)) {
    let mut arena = Bump::new();
    let options = Options { verify: false, ..Options::default() };
    for func in defined(module) {
        arena.reset();
        let mut stats = BuildStats::default();
        if let Ok(ssa) = build(&arena, module, func, Entry::Call, &options, &mut stats) {
            f(func, ssa, &stats);
        }
    }
}

/// `ssa`, which is of function `func`, after `passes`.
fn run_passes<'a>(
    module: &Module,
    func: u32,
    ssa: Func<'a>,
    options: &Options,
    passes: &[&'static Pass],
    scratch: Bump,
) -> Finished<'a> {
    let (entry, backend) = (Entry::Call, Backend::Native);
    let request = Request { module, func, entry, sig_ids: &[], backend, profile: None, callees: None, options };
    let mut unit = Unit::new(&request, Form::Ssa(ssa), scratch);
    let _ = pipeline::run(&mut unit, passes.iter().copied().map(Phase::of), &mut ()).expect("passes refuse nothing");
    unit.finish()
}

/// Rewrites and time per byte of code, pass by pass. Returns the bytes of code.
fn times(name: &str, module: &Module) -> u64 {
    let options = Options { verify: false, ..Options::default() };
    let (mut bytes, mut changes, mut counted) = (0u64, Vec::new(), Counters::default());
    let mut runs = vec![Vec::new(); passes::ORDER.len()];
    let mut total = Vec::new();
    for _ in 0..RUNS {
        let mut nanos = vec![0u64; passes::ORDER.len()];
        (bytes, changes, counted) = (0, vec![0; passes::ORDER.len()], Counters::default());
        let (mut all, mut scratch) = (0, Bump::new());
        each_function(module, |func, ssa, built| {
            bytes += u64::from(module.body(func).expect("it is defined").len());
            counted += built.counters;
            let start = Instant::now();
            let finished = run_passes(module, func, ssa, &options, passes::ORDER, std::mem::take(&mut scratch));
            all += start.elapsed().as_nanos() as u64;
            scratch = finished.scratch;
            counted += finished.stats.counters;
            for (i, ((_, made), (_, taken))) in finished.stats.changes.iter().zip(&finished.stats.phases).enumerate() {
                changes[i] += u64::from(*made);
                nanos[i] += taken;
            }
        });
        total.push(all as f64 / bytes as f64);
        for (run, nanos) in runs.iter_mut().zip(nanos) {
            run.push(nanos as f64 / bytes as f64);
        }
    }
    println!("{name}: {bytes} bytes of code, all passes {:.1} ns/B", median(total));
    let numbered: u64 =
        passes::ORDER.iter().zip(&changes).filter(|(pass, _)| pass.name == "gvn").map(|(_, changes)| changes).sum();
    for ((pass, run), changes) in passes::ORDER.iter().zip(runs).zip(&changes) {
        println!("  {:10} {changes:>8} rewrites {:>6.1} ns/B", pass.name, median(run));
    }
    println!("  shared in construction {}, beyond that by gvn {numbered}", counted.shared);
    let (constants, branches, blocks) = (counted.gated_constants, counted.gated_branches, counted.gated_blocks);
    println!("  proved by gates alone: constants {constants}, branches {branches}, dead blocks {blocks}");
    bytes
}

/// Prints the number of facts that constant propagation proves with no predicate, with one and with two.
fn gates(module: &Module) {
    let options = Options { verify: false, ..Options::default() };
    for predicates in 0..=2 {
        let limits = PropagationLimits { predicates, ..PropagationLimits::default() };
        let (mut constants, mut branches, mut blocks) = (0, 0, 0);
        each_function(module, |func, ssa, _| {
            let before = passes::ORDER.iter().take_while(|pass| pass.name != "constprop").count();
            let finished = run_passes(module, func, ssa, &options, &passes::ORDER[..before], Bump::new());
            let Finished { form: Form::Ssa(ssa), scratch, .. } = finished else { panic!("passes end with SSA") };
            let cfg = Cfg::compute(&ssa);
            let dom = Dominators::compute(&ssa, &cfg);
            let def_blocks = DefBlocks::compute(&ssa);
            let proved = solve(&scratch, &ssa, &cfg, &dom, &def_blocks, limits, &Meter::default()).proved(&ssa, &cfg);
            (constants, branches, blocks) = (constants + proved.constants, branches + proved.branches, blocks + proved.blocks);
        });
        println!("  with {predicates} predicates: constants {constants}, branches {branches}, dead blocks {blocks}");
    }
}

/// Machine code with some passes off, and with fewer predicates.
fn code(module: &Module, bytes: u64, extent: Extent) {
    let names = || passes::ORDER.iter().map(|pass| pass.name.to_string());
    let limits = |predicates| PropagationLimits { predicates, ..PropagationLimits::default() };
    let mut configurations = vec![("no pass".to_string(), names().collect::<Vec<_>>(), limits(2))];
    configurations.push(("all passes".into(), Vec::new(), limits(2)));
    configurations.push(("no predicates".into(), Vec::new(), limits(0)));
    if extent == Extent::Each {
        configurations.extend(names().map(|pass| (format!("no {pass}"), vec![pass], limits(2))));
        let others = |alone: &str| names().filter(|pass| pass != alone).collect();
        configurations.extend(names().map(|pass| (format!("only {pass}"), others(&pass), limits(2))));
    }
    let mut without = 0;
    for (name, passes_off, limits) in configurations {
        let options = Options { passes_off, limits, verify: false, ..Options::default() };
        let (mut code, mut refused) = (0u64, BTreeMap::<String, u32>::new());
        compile_all(module, &options, |_, compiled| match compiled {
            Ok(compiled) => code += compiled.code.len() as u64,
            Err(refusal) => *refused.entry(refusal.to_string()).or_default() += 1,
        });
        if without == 0 {
            without = code;
        }
        let (ratio, saved) = (code as f64 / bytes as f64, without as i64 - code as i64);
        let percent = 100.0 * saved as f64 / without as f64;
        println!(
            "  {name:14} {code:>9} bytes of machine code, {ratio:.2} per byte, saved {saved} ({percent:.2} %), refused {refused:?}"
        );
    }
}
