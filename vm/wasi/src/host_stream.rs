//! Standard streams of the host, which calls of the host read and write: those of the process, and files of the embedder.

use crate::sys::stdio::{stderr, stdin, stdout};
use std::io::IsTerminal;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// A stream of the host. Reads and writes are not buffered, because the guest has its own buffer.
#[derive(Clone, Debug)]
pub(crate) enum HostStream {
    Stdin,
    Stdout,
    Stderr,
    Input(Arc<OwnedFd>),
    Output(Arc<OwnedFd>),
}

impl AsFd for HostStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            HostStream::Stdin => stdin(),
            HostStream::Stdout => stdout(),
            HostStream::Stderr => stderr(),
            HostStream::Input(file) | HostStream::Output(file) => file.as_fd(),
        }
    }
}

impl HostStream {
    pub fn readable(&self) -> bool {
        match self {
            HostStream::Stdin | HostStream::Input(_) => true,
            HostStream::Stdout | HostStream::Stderr | HostStream::Output(_) => false,
        }
    }

    /// Files of the embedder are none to the program, whatever they are.
    pub fn is_terminal(&self) -> bool {
        match self {
            HostStream::Stdin | HostStream::Stdout | HostStream::Stderr => self.as_fd().is_terminal(),
            HostStream::Input(_) | HostStream::Output(_) => false,
        }
    }
}
