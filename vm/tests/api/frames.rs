//! The stack walker, called from where embedders may call it: in host functions, also nested ones, and in callbacks at
//! the deadline; and the backtraces of traps and of errors of resource limiters, whose callbacks have no store to walk.
//! Each test runs in every tier and expects the same frames.

use crate::common;
use weir::{
    Caller, Config, Engine, Error, Instance, Linker, Module, ResourceLimiter, Result, Store, Tier, TierEvent, Trap, TypedFunc,
    UpdateDeadline, WasmBacktrace,
};

/// Every way of running, all of which compile synchronously.
fn configs() -> Vec<Config> {
    let tiers = [Tier::Interpreter, Tier::Baseline, Tier::Native, Tier::Cranelift, Tier::Ssa, Tier::Auto];
    let mut configs: Vec<Config> = Vec::new();
    for tier in tiers {
        let mut config = Config::new();
        config.tier(tier).synchronous_compilation(true).epoch_interruption(true);
        if tier == Tier::Auto {
            config.tier_up_threshold(Some(2));
        }
        if common::engine(&config).is_ok() {
            configs.push(config);
        }
    }
    for seed in 1..4 {
        let mut config = Config::new();
        config.stress(Some(seed)).synchronous_compilation(true).epoch_interruption(true);
        configs.push(config);
    }
    configs
}

/// The functions of a backtrace, innermost first.
fn functions(trace: &WasmBacktrace) -> Vec<u32> {
    assert_eq!(trace.omitted(), 0);
    trace.frames().iter().map(|frame| frame.func_index()).collect()
}

/// Functions whose slots have one word and two words, called directly and through a table, in loops and by tail calls.
const GUEST: &str = r#"(module
    (import "host" "see" (func $see (param i32)))
    (import "host" "again" (func $again (param i32)))
    (table funcref (elem $direct $wide))
    (type $f (func (param i32)))
    (func $direct (param i32) (call $see (local.get 0)))
    (func $wide (param i32) (local v128) (call $direct (local.get 0)) (call $see (local.get 0)))
    (func $tail (param i32) (return_call $wide (local.get 0)))
    (func $loop (param i32) (local i32)
        (loop $l
            (call_indirect (type $f) (local.get 0) (i32.and (local.get 1) (i32.const 1)))
            (br_if $l (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 1))) (i32.const 4)))))
    (func $main (export "main") (param i32)
        (call $loop (local.get 0))
        (call $tail (local.get 0))
        (call $again (local.get 0)))
    (func $trap (export "trap") (param i32) (call $deep (local.get 0)))
    (func $deep (param i32) (call $see (local.get 0)) unreachable)
    (func $spin (export "spin") (call $forever))
    (func $forever (loop $l (br $l))))"#;

const SEEN: [&[u32]; 11] = [
    &[2, 5, 6],
    &[2, 3, 5, 6],
    &[3, 5, 6],
    &[2, 5, 6],
    &[2, 3, 5, 6],
    &[3, 5, 6],
    &[2, 3, 6],
    &[3, 6],
    // The guest under the host function that `main` calls, which traps.
    &[8, 7, 6],
    &[8, 7],
    &[],
];

type Seen = Vec<Vec<u32>>;

fn guest(engine: &Engine) -> (Store<Seen>, Instance) {
    let module = Module::new(engine, GUEST).unwrap();
    let mut linker: Linker<Seen> = Linker::new(engine);
    linker
        .func_wrap("host", "see", |mut caller: Caller<'_, Seen>, _: i32| {
            let trace = functions(&WasmBacktrace::capture(&caller));
            caller.data_mut().push(trace);
        })
        .unwrap();
    linker
        .func_wrap("host", "again", |mut caller: Caller<'_, Seen>, x: i32| -> Result<(), Error> {
            let trap = caller.get_export("trap").unwrap().into_func().unwrap().typed::<i32, ()>(&caller)?;
            let error = trap.call(&mut caller, x).unwrap_err();
            // The trap's backtrace continues beyond this function.
            assert_eq!(functions(error.wasm_backtrace().unwrap()), [8, 7, 6]);
            let here = functions(&WasmBacktrace::capture(&caller));
            assert_eq!(here, [6]);
            Err(error)
        })
        .unwrap();
    let mut store = Store::new(engine, Vec::new());
    store.set_epoch_deadline(u64::MAX / 2);
    let instance = linker.instantiate(&mut store, &module).unwrap();
    (store, instance)
}

