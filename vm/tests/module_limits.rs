//! What happens when modules take more of the host's memory than is allowed.

mod common;

use std::fmt::Write;
use weir::{Config, Engine, Instance, Module, ModuleMemoryExceeded, RefusedBy, Store, Tier};

const SEVEN: &str = r#"(module (func (export "run") (result i32) i32.const 7))"#;

/// A module with many types of its own.
fn types(seed: usize) -> String {
    let mut text = String::from("(module ");
    for i in seed * 400..(seed + 1) * 400 {
        let params: Vec<&str> = (0..18).map(|bit| if i >> bit & 1 == 0 { "i64" } else { "f64" }).collect();
        write!(text, "(type (func (param {})))", params.join(" ")).expect("memory");
    }
    text + &SEVEN["(module".len()..]
}

fn run(engine: &Engine, module: &Module) {
    let mut store = Store::new(engine, ());
    let instance = Instance::new(&mut store, module, &[]).expect("no imports");
    let run = instance.get_typed_func::<(), i32>(&mut store, "run").expect("it is exported");
    assert_eq!(run.call(&mut store, ()).expect("no trap"), 7);
}

fn exceeded(loaded: weir::Result<Module>) -> ModuleMemoryExceeded {
    loaded.map(drop).expect_err("it takes more").downcast().expect("that is the error")
}

#[test]
fn the_memory_of_a_module_is_bounded() {
    let unlimited = common::default_engine();
    let size = Module::new(&unlimited, types(0)).expect("it is valid").host_memory();
    let engine = common::engine(Config::new().max_module_memory(size - 1)).expect("valid settings");
    let error = exceeded(Module::new(&engine, types(0)));
    assert_eq!((error.max(), error.setting()), (size - 1, "Config::max_module_memory"));
    let text = format!(
        "the module takes at least {} bytes of the host's memory, more than the {} that are allowed (`Config::max_module_memory`)",
        error.needed(),
        size - 1
    );
    assert_eq!(error.to_string(), text);
    assert_eq!(engine.host_memory(), 0);
    assert!(Module::validate(&engine, &[b"\0asm\x01\0\0\0\0".to_vec(), vec![0xFF; 9]].concat()).is_err());
    run(&engine, &Module::new(&engine, SEVEN).expect("a small one"));
    // Of a module that is only validated.
    let wasm = wat::parse_str(format!("(module {})", "(func)".repeat(10_000))).expect("well formed");
    assert!(Module::validate(&engine, &wasm).expect_err("it takes more").to_string().contains("Config::max_module_memory"));
    // The default is in proportion to the size.
    let many = |_: usize| "(type (func (param i32)))";
    assert!(Module::new(&unlimited, format!("(module {})", (0..1000).map(many).collect::<String>())).is_ok());
}

#[test]
fn the_memory_of_all_modules_is_bounded() {
    let unlimited = common::default_engine();
    let size = Module::new(&unlimited, types(0)).expect("it is valid").host_memory();
    let engine = common::engine(Config::new().max_engine_memory(5 * size / 2)).expect("valid settings");
    let load = |seed: usize| Module::new(&engine, types(seed));
    let [first, second] = [0, 1].map(|seed| load(seed).expect("there is room"));
    let error = exceeded(load(2));
    assert_eq!((error.max(), error.setting()), (5 * size / 2, "Config::max_engine_memory"));
    let text = format!("the engine's modules take at least {} bytes of the host's memory", error.needed());
    assert!(error.to_string().starts_with(&text), "{error}");
    assert_eq!(engine.host_memory(), first.host_memory() + second.host_memory());
    run(&engine, &second);
    // A module stays as long as its instances.
    let mut store = Store::new(&engine, ());
    Instance::new(&mut store, &first, &[]).expect("no imports");
    drop(first);
    assert!(load(2).is_err());
    drop(store);
    run(&engine, &load(2).expect("there is room again"));
    drop(second);
    assert_eq!(engine.host_memory(), 0);
}

