//! Calls between interpreted and native code: values in every place, memory that a callee grows, frames, traps, fuel and stacks.
//!
//! Each test calls through a chain of functions, every other one of which is interpreted, and compares with a run in which all are.

use std::fmt::Write;
use weir::{Caller, Config, Engine, Error, Linker, Module, Store, Tier, Trap, Val, WasmBacktrace};
use weir_tests::engines::engine;

const TIERS: [Tier; 3] = [Tier::Native, Tier::Cranelift, Tier::Baseline];
const CHAINS: [&[&str]; 2] = [&["f0", "f2", "f4"], &["f1", "f3", "f5"]];

/// The engines of a test: all functions interpreted, with and without assembly, and for each tier every other one.
fn engines(change: impl Fn(&mut Config)) -> Vec<(String, Engine)> {
    let made = |name: String, configure: &dyn Fn(&mut Config)| {
        let mut config = Config::new();
        configure(&mut config);
        change(&mut config);
        (name, engine(&config).expect("the configuration is supported"))
    };
    let mut engines = vec![
        made("portable".into(), &|config| {
            config.tier(Tier::Interpreter).portable_interpreter(true);
        }),
        made("assembly".into(), &|config| {
            config.tier(Tier::Interpreter);
        }),
    ];
    for tier in TIERS {
        for interpreted in CHAINS {
            engines.push(made(format!("{tier:?}, except {interpreted:?}"), &|config| {
                config.tier(tier).interpret_calls(interpreted);
            }));
        }
    }
    engines
}

/// A module whose exported function `f0` calls `f1`, that `f2`, and so on to `f3`. They have the same signature, of `i64` and `f64`
/// values. Bit n of `wide` says whether fn has a local for a vector.
fn chain(params: [usize; 2], results: [usize; 2], wide: u32) -> String {
    let list =
        |what: &str, [ints, floats]: [usize; 2]| format!("({what}{}) ({what}{})", " i64".repeat(ints), " f64".repeat(floats));
    let signature = format!("{} {}", list("param", params), list("result", results));
    let (params, results) = (params.map(|count| count as u32), results.map(|count| count as u32));
    let first_local = params[0] + params[1];
    let mut text = String::from("(module (global $sum (export \"sum\") (mut i64) (i64.const 0))\n");
    for level in 0..4u32 {
        let export = if level == 0 { "(export \"f0\")" } else { "" };
        let _ = write!(text, "(func $f{level} {export} {signature}");
        let _ = write!(text, " (local{}) (local{})", " i64".repeat(results[0] as usize), " f64".repeat(results[1] as usize));
        let last = first_local + results[0] + results[1];
        let _ = writeln!(text, " (local i64) {}", if wide >> level & 1 == 1 { "(local v128)" } else { "" });
        // The last local is 0.
        let _ = writeln!(text, "(global.set $sum (i64.add (global.get $sum) (i64.add (i64.const {level}) (local.get {last}))))");
        if level < 3 {
            // A value below the call.
            text.push_str("(i64.const 1000)");
            for i in 0..first_local {
                let _ = match i < params[0] {
                    true => write!(text, "(i64.add (local.get {i}) (i64.const {}))", 3 * i + level),
                    false => write!(text, "(f64.add (local.get {i}) (f64.const {}.5))", 5 * i + level),
                };
            }
            let _ = write!(text, "(call $f{})", level + 1);
            for i in (0..results[0] + results[1]).rev() {
                let _ = write!(text, "(local.set {})", first_local + i);
            }
            text.push_str("(global.set $sum (i64.add (global.get $sum)))\n");
        }
        for i in 0..results[0] + results[1] {
            let is_int = i < results[0];
            let of_params = match (level, is_int) {
                (3, true) if params[0] > 0 => Some(i % params[0]),
                (3, false) if params[1] > 0 => Some(params[0] + i % params[1]),
                _ => None,
            };
            let source = of_params.unwrap_or(first_local + i);
            let _ = match is_int {
                true => write!(text, "(i64.add (local.get {source}) (i64.const {}))", 7 * i + level),
                false => write!(text, "(f64.add (local.get {source}) (f64.const {}.25))", 11 * i + level),
            };
        }
        text.push_str(")\n");
    }
    text + ")"
}

