//! The counts of the interpreter and of baseline code: directions of branches and targets of indirect calls.

use crate::common::{self, is_built};
use weir::{Config, Engine, Instance, Linker, Module, Store, Tier};
use weir_bytecode::{Instrs, Opcode};

/// Every kind of conditional branch and of indirect call; `run` n times around the loop.
const WORK: &str = r#"(module
    (import "host" "far" (func $far (param i32) (result i32)))
    (type $t (func (param i32) (result i32)))
    (table funcref (elem $far $one $two $three $four))
    (func $one (type $t) (local.get 0))
    (func $two (type $t) (local.get 0))
    (func $three (type $t) (local.get 0))
    (func $four (type $t) (local.get 0))
    (func $tail (type $t) (return_call_indirect (type $t) (local.get 0) (i32.const 2)))
    (func $tail_ref (type $t) (return_call_ref $t (local.get 0) (ref.func $three)))
    (func $run (export "run") (param $n i32) (local $i i32)
        (loop $again
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (if (i32.eq (local.get $i) (i32.const 1)) (then) (else))
            (if (i32.and (local.get $i) (i32.const 1)) (then))
            (block $c (block $b (block $a (br_table $a $b $c (local.get $i)))))
            (drop (call_indirect (type $t) (i32.const 5) (i32.rem_u (local.get $i) (i32.const 5))))
            (drop (call_indirect (type $t) (i32.const 5) (i32.and (local.get $i) (i32.const 1))))
            (drop (call_ref $t (i32.const 5) (ref.func $one)))
            (drop (call $tail (i32.const 5)))
            (drop (call $tail_ref (i32.const 5)))
            (block $skip (drop (br_on_null $skip (ref.func $one))))
            (block $skip (result (ref $t)) (br_on_non_null $skip (ref.null $t)) (ref.func $one))
            drop
            (br_if $again (i32.lt_u (local.get $i) (local.get $n))))))"#;

fn linked(engine: &Engine) -> (Store<()>, Instance, Module) {
    let mut linker = Linker::new(engine);
    linker.func_wrap("host", "far", |n: i32| n).unwrap();
    let module = Module::new(engine, WORK).unwrap();
    let mut store = Store::new(engine, ());
    let instance = linker.instantiate(&mut store, &module).unwrap();
    (store, instance, module)
}

fn run(store: &mut Store<()>, instance: Instance, n: i32) {
    instance.get_typed_func::<i32, ()>(&mut *store, "run").unwrap().call(store, n).unwrap();
}

/// The function's conditional branches, and its indirect calls with targets and others.
type Counts = (Vec<Vec<u32>>, Vec<(Vec<(Option<u32>, u32)>, u32)>);

fn counts(module: &Module, func: u32) -> Option<Counts> {
    let profile = module.profile(func)?;
    let branches = profile.branches.iter().map(|branch| branch.counts.to_vec());
    Some((branches.collect(), profile.calls.iter().map(|call| (call.targets.to_vec(), call.others)).collect()))
}

const RUN: u32 = 7;

/// Stores that exist at the same time count in stripes of their own, of which a profile is the sum.
#[test]
fn the_counts_of_several_stores_add_up() {
    const STORES: u32 = 20;
    for tier in [Tier::Interpreter, Tier::Baseline].into_iter().filter(|&tier| is_built(tier)) {
        let engine = common::engine(Config::new().tier(tier).profile(true)).unwrap();
        let mut linker = Linker::new(&engine);
        linker.func_wrap("host", "far", |n: i32| n).unwrap();
        let module = Module::new(&engine, WORK).unwrap();
        let mut stores: Vec<Store<()>> = (0..STORES).map(|_| Store::new(&engine, ())).collect();
        for store in &mut stores {
            let instance = linker.instantiate(&mut *store, &module).unwrap();
            run(store, instance, 10);
        }
        let (branches, calls) = counts(&module, RUN).unwrap();
        let times = |counts: &[u32]| counts.iter().map(|count| STORES * count).collect::<Vec<_>>();
        let expected: [&[u32]; 6] = [&[1, 9], &[5, 5], &[0, 1, 9], &[0, 10], &[0, 10], &[9, 1]];
        assert_eq!(branches, expected.map(times));
        let call = |func: u32, count: u32| (Some(func), STORES * count);
        assert_eq!(
            calls,
            [
                (vec![call(1, 2), call(2, 2), call(3, 2)], STORES * 4),
                (vec![call(1, 5), (None, STORES * 5)], 0),
                (vec![call(1, 10)], 0),
            ]
        );
    }
}

