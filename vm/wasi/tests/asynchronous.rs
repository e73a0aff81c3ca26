//! Guests whose WASI calls suspend them, so that one thread serves many.

#![cfg(feature = "async")]

mod common;

use std::fs::File;
use std::io::{Read, Write, pipe};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};
use tokio::io::AsyncWrite;
use weir::{Linker, Module, Store};
use weir_wasi::cli::{AsyncStdinStream, InputFile, OutputFile};
use weir_wasi::p2::pipe::MemoryInputPipe;
use weir_wasi::{FsPerms, WasiCtx};

/// `sleep` waits for some milliseconds; the others receive a byte, from descriptor 3, or accept a connection and read a byte from it,
/// and return it or the negative error. `write` writes 1,000 bytes to a descriptor; `open_read` and `open_write` open a pipe in the first
/// directory, and receive a byte or send one; `wait` waits for standard input or for some milliseconds, and returns the first event's type.
const GUEST: &str = r#"(module
    (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "sock_recv" (func $receive (param i32 i32 i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "sock_accept" (func $accept (param i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "path_open" (func $open (param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 300) "pipe")
    (data (i32.const 1024) "w")
    (func (export "write") (param i64) (result i32) (local $error i32)
        (i32.store (i32.const 208) (i32.const 2048))
        (i32.store (i32.const 212) (i32.const 1000))
        (loop $more
            (local.set $error (call $write (i32.wrap_i64 (local.get 0)) (i32.const 208) (i32.const 1) (i32.const 128)))
            (if (local.get $error) (then (return (local.get $error))))
            (i32.store (i32.const 212) (i32.sub (i32.load (i32.const 212)) (i32.load (i32.const 128))))
            (br_if $more (i32.load (i32.const 212))))
        (i32.const 0))
    (func $opened (param $rights i64) (result i32)
        (drop (call $open (i32.const 3) (i32.const 0) (i32.const 300) (i32.const 4) (i32.const 0)
            (local.get $rights) (i64.const 0) (i32.const 0) (i32.const 140)))
        (i32.load (i32.const 140)))
    (func (export "open_read") (param i64) (result i32)
        (call $byte (call $read (call $opened (i64.const 2)) (i32.const 200) (i32.const 1) (i32.const 128))))
    (func (export "open_write") (param i64) (result i32)
        (call $write (call $opened (i64.const 64)) (i32.const 200) (i32.const 1) (i32.const 128)))
    (func (export "wait") (param i64) (result i32)
        (i64.store (i32.const 24) (i64.mul (local.get 0) (i64.const 1000000)))
        (i32.store (i32.const 16) (i32.const 1))
        (i32.store8 (i32.const 56) (i32.const 1))
        (drop (call $poll (i32.const 0) (i32.const 1200) (i32.const 2) (i32.const 128)))
        (i32.load8_u (i32.const 1210)))
    (data (i32.const 200) "\00\04\00\00\01\00\00\00")
    (func (export "yield") (param i64) (result i32) (call $yield))
    (func (export "sleep") (param i64) (result i32)
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
    let waker = common::unpark();
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
    weir_wasi::p1::add_to_linker_async(&mut linker, |ctx| ctx).unwrap();
    let module = Module::new(&engine, GUEST).unwrap();
    (linker, module)
}

/// Polls each once, on a thread that none may block, and expects none to complete.
fn all_wait(guests: &mut [Guest]) {
    for guest in guests {
        assert!(guest.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
}

#[test]
fn a_thousand_guests_sleep_and_a_hundred_read_an_empty_pipe() {
    let (linker, module) = wasi();
    let (reader, mut writer) = pipe().unwrap();
    let input = InputFile::new(File::from(OwnedFd::from(reader)));
    let sleep = || start(&linker, &module, WasiCtx::builder().build(), "sleep", 100);
    let read = || start(&linker, &module, WasiCtx::builder().stdin(input.clone()).build(), "read", 0);
    // A box hides that it is a file of the host.
    let boxed = || start(&linker, &module, WasiCtx::builder().stdin(Box::new(input.clone())).build(), "read", 0);
    let readers = (0..50).flat_map(|_| [read(), boxed()]);
    let mut guests: Vec<Guest> = (0..1000).map(|_| sleep()).chain(readers).collect();
    all_wait(&mut guests);
    // There are bytes for all, and each reads one, whichever is first.
    writer.write_all(&(0..100).collect::<Vec<u8>>()).unwrap();
    let (results, _) = run_all(guests);
    assert_eq!(results[..1000], [0; 1000]);
    let mut bytes = results[1000..].to_vec();
    bytes.sort();
    assert_eq!(bytes, (0..100).collect::<Vec<i32>>());
}

#[test]
fn a_hundred_guests_write_to_a_full_pipe() {
    let (linker, module) = wasi();
    let (mut reader, mut writer) = pipe().unwrap();
    // What a pipe holds. If it holds less, this waits for ever.
    writer.write_all(&[0; 65536]).unwrap();
    let output = OutputFile::new(File::from(OwnedFd::from(writer)));
    let write = || start(&linker, &module, WasiCtx::builder().stdout(output.clone()).build(), "write", 1);
    let mut guests: Vec<Guest> = (0..100).map(|_| write()).collect();
    all_wait(&mut guests);
    let reading = thread::spawn(move || {
        let mut bytes = vec![0; 65536 + 100 * 1000];
        reader.read_exact(&mut bytes).map(|()| reader)
    });
    assert_eq!(run_all(guests).0, [0; 100]);
    drop(output);
    let mut rest = Vec::new();
    reading.join().unwrap().unwrap().read_to_end(&mut rest).unwrap();
    assert_eq!(rest, [], "no byte is written twice");
}

#[test]
fn a_pipe_is_opened_whose_other_end_is_not() {
    let (linker, module) = wasi();
    let folder = common::scratch("pipe");
    let made = std::process::Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap();
    assert!(made.success());
    let open = |name| {
        let ctx = WasiCtx::builder().preopened_dir(&folder, "/", FsPerms::ReadWrite).unwrap().build();
        start(&linker, &module, ctx, name, 0)
    };
    let mut guests = vec![open("open_read")];
    all_wait(&mut guests);
    let others = (0..10).map(|_| start(&linker, &module, WasiCtx::builder().build(), "sleep", 1)).collect();
    assert_eq!(run_all(others).0, [0; 10]);
    all_wait(&mut guests);
    guests.push(open("open_write"));
    assert_eq!(run_all(guests).0, [i32::from(b'w'), 0]);

    // A guest that is dropped meanwhile leaves a thread, which opens the pipe for nobody.
    let mut dropped = vec![open("open_read")];
    all_wait(&mut dropped);
    drop(dropped);
    assert_eq!(run_all(vec![open("open_read"), open("open_write")]).0, [i32::from(b'w'), 0]);
}

#[test]
fn guests_wait_for_streams_of_the_embedder() {
    let (linker, module) = wasi();
    let (near, far) = tokio::io::duplex(16);
    let input = Arc::new(AsyncStdinStream::new(near));
    let ctx = || {
        let mut ctx = WasiCtx::builder();
        ctx.stdin(Arc::clone(&input));
        ctx
    };
    // The timeout is the event as long as there are no bytes; in virtual time, too.
    assert_eq!(run_all(vec![start(&linker, &module, ctx().build(), "wait", 1)]).0, [0]);
    assert_eq!(run_all(vec![start(&linker, &module, ctx().deterministic(0).build(), "wait", 1 << 30)]).0, [0]);
    let mut guests: Vec<Guest> = (0..5).map(|_| start(&linker, &module, ctx().build(), "read", 0)).collect();
    all_wait(&mut guests);
    let mut far = Box::pin(far);
    let written = far.as_mut().poll_write(&mut Context::from_waker(Waker::noop()), b"abcde");
    assert!(matches!(written, Poll::Ready(Ok(5))));
    let mut bytes = run_all(guests).0;
    bytes.sort();
    assert_eq!(bytes, [97, 98, 99, 100, 101]);
    let mut waiting = vec![start(&linker, &module, ctx().build(), "wait", 1 << 30)];
    all_wait(&mut waiting);
    drop(far);
    assert_eq!(run_all(waiting).0, [1], "the end is an event");
}

#[test]
fn guests_sleep_at_the_same_time() {
    let (linker, module) = wasi();
    let sleepers = |ctx: fn() -> WasiCtx, millis: fn(i32) -> i32| -> Vec<Guest> {
        (0..50).map(|i| start(&linker, &module, ctx(), "sleep", millis(i).into())).collect()
    };
    let begun = Instant::now();
    let (results, rounds) = run_all(sleepers(|| WasiCtx::builder().build(), |i| 100 + i));
    assert_eq!(results, [0; 50]);
    assert!(begun.elapsed() >= Duration::from_millis(149));
    assert!(rounds < 200, "{rounds} rounds");
    // None sleeps on the thread that polls it. These would for days.
    all_wait(&mut sleepers(|| WasiCtx::builder().build(), |_| 1 << 30));
    let yielding = || start(&linker, &module, WasiCtx::builder().build(), "yield", 0);
    let mut guests: Vec<Guest> = (0..50).map(|_| yielding()).collect();
    all_wait(&mut guests);
    assert_eq!(run_all(guests).0, [0; 50]);
    // Virtual time does not wait.
    assert_eq!(run_all(sleepers(|| WasiCtx::builder().deterministic(1).build(), |_| 1 << 30)).0, [0; 50]);
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
    guests.push(start(&linker, &module, WasiCtx::builder().stdin(MemoryInputPipe::new("z")).build(), "read", 0));
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
