//! Functions that a part of the compiler refuses: each refusal is an event and in the statistics, with its reason.

#[path = "../common/crowded.rs"]
mod crowded;

use crate::common;
use crowded::crowded;
use std::sync::{Arc, Mutex};
use weir::{CompiledBy, Config, Instance, Module, RefusedBy, Store, Tier, TierEvent, TierEventKind, Trap};

/// A function whose branches each take a thousand operands, so that its SSA would be quadratic; and an ordinary one.
fn quadratic() -> String {
    let results = "i32 ".repeat(1000);
    let branches = "local.get 0 br_if 0 ".repeat(20_000);
    format!(
        r#"(module
            (func $thousand (param i32) (result {results}) unreachable)
            (func $quadratic (param i32) (result {results}) block (result {results}) local.get 0 call $thousand {branches} end)
            (func (export "f") (param i32 i32) (result i32)
                (if (local.get 0) (then (drop (i32.add (call $last (local.get 0)))))) (local.get 1))
            (func $last (param i32) (result i32 i32) (local.get 0) (call $quadratic (local.get 0)) unreachable))"#
    )
}

/// An event about a function. No test expects `Other`.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Reported {
    Compiled(CompiledBy),
    Translated,
    Refused { by: String, reason: String, interpreted: bool },
    Other(String),
}

/// A function with the part that refused it and the reason.
type Refused = (u32, RefusedBy, String);

/// Calls `f` of a module; returns its result, the events with their functions, and the statistics' refusals.
fn run(config: &mut Config, text: &str, args: (i32, i32)) -> (weir::Result<i32>, Vec<(u32, Reported)>, Vec<Refused>) {
    let reported = Arc::new(Mutex::new(Vec::new()));
    let listener = reported.clone();
    config.synchronous_compilation(true);
    let events = move |event: &TierEvent<'_>| {
        let what = match event.kind {
            TierEventKind::Compiled { by, .. } => Reported::Compiled(by),
            TierEventKind::Translated { .. } => Reported::Translated,
            TierEventKind::Refused { by, reason, interpreted, .. } => {
                Reported::Refused { by: by.to_string(), reason: reason.into(), interpreted }
            }
            _ => Reported::Other(format!("{event:?}")),
        };
        // The callback may read the module's statistics.
        if event.module.stats().functions.total == 0 {
            listener.lock().unwrap().push((u32::MAX, Reported::Other("a module without functions".into())));
        }
        listener.lock().unwrap().push((event.func.unwrap_or(u32::MAX), what));
    };
    let engine = common::engine_with_events(config, events).unwrap();
    let module = Module::new(&engine, text).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let f = instance.get_typed_func::<(i32, i32), i32>(&mut store, "f").unwrap();
    let result = f.call(&mut store, args);
    let fallbacks = module.stats().functions.fallbacks;
    let fallbacks = fallbacks.into_iter().map(|fallback| (fallback.func, fallback.by, fallback.reason)).collect();
    let reported = reported.lock().unwrap().clone();
    (result, reported, fallbacks)
}

const FRAME: &str = "the native frame exceeds the budget of 32768";

#[test]
#[cfg(target_arch = "x86_64")]
fn a_function_that_only_the_native_back_end_refuses() {
    let text = crowded();
    let (expected, reported, fallbacks) = run(Config::new().tier(Tier::Interpreter), &text, (5, 6));
    assert_eq!((reported, fallbacks), (Vec::new(), Vec::new()));
    let expected = expected.unwrap();
    let both = cfg!(feature = "cranelift");
    for (tier, threshold) in [(Tier::Native, None), (Tier::Auto, Some(1))] {
        let (result, reported, fallbacks) = run(Config::new().tier(tier).tier_up_threshold(threshold), &text, (5, 6));
        assert_eq!(result.unwrap(), expected);
        let refused = Reported::Refused { by: "the native back end".into(), reason: FRAME.into(), interpreted: !both };
        let compiled = both.then_some((0, Reported::Compiled(CompiledBy::Cranelift)));
        let crowded: Vec<_> = reported.into_iter().filter(|(func, _)| *func == 0).collect();
        assert_eq!(crowded, [(0, refused)].into_iter().chain(compiled).collect::<Vec<_>>());
        assert_eq!(fallbacks, [(0, RefusedBy::NativeBackEnd, FRAME.to_string())]);
    }
    let others = [(Tier::Cranelift, CompiledBy::Cranelift), (Tier::Baseline, CompiledBy::Baseline)];
    for (tier, by) in others.into_iter().filter(|&(tier, _)| common::is_built(tier)) {
        let (result, reported, fallbacks) = run(Config::new().tier(tier), &text, (5, 6));
        assert_eq!(result.unwrap(), expected, "{tier:?}");
        let compiled = [0, 1].map(|func| (func, Reported::Compiled(by)));
        assert_eq!((&reported[..], fallbacks), (&compiled[..], Vec::new()), "{tier:?}");
    }
}

