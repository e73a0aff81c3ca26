//! The compilations of a module whose code is kept for later processes. The end of the process waits a little for them.

use super::entry::Key;
use std::collections::{HashMap, HashSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The compilations that are running.
#[derive(Debug, Default)]
pub(super) struct Running {
    state: Mutex<State>,
    /// Signals the end of one, and that no more follow.
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// When each probably ends.
    ends: HashMap<Key, Instant>,
    /// Whether more of them follow, one after another.
    more: bool,
    /// Until when the end of the process waits, while it does.
    limit: Option<Instant>,
    /// Those that were stopped.
    stopped: HashSet<Key>,
    /// Those that the last such wait did not see end.
    cut_off: Vec<Key>,
}

/// A running compilation. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Compiling<'r> {
    running: &'r Running,
    key: Key,
}

impl Running {
    /// Begins the compilation of an entry, which probably takes until `end`.
    pub fn begin(&self, key: Key, end: Instant) -> Compiling<'_> {
        let mut state = self.lock();
        state.ends.insert(key, end);
        state.stopped.remove(&key);
        drop(state);
        Compiling { running: self, key }
    }

    /// Sets whether more compilations follow, and returns whether that was so.
    pub fn set_more(&self, more: bool) -> bool {
        let before = std::mem::replace(&mut self.lock().more, more);
        self.ended.notify_all();
        before
    }

    /// Waits until no compilation is left that probably ends before this limit, and not longer. Returns whether any is left.
    pub fn wait_until(&self, limit: Instant) -> bool {
        let mut state = self.lock();
        state.limit = Some(limit);
        while (state.more || state.ends.values().any(|end| *end <= limit))
            && let Some(left) = Some(limit.saturating_duration_since(Instant::now())).filter(|left| !left.is_zero())
        {
            state = self.ended.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.limit = None;
        state.cut_off = state.ends.keys().copied().collect();
        !(state.cut_off.is_empty() && state.stopped.is_empty())
    }

    /// Returns how long the end of the process waits from now on, if it does.
    pub fn left(&self) -> Option<Duration> {
        Some(self.lock().limit?.saturating_duration_since(Instant::now()))
    }

    /// Returns whether the last wait did not see the end of this compilation, or it was stopped.
    pub fn has_cut_off(&self, key: Key) -> bool {
        let state = self.lock();
        state.cut_off.contains(&key) || state.stopped.contains(&key)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Compiling<'_> {
    /// Ends it without its result.
    pub fn cut_off(self) {
        self.running.lock().stopped.insert(self.key);
    }
}

impl Drop for Compiling<'_> {
    fn drop(&mut self) {
        self.running.lock().ends.remove(&self.key);
        self.running.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use weir_contract::Entry;

    const HOUR: Duration = Duration::from_secs(3_600);

    #[test]
    fn only_what_is_nearly_done_is_waited_for() {
        let running = Running::default();
        let now = Instant::now();
        let [soon, late] = [1, 2].map(|func| Key::top(func, Entry::Call));
        assert_eq!(running.left(), None);
        let _late = running.begin(late, now + 2 * HOUR);
        // Otherwise this takes an hour.
        assert!(running.wait_until(now + HOUR));
        thread::scope(|scope| {
            let compiling = running.begin(soon, now);
            scope.spawn(move || drop(compiling));
            running.wait_until(now + HOUR);
        });
        assert!(!running.has_cut_off(soon) && running.has_cut_off(late));
        // It takes longer than expected.
        let _slow = running.begin(soon, now);
        assert!(running.wait_until(Instant::now()) && running.has_cut_off(soon));
        let stopped = Key::top(3, Entry::Call);
        running.begin(stopped, now).cut_off();
        assert!(running.wait_until(Instant::now()) && running.has_cut_off(stopped));
        assert_eq!(running.left(), None);
    }

    #[test]
    fn those_that_follow_are_waited_for() {
        let running = Running::default();
        let key = Key::baseline(1);
        assert!(!running.set_more(true));
        thread::scope(|scope| {
            scope.spawn(|| {
                while running.left().is_none() {
                    thread::yield_now();
                }
                drop(running.begin(key, Instant::now()));
                running.set_more(false)
            });
            assert!(!running.wait_until(Instant::now() + HOUR));
        });
        assert!(!running.set_more(true) && !running.has_cut_off(key));
    }
}
