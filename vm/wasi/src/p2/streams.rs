//! The traits of streams.

use async_trait::async_trait;
use bytes::Bytes;
use std::error;
use std::fmt;

/// The number of times that a stream may say that it is ready and then have nothing. After that the program is ended, rather than
/// polling the stream for ever.
const ATTEMPTS: usize = 10;

/// Room that a stream claims which can take any number of bytes, and the most that is read at once.
pub(crate) const CHUNK: usize = 64 * 1024;

/// Something that a program can wait for.
#[async_trait]
pub trait Pollable: Send + 'static {
    /// Completes when the next operation would do something: transfer bytes, report an error, or report the end. It may be called again
    /// after that, and its future may be dropped before.
    async fn ready(&mut self);
}

/// A stream that is read.
///
/// ```
/// use weir_wasi::async_trait;
/// use weir_wasi::p2::{InputStream, Pollable, StreamError, StreamResult};
///
/// /// The same byte, a number of times.
/// struct Repeat(u8, usize);
///
/// #[async_trait]
/// impl Pollable for Repeat {
///     async fn ready(&mut self) {}
/// }
///
/// #[async_trait]
/// impl InputStream for Repeat {
///     fn read(&mut self, size: usize) -> StreamResult<bytes::Bytes> {
///         let count = size.min(self.1);
///         if count == 0 {
///             return Err(StreamError::Closed);
///         }
///         self.1 -= count;
///         Ok(vec![self.0; count].into())
///     }
/// }
///
/// let mut stream = Repeat(7, 3);
/// assert_eq!(stream.read(2).unwrap(), [7, 7].as_slice());
/// assert_eq!(stream.skip(2).unwrap(), 1);
/// assert!(matches!(stream.read(2), Err(StreamError::Closed)));
/// ```
#[async_trait]
pub trait InputStream: Pollable {
    /// Reads at most `size` bytes without blocking. No bytes means that there are none yet.
    ///
    /// # Errors
    /// See [`StreamError`].
    fn read(&mut self, size: usize) -> StreamResult<Bytes>;

    /// Reads at most `size` bytes, and at least one if `size` is not 0: waits for it.
    ///
    /// # Errors
    /// See [`StreamError`].
    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        for _ in 0..=ATTEMPTS {
            self.ready().await;
            let bytes = self.read(size)?;
            if size == 0 || !bytes.is_empty() {
                return Ok(bytes);
            }
        }
        Err(StreamError::trap("max blocking attempts exceeded"))
    }

    /// Reads at most `nelem` bytes without blocking, and returns their number only.
    ///
    /// # Errors
    /// See [`StreamError`].
    fn skip(&mut self, nelem: usize) -> StreamResult<usize> {
        self.read(nelem).map(|bytes| bytes.len())
    }

    /// Reads as [`blocking_read`](Self::blocking_read) does, and returns the number of bytes only.
    ///
    /// # Errors
    /// See [`StreamError`].
    async fn blocking_skip(&mut self, nelem: usize) -> StreamResult<usize> {
        self.blocking_read(nelem).await.map(|bytes| bytes.len())
    }

    /// Ends what the stream does on its own. The streams of this package do nothing on their own.
    async fn cancel(&mut self) {}
}

/// A stream that is written.
///
/// [`write`](Self::write) never blocks. Before it, [`check_write`](Self::check_write) says how many bytes there is room for.
///
/// ```
/// use weir_wasi::async_trait;
/// use weir_wasi::p2::{OutputStream, Pollable, StreamResult};
///
/// /// Counts bytes.
/// struct Count(usize);
///
/// #[async_trait]
/// impl Pollable for Count {
///     async fn ready(&mut self) {}
/// }
///
/// impl OutputStream for Count {
///     fn write(&mut self, bytes: bytes::Bytes) -> StreamResult<()> {
///         self.0 += bytes.len();
///         Ok(())
///     }
///
///     fn flush(&mut self) -> StreamResult<()> {
///         Ok(())
///     }
///
///     fn check_write(&mut self) -> StreamResult<usize> {
///         Ok(4096)
///     }
/// }
///
/// let mut stream = Count(0);
/// stream.write_zeroes(3)?;
/// assert_eq!(stream.0, 3);
/// # Ok::<(), weir_wasi::p2::StreamError>(())
/// ```
#[async_trait]
pub trait OutputStream: Pollable {
    /// Accepts bytes, at most as many as [`check_write`](Self::check_write) has returned.
    ///
    /// # Errors
    /// See [`StreamError`].
    fn write(&mut self, bytes: Bytes) -> StreamResult<()>;