/// What is made of a module after it is loaded.
#[test]
fn what_has_no_room_later_is_left_out() {
    let unlimited = common::default_engine();
    let module = Module::new(&unlimited, SEVEN).expect("it is valid");
    let size = module.host_memory();
    Instance::new(&mut Store::new(&unlimited, ()), &module, &[]).expect("no imports");
    let with_stubs = module.host_memory();
    let is_native = common::is_built(Tier::Native);
    assert_eq!(with_stubs > size, is_native);
    // Room for nothing else, for the stubs but not for the tables of code, and for those.
    for (max, has_stubs, has_code) in [(size, false, false), (with_stubs, true, false), (with_stubs + (64 << 10), true, true)] {
        let mut config = Config::new();
        config.synchronous_compilation(true).tier_up_threshold(Some(1)).max_module_memory(max);
        let engine = common::engine(&config).expect("valid settings");
        let module = Module::new(&engine, SEVEN).expect("there is room");
        (0..3).for_each(|_| run(&engine, &module));
        let stats = module.stats();
        let compiled = stats.functions.native + stats.functions.baseline;
        assert_eq!((compiled > 0, stats.no_native_code.is_none()), (is_native && has_code, !is_native || has_stubs), "{stats:?}");
        if is_native && !has_code {
            let refused = stats.functions.fallbacks.iter().find(|refusal| refusal.by == RefusedBy::CodeMemory);
            let reason = stats.no_native_code.as_ref().or(refused.map(|refusal| &refusal.reason));
            assert!(reason.expect("it is reported").contains("Config::max_module_memory"), "{reason:?}");
        }
        drop(module);
        assert_eq!(engine.host_memory(), 0);
    }
}

/// Functions that are validated when they are called.
#[test]
fn a_function_without_room_for_its_tables_fails() {
    let text = format!(
        r#"(module
            (func (export "large") (param i32) (block (br_table {} (local.get 0))))
            (func (export "run") (result i32) i32.const 7))"#,
        "0 ".repeat(20_000)
    );
    let mut config = Config::new();
    config.lazy_validation(true);
    let size = Module::new(&common::engine(&config).expect("valid settings"), &text).expect("it is valid").host_memory();
    for (room, has_room) in [(100 << 10, false), (2 << 20, true)] {
        let engine = common::engine(config.clone().max_module_memory(size + room)).expect("valid settings");
        let module = Module::new(&engine, &text).expect("nothing is validated yet");
        let call = || {
            let mut store = Store::new(&engine, ());
            let instance = Instance::new(&mut store, &module, &[]).expect("no imports");
            instance.get_typed_func::<i32, ()>(&mut store, "large").expect("it is exported").call(&mut store, 0)
        };
        for _ in 0..2 {
            run(&engine, &module);
            let result = call();
            assert_eq!(result.is_ok(), has_room, "{result:?}");
            if let Err(error) = result {
                let error = error.downcast::<ModuleMemoryExceeded>().expect("the function's tables");
                assert_eq!(error.setting(), "Config::max_module_memory");
            }
        }
        drop(module);
        assert_eq!(engine.host_memory(), 0);
    }
}

/// Names are read when they are first asked for.
#[test]
fn names_are_left_out_without_room() {
    let functions = (0..1000).map(|i| format!("(func $name{i} unreachable)")).collect::<String>();
    let text = format!(r#"(module {functions} (export "f" (func 999)))"#);
    let size = Module::new(&common::default_engine(), &text).expect("it is valid").host_memory();
    for (room, is_there) in [(20 << 10, false), (60 << 10, true)] {
        let engine = common::engine(Config::new().max_module_memory(size + room)).expect("valid settings");
        let module = Module::new(&engine, &text).expect("there is room");
        assert_eq!(module.bytecode().func_name(7).is_some(), is_there);
    }
}