/// Ahead of time, such a function gets baseline code. The engine knows of the refusal after the module is gone.
#[test]
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn a_function_that_is_refused_ahead_of_time() {
    let engine = common::engine(&Config::new()).unwrap();
    let bytes = engine.precompile_module(crowded().as_bytes()).unwrap();
    let fallbacks = engine.stats().functions.fallbacks;
    let [refused] = &fallbacks[..] else { panic!("{fallbacks:?}") };
    assert_eq!((refused.func, refused.by, &*refused.reason), (0, RefusedBy::NativeBackEnd, FRAME));
    // SAFETY: the bytes are of `precompile_module`.
    let module = unsafe { Module::deserialize(&engine, bytes) }.unwrap();
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let f = instance.get_typed_func::<(i32, i32), i32>(&mut store, "f").unwrap();
    let (expected, ..) = run(Config::new().tier(Tier::Interpreter), &crowded(), (5, 6));
    assert_eq!(f.call(&mut store, (5, 6)).unwrap(), expected.unwrap());
    let stored = module.stats().stored;
    assert_eq!((stored.baseline, stored.optimised), (1, 1));
    // Each time that it is serialised it is compiled again, and the refusal counted once.
    for _ in 0..2 {
        module.serialize().unwrap();
        assert_eq!(module.stats().functions.fallbacks.len(), 1);
    }
}

/// As many branches take Cranelift too long.
#[test]
#[cfg(all(target_arch = "x86_64", feature = "cranelift"))]
fn a_refused_function_with_many_branches_is_not_for_cranelift() {
    let branches = "(block (br_if 0 (local.get 1)))".repeat(100);
    let text = crowded().replacen("(if (local.get 1)", &format!("{branches} (if (local.get 1)"), 1);
    let (_, reported, fallbacks) = run(Config::new().tier(Tier::Native), &text, (5, 6));
    let [(0, RefusedBy::NativeBackEnd, _), (0, RefusedBy::Cranelift, reason)] = &fallbacks[..] else { panic!("{fallbacks:?}") };
    assert_eq!(reason, "another back end refuses the function, and Cranelift would take too long");
    assert!(!reported.contains(&(0, Reported::Compiled(CompiledBy::Cranelift))), "{reported:?}");
}

#[test]
fn a_function_without_ssa_is_refused_once_for_all_back_ends() {
    let text = quadratic();
    for tier in [Tier::Ssa, Tier::Native, Tier::Cranelift].into_iter().filter(|&tier| common::is_built(tier)) {
        let (result, reported, fallbacks) = run(Config::new().tier(tier).passes_off(&["inline"]), &text, (1, 2));
        // `$thousand` traps.
        assert!(result.unwrap_err().is::<Trap>());
        let [(1, RefusedBy::Construction, reason)] = &fallbacks[..] else { panic!("{tier:?}: {fallbacks:?}") };
        assert!(reason.contains("exceeds the budget"), "{reason}");
        let refused = Reported::Refused { by: "SSA construction".into(), reason: reason.clone(), interpreted: true };
        let ran = match tier {
            Tier::Ssa => Reported::Translated,
            Tier::Native if cfg!(target_arch = "x86_64") => Reported::Compiled(CompiledBy::Native),
            _ => Reported::Compiled(CompiledBy::Cranelift),
        };
        let of = |func: u32| reported.iter().filter(|(of, _)| *of == func).map(|(_, what)| what).collect::<Vec<_>>();
        assert_eq!((of(1), of(2), of(3)), (vec![&refused], vec![&ran], vec![&ran]), "{tier:?}");
    }
}