    /// Begins to write all bytes that were accepted to where they go. [`check_write`](Self::check_write) returns 0 until that is done.
    ///
    /// # Errors
    /// See [`StreamError`].
    fn flush(&mut self) -> StreamResult<()>;

    /// Returns how many bytes [`write`](Self::write) accepts now. 0 means to wait until the stream is ready.
    ///
    /// # Errors
    /// See [`StreamError`]; errors of earlier writes among them.
    fn check_write(&mut self) -> StreamResult<usize>;

    /// Writes all of the bytes and flushes them, and waits for both.
    ///
    /// # Errors
    /// See [`StreamError`]. A stream that is closed when everything is written is none.
    async fn blocking_write_and_flush(&mut self, mut bytes: Bytes) -> StreamResult<()> {
        loop {
            let room = self.write_ready().await?;
            let now = bytes.split_to(room.min(bytes.len()));
            self.write(now)?;
            if bytes.is_empty() {
                break;
            }
        }
        let unless_closed = |result| if matches!(result, Err(StreamError::Closed)) { Ok(()) } else { result };
        unless_closed(self.flush())?;
        unless_closed(self.write_ready().await.map(drop))
    }

    /// Writes this number of zeros without blocking.
    ///
    /// # Errors
    /// See [`StreamError`]. There is no room for them.
    fn write_zeroes(&mut self, nelem: usize) -> StreamResult<()> {
        if nelem > self.check_write()? {
            return Err(StreamError::trap("cannot write more zeroes than `check_write` allows"));
        }
        self.write(vec![0; nelem].into())
    }

    /// Waits until there is room for at least one byte, and returns for how many.
    ///
    /// # Errors
    /// See [`StreamError`].
    async fn write_ready(&mut self) -> StreamResult<usize> {
        for _ in 0..=ATTEMPTS {
            self.ready().await;
            match self.check_write()? {
                0 => {}
                room => return Ok(room),
            }
        }
        Err(StreamError::trap("max blocking attempts exceeded"))
    }

    /// Ends what the stream does on its own. The streams of this package do nothing on their own.
    async fn cancel(&mut self) {}
}

#[async_trait]
impl Pollable for Box<dyn InputStream> {
    async fn ready(&mut self) {
        (**self).ready().await;
    }
}

#[async_trait]
impl Pollable for Box<dyn OutputStream> {
    async fn ready(&mut self) {
        (**self).ready().await;
    }
}

/// A stream of any type that is read.
pub type DynInputStream = Box<dyn InputStream>;

/// A stream of any type that is written.
pub type DynOutputStream = Box<dyn OutputStream>;

/// The error of an operation on a stream, in [`StreamError::LastOperationFailed`].
pub type IoError = weir::Error;

/// The result of an operation on a stream.
pub type StreamResult<T> = Result<T, StreamError>;

/// Why an operation on a stream did nothing.
#[derive(Debug)]
pub enum StreamError {
    /// The stream has ended. A program that reads sees the end of its input; one that writes gets the error number `io`.
    Closed,
    /// An operation failed. The program gets the number of a [`std::io::Error`], or `io` for another error.
    LastOperationFailed(weir::Error),
    /// The program is ended with this error.
    Trap(weir::Error),
}

impl StreamError {
    /// Returns an error that ends the program with this message.
    pub fn trap(msg: &str) -> StreamError {
        StreamError::Trap(weir::Error::msg(msg.to_owned()))
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StreamError::Closed => f.write_str("closed"),
            StreamError::LastOperationFailed(error) => write!(f, "last operation failed: {error}"),
            StreamError::Trap(error) => write!(f, "trap: {error}"),
        }
    }
}

impl error::Error for StreamError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            StreamError::Closed => None,
            StreamError::LastOperationFailed(error) | StreamError::Trap(error) => error.source(),
        }
    }
}
