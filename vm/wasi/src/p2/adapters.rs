//! Streams over the asynchronous traits of tokio. They are polled where they are used, so they need no task of their own, and no runtime
//! unless the stream beneath does.

use super::streams::{CHUNK, InputStream, OutputStream, Pollable, StreamError, StreamResult};
use async_trait::async_trait;
use bytes::{Buf, Bytes, BytesMut};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The tasks that wait for a stream. The stream beneath keeps one waker, but several handles may wait for it, and those operations that
/// do not wait poll it, too.
#[derive(Default)]
struct Waiting(Mutex<Vec<Waker>>);

impl Waiting {
    fn add(&self, waker: &Waker) {
        let mut wakers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !wakers.iter().any(|other| other.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }
}

impl Wake for Waiting {
    fn wake(self: Arc<Self>) {
        let wakers = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        wakers.into_iter().for_each(Waker::wake);
    }
}

/// A stream beneath, which need not be [`Sync`]. It is reached through an exclusive borrow alone, so the mutex, which makes the stream above
/// [`Sync`], is never locked.
struct Exclusive<T: ?Sized>(Mutex<Pin<Box<T>>>);

impl<T: ?Sized> Exclusive<T> {
    fn get(&mut self) -> Pin<&mut T> {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut()
    }
}

/// A stream that reads from a [`tokio::io::AsyncRead`].
pub struct AsyncReadStream {
    reader: Exclusive<dyn AsyncRead + Send>,
    waiting: Arc<Waiting>,
    /// What was read and not yet returned.
    read: Option<StreamResult<Bytes>>,
    closed: bool,
}

impl AsyncReadStream {
    /// Creates a stream.
    pub fn new<T: AsyncRead + Send + 'static>(reader: T) -> Self {
        AsyncReadStream { reader: Exclusive(Mutex::new(Box::pin(reader))), waiting: Arc::default(), read: None, closed: false }
    }

    /// Reads ahead.
    fn advance(&mut self) -> Poll<()> {
        if self.read.is_some() || self.closed {
            return Poll::Ready(());
        }
        let waker = Arc::clone(&self.waiting).into();
        let mut bytes = BytesMut::zeroed(CHUNK);
        let mut into = ReadBuf::new(&mut bytes);
        let read = ready!(self.reader.get().poll_read(&mut Context::from_waker(&waker), &mut into));
        let count = into.filled().len();
        bytes.truncate(count);
        self.read = Some(match read {
            Ok(()) if count == 0 => Err(StreamError::Closed),
            Ok(()) => Ok(bytes.freeze()),
            Err(error) => Err(StreamError::LastOperationFailed(error.into())),
        });
        Poll::Ready(())
    }

    /// Returns whether the next read does something; the task is woken when it does.
    pub(crate) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.waiting.add(cx.waker());
        self.advance()
    }
}

impl InputStream for AsyncReadStream {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let _ = self.advance();
        match self.read.take() {
            Some(Ok(mut bytes)) => {
                let now = bytes.split_to(size.min(bytes.len()));
                self.read = if bytes.is_empty() { None } else { Some(Ok(bytes)) };
                Ok(now)
            }
            Some(Err(error)) => {
                self.closed = true;
                Err(error)
            }
            None if self.closed => Err(StreamError::Closed),
            None => Ok(Bytes::new()),
        }
    }
}

#[async_trait]
impl Pollable for AsyncReadStream {
    async fn ready(&mut self) {
        poll_fn(|cx| self.poll_ready(cx)).await;
    }
}

/// A stream that writes to a [`tokio::io::AsyncWrite`]. What it has accepted and not yet written is lost when it is dropped, so it is to
/// be flushed; a program's calls do.
pub struct AsyncWriteStream {
    writer: Exclusive<dyn AsyncWrite + Send>,
    waiting: Arc<Waiting>,
    /// What was accepted and not yet written.
    accepted: VecDeque<Bytes>,
    /// How many more bytes are accepted.
    budget: usize,
    flushing: bool,
    error: Option<io::Error>,
    closed: bool,
}

impl AsyncWriteStream {
    /// Creates a stream that accepts at most `write_budget` bytes before they are written.
    pub fn new<T: AsyncWrite + Send + 'static>(write_budget: usize, writer: T) -> Self {
        AsyncWriteStream {
            writer: Exclusive(Mutex::new(Box::pin(writer))),
            waiting: Arc::default(),
            accepted: VecDeque::new(),
            budget: write_budget,
            flushing: false,
            error: None,
            closed: false,
        }
    }

    /// Writes what was accepted, as far as that is possible without blocking.
    fn advance(&mut self) {
        if !self.closed
            && let Poll::Ready(Err(error)) = self.write_accepted()
        {
            (self.error, self.closed, self.flushing) = (Some(error), true, false);
        }
    }

    fn write_accepted(&mut self) -> Poll<io::Result<()>> {
        let waker = Arc::clone(&self.waiting).into();
        let mut cx = Context::from_waker(&waker);
        while let Some(bytes) = self.accepted.front_mut() {
            let count = match bytes.as_ref() {
                [] => 0,
                bytes => match ready!(self.writer.get().poll_write(&mut cx, bytes))? {
                    0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    count => count,
                },
            };
            bytes.advance(count);
            self.budget += count;
            if bytes.is_empty() {
                self.accepted.pop_front();
            }
        }
        if self.flushing {
            ready!(self.writer.get().poll_flush(&mut cx))?;
            self.flushing = false;
        }
        Poll::Ready(Ok(()))
    }

    /// Returns whether there is room or an error; the task is woken when there is.
    pub(crate) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.waiting.add(cx.waker());
        self.advance();
        if self.closed || !self.flushing && self.budget > 0 { Poll::Ready(()) } else { Poll::Pending }
    }

    /// The first call after a failure returns it.
    fn check(&mut self) -> StreamResult<()> {
        match self.error.take() {
            Some(error) => Err(StreamError::LastOperationFailed(error.into())),
            None if self.closed => Err(StreamError::Closed),
            None => Ok(()),
        }
    }
}

