//! What the tiers tell as it happens.

use std::sync::{Arc, Mutex};
use weir::{Config, Engine, Instance, Module, Store, Tier, TierEventKind};

const TEXT: &str = r#"(module
    (func $sum (export "sum") (param i64) (result i64) (local i64)
        (loop
            (local.set 1 (i64.add (local.get 1) (local.get 0)))
            (br_if 0 (i64.ne (local.tee 0 (i64.sub (local.get 0) (i64.const 1))) (i64.const 0))))
        (local.get 1))
    (func (export "unnamed") (result i64) (call $sum (i64.const 9))))"#;

/// The events of running both functions.
fn events(config: &mut Config) -> Vec<(String, bool, usize)> {
    let told = Arc::new(Mutex::new(Vec::new()));
    let listener = told.clone();
    config.synchronous_compilation(true).on_tier_event(move |event| {
        let TierEventKind::Compiled { native, code, .. } = &event.kind else { panic!("{event:?}") };
        listener.lock().unwrap().push((event.name(), *native, code.len()));
        assert!(event.osr.is_none_or(|pc| event.module.bytecode().bytes[pc as usize] == 0x03), "a loop is there");
    });
    let engine = Engine::new(config).unwrap();
    let module = Module::new(&engine, TEXT).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let sum = instance.get_typed_func::<i64, i64>(&mut store, "sum").unwrap();
    assert_eq!(sum.call(&mut store, 1000).unwrap(), 500_500);
    let unnamed = instance.get_typed_func::<(), i64>(&mut store, "unnamed").unwrap();
    assert_eq!(unnamed.call(&mut store, ()).unwrap(), 45);
    let code: usize = told.lock().unwrap().iter().map(|&(.., len)| len).sum();
    assert_eq!(code as u64, module.stats().code_bytes);
    let told = told.lock().unwrap();
    told.clone()
}

#[test]
fn every_compilation_is_told() {
    let names = |told: Vec<(String, bool, usize)>| told.into_iter().map(|(name, native, _)| (name, native)).collect::<Vec<_>>();
    assert_eq!(names(events(Config::new().tier(Tier::Native))), [("sum".into(), true), ("function 1".into(), true)]);
    assert_eq!(names(events(Config::new().tier(Tier::Cranelift))), [("sum".into(), false), ("function 1".into(), false)]);
    assert_eq!(events(Config::new().tier(Tier::Interpreter)), []);
    let tiering = names(events(Config::new().tier_up_threshold(Some(100))));
    assert!(tiering.iter().any(|(name, native)| name.starts_with("sum loop 0x") && *native), "{tiering:?}");
}

#[test]
fn a_panic_in_the_callback_goes_no_further() {
    let mut config = Config::new();
    config.tier(Tier::Native).on_tier_event(|_| panic!("this message is expected"));
    let engine = Engine::new(&config).unwrap();
    let module = Module::new(&engine, TEXT).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let sum = instance.get_typed_func::<i64, i64>(&mut store, "sum").unwrap();
    assert_eq!(sum.call(&mut store, 10).unwrap(), 55);
}

#[test]
fn code_beyond_the_budget_takes_the_place_of_other_code() {
    let functions: String = (0..200).map(|i| format!("(func (export \"{i}\") (result i32) (i32.const {i}))")).collect();
    let run = |budget: usize| {
        let mut config = Config::new();
        let engine = Engine::new(config.tier(Tier::Native).max_code_size(budget)).unwrap();
        let call_all = || {
            let module = Module::new(&engine, format!("(module {functions})")).unwrap();
            let mut store = Store::new(&engine, ());
            let instance = Instance::new(&mut store, &module, &[]).unwrap();
            for i in 0..200 {
                let func = instance.get_typed_func::<(), i32>(&mut store, &i.to_string()).unwrap();
                assert_eq!(func.call(&mut store, ()).unwrap(), i);
            }
            let stats = module.stats();
            assert!(stats.functions.fallbacks.iter().all(|fallback| fallback.reason.contains("code memory is full")));
            // All but what the last call that found no room retired, as its own store was in the guest.
            assert!(stats.retired_bytes - stats.freed_bytes <= 64, "{} of {}", stats.freed_bytes, stats.retired_bytes);
            // What is in place is not more than there may be.
            assert!(stats.code_bytes - stats.freed_bytes <= budget as u64);
            (stats.functions.native, stats.functions.interpreted, stats.functions.fallbacks.len() as u64, stats.retired)
        };
        let first = call_all();
        assert_eq!(call_all(), first, "a module gives its code back");
        first
    };
    assert_eq!(run(usize::MAX), (200, 0, 0, 0));
    let (native, interpreted, refused, retired) = run(12 << 10);
    // Each is called once, so that whatever has room in the end is what was called last.
    assert!(native > 100 && native + refused == 200, "{native} compiled, {refused} without room");
    assert!(retired > 10 && interpreted >= retired, "{retired} gave way, {interpreted} are interpreted");
    assert_eq!(run(0), (0, 200, 0, 0), "there is no room even for stubs");
}
