//! The background compiler: a bounded number of threads over a queue, ordered by [`priority`](super::policy::priority).

use crate::records::stack::with_room;
use crate::sys::thread;
use std::cmp;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Native stack for compiling one function on a thread of the guest.
pub(super) const COMPILER_STACK: usize = 1 << 20;

/// There is no compiler thread, and not enough stack for a job on the thread of the guest.
#[derive(Debug)]
pub(super) struct NoThread;

/// A queued job. The one with the highest priority runs first; of equal ones, the oldest.
struct Entry {
    priority: u64,
    /// Counts down, so that earlier entries compare greater.
    order: u64,
    job: Box<dyn FnOnce() + Send>,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> cmp::Ordering {
        (self.priority, self.order).cmp(&(other.priority, other.order))
    }
}

struct State {
    jobs: BinaryHeap<Entry>,
    order: u64,
    /// Number of jobs that are running.
    running: usize,
    threads: usize,
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

    /// Runs a job. A panic is caught and counted, so that it does not corrupt the queue's state.
    fn run(&self, job: Box<dyn FnOnce() + Send>) {
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(job)).is_err() {
            self.panics.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The queue. Threads start with the first jobs and end with the queue.
pub(crate) struct Queue {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("waiting", &self.shared.lock().jobs.len()).finish_non_exhaustive()
    }
}

impl Queue {
    /// Creates an empty queue for at most `limit` threads.
    pub(crate) fn new(limit: usize) -> Queue {
        let state = State { jobs: BinaryHeap::new(), order: u64::MAX, running: 0, threads: 0, closed: false };
        let shared =
            Shared { state: Mutex::new(state), wake: Condvar::new(), idle: Condvar::new(), limit, panics: AtomicU64::new(0) };
        Queue { shared: Arc::new(shared), threads: Mutex::new(Vec::new()) }
    }

    /// Queues a job of this priority. If there is no compiler thread and none can be started, runs the job before
    /// returning.
    ///
    /// # Errors
    /// [`NoThread`]: the job is dropped.
    pub(crate) fn push(&self, priority: u64, job: impl FnOnce() + Send + 'static) -> Result<(), NoThread> {
        let mut state = self.shared.lock();
        state.order -= 1;
        let entry = Entry { priority, order: state.order, job: Box::new(job) };
        state.jobs.push(entry);
        if state.threads < self.shared.limit {
            state.threads += 1;
            let shared = self.shared.clone();
            match thread::spawn("weir-compiler", move || work(&shared)) {
                Ok(handle) => self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(handle),
                Err(_) => {
                    state.threads -= 1;
                    if state.threads == 0 {
                        // This is the job just pushed: without threads no other job stays in the queue.
                        let job = state.jobs.pop();
                        drop(state);
                        let run = || job.into_iter().for_each(|entry| self.shared.run(entry.job));
                        return with_room(COMPILER_STACK, run).ok_or(NoThread);
                    }
                }
            }
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
        while !(state.jobs.is_empty() && state.running == 0) {
            state = self.shared.idle.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        let jobs = std::mem::take(&mut state.jobs);
        drop(state);
        drop(jobs);
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

fn work(shared: &Shared) {
    let mut state = shared.lock();
    loop {
        if let Some(entry) = state.jobs.pop() {
            state.running += 1;
            drop(state);
            shared.run(entry.job);
            state = shared.lock();
            state.running -= 1;
            if state.jobs.is_empty() && state.running == 0 {
                shared.idle.notify_all();
            }
        } else if state.closed {
            return;
        } else {
            state = shared.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    fn push(queue: &Queue, heat: u64, send: Sender<u64>) {
        queue
            .push(heat, move || {
                assert_ne!(heat, 13, "an unlucky job");
                send.send(heat).expect("the test listens");
            })
            .expect("there are threads");
    }

    #[test]
    fn every_job_runs_and_a_panic_stops_nothing() {
        let (send, receive) = channel();
        let queue = Queue::new(2);
        for heat in 0..50 {
            push(&queue, heat, send.clone());
        }
        queue.wait_idle();
        let mut seen: Vec<_> = receive.try_iter().collect();
        seen.sort_unstable();
        assert_eq!(queue.panics(), 1);
        assert_eq!(seen, (0..50).filter(|&heat| heat != 13).collect::<Vec<_>>());
    }

    #[test]
    fn dropping_the_queue_drops_what_waits() {
        let (send, receive) = channel();
        let queue = Queue::new(1);
        for heat in 0..1000 {
            push(&queue, heat + 100, send.clone());
        }
        drop(queue);
        drop(send);
        assert!(receive.iter().count() <= 1000);
    }
}
