//! Host values that are made without end: few are alive at any time, each is dropped once, and the process does not grow.
//!
//! The tests measure the process, so they are run one after another.

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use weir::{Caller, Engine, ExternRef, Linker, Module, Result, RootScope, Rooted, Store};

static ALONE: Mutex<()> = Mutex::new(());

/// The number of values that have been dropped.
static DROPPED: AtomicU64 = AtomicU64::new(0);

struct Value(u64);

impl Drop for Value {
    fn drop(&mut self) {
        DROPPED.fetch_add(1, Ordering::Relaxed);
    }
}

/// Bytes of resident memory.
fn resident() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Resident memory after every [`Samples::EVERY`] values.
#[derive(Default)]
struct Samples {
    made: u64,
    resident: Vec<u64>,
}

impl Samples {
    const EVERY: u64 = 1 << 17;

    fn count(&mut self) {
        self.made += 1;
        if self.made.is_multiple_of(Samples::EVERY) {
            self.resident.push(resident());
        }
    }

    /// Asserts that memory has not grown after the first quarter, in which functions are compiled and the heap reaches its size.
    fn assert_flat(&self) {
        let (first, rest) = self.resident.split_at(self.resident.len().div_ceil(4));
        let (before, most) = (*first.last().unwrap(), *rest.iter().max().unwrap());
        assert!(most <= before + (1 << 20), "{before} bytes after {} samples, {most} later", first.len());
    }
}

/// A guest calls a host function that makes a value, `count` times, and reads each.
fn from_the_guest(count: u64) {
    let _alone = ALONE.lock().unwrap();
    DROPPED.store(0, Ordering::Relaxed);
    let engine = Engine::default();
    let module = Module::new(
        &engine,
        r#"(module
            (import "host" "make" (func $make (param i64) (result externref)))
            (import "host" "read" (func $read (param externref) (result i64)))
            (func (export "run") (param $n i64) (result i64) (local $sum i64)
                (loop $next
                    (local.set $sum (i64.add (local.get $sum) (call $read (call $make (local.get $n)))))
                    (br_if $next (i64.ne (local.tee $n (i64.sub (local.get $n) (i64.const 1))) (i64.const 0))))
                (local.get $sum)))"#,
    )
    .unwrap();
    let mut linker = Linker::new(&engine);
    let make = |mut caller: Caller<'_, Samples>, n: u64| -> Result<Option<Rooted<ExternRef>>> {
        caller.data_mut().count();
        Ok(Some(ExternRef::new(&mut caller, Value(n))?))
    };
    let read = |caller: Caller<'_, Samples>, value: Option<Rooted<ExternRef>>| -> Result<u64> {
        Ok(value.unwrap().data(&caller)?.unwrap().downcast_ref::<Value>().unwrap().0)
    };
    linker.func_wrap("host", "make", make).unwrap();
    linker.func_wrap("host", "read", read).unwrap();
    let mut store = Store::new(&engine, Samples::default());
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let run = instance.get_typed_func::<u64, u64>(&mut store, "run").unwrap();
    assert_eq!(run.call(&mut store, count).unwrap(), count * (count + 1) / 2);
    store.data().assert_flat();
    store.gc(None).unwrap();
    assert_eq!(DROPPED.load(Ordering::Relaxed), count);
}

/// The embedder makes `count` values, a thousand in each scope.
fn in_scopes(count: u64) {
    let _alone = ALONE.lock().unwrap();
    DROPPED.store(0, Ordering::Relaxed);
    let mut store = Store::new(&Engine::default(), ());
    let mut samples = Samples::default();
    for from in (0..count).step_by(1000) {
        let mut scope = RootScope::new(&mut store);
        for n in from..from + 1000 {
            samples.count();
            let value = ExternRef::new(&mut scope, Value(n)).unwrap();
            assert_eq!(value.data(&scope).unwrap().unwrap().downcast_ref::<Value>().unwrap().0, n);
        }
    }
    samples.assert_flat();
    store.gc(None).unwrap();
    assert_eq!(DROPPED.load(Ordering::Relaxed), count);
}

#[test]
fn a_guest_makes_many_values() {
    from_the_guest(3_000_000);
}

#[test]
fn an_embedder_makes_many_values_in_scopes() {
    in_scopes(3_000_000);
}

#[test]
#[ignore = "takes a minute with --release"]
fn a_guest_makes_a_hundred_million_values() {
    from_the_guest(100_000_000);
}

#[test]
#[ignore = "takes a minute with --release"]
fn an_embedder_makes_a_hundred_million_values_in_scopes() {
    in_scopes(100_000_000);
}
