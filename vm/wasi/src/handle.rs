//! Objects of the host that are read and written by their descriptors.

use crate::host_stream::HostStream;
use cap_std::fs::File;
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
