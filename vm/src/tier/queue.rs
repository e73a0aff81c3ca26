//! The background compiler: threads that compile the functions of a queue. [`requests`](super::requests) has the order.
//!
//! A compilation that takes long does not keep those of other modules from their turn: a [relief](Queue::relieve) is started for them, by the
//! request if the compilation has taken long already or is of a large function, and otherwise by the compilation, where it counts steps.

use super::requests::{Job, LONG, Requests, Waiting, choose};
use crate::records::stack::with_room;
use crate::sys::affinity::{self, Processors};
use crate::sys::thread;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Native stack for compiling one function on a thread of the guest.
pub(super) const COMPILER_STACK: usize = 1 << 20;

/// A thread without work ends after this long.
const IDLE: Duration = Duration::from_millis(100);

/// Maximum number of threads beyond the limit.
const MAX_RELIEFS: usize = 4;

/// There is no compiler thread, and not enough stack for a job on the thread of the guest.
#[derive(Debug)]
pub(super) struct NoThread;

struct State {
    requests: Requests,
    /// Number of jobs that are running.
    running: usize,
    threads: usize,
    /// Number of threads beyond the limit.
    reliefs: usize,
    /// When one of those may be started again, after the system has refused one.
    refused_until: Option<Instant>,
    /// The threads that wait for a job, by identifier.
    idle: Vec<u32>,
    /// An idle thread that is to run elsewhere than the thread that woke it, and the processors that it may use after that.
    moved: Option<(u32, Processors)>,
    closed: bool,
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

    /// Puts back requests that were not chosen, unless the queue is closed.
    fn put_back(&self, waiting: Vec<Waiting>) {
        if waiting.is_empty() {
            return;
        }
        let mut state = self.lock();
        if state.closed {
            drop(state);
            return drop(waiting);
        }
        state.requests.put_back(waiting);
        drop(state);
        self.wake.notify_one();
    }

    /// Runs the best request of the module whose turn it is: see [`Requests::take`]. The state is that of this value, unlocked meanwhile.
    fn run_next<'s>(&'s self, mut state: MutexGuard<'s, State>, relief: bool) -> MutexGuard<'s, State> {
        let began = Instant::now();
        let Some((module, candidates)) = state.requests.take(began, relief) else { return state };
        state.running += 1;
        drop(state);
        // The last reference to a module may be dropped here, too, with all that follows.
        self.catch(|| {
            let (best, mut rest) = choose(candidates, began);
            // Another thread may have taken the memory meanwhile.
            let may = |best: &Waiting| best.memory() == 0 || self.lock().requests.take_memory(module, began, best.memory());
            let best = best.and_then(|best| match may(&best) {
                true => Some(best),
                false => {
                    rest.insert(0, best);
                    None
                }
            });
            self.put_back(rest);
            best.into_iter().for_each(|best| best.into_job().run());
        });
        let mut state = self.lock();
        state.running -= 1;
        state.requests.ended(module, began, Instant::now());
        if state.requests.len() == 0 && state.running == 0 {
            self.idle.notify_all();
        }
        if state.requests.any_may_run() {
            // What waited for memory, perhaps.
            self.wake.notify_one();
        }
        state
    }

