//! Sources and sinks of a program's standard streams.

use crate::errno::Errno;
use crate::sys::file;
use crate::sys::stdio::{stderr, stdin, stdout};
use std::collections::VecDeque;
use std::io::{IoSlice, IsTerminal};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, PoisonError};

/// A sink that keeps the bytes written to it, up to a limit. Clones share their contents.
#[derive(Clone, Debug)]
pub struct OutputBuffer {
    bytes: Arc<Mutex<Vec<u8>>>,
    capacity: usize,
}

impl OutputBuffer {
    /// Creates an empty buffer. A guest that writes more than `capacity` bytes gets the error of a full disk.
    pub fn new(capacity: usize) -> OutputBuffer {
        OutputBuffer { bytes: Arc::default(), capacity }
    }

    /// Returns the bytes written so far.
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

/// A stream of the host process. Reads and writes are not buffered, because the guest has its own buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostStream {
    Stdin,
    Stdout,
    Stderr,
}

impl HostStream {
    fn fd(self) -> BorrowedFd<'static> {
        match self {
            HostStream::Stdin => stdin(),
            HostStream::Stdout => stdout(),
            HostStream::Stderr => stderr(),
        }
    }
}

/// A standard stream.
#[derive(Debug)]
pub(crate) enum Stream {
    /// Bytes to be read, then the end.
    Bytes(VecDeque<u8>),
    /// A sink that discards everything.
    Discard,
    /// A sink that keeps everything.
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
            Stream::Host(host) => host.fd().is_terminal(),
            Stream::Bytes(_) | Stream::Discard | Stream::Buffer(_) => false,
        }
    }

    /// Reads at most `into.len()` bytes and returns the number; 0 at the end.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Errno> {
        match self {
            Stream::Bytes(bytes) => {
                let count = into.len().min(bytes.len());
                for (to, from) in into.iter_mut().zip(bytes.drain(..count)) {
                    *to = from;
                }
                Ok(count)
            }
            Stream::Host(host @ HostStream::Stdin) => Ok(file::read(host.fd(), into)?),
            Stream::Discard | Stream::Buffer(_) | Stream::Host(_) => Err(Errno::Badf),
        }
    }

    /// Writes some of the bytes and returns the number.
    pub fn write(&mut self, buffers: &[IoSlice<'_>]) -> Result<usize, Errno> {
        match self {
            Stream::Discard => Ok(buffers.iter().map(|buffer| buffer.len()).sum()),
            Stream::Buffer(buffer) => buffer.write(buffers),
            Stream::Host(host @ (HostStream::Stdout | HostStream::Stderr)) => Ok(file::write(host.fd(), buffers)?),
            Stream::Bytes(_) | Stream::Host(HostStream::Stdin) => Err(Errno::Badf),
        }
    }

    /// Returns how many bytes in memory can be read.
    pub fn buffered(&self) -> u64 {
        match self {
            Stream::Bytes(bytes) => bytes.len() as u64,
            Stream::Discard | Stream::Buffer(_) | Stream::Host(_) => 0,
        }
    }

    /// Returns the process's descriptor, if this is one of its streams.
    pub fn host_fd(&self) -> Option<BorrowedFd<'static>> {
        match self {
            Stream::Host(host) => Some(host.fd()),
            Stream::Bytes(_) | Stream::Discard | Stream::Buffer(_) => None,
        }
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
