//! Where a program's standard streams come from and go to.

use crate::errno::Errno;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::collections::VecDeque;
use std::io::{IoSlice, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};

/// A sink that keeps what is written to it, up to a limit. Clones share their contents.
#[derive(Clone, Debug)]
pub struct OutputBuffer {
    bytes: Arc<Mutex<Vec<u8>>>,
    capacity: usize,
}

impl OutputBuffer {
    /// An empty buffer. A guest that writes more than `capacity` bytes gets the error of a full disk.
    pub fn new(capacity: usize) -> OutputBuffer {
        OutputBuffer { bytes: Arc::default(), capacity }
    }

    /// What was written so far.
    pub fn contents(&self) -> Vec<u8> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn write(&self, buffers: &[IoSlice<'_>]) -> Result<usize, Errno> {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let before = bytes.len();
        for buffer in buffers {
            let room = self.capacity - bytes.len();
            bytes.extend_from_slice(&buffer[..buffer.len().min(room)]);
        }
        let wanted: usize = buffers.iter().map(|buffer| buffer.len()).sum();
        let written = bytes.len() - before;
        if written == 0 && wanted > 0 { Err(Errno::Nospc) } else { Ok(written) }
    }
}

/// One of the host process's streams. It is read and written without a buffer in between: the guest has its own.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostStream {
    Stdin,
    Stdout,
    Stderr,
}

impl HostStream {
    fn with_fd<R>(self, f: impl FnOnce(BorrowedFd<'_>) -> R) -> R {
        match self {
            HostStream::Stdin => f(std::io::stdin().as_fd()),
            HostStream::Stdout => f(std::io::stdout().as_fd()),
            HostStream::Stderr => f(std::io::stderr().as_fd()),
        }
    }
}

/// What a descriptor refers to.
#[derive(Debug)]
pub(crate) enum Stream {
    /// Bytes to be read, then the end.
    Bytes(VecDeque<u8>),
    /// A sink that forgets.
    Discard,
    /// A sink that remembers.
    Buffer(OutputBuffer),
    /// A stream of the process.
    Host(HostStream),
}

impl Stream {
    pub fn readable(&self) -> bool {
        matches!(self, Stream::Bytes(_) | Stream::Host(HostStream::Stdin))
    }

    pub fn is_terminal(&self) -> bool {
        match self {
            Stream::Host(host) => host.with_fd(|fd| fd.is_terminal()),
            Stream::Bytes(_) | Stream::Discard | Stream::Buffer(_) => false,
        }
    }

    /// Reads at most `into.len()` bytes; 0 is the end.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        match self {
            Stream::Bytes(bytes) => {
                let count = into.len().min(bytes.len());
                for (to, from) in into.iter_mut().zip(bytes.drain(..count)) {
                    *to = from;
                }
                Ok(count)
            }
            Stream::Host(host @ HostStream::Stdin) => {
                host.with_fd(|fd| Ok(rustix::io::retry_on_intr(|| rustix::io::read(fd, &mut *into))?))
            }
            Stream::Discard | Stream::Buffer(_) | Stream::Host(_) => Err(Errno::Badf),
        }
    }

    /// Writes some of the bytes; how many.
    pub fn write(&mut self, buffers: &[IoSlice<'_>]) -> Result<usize, Errno> {
        match self {
            Stream::Discard => Ok(buffers.iter().map(|buffer| buffer.len()).sum()),
            Stream::Buffer(buffer) => buffer.write(buffers),
            Stream::Host(host @ (HostStream::Stdout | HostStream::Stderr)) => {
                host.with_fd(|fd| Ok(rustix::io::retry_on_intr(|| rustix::io::writev(fd, buffers))?))
            }
            Stream::Bytes(_) | Stream::Host(HostStream::Stdin) => Err(Errno::Badf),
        }
    }

    /// How many bytes can be read at once, if that is known: 0 at the end.
    pub fn available(&self) -> u64 {
        match self {
            Stream::Bytes(bytes) => bytes.len() as u64,
            Stream::Host(HostStream::Stdin) => 1,
            Stream::Discard | Stream::Buffer(_) | Stream::Host(_) => 0,
        }
    }

    /// Whether a read would return at once, waiting for that until `timeout`, or for ever without one. Only the process's
    /// own input ever waits.
    pub fn poll_read(&self, timeout: Option<Timespec>) -> Result<bool, Errno> {
        let Stream::Host(host @ HostStream::Stdin) = self else { return Ok(true) };
        host.with_fd(|fd| {
            let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
            match rustix::event::poll(&mut fds, timeout.as_ref()) {
                Ok(ready) => Ok(ready > 0),
                Err(rustix::io::Errno::INTR) => Ok(false),
                Err(error) => Err(error.into()),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_fill_up() {
        let buffer = OutputBuffer::new(5);
        let mut stream = Stream::Buffer(buffer.clone());
        assert_eq!(stream.write(&[IoSlice::new(b"abc"), IoSlice::new(b"def")]), Ok(5));
        assert_eq!(buffer.contents(), b"abcde");
        assert_eq!(stream.write(&[IoSlice::new(b"g")]), Err(Errno::Nospc));
        assert_eq!(stream.write(&[]), Ok(0));
        assert_eq!(stream.read(&mut [0]), Err(Errno::Badf));
    }

    #[test]
    fn bytes_end() {
        let mut stream = Stream::Bytes(VecDeque::from(*b"abc"));
        let mut two = [0; 2];
        assert_eq!((stream.read(&mut two), two), (Ok(2), *b"ab"));
        assert_eq!(stream.read(&mut two), Ok(1));
        assert_eq!(stream.read(&mut two), Ok(0));
        assert_eq!(stream.write(&[IoSlice::new(b"x")]), Err(Errno::Badf));
    }
}
