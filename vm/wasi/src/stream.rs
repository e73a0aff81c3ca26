//! Sources and sinks of a program's standard streams.

use crate::cli::{InputFile, OutputFile, StdinStream, StdoutStream};
use crate::errno::Errno;
use crate::host_stream::HostStream;
use crate::outcome::Failure;
use crate::p2::{CHUNK, DynInputStream, DynOutputStream, StreamError};
use bytes::Bytes;
use std::any::Any;
use std::io::IoSlice;
use tokio::io::{Stderr, Stdin, Stdout};

/// A standard stream.
pub(crate) enum Stream {
    /// A stream of the host.
    Host(HostStream),
    /// A stream of the embedder that is read.
    Input { stream: DynInputStream, is_terminal: bool },
    /// A stream of the embedder that is written.
    Output { stream: DynOutputStream, is_terminal: bool },
}

impl Stream {
    /// Input of the host is read without a copy.
    pub fn input(given: impl StdinStream + 'static) -> Stream {
        let any: &dyn Any = &given;
        if any.is::<Stdin>() {
            return Stream::Host(HostStream::Stdin);
        }
        if let Some(file) = any.downcast_ref::<InputFile>() {
            return Stream::Host(file.host());
        }
        Stream::Input { is_terminal: given.is_terminal(), stream: given.p2_stream() }
    }

    /// Output to the host is written without a copy.
    pub fn output(given: impl StdoutStream + 'static) -> Stream {
        let any: &dyn Any = &given;
        if any.is::<Stdout>() {
            return Stream::Host(HostStream::Stdout);
        }
        if any.is::<Stderr>() {
            return Stream::Host(HostStream::Stderr);
        }
        if let Some(file) = any.downcast_ref::<OutputFile>() {
            return Stream::Host(file.host());
        }
        Stream::Output { is_terminal: given.is_terminal(), stream: given.p2_stream() }
    }

    pub fn readable(&self) -> bool {
        match self {
            Stream::Host(host) => host.readable(),
            Stream::Input { .. } => true,
            Stream::Output { .. } => false,
        }
    }

    /// Completes when a stream of the embedder is ready.
    pub async fn ready(&mut self) {
        match self {
            Stream::Host(_) => {}
            Stream::Input { stream, .. } => (**stream).ready().await,
            Stream::Output { stream, .. } => (**stream).ready().await,
        }
    }

    pub fn is_terminal(&self) -> bool {
        match self {
            Stream::Host(host) => host.is_terminal(),
            Stream::Input { is_terminal, .. } | Stream::Output { is_terminal, .. } => *is_terminal,
        }
    }
}

/// Waits until bytes can be read from a stream of the embedder, and returns at most as many as there is room for; none at the end.
pub(crate) async fn read(stream: &mut DynInputStream, into: &mut [u8]) -> Result<usize, Failure> {
    let bytes = match stream.blocking_read(into.len()).await {
        Err(StreamError::Closed) => Bytes::new(),
        Ok(bytes) if bytes.is_empty() => return Err(Errno::Intr.into()),
        Ok(bytes) if bytes.len() > into.len() => return Err(Errno::Range.into()),
        bytes => bytes?,
    };
    into[..bytes.len()].copy_from_slice(&bytes);
    Ok(bytes.len())
}

/// Writes all of the bytes to a stream of the embedder.
pub(crate) async fn write(stream: &mut DynOutputStream, slices: &[IoSlice<'_>]) -> Result<usize, Failure> {
    for piece in slices.iter().flat_map(|slice| slice.chunks(CHUNK)) {
        stream.blocking_write_and_flush(Bytes::copy_from_slice(piece)).await?;
    }
    Ok(slices.iter().map(|slice| slice.len()).sum())
}