#[test]
fn values_cross_in_every_place() {
    let shapes: [([usize; 2], [usize; 2]); 11] = [
        ([0, 0], [0, 0]),
        ([1, 0], [1, 0]),
        ([0, 1], [0, 1]),
        ([1, 0], [0, 0]),
        ([0, 0], [0, 1]),
        ([3, 2], [2, 3]),
        ([6, 8], [8, 8]),
        ([7, 8], [9, 8]),
        ([6, 9], [8, 9]),
        ([9, 12], [12, 11]),
        ([40, 30], [25, 35]),
    ];
    let engines = engines(|_| ());
    for (params, results) in shapes {
        for wide in [0, 0b0101, 0b1010, 0b1111] {
            let text = chain(params, results, wide);
            let mut expected = None;
            for (name, engine) in &engines {
                let module = Module::new(engine, &text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
                let mut store = Store::new(engine, ());
                store.set_epoch_deadline(u64::MAX);
                let instance = Linker::new(engine).instantiate(&mut store, &module).unwrap();
                let f0 = instance.get_func(&mut store, "f0").unwrap();
                let args: Vec<Val> = (0..params[0])
                    .map(|i| Val::I64(i as i64 * 0x1_0000_0001))
                    .chain((0..params[1]).map(|i| Val::F64((i as f64 + 0.75).to_bits())))
                    .collect();
                let mut values = vec![Val::I64(0); results[0] + results[1]];
                for _ in 0..3 {
                    f0.call(&mut store, &args, &mut values).unwrap();
                }
                let sum = instance.get_global(&mut store, "sum").unwrap().get(&mut store);
                let found = format!("{values:?} {sum:?}");
                assert_eq!(expected.get_or_insert_with(|| found.clone()), &found, "{params:?} -> {results:?}, {wide:#b}: {name}");
                let functions = module.stats().functions;
                let interpreted = if name.contains("except") { 2 } else { 4 };
                assert_eq!(functions.interpreted, interpreted, "{name}");
            }
        }
    }
}

#[test]
fn memory_that_a_callee_grows_is_seen() {
    for memory in ["i32", "i64"] {
        let text = format!(
            r#"(module
                (memory {} 1 8)
                (func $f2 (param {memory}) (result {memory})
                    (drop (memory.grow (local.get 0)))
                    ({memory}.const 0))
                (func $f1 (param $at {memory}) (result i64)
                    (drop (call $f2 ({memory}.const 1)))
                    (i64.store (local.get $at) (i64.const 77))
                    (i64.add (i64.load offset=8 (local.get $at)) (i64.load (local.get $at))))
                (func $f0 (export "f0") (param $at {memory}) (result i64)
                    (local $sum i64)
                    (drop (call $f2 ({memory}.const 1)))
                    (i64.store offset=65536 (local.get $at) (i64.const 5))
                    (local.set $sum (i64.add (i64.load offset=65536 (local.get $at)) (call $f1 ({memory}.add (local.get $at) ({memory}.const 131072)))))
                    (i64.store offset=131080 (local.get $at) (i64.const 1100))
                    (i64.store offset=2097152 ({memory}.const 0) (i64.const 0))
                    (local.get $sum)))"#,
            if memory == "i64" { memory } else { "" }
        );
        let mut expected = None;
        for (name, engine) in engines(|_| ()) {
            let module = Module::new(&engine, &text).unwrap();
            let mut store = Store::new(&engine, ());
            store.set_epoch_deadline(u64::MAX);
            let instance = Linker::new(&engine).instantiate(&mut store, &module).unwrap();
            let f0 = instance.get_func(&mut store, "f0").unwrap();
            let mut results = [Val::I64(0)];
            let at = if memory == "i64" { Val::I64(16) } else { Val::I32(16) };
            let error = f0.call(&mut store, &[at], &mut results).unwrap_err();
            let found = (error.downcast_ref::<Trap>().copied(), frames(error.downcast_ref().unwrap()));
            assert_eq!(found.0, Some(Trap::MemoryOutOfBounds), "{name}");
            assert_eq!(expected.get_or_insert_with(|| found.clone()), &found, "{name}");
        }
    }
}

