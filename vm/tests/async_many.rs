//! Many guests that are suspended at the same time: the code that they keep, and the memory.

#![cfg(all(feature = "wat", feature = "async", feature = "jit", target_arch = "x86_64", target_os = "linux"))]

mod common;
#[path = "common/executor.rs"]
mod executor;

use common::engine;
use executor::{Gate, Pause, on_many_threads, poll};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};
use weir::{Caller, Config, Instance, InstancePre, Linker, Module, Store, Tier};

const FUNCTIONS: i32 = 40;
/// Operations of a function.
const STEPS: i32 = 40;

/// Functions by number, of some hundred bytes of code each.
fn functions(count: i32) -> String {
    let work: String = (1..STEPS)
        .map(|k| format!("(local.set 0 (i32.xor (i32.mul (local.get 0) (i32.const {})) (i32.const {k})))", 2 * k + 1))
        .collect();
    let function = |i: i32| {
        format!(
            r#"(func $f{i} (export "{i}") (param i32) (result i32) (local i32)
                (loop $l {work}
                    (br_if $l (i32.lt_u (local.tee 1 (i32.add (local.get 1) (i32.const 1))) (i32.const 4))))
                (i32.add (local.get 0) (i32.const {i})))"#
        )
    };
    (0..count).map(function).collect()
}

/// [`functions`], and `run`, which calls each of them once from five frames deep, and the host after each.
fn guest() -> String {
    let functions = functions(FUNCTIONS);
    let elems: String = (0..FUNCTIONS).map(|i| format!(" $f{i}")).collect();
    format!(
        r#"(module
            (import "host" "wait" (func $wait))
            (memory 1)
            (type $f (func (param i32) (result i32)))
            (table {FUNCTIONS} funcref) (elem (i32.const 0){elems})
            (func $a (export "run") (param i32) (result i32) (i32.add (call $b (local.get 0)) (i32.const 1)))
            (func $b (param i32) (result i32) (i32.add (call $c (local.get 0)) (i32.const 1)))
            (func $c (param i32) (result i32) (i32.add (call $d (local.get 0)) (i32.const 1)))
            (func $d (param i32) (result i32)
                (if (result i32) (i32.eqz (local.get 0))
                    (then (i32.const 0))
                    (else (i32.add (call $e (local.get 0)) (call $d (i32.sub (local.get 0) (i32.const 1)))))))
            (func $e (param i32) (result i32) (local i32)
                (local.set 1 (call_indirect (type $f) (local.get 0) (i32.rem_u (local.get 0) (i32.const {FUNCTIONS}))))
                (call $wait)
                (local.get 1))
            {functions})"#
    )
}

/// The result of function `i`.
fn function(i: i32, mut x: i32) -> i32 {
    for _ in 0..4 {
        x = (1..STEPS).fold(x, |x, k| x.wrapping_mul(2 * k + 1) ^ k);
    }
    x.wrapping_add(i)
}

/// The result of `run(n)`.
fn run(n: i32) -> i32 {
    (1..=n).fold(3i32, |sum, i| sum.wrapping_add(function(i % FUNCTIONS, i)))
}

type Guest = Pin<Box<dyn Future<Output = i32> + Send>>;

/// A guest in a store of its own. If it yields, it is also suspended where each function and each round of a loop begins.
fn start(pre: &InstancePre<()>, n: i32, yields: bool) -> Guest {
    let pre = pre.clone();
    Box::pin(async move {
        let mut store = Store::new(pre.module().engine(), ());
        if yields {
            store.epoch_deadline_async_yield_and_update(0);
            store.set_epoch_deadline(0);
        }
        let instance = pre.instantiate_async(&mut store).await.unwrap();
        let run = instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap();
        run.call_async(&mut store, n).await.unwrap()
    })
}

/// Bytes of a module's code that was retired and is not freed.
fn retired(module: &Module) -> u64 {
    let stats = module.stats();
    stats.retired_bytes - stats.freed_bytes
}

/// Retires code of a module, by running others whose code needs its room. Code is compiled in the background, and so freed by a thread
/// that runs no guest.
struct Retirer<'m>(&'m Module);

