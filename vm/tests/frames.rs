//! The stack walker from where embedders may use it: in host functions, also nested ones, and in callbacks at the deadline. Each test
//! runs in every tier and expects the same frames.

#![cfg(feature = "wat")]

use weir::{
    Caller, Config, Engine, Error, Instance, Linker, Module, Store, Tier, Trap, TypedFunc, UpdateDeadline, WasmBacktrace,
};

/// Every way of running, all of which compile synchronously.
fn configs() -> Vec<Config> {
    let tiers = [Tier::Interpreter, Tier::Native, Tier::Cranelift, Tier::Ssa, Tier::Auto];
    let mut configs: Vec<Config> = Vec::new();
    for tier in tiers {
        let mut config = Config::new();
        config.tier(tier).synchronous_compilation(true).epoch_interruption(true);
        if tier == Tier::Auto {
            config.tier_up_threshold(Some(2));
        }
        if Engine::new(&config).is_ok() {
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

/// Functions with one word and with two a slot, called directly and through a table, in loops and by tail calls.
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

fn guest(config: &Config) -> (Store<Seen>, Instance) {
    let engine = Engine::new(config).unwrap();
    let module = Module::new(&engine, GUEST).unwrap();
    let mut linker: Linker<Seen> = Linker::new(&engine);
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
            // The trap's backtrace goes on beyond this function.
            assert_eq!(functions(error.wasm_backtrace().unwrap()), [8, 7, 6]);
            let here = functions(&WasmBacktrace::capture(&caller));
            assert_eq!(here, [6]);
            Err(error)
        })
        .unwrap();
    let mut store = Store::new(&engine, Vec::new());
    store.set_epoch_deadline(u64::MAX / 2);
    let instance = linker.instantiate(&mut store, &module).unwrap();
    (store, instance)
}

#[test]
fn host_functions_see_the_frames_of_every_tier() {
    for config in configs() {
        let (mut store, instance) = guest(&config);
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
        let (mut store, instance) = guest(&config);
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