/// The functions and offsets of a backtrace.
fn frames(backtrace: &WasmBacktrace) -> Vec<(u32, Option<usize>)> {
    backtrace.frames().iter().map(|frame| (frame.func_index(), frame.module_offset())).collect()
}

/// Calls that end as the global `how` says: 0 returns, 1 traps, 2 traps out of bounds, 3 fails in the host, 4 recurses without end, 5
/// recurses through tail calls. `f0` to `f5` call each other in turn; `f3` has more locals and `f4` is wide.
const TOWER: &str = r#"(module
    (import "host" "look" (func $look (param i32) (result i32)))
    (memory 1)
    (global $how (export "how") (mut i32) (i32.const 0))
    (func $f0 (export "f0") (param i32) (result i32) (i32.add (call $f1 (local.get 0)) (i32.const 1)))
    (func $f1 (param i32) (result i32) (i32.add (call $f2 (local.get 0)) (i32.const 1)))
    (func $f2 (param i32) (result i32) (i32.add (call $f3 (local.get 0)) (i32.const 1)))
    (func $f3 (param i32) (result i32) (local i64 i32 i32)
        (local.set 2 (call $f4 (local.get 0)))
        (i32.add (i32.add (local.get 2) (local.get 3)) (call $look (i32.const 1))))
    (func $f4 (param i32) (result i32) (local v128) (i32.add (call $f5 (local.get 0)) (i32.const 1)))
    (func $f5 (param i32) (result i32)
        (if (local.get 0) (then (return (i32.add (call $f0 (i32.sub (local.get 0) (i32.const 1))) (i32.const 1)))))
        (block $tail (block $recurse (block $host (block $memory (block $trap (block $fine
            (br_table $fine $trap $memory $host $recurse $tail (global.get $how)))
            (return (call $look (i32.const 1))))
            (unreachable))
            (return (i32.load (i32.const 65533))))
            (return (call $look (i32.const -1))))
            (return (call $f0 (i32.const 0))))
        (call $f1t (i32.const 0)))
    (func $f1t (param i32) (result i32) (return_call $f5 (local.get 0))))"#;

/// Calls `f0` of a tower. Returns its result or error, with the frames of all backtraces.
fn climb(store: &mut Store<Vec<String>>, linker: &Linker<Vec<String>>, module: &Module, how: i32, depth: i32) -> String {
    let instance = linker.instantiate(&mut *store, module).unwrap();
    instance.get_global(&mut *store, "how").unwrap().set(&mut *store, how.into()).unwrap();
    let f0 = instance.get_typed_func::<i32, i32>(&mut *store, "f0").unwrap();
    let mut found = String::new();
    for _ in 0..3 {
        let _ = match f0.call(&mut *store, depth) {
            Ok(result) => write!(found, "{result} "),
            Err(error) => {
                let backtrace = error.downcast_ref::<WasmBacktrace>().map(frames).unwrap_or_default();
                // How deep the stacks are depends on the engine.
                let backtrace = if how < 4 { backtrace } else { backtrace.into_iter().take(1).collect() };
                let text = error.downcast_ref::<Trap>().map_or_else(|| "the host fails".into(), ToString::to_string);
                write!(found, "{text} {backtrace:?} ")
            }
        };
        if how < 4 {
            found.extend(store.data_mut().drain(..));
        }
        store.data_mut().clear();
    }
    found
}

fn tower(engine: &Engine) -> (Linker<Vec<String>>, Module) {
    let mut linker = Linker::new(engine);
    let look = |mut caller: Caller<'_, Vec<String>>, n: i32| -> Result<i32, Error> {
        let seen = format!("{:?} ", frames(&WasmBacktrace::capture(&caller)));
        caller.data_mut().push(seen);
        if n < 0 { Err(Error::msg("the host fails")) } else { Ok(n) }
    };
    linker.func_wrap("host", "look", look).unwrap();
    (linker, Module::new(engine, TOWER).unwrap())
}

