//! Signals that end a guest.
//!
//! A guest is the first process of its PID namespace. Signals whose action is the default one are not delivered to such a process,
//! so a guest without handlers could be ended by SIGKILL only. Here these signals are blocked in all threads, and the first thread
//! waits for them. It ends the process whatever the guest's thread is doing.

use nix::sys::signal::{SigSet, Signal};

/// The signals that end a native process unless it handles them, without those that a thread raises itself and SIGPIPE, which
/// Rust's runtime ignores.
const ENDING: [Signal; 13] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
    Signal::SIGVTALRM,
    Signal::SIGPROF,
    Signal::SIGIO,
    Signal::SIGPWR,
    Signal::SIGSTKFLT,
    Signal::SIGABRT,
];

/// The signals that end a guest, blocked in the thread that made this and in all that it starts later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending(SigSet);

impl Ending {
    /// Blocks the signals. To be called before any other thread exists.
    ///
    /// # Errors
    /// The system's error.
    pub fn block() -> nix::Result<Ending> {
        let set: SigSet = ENDING.into_iter().collect();
        set.thread_block()?;
        Ok(Ending(set))
    }

    /// Waits for one of them, and returns the exit status of a process that it ends: 128 and its number.
    ///
    /// # Errors
    /// The system's error.
    pub fn wait(&self) -> nix::Result<i32> {
        Ok(128 + self.0.wait()? as i32)
    }
}