#[test]
fn host_functions_see_the_frames_of_every_tier() {
    for config in configs() {
        let (mut store, instance) = guest(&common::engine(&config).unwrap());
        let main: TypedFunc<i32, ()> = instance.get_typed_func(&mut store, "main").unwrap();
        for round in 0..30 {
            store.data_mut().clear();
            let error = main.call(&mut store, round).unwrap_err();
            assert_eq!(error.downcast_ref(), Some(&Trap::UnreachableCodeReached), "{config:?}");
            assert_eq!(functions(error.wasm_backtrace().unwrap()), [8, 7, 6], "each frame once: {config:?}");
            let trap: TypedFunc<i32, ()> = instance.get_typed_func(&mut store, "trap").unwrap();
            assert!(trap.call(&mut store, 0).is_err());
            let outside = functions(&WasmBacktrace::capture(&store));
            store.data_mut().push(outside);
            assert_eq!(store.data(), &SEEN, "round {round}, {config:?}");
        }
    }
}

#[test]
fn a_callback_at_the_deadline_sees_the_frames() {
    for config in configs() {
        let (mut store, instance) = guest(&common::engine(&config).unwrap());
        store.set_epoch_deadline(0);
        store.epoch_deadline_callback(|mut store| {
            let trace = functions(&WasmBacktrace::capture(&store));
            store.data_mut().push(trace);
            Ok(if store.data().len() == 3 { UpdateDeadline::Interrupt } else { UpdateDeadline::Continue(0) })
        });
        let spin: TypedFunc<(), ()> = instance.get_typed_func(&mut store, "spin").unwrap();
        let error = spin.call(&mut store, ()).unwrap_err();
        assert_eq!(error.downcast_ref(), Some(&Trap::Interrupt), "{config:?}");
        let last = store.data().last().unwrap().clone();
        assert_eq!(functions(error.wasm_backtrace().unwrap()), last, "{config:?}");
        let expected = |trace: &Vec<u32>| trace == &[9] || trace == &[10, 9];
        assert!(store.data().iter().all(expected), "{config:?}: {:?}", store.data());
    }
}

/// The functions of [`STOPS`], innermost first, when the execution of `main` stops.
const CHAIN: [u32; 5] = [1, 2, 3, 4, 5];

/// `main` calls `leaf` through functions of both widths, of which `warm` calls `hot`, `wide` and `leaf`, but neither `cold` nor `main`.
/// Its parameter says how `leaf` stops the execution: 0 for not at all.
const STOPS: &str = r#"(module
    (import "host" "deadline" (func $deadline))
    (type $f (func (param i32)))
    (type $g (func (param i64)))
    (memory 1 4)
    (table $targets funcref (elem $leaf $cold))
    (table $grown 1 4 funcref)
    (func $leaf (param i32)
        (block $deadline (block $wrong (block $null (block $nan (block $copy (block $load (block $divide (block $unreachable
        (block $table_fails (block $memory_fails (block $table (block $memory (block $return
            (br_table $return $memory $table $memory_fails $table_fails $unreachable $divide $load $copy $nan $null $wrong $deadline
                (local.get 0)))
        (return))
        (drop (memory.grow (i32.const 1))) (return))
        (drop (table.grow $grown (ref.null func) (i32.const 1))) (return))
        (drop (memory.grow (i32.const 9))) (return))
        (drop (table.grow $grown (ref.null func) (i32.const 9))) (return))
        (unreachable))
        (drop (i32.div_s (local.get 0) (i32.const 0))) (return))
        (drop (i32.load (i32.const 0x10000))) (return))
        (memory.copy (i32.const 0) (i32.const 0xFFFF) (i32.const 2)) (return))
        (drop (i32.trunc_f64_s (f64.const nan))) (return))
        (call_indirect $grown (type $f) (i32.const 0) (i32.const 0)) (return))
        (call_indirect $targets (type $g) (i64.const 0) (i32.const 0)) (return))
        (call $deadline)
        (loop $l (br $l)))
    (func $wide (param i32) (local v128)
        (local.set 1 (i32x4.splat (local.get 0)))
        (call $leaf (i32x4.extract_lane 1 (local.get 1))))
    (func $cold (param i32) (call $wide (local.get 0)))
    (func $hot (param i32)
        (call_indirect $targets (type $f) (local.get 0) (i32.ne (local.get 0) (i32.const 0))))
    (func $main (export "main") (param i32) (call $hot (local.get 0)))
    (func $warm (export "warm") (call $hot (i32.const 0)) (call $wide (i32.const 0))))"#;