impl Retirer<'_> {
    fn round(&self) {
        let module = Module::new(self.0.engine(), format!("(module {})", functions(8))).unwrap();
        let mut store = Store::new(self.0.engine(), ());
        store.set_epoch_deadline(1);
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        for i in 0..8 {
            let func = instance.get_typed_func::<i32, i32>(&mut store, &i.to_string()).unwrap();
            for x in 0..40 {
                assert_eq!(func.call(&mut store, x).unwrap(), function(i, x));
            }
        }
        std::thread::sleep(Duration::from_millis(8));
    }

    /// Runs functions of the module itself.
    fn run_own(&self) {
        let mut linker = Linker::new(self.0.engine());
        linker.func_wrap("host", "wait", || ()).unwrap();
        let mut store = Store::new(self.0.engine(), ());
        store.set_epoch_deadline(1);
        let instance = linker.instantiate(&mut store, self.0).unwrap();
        for i in 0..FUNCTIONS {
            let func = instance.get_typed_func::<i32, i32>(&mut store, &i.to_string()).unwrap();
            for x in 0..40 {
                assert_eq!(func.call(&mut store, x).unwrap(), function(i, x));
            }
        }
        std::thread::sleep(Duration::from_millis(8));
    }

    /// Goes on until all retired code of the module is freed.
    fn until_all_is_freed(&self) {
        let begun = Instant::now();
        (0..3).for_each(|_| self.round());
        while retired(self.0) > 0 {
            self.round();
            // Retired code may have left no room for another module, for which nothing is then compiled.
            self.run_own();
            let left = retired(self.0);
            assert!(begun.elapsed() < Duration::from_secs(20), "{left} bytes are not freed");
        }
    }
}

/// Ends the threads of a test that fails.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        if std::thread::panicking() {
            std::process::exit(101);
        }
    }
}

/// What keeps code while guests are suspended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeps {
    /// Nothing: the guests are interpreted.
    Nothing,
    /// Their frames keep code of the module whose code is retired: of several versions, so the guests are few.
    Own,
    /// Their frames keep code of their module, and the code of another one is retired.
    Others,
}

/// Guests are suspended and resumed on four threads while code is retired.
fn retired_code_is_freed_while_guests_are_suspended(keeps: Keeps, yields: bool, stress: Option<u64>) {
    const THREADS: usize = 4;
    let guests_each = if keeps == Keeps::Own { 12 } else { 250 };
    let length = if yields { 10 } else { 40 };
    let mut config = Config::new();
    config.tier(Tier::Auto).epoch_interruption(yields).tier_up_threshold(Some(3)).max_code_size(48 << 10).stress(stress);
    if keeps == Keeps::Nothing {
        config.interpret_calls(&["a", "b", "c", "d", "e"]);
    }
    let engine = engine(&config).unwrap();
    let guest = Module::new(&engine, guest()).unwrap();
    let module = match keeps {
        Keeps::Nothing | Keeps::Own => guest.clone(),
        Keeps::Others => Module::new(&engine, format!("(module {})", functions(FUNCTIONS))).unwrap(),
    };
    let mut linker = Linker::new(&engine);
    linker.func_wrap_async("host", "wait", |_, (): ()| Box::new(Pause(1))).unwrap();
    let pre = linker.instantiate_pre(&guest).unwrap();
    let guests: Vec<Mutex<Vec<Guest>>> = (0..THREADS).map(|_| Mutex::default()).collect();
    let retirer = Retirer(&module);
    let (stop, barrier, finished) = (AtomicBool::new(false), Barrier::new(THREADS + 1), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (guests, stop, barrier, finished, pre) = (&guests, &stop, &barrier, &finished, &pre);
            scope.spawn(move || {
                let mut round = 0;
                while !stop.load(Ordering::Relaxed) {
                    // In each round a thread has the guests of another one.
                    let mut guests = guests[(thread + round) % THREADS].lock().unwrap();
                    while guests.len() < guests_each {
                        guests.push(start(pre, length, yields));
                    }
                    guests.retain_mut(|guest| match poll(guest.as_mut()) {
                        Poll::Pending => true,
                        Poll::Ready(result) => {
                            assert_eq!(result, run(length));
                            finished.fetch_add(1, Ordering::Relaxed);
                            false
                        }
                    });
                    round += 1;
                }
                let mut own = guests[thread].lock().unwrap();
                while own.len() < guests_each {
                    let mut guest = start(pre, length, yields);
                    assert!(poll(guest.as_mut()).is_pending());
                    own.push(guest);
                }
                drop(own);
                barrier.wait();
                // They are all suspended, and code is retired and freed.
                barrier.wait();
                for guest in std::mem::take(&mut *guests[thread].lock().unwrap()) {
                    assert_eq!(on_many_threads(guest), run(length));
                }
            });
        }
        let _stop = Stop(&stop);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(300) || finished.load(Ordering::Relaxed) < guests_each {
            retirer.round();
            if keeps == Keeps::Others {
                retirer.run_own();
            }
        }
        stop.store(true, Ordering::Relaxed);
        barrier.wait();
        let suspended: usize = guests.iter().map(|guests| guests.lock().unwrap().len()).sum();
        assert!(suspended > 2 * THREADS, "{suspended} guests are suspended");
        match keeps {
            Keeps::Nothing => retirer.until_all_is_freed(),
            // Each may have another version.
            Keeps::Own => (0..20).for_each(|_| retirer.round()),
            Keeps::Others => {
                let begun = Instant::now();
                while retired(&guest) == 0 {
                    retirer.round();
                    assert!(begun.elapsed() < Duration::from_secs(20), "the guests' own code is not retired");
                }
                retirer.until_all_is_freed();
                assert!(retired(&guest) > 0, "{suspended} guests keep their code");
            }
        }
        barrier.wait();
    });
    retirer.until_all_is_freed();
    Retirer(&guest).until_all_is_freed();
    let stats = module.stats();
    assert!(stats.freed_bytes > 0 && stats.retired > 10, "{} {}", stats.freed_bytes, stats.retired);
}

