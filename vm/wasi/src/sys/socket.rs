//! Sockets. They are read like files.

use super::calls::Call;
use super::retry::retry;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, accept_with, recv, sendmsg};
use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};

/// Accepts the next connection of a listening socket.
///
/// # Errors
/// The host's error.
pub(crate) fn accept(listener: impl AsFd, nonblocking: bool) -> io::Result<OwnedFd> {
    let flags = if nonblocking { SocketFlags::CLOEXEC | SocketFlags::NONBLOCK } else { SocketFlags::CLOEXEC };
    retry(|| {
        Call::SocketAccept.enter()?;
        Ok(accept_with(&listener, flags)?)
    })
}

/// Options of [`receive`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Receive {
    /// The bytes remain, and the next call receives them again.
    pub peek: bool,
    /// Waits until the buffer is full.
    pub wait_all: bool,
    /// Waits until there are bytes; without it, that is an error.
    pub wait: bool,
}

/// Receives at most `into.len()` bytes and returns the number; 0 at the end.
///
/// # Errors
/// The host's error.
pub(crate) fn receive(socket: impl AsFd, into: &mut [u8], how: Receive) -> io::Result<usize> {
    let mut flags = RecvFlags::empty();
    flags.set(RecvFlags::PEEK, how.peek);
    flags.set(RecvFlags::WAITALL, how.wait_all);
    flags.set(RecvFlags::DONTWAIT, !how.wait);
    retry(|| {
        Call::SocketReceive.enter()?;
        Ok(recv(&socket, &mut *into, flags)?.0)
    })
}

/// Sends some of the bytes on a connection and returns the number. If it does not `wait`, nothing is sent where it would have to. A write to
/// a socket whose other end is closed would send the process SIGPIPE, which ends a host that does not ignore it; this does not.
///
/// # Errors
/// The host's error.
pub(crate) fn send(socket: impl AsFd, bytes: &[IoSlice<'_>], wait: bool) -> io::Result<usize> {
    // A message of no bytes would be one, or an error at the end of a connection; a write of none is nothing.
    if bytes.iter().all(|slice| slice.is_empty()) {
        return Ok(0);
    }
    let mut flags = SendFlags::NOSIGNAL;
    flags.set(SendFlags::DONTWAIT, !wait);
    retry(|| {
        Call::SocketSend.enter()?;
        Ok(sendmsg(&socket, bytes, &mut SendAncillaryBuffer::default(), flags)?)
    })
}

/// Closes one direction of a connection, or both.
///
/// # Errors
/// The host's error.
pub(crate) fn shutdown(socket: impl AsFd, how: Shutdown) -> io::Result<()> {
    Call::SocketShutdown.enter()?;
    let how = match how {
        Shutdown::Read => rustix::net::Shutdown::Read,
        Shutdown::Write => rustix::net::Shutdown::Write,
        Shutdown::Both => rustix::net::Shutdown::Both,
    };
    Ok(rustix::net::shutdown(socket, how)?)
}
