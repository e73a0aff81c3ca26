//! `fd_*` calls that read, write and seek.

use crate::ctx::WasiCtx;
use crate::descriptor::{Object, flags};
use crate::errno::Errno;
use crate::guest::{Buffer, Guest};
use crate::handle::Handle;
use crate::offload::{self, Blocking, Source};
use crate::outcome::{BrokenPipe, Failure, Outcome};
use crate::rights;
use crate::stream::{self, Stream};
use crate::sys::file::{self, Advice, Flags};
use cap_std::fs::File;
use std::io::{self, IoSlice, SeekFrom};
use std::sync::Arc;

pub(crate) async fn fd_read(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, buffers: u32, count: u32, read: u32) -> Outcome {
    let blocking = ctx.blocking;
    let descriptor = ctx.table.get_mut(fd)?;
    guest.check_u32(read)?;
    let buffers = guest.buffers(buffers, count)?;
    if let Object::Dir(_) = descriptor.object {
        return Err(Errno::Isdir.into());
    }
    descriptor.require(rights::FD_READ)?;
    if let Object::Stream(Stream::Input { stream, .. }) = &mut descriptor.object {
        let bytes = match first(&buffers) {
            Some(buffer) => stream::read(stream, guest.slice_mut(buffer)?).await?,
            None => 0,
        };
        return Ok(guest.write_u32(read, bytes as u32)?);
    }
    let handle = descriptor.object.handle().ok_or(Errno::Badf)?;
    let is_file = matches!(descriptor.object, Object::File(..));
    let bytes = match blocking {
        Blocking::Here if is_file => fill(guest, &buffers, |into, _| Ok(file::read(&handle, into)?))?,
        Blocking::Here => fill_first(guest, &buffers, |into| Ok(file::read(&handle, into)?))?,
        Blocking::Elsewhere => {
            let source = descriptor.source(handle);
            let first = first(&buffers);
            let buffers = if is_file { &buffers[..] } else { first.as_slice() };
            fill_suspended(guest, buffers, &source, None).await?
        }
    };
    Ok(guest.write_u32(read, bytes)?)
}

pub(crate) async fn fd_pread(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    fd: u32,
    buffers: u32,
    count: u32,
    at: u64,
    read: u32,
) -> Outcome {
    let descriptor = ctx.table.get(fd)?;
    let file = descriptor.file(rights::FD_READ | rights::FD_SEEK, Errno::Spipe)?;
    guest.check_u32(read)?;
    let buffers = guest.buffers(buffers, count)?;
    let bytes = match ctx.blocking {
        Blocking::Here => fill(guest, &buffers, |into, before| {
            let at = at.checked_add(u64::from(before)).ok_or(Errno::Inval)?;
            Ok(file::read_at(file, into, at)?)
        })?,
        Blocking::Elsewhere => {
            let source = descriptor.source(Handle::File(Arc::clone(file)));
            fill_suspended(guest, &buffers, &source, Some(at)).await?
        }
    };
    Ok(guest.write_u32(read, bytes)?)
}

/// Returns the first buffer with room.
pub(crate) fn first(buffers: &[Buffer]) -> Option<Buffer> {
    buffers.iter().copied().find(|buffer| buffer.len > 0)
}

/// Reads as [`fill`] does, while the guest is suspended.
async fn fill_suspended(guest: &mut Guest<'_>, buffers: &[Buffer], from: &Source, at: Option<u64>) -> Result<u32, Errno> {
    let mut total = 0u32;
    for buffer in buffers.iter().filter(|buffer| buffer.len > 0) {
        let at = match at {
            Some(at) => Some(at.checked_add(u64::from(total)).ok_or(Errno::Inval)?),
            None => None,
        };
        match offload::read(from, guest.slice_mut(*buffer)?, at).await {
            Err(error) if total == 0 => return Err(error.into()),
            Err(_) => break,
            Ok(bytes) => {
                total = total.checked_add(bytes as u32).ok_or(Errno::Overflow)?;
                // A stream may have no more bytes.
                if bytes < buffer.len as usize || from.waits {
                    break;
                }
            }
        }
    }
    Ok(total)
}

