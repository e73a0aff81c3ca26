//! What happens when modules take more of the host's memory than is allowed.

use crate::common;
use std::fmt::Write;
use weir::{Config, Engine, Instance, InvalidModule, Module, ModuleMemoryExceeded, RefusedBy, Store, Tier, WasmBacktraceDetails};

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
    // A section that is longer than the module is malformed, and not too large.
    let garbage = Module::validate(&engine, &[b"\0asm\x01\0\0\0\x01".to_vec(), vec![0xFF; 4], vec![0x0F]].concat());
    assert!(garbage.expect_err("it is malformed").is::<InvalidModule>());
    assert_eq!(engine.host_memory(), 0);
    run(&engine, &Module::new(&engine, SEVEN).expect("a small one"));
    // Of a module that is only validated.
    let wasm = wat::parse_str(format!("(module {})", "(func)".repeat(10_000))).expect("well formed");
    assert!(Module::validate(&engine, &wasm).expect_err("it takes more").to_string().contains("Config::max_module_memory"));
    // The default is in proportion to the size.
    let many = Module::new(&unlimited, format!("(module {})", "(func)".repeat(250_000))).expect("a megabyte");
    assert!((64 << 20..128 << 20).contains(&many.host_memory()), "{}", many.host_memory());
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
    // What native code of a module needs is charged when it is loaded.
    assert_eq!(module.host_memory(), size);
    let is_native = common::is_built(Tier::Native);
    // Room for nothing else, and for the tables of code.
    for (max, has_code) in [(size, false), (size + (64 << 10), true)] {
        let mut config = Config::new();
        config.synchronous_compilation(true).tier_up_threshold(Some(1)).max_module_memory(max);
        let engine = common::engine(&config).expect("valid settings");
        let module = Module::new(&engine, SEVEN).expect("there is room");
        (0..3).for_each(|_| run(&engine, &module));
        let stats = module.stats();
        let compiled = stats.functions.native + stats.functions.baseline;
        assert_eq!((compiled > 0, &stats.no_native_code), (is_native && has_code, &None), "{stats:?}");
        if is_native && !has_code {
            let refused = stats.functions.fallbacks.iter().find(|refusal| refusal.by == RefusedBy::CodeMemory);
            assert!(refused.expect("it is reported").reason.contains("Config::max_module_memory"), "{refused:?}");
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
        // Whatever else needs the function says the same.
        #[cfg(feature = "jit")]
        if !has_room {
            assert!(module.explore(0, None).expect_err("it has no tables").is::<ModuleMemoryExceeded>());
            let error = module.serialize().expect_err("it has no tables");
            assert!(error.is::<ModuleMemoryExceeded>() || error.is::<weir::Unavailable>(), "{error:?}");
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

/// A function that has no room is called again when another module is gone.
#[test]
fn a_function_has_room_when_another_module_is_gone() {
    let text = format!(
        r#"(module (func (export "large") (param i32) (block (br_table {} (local.get 0)))) {})"#,
        "0 ".repeat(20_000),
        &SEVEN["(module".len()..SEVEN.len() - 1]
    );
    let mut config = Config::new();
    config.lazy_validation(true);
    let lazy = common::engine(&config).expect("valid settings");
    let size = Module::new(&lazy, &text).expect("it is valid").host_memory();
    let other = Module::new(&lazy, types(0)).expect("it is valid").host_memory();
    assert!(other > 200 << 10);
    let engine = common::engine(config.max_engine_memory(size + other + (250 << 10))).expect("valid settings");
    let module = Module::new(&engine, &text).expect("nothing is validated yet");
    let other = Module::new(&engine, types(0)).expect("there is room");
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).expect("no imports");
    let large = instance.get_typed_func::<i32, ()>(&mut store, "large").expect("it is exported");
    for _ in 0..2 {
        let error = large.call(&mut store, 0).expect_err("there is no room");
        assert_eq!(error.downcast_ref::<ModuleMemoryExceeded>().expect("that is why").setting(), "Config::max_engine_memory");
    }
    drop(other);
    large.call(&mut store, 0).expect("there is room");
}

/// Debugging information that cannot be read leaves nothing charged.
#[test]
fn source_lines_that_cannot_be_read_are_not_charged() {
    let garbage = "\\ff".repeat(10_000);
    let text = format!(
        r#"(module (@custom ".debug_info" "{garbage}") (@custom ".debug_line" "{garbage}") (func (export "f") unreachable))"#
    );
    let engine = common::engine(Config::new().wasm_backtrace_details(WasmBacktraceDetails::Enable)).expect("valid settings");
    let module = Module::new(&engine, text).expect("it is valid");
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).expect("no imports");
    let before = module.host_memory();
    let f = instance.get_typed_func::<(), ()>(&mut store, "f").expect("it is exported");
    let error = f.call(&mut store, ()).expect_err("it traps");
    assert!(!format!("{error:?}").is_empty());
    assert!(module.host_memory() < before + 10_000, "{before}, {}", module.host_memory());
}

/// A module with many functions and much code, of which a loop makes all run natively.
#[cfg(all(target_os = "linux", target_arch = "x86_64", feature = "jit"))]
mod stored {
    use super::*;
    use std::path::Path;
    use weir::{Cache, CacheConfig};

    fn cache(name: &str) -> Cache {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&directory);
        Cache::new(CacheConfig::new().with_directory(directory).clone()).expect("valid settings")
    }

    fn config(cache: &Cache) -> Config {
        let mut config = Config::new();
        config.cache(Some(cache.clone())).synchronous_compilation(true);
        config
    }

    fn run(engine: &Engine, module: &Module, name: &str, calls: usize) {
        let mut store = Store::new(engine, ());
        let instance = Instance::new(&mut store, module, &[]).expect("no imports");
        let run = instance.get_typed_func::<i32, i32>(&mut store, name).expect("it is exported");
        (0..calls).for_each(|_| assert_eq!(run.call(&mut store, 0).expect("no trap"), 7));
    }

    /// The native code of an entry is larger than all else that the module takes.
    #[test]
    fn a_module_that_can_be_loaded_can_be_loaded_from_the_cache() {
        let body = "(local.set 0 (i32.mul (local.get 0) (i32.add (local.get 0) (i32.const 3))))".repeat(60);
        let functions = (0..200).map(|i| format!(r#"(func (export "f{i}") (param i32) (result i32) {body} i32.const 7)"#));
        let text = format!("(module {})", functions.collect::<String>());
        let cache = cache("memory-of-entries");
        let load = |max: Option<usize>| -> weir::Result<_> {
            let mut config = config(&cache);
            config.tier_up_threshold(Some(1));
            max.map(|max| config.max_module_memory(max));
            let engine = common::engine(&config).expect("valid settings");
            let module = Module::new(&engine, &text)?;
            let size = module.host_memory();
            (0..200).for_each(|i| run(&engine, &module, &format!("f{i}"), 2));
            Ok((size, module.stats().stored))
        };
        let (size, _) = load(None).expect("it is valid");
        let (hit, stored) = load(None).expect("it is valid");
        assert_eq!(stored.cache.as_deref(), Some("hit"));
        for max in [size + size / 8, hit + hit / 8] {
            let (_, stored) = load(Some(max)).expect("it can be loaded");
            assert!(stored.cache.is_some_and(|found| found == "hit" || found.contains("more memory")));
        }
    }

    /// Counters of many branches take more than the tables of their code.
    #[test]
    fn stored_code_without_room_for_its_counters_is_compiled_without_them() {
        let body = "(br_if 0 (i32.eqz (local.get 1)))".repeat(1000);
        let text = format!(
            r#"(module (func (export "f") (param i32) (result i32) (local i32)
                (block (loop (br_if 1 (i32.gt_u (local.get 1) (i32.const 3000)))
                    (local.set 1 (i32.add (local.get 1) (i32.const 1))) {body} (br 0))) i32.const 7))"#
        );
        let cache = cache("memory-of-counters");
        let max = 4 << 20;
        let load = |left: Option<usize>| {
            let engine = common::engine(config(&cache).max_engine_memory(max)).expect("valid settings");
            let module = Module::new(&engine, &text).expect("it is valid");
            // Another module leaves this much room.
            let other = left.map(|left| {
                let len = max - engine.host_memory() - left;
                let mut bytes = b"\0asm\x01\0\0\0\0".to_vec();
                let contents = len - bytes.len() - 4;
                bytes.extend([0, 7, 14, 21].map(|shift| (contents >> shift & 0x7F) as u8 | if shift < 21 { 0x80 } else { 0 }));
                bytes.resize(bytes.len() + contents, 0);
                Module::from_binary(&engine, &bytes).expect("there is room")
            });
            run(&engine, &module, "f", 30);
            drop(other);
            module.stats()
        };
        let stats = load(None);
        assert_eq!((stats.functions.baseline, stats.functions.native), (1, 0), "{stats:?}");
        let stats = load(None);
        assert_eq!((stats.stored.baseline, stats.functions.baseline), (1, 0), "{stats:?}");
        // Its side tables are charged anyway, and leave room for the code without counters or not.
        let few = (16..32).map(|kilobytes| load(Some(kilobytes << 10))).collect::<Vec<_>>();
        assert!(few.iter().all(|stats| stats.stored.cache.as_deref() == Some("hit") && stats.stored.damaged == 0), "{few:?}");
        let compiled = |stats: &weir::Stats| (stats.stored.baseline, stats.functions.baseline) == (0, 1);
        assert!(few.iter().any(compiled), "{few:?}");
    }
}
