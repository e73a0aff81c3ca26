//! Calls that may block, on threads that do nothing else.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use weir::__PerProcess as PerProcess;

/// Maximum number of threads. Further calls wait for one of them to end, so it is large: opening a pipe waits for its other end.
const MAX_THREADS: usize = 512;
/// The time after which a thread without work ends.
const IDLE: Duration = Duration::from_secs(10);

static POOL: PerProcess<Pool> = PerProcess::new();

#[derive(Default)]
struct Pool {
    state: Mutex<Threads>,
    /// Signalled for each call that is queued.
    queued: Condvar,
}

#[derive(Default)]
struct Threads {
    queue: VecDeque<Box<dyn FnOnce() + Send>>,
    count: usize,
    /// The threads that wait for work.
    idle: usize,
}

/// Completes with the result of a call. If it is dropped before the call has begun, there is no call; a call that has begun goes on.
pub(crate) struct Call<R>(Arc<Mutex<State<R>>>);

struct State<R> {
    /// The payload of a panic is raised again where the call is waited for.
    result: Option<Result<R, Box<dyn Any + Send>>>,
    waker: Option<Waker>,
}

/// Calls `work` on a thread of the pool. If the system has none left, this thread makes the call.
pub(crate) fn call<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Call<R> {
    let call = Arc::new(Mutex::new(State { result: None, waker: None }));
    let state = Arc::clone(&call);
    submit(Box::new(move || {
        if Arc::strong_count(&state) == 1 {
            return;
        }
        let result = catch_unwind(AssertUnwindSafe(work));
        let mut state = lock(&state);
        state.result = Some(result);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }));
    Call(call)
}

impl<R> Future for Call<R> {
    type Output = R;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<R> {
        let mut state = lock(&self.0);
        match state.result.take() {
            Some(Ok(result)) => Poll::Ready(result),
            Some(Err(panic)) => resume_unwind(panic),
            None => {
                state.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

fn submit(work: Box<dyn FnOnce() + Send>) {
    let pool = POOL.get();
    let mut threads = lock(&pool.state);
    threads.queue.push_back(work);
    // Those that were woken for an earlier call still count as idle.
    if threads.idle >= threads.queue.len() {
        return pool.queued.notify_one();
    }
    if threads.count == MAX_THREADS {
        return;
    }
    threads.count += 1;
    drop(threads);
    if std::thread::Builder::new().name("weir-wasi-pool".into()).spawn(|| serve(pool)).is_err() {
        let mut threads = lock(&pool.state);
        threads.count -= 1;
        // Other threads will come to it.
        if threads.count > 0 {
            return;
        }
        while let Some(work) = threads.queue.pop_front() {
            drop(threads);
            work();
            threads = lock(&pool.state);
        }
    }
}

/// What a thread of the pool does.
fn serve(pool: &Pool) {
    let mut threads = lock(&pool.state);
    loop {
        while let Some(work) = threads.queue.pop_front() {
            drop(threads);
            work();
            threads = lock(&pool.state);
        }
        threads.idle += 1;
        let (woken, waited) = pool.queued.wait_timeout(threads, IDLE).unwrap_or_else(PoisonError::into_inner);
        threads = woken;
        threads.idle -= 1;
        if waited.timed_out() && threads.queue.is_empty() {
            threads.count -= 1;
            return;
        }
    }
}

/// Nothing panics while one of these is locked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::thread::block_on;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn panics_reach_the_caller() {
        let panic = catch_unwind(|| block_on(call(|| -> () { panic!("in the call") }))).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"in the call"));
        assert_eq!(block_on(call(|| 7)), 7, "its thread goes on");
    }

    /// Both in one test, because both need many threads at the same time.
    #[test]
    fn calls_run_at_the_same_time_and_those_dropped_in_the_queue_are_not_made() {
        let all = Arc::new(Barrier::new(40));
        let calls: Vec<Call<usize>> = (0..40)
            .map(|i| {
                let all = Arc::clone(&all);
                call(move || {
                    all.wait();
                    i
                })
            })
            .collect();
        let results: Vec<usize> = calls.into_iter().map(block_on).collect();
        assert_eq!(results, (0..40).collect::<Vec<usize>>());

        let (all, made) = (Arc::new(Barrier::new(MAX_THREADS + 1)), Arc::new(AtomicUsize::new(0)));
        let busy: Vec<Call<()>> = (0..MAX_THREADS)
            .map(|_| {
                let all = Arc::clone(&all);
                call(move || {
                    all.wait();
                    all.wait();
                })
            })
            .collect();
        all.wait();
        let count = |made: &Arc<AtomicUsize>| {
            let made = Arc::clone(made);
            call(move || {
                made.fetch_add(1, Ordering::Relaxed);
            })
        };
        drop(count(&made));
        let kept = count(&made);
        all.wait();
        block_on(kept);
        busy.into_iter().for_each(block_on);
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }
}