impl OutputStream for AsyncWriteStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.check()?;
        if self.flushing {
            return Err(StreamError::trap("write not permitted while flush pending"));
        }
        let Some(budget) = self.budget.checked_sub(bytes.len()) else {
            return Err(StreamError::trap("write exceeded budget"));
        };
        self.budget = budget;
        self.accepted.push_back(bytes);
        self.advance();
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.check()?;
        self.flushing = true;
        self.advance();
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.advance();
        self.check()?;
        Ok(if self.flushing { 0 } else { self.budget })
    }
}

#[async_trait]
impl Pollable for AsyncWriteStream {
    async fn ready(&mut self) {
        poll_fn(|cx| self.poll_ready(cx)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::thread::block_on;
    use tokio::io::duplex;

    /// Runs both to their ends, on this thread.
    async fn both(one: impl Future<Output = ()>, other: impl Future<Output = ()>) {
        let (mut one, mut other) = (Box::pin(one), Box::pin(other));
        let (mut one_is_over, mut other_is_over) = (false, false);
        poll_fn(|cx| {
            one_is_over = one_is_over || one.as_mut().poll(cx).is_ready();
            other_is_over = other_is_over || other.as_mut().poll(cx).is_ready();
            if one_is_over && other_is_over { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    #[test]
    fn bytes_pass_through_a_small_buffer() {
        let (reader, writer) = duplex(3);
        let (mut reader, mut writer) = (AsyncReadStream::new(reader), AsyncWriteStream::new(5, writer));
        let text: Vec<u8> = (0..100).collect();
        let written = Bytes::from(text.clone());
        let mut read = Vec::new();
        block_on(both(
            async {
                writer.blocking_write_and_flush(written).await.unwrap();
                drop(writer);
            },
            async {
                loop {
                    match reader.blocking_read(2).await {
                        Ok(bytes) => read.extend_from_slice(&bytes),
                        Err(StreamError::Closed) => break,
                        Err(error) => panic!("{error}"),
                    }
                }
            },
        ));
        assert_eq!(read, text);
        assert!(matches!(reader.read(1), Err(StreamError::Closed)));
    }

    #[test]
    fn streams_over_what_only_one_thread_uses_at_a_time_can_be_shared() {
        /// It is `Send`, and not `Sync`.
        struct Bytes(std::cell::Cell<u8>);

        impl AsyncRead for Bytes {
            fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
                into.put_slice(&[self.0.replace(self.0.get() + 1)]);
                Poll::Ready(Ok(()))
            }
        }

        impl AsyncWrite for Bytes {
            fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
                self.0.set(bytes[0]);
                Poll::Ready(Ok(1))
            }

            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }
        }

        fn shared<T: Send + Sync>(stream: T) -> T {
            stream
        }
        let mut reader = shared(AsyncReadStream::new(Bytes(1.into())));
        assert_eq!((reader.read(1).unwrap(), reader.read(1).unwrap()), ("\x01".into(), "\x02".into()));
        let mut writer = shared(AsyncWriteStream::new(3, Bytes(0.into())));
        writer.write("abc".into()).unwrap();
        assert_eq!(writer.check_write().unwrap(), 3, "all is written");
    }

    #[test]
    fn errors_are_reported_once() {
        let (near, far) = duplex(1);
        drop(far);
        let mut stream = AsyncWriteStream::new(5, near);
        stream.write("abc".into()).unwrap();
        assert!(matches!(stream.check_write(), Err(StreamError::LastOperationFailed(error)) if error.is::<io::Error>()));
        assert!(matches!(stream.check_write(), Err(StreamError::Closed)));
        assert!(matches!(stream.write("d".into()), Err(StreamError::Closed)));
        block_on(stream.ready());
    }

    #[test]
    fn the_budget_limits_what_is_accepted() {
        let (near, _far) = duplex(1);
        let mut stream = AsyncWriteStream::new(4, near);
        assert!(matches!(stream.write("abcde".into()), Err(StreamError::Trap(_))));
        stream.write("abcd".into()).unwrap();
        assert_eq!(stream.check_write().unwrap(), 1, "one byte went to the buffer beneath");
        stream.flush().unwrap();
        assert!(matches!(stream.write("e".into()), Err(StreamError::Trap(_))), "it is not flushed");
        assert_eq!(stream.check_write().unwrap(), 0);
    }
}
