//! A small executor for the tests of asynchronous calls, futures that are pending for a while, and the engines of these tests.

#![allow(dead_code, reason = "not every test uses everything")]

use crate::common;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;
use weir::{Config, Engine, Tier};

struct Unpark(thread::Thread, AtomicBool);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.1.store(true, Ordering::Release);
        self.0.unpark();
    }
}

/// Polls a future on this thread until it has completed, and parks while it is pending.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let woken = Arc::new(Unpark(thread::current(), AtomicBool::new(true)));
    let waker = Waker::from(woken.clone());
    let mut future = pin!(future);
    loop {
        while !woken.1.swap(false, Ordering::Acquire) {
            thread::park();
        }
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
    }
}

/// Polls a future on another thread each time, until it has completed.
pub fn on_many_threads<F: Future + Send>(future: F) -> F::Output
where
    F::Output: Send,
{
    let mut future = pin!(future);
    loop {
        let polled = thread::scope(|scope| scope.spawn(|| poll(future.as_mut())).join());
        match polled {
            Ok(Poll::Ready(output)) => return output,
            Ok(Poll::Pending) => {}
            Err(payload) => std::panic::resume_unwind(payload),
        }
    }
}

/// Polls a future once.
pub fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// A future that is pending for this number of polls, and wakes its task each time.
pub struct Pause(pub usize);

impl Future for Pause {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.0 == 0 {
            return Poll::Ready(());
        }
        self.0 -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

/// Counts the values of [`Counted`] that exist.
#[derive(Clone, Default)]
pub struct Counter(Arc<AtomicUsize>);

/// A value that is counted while it exists.
pub struct Counted(Counter);

impl Counter {
    pub fn one(&self) -> Counted {
        self.0.fetch_add(1, Ordering::Relaxed);
        Counted(self.clone())
    }

    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A future that is pending until it is opened, from any thread.
#[derive(Clone, Default)]
pub struct Gate(Arc<Mutex<(bool, Vec<Waker>)>>);

impl Gate {
    pub fn open(&self) {
        let mut state = self.0.lock().unwrap();
        state.0 = true;
        state.1.drain(..).for_each(Waker::wake);
    }
}

impl Future for Gate {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock().unwrap();
        if state.0 {
            return Poll::Ready(());
        }
        state.1.push(cx.waker().clone());
        Poll::Pending
    }
}

/// The settings under which results must not differ, and some with frames of all three engines in one stack.
pub fn all_configs() -> Vec<Config> {
    let mut all = common::configs();
    if common::is_built(Tier::Native) {
        for names in [["a", "c", "e"], ["b", "d", "f"]] {
            let mut mixed = Config::new();
            mixed.tier(Tier::Native).synchronous_compilation(true).interpret_calls(&names[..2]).baseline_calls(&names[2..]);
            all.push(mixed);
        }
    }
    all
}

/// Runs a test under each of them, with changes of its own.
pub fn each_engine(change: impl Fn(&mut Config), mut test: impl FnMut(&Engine)) {
    for mut config in all_configs() {
        change(&mut config);
        test(&common::engine(&config).unwrap());
    }
}