/// Reads into one buffer after the other until one is not filled. Returns the number of bytes. `read` receives the
/// number of bytes read before. If some bytes have been read, an error is dropped: the next call will get it.
fn fill(
    guest: &mut Guest<'_>,
    buffers: &[Buffer],
    mut read: impl FnMut(&mut [u8], u32) -> Result<usize, Errno>,
) -> Result<u32, Errno> {
    let mut total = 0u32;
    for buffer in buffers.iter().filter(|buffer| buffer.len > 0) {
        match read(guest.slice_mut(*buffer)?, total) {
            Err(errno) if total == 0 => return Err(errno),
            Err(_) => break,
            Ok(bytes) => {
                total = total.checked_add(bytes as u32).ok_or(Errno::Overflow)?;
                if bytes < buffer.len as usize {
                    break;
                }
            }
        }
    }
    Ok(total)
}

/// Reads only into the first buffer, because reading again might block. Fewer bytes than requested are no error.
pub(crate) fn fill_first(
    guest: &mut Guest<'_>,
    buffers: &[Buffer],
    read: impl FnOnce(&mut [u8]) -> Result<usize, Errno>,
) -> Result<u32, Errno> {
    match first(buffers) {
        Some(buffer) => read(guest.slice_mut(buffer)?).map(|bytes| bytes as u32),
        None => Ok(0),
    }
}

pub(crate) async fn fd_write(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    fd: u32,
    buffers: u32,
    count: u32,
    written: u32,
) -> Outcome {
    let (blocking, broken_pipe_ends) = (ctx.blocking, ctx.broken_pipe_ends);
    let descriptor = ctx.table.get_mut(fd)?;
    if let Object::Dir(_) = descriptor.object {
        return Err(Errno::Isdir.into());
    }
    descriptor.require(rights::FD_WRITE)?;
    guest.check_u32(written)?;
    let slices = slices(guest, buffers, count)?;
    let bytes = if let Object::Stream(Stream::Output { stream, .. }) = &mut descriptor.object {
        stream::write(stream, &slices).await
    } else {
        let handle = descriptor.object.handle().ok_or(Errno::Badf)?;
        let bytes = match blocking {
            Blocking::Here => handle.write(&slices),
            Blocking::Elsewhere => offload::write(&descriptor.source(handle), &slices).await,
        };
        bytes.map_err(Failure::from)
    };
    let bytes = match bytes {
        Err(Failure::Errno(Errno::Pipe)) if broken_pipe_ends => return Err(Failure::End(BrokenPipe.into())),
        bytes => bytes?,
    };
    Ok(guest.write_u32(written, u32::try_from(bytes).map_err(|_| Errno::Overflow)?)?)
}

pub(crate) async fn fd_pwrite(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    fd: u32,
    buffers: u32,
    count: u32,
    at: u64,
    written: u32,
) -> Outcome {
    let blocking = ctx.blocking;
    let descriptor = ctx.table.get_mut(fd)?;
    let file = Arc::clone(descriptor.file(rights::FD_WRITE | rights::FD_SEEK, Errno::Spipe)?);
    guest.check_u32(written)?;
    let slices = slices(guest, buffers, count)?;
    let appends = descriptor.flags & flags::APPEND != 0;
    let bytes = match blocking {
        Blocking::Here => write_at(&file, &slices, at, appends),
        Blocking::Elsewhere => {
            let piece = |bytes: Vec<u8>, before: usize| {
                let (file, at) = (Arc::clone(&file), at.saturating_add(before as u64));
                blocking.call(move || write_at(&file, &[IoSlice::new(&bytes)], at, appends))
            };
            offload::write_copied(&slices, offload::COPIED, false, piece).await
        }
    };
    if appends && bytes.is_err() && !file::flags(&file)?.contains(Flags::APPEND) {
        descriptor.flags &= !flags::APPEND;
    }
    Ok(guest.write_u32(written, u32::try_from(bytes?).map_err(|_| Errno::Overflow)?)?)
}

