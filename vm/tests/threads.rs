//! Engines, modules and stores on many threads at the same time, while modules come and go: results stay right, and nothing is left at the end.
//! CONTRIBUTING.md has the command that runs this under ThreadSanitizer.

#![cfg(all(target_os = "linux", target_arch = "x86_64", feature = "jit", feature = "wat"))]

mod common;

use common::{compiler_threads, engine, until};
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use weir::{Cache, CacheConfig, Caller, Config, Engine, Linker, Module, Store, UpdateDeadline};

/// Functions of a module.
const FUNCTIONS: i32 = 24;
/// Modules of an engine that are shared at the same time.
const SHARED: usize = 3;
/// Stores that a thread makes.
const ROUNDS: u64 = 60;
const THREADS: u64 = 6;

/// A module whose results depend on `number`. Its functions are called directly, through a table that all of them share, through the host,
/// and have a loop of a few rounds.
fn text(number: i32) -> String {
    let function = |i: i32| {
        let call = match i % 4 {
            1 => format!("(call ${} (local.get 0))", i - 1),
            2 => format!("(call_indirect (type $f) (local.get 0) (i32.const {}))", i - 1),
            3 => format!("(call $host (local.get 0) (i32.const {}))", i - 1),
            _ => "(local.get 0)".into(),
        };
        format!(
            r#"(func ${i} (export "{i}") (param i32) (result i32) (local i32 i32)
                (local.set 1 {call})
                (loop $next
                    (local.set 1 (i32.xor (i32.mul (local.get 1) (i32.const 31)) (i32.const {number})))
                    (br_if $next (i32.lt_u (local.tee 2 (i32.add (local.get 2) (i32.const 1))) (i32.const {}))))
                (local.get 1))"#,
            rounds(i)
        )
    };
    let functions: String = (0..FUNCTIONS).map(function).collect();
    let elems: String = (0..FUNCTIONS).map(|i| format!(" ${i}")).collect();
    format!(
        r#"(module (type $f (func (param i32) (result i32)))
            (import "host" "call" (func $host (param i32 i32) (result i32)))
            (table {FUNCTIONS} funcref) (elem (i32.const 0){elems}) {functions})"#
    )
}

/// The rounds of the loop of function `i`.
fn rounds(i: i32) -> i32 {
    1 + i % 5
}

/// The result of function `i` of [`text`] for `x`.
fn expected(number: i32, i: i32, x: i32) -> i32 {
    let x = if i % 4 == 0 { x } else { expected(number, i - 1, x) };
    (0..rounds(i)).fold(x, |x, _| x.wrapping_mul(31) ^ number)
}

/// An engine, and the modules that the threads share, each with its number.
struct Shared {
    engine: Engine,
    /// Whether code can be stored with its settings.
    stores: bool,
    modules: Mutex<Vec<(i32, Module)>>,
}

impl Shared {
    fn new((config, stores): (Config, bool)) -> Shared {
        let engine = engine(&config).expect("the settings are supported");
        let modules =
            (0..SHARED as i32).map(|number| (number, Module::new(&engine, text(number)).expect("it is valid"))).collect();
        Shared { engine, stores, modules: Mutex::new(modules) }
    }

    /// Returns one of the modules.
    fn module(&self, random: u64) -> (i32, Module) {
        self.modules.lock().expect("no test panics")[random as usize % SHARED].clone()
    }

    /// Replaces a module by another, in one of several ways.
    fn replace(&self, random: u64) {
        let (number, old) = self.module(random);
        let another = (random % 1000) as i32;
        let (number, new) = match random % 4 {
            0 => (another, Module::new(&self.engine, text(another))),
            // SAFETY: the bytes are of this process.
            1 if self.stores => (number, old.serialize().and_then(|bytes| unsafe { Module::deserialize(&self.engine, bytes) })),
            2 => (number, old.embed_profile().and_then(|bytes| Module::new(&self.engine, bytes))),
            _ => (another, Module::new(&self.engine, text(another))),
        };
        let new = new.expect("each way makes a module");
        // The old one is dropped without the lock.
        let _old = std::mem::replace(&mut self.modules.lock().expect("no test panics")[random as usize % SHARED], (number, new));
    }

