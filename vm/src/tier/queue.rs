//! The background compiler: threads that compile the functions of a queue, those with the greatest expected gain first.
//! Requests that [go first](Job::goes_first) precede all others, and those of functions to which the module's hints give a
//! [priority](Job::priority) precede the rest.
//!
//! The gain of a compilation is the time that it saves for each nanosecond that it takes, if the function continues to be
//! executed as it was since the request. It is computed when a thread looks for work, because it changes while a request
//! waits. A request is dropped when it is no longer wanted, and when its function was not executed for [`STALE`] while
//! others were.

use crate::records::stack::with_room;
use crate::sys::affinity::{self, Processors};
use crate::sys::thread;
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Native stack for compiling one function on a thread of the guest.
pub(super) const COMPILER_STACK: usize = 1 << 20;

/// Maximum number of requests among which a thread chooses, the oldest first.
const MAX_CANDIDATES: usize = 64;
/// A request is dropped if its function was not executed for this long.
const STALE: Duration = Duration::from_millis(50);
/// A request counts as if its function had been executed all the time for this long before. Without that, the work of some
/// microseconds would decide.
const BEFORE: Duration = Duration::from_millis(1);
/// A thread without work ends after this long.
const IDLE: Duration = Duration::from_millis(100);

/// There is no compiler thread, and not enough stack for a job on the thread of the guest.
#[derive(Debug)]
pub(super) struct NoThread;

/// A request for a compilation.
pub(super) trait Job: Send {
    /// Returns the bytes of bytecode that the function has executed so far; `None` if its module is gone.
    fn work(&self) -> Option<u64>;

    /// Returns whether the request precedes those of which this is false.
    fn goes_first(&self) -> bool {
        false
    }

    /// Returns the priority of the function, as the module's hints have it. Among requests that are equal otherwise the lowest comes first.
    fn priority(&self) -> u32 {
        u32::MAX
    }

    /// Returns whether all others precede the request. It is no function's, and never stale.
    fn goes_last(&self) -> bool {
        false
    }

    /// The request is dropped because the function is not executed.
    fn drop_stale(&self);

    /// Compiles the function.
    fn run(self: Box<Self>);
}

/// A request that waits.
struct Waiting {
    job: Box<dyn Job>,
    /// The gain of the compilation for each byte that the function executes in a second.
    value: f64,
    since: Instant,
    /// The work at the time of the request.
    work_before: u64,
    /// The work when a thread last looked, and when it was last seen to change.
    seen: u64,
    changed: Instant,
}

impl Waiting {
    /// Returns the expected gain.
    fn gain(&self, now: Instant) -> f64 {
        // As much work as at full speed: the same for all, so that among new requests the value decides.
        const AT_FULL_SPEED: f64 = 2e6;
        let done = (self.seen - self.work_before.min(self.seen)) as f64;
        self.value * (done + AT_FULL_SPEED) / (now - self.since + BEFORE).as_secs_f64()
    }
}

struct State {
    /// In the order of the requests, after those that go first.
    waiting: VecDeque<Waiting>,
    /// Number of jobs that are running.
    running: usize,
    threads: usize,
    /// The threads that wait for a job, by identifier.
    idle: Vec<u32>,
    /// An idle thread that is to run elsewhere than the thread that woke it, and the processors that it may use after that.
    moved: Option<(u32, Processors)>,
    closed: bool,
}

impl State {
    /// The number of requests that go first.
    fn first(&self) -> usize {
        self.waiting.iter().take_while(|waiting| waiting.job.goes_first()).count()
    }
}

