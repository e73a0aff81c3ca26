//! The background compiler: a bounded number of threads over a queue, hottest first.

use crate::sys::thread;
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Something to compile; the greatest is compiled first, equal ones in the order in which they came.
pub(crate) trait Job: Send + 'static {
    /// How much the guest would gain.
    fn heat(&self) -> u64;
    /// Does it.
    fn run(self);
}

struct Entry<J> {
    heat: u64,
    /// Counts down, so that earlier entries are greater.
    order: u64,
    job: J,
}

impl<J> PartialEq for Entry<J> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<J> Eq for Entry<J> {}

impl<J> PartialOrd for Entry<J> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<J> Ord for Entry<J> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.heat, self.order).cmp(&(other.heat, other.order))
    }
}

struct State<J> {
    jobs: BinaryHeap<Entry<J>>,
    order: u64,
    /// Jobs being run.
    running: usize,
    threads: usize,
    closed: bool,
}

struct Shared<J> {
    state: Mutex<State<J>>,
    /// A job came, or the queue closed.
    wake: Condvar,
    /// Nothing is queued or running.
    idle: Condvar,
    limit: usize,
}

impl<J> Shared<J> {
    fn lock(&self) -> MutexGuard<'_, State<J>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Threads start with the first jobs and end with the queue.
pub(crate) struct Queue<J: Job> {
    shared: Arc<Shared<J>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl<J: Job> std::fmt::Debug for Queue<J> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("waiting", &self.shared.lock().jobs.len()).finish_non_exhaustive()
    }
}

impl<J: Job> Queue<J> {
    /// An empty queue for at most `limit` threads.
    pub(crate) fn new(limit: usize) -> Queue<J> {
        let state = State { jobs: BinaryHeap::new(), order: u64::MAX, running: 0, threads: 0, closed: false };
        let shared = Shared { state: Mutex::new(state), wake: Condvar::new(), idle: Condvar::new(), limit };
        Queue { shared: Arc::new(shared), threads: Mutex::new(Vec::new()) }
    }

    /// Queues a job. If no thread can be started for it, it is run here.
    pub(crate) fn push(&self, job: J) {
        let mut state = self.shared.lock();
        state.order -= 1;
        let entry = Entry { heat: job.heat(), order: state.order, job };
        state.jobs.push(entry);
        if state.threads < self.shared.limit {
            state.threads += 1;
            let shared = self.shared.clone();
            match thread::spawn("weir-compiler", move || work(&shared)) {
                Ok(handle) => self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(handle),
                Err(_) => {
                    state.threads -= 1;
                    let job = if state.threads == 0 { state.jobs.pop() } else { None };
                    drop(state);
                    if let Some(entry) = job {
                        entry.job.run();
                    }
                    return;
                }
            }
        }
        drop(state);
        self.shared.wake.notify_one();
    }

    /// Waits until everything queued so far is done.
    #[cfg(test)]
    pub(crate) fn wait_idle(&self) {
        let mut state = self.shared.lock();
        while !(state.jobs.is_empty() && state.running == 0) {
            state = self.shared.idle.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<J: Job> Drop for Queue<J> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        let jobs = std::mem::take(&mut state.jobs);
        drop(state);
        drop(jobs);
        self.shared.wake.notify_all();
        let this = std::thread::current().id();
        for thread in self.threads.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
            // The last owner of an engine may be a job; its thread cannot wait for itself. A panic there was reported.
            if thread.thread().id() != this {
                let _ = thread.join();
            }
        }
    }
}

fn work<J: Job>(shared: &Shared<J>) {
    let mut state = shared.lock();
    loop {
        if let Some(entry) = state.jobs.pop() {
            state.running += 1;
            drop(state);
            // A compiler bug must not take the queue's bookkeeping down with it: the job's function stays interpreted.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| entry.job.run()));
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

    struct Send1(u64, Sender<u64>);

    impl Job for Send1 {
        fn heat(&self) -> u64 {
            self.0
        }

        fn run(self) {
            if self.0 == 13 {
                panic!("an unlucky job");
            }
            self.1.send(self.0).expect("the test listens");
        }
    }

    #[test]
    fn every_job_runs_and_a_panic_stops_nothing() {
        let (send, receive) = channel();
        let queue = Queue::new(2);
        for heat in 0..50 {
            queue.push(Send1(heat, send.clone()));
        }
        queue.wait_idle();
        let mut seen: Vec<_> = receive.try_iter().collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..50).filter(|&heat| heat != 13).collect::<Vec<_>>());
    }

    #[test]
    fn dropping_the_queue_drops_what_waits() {
        let (send, receive) = channel();
        let queue = Queue::new(1);
        for heat in 0..1000 {
            queue.push(Send1(heat + 100, send.clone()));
        }
        drop(queue);
        drop(send);
        assert!(receive.iter().count() <= 1000);
    }
}
