//! The settings of wasmtime that have an effect here, or are refused.

use crate::common;
use weir::{
    Config, ExternRef, Module, ModuleVersionStrategy, OperatorCost, PoolConcurrencyLimitError, PoolingAllocationConfig, Store,
    Unavailable, WasmFeatures,
};

/// The message with which an engine is refused.
fn refused(config: &Config) -> Option<String> {
    let error = common::engine(config).err()?;
    Some(error.downcast_ref::<Unavailable>().unwrap_or_else(|| panic!("{error:?}")).to_string())
}

#[test]
fn components_are_refused() {
    type Setting = fn(&mut Config, bool) -> &mut Config;
    let settings: &[(Setting, &str)] = &[
        (Config::wasm_component_model, "wasm_component_model"),
        (Config::wasm_component_model_async, "wasm_component_model_async"),
        (Config::wasm_component_model_more_async_builtins, "wasm_component_model_more_async_builtins"),
        (Config::wasm_component_model_async_stackful, "wasm_component_model_async_stackful"),
        (Config::wasm_component_model_threading, "wasm_component_model_threading"),
        (Config::wasm_component_model_error_context, "wasm_component_model_error_context"),
        (Config::wasm_component_model_gc, "wasm_component_model_gc"),
        (Config::wasm_component_model_map, "wasm_component_model_map"),
        (Config::wasm_component_model_memory64, "wasm_component_model_memory64"),
        (Config::wasm_component_model_fixed_length_lists, "wasm_component_model_fixed_length_lists"),
        (Config::wasm_component_model_implements, "wasm_component_model_implements"),
        (Config::concurrency_support, "concurrency_support"),
    ];
    for (set, name) in settings {
        let mut config = Config::new();
        assert_eq!(refused(set(&mut config, false)), None, "{name}");
        let message = format!("Weir does not have components (`Config::{name}`)");
        assert_eq!(refused(set(&mut config, true)), Some(message));
        assert_eq!(refused(set(&mut config, false)), None, "{name}");
    }
}

