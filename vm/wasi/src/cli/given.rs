//! Memory pipes and streams without bytes as standard streams.

use super::{IsTerminal, StdinStream, StdoutStream};
use crate::p2::pipe::{ClosedInputStream, ClosedOutputStream, MemoryInputPipe, MemoryOutputPipe, SinkOutputStream};
use crate::p2::{InputStream, OutputStream};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, empty};

macro_rules! inputs {
    ($($type:ty: |$it:pat_param| $stream:expr, $reader:expr;)*) => {$(
        impl StdinStream for $type {
            fn async_stream(&self) -> Box<dyn AsyncRead + Send + Sync> {
                let $it = self;
                Box::new($reader)
            }

            fn p2_stream(&self) -> Box<dyn InputStream> {
                let $it = self;
                Box::new($stream)
            }
        }
    )*};
}

macro_rules! outputs {
    ($($type:ty: |$it:pat_param| $stream:expr, $writer:expr;)*) => {$(
        impl StdoutStream for $type {
            fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
                let $it = self;
                Box::new($writer)
            }

            fn p2_stream(&self) -> Box<dyn OutputStream> {
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

inputs! {
    MemoryInputPipe: |pipe| pipe.clone(), pipe.clone();
    ClosedInputStream: |_| ClosedInputStream, empty();
    io::Empty: |_| ClosedInputStream, empty();
    tokio::io::Empty: |_| ClosedInputStream, empty();
}

outputs! {
    MemoryOutputPipe: |pipe| pipe.clone(), pipe.clone();
    SinkOutputStream: |_| SinkOutputStream, empty();
    ClosedOutputStream: |_| ClosedOutputStream, Closed;
    io::Empty: |_| SinkOutputStream, empty();
    tokio::io::Empty: |_| SinkOutputStream, empty();
}

no_terminals!(
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
