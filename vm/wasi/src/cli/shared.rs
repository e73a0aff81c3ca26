//! Readers and writers of tokio as standard streams.

use super::{IsTerminal, StdinStream, StdoutStream};
use crate::p2::pipe::{AsyncReadStream, AsyncWriteStream};
use crate::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};
use async_trait::async_trait;
use bytes::Bytes;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A [`tokio::io::AsyncRead`] as standard input. All streams of it share its position.
///
/// ```
/// use weir_wasi::{WasiCtxBuilder, cli::AsyncStdinStream};
///
/// // What is written to the other end while the program runs is its input.
/// let (near, far) = tokio::io::duplex(4096);
/// let ctx = WasiCtxBuilder::new().stdin(AsyncStdinStream::new(near)).build_p1();
/// # drop((ctx, far));
/// ```
pub struct AsyncStdinStream(Arc<Mutex<AsyncReadStream>>);

/// A [`tokio::io::AsyncWrite`] as standard output or error.
///
/// ```
/// use weir_wasi::{WasiCtxBuilder, cli::AsyncStdoutStream};
///
/// let (near, far) = tokio::io::duplex(4096);
/// let ctx = WasiCtxBuilder::new().stdout(AsyncStdoutStream::new(4096, near)).build_p1();
/// # drop((ctx, far));
/// ```
pub struct AsyncStdoutStream(Arc<Mutex<AsyncWriteStream>>);

impl AsyncStdinStream {
    /// Creates an input that is read from `s`.
    pub fn new(s: impl AsyncRead + Send + Sync + 'static) -> Self {
        AsyncStdinStream(Arc::new(Mutex::new(AsyncReadStream::new(s))))
    }
}

impl AsyncStdoutStream {
    /// Creates an output that is written to `s`, and accepts at most `budget` bytes before they are written.
    pub fn new(budget: usize, s: impl AsyncWrite + Send + Sync + 'static) -> Self {
        AsyncStdoutStream(Arc::new(Mutex::new(AsyncWriteStream::new(budget, s))))
    }
}

impl IsTerminal for AsyncStdinStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl IsTerminal for AsyncStdoutStream {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdinStream for AsyncStdinStream {
    fn async_stream(&self) -> Box<dyn AsyncRead + Send + Sync> {
        Box::new(AsyncStdinStream(Arc::clone(&self.0)))
    }

    fn p2_stream(&self) -> Box<dyn InputStream> {
        Box::new(AsyncStdinStream(Arc::clone(&self.0)))
    }
}

impl StdoutStream for AsyncStdoutStream {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(AsyncStdoutStream(Arc::clone(&self.0)))
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(AsyncStdoutStream(Arc::clone(&self.0)))
    }
}

#[async_trait]
impl Pollable for AsyncStdinStream {
    async fn ready(&mut self) {
        poll_fn(|cx| lock(&self.0).poll_ready(cx)).await;
    }
}

impl InputStream for AsyncStdinStream {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        lock(&self.0).read(size)
    }
}

impl AsyncRead for AsyncStdinStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut stream = lock(&self.0);
        ready!(stream.poll_ready(cx));
        match stream.read(into.remaining()) {
            Ok(bytes) => into.put_slice(&bytes),
            Err(StreamError::Closed) => {}
            Err(StreamError::LastOperationFailed(error) | StreamError::Trap(error)) => return Poll::Ready(Err(io_error(error))),
        }
        Poll::Ready(Ok(()))
    }
}

#[async_trait]
impl Pollable for AsyncStdoutStream {
    async fn ready(&mut self) {
        poll_fn(|cx| lock(&self.0).poll_ready(cx)).await;
    }
}

impl OutputStream for AsyncStdoutStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        lock(&self.0).write(bytes)
    }

    fn flush(&mut self) -> StreamResult<()> {
        lock(&self.0).flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        lock(&self.0).check_write()
    }
}

impl AsyncWrite for AsyncStdoutStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut stream = lock(&self.0);
        ready!(stream.poll_ready(cx));
        Poll::Ready(count(stream.check_write().and_then(|room| {
            let count = room.min(bytes.len());
            stream.write(Bytes::copy_from_slice(&bytes[..count])).map(|()| count)
        })))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut stream = lock(&self.0);
        let flushed = stream.flush();
        ready!(stream.poll_ready(cx));
        Poll::Ready(count(flushed.and_then(|()| stream.check_write())).map(drop))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(cx)
    }
}

/// A writer that is closed writes no bytes.
fn count(result: StreamResult<usize>) -> io::Result<usize> {
    match result {
        Ok(count) => Ok(count),
        Err(StreamError::Closed) => Ok(0),
        Err(StreamError::LastOperationFailed(error) | StreamError::Trap(error)) => Err(io_error(error)),
    }
}

fn io_error(error: weir::Error) -> io::Error {
    error.downcast::<io::Error>().unwrap_or_else(|error| io::Error::other(error.to_string()))
}

/// Nothing panics while one of these is locked, unless the stream beneath does.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