/// Each feature of the validator is the same setting as the method for its proposal, is refused, or refuses a part of the language.
#[test]
fn features_of_the_validator_are_settings() {
    let lacking = WasmFeatures::SHARED_EVERYTHING_THREADS | WasmFeatures::MEMORY_CONTROL | WasmFeatures::CM_VALUES;
    for (name, feature) in lacking.iter_names() {
        let mut config = Config::new();
        assert_eq!(refused(config.wasm_features(feature, false)), None, "{name}");
        assert!(refused(config.wasm_features(feature, true)).is_some(), "{name}");
        assert_eq!(refused(config.wasm_features(feature, false)), None, "{name}");
    }
    let mut config = Config::new();
    let message = refused(config.wasm_features(WasmFeatures::MEMORY_CONTROL, true)).unwrap();
    assert_eq!(message, "Weir does not have the feature `memory_control` (`Config::wasm_features`)");
    let mut config = Config::new();
    let by_method = refused(config.wasm_features(WasmFeatures::SHARED_EVERYTHING_THREADS, true));
    assert_eq!(by_method.as_deref(), Some("Weir does not have threads yet (`Config::wasm_shared_everything_threads`)"));
    assert_eq!(refused(config.wasm_shared_everything_threads(false)), None, "the method sets the same");
    // What wasmtime allows by default may be asked for, and modules that have it are refused.
    let mut config = Config::new();
    assert_eq!(refused(config.wasm_gc(true).wasm_threads(true).gc_support(true)), None);
    let engine = common::engine(&config).unwrap();
    for text in ["(module (type (struct)))", "(module (memory 1 1 shared))"] {
        assert!(Module::new(&engine, text).is_err(), "{text}");
    }

    let cases = [
        (WasmFeatures::FLOATS, "(module (func (param f64)))"),
        (WasmFeatures::SIGN_EXTENSION, "(module (func (param i32) (drop (i32.extend8_s (local.get 0)))))"),
        (WasmFeatures::GC_TYPES, "(module (func (param externref)))"),
        (WasmFeatures::TAIL_CALL, "(module (func $f (return_call $f)))"),
        (WasmFeatures::MUTABLE_GLOBAL, r#"(module (global (export "g") (mut i32) (i32.const 0)))"#),
        (WasmFeatures::LEGACY_EXCEPTIONS, "(module (func try end))"),
    ];
    for (feature, text) in cases {
        for enable in [true, false] {
            let engine = common::engine(Config::new().wasm_features(feature, enable)).unwrap();
            assert_eq!(Module::new(&engine, text).is_ok(), enable, "{feature:?}");
        }
    }
}

#[test]
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn only_the_host_is_a_target() {
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut config = Config::new();
    assert!(config.target(&host).is_ok());
    for other in ["pulley64", "aarch64-apple-darwin", "x86_64", ""] {
        let error = config.target(other).unwrap_err();
        assert!(error.is::<Unavailable>() && error.to_string().contains(&host), "{error}");
    }
    assert_eq!(refused(&config), None);
}

/// With a table, the default costs are wasmtime's; without one, they are Weir's. The table has no effect without fuel.
#[test]
fn a_table_of_costs_is_wasmtimes() {
    const TEXT: &str = r#"(module (func (export "f") (block (drop (i32.add (i32.const 1) (i32.const 2)))) (return)))"#;
    let taken = |config: &Config| {
        let engine = common::engine(config).unwrap();
        let (mut store, instance) = common::instance(&engine, TEXT);
        let counts = store.set_fuel(100).is_ok();
        instance.get_typed_func::<(), ()>(&mut store, "f").unwrap().call(&mut store, ()).unwrap();
        counts.then(|| 100 - store.get_fuel().unwrap())
    };
    let mut config = Config::new();
    assert_eq!(taken(config.operator_cost(OperatorCost { I32Add: 3, ..OperatorCost::new() })), None);
    assert_eq!(taken(config.consume_fuel(true)), Some(1 + 2 + 3));
    assert_eq!(taken(config.operator_cost(OperatorCost::default())), Some(1 + 3));
    assert_eq!(taken(Config::new().consume_fuel(true)), Some(5));
}

#[test]
fn a_version_of_modules_is_short() {
    let mut config = Config::new();
    let version = |len| ModuleVersionStrategy::Custom("x".repeat(len));
    assert!(config.module_version(version(255)).is_ok());
    assert!(config.module_version(version(256)).is_err());
    assert_eq!(refused(config.module_version(ModuleVersionStrategy::None).unwrap()), None);
}

/// A store has a heap from its first reference on, until it is dropped.
#[test]
fn stores_with_references_are_limited() {
    let mut limits = PoolingAllocationConfig::new();
    limits.total_gc_heaps(1);
    let engine = common::engine(Config::new().allocation_strategy(limits)).unwrap();
    let [mut first, mut second] = [(); 2].map(|()| Store::new(&engine, ()));
    ExternRef::new(&mut first, 1).unwrap();
    ExternRef::new(&mut first, 2).unwrap();
    for _ in 0..2 {
        let error = ExternRef::new(&mut second, 3).unwrap_err();
        assert!(error.is::<PoolConcurrencyLimitError>(), "{error:?}");
        assert_eq!(error.root_cause().to_string(), "maximum concurrent limit of 1 for GC heaps reached");
    }
    drop(first);
    ExternRef::new(&mut second, 3).unwrap();
    assert!(ExternRef::new(Store::new(&engine, ()), 4).is_err());
}

/// What the optimiser does is seen in the length of its code; what the code does is the same.
#[cfg(feature = "jit")]
mod optimising {
    use super::common;
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};
    use weir::{Config, Inlining, OptLevel, Tier, TierEventKind};

    const TEXT: &str = r#"(module
        (memory 1)
        (func $square (param i32) (result i32) (i32.mul (local.get 0) (local.get 0)))
        (func $run (export "run") (param i32 i32) (result i32) (local i32)
            (loop $next
                (local.set 2 (i32.add (local.get 2) (i32.add (call $square (local.get 1)) (call $square (local.get 0)))))
                (br_if $next (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
            (i32.store (i32.const 8) (local.get 2))
            (i32.load (i32.const 8))))"#;

    /// The code of each function that was compiled, by index.
    fn code(change: fn(&mut Config)) -> BTreeMap<u32, Vec<u8>> {
        let code = Arc::new(Mutex::new(BTreeMap::new()));
        let mut config = Config::new();
        config.tier(Tier::Native).opt_all(true);
        change(&mut config);
        let seen = code.clone();
        let engine = common::engine_with_events(&config, move |event| {
            if let TierEventKind::Compiled { code, .. } = &event.kind {
                seen.lock().unwrap().insert(event.func.unwrap(), code.to_vec());
            }
        })
        .unwrap();
        let (mut store, instance) = common::instance(&engine, TEXT);
        let run = instance.get_typed_func::<(i32, i32), i32>(&mut store, "run").unwrap();
        assert_eq!(run.call(&mut store, (10, 3)).unwrap(), 385 + 90);
        code.lock().unwrap().clone()
    }

    #[test]
    fn levels_and_inlining_have_an_effect() {
        let all = code(|_| ());
        assert_eq!(code(|config| _ = config.cranelift_opt_level(OptLevel::Speed)), all);
        assert_eq!(code(|config| _ = config.cranelift_opt_level(OptLevel::SpeedAndSize)), all);
        assert_eq!(code(|config| _ = config.compiler_inlining(Inlining::Yes)), all);
        assert_eq!(all.keys().copied().collect::<Vec<_>>(), [1], "the other is inlined");
        let calls = code(|config| _ = config.compiler_inlining(Inlining::No));
        assert_eq!(calls, code(|config| _ = config.passes_off(&["inline"])));
        assert_eq!(calls.keys().copied().collect::<Vec<_>>(), [0, 1]);
        let none = code(|config| _ = config.cranelift_opt_level(OptLevel::None));
        assert!(none.len() == 2 && none != calls, "the other passes are off, too");
        assert_eq!(none, code(|config| _ = config.cranelift_opt_level(OptLevel::None).compiler_inlining(Inlining::Yes)));
    }
}
