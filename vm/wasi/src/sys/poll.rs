//! Waiting for descriptors.

use super::calls::Call;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// What to wait for on a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Interest {
    /// That reading would not wait.
    Read,
    /// That writing would not wait.
    Write,
}

/// A descriptor to wait for, and what happened on it.
#[derive(Clone, Debug)]
pub(crate) struct Waited<'fd>(PollFd<'fd>);

impl<'fd> Waited<'fd> {
    /// Nothing happened on it yet.
    pub fn new(fd: BorrowedFd<'fd>, interest: Interest) -> Waited<'fd> {
        let flags = match interest {
            Interest::Read => PollFlags::IN,
            Interest::Write => PollFlags::OUT,
        };
        Waited(PollFd::from_borrowed_fd(fd, flags))
    }

    /// Whether a call would return at once, with an error perhaps.
    pub fn happened(&self) -> bool {
        !self.0.revents().is_empty()
    }

    /// Whether the other end was closed.
    pub fn hung_up(&self) -> bool {
        self.0.revents().contains(PollFlags::HUP)
    }
}

/// Waits until something happens on one of the descriptors, but no longer than `timeout`. A signal ends the wait with an error.
///
/// # Errors
/// The host's.
pub(crate) fn wait(descriptors: &mut [Waited<'_>], timeout: Option<Duration>) -> io::Result<()> {
    Call::Poll.enter()?;
    // A time too long to express is as good as none.
    let timeout: Option<Timespec> = timeout.and_then(|timeout| timeout.try_into().ok());
    let mut fds: Vec<PollFd<'_>> = descriptors.iter().map(|waited| waited.0.clone()).collect();
    rustix::event::poll(&mut fds, timeout.as_ref())?;
    for (waited, fd) in descriptors.iter_mut().zip(fds) {
        waited.0 = fd;
    }
    Ok(())
}

/// How many bytes can be read without waiting.
///
/// # Errors
/// The host's: not everything can tell.
pub(crate) fn readable_bytes(fd: impl AsFd) -> io::Result<u64> {
    Call::PollBytes.enter()?;
    Ok(rustix::io::ioctl_fionread(fd)?)
}