#[test]
fn retired_code_is_freed_while_guests_are_suspended_in_interpreted_code() {
    retired_code_is_freed_while_guests_are_suspended(Keeps::Nothing, false, None);
}

#[test]
fn retired_code_is_freed_while_guests_are_suspended_in_native_code() {
    retired_code_is_freed_while_guests_are_suspended(Keeps::Own, false, None);
}

#[test]
fn retired_code_of_another_module_is_freed_while_guests_are_suspended_in_native_code() {
    retired_code_is_freed_while_guests_are_suspended(Keeps::Others, false, None);
}

#[test]
fn retired_code_is_freed_while_guests_are_suspended_in_code_that_changes() {
    retired_code_is_freed_while_guests_are_suspended(Keeps::Own, false, Some(1));
}

#[test]
fn retired_code_is_freed_while_guests_are_suspended_at_polls() {
    retired_code_is_freed_while_guests_are_suspended(Keeps::Own, true, None);
    retired_code_is_freed_while_guests_are_suspended(Keeps::Own, true, Some(2));
}

/// A guest's mappings and memory, of this process.
fn usage() -> (usize, usize) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    (maps, line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() << 10)
}

#[test]
fn many_guests_are_suspended_resumed_and_dropped() {
    if !common::process::is_alone("many_guests_are_suspended_resumed_and_dropped") {
        return;
    }
    let count = std::env::var("WEIR_ASYNC_GUESTS").map_or(600, |count| count.parse().unwrap());
    let engine = common::default_engine();
    let module = Module::new(&engine, guest()).unwrap();
    let gate = Gate::default();
    let mut linker = Linker::new(&engine);
    let opened = gate.clone();
    linker.func_wrap_async("host", "wait", move |_: Caller<'_, ()>, (): ()| Box::new(opened.clone())).unwrap();
    let pre = linker.instantiate_pre(&module).unwrap();
    // What the engine has only once.
    let mut first = start(&pre, 1, false);
    assert!(poll(first.as_mut()).is_pending());
    let before = usage();
    let mut guests: Vec<Guest> = (0..count).map(|_| start(&pre, 1, false)).collect();
    assert!(guests.iter_mut().all(|guest| poll(guest.as_mut()).is_pending()));
    let after = usage();
    let each = ((after.0 - before.0) as f64 / count as f64, (after.1 - before.1) / count);
    println!("{count} guests, each with {:.1} mappings and {} KiB", each.0, each.1 >> 10);
    assert!(each.0 <= 5.1, "{:.2} mappings for each guest", each.0);
    assert!(each.1 <= 64 << 10, "{} bytes for each guest", each.1);
    let mut dropped: Vec<Guest> = (0..count).map(|_| start(&pre, 1, false)).collect();
    assert!(dropped.iter_mut().all(|guest| poll(guest.as_mut()).is_pending()));
    std::thread::scope(|scope| {
        scope.spawn(move || drop(dropped));
        gate.open();
        let mut rest = guests.as_mut_slice();
        while !rest.is_empty() {
            let (part, others) = rest.split_at_mut(rest.len().min(count.div_ceil(4)));
            rest = others;
            scope.spawn(move || {
                for guest in part {
                    assert!(matches!(poll(guest.as_mut()), Poll::Ready(result) if result == run(1)));
                }
            });
        }
    });
}
