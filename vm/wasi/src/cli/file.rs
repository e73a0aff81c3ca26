//! Files of the host as standard streams.

use crate::host_stream::HostStream;
use crate::p2::{InputStream, OutputStream, Pollable, StreamResult};
use crate::sys::file;
use async_trait::async_trait;
use bytes::Bytes;
use std::fs::File;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A file as standard input. Clones share its position.
///
/// ```no_run
/// use std::fs::File;
/// use weir_wasi::{WasiCtxBuilder, cli::InputFile};
///
/// let ctx = WasiCtxBuilder::new().stdin(InputFile::new(File::open("input")?)).build_p1();
/// # drop(ctx);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct InputFile(HostStream);

impl InputFile {
    /// Reads the file from its position on.
    pub fn new(file: File) -> Self {
        InputFile(HostStream::Input(Arc::new(file.into())))
    }

    pub(crate) fn host(&self) -> HostStream {
        self.0.clone()
    }
}

#[async_trait]
impl Pollable for InputFile {
    async fn ready(&mut self) {
        self.0.ready().await;
    }
}

impl InputStream for InputFile {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        self.0.read(size)
    }
}

/// Reading blocks the thread.
impl AsyncRead for InputFile {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let count = file::read(&self.0, into.initialize_unfilled())?;
        into.advance(count);
        Poll::Ready(Ok(()))
    }
}

/// A file as standard output or error. Clones share its position.
///
/// ```no_run
/// use std::fs::File;
/// use weir_wasi::{WasiCtxBuilder, cli::OutputFile};
///
/// let log = OutputFile::new(File::create("log")?);
/// let ctx = WasiCtxBuilder::new().stdout(log.clone()).stderr(log).build_p1();
/// # drop(ctx);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct OutputFile(HostStream);

impl OutputFile {
    /// Writes to the file from its position on.
    pub fn new(file: File) -> Self {
        OutputFile(HostStream::Output(Arc::new(file.into())))
    }

    pub(crate) fn host(&self) -> HostStream {
        self.0.clone()
    }
}

#[async_trait]
impl Pollable for OutputFile {
    async fn ready(&mut self) {
        self.0.ready().await;
    }
}

impl OutputStream for OutputFile {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.0.flush()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.0.check_write()
    }
}

/// Writing blocks the thread.
impl AsyncWrite for OutputFile {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(file::write(&self.0, &[IoSlice::new(bytes)]))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
