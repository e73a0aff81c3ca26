//! Streams of the host: the process's own standard streams, and what they share with files.

use super::IsTerminal;
use crate::host_stream::HostStream;
use crate::p2::{CHUNK, InputStream, OutputStream, Pollable, StreamError, StreamResult};
use crate::sys::dir::FileType;
use crate::sys::file;
use crate::sys::poll::{Interest, Waited, wait};
use crate::sys::waiter::Wait;
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::io::{Stderr, Stdin, Stdout};

impl IsTerminal for Stdin {
    fn is_terminal(&self) -> bool {
        HostStream::Stdin.is_terminal()
    }
}

impl IsTerminal for Stdout {
    fn is_terminal(&self) -> bool {
        HostStream::Stdout.is_terminal()
    }
}

impl IsTerminal for Stderr {
    fn is_terminal(&self) -> bool {
        HostStream::Stderr.is_terminal()
    }
}

impl HostStream {
    fn interest(&self) -> Interest {
        if self.readable() { Interest::Read } else { Interest::Write }
    }

    /// Reads, if there are bytes or an end. A file on a disk always has them, though the system may say that it would wait.
    fn try_read(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        if file::file_type(self).is_ok_and(FileType::waits) {
            match file::read_now(self, into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Unsupported && !self.is_ready()? => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
                result => return result.map(Some),
            }
        }
        file::read(self, into).map(Some)
    }

    /// Whether a read or a write would not wait now.
    fn is_ready(&self) -> io::Result<bool> {
        let mut waited = Waited::new(self.as_fd(), self.interest());
        wait(std::slice::from_mut(&mut waited), Some(Duration::ZERO))?;
        Ok(waited.happened())
    }
}

#[async_trait]
impl Pollable for HostStream {
    async fn ready(&mut self) {
        // An error is that of the operation which follows.
        while let Ok(false) = self.is_ready() {
            match Wait::new(&[(self.as_fd(), self.interest())], None) {
                Ok(wait) => wait.await,
                Err(_) => return,
            }
        }
    }
}

impl InputStream for HostStream {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        let mut bytes = BytesMut::zeroed(size.min(CHUNK));
        let Some(count) = self.try_read(&mut bytes).map_err(failed)? else { return Ok(Bytes::new()) };
        if count == 0 && size > 0 {
            return Err(StreamError::Closed);
        }
        bytes.truncate(count);
        Ok(bytes.freeze())
    }
}

impl OutputStream for HostStream {
    fn write(&mut self, mut bytes: Bytes) -> StreamResult<()> {
        while !bytes.is_empty() {
            let count = file::write(&*self, &[IoSlice::new(&bytes)]).map_err(failed)?;
            drop(bytes.split_to(count));
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        // A pipe that is ready has room for this.
        Ok(if self.is_ready().map_err(failed)? { 4096 } else { 0 })
    }
}

fn failed(error: io::Error) -> StreamError {
    StreamError::LastOperationFailed(error.into())
}
