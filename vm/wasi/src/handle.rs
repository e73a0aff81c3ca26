//! Objects of the host that are read and written by their descriptors.

use crate::host_stream::HostStream;
use crate::sys::{file, socket};
use cap_std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// What the host reads and writes by its descriptor.
#[derive(Clone)]
pub(crate) enum Handle {
    Stream(HostStream),
    File(Arc<File>),
    Socket(Arc<OwnedFd>),
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Handle::Stream(stream) => stream.as_fd(),
            Handle::File(file) => file.as_fd(),
            Handle::Socket(socket) => socket.as_fd(),
        }
    }
}

impl Handle {
    /// Writes some of the bytes, of a file at its position, and returns the number.
    ///
    /// # Errors
    /// The host's error.
    pub fn write(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Handle::Socket(socket) => socket::send(socket, bytes, true),
            Handle::Stream(_) | Handle::File(_) => file::write(self, bytes),
        }
    }

    /// Writes as [`Handle::write`] does, but fails where that would wait before the first byte.
    ///
    /// # Errors
    /// As there; or it is not known whether it would wait.
    pub fn write_now(&self, bytes: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Handle::Socket(socket) => socket::send(socket, bytes, false),
            Handle::Stream(_) | Handle::File(_) => file::write_now(self, bytes),
        }
    }
}
