//! Calls to the host that may block. In a guest that is called asynchronously they are made on another thread, or tried without blocking,
//! while the guest is suspended. So no guest keeps the thread that polls others.

use crate::handle::Handle;
use crate::sys::file;
use crate::sys::poll::Interest;
use crate::sys::pool;
use crate::sys::waiter::Wait;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;

/// Where calls that may block are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Blocking {
    /// On this thread.
    #[default]
    Here,
    /// On a thread of the pool, while the guest is suspended.
    Elsewhere,
}

/// Maximum number of bytes that are copied for a call on another thread.
pub(crate) const COPIED: usize = 1 << 20;
/// A pipe that is ready has room for this.
const PIPE_ROOM: usize = 4096;

impl Blocking {
    /// Makes a call. If the future is dropped meanwhile, a call on another thread goes on.
    pub async fn call<R: Send + 'static>(self, work: impl FnOnce() -> R + Send + 'static) -> R {
        match self {
            Blocking::Here => work(),
            Blocking::Elsewhere => pool::call(work).await,
        }
    }
}

/// What is read or written while the guest is suspended.
pub(crate) struct Source {
    pub handle: Handle,
    /// Whether reads and writes wait for others.
    pub waits: bool,
    /// Whether the guest has asked for errors instead.
    pub nonblocking: bool,
}

/// Reads at most `into.len()` bytes while the guest is suspended, and returns the number; 0 at the end. `at` is the offset, or none for
/// the descriptor's position.
pub(crate) async fn read(from: &Source, into: &mut [u8], at: Option<u64>) -> io::Result<usize> {
    if from.waits && at.is_none() {
        loop {
            match file::read_now(&from.handle, into) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !from.nonblocking => {
                    Wait::new(&[(from.handle.as_fd(), Interest::Read)], None)?.await;
                }
                Err(error) if error.kind() == io::ErrorKind::Unsupported => break,
                result => return result,
            }
        }
        if !from.nonblocking {
            Wait::new(&[(from.handle.as_fd(), Interest::Read)], None)?.await;
        }
    }
    let mut total = 0;
    // A stream may have no more bytes.
    let parts = into.chunks_mut(COPIED).take(if from.waits { 1 } else { usize::MAX });
    for part in parts {
        let (handle, len, at) = (from.handle.clone(), part.len(), at.map(|at| at.saturating_add(total as u64)));
        let call = pool::call(move || {
            let mut bytes = vec![0; len];
            let count = match at {
                Some(at) => file::read_at(&handle, &mut bytes, at),
                None => file::read(&handle, &mut bytes),
            };
            count.map(|count| (bytes, count))
        });
        match call.await {
            Ok((bytes, count)) => {
                part[..count].copy_from_slice(&bytes[..count]);
                total += count;
                if count < len {
                    break;
                }
            }
            Err(error) if total == 0 => return Err(error),
            // The next call gets it.
            Err(_) => break,
        }
    }
    Ok(total)
}

/// Writes some of the bytes while the guest is suspended, and returns the number.
pub(crate) async fn write(to: &Source, slices: &[IoSlice<'_>]) -> io::Result<usize> {
    let mut limit = COPIED;
    if to.waits {
        loop {
            match to.handle.write_now(slices) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && !to.nonblocking => {
                    Wait::new(&[(to.handle.as_fd(), Interest::Write)], None)?.await;
                }
                Err(error) if error.kind() == io::ErrorKind::Unsupported => break,
                result => return result,
            }
        }
        if !to.nonblocking {
            Wait::new(&[(to.handle.as_fd(), Interest::Write)], None)?.await;
        }
        limit = PIPE_ROOM;
    }
    write_copied(slices, limit, to.waits, |bytes, _| {
        let handle = to.handle.clone();
        pool::call(move || handle.write(&[IoSlice::new(&bytes)]))
    })
    .await
}

/// Writes the bytes in parts of at most `limit`, each of which is copied for a call on another thread. `write` also gets the number of bytes
/// written before. After a part of a stream that `waits`, or one that was not written in full, it is for the guest to write more.
pub(crate) async fn write_copied<F: Future<Output = io::Result<usize>>>(
    slices: &[IoSlice<'_>],
    limit: usize,
    waits: bool,
    mut write: impl FnMut(Vec<u8>, usize) -> F,
) -> io::Result<usize> {
    let mut total = 0;
    loop {
        let part = copy(slices, total, limit);
        let len = part.len();
        match write(part, total).await {
            Ok(count) => {
                total += count;
                if count < len || len < limit || waits {
                    return Ok(total);
                }
            }
            Err(error) if total == 0 => return Err(error),
            Err(_) => return Ok(total),
        }
    }
}

/// Returns at most `limit` of the bytes after the first `skip`.
fn copy(slices: &[IoSlice<'_>], mut skip: usize, limit: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    for slice in slices {
        let rest = &slice[skip.min(slice.len())..];
        skip -= slice.len() - rest.len();
        bytes.extend_from_slice(&rest[..rest.len().min(limit - bytes.len())]);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::thread::block_on;
    use std::future::ready;

    #[test]
    fn parts_have_all_bytes_once() {
        let slices = [&b"abc"[..], b"", b"defgh", b"i"].map(IoSlice::new);
        for limit in 1..12 {
            let mut written = Vec::new();
            let write = |bytes: Vec<u8>, before: usize| {
                assert!(bytes.len() <= limit && before == written.len());
                written.extend_from_slice(&bytes);
                ready(Ok(bytes.len()))
            };
            assert_eq!(block_on(write_copied(&slices, limit, false, write)).unwrap(), 9);
            assert_eq!(written, b"abcdefghi");
        }
    }

    #[test]
    fn a_part_that_was_not_written_in_full_is_the_last() {
        let slices = [IoSlice::new(b"abcdef")];
        let one_less = |bytes: Vec<u8>, _| ready(Ok(bytes.len() - 1));
        assert_eq!(block_on(write_copied(&slices, 3, false, one_less)).unwrap(), 2);
        let full = |bytes: Vec<u8>, _| ready(Ok(bytes.len()));
        assert_eq!(block_on(write_copied(&slices, 3, true, full)).unwrap(), 3, "a stream may wait");
        let fails = |_, before| ready(if before == 0 { Ok(3) } else { Err(io::ErrorKind::StorageFull.into()) });
        assert_eq!(block_on(write_copied(&slices, 3, false, fails)).unwrap(), 3);
    }
}
