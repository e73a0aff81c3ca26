//! The guests, written once: the two crates have the same API, and `vm` is one of them.

use super::vm::{Engine, Func, InstancePre, Linker, Module, Result, Store, TypedFunc};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;

/// Two chains of five functions, the innermost of which calls the host, a memory of one page, and a data segment.
const GUEST: &str = r#"(module
    (import "host" "wait" (func $wait (param i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 128) "each guest has a page of its own")
    (func $a (export "run") (param i32) (result i32) (i32.add (call $b (local.get 0)) (i32.const 1)))
    (func $b (param i32) (result i32) (i32.add (call $c (local.get 0)) (i32.const 1)))
    (func $c (param i32) (result i32) (i32.add (call $d (local.get 0)) (i32.const 1)))
    (func $d (param i32) (result i32) (i32.add (call $e (local.get 0)) (i32.const 1)))
    (func $e (param i32) (result i32)
        (i32.store (i32.const 64) (local.get 0))
        (i32.add (call $wait (local.get 0)) (i32.load (i32.const 64))))
    (func $interpreted_a (export "run_other") (param i32) (result i32) (i32.add (call $interpreted_b (local.get 0)) (i32.const 1)))
    (func $interpreted_b (param i32) (result i32) (i32.add (call $interpreted_c (local.get 0)) (i32.const 1)))
    (func $interpreted_c (param i32) (result i32) (i32.add (call $interpreted_d (local.get 0)) (i32.const 1)))
    (func $interpreted_d (param i32) (result i32) (i32.add (call $interpreted_e (local.get 0)) (i32.const 1)))
    (func $interpreted_e (param i32) (result i32)
        (i32.store (i32.const 64) (local.get 0))
        (i32.add (call $wait (local.get 0)) (i32.load (i32.const 64))))
    (func (export "empty"))
    (func (export "wait") (param i32) (result i32) (call $wait (local.get 0))))"#;

/// Threads that resume guests.
const THREADS: usize = 8;

/// Host functions that wait do so until this is set.
static OPEN: AtomicBool = AtomicBool::new(false);

type Guest = Pin<Box<dyn Future<Output = Result<i32>> + Send>>;

fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn start(pre: &InstancePre<()>, n: i32) -> Guest {
    let pre = pre.clone();
    Box::pin(async move {
        let mut store = Store::new(pre.module().engine(), ());
        let instance = pre.instantiate_async(&mut store).await?;
        let name = if n % 2 == 0 { "run" } else { "run_other" };
        instance.get_typed_func::<i32, i32>(&mut store, name)?.call_async(&mut store, n).await
    })
}

/// Suspends `count` guests, calls `measure` before and after that, and resumes them on other threads, or drops them.
pub fn suspend<M>(engine: &Engine, count: usize, measure: impl Fn() -> M, resume: bool) -> Result<[M; 2]> {
    OPEN.store(false, Ordering::Relaxed);
    let module = Module::new(engine, GUEST)?;
    let mut linker = Linker::new(engine);
    linker.func_wrap_async("host", "wait", |_, (n,): (i32,)| {
        Box::new(std::future::poll_fn(move |_| if OPEN.load(Ordering::Relaxed) { Poll::Ready(10 * n) } else { Poll::Pending }))
    })?;
    let pre = linker.instantiate_pre(&module)?;
    // What the first guests of a module cost once, is not theirs.
    let first: Vec<Guest> = (0..8).map(|i| start(&pre, i)).collect();
    let mut guests: Vec<Guest> = first.into_iter().chain((0..count).map(|i| start(&pre, i as i32))).collect();
    let (few, many) = guests.split_at_mut(8);
    assert!(few.iter_mut().all(|guest| poll(guest.as_mut()).is_pending()));
    let before = measure();
    assert!(many.iter_mut().all(|guest| poll(guest.as_mut()).is_pending()));
    let after = measure();
    if resume {
        OPEN.store(true, Ordering::Relaxed);
        let mut guests: Vec<(usize, &mut Guest)> = many.iter_mut().enumerate().collect();
        thread::scope(|scope| {
            for part in guests.chunks_mut(count.div_ceil(THREADS).max(1)) {
                scope.spawn(move || {
                    for (i, guest) in part {
                        let result = poll(guest.as_mut());
                        assert!(matches!(result, Poll::Ready(Ok(result)) if result == 11 * *i as i32 + 4));
                    }
                });
            }
        });
    }
    drop(guests);
    Ok([before, after])
}

/// Returns operations that are asynchronous calls, each of which is repeated as often as is asked for.
pub fn calls(engine: &Engine) -> Result<Vec<(&'static str, Box<dyn FnMut(u32)>)>> {
    let module = Module::new(engine, GUEST)?;
    let mut linker = Linker::new(engine);
    linker.func_wrap_async("host", "wait", |_, (pauses,): (i32,)| {
        let mut left = pauses;
        Box::new(std::future::poll_fn(move |_| {
            left -= 1;
            if left < 0 { Poll::Ready(pauses) } else { Poll::Pending }
        }))
    })?;
    let call = |name: &'static str, argument: i32| -> Result<Box<dyn FnMut(u32)>> {
        let mut store = Store::new(engine, ());
        let instance = complete(linker.instantiate_async(&mut store, &module), 1)?;
        let func: Func = instance.get_func(&mut store, name).expect("an export");
        if name == "empty" {
            let empty: TypedFunc<(), ()> = func.typed(&store)?;
            return Ok(Box::new(move |n| {
                (0..n).for_each(|_| complete(empty.call_async(&mut store, ()), 1).expect("no trap"));
            }));
        }
        let wait: TypedFunc<i32, i32> = func.typed(&store)?;
        Ok(Box::new(move |n| {
            for _ in 0..n {
                let result = complete(wait.call_async(&mut store, argument), argument + 1).expect("no trap");
                assert_eq!(result, argument);
            }
        }))
    };
    Ok(vec![
        ("no call of the host", call("empty", 0)?),
        ("the host's future is ready", call("wait", 0)?),
        ("it is pending once", call("wait", 1)?),
        ("it is pending eight times", call("wait", 8)?),
    ])
}

/// Polls a future so often, and returns its output.
fn complete<F: Future>(future: F, polls: i32) -> F::Output {
    let mut future = std::pin::pin!(future);
    for _ in 1..polls {
        assert!(poll(future.as_mut()).is_pending());
    }
    match poll(future.as_mut()) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("it is ready after {polls} polls"),
    }
}
