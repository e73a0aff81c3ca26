//! The library's own streams as standard streams: those of the process, files, memory pipes and streams without bytes.

use super::{InputFile, IsTerminal, OutputFile, StdinStream, StdoutStream};
use crate::host_stream::HostStream;
use crate::p2::pipe::{ClosedInputStream, ClosedOutputStream, MemoryInputPipe, MemoryOutputPipe, SinkOutputStream};
use crate::p2::{InputStream, OutputStream};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, Stderr, Stdin, Stdout, empty, stderr, stdin, stdout};

/// Implements one of the two traits for each type: what a program uses, and what an embedder gets.
macro_rules! streams {
    ($trait:ident, $used:ident, $got:ident: $($type:ty: |$it:pat_param| $stream:expr, $own:expr;)*) => {$(
        impl $trait for $type {
            fn async_stream(&self) -> Box<dyn $got + Send + Sync> {
                let $it = self;
                Box::new($own)
            }

            fn p2_stream(&self) -> Box<dyn $used> {
                let $it = self;
                Box::new($stream)
            }
        }
    )*};
}

macro_rules! no_terminals {
    ($($type:ty),*) => {$(
        impl IsTerminal for $type {
            fn is_terminal(&self) -> bool {
                false
            }
        }
    )*};
}

streams! { StdinStream, InputStream, AsyncRead:
    Stdin: |_| HostStream::Stdin, stdin();
    InputFile: |file| file.clone(), file.clone();
    MemoryInputPipe: |pipe| pipe.clone(), pipe.clone();
    ClosedInputStream: |_| ClosedInputStream, empty();
    io::Empty: |_| ClosedInputStream, empty();
    tokio::io::Empty: |_| ClosedInputStream, empty();
}

streams! { StdoutStream, OutputStream, AsyncWrite:
    Stdout: |_| HostStream::Stdout, stdout();
    Stderr: |_| HostStream::Stderr, stderr();
    OutputFile: |file| file.clone(), file.clone();
    MemoryOutputPipe: |pipe| pipe.clone(), pipe.clone();
    SinkOutputStream: |_| SinkOutputStream, empty();
    ClosedOutputStream: |_| ClosedOutputStream, Closed;
    io::Empty: |_| SinkOutputStream, empty();
    tokio::io::Empty: |_| SinkOutputStream, empty();
}

no_terminals!(
    InputFile,
    OutputFile,
    MemoryInputPipe,
    MemoryOutputPipe,
    ClosedInputStream,
    ClosedOutputStream,
    SinkOutputStream,
    io::Empty,
    tokio::io::Empty
);

/// A writer that accepts nothing.
struct Closed;

impl AsyncWrite for Closed {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(0))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