/// The parameters of `main` at which a resource limiter ends the execution.
const LIMITS: std::ops::RangeInclusive<i32> = 1..=4;

/// The parameters of `main` at which it traps, and the trap.
const TRAPS: [(i32, Trap); 7] = [
    (5, Trap::UnreachableCodeReached),
    (6, Trap::IntegerDivisionByZero),
    (7, Trap::MemoryOutOfBounds),
    (8, Trap::MemoryOutOfBounds),
    (9, Trap::BadConversionToInteger),
    (10, Trap::IndirectCallToNull),
    (11, Trap::BadSignature),
];

/// The parameter of `main` at which it reaches the deadline.
const DEADLINE: i32 = 12;

/// Functions and the offsets of their instructions, innermost first.
type Places = Vec<(u32, usize)>;

fn places(trace: &WasmBacktrace) -> Places {
    assert_eq!(trace.omitted(), 0);
    trace.frames().iter().map(|frame| (frame.func_index(), frame.module_offset().unwrap())).collect()
}

/// The data of a store that refuses growth, after it has called a guest of another store.
struct Refusing {
    inner: Store<Seen>,
    main: TypedFunc<i32, ()>,
    /// The frames that callbacks at the deadline saw.
    at_deadline: Vec<Places>,
    refused: u32,
}

impl Refusing {
    fn refuse<R>(&mut self) -> Result<R> {
        self.inner.data_mut().clear();
        let error = self.main.call(&mut self.inner, 0).unwrap_err();
        assert_eq!(functions(error.wasm_backtrace().unwrap()), [8, 7, 6]);
        let outside = functions(&WasmBacktrace::capture(&self.inner));
        let (last, seen) = SEEN[..10].split_last().unwrap();
        assert_eq!(*last, [8, 7]);
        assert_eq!(self.inner.data(), seen, "no frame of the store that grows");
        assert_eq!(outside, []);
        self.refused += 1;
        Err(Error::msg("refused"))
    }
}

impl ResourceLimiter for Refusing {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        if current == 0 || maximum.is_some_and(|maximum| desired > maximum) { Ok(true) } else { self.refuse() }
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        if current == 0 || maximum.is_some_and(|maximum| desired > maximum) { Ok(true) } else { self.refuse() }
    }

    fn memory_grow_failed(&mut self, _: Error) -> Result<()> {
        self.refuse()
    }

    fn table_grow_failed(&mut self, _: Error) -> Result<()> {
        self.refuse()
    }
}

/// An error, the frames that callbacks at the deadline saw, and the number of refusals of a limiter.
type Stop = (Error, Vec<Places>, u32);

/// Runs `main` of [`STOPS`] once in an engine of its own, after `warm` has run often.
fn stop(config: &Config, how: i32) -> Stop {
    stop_with_events(config, how, |_| ())
}

/// As [`stop`], with a callback for tier events.
fn stop_with_events(config: &Config, how: i32, events: impl Fn(&TierEvent<'_>) + Clone + Send + Sync + 'static) -> Stop {
    let (mut inner, instance) = guest(&common::engine_with_events(config, events.clone()).unwrap());
    let main = instance.get_typed_func(&mut inner, "main").unwrap();
    let engine = common::engine_with_events(config, events).unwrap();
    let module = Module::new(&engine, STOPS).unwrap();
    let mut linker: Linker<Refusing> = Linker::new(&engine);
    let clock = engine.clone();
    linker.func_wrap("host", "deadline", move || clock.increment_epoch()).unwrap();
    let mut store = Store::new(&engine, Refusing { inner, main, at_deadline: Vec::new(), refused: 0 });
    store.limiter(|data| data);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|mut store| {
        let trace = places(&WasmBacktrace::capture(&store));
        store.data_mut().at_deadline.push(trace);
        Ok(if store.data().at_deadline.len() == 3 { UpdateDeadline::Interrupt } else { UpdateDeadline::Continue(0) })
    });
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let warm: TypedFunc<(), ()> = instance.get_typed_func(&mut store, "warm").unwrap();
    for _ in 0..200 {
        warm.call(&mut store, ()).unwrap();
    }
    let main: TypedFunc<i32, ()> = instance.get_typed_func(&mut store, "main").unwrap();
    let error = main.call(&mut store, how).unwrap_err();
    assert_eq!(places(&WasmBacktrace::capture(&store)), []);
    let Refusing { at_deadline, refused, .. } = store.into_data();
    (error, at_deadline, refused)
}