    /// Calls `run`. A panic is caught and counted, so that it does not corrupt the queue's state.
    fn catch(&self, run: impl FnOnce()) {
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err() {
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
        // Whoever prints an engine does not wait for its threads.
        let waiting = self.shared.state.try_lock().ok().map(|state| state.requests.len());
        f.debug_struct("Queue").field("waiting", &waiting).finish_non_exhaustive()
    }
}

impl Queue {
    /// Creates an empty queue for at most `limit` threads.
    pub(crate) fn new(limit: usize) -> Queue {
        let state = State {
            requests: Requests::default(),
            running: 0,
            threads: 0,
            reliefs: 0,
            refused_until: None,
            idle: Vec::new(),
            moved: None,
            closed: false,
        };
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
        let (module, first, last) = (job.module(), job.goes_first(), job.goes_last());
        let request = Waiting::new(value, job);
        let mut state = self.shared.lock();
        state.requests.push(request);
        let here = affinity::current();
        let is_needed = state.idle.len() < state.requests.len() && state.requests.any_may_run();
        if is_needed && state.threads < self.shared.limit {
            state.threads += 1;
            let started = self.start(move |shared| {
                leave(here);
                work_until_idle(shared);
            });
            if started.is_err() {
                state.threads -= 1;
                if state.threads == 0 {
                    let job = state.requests.take_back(module, first);
                    drop(state);
                    if last {
                        return Err(NoThread);
                    }
                    let run = || self.shared.catch(|| job.into_iter().for_each(|job| job.run()));
                    return with_room(COMPILER_STACK, run).ok_or(NoThread);
                }
            }
        } else if is_needed {
            let now = Instant::now();
            if state.requests.has_long(now) {
                self.start_relief(&mut state, now);
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

    /// Starts a compiler thread.
    fn start(&self, run: impl FnOnce(&Shared) + Send + 'static) -> std::io::Result<()> {
        let shared = self.shared.clone();
        let handle = thread::spawn("weir-compiler", move || run(&shared))?;
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|thread| !thread.is_finished());
        threads.push(handle);
        Ok(())
    }

    /// A job that began then is still running. If it has taken long, and modules wait for a thread that have none, starts one beyond the limit,
    /// which executes their requests. Called several times in a millisecond.
    pub(super) fn relieve(&self, began: Instant) {
        let now = Instant::now();
        if now.duration_since(began) < LONG {
            return;
        }
        // Whoever has the lock may be about to take the request; otherwise the next call sees it.
        let Ok(mut state) = self.shared.state.try_lock() else { return };
        self.start_relief(&mut state, now);
    }

    /// Starts a thread beyond the limit if a module with requests has no thread. It ends when there is no such module, or no long
    /// compilation.
    fn start_relief(&self, state: &mut State, now: Instant) {
        if state.reliefs == MAX_RELIEFS
            || state.closed
            || !state.idle.is_empty()
            || state.refused_until.is_some_and(|until| now < until)
            || !state.requests.has_kept_waiting()
        {
            return;
        }
        let started = self.start(move |shared| {
            let mut state = shared.run_next(shared.lock(), true);
            // What it took and did not choose must not wait for another relief.
            while state.requests.has_kept_waiting() && state.requests.has_long(Instant::now()) && !state.closed {
                state = shared.run_next(state, true);
            }
            state.reliefs -= 1;
            // The threads may have ended while it had requests that it has put back.
            if state.threads == 0 && state.requests.len() > 0 && !state.closed {
                state.threads += 1;
                drop(state);
                work_until_idle(shared);
            }
        });
        match started {
            Ok(()) => state.reliefs += 1,
            Err(_) => state.refused_until = Some(now + LONG),
        }
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
        while state.requests.len() > 0 || state.running > 0 {
            state = self.shared.idle.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        let requests = std::mem::take(&mut state.requests);
        drop(state);
        drop(requests);
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
        if state.requests.any_may_run() {
            state = shared.run_next(state, false);
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
        if waited.timed_out() && state.requests.len() == 0 {
            state.threads -= 1;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::policy;
    use super::super::requests::MAX_CANDIDATES;
    use super::super::requests::tests::{Numbered, job, numbers};
    use super::*;
    use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

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

    /// The module of [`Blocking`].
    const BLOCKING: u64 = 7;

    /// Runs until it is told to end, and relieves the queue meanwhile, if there is one. It takes most of the memory.
    struct Blocking {
        queue: Option<Arc<Queue>>,
        begin: Sender<()>,
        ended: Receiver<()>,
    }

    impl Job for Blocking {
        fn module(&self) -> u64 {
            BLOCKING
        }

        fn work(&self) -> Option<u64> {
            Some(0)
        }

        fn memory(&self) -> usize {
            policy::COMPILATIONS - 1
        }

        fn drop_stale(&self) {
            unreachable!("it runs at once");
        }

        fn run(self: Box<Self>) {
            let began = Instant::now();
            self.begin.send(()).expect("the test listens");
            while let Err(waited) = self.ended.recv_timeout(Duration::from_micros(100)) {
                assert_eq!(waited, RecvTimeoutError::Timeout, "the test goes on");
                self.queue.iter().for_each(|queue| queue.relieve(began));
            }
        }
    }

    /// More requests than a thread looks at wait while the only thread is busy.
    #[test]
    fn a_request_that_goes_first_does_not_wait_for_a_long_queue() {
        let (send, receive) = channel();
        let ((end, ended), (begin, begun)) = (channel(), channel());
        let queue = Queue::new(1);
        queue.push(1.0, Box::new(Blocking { queue: None, begin, ended })).expect("there are threads");
        begun.recv().expect("the job begins");
        let of = |number: u64, first: bool| Box::new(Numbered { module: BLOCKING, first, ..*job(number, &send).0 });
        for number in 100..100 + 2 * MAX_CANDIDATES as u64 {
            queue.push(1.0, of(number, false)).expect("there are threads");
        }
        queue.push(0.001, of(7, true)).expect("there are threads");
        end.send(()).expect("the job waits");
        queue.wait_idle();
        let seen = numbers(&receive);
        assert_eq!((seen[0], seen.len()), (7, 1 + 2 * MAX_CANDIDATES), "{seen:?}");
    }

    /// The only thread runs a compilation that would not end before another module's function is compiled.
    #[test]
    fn a_long_compilation_starts_a_thread_for_another_module() {
        let (send, receive) = channel();
        let ((begin, begun), (end, ended)) = (channel(), channel());
        let queue = Arc::new(Queue::new(1));
        queue.push(1.0, Box::new(Blocking { queue: Some(queue.clone()), begin, ended })).expect("there are threads");
        begun.recv().expect("it begins");
        let of = |module: u64, number: u64| Box::new(Numbered { module, ..*job(number, &send).0 });
        queue.push(9.0, of(BLOCKING, 1)).expect("there are threads");
        for number in [2, 3] {
            queue.push(1.0, of(8, number)).expect("there are threads");
        }
        let mut others = [(); 2].map(|()| receive.recv().expect("they run").0);
        others.sort_unstable();
        assert_eq!(others, [2, 3]);
        assert!(receive.try_recv().is_err(), "its own requests wait");
        end.send(()).expect("it runs");
        queue.wait_idle();
        assert_eq!(numbers(&receive), [1]);
    }

    /// The only thread compiles a large function, and counts no steps.
    #[test]
    fn a_request_starts_a_thread_beside_a_long_compilation() {
        let (send, receive) = channel();
        let ((begin, begun), (end, ended)) = (channel(), channel());
        let queue = Queue::new(1);
        queue.push(1.0, Box::new(Blocking { queue: None, begin, ended })).expect("there are threads");
        begun.recv().expect("it begins");
        let of = |module: u64, number: u64| Box::new(Numbered { module, ..*job(number, &send).0 });
        queue.push(9.0, of(BLOCKING, 1)).expect("there are threads");
        queue.push(1.0, of(8, 2)).expect("there are threads");
        assert_eq!(receive.recv().map(|(number, _)| number), Ok(2));
        end.send(()).expect("it runs");
        queue.wait_idle();
        assert_eq!(numbers(&receive), [1]);
    }

    /// A thread is free all the time.
    #[test]
    fn compilations_of_a_module_share_its_memory() {
        let (send, receive) = channel();
        let ((begin, begun), (end, ended)) = (channel(), channel());
        let queue = Queue::new(2);
        queue.push(1.0, Box::new(Blocking { queue: None, begin, ended })).expect("there are threads");
        begun.recv().expect("it begins");
        let of = |module: u64, number: u64, memory: usize| Box::new(Numbered { module, memory, ..*job(number, &send).0 });
        let all = policy::COMPILATIONS;
        for (module, number, memory) in [(BLOCKING, 1, 2 * all), (BLOCKING, 2, 2), (BLOCKING, 3, 1), (8, 4, 2 * all), (8, 5, all)]
        {
            queue.push(1.0, of(module, number, memory)).expect("there are threads");
        }
        let mut others = [(); 3].map(|()| receive.recv().expect("they run").0);
        others.sort_unstable();
        assert_eq!(others, [3, 4, 5]);
        assert!(receive.recv_timeout(Duration::from_millis(20)).is_err(), "they wait");
        end.send(()).expect("it runs");
        queue.wait_idle();
        let mut waited = numbers(&receive);
        waited.sort_unstable();
        assert_eq!(waited, [1, 2]);
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
