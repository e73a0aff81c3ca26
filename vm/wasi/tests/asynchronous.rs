//! Guests whose WASI calls suspend them, so that one thread serves many.

#![cfg(feature = "async")]

mod common;

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};
use weir::{Linker, Module, Store};
use weir_wasi::WasiCtx;

/// `sleep` waits for some milliseconds; the others receive a byte, from descriptor 3, or accept a connection and read a byte from it,
/// and return it or the negative error.
const GUEST: &str = r#"(module
    (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "sock_recv" (func $receive (param i32 i32 i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "sock_accept" (func $accept (param i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 200) "\00\04\00\00\01\00\00\00")
    (func (export "sleep") (param i64) (result i32)
        (drop (call $yield))
        (i32.store (i32.const 16) (i32.const 1))
        (i64.store (i32.const 24) (i64.mul (local.get 0) (i64.const 1000000)))
        (call $poll (i32.const 0) (i32.const 64) (i32.const 1) (i32.const 128)))
    (func $byte (param i32) (result i32)
        (if (result i32) (local.get 0)
            (then (i32.sub (i32.const 0) (local.get 0)))
            (else (i32.load8_u (i32.const 1024)))))
    (func (export "read") (param i64) (result i32)
        (call $byte (call $read (i32.wrap_i64 (local.get 0)) (i32.const 200) (i32.const 1) (i32.const 128))))
    (func (export "receive") (param i64) (result i32)
        (call $byte (call $receive (i32.wrap_i64 (local.get 0)) (i32.const 200) (i32.const 1) (i32.const 0) (i32.const 128) (i32.const 132))))
    (func (export "accept") (param i64) (result i32) (local i32)
        (local.set 1 (call $accept (i32.wrap_i64 (local.get 0)) (i32.const 0) (i32.const 140)))
        (if (local.get 1) (then (return (i32.sub (i32.const 0) (local.get 1)))))
        (call $byte (call $read (i32.load (i32.const 140)) (i32.const 200) (i32.const 1) (i32.const 128)))))"#;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

type Guest = Pin<Box<dyn Future<Output = i32> + Send>>;

/// Calls a function in a store of its own.
fn start(linker: &Linker<WasiCtx>, module: &Module, ctx: WasiCtx, name: &'static str, argument: i64) -> Guest {
    let (linker, module) = (linker.clone(), module.clone());
    Box::pin(async move {
        let mut store = Store::new(module.engine(), ctx);
        let instance = linker.instantiate_async(&mut store, &module).await.unwrap();
        let func = instance.get_typed_func::<i64, i32>(&mut store, name).unwrap();
        func.call_async(&mut store, argument).await.unwrap()
    })
}

/// Polls all until they have completed, and parks the thread in between. Returns the results, and the number of rounds.
fn run_all(mut guests: Vec<Guest>) -> (Vec<i32>, usize) {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut results: Vec<Option<i32>> = vec![None; guests.len()];
    for round in 1.. {
        for (guest, result) in guests.iter_mut().zip(&mut results).filter(|(_, result)| result.is_none()) {
            if let Poll::Ready(value) = guest.as_mut().poll(&mut Context::from_waker(&waker)) {
                *result = Some(value);
            }
        }
        if results.iter().all(Option::is_some) {
            return (results.into_iter().flatten().collect(), round);
        }
        thread::park();
    }
    unreachable!("the range has no end")
}

fn wasi() -> (Linker<WasiCtx>, Module) {
    let engine = common::default_engine();
    let mut linker = Linker::new(&engine);
    weir_wasi::add_to_linker_async(&mut linker, |ctx| ctx).unwrap();
    let module = Module::new(&engine, GUEST).unwrap();
    (linker, module)
}

#[test]
fn guests_sleep_at_the_same_time() {
    let (linker, module) = wasi();
    let begun = Instant::now();
    let guests = (0..50).map(|i| start(&linker, &module, WasiCtx::builder().build(), "sleep", 100 + i)).collect();
    let (results, rounds) = run_all(guests);
    assert_eq!(results, [0; 50]);
    assert!(begun.elapsed() >= Duration::from_millis(149));
    assert!(begun.elapsed() < Duration::from_secs(4), "one after another, they sleep for 6 seconds");
    assert!(rounds < 200, "{rounds} rounds");
    // Virtual time does not wait.
    let begun = Instant::now();
    let ctx = WasiCtx::builder().deterministic(1).build();
    assert_eq!(run_all(vec![start(&linker, &module, ctx, "sleep", 1 << 30)]).0, [0]);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn guests_wait_for_bytes_and_connections() {
    let (linker, module) = wasi();
    let folder = std::env::temp_dir().join(format!("weir-async-{}", std::process::id()));
    let listener = UnixListener::bind(&folder).unwrap();
    let (pairs, others): (Vec<_>, Vec<_>) = (0..4).map(|_| UnixStream::pair().unwrap()).unzip();
    let names = ["read", "receive"];
    let mut guests: Vec<Guest> = (pairs.into_iter().enumerate())
        .map(|(i, socket)| start(&linker, &module, WasiCtx::builder().preopened_socket(socket).build(), names[i % 2], 3))
        .collect();
    guests.push(start(&linker, &module, WasiCtx::builder().preopened_listener(listener).build(), "accept", 3));
    guests.push(start(&linker, &module, WasiCtx::builder().stdin("z").build(), "read", 0));
    guests.push(start(&linker, &module, WasiCtx::builder().build(), "read", 9));
    // One that is dropped while it waits.
    let (never, _other) = UnixStream::pair().unwrap();
    let mut dropped = start(&linker, &module, WasiCtx::builder().preopened_socket(never).build(), "read", 3);
    assert!(dropped.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(dropped);
    let address = folder.clone();
    let writer = thread::spawn(move || {
        for (i, mut other) in others.iter().enumerate().rev() {
            thread::sleep(Duration::from_millis(5));
            other.write_all(&[10 + i as u8]).unwrap();
        }
        let mut connection = UnixStream::connect(address).unwrap();
        thread::sleep(Duration::from_millis(5));
        connection.write_all(b"!").unwrap();
        thread::sleep(Duration::from_millis(50));
    });
    let (results, _) = run_all(guests);
    writer.join().unwrap();
    std::fs::remove_file(folder).unwrap();
    const BADF: i32 = 8;
    assert_eq!(results, [10, 11, 12, 13, i32::from(b'!'), i32::from(b'z'), -BADF]);
}