#[test]
fn frames_traps_and_errors_are_those_of_the_interpreter() {
    let variants: [&dyn Fn(&mut Config); 5] = [
        &|_| (),
        &|config| {
            config.signals_based_traps(false);
        },
        &|config| {
            config.epoch_interruption(true);
        },
        &|config| {
            config.deterministic(true);
        },
        &|config| {
            config.count_crossings(true);
        },
    ];
    for (variant, change) in variants.into_iter().enumerate() {
        let engines = engines(change);
        for how in 0..4 {
            for depth in [0, 1, 4] {
                let mut expected = None;
                for (name, engine) in &engines {
                    let (linker, module) = tower(engine);
                    let mut store = Store::new(engine, Vec::new());
                    store.set_epoch_deadline(u64::MAX);
                    if variant == 2 {
                        store.set_epoch_deadline(1);
                    }
                    let found = climb(&mut store, &linker, &module, how, depth);
                    assert_eq!(expected.get_or_insert_with(|| found.clone()), &found, "{name}, {how} at {depth}, {variant}");
                }
            }
        }
    }
}

#[test]
fn recursion_through_crossings_overflows_a_stack() {
    for (name, engine) in engines(|_| ()) {
        for how in [4, 5] {
            let (linker, module) = tower(&engine);
            let mut store = Store::new(&engine, Vec::new());
            store.set_epoch_deadline(u64::MAX);
            let found = climb(&mut store, &linker, &module, how, 0);
            let overflow = Trap::StackOverflow.to_string();
            assert_eq!(found.matches(&overflow).count(), 3, "{name}, {how}: {found}");
            assert!(climb(&mut store, &linker, &module, 0, 3).ends_with("] "), "{name}");
        }
    }
}

#[test]
fn fuel_runs_out_at_the_same_place() {
    let engines = engines(|config| {
        config.consume_fuel(true);
    });
    let run = |engine: &Engine, fuel: u64| {
        let (linker, module) = tower(engine);
        let mut store = Store::new(engine, Vec::new());
        store.set_epoch_deadline(u64::MAX);
        store.set_fuel(fuel).unwrap();
        let found = climb(&mut store, &linker, &module, 0, 1);
        (found, store.get_fuel().unwrap())
    };
    let (_, left) = run(&engines[0].1, 10_000);
    for fuel in (0..10_000 - left + 5).step_by(3) {
        let expected = run(&engines[0].1, fuel);
        for (name, engine) in &engines[1..] {
            assert_eq!(run(engine, fuel), expected, "{name} with {fuel}");
        }
    }
}

/// Frames with handlers around frames of every engine, and around frames that throw. `f2` calls again after it has caught, and `f5` traps
/// where bit 2 of the argument is set. `f4` and `run` keep values in registers that calls preserve.
const THROWING: &str = r#"(module
    (tag $e (param i64))
    (func $f0 (export "f0") (param i32) (result i64)
        (block $caught (result i64)
            (try_table (catch $e $caught) (return (call $f1 (local.get 0))))
            (unreachable)))
    (func $f1 (param i32) (result i64) (i64.add (call $f2 (local.get 0)) (i64.const 10)))
    (func $f2 (param i32) (result i64)
        (block $caught (result i64)
            (try_table (catch $e $caught)
                (return (i64.add (call $f3 (local.get 0)) (i64.const 100))))
            (unreachable))
        (i64.add (call $f3 (i32.const 0)))
        (if (i32.and (local.get 0) (i32.const 1)) (then (throw $e (i64.const 7))))
        (i64.add (i64.const 1000)))
    (func $f3 (param i32) (result i64) (i64.add (call $f4 (local.get 0)) (i64.const 1)))
    (func $f4 (param i32) (result i64) (local i32 i64)
        (loop $again
            (local.set 2 (i64.add (local.get 2) (i64.const 2)))
            (br_if $again (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 1))) (i32.const 3))))
        (i64.add (call $f5 (local.get 0)) (local.get 2)))
    (func $f5 (param i32) (result i64)
        (if (i32.and (local.get 0) (i32.const 2)) (then (throw $e (i64.const 5))))
        (if (i32.and (local.get 0) (i32.const 4)) (then (unreachable)))
        (i64.extend_i32_u (local.get 0)))
    (func (export "run") (param i32) (result i64) (local i32 i64)
        (loop $again
            (local.set 2 (i64.add (i64.mul (local.get 2) (i64.const 3)) (call $f0 (local.get 0))))
            (br_if $again (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 1))) (i32.const 20))))
        (i64.xor (local.get 2) (i64.extend_i32_u (local.get 1)))))"#;