/// Takes the request with the greatest gain out of these. Those that are not wanted any more are dropped.
///
/// The lock of the queue must not be held, because a job may hold the last reference to a module.
fn choose(mut waiting: Vec<Waiting>, now: Instant) -> (Option<Box<dyn Job>>, Vec<Waiting>) {
    let mut others_work = false;
    waiting.retain_mut(|waiting| {
        let Some(work) = waiting.job.work() else { return false };
        if work != waiting.seen {
            (waiting.seen, waiting.changed) = (work, now);
            others_work = true;
        }
        true
    });
    waiting.retain(|waiting| {
        // If no function is executed, the guest may wait for something.
        let stale = others_work && now - waiting.changed > STALE && !waiting.job.goes_last();
        if stale {
            waiting.job.drop_stale();
        }
        !stale
    });
    let rank = |Waiting { job, .. }: &Waiting| (job.goes_first(), !job.goes_last(), Reverse(job.priority()));
    let rank = |waiting: &Waiting| (rank(waiting), waiting.gain(now));
    let ranks = waiting.iter().map(rank).enumerate();
    // Of equal ones, the first.
    let best = ranks.reduce(|best, other| if other.1 > best.1 { other } else { best });
    let job = best.map(|(at, _)| waiting.remove(at).job);
    (job, waiting)
}

