//! What the passes make of whole modules: what each finds and takes, and what the gates of constant propagation add.

use crate::{RUNS, defined, median};
use bumpalo::Bump;
use std::time::Instant;
use weir_bytecode::Module;
use weir_jit::analysis::{Cfg, Dominators};
use weir_jit::build::{BuildStats, build};
use weir_jit::compile::compile;
use weir_jit::ir::{Entry, Func, Op};
use weir_jit::opt::constprop::{Leaf, Limits, solve};
use weir_jit::opt::{self, PassStats, passes};
use weir_jit::{Backend, Options, Request};

/// Prints it all for one module.
pub fn opt(name: &str, module: &Module) {
    let bytes = times(name, module);
    gates(module);
    code(module, bytes);
}

/// Calls `f` with every function that can be built.
fn each_function(module: &Module, mut f: impl FnMut(u32, Func<'_>)) {
    let mut arena = Bump::new();
    let options = Options { verify: false, ..Options::default() };
    for func in defined(module) {
        arena.reset();
        if let Ok(ssa) = build(&arena, module, func, Entry::Call, &options, &mut BuildStats::default()) {
            f(func, ssa);
        }
    }
}

/// Rewrites and time per byte of code, pass by pass. Returns the bytes of code.
fn times(name: &str, module: &Module) -> u64 {
    let (mut bytes, mut changes) = (0u64, vec![0u64; passes::ORDER.len()]);
    let mut runs = vec![Vec::new(); passes::ORDER.len()];
    let mut total = Vec::new();
    for _ in 0..RUNS {
        let mut nanos = vec![0u64; passes::ORDER.len()];
        (bytes, changes) = (0, vec![0; passes::ORDER.len()]);
        let mut all = 0;
        each_function(module, |func, mut ssa| {
            bytes += u64::from(module.body(func).expect("it is defined").len());
            let mut cx = opt::Context { module: Some(module), ..opt::Context::default() };
            let start = Instant::now();
            opt::run(&mut ssa, &mut cx);
            all += start.elapsed().as_nanos() as u64;
            for (i, PassStats { changes: made, nanos: taken, .. }) in cx.stats.iter().enumerate() {
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
    for ((pass, run), changes) in passes::ORDER.iter().zip(runs).zip(changes) {
        println!("  {:10} {changes:>8} rewrites {:>6.1} ns/B", pass.name, median(run));
    }
    bytes
}

/// What constant propagation proves with no predicate, with one, with two.
fn gates(module: &Module) {
    println!("  predicates  constants  conditions  blocks  trees");
    for predicates in 0..=2 {
        let limits = Limits { predicates, ..Limits::default() };
        let (mut constants, mut conditions, mut blocks, mut trees) = (0, 0, 0, 0);
        each_function(module, |_, mut ssa| {
            let mut cx = opt::Context { module: Some(module), ..opt::Context::default() };
            for pass in passes::ORDER.iter().take_while(|pass| pass.name != "constprop") {
                opt::run_pass(pass, &mut ssa, &mut cx);
            }
            let cfg = Cfg::compute(&ssa);
            let dom = Dominators::compute(&ssa, &cfg);
            let mut known = solve(&ssa, &cfg, &dom, limits);
            for &block in cfg.order() {
                if !known.reaches(block) {
                    blocks += 1;
                    continue;
                }
                for &value in ssa.block(block).insts.iter().filter(|&&value| ssa.op(value) != Op::Const) {
                    if ssa.op(value) == Op::Branch {
                        let tree = known.condition(&ssa, &dom, ssa.args(value)[0], block);
                        let holds = known.forest.any(tree, &mut |leaf| !matches!(leaf, Leaf::Top | Leaf::Const(0)));
                        let fails = known.forest.any(tree, &mut |leaf| !matches!(leaf, Leaf::Top | Leaf::Const(1..)));
                        conditions += u32::from(holds != fails);
                        continue;
                    }
                    constants += u32::from(known.forest.constant(known.tree(value)).is_some());
                    trees += u32::from(known.forest.as_test(known.tree(value)).is_some());
                }
            }
        });
        println!("  {predicates:>10} {constants:>10} {conditions:>11} {blocks:>7} {trees:>6}");
    }
}

/// Machine code with some passes off, and with fewer predicates.
fn code(module: &Module, bytes: u64) {
    let off = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<String>>();
    let limits = |predicates| Limits { predicates, ..Limits::default() };
    let configurations = [
        ("all passes", off(&[]), limits(2)),
        ("one predicate", off(&[]), limits(1)),
        ("no predicates", off(&[]), limits(0)),
        ("no constprop", off(&["constprop"]), limits(2)),
        ("no memory", off(&["memory"]), limits(2)),
        ("no gvn", off(&["gvn"]), limits(2)),
        ("none", passes::ORDER.iter().map(|pass| pass.name.to_string()).collect(), limits(2)),
    ];
    let sig_ids: Vec<u32> = (0..module.types.len() as u32).collect();
    for (name, passes_off, limits) in configurations {
        let options = Options { passes_off, limits, verify: false, ..Options::default() };
        let mut cx = weir_jit::compile::Context::default();
        let (mut code, mut values, mut refused) = (0u64, 0u64, 0);
        for func in defined(module) {
            let entry = Entry::Call;
            let request = Request { module, func, entry, sig_ids: &sig_ids, backend: Backend::Native, options: &options };
            match compile(&mut cx, &request) {
                Ok(compiled) => {
                    code += compiled.code.len() as u64;
                    values += u64::from(compiled.stats.values);
                }
                Err(_) => refused += 1,
            }
        }
        let ratio = code as f64 / bytes as f64;
        println!("  {name:14} {code:>9} bytes of machine code ({ratio:.2} per byte), {values:>8} values, {refused} refused");
    }
}
