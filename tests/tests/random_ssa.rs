//! Properties of SSA, over random functions: text round trips, and no pass changes a function's behaviour.

use bumpalo::Bump;
use weir_bytecode::Trap;
use weir_jit::Options;
use weir_jit::analysis::verify;
use weir_jit::ir::sandbox::Sandbox;
use weir_jit::ir::{EvalError, Func, Op, Outcome, Value, parse, print};
use weir_jit::opt::{
    Analysis, Changed, Context, Pass, constprop, dispatch, gvn, inline, passes, phis, products, simplify, simplify_cfg,
    threading, vectorise,
};
use weir_jit::pipeline::{self, Finished, Form, Phase, Unit};
use weir_tests::random_ssa::{branches, dispatches, function, observe};
use weir_tests::rng::Rng;

const FUNCTIONS: u64 = 1000;

#[test]
fn random_functions_are_well_formed_and_survive_text() {
    for seed in 0..FUNCTIONS {
        let arena = Bump::new();
        let func = function(&arena, &mut Rng::new(seed));
        if let Err(error) = verify(&func, None) {
            panic!("seed {seed}: {error}\n{func}");
        }
        let text = print(&func);
        let parsed = parse(&arena, &text).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        assert!(parsed == func, "seed {seed}:\n{text}\nis read as\n{parsed}");
    }
}

/// Makes a function from a random sequence.
type Make = for<'a> fn(&'a Bump, &mut Rng) -> Func<'a>;

/// The function of `seed` after `passes` with rewrite fuel, and the number of rewrites.
fn transformed<'a>(arena: &'a Bump, make: Make, seed: u64, passes: &[&'static Pass], fuel: u64) -> (Func<'a>, u64) {
    let options = Options { verify: true, rewrite_fuel: Some(fuel), ..Options::default() };
    let mut unit = Unit::without_module(make(arena, &mut Rng::new(seed)), &options);
    let _ = pipeline::run(&mut unit, passes.iter().copied().map(Phase::of), &mut ()).unwrap();
    let Finished { form: Form::Ssa(func), rewrites_left, .. } = unit.finish() else { panic!("passes end with SSA") };
    (func, fuel - rewrites_left.unwrap_or_default())
}

