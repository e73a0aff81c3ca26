//! Waiting for descriptors.

use super::calls::Call;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// The event to wait for on a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Interest {
    /// Reading does not block.
    Read,
    /// Writing does not block.
    Write,
}

/// A descriptor to wait for, and the events on it.
#[derive(Clone, Debug)]
pub(crate) struct Waited<'fd>(PollFd<'fd>);

impl<'fd> Waited<'fd> {
    /// Creates one without events.
    pub fn new(fd: BorrowedFd<'fd>, interest: Interest) -> Waited<'fd> {
        let flags = match interest {
            Interest::Read => PollFlags::IN,
            Interest::Write => PollFlags::OUT,
        };
        Waited(PollFd::from_borrowed_fd(fd, flags))
    }

    /// Returns whether a call would return at once, possibly with an error.
    pub fn happened(&self) -> bool {
        !self.0.revents().is_empty()
    }

    /// Returns whether the other end was closed.
    pub fn hung_up(&self) -> bool {
        self.0.revents().contains(PollFlags::HUP)
    }
}

/// Waits until there is an event on one of the descriptors, or until `timeout`. A signal ends the wait with an error.
///
/// # Errors
/// The host's error.
pub(crate) fn wait(descriptors: &mut [Waited<'_>], timeout: Option<Duration>) -> io::Result<()> {
    Call::Poll.enter()?;
    // A time that cannot be represented is treated as no timeout.
    let timeout: Option<Timespec> = timeout.and_then(|timeout| timeout.try_into().ok());
    let mut fds: Vec<PollFd<'_>> = descriptors.iter().map(|waited| waited.0.clone()).collect();
    rustix::event::poll(&mut fds, timeout.as_ref())?;
    for (waited, fd) in descriptors.iter_mut().zip(fds) {
        waited.0 = fd;
    }
    Ok(())
}

/// Returns how many bytes can be read without blocking.
///
/// # Errors
/// The host's error: not every object reports it.
pub(crate) fn readable_bytes(fd: impl AsFd) -> io::Result<u64> {
    Call::PollBytes.enter()?;
    Ok(rustix::io::ioctl_fionread(fd)?)
}
