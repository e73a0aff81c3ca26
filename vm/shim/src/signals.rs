//! Signals: those that end a guest, those that the shim sends, and the one by which a process ends with its parent.
//!
//! A guest is the first process of its PID namespace. Signals whose action is the default one are not delivered to such a process,
//! so a guest without handlers could be ended by SIGKILL only. Here these signals are blocked in all threads, and the first thread
//! waits for them. It ends the process whatever the guest's thread is doing.

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{SigHandler, SigSet, Signal};
use std::io;

/// The signals of faults, which have handlers of the engine. If one of them is sent, nothing happens.
const FAULTS: [Signal; 4] = [Signal::SIGSEGV, Signal::SIGBUS, Signal::SIGFPE, Signal::SIGILL];
/// Other signals that do nothing: those by which no process ends, which `ctr` passes on from its terminal, and SIGPIPE, which Rust's runtime
/// ignores.
const IGNORED: [Signal; 8] = [
    Signal::SIGCHLD,
    Signal::SIGCONT,
    Signal::SIGURG,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
    Signal::SIGTTIN,
    Signal::SIGTTOU,
    Signal::SIGPIPE,
];

/// Whether there is a signal of this number. The C library has two for itself.
pub(crate) fn exists(signal: i32) -> bool {
    matches!(signal, 1..=31 | 34..=64)
}

/// The signals that end a guest, blocked in the thread that made this and in all that it starts later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ending(SigSet);

impl Ending {
    /// Blocks the signals. To be called before any other thread exists, and before the engine.
    ///
    /// # Errors
    /// The system's error.
    pub fn block() -> nix::Result<Ending> {
        // With the real-time signals.
        let mut set = SigSet::all();
        for signal in FAULTS {
            // The engine's handler performs this action for a signal that was sent; the default one would remove the handler.
            // SAFETY: there is no new handler that could be unsound. The kernel ends a process that ignores a fault.
            unsafe { nix::sys::signal::signal(signal, SigHandler::SigIgn) }?;
        }
        FAULTS.into_iter().chain(IGNORED).for_each(|signal| set.remove(signal));
        set.thread_block()?;
        Ok(Ending(set))
    }

    /// Waits for one of them, and returns the exit status of a process that it ends: 128 and its number.
    ///
    /// # Errors
    /// The system's error.
    pub fn wait(&self) -> nix::Result<i32> {
        let mut received = 0;
        // Not by `SigSet::wait`, for which there are no real-time signals.
        // SAFETY: both places are there during the call.
        match unsafe { libc::sigwait(self.0.as_ref(), &mut received) } {
            0 => Ok(128 + received),
            error => Err(Errno::from_raw(error)),
        }
    }
}

/// Ignores SIGPIPE again, as Rust's runtime does. containerd's library handles it, and its handler of each signal writes to a socket. While the
/// process ends, that has no reader: writing is then a SIGPIPE, whose handler writes, and so on without end.
pub(crate) fn ignore_pipe() {
    // SAFETY: no handler is set.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Gives SIGPIPE its default action again, for a native program: it would inherit that it is ignored.
///
/// # Errors
/// The system's error.
pub(crate) fn restore_pipe() -> nix::Result<()> {
    // SAFETY: there is no new handler that could be unsound.
    unsafe { nix::sys::signal::signal(Signal::SIGPIPE, SigHandler::SigDfl) }.map(drop)
}

/// Has the kernel kill this process when its parent has ended. A change of the user undoes it.
///
/// # Errors
/// The system's error.
pub(crate) fn end_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?)
}

/// Sends a signal, a real-time signal too, to a process.
///
/// # Errors
/// The system's error.
pub(crate) fn send(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: it is always sound to send a signal.
    Errno::result(unsafe { libc::kill(pid, signal) }).map(drop).map_err(io::Error::from)
}