/// The first of `made` rewrites after which the observations differ from `expected`.
fn bisect(
    arena: &Bump,
    make: Make,
    seed: u64,
    passes: &[&'static Pass],
    made: u64,
    expected: &[(Result<Outcome, EvalError>, Sandbox)],
) -> u64 {
    let (mut right, mut wrong) = (0, made);
    while wrong - right > 1 {
        let middle = right + (wrong - right) / 2;
        match observe(&transformed(arena, make, seed, passes, middle).0, seed) == expected {
            true => right = middle,
            false => wrong = middle,
        }
    }
    wrong
}

/// Checks that `passes` preserve behaviour, and returns the number of their rewrites. A failure is narrowed down to the
/// first rewrite that causes it.
fn keep_meaning(make: Make, passes: &[&'static Pass]) -> u64 {
    let mut rewrites = 0;
    for seed in 0..FUNCTIONS {
        let arena = Bump::new();
        let expected = observe(&make(&arena, &mut Rng::new(seed)), seed);
        let (func, made) = transformed(&arena, make, seed, passes, u64::MAX);
        rewrites += made;
        if observe(&func, seed) == expected {
            continue;
        }
        let culprit = bisect(&arena, make, seed, passes, made, &expected);
        let (before, _) = transformed(&arena, make, seed, passes, culprit - 1);
        let (after, _) = transformed(&arena, make, seed, passes, culprit);
        panic!("seed {seed}, rewrite {culprit} of {made} is wrong: before\n{before}\nafter\n{after}");
    }
    rewrites
}

#[test]
fn every_pass_keeps_meaning() {
    for pass in passes::ORDER {
        let rewrites = keep_meaning(function, &[pass]);
        // Random functions have no counted loops over memory: the test `vectorise` makes some. They are in no module whose functions
        // could be inlined: the tests `differential` evaluate programs with everything inlined. Nor do they have long products, or many blocks that only
        // dispatch: `products` and `dispatch` have tests of their own.
        let elsewhere = [vectorise::PASS.name, inline::PASS.name, products::PASS.name, dispatch::PASS.name];
        let enough = rewrites > FUNCTIONS / 100 || elsewhere.contains(&pass.name);
        assert!(enough, "{} made only {rewrites} rewrites", pass.name);
    }
}

#[test]
fn all_passes_together_keep_meaning() {
    keep_meaning(function, passes::ORDER);
}

#[test]
fn branches_keep_meaning() {
    for pass in [&threading::PASS, &simplify_cfg::PASS, &constprop::PASS] {
        let rewrites = keep_meaning(branches, &[pass]);
        assert!(rewrites > FUNCTIONS / 20, "{} made only {rewrites} rewrites", pass.name);
    }
    keep_meaning(branches, passes::ORDER);
}

#[test]
fn dispatches_keep_meaning() {
    let rewrites = keep_meaning(dispatches, &[&dispatch::PASS]);
    assert!(rewrites > FUNCTIONS / 2, "only {rewrites} edges are redirected");
    keep_meaning(dispatches, passes::ORDER);
}

/// The properties above mean something only if most functions end normally.
#[test]
fn random_functions_end_in_many_ways() {
    let (mut returns, mut traps, mut interrupted, mut endless) = (0, 0, 0, 0);
    for seed in 0..FUNCTIONS {
        let arena = Bump::new();
        for (end, _) in observe(&function(&arena, &mut Rng::new(seed)), seed) {
            match end {
                Ok(_) => returns += 1,
                Err(EvalError::Failed { why: Trap::Interrupt | Trap::OutOfFuel, .. }) => interrupted += 1,
                Err(EvalError::Failed { .. }) => traps += 1,
                Err(EvalError::Steps) => endless += 1,
            }
        }
    }
    let runs = 4 * FUNCTIONS;
    assert!(returns > runs / 6 && traps > runs / 50 && interrupted > runs / 100, "{returns} {traps} {interrupted}");
    assert_eq!(endless, 0);
}

/// A faulty pass for the next test: rotations to the left become rotations to the right.
fn rotate_wrongly(func: &mut Func<'_>, cx: &Context<'_>) -> Changed {
    let blocks = func.blocks().collect::<Vec<_>>();
    let all: Vec<Value> = blocks.into_iter().flat_map(|block| func.block(block).insts.to_vec()).collect();
    let mut changed = 0;
    for value in all {
        if func.op(value) == Op::Rotl && cx.spend() {
            let args = func.args(value).to_vec();
            func.become_op(value, Op::Rotr, 0, &args);
            changed += 1;
        }
    }
    Changed(changed)
}

const FAULTY: Pass = Pass { name: "faulty", run: rotate_wrongly, needs: &[], keeps: Analysis::OF_BLOCKS };

#[test]
fn rewrite_fuel_bisects_a_fault_to_one_rewrite() {
    let passes = [&simplify::PASS, &gvn::PASS, &FAULTY, &phis::PASS];
    let mut found = 0;
    for seed in 0..FUNCTIONS {
        let arena = Bump::new();
        let expected = observe(&function(&arena, &mut Rng::new(seed)), seed);
        let (func, made) = transformed(&arena, function, seed, &passes, u64::MAX);
        if observe(&func, seed) == expected {
            continue;
        }
        let culprit = bisect(&arena, function, seed, &passes, made, &expected);
        let [before, after] = [culprit - 1, culprit].map(|fuel| print(&transformed(&arena, function, seed, &passes, fuel).0));
        let changed: Vec<_> = before.lines().zip(after.lines()).filter(|(before, after)| before != after).collect();
        let [(was, is)] = changed[..] else { panic!("seed {seed}: more than one line differs: {changed:?}") };
        assert_eq!(was.replace("rotl", "rotr"), is, "seed {seed}");
        found += 1;
    }
    assert!(found > 5, "the fault showed in {found} functions only");
}
