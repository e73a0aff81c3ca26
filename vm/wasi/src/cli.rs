//! The standard streams of a program: the traits of what can be one, and those that are.

mod file;
mod given;
mod process;
mod shared;

pub use file::{InputFile, OutputFile};
pub use shared::{AsyncStdinStream, AsyncStdoutStream};
#[doc(no_inline)]
pub use tokio::io::{Stderr, Stdin, Stdout, stderr, stdin, stdout};

use crate::p2::pipe::{AsyncReadStream, AsyncWriteStream};
use crate::p2::{InputStream, OutputStream};
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};

/// The bytes that a stream over [`StdoutStream::async_stream`] accepts before they are written.
const BUDGET: usize = 8192;

/// Whether a stream is a terminal, as a program sees it.
pub trait IsTerminal {
    /// Returns whether it is. Libraries buffer output to a terminal by line.
    fn is_terminal(&self) -> bool;
}

/// What can be a program's standard input: [`MemoryInputPipe`](crate::p2::pipe::MemoryInputPipe), [`InputFile`], [`stdin`],
/// [`AsyncStdinStream`], [`std::io::Empty`], and what an embedder implements it for.
pub trait StdinStream: IsTerminal + Send {
    /// Returns a reader. All readers of one input share its position.
    fn async_stream(&self) -> Box<dyn AsyncRead + Send + Sync>;

    /// Returns the stream that a program reads. It shares the position, too. Unless it is implemented, it is a stream over
    /// [`async_stream`](Self::async_stream).
    fn p2_stream(&self) -> Box<dyn InputStream> {
        Box::new(AsyncReadStream::new(Pin::from(self.async_stream())))
    }
}

/// What can be a program's standard output or error: [`MemoryOutputPipe`](crate::p2::pipe::MemoryOutputPipe), [`OutputFile`], [`stdout`],
/// [`stderr`], [`AsyncStdoutStream`], [`std::io::Empty`], and what an embedder implements it for.
///
/// ```
/// use tokio::io::AsyncWrite;
/// use weir_wasi::WasiCtxBuilder;
/// use weir_wasi::cli::{IsTerminal, StdoutStream};
/// use weir_wasi::p2::OutputStream;
/// use weir_wasi::p2::pipe::MemoryOutputPipe;
///
/// /// Output that a program buffers by line, as if it were for a terminal.
/// struct Lines(MemoryOutputPipe);
///
/// impl IsTerminal for Lines {
///     fn is_terminal(&self) -> bool {
///         true
///     }
/// }
///
/// impl StdoutStream for Lines {
///     fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
///         self.0.async_stream()
///     }
///
///     fn p2_stream(&self) -> Box<dyn OutputStream> {
///         self.0.p2_stream()
///     }
/// }
///
/// let ctx = WasiCtxBuilder::new().stdout(Lines(MemoryOutputPipe::new(4096))).build_p1();
/// # drop(ctx);
/// ```
pub trait StdoutStream: IsTerminal + Send {
    /// Returns a writer. All writers of one output write to the same place.
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync>;

    /// Returns the stream that a program writes. Unless it is implemented, it is a stream over [`async_stream`](Self::async_stream).
    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(AsyncWriteStream::new(BUDGET, Pin::from(self.async_stream())))
    }
}

macro_rules! forward {
    ($(($($generics:tt)*) $type:ty;)*) => {$(
        impl<$($generics)* + IsTerminal> IsTerminal for $type {
            fn is_terminal(&self) -> bool {
                T::is_terminal(self)
            }
        }

        impl<$($generics)* + StdinStream + Sync> StdinStream for $type {
            fn async_stream(&self) -> Box<dyn AsyncRead + Send + Sync> {
                T::async_stream(self)
            }

            fn p2_stream(&self) -> Box<dyn InputStream> {
                T::p2_stream(self)
            }
        }

        impl<$($generics)* + StdoutStream + Sync> StdoutStream for $type {
            fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
                T::async_stream(self)
            }

            fn p2_stream(&self) -> Box<dyn OutputStream> {
                T::p2_stream(self)
            }
        }
    )*};
}

forward! {
    (T: ?Sized) &T;
    (T: ?Sized) &mut T;
    (T: ?Sized) Box<T>;
    (T: ?Sized) Arc<T>;
}
