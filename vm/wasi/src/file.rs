//! `fd_*` calls that read, write and seek.

use crate::ctx::WasiCtx;
use crate::descriptor::{Object, flags};
use crate::errno::Errno;
use crate::guest::{Buffer, Guest};
use crate::outcome::{BrokenPipe, Failure, Outcome};
use crate::rights;
use crate::sys::file::{self, Advice, Flags};
use cap_std::fs::File;
use std::io::{IoSlice, SeekFrom};

pub(crate) fn fd_read(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, buffers: u32, count: u32, read: u32) -> Outcome {
    let descriptor = ctx.table.get_mut(fd)?;
    guest.check_u32(read)?;
    let buffers = guest.buffers(buffers, count)?;
    if let Object::Dir(_) = descriptor.object {
        return Err(Errno::Isdir.into());
    }
    descriptor.require(rights::FD_READ)?;
    let bytes = match &mut descriptor.object {
        Object::File(file) => fill(guest, &buffers, |into, _| Ok(file::read(&*file, into)?))?,
        Object::Stream(stream) => fill_first(guest, &buffers, |into| stream.read(into))?,
        Object::Socket(socket) | Object::Listener(socket) => fill_first(guest, &buffers, |into| Ok(file::read(&*socket, into)?))?,
        Object::Dir(_) => 0,
    };
    Ok(guest.write_u32(read, bytes)?)
}

pub(crate) fn fd_pread(
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
    let bytes = fill(guest, &buffers, |into, before| {
        let at = at.checked_add(u64::from(before)).ok_or(Errno::Inval)?;
        Ok(file::read_at(file, into, at)?)
    })?;
    Ok(guest.write_u32(read, bytes)?)
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
    match buffers.iter().find(|buffer| buffer.len > 0) {
        Some(buffer) => read(guest.slice_mut(*buffer)?).map(|bytes| bytes as u32),
        None => Ok(0),
    }
}

pub(crate) fn fd_write(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, buffers: u32, count: u32, written: u32) -> Outcome {
    let broken_pipe_ends = ctx.broken_pipe_ends;
    let descriptor = ctx.table.get_mut(fd)?;
    if let Object::Dir(_) = descriptor.object {
        return Err(Errno::Isdir.into());
    }
    descriptor.require(rights::FD_WRITE)?;
    guest.check_u32(written)?;
    let slices = slices(guest, buffers, count)?;
    let bytes = match &mut descriptor.object {
        Object::Stream(stream) => stream.write(&slices),
        Object::File(file) => file::write(&*file, &slices).map_err(Errno::from),
        Object::Socket(socket) | Object::Listener(socket) => file::write(&*socket, &slices).map_err(Errno::from),
        Object::Dir(_) => Err(Errno::Isdir),
    };
    let bytes = match bytes {
        Err(Errno::Pipe) if broken_pipe_ends => return Err(Failure::End(BrokenPipe.into())),
        bytes => bytes?,
    };
    Ok(guest.write_u32(written, u32::try_from(bytes).map_err(|_| Errno::Overflow)?)?)
}

pub(crate) fn fd_pwrite(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    fd: u32,
    buffers: u32,
    count: u32,
    at: u64,
    written: u32,
) -> Outcome {
    let descriptor = ctx.table.get_mut(fd)?;
    let file = descriptor.file(rights::FD_WRITE | rights::FD_SEEK, Errno::Spipe)?;
    guest.check_u32(written)?;
    let slices = slices(guest, buffers, count)?;
    let write = || Ok(file::write_at(file, &slices, at)?);
    let bytes = if descriptor.flags & flags::APPEND == 0 {
        write()?
    } else {
        let (bytes, appends) = without_append(file, write)?;
        if let Err(errno) = appends {
            descriptor.flags &= !flags::APPEND;
            return Err(errno.into());
        }
        bytes?
    };
    Ok(guest.write_u32(written, u32::try_from(bytes).map_err(|_| Errno::Overflow)?)?)
}

/// Linux appends to a file with `O_APPEND` even if a position is given; POSIX and WASI do not. So the flag is removed
/// during the write; the open file is not shared, so this is not observable. Returns the result of `write`, and whether
/// the flag could be restored.
///
/// # Errors
/// The flag cannot be changed, and nothing was written.
#[expect(clippy::type_complexity, reason = "two results of one call")]
fn without_append<R>(
    file: &File,
    write: impl FnOnce() -> Result<R, Errno>,
) -> Result<(Result<R, Errno>, Result<(), Errno>), Errno> {
    let host = file::flags(file)?;
    let mut without = host;
    without.set(Flags::APPEND, false);
    file::set_flags(file, without)?;
    let written = write();
    Ok((written, file::set_flags(file, host).map_err(Errno::from)))
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

pub(crate) fn fd_advise(ctx: &mut WasiCtx, _: &mut Guest<'_>, fd: u32, at: u64, len: u64, advice: u32) -> Outcome {
    let file = ctx.table.get(fd)?.file(rights::FD_ADVISE, Errno::Spipe)?;
    let advice = match advice {
        0 => Advice::Normal,
        1 => Advice::Sequential,
        2 => Advice::Random,
        3 => Advice::WillNeed,
        4 => Advice::DontNeed,
        5 => Advice::NoReuse,
        _ => return Err(Errno::Inval.into()),
    };
    Ok(file::advise(file, at, len, advice)?)
}

pub(crate) fn fd_allocate(ctx: &mut WasiCtx, _: &mut Guest<'_>, fd: u32, at: u64, len: u64) -> Outcome {
    let file = ctx.table.get(fd)?.file(rights::FD_ALLOCATE, Errno::Spipe)?;
    Ok(file::allocate(file, at, len)?)
}

pub(crate) fn fd_filestat_set_size(ctx: &mut WasiCtx, _: &mut Guest<'_>, fd: u32, size: u64) -> Outcome {
    let file = ctx.table.get(fd)?.file(rights::FD_FILESTAT_SET_SIZE, Errno::Inval)?;
    Ok(file::set_len(file, size)?)
}
