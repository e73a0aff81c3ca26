//! Streams in memory, streams without bytes, and streams over the traits of tokio.

pub use super::adapters::{AsyncReadStream, AsyncWriteStream};

use super::streams::{CHUNK, InputStream, OutputStream, Pollable, StreamError, StreamResult};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes to be read, then the end. Clones share them: each byte is read once.
///
/// ```
/// use weir_wasi::{WasiCtxBuilder, p2::pipe::MemoryInputPipe};
///
/// let input = MemoryInputPipe::new("what the program reads");
/// let ctx = WasiCtxBuilder::new().stdin(input.clone()).build_p1();
/// assert!(!input.is_empty(), "the program has not run");
/// # drop(ctx);
/// ```
#[derive(Clone, Debug)]
pub struct MemoryInputPipe {
    rest: Arc<Mutex<Bytes>>,
}

impl MemoryInputPipe {
    /// Creates a stream of these bytes.
    pub fn new(bytes: impl Into<Bytes>) -> Self {
        MemoryInputPipe { rest: Arc::new(Mutex::new(bytes.into())) }
    }

    /// Returns whether everything has been read.
    pub fn is_empty(&self) -> bool {
        lock(&self.rest).is_empty()
    }

    fn take(&self, size: usize) -> Bytes {
        let mut rest = lock(&self.rest);
        let size = size.min(rest.len());
        rest.split_to(size)
    }
}

impl InputStream for MemoryInputPipe {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if self.is_empty() { Err(StreamError::Closed) } else { Ok(self.take(size)) }
    }
}

#[async_trait]
impl Pollable for MemoryInputPipe {
    async fn ready(&mut self) {}
}

impl AsyncRead for MemoryInputPipe {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        into.put_slice(&self.take(into.remaining()));
        Poll::Ready(Ok(()))
    }
}

/// Keeps the bytes written to it, up to a limit. Clones share them.
///
/// ```
/// use weir_wasi::{WasiCtxBuilder, p2::pipe::MemoryOutputPipe};
///
/// let output = MemoryOutputPipe::new(1 << 20);
/// let ctx = WasiCtxBuilder::new().stdout(output.clone()).build_p1();
/// // … the program runs …
/// drop(ctx);
/// assert_eq!(output.contents(), "");
/// ```
#[derive(Clone, Debug)]
pub struct MemoryOutputPipe {
    capacity: usize,
    written: Arc<Mutex<BytesMut>>,
}

impl MemoryOutputPipe {
    /// Creates an empty one. A write of more than `capacity` bytes in total fails with the error number `io`, after the bytes for which
    /// there is room.
    pub fn new(capacity: usize) -> Self {
        MemoryOutputPipe { capacity, written: Arc::default() }
    }

    /// Returns a copy of the bytes written so far.
    pub fn contents(&self) -> Bytes {
        lock(&self.written).clone().freeze()
    }

    /// Returns the bytes written. `None` if there are clones; that of a [`WasiCtx`](crate::WasiCtx) is one.
    pub fn try_into_inner(self) -> Option<BytesMut> {
        let written = Arc::into_inner(self.written)?;
        Some(written.into_inner().unwrap_or_else(PoisonError::into_inner))
    }

    /// Accepts as many of the bytes as there is room for, and returns the number.
    fn put(&self, bytes: &[u8]) -> usize {
        let mut written = lock(&self.written);
        let count = bytes.len().min(self.capacity - written.len());
        written.extend_from_slice(&bytes[..count]);
        count
    }

    fn room(&self) -> usize {
        self.capacity - lock(&self.written).len()
    }
}

impl OutputStream for MemoryOutputPipe {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if bytes.len() > self.room() {
            return Err(StreamError::trap("write beyond capacity of MemoryOutputPipe"));
        }
        self.put(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        match self.room() {
            0 => Err(StreamError::Closed),
            room => Ok(room),
        }
    }
}

#[async_trait]
impl Pollable for MemoryOutputPipe {
    async fn ready(&mut self) {}
}

impl AsyncWrite for MemoryOutputPipe {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(self.put(bytes)))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A stream that accepts everything and keeps nothing.
#[derive(Clone, Copy, Debug)]
pub struct SinkOutputStream;

impl OutputStream for SinkOutputStream {
    fn write(&mut self, _: Bytes) -> StreamResult<()> {
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(CHUNK)
    }
}

#[async_trait]
impl Pollable for SinkOutputStream {
    async fn ready(&mut self) {}
}

/// A stream that is at its end.
#[derive(Clone, Copy, Debug)]
pub struct ClosedInputStream;

impl InputStream for ClosedInputStream {
    fn read(&mut self, _: usize) -> StreamResult<Bytes> {
        Err(StreamError::Closed)
    }
}

#[async_trait]
impl Pollable for ClosedInputStream {
    async fn ready(&mut self) {}
}

/// A stream that accepts nothing: a program that writes to it gets the error number `io`.
#[derive(Clone, Copy, Debug)]
pub struct ClosedOutputStream;

impl OutputStream for ClosedOutputStream {
    fn write(&mut self, _: Bytes) -> StreamResult<()> {
        Err(StreamError::Closed)
    }

    fn flush(&mut self) -> StreamResult<()> {
        Err(StreamError::Closed)
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Err(StreamError::Closed)
    }
}

#[async_trait]
impl Pollable for ClosedOutputStream {
    async fn ready(&mut self) {}
}

/// Nothing panics while one of these is locked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::thread::block_on;

    #[test]
    fn output_fills_up() {
        let pipe = MemoryOutputPipe::new(5);
        let mut stream = pipe.clone();
        block_on(stream.blocking_write_and_flush("abc".into())).unwrap();
        assert_eq!(stream.check_write().unwrap(), 2);
        assert!(matches!(stream.write("def".into()), Err(StreamError::Trap(_))));
        assert!(matches!(block_on(stream.blocking_write_and_flush("def".into())), Err(StreamError::Closed)));
        assert_eq!(pipe.contents(), "abcde");
        assert!(pipe.clone().try_into_inner().is_none());
        drop(stream);
        assert_eq!(pipe.try_into_inner().unwrap(), "abcde");
        let mut full = MemoryOutputPipe::new(2);
        block_on(full.blocking_write_and_flush("ab".into())).unwrap();
        assert!(matches!(full.write_zeroes(1), Err(StreamError::Closed)));
    }

    #[test]
    fn input_ends() {
        let pipe = MemoryInputPipe::new("abcd");
        let mut stream = pipe.clone();
        assert_eq!(block_on(stream.blocking_read(2)).unwrap(), "ab");
        assert_eq!(stream.skip(1).unwrap(), 1);
        assert_eq!(block_on(stream.blocking_read(0)).unwrap(), "");
        assert!(!pipe.is_empty());
        assert_eq!(stream.read(9).unwrap(), "d");
        assert!(matches!(block_on(stream.blocking_read(0)), Err(StreamError::Closed)));
        assert!(pipe.is_empty());
    }

    /// It is always ready, and never has a byte.
    struct Liar;

    #[async_trait]
    impl Pollable for Liar {
        async fn ready(&mut self) {}
    }

    impl InputStream for Liar {
        fn read(&mut self, _: usize) -> StreamResult<Bytes> {
            Ok(Bytes::new())
        }
    }

    #[test]
    fn a_stream_that_never_has_bytes_is_given_up() {
        assert!(matches!(block_on(Liar.blocking_read(1)), Err(StreamError::Trap(_))));
    }
}