    /// Makes an instance in a store of its own, and calls its functions.
    fn run(&self, mut random: u64) {
        let (number, module) = self.module(random);
        let mut store = Store::new(&self.engine, ());
        store.set_epoch_deadline(1);
        store.epoch_deadline_callback(|_| Ok(UpdateDeadline::Continue(1)));
        let mut linker = Linker::new(&self.engine);
        let call = |mut caller: Caller<'_, ()>, x: i32, i: i32| {
            let func = caller.get_export(&i.to_string()).and_then(weir::Extern::into_func).expect("each function is exported");
            func.typed::<i32, i32>(&caller)?.call(&mut caller, x)
        };
        linker.func_wrap("host", "call", call).expect("it has one name");
        let instance = linker.instantiate(&mut store, &module).expect("its import is there");
        for _ in 0..40 {
            let (i, x) = (next(&mut random) as i32 % FUNCTIONS, next(&mut random) as i32);
            let i = i.abs();
            let func = instance.get_typed_func::<i32, i32>(&mut store, &i.to_string()).expect("it is exported");
            assert_eq!(
                func.call(&mut store, x).expect("it does not trap"),
                expected(number, i, x),
                "module {number}, function {i}"
            );
        }
        if random.is_multiple_of(8) {
            assert!(module.stats().functions.called > 0 && self.engine.stats().functions.total > 0);
        }
    }
}

/// The next random number.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
    *state >> 32
}

/// Settings of which each lets other parts of the engine run at the same time, and whether code can be stored with them.
fn settings() -> Vec<(Config, bool)> {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("threads");
    let _ = std::fs::remove_dir_all(&directory);
    let cache = Cache::new(CacheConfig::new().with_directory(&directory).clone()).expect("the directory can be made");
    let mut common = Config::new();
    common.epoch_interruption(true).tier_up_threshold(Some(3)).keep_profiles(true);
    let little = 24 << 10;
    vec![
        (common.clone().stress(Some(1)).clone(), false),
        (common.clone().max_code_size(little).lazy_validation(true).clone(), true),
        (common.clone().cache(Some(cache)).compiler_threads(3).clone(), true),
        (common.stress(Some(2)).max_code_size(little).lazy_validation(true).signals_based_traps(false).clone(), false),
    ]
}

/// One test, because others would have compiler threads, too.
#[test]
fn modules_come_and_go_while_many_threads_use_them() {
    let engines: Vec<Shared> = settings().into_iter().map(Shared::new).collect();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let (engines, done) = (&engines, &done);
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                engines.iter().for_each(|shared| shared.engine.increment_epoch());
                thread::sleep(Duration::from_micros(200));
            }
        });
        let work = |seed: u64| {
            move || {
                let mut random = seed;
                for _ in 0..ROUNDS {
                    let shared = &engines[next(&mut random) as usize % engines.len()];
                    if next(&mut random).is_multiple_of(4) {
                        shared.replace(next(&mut random));
                    }
                    shared.run(next(&mut random));
                }
            }
        };
        let working: Vec<_> = (0..THREADS).map(|seed| scope.spawn(work(seed))).collect();
        let ended: Vec<_> = working.into_iter().map(|thread| thread.join()).collect();
        done.store(true, Ordering::Relaxed);
        ended.into_iter().for_each(|ended| ended.expect("the results are right"));
    });
    for shared in &engines {
        assert!(shared.engine.stats().functions.native > 0, "functions were compiled");
        shared.modules.lock().expect("no test panics").clear();
        until(|| shared.engine.host_memory() == 0);
    }
    drop(engines);
    until(|| compiler_threads() == 0);
}
