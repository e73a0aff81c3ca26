//! Suspends many guests at the same time, each in a store of its own and five frames deep in an asynchronous host function, and prints
//! the memory that they take. Then half of them are resumed, on other threads than before, and the others dropped.
//!
//! ```sh
//! cargo run --release -p weir-vm --example many_guests -- 20000
//! ```

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Instant;
use weir::{Engine, InstancePre, Linker, Module, Result, Store};

const GUEST: &str = r#"(module
    (import "host" "wait" (func $wait (param i32) (result i32)))
    (memory (export "memory") 1)
    (func $a (export "run") (param i32) (result i32) (i32.add (call $b (local.get 0)) (i32.const 1)))
    (func $b (param i32) (result i32) (i32.add (call $c (local.get 0)) (i32.const 1)))
    (func $c (param i32) (result i32) (i32.add (call $d (local.get 0)) (i32.const 1)))
    (func $d (param i32) (result i32) (i32.add (call $e (local.get 0)) (i32.const 1)))
    (func $e (param i32) (result i32)
        (i32.store (i32.const 64) (local.get 0))
        (i32.add (call $wait (local.get 0)) (i32.load (i32.const 64)))))"#;

/// Host functions wait until this is set.
static OPEN: AtomicBool = AtomicBool::new(false);

type Guest = Pin<Box<dyn Future<Output = Result<i32>> + Send>>;

fn start(pre: &InstancePre<()>, n: i32) -> Guest {
    let pre = pre.clone();
    Box::pin(async move {
        let mut store = Store::new(pre.module().engine(), ());
        let instance = pre.instantiate_async(&mut store).await?;
        instance.get_typed_func::<i32, i32>(&mut store, "run")?.call_async(&mut store, n).await
    })
}

fn poll(guest: &mut Guest) -> Poll<Result<i32>> {
    guest.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// The mappings and the resident bytes of this process, where the system tells.
fn usage() -> (usize, usize) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default().lines().count();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB")?.parse::<usize>().ok());
    (maps, resident.unwrap_or(0) << 10)
}

fn main() -> Result<()> {
    let count: usize = std::env::args().nth(1).and_then(|count| count.parse().ok()).unwrap_or(200);
    let engine = Engine::default();
    let module = Module::new(&engine, GUEST)?;
    let mut linker = Linker::new(&engine);
    linker.func_wrap_async("host", "wait", |_, (n,): (i32,)| {
        Box::new(std::future::poll_fn(move |_| if OPEN.load(Ordering::Relaxed) { Poll::Ready(10 * n) } else { Poll::Pending }))
    })?;
    let pre = linker.instantiate_pre(&module)?;
    let (before, begun) = (usage(), Instant::now());
    let mut guests: Vec<Guest> = (0..count).map(|i| start(&pre, i as i32)).collect();
    for guest in &mut guests {
        assert!(poll(guest).is_pending());
    }
    let (after, time) = (usage(), begun.elapsed());
    let each = |before: usize, after: usize| (after - before) as f64 / count as f64;
    println!("{count} guests are suspended after {time:.2?}: {:.1} µs for each", time.as_secs_f64() * 1e6 / count as f64);
    println!("each has {:.2} mappings and {:.1} KiB", each(before.0, after.0), each(before.1, after.1) / 1024.0);

    let begun = Instant::now();
    let dropped = guests.split_off(count / 2);
    OPEN.store(true, Ordering::Relaxed);
    thread::scope(|scope| {
        for (part, guests) in guests.chunks_mut(count.div_ceil(8).max(1)).enumerate() {
            scope.spawn(move || {
                for (i, guest) in guests.iter_mut().enumerate() {
                    let n = (part * count.div_ceil(8).max(1) + i) as i32;
                    assert!(matches!(poll(guest), Poll::Ready(Ok(result)) if result == 11 * n + 4));
                }
            });
        }
    });
    println!("{} were resumed on other threads in {:.2?}", guests.len(), begun.elapsed());
    let (begun, count) = (Instant::now(), dropped.len());
    drop(dropped);
    println!("{count} were dropped in {:.2?}", begun.elapsed());
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