struct Shared {
    state: Mutex<State>,
    /// Signals a new job, or that the queue is closed.
    wake: Condvar,
    /// Signals that nothing is queued or running.
    idle: Condvar,
    limit: usize,
    /// Number of jobs that panicked.
    panics: AtomicU64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts requests back to the front, after those that go first, unless the queue is closed.
    fn put_back(&self, waiting: Vec<Waiting>) {
        if waiting.is_empty() {
            return;
        }
        let mut state = self.lock();
        if state.closed {
            drop(state);
            return drop(waiting);
        }
        for request in waiting.into_iter().rev() {
            // More of these may have come meanwhile.
            let before = if request.job.goes_first() { 0 } else { state.first() };
            state.waiting.insert(before, request);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Runs a job. A panic is caught and counted, so that it does not corrupt the queue's state.
    fn run(&self, job: Box<dyn Job>) {
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| job.run())).is_err() {
            self.panics.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The queue. A thread starts when a job waits and all threads are busy, and ends when it has been idle for a while.
pub(crate) struct Queue {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("waiting", &self.shared.lock().waiting.len()).finish_non_exhaustive()
    }
}

impl Queue {
    /// Creates an empty queue for at most `limit` threads.
    pub(crate) fn new(limit: usize) -> Queue {
        let state = State { waiting: VecDeque::new(), running: 0, threads: 0, idle: Vec::new(), moved: None, closed: false };
        let shared =
            Shared { state: Mutex::new(state), wake: Condvar::new(), idle: Condvar::new(), limit, panics: AtomicU64::new(0) };
        Queue { shared: Arc::new(shared), threads: Mutex::new(Vec::new()) }
    }

    /// Queues a job. For each byte that its function executes in a second, compiling it gains `value`. If there is no compiler
    /// thread and none can be started, runs the job before returning, unless it goes last.
    ///
    /// # Errors
    /// [`NoThread`]: the job is dropped.
    pub(super) fn push(&self, value: f64, job: Box<dyn Job>) -> Result<(), NoThread> {
        let (now, work) = (Instant::now(), job.work().unwrap_or_default());
        let (first, last) = (job.goes_first(), job.goes_last());
        let request = Waiting { job, value, since: now, work_before: work, seen: work, changed: now };
        let mut state = self.shared.lock();
        if first {
            state.waiting.push_front(request);
        } else {
            state.waiting.push_back(request);
        }
        let here = affinity::current();
        if state.idle.len() < state.waiting.len() && state.threads < self.shared.limit {
            state.threads += 1;
            let shared = self.shared.clone();
            let run = move || {
                leave(here);
                work_until_idle(&shared);
            };
            match thread::spawn("weir-compiler", run) {
                Ok(handle) => {
                    let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
                    threads.retain(|thread| !thread.is_finished());
                    threads.push(handle);
                }
                Err(_) => {
                    state.threads -= 1;
                    if state.threads == 0 {
                        // This is the job just pushed: without threads no other job stays in the queue.
                        let job = state.waiting.pop_back();
                        drop(state);
                        if last {
                            return Err(NoThread);
                        }
                        let run = || job.into_iter().for_each(|waiting| self.shared.run(waiting.job));
                        return with_room(COMPILER_STACK, run).ok_or(NoThread);
                    }
                }
            }
        }
        // A condition variable wakes the thread that has waited longest.
        if let (Some(&idle), None) = (state.idle.first(), state.moved) {
            // Where that fails, the job may begin later.
            state.moved = affinity::exclude(idle, here).unwrap_or_default().map(|all| (idle, all));
        }
        drop(state);
        self.shared.wake.notify_one();
        Ok(())
    }

    /// Returns the number of jobs that panicked. This does not count panics of the compiler, which the job itself
    /// catches.
    pub(crate) fn panics(&self) -> u64 {
        self.shared.panics.load(Ordering::Relaxed)
    }

    /// Waits until all jobs queued so far are done.
    #[cfg(test)]
    pub(crate) fn wait_idle(&self) {
        let mut state = self.shared.lock();
        while !(state.waiting.is_empty() && state.running == 0) {
            state = self.shared.idle.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        drop(waiting);
        self.shared.wake.notify_all();
        let this = std::thread::current().id();
        for thread in self.threads.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // A job may drop the last reference to the engine; its thread cannot join itself. A panic there was
            // reported.
            if thread.thread().id() != this {
                let _ = thread.join();
            }
        }
    }
}

/// Moves this thread to another processor, if it is on this one and there are others.
fn leave(processor: usize) {
    if let Ok(Some(all)) = affinity::exclude(thread::id(), processor) {
        let _ = all.allow();
    }
}

/// A compiler thread.
fn work_until_idle(shared: &Shared) {
    let mut state = shared.lock();
    loop {
        if !state.waiting.is_empty() {
            let count = state.waiting.len().min(MAX_CANDIDATES);
            let candidates = state.waiting.drain(..count).collect();
            state.running += 1;
            drop(state);
            let (job, rest) = choose(candidates, Instant::now());
            shared.put_back(rest);
            job.into_iter().for_each(|job| shared.run(job));
            state = shared.lock();
            state.running -= 1;
            if state.waiting.is_empty() && state.running == 0 {
                shared.idle.notify_all();
            }
            continue;
        }
        if state.closed {
            return;
        }
        let this = thread::id();
        state.idle.push(this);
        let (locked, waited) = shared.wake.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
        state = locked;
        state.idle.retain(|&idle| idle != this);
        if let Some((_, all)) = state.moved.take_if(|(moved, _)| *moved == this) {
            let _ = all.allow();
        }
        if waited.timed_out() && state.waiting.is_empty() {
            state.threads -= 1;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::{Receiver, Sender, channel};

    /// A job of a function with this work, which sends its number.
    struct Numbered {
        number: u64,
        work: Arc<AtomicU64>,
        wanted: Arc<AtomicBool>,
        first: bool,
        last: bool,
        priority: u32,
        send: Sender<Outcome>,
    }

    /// The number of a job and its outcome, `"run"` or `"stale"`.
    type Outcome = (u64, &'static str);
    /// The work of a function, and whether its code is wanted.
    type Function = (Arc<AtomicU64>, Arc<AtomicBool>);

    impl Job for Numbered {
        fn goes_first(&self) -> bool {
            self.first
        }

        fn goes_last(&self) -> bool {
            self.last
        }

        fn priority(&self) -> u32 {
            self.priority
        }

        fn work(&self) -> Option<u64> {
            self.wanted.load(Ordering::Relaxed).then(|| self.work.load(Ordering::Relaxed))
        }

        fn drop_stale(&self) {
            self.send.send((self.number, "stale")).expect("the test listens");
        }

        fn run(self: Box<Self>) {
            assert_ne!(self.number, 13, "an unlucky job");
            self.send.send((self.number, "run")).expect("the test listens");
        }
    }

    fn job(number: u64, send: &Sender<Outcome>) -> (Box<Numbered>, Function) {
        let (work, wanted) = (Arc::new(AtomicU64::new(100)), Arc::new(AtomicBool::new(true)));
        (
            Box::new(Numbered {
                number,
                work: work.clone(),
                wanted: wanted.clone(),
                first: false,
                last: false,
                priority: u32::MAX,
                send: send.clone(),
            }),
            (work, wanted),
        )
    }

    fn numbers(receive: &Receiver<Outcome>) -> Vec<u64> {
        receive.try_iter().map(|(number, _)| number).collect()
    }

    #[test]
    fn every_job_runs_and_a_panic_stops_nothing() {
        let (send, receive) = channel();
        let queue = Queue::new(2);
        for number in 0..50 {
            queue.push(1.0, job(number, &send).0).expect("there are threads");
        }
        queue.wait_idle();
        let mut seen = numbers(&receive);
        seen.sort_unstable();
        assert_eq!(queue.panics(), 1);
        assert_eq!(seen, (0..50).filter(|&number| number != 13).collect::<Vec<_>>());
    }

    #[test]
    fn dropping_the_queue_drops_what_waits() {
        let (send, receive) = channel();
        let queue = Queue::new(1);
        for number in 100..1100 {
            queue.push(1.0, job(number, &send).0).expect("there are threads");
        }
        drop(queue);
        drop(send);
        assert!(receive.iter().count() <= 1000);
    }

    /// One request for each value, all of them since `since`.
    fn waiting(values: &[f64], since: Instant, send: &Sender<Outcome>) -> (Vec<Waiting>, Vec<Function>) {
        let request = |(number, &value): (usize, &f64)| {
            let (job, function) = job(number as u64, send);
            (Waiting { job, value, since, work_before: 100, seen: 100, changed: since }, function)
        };
        values.iter().enumerate().map(request).unzip()
    }

    /// Runs the best job. Returns its number, the outcomes of dropped jobs, and the jobs that still wait.
    fn run_best(waiting: Vec<Waiting>, now: Instant, receive: &Receiver<Outcome>) -> (Option<u64>, Vec<Outcome>, Vec<Waiting>) {
        let (job, rest) = choose(waiting, now);
        let dropped = receive.try_iter().collect();
        job.into_iter().for_each(|job| job.run());
        (receive.try_iter().next().map(|(number, _)| number), dropped, rest)
    }

    #[test]
    fn a_request_that_goes_last_waits_for_all_others_and_is_never_stale() {
        let (send, receive) = channel();
        let queue = Queue::new(1);
        let (mut last, _) = job(7, &send);
        last.last = true;
        let start = Instant::now();
        let (mut all, functions) = waiting(&[1.0, 2.0], start, &send);
        all.insert(0, Waiting { job: last, value: 9.0, since: start, work_before: 100, seen: 100, changed: start });
        let (_, dropped, all) = run_best(all, start, &receive);
        assert_eq!((dropped, all.len()), (vec![], 2));
        // Others are executed, and it is not.
        functions[0].0.fetch_add(1, Ordering::Relaxed);
        let (chosen, dropped, all) = run_best(all, start + 2 * STALE, &receive);
        assert_eq!((chosen, dropped), (Some(0), vec![]));
        assert_eq!(run_best(all, start + 3 * STALE, &receive).0, Some(7));
        drop(queue);
    }

    #[test]
    fn requests_with_a_priority_precede_the_others_whatever_their_gain() {
        let (send, receive) = channel();
        let start = Instant::now();
        let (mut all, _) = waiting(&[9.0, 5.0, 1.0, 2.0], start, &send);
        for (number, value, priority, first) in [(4, 1.0, 7, false), (5, 1.0, 3, false), (6, 0.5, 9, true)] {
            let (mut job, _) = job(number, &send);
            (job.priority, job.first) = (priority, first);
            all.push(Waiting { job, value, since: start, work_before: 100, seen: 100, changed: start });
        }
        let mut order = Vec::new();
        while !all.is_empty() {
            let (chosen, _, rest) = run_best(all, start, &receive);
            (order, all) = ([order, chosen.into_iter().collect()].concat(), rest);
        }
        assert_eq!(order, [6, 5, 4, 0, 1, 3, 2]);
    }

    #[test]
    fn new_requests_are_taken_by_value_and_later_ones_by_the_work_since() {
        let (send, receive) = channel();
        let start = Instant::now();
        let (requests, handles) = waiting(&[1.0, 3.0, 2.0, 1.0], start, &send);
        let (first, dropped, rest) = run_best(requests, start, &receive);
        assert_eq!((first, dropped), (Some(1), vec![]));
        // Function 0 is executed at full speed, and function 2 is not.
        handles[0].0.store(100 + 40_000_000, Ordering::Relaxed);
        let later = start + Duration::from_millis(20);
        let (second, _, rest) = run_best(rest, later, &receive);
        let (third, _, rest) = run_best(rest, later, &receive);
        assert_eq!((second, third, rest.len()), (Some(0), Some(2), 1));
    }

    #[test]
    fn unwanted_requests_are_dropped_and_stale_ones_too_if_others_are_executed() {
        let (send, receive) = channel();
        let start = Instant::now();
        let (requests, handles) = waiting(&[1.0, 9.0, 1.0, 1.0], start, &send);
        handles[2].1.store(false, Ordering::Relaxed);
        let later = start + 2 * STALE;
        let (first, dropped, rest) = run_best(requests, later, &receive);
        assert_eq!((first, dropped, rest.len()), (Some(1), vec![], 2), "nothing is executed");
        handles[3].0.store(200, Ordering::Relaxed);
        let (second, dropped, rest) = run_best(rest, later, &receive);
        assert_eq!((second, dropped, rest.len()), (Some(3), vec![(0, "stale")], 0));
    }

    #[test]
    fn a_request_that_goes_first_precedes_greater_gains() {
        let (send, receive) = channel();
        let start = Instant::now();
        let (requests, _) = waiting(&[1.0, 9.0], start, &send);
        let first = Waiting {
            job: Box::new(Numbered { first: true, ..*job(7, &send).0 }),
            value: 0.001,
            ..waiting(&[0.0], start, &send).0.remove(0)
        };
        let (chosen, _, rest) = run_best(requests.into_iter().chain([first]).collect(), start, &receive);
        assert_eq!((chosen, rest.len()), (Some(7), 2));
        assert_eq!(run_best(rest, start, &receive).0, Some(1));
    }

    /// More requests than a thread looks at wait while the only thread is busy.
    #[test]
    fn a_request_that_goes_first_does_not_wait_for_a_long_queue() {
        /// Runs until it is told to end.
        struct Blocking(Receiver<()>, Sender<()>);
        impl Job for Blocking {
            fn work(&self) -> Option<u64> {
                Some(0)
            }
            fn drop_stale(&self) {
                unreachable!("it runs at once");
            }
            fn run(self: Box<Self>) {
                self.1.send(()).expect("the test listens");
                self.0.recv().expect("the test goes on");
            }
        }
        let (send, receive) = channel();
        let ((end, ended), (begin, begun)) = (channel(), channel());
        let queue = Queue::new(1);
        queue.push(1.0, Box::new(Blocking(ended, begin))).expect("there are threads");
        begun.recv().expect("the job begins");
        for number in 100..100 + 2 * MAX_CANDIDATES as u64 {
            queue.push(1.0, job(number, &send).0).expect("there are threads");
        }
        queue.push(0.001, Box::new(Numbered { first: true, ..*job(7, &send).0 })).expect("there are threads");
        end.send(()).expect("the job waits");
        queue.wait_idle();
        let seen = numbers(&receive);
        assert_eq!((seen[0], seen.len()), (7, 1 + 2 * MAX_CANDIDATES), "{seen:?}");
    }

    #[test]
    fn a_request_that_goes_first_is_not_passed_by_those_put_back() {
        let (send, receive) = channel();
        let queue = Queue::new(0);
        let start = Instant::now();
        let (requests, _) = waiting(&[1.0, 2.0], start, &send);
        let first =
            Waiting { job: Box::new(Numbered { first: true, ..*job(7, &send).0 }), ..waiting(&[0.0], start, &send).0.remove(0) };
        queue.shared.lock().waiting.push_front(first);
        queue.shared.put_back(requests);
        let order: VecDeque<Waiting> = std::mem::take(&mut queue.shared.lock().waiting);
        order.into_iter().for_each(|waiting| waiting.job.run());
        assert_eq!(numbers(&receive), [7, 0, 1]);
    }

    #[test]
    fn threads_end_when_idle_and_start_again() {
        let (send, receive) = channel();
        let queue = Queue::new(2);
        for number in [1, 2] {
            queue.push(1.0, job(number, &send).0).expect("there are threads");
            assert_eq!(receive.recv().map(|(number, _)| number), Ok(number));
            while queue.shared.lock().threads > 0 {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}