/// A function in which a thousand locals are live in each of a thousand blocks, so that its compilation takes more than its budget of
/// steps; and a small function that it calls.
fn costly() -> String {
    const LOCALS: usize = 1000;
    let each = |text: &dyn Fn(usize) -> String| (2..2 + LOCALS).map(text).collect::<String>();
    let writes = each(&|i| format!("(local.set {i} (call $next (i32.const 0)))"));
    let blocks = each(&|_| "(block (br_if 0 (local.get 1)) (local.set 0 (call $next (local.get 0))))".into());
    let reads = each(&|i| format!("(local.set 0 (i32.add (local.get 0) (local.get {i})))"));
    let locals = "i32 ".repeat(LOCALS);
    format!(
        r#"(module
            (func $next (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
            (func (export "f") (param i32 i32) (result i32) (local {locals}) {writes} {blocks} {reads} (local.get 0)))"#
    )
}

/// The native back end exceeds the budget, and Cranelift, which would compile the function, does not get it.
#[test]
#[cfg(target_arch = "x86_64")]
fn a_function_over_its_budget_stays_in_the_tier_below() {
    let text = costly();
    let tiers = [(Tier::Native, None), (Tier::Auto, Some(1))];
    for (tier, threshold) in tiers.into_iter().filter(|&(tier, _)| common::is_built(tier)) {
        let mut config = Config::new();
        config.tier(tier).tier_up_threshold(threshold).passes_off(&["inline"]);
        let (result, reported, fallbacks) = run(&mut config, &text, (5, 0));
        assert_eq!(result.unwrap(), 2005, "{tier:?}");
        let [(1, RefusedBy::Budget, reason)] = &fallbacks[..] else { panic!("{tier:?}: {fallbacks:?}") };
        assert!(reason.starts_with("the compilation exceeds the budget of "), "{reason}");
        let refused = Reported::Refused { by: RefusedBy::Budget.to_string(), reason: reason.clone(), interpreted: true };
        let of_costly: Vec<_> = reported.into_iter().filter(|(func, _)| *func == 1).map(|(_, what)| what).collect();
        // After one call there is no baseline code yet.
        let baseline = (tier == Tier::Auto).then_some(Reported::Compiled(CompiledBy::Baseline));
        assert_eq!(of_costly, [refused].into_iter().chain(baseline).collect::<Vec<_>>(), "{tier:?}");
    }
}

/// The baseline compiler needs no SSA.
#[test]
#[cfg(target_arch = "x86_64")]
fn the_baseline_compiler_compiles_a_function_without_ssa() {
    let (result, mut reported, fallbacks) = run(Config::new().tier(Tier::Baseline), &quadratic(), (1, 2));
    assert!(result.unwrap_err().is::<Trap>());
    reported.sort_by_key(|(func, _)| *func);
    assert_eq!(
        (reported, fallbacks),
        ((0..4).map(|func| (func, Reported::Compiled(CompiledBy::Baseline))).collect(), Vec::new())
    );
}

/// The evaluator reports as the other tiers do, once for each function.
#[test]
fn the_evaluator_reports_what_it_translates() {
    let text = r#"(module
        (func $g (param i32) (result i32) (local.get 0))
        (func (export "f") (param i32 i32) (result i32) (i32.add (call $g (local.get 0)) (call $g (local.get 1)))))"#;
    let (result, mut reported, fallbacks) = run(Config::new().tier(Tier::Ssa), text, (40, 2));
    reported.sort_by_key(|(func, _)| *func);
    assert_eq!((result.unwrap(), fallbacks), (42, Vec::new()));
    assert_eq!(reported, [(0, Reported::Translated), (1, Reported::Translated)]);
}
