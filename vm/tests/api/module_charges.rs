//! What modules are charged for while their functions are compiled, lose their code and are validated by several threads: it ends with them, and
//! limits hold.

use crate::common;
use std::thread;
use weir::{Config, Engine, Instance, Module, ModuleMemoryExceeded, RefusedBy, Store, Tier};

const FUNCTIONS: i32 = 200;

/// Functions of some hundred bytes, each with calls and a loop, so that code of it has tables.
fn program() -> String {
    let function = |i: i32| {
        let calls = format!("(local.set 1 (i32.add (local.get 1) (call $leaf (i32.const {i}))))").repeat(20);
        format!(
            r#"(func (export "{i}") (param i32) (result i32) (local i32)
                (loop {calls} (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
                (local.get 1))"#
        )
    };
    let functions: String = (0..FUNCTIONS).map(function).collect();
    format!(r#"(module (func $leaf (param i32) (result i32) (i32.load (local.get 0))) (memory 1) {functions})"#)
}

/// An engine that compiles each function at its first call.
fn engine(tier: Tier, change: impl FnOnce(&mut Config)) -> Engine {
    let mut config = Config::new();
    config.tier(tier).synchronous_compilation(true).tier_up_threshold(Some(1));
    change(&mut config);
    common::engine(&config).expect("valid settings")
}

/// Calls each function twice, and returns the largest charge between two calls.
fn call_all(engine: &Engine, module: &Module) -> usize {
    let mut store = Store::new(engine, ());
    let instance = Instance::new(&mut store, module, &[]).expect("no imports");
    let mut most = 0;
    for i in (0..FUNCTIONS).chain(0..FUNCTIONS) {
        let f = instance.get_typed_func::<i32, i32>(&mut store, &i.to_string()).expect("it is exported");
        assert_eq!(f.call(&mut store, 2).expect("no trap"), 0);
        most = most.max(module.host_memory());
        assert_eq!(module.host_memory(), engine.host_memory());
    }
    most
}

/// In each tier with code: its tables are charged when it is installed, and no function is compiled that has no room for them.
#[test]
fn code_is_charged_up_to_the_limit() {
    let tiers = [Tier::Native, Tier::Baseline, Tier::Auto];
    for tier in tiers.into_iter().filter(|&tier| cfg!(feature = "jit") && common::is_built(tier)) {
        let unlimited = engine(tier, |_| ());
        let module = Module::new(&unlimited, program()).expect("it is valid");
        let loaded = module.host_memory();
        let most = call_all(&unlimited, &module);
        assert!(most > loaded + 100 * FUNCTIONS as usize, "{tier:?}: {loaded}, then {most}");
        drop(module);
        assert_eq!(unlimited.host_memory(), 0, "{tier:?}");
        // Room for half of it.
        let max = loaded + (most - loaded) / 2;
        let limited = engine(tier, |config| _ = config.max_module_memory(max));
        let module = Module::new(&limited, program()).expect("there is room");
        let most = call_all(&limited, &module);
        assert!(most > loaded && most <= max, "{tier:?}: {loaded}, then {most} of {max}");
        let stats = module.stats();
        assert!(stats.functions.native + stats.functions.baseline > 10, "{tier:?}: {stats:?}");
        let refused = stats.functions.fallbacks.iter().filter(|fallback| fallback.by == RefusedBy::CodeMemory);
        assert!(refused.clone().count() > 10 && refused.into_iter().all(|refused| refused.reason.contains("max_module_memory")));
        drop(module);
        assert_eq!(limited.host_memory(), 0, "{tier:?}");
    }
}

/// Code that gives way to other code gives its charge back.
#[test]
fn evicted_code_is_not_charged() {
    // Room for the code of some dozens of them.
    let tiers = [(Tier::Native, 8 << 10), (Tier::Baseline, 64 << 10)];
    for (tier, room) in tiers.into_iter().filter(|&(tier, _)| common::is_built(tier)) {
        let unlimited = engine(tier, |_| ());
        let module = Module::new(&unlimited, program()).expect("it is valid");
        let loaded = module.host_memory();
        let all = call_all(&unlimited, &module) - loaded;
        let small = engine(tier, |config| _ = config.max_code_size(room));
        let module = Module::new(&small, program()).expect("it is valid");
        let loaded = module.host_memory();
        let charges: Vec<usize> = (0..10).map(|_| call_all(&small, &module) - loaded).collect();
        assert!(small.stats().retired > 20, "{tier:?}: {:?}", small.stats());
        // Code that is gone may have left small lists.
        assert!(
            charges.iter().all(|&charged| charged < all / 2 && charged < charges[0] + charges[0] / 4),
            "{tier:?}: {all}, {charges:?}"
        );
        drop(module);
        assert_eq!(small.host_memory(), 0, "{tier:?}");
    }
}

/// Several threads validate the functions of a module, and several load modules.
#[test]
fn threads_charge_as_much_as_one() {
    let wide =
        |i: usize| format!("(func (param i32) (block (br_table {} (local.get 0))) (drop (i32.const {i})))", "0 ".repeat(500));
    let wasm = wat::parse_str(format!("(module {})", (0..400).map(wide).collect::<String>())).expect("well formed");
    let load = |parallel: bool, max: Option<usize>| {
        let engine = engine(Tier::Interpreter, |config| {
            config.parallel_validation(parallel);
            max.into_iter().for_each(|max| _ = config.max_module_memory(max));
        });
        let charged = Module::new(&engine, &wasm).map(|module| module.host_memory());
        assert_eq!(engine.host_memory(), 0);
        charged
    };
    let charged = load(false, None).expect("it is valid");
    for _ in 0..20 {
        assert_eq!(load(true, None).expect("it is valid"), charged);
        let error = load(true, Some(charged / 2)).expect_err("it takes twice as much");
        assert_eq!(error.downcast::<ModuleMemoryExceeded>().expect("the only error").max(), charged / 2);
    }
    // Room in the engine for two at a time and some.
    let shared = engine(Tier::Interpreter, |config| _ = config.max_engine_memory(charged * 5 / 2));
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..20 {
                    match Module::new(&shared, &wasm) {
                        Ok(module) => assert_eq!(module.host_memory(), charged),
                        Err(error) => assert_eq!(
                            error.downcast::<ModuleMemoryExceeded>().expect("the only error").setting(),
                            "Config::max_engine_memory"
                        ),
                    }
                    assert!(shared.host_memory() <= charged * 5 / 2);
                }
            });
        }
    });
    assert_eq!(shared.host_memory(), 0);
    assert!(Module::new(&shared, &wasm).is_ok());
}