/// The frames of the error with which the interpreter stops.
fn interpreted(how: i32) -> Places {
    let mut config = Config::new();
    config.tier(Tier::Interpreter).epoch_interruption(true);
    let places = places(stop(&config, how).0.wasm_backtrace().unwrap());
    assert_eq!(places.iter().map(|&(func, _)| func).collect::<Vec<_>>(), CHAIN);
    places
}

/// [`configs`], and one in which the functions that `warm` calls are native code, and `cold` and `main` between and above them are
/// interpreted.
fn mixed_configs() -> Vec<Config> {
    let mut configs = configs();
    let mut config = Config::new();
    config.tier_up_threshold(Some(50)).synchronous_compilation(true).epoch_interruption(true);
    configs.push(config);
    configs
}

#[cfg(all(feature = "jit", target_os = "linux", target_arch = "x86_64"))]
#[test]
fn the_chain_mixes_native_and_interpreted_frames() {
    use std::collections::BTreeSet;
    use std::sync::{Arc, Mutex};
    use weir::TierEventKind;

    let compiled = Arc::new(Mutex::new(BTreeSet::new()));
    let others = Arc::new(Mutex::new(Vec::new()));
    let (listener, other) = (compiled.clone(), others.clone());
    let config = mixed_configs().pop().unwrap();
    let events = move |event: &TierEvent<'_>| match &event.kind {
        TierEventKind::Compiled { .. } => _ = listener.lock().unwrap().insert(event.name()),
        // Optimised code replaces baseline code.
        TierEventKind::Retired { .. } => (),
        _ => other.lock().unwrap().push(format!("{} {:?}", event.name(), event.kind)),
    };
    for (how, _) in TRAPS {
        compiled.lock().unwrap().clear();
        let (error, ..) = stop_with_events(&config, how, events.clone());
        assert_eq!(places(error.wasm_backtrace().unwrap()), interpreted(how));
        let compiled = compiled.lock().unwrap();
        let is = |name: &str| compiled.contains(name);
        assert!(is("leaf") && is("wide") && is("hot") && !is("cold") && !is("main"), "{compiled:?}");
        assert_eq!(*others.lock().unwrap(), [""; 0]);
    }
}

#[test]
fn traps_have_the_frames_of_the_interpreter() {
    for (how, trap) in TRAPS {
        let expected = interpreted(how);
        for config in mixed_configs() {
            let (error, _, refused) = stop(&config, how);
            assert_eq!(error.downcast_ref(), Some(&trap), "{how}, {config:?}");
            assert_eq!(places(error.wasm_backtrace().unwrap()), expected, "{how}, {config:?}");
            assert_eq!(refused, 0);
        }
    }
}

#[test]
fn errors_of_limiters_have_the_frames_of_the_interpreter() {
    for how in LIMITS {
        let expected = interpreted(how);
        for config in mixed_configs() {
            let (error, _, refused) = stop(&config, how);
            assert_eq!(error.root_cause().to_string(), "refused", "{how}, {config:?}");
            assert_eq!(places(error.wasm_backtrace().unwrap()), expected, "{how}, {config:?}");
            assert_eq!(refused, 1);
        }
    }
}

#[test]
fn callbacks_at_the_deadline_see_the_frames_of_the_interpreter() {
    let expected = interpreted(DEADLINE);
    for config in mixed_configs() {
        let (error, seen, _) = stop(&config, DEADLINE);
        assert_eq!(error.downcast_ref(), Some(&Trap::Interrupt), "{config:?}");
        assert_eq!(places(error.wasm_backtrace().unwrap()), expected, "{config:?}");
        assert_eq!(seen, vec![expected.clone(); 3], "{config:?}");
    }
}