/// Linux appends to a file with `O_APPEND` even if a position is given; POSIX and WASI do not. So the flag is removed
/// during the write; the open file is not shared, so this is not observable.
///
/// # Errors
/// The host's error. If it is that of restoring the flag, the bytes were written.
fn write_at(file: &File, slices: &[IoSlice<'_>], at: u64, appends: bool) -> io::Result<usize> {
    if !appends {
        return file::write_at(file, slices, at);
    }
    let host = file::flags(file)?;
    let mut without = host;
    without.set(Flags::APPEND, false);
    file::set_flags(file, without)?;
    let written = file::write_at(file, slices, at);
    file::set_flags(file, host)?;
    written
}

pub(crate) fn slices<'g>(guest: &'g Guest<'_>, buffers: u32, count: u32) -> Result<Vec<IoSlice<'g>>, Errno> {
    let buffers = guest.buffers(buffers, count)?;
    buffers.into_iter().map(|buffer| guest.slice(buffer).map(IoSlice::new)).collect()
}

pub(crate) fn fd_seek(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, by: i64, whence: u32, at: u32) -> Outcome {
    const SET: u32 = 0;
    const CURRENT: u32 = 1;
    const END: u32 = 2;
    // Reading the current position only requires the right to tell.
    let right = if by == 0 && whence == CURRENT { rights::FD_TELL } else { rights::FD_SEEK | rights::FD_TELL };
    let file = ctx.table.get(fd)?.file(right, Errno::Spipe)?;
    let to = match whence {
        SET => SeekFrom::Start(u64::try_from(by).map_err(|_| Errno::Inval)?),
        CURRENT => SeekFrom::Current(by),
        END => SeekFrom::End(by),
        _ => return Err(Errno::Inval.into()),
    };
    guest.check_u64(at)?;
    Ok(guest.write_u64(at, file::seek(file, to)?)?)
}

pub(crate) fn fd_tell(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, at: u32) -> Outcome {
    let file = ctx.table.get(fd)?.file(rights::FD_TELL, Errno::Spipe)?;
    Ok(guest.write_u64(at, file::seek(file, SeekFrom::Current(0))?)?)
}

pub(crate) async fn fd_advise(ctx: &mut WasiCtx, _: &mut Guest<'_>, fd: u32, at: u64, len: u64, advice: u32) -> Outcome {
    let file = Arc::clone(ctx.table.get(fd)?.file(rights::FD_ADVISE, Errno::Spipe)?);
    let advice = match advice {
        0 => Advice::Normal,
        1 => Advice::Sequential,
        2 => Advice::Random,
        3 => Advice::WillNeed,
        4 => Advice::DontNeed,
        5 => Advice::NoReuse,
        _ => return Err(Errno::Inval.into()),
    };
    Ok(ctx.blocking.call(move || file::advise(&file, at, len, advice)).await?)
}

pub(crate) async fn fd_allocate(ctx: &mut WasiCtx, _: &mut Guest<'_>, fd: u32, at: u64, len: u64) -> Outcome {
    let file = Arc::clone(ctx.table.get(fd)?.file(rights::FD_ALLOCATE, Errno::Spipe)?);
    Ok(ctx.blocking.call(move || file::allocate(&file, at, len)).await?)
}

pub(crate) async fn fd_filestat_set_size(ctx: &mut WasiCtx, _: &mut Guest<'_>, fd: u32, size: u64) -> Outcome {
    let file = Arc::clone(ctx.table.get(fd)?.file(rights::FD_FILESTAT_SET_SIZE, Errno::Inval)?);
    Ok(ctx.blocking.call(move || file::set_len(&file, size)).await?)
}