/// The counts are the same under lazy validation, in the loop that meters, and in baseline code.
#[test]
fn an_engine_that_profiles_counts_everything() {
    let tiers = [Tier::Interpreter, Tier::Baseline].into_iter().filter(|&tier| is_built(tier));
    for (tier, (lazy, fuel)) in tiers.flat_map(|tier| [(false, false), (true, false), (false, true)].map(|of| (tier, of))) {
        let mut config = Config::new();
        config.tier(tier).profile(true).lazy_validation(lazy).consume_fuel(fuel);
        let (mut store, instance, module) = linked(&common::engine(&config).unwrap());
        if fuel {
            store.set_fuel(1 << 40).unwrap();
        }
        assert_eq!(module.profile(RUN), None, "it has not run");
        run(&mut store, instance, 10);
        let (branches, calls) = counts(&module, RUN).unwrap();
        assert_eq!(branches, [vec![1, 9], vec![5, 5], vec![0, 1, 9], vec![0, 10], vec![0, 10], vec![9, 1]]);
        assert_eq!(
            calls,
            [(vec![(Some(1), 2), (Some(2), 2), (Some(3), 2)], 4), (vec![(Some(1), 5), (None, 5)], 0), (vec![(Some(1), 10)], 0),],
            "functions 4 and the host's are among the others of the first"
        );
        for (func, target) in [(5, 2), (6, 3)] {
            assert_eq!(counts(&module, func).unwrap(), (vec![], vec![(vec![(Some(target), 10)], 0)]));
        }
        assert_eq!(module.profile(0), None, "the host's function has no profile");
        assert_eq!(module.profile(99), None, "there is no such function");
    }
}

#[test]
fn a_profile_is_found_by_pc() {
    let mut config = Config::new();
    let (mut store, instance, module) = linked(&common::engine(config.tier(Tier::Interpreter).profile(true)).unwrap());
    run(&mut store, instance, 10);
    let (profile, body) = (module.profile(RUN).unwrap(), module.bytecode().body(RUN).unwrap());
    let pcs = |op| Instrs::new(module.bytecode(), body.entry, body.end).filter(move |instr| instr.op == op).map(|instr| instr.pc);
    assert_eq!(profile.branch(pcs(Opcode::BrIf).next().unwrap()), [9, 1]);
    assert_eq!(profile.branch(pcs(Opcode::Loop).next().unwrap()), [0; 0]);
    assert_eq!(*profile.call(pcs(Opcode::CallRef).next().unwrap()).unwrap().targets, [(Some(1), 10)]);
    assert_eq!(profile.call(pcs(Opcode::BrIf).next().unwrap()), None);
}

/// Cold functions have no counters, and optimised code counts nothing.
#[cfg(feature = "jit")]
#[test]
fn functions_that_are_compiled_are_profiled_before() {
    let mut config = Config::new();
    // A function that is inlined everywhere is not called, and never hot.
    config.synchronous_compilation(true).tier_up_threshold(Some(100)).baseline(false).passes_off(&["inline"]);
    let engine = common::engine(&config).unwrap();
    let (mut store, instance, module) = linked(&engine);
    run(&mut store, instance, 10);
    assert_eq!(module.profile(RUN), None, "11 ticks of 100");
    assert_eq!(compiled(&module), 0, "11 ticks of 100");
    run(&mut store, instance, 40);
    let warm = counts(&module, RUN).expect("62 ticks of 100").0;
    assert!((20..40).contains(&(warm[0][0] + warm[0][1])), "{warm:?}");
    assert_eq!(compiled(&module), 0, "62 ticks of 100");
    run(&mut store, instance, 1000);
    let hot = counts(&module, RUN).unwrap().0;
    assert!((60..=80).contains(&(hot[0][0] + hot[0][1])), "the last 75 ticks of 100: {hot:?}");
    let stats = module.stats();
    assert!(stats.osr_entries > 0, "the loop goes on in compiled code: {stats:?}");
    // After 1,000 rounds every function of the module is hot, and each is listed once.
    let mut functions: Vec<u32> = stats.tier_up.iter().map(|up| up.func).collect();
    functions.sort_unstable();
    assert_eq!(functions, [1, 2, 3, 4, 5, 6, 7], "{:?}", stats.tier_up);
    assert_eq!(stats.functions.fallbacks, []);
}

/// The number of functions that have compiled code, for calls or for loops.
#[cfg(feature = "jit")]
fn compiled(module: &Module) -> u64 {
    let stats = module.stats();
    stats.functions.native + stats.functions.cranelift + stats.osr_entries + stats.tier_up.len() as u64
}

#[test]
fn nothing_is_counted_unasked() {
    for (tier, profile) in [(Tier::Interpreter, None), (Tier::Auto, Some(false)), (Tier::Native, None)] {
        if !is_built(tier) {
            continue;
        }
        let mut config = Config::new();
        config.tier(tier).synchronous_compilation(true);
        if let Some(profile) = profile {
            config.profile(profile);
        }
        let (mut store, instance, module) = linked(&common::engine(&config).unwrap());
        run(&mut store, instance, 1000);
        assert_eq!(module.profile(RUN), None, "{tier:?}");
    }
}