#[test]
fn exceptions_land_in_the_frames_of_every_engine() {
    let variants: [&dyn Fn(&mut Config); 5] = [
        &|_| (),
        &|config| {
            config.signals_based_traps(false);
        },
        &|config| {
            config.consume_fuel(true);
        },
        &|config| {
            config.count_crossings(true);
        },
        // Frames of optimised and of baseline code between each other.
        &|config| {
            config.baseline_calls(&["f0", "f2", "f5"]);
        },
    ];
    for (variant, change) in variants.into_iter().enumerate() {
        let mut expected = None;
        let engines = engines(change);
        for (name, engine) in engines {
            let module = Module::new(&engine, THROWING).unwrap();
            let mut store = Store::new(&engine, ());
            store.set_epoch_deadline(u64::MAX);
            if variant == 2 {
                store.set_fuel(1_000_000).unwrap();
            }
            let instance = Linker::new(&engine).instantiate(&mut store, &module).unwrap();
            let mut found = Vec::new();
            for arg in (0..8).chain(0..8) {
                for function in ["f0", "run"] {
                    let function = instance.get_typed_func::<i32, i64>(&mut store, function).unwrap();
                    let result = function.call(&mut store, arg);
                    found.push(result.map_err(|error| error.downcast_ref::<Trap>().copied()));
                }
            }
            let found = (found, store.get_fuel().ok());
            assert_eq!(expected.get_or_insert_with(|| found.clone()), &found, "{name}, {variant}");
        }
    }
}

/// `f0` to `f3` call each other in turn, at last `f4`, which throws. Every third frame catches and throws the exception again.
const DEEP: &str = r#"(module (tag $e (param i64))
    (func $f0 (export "f0") (param i32) (result i64)
        (if (i32.le_s (local.get 0) (i32.const 0)) (then (return (call $f4 (i64.const 7)))))
        (i64.add (call $f1 (i32.sub (local.get 0) (i32.const 1))) (i64.const 1)))
    (func $f1 (param i32) (result i64) (local exnref)
        (block $h (result exnref)
            (try_table (catch_all_ref $h)
                (return (i64.add (call $f2 (i32.sub (local.get 0) (i32.const 1))) (i64.const 2))))
            (unreachable))
        (throw_ref))
    (func $f2 (param i32) (result i64)
        (i64.mul (call $f3 (i32.sub (local.get 0) (i32.const 1))) (i64.const 3)))
    (func $f3 (param i32) (result i64)
        (i64.sub (call $f0 (i32.sub (local.get 0) (i32.const 1))) (i64.const 1)))
    (func $f4 (param i64) (result i64) (throw $e (local.get 0)))
    (func (export "run") (param i32) (result i64) (local i64)
        (local.set 1 (i64.extend_i32_u (local.get 0)))
        (i64.add (local.get 1)
            (block $h (result i64) (try_table (result i64) (catch $e $h) (call $f0 (local.get 0)))))))"#;

#[test]
fn an_exception_passes_a_hundred_thousand_frames() {
    // Frames of the interpreter's loop in Rust are large.
    let thread = std::thread::Builder::new().stack_size(600 << 20);
    thread.spawn(throw_through_many_frames).unwrap().join().unwrap();
}

fn throw_through_many_frames() {
    const FRAMES: i32 = 100_000;
    for baseline in [&[][..], &["f0", "f3"]] {
        let engines = engines(|config| {
            config.max_wasm_stack(500 << 20).value_stack_size(64 << 20).baseline_calls(baseline);
        });
        for (name, engine) in engines.into_iter().filter(|(name, _)| baseline.is_empty() || name.starts_with("Native")) {
            let module = Module::new(&engine, DEEP).unwrap();
            let mut store = Store::new(&engine, ());
            store.set_epoch_deadline(u64::MAX);
            let instance = Linker::new(&engine).instantiate(&mut store, &module).unwrap();
            let run = instance.get_typed_func::<i32, i64>(&mut store, "run").unwrap();
            assert_eq!(run.call(&mut store, FRAMES).unwrap(), i64::from(FRAMES) + 7, "{name}");
        }
    }
}
