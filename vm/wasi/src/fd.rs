//! `fd_*`: descriptors. All of them are streams so far.

use crate::ctx::WasiCtx;
use crate::errno::Errno;
use crate::guest::Guest;
use crate::stream::Stream;
use crate::{Answer, BrokenPipe, Failure};
use std::io::IoSlice;

/// Bits of `rights`.
pub(crate) mod rights {
    pub const FD_READ: u64 = 1 << 1;
    pub const FD_FDSTAT_SET_FLAGS: u64 = 1 << 3;
    pub const FD_WRITE: u64 = 1 << 6;
    pub const FD_FILESTAT_GET: u64 = 1 << 21;
    pub const POLL_FD_READWRITE: u64 = 1 << 27;
}

/// Bits of `fdflags`.
const APPEND: u16 = 1;

const UNKNOWN: u8 = 0;
const CHARACTER_DEVICE: u8 = 2;

/// What a stream can do at all.
fn natural_rights(stream: &Stream) -> u64 {
    let direction = if stream.readable() { rights::FD_READ } else { rights::FD_WRITE };
    direction | rights::FD_FDSTAT_SET_FLAGS | rights::FD_FILESTAT_GET | rights::POLL_FD_READWRITE
}

/// A terminal or nothing in particular: libraries buffer by line on the former.
fn file_type(stream: &Stream) -> u8 {
    if stream.is_terminal() { CHARACTER_DEVICE } else { UNKNOWN }
}

pub(crate) fn fd_read(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, buffers: u32, count: u32, read: u32) -> Answer {
    let stream = ctx.stream(fd, rights::FD_READ)?;
    guest.check_u32(read)?;
    // One buffer per call, because they may overlap; fewer bytes than asked for are no error.
    let Some(buffer) = guest.buffers(buffers, count)?.into_iter().find(|buffer| buffer.len > 0) else {
        return if stream.readable() { Ok(guest.write_u32(read, 0)?) } else { Err(Errno::Badf.into()) };
    };
    let bytes = stream.read(guest.slice_mut(buffer)?)?;
    Ok(guest.write_u32(read, bytes as u32)?)
}

pub(crate) fn fd_write(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, buffers: u32, count: u32, written: u32) -> Answer {
    let broken_pipe_ends = ctx.broken_pipe_ends;
    let stream = ctx.stream(fd, rights::FD_WRITE)?;
    guest.check_u32(written)?;
    let buffers = guest.buffers(buffers, count)?;
    let slices: Vec<_> = buffers.into_iter().map(|buffer| guest.slice(buffer).map(IoSlice::new)).collect::<Result<_, _>>()?;
    let bytes = match stream.write(&slices) {
        Err(Errno::Pipe) if broken_pipe_ends => return Err(Failure::End(BrokenPipe.into())),
        bytes => bytes?,
    };
    Ok(guest.write_u32(written, u32::try_from(bytes).map_err(|_| Errno::Overflow)?)?)
}

pub(crate) fn fd_close(ctx: &mut WasiCtx, _: &mut Guest<'_>, fd: u32) -> Answer {
    Ok(ctx.close(fd)?)
}

pub(crate) fn fd_renumber(ctx: &mut WasiCtx, _: &mut Guest<'_>, from: u32, to: u32) -> Answer {
    Ok(ctx.renumber(from, to)?)
}

pub(crate) fn fd_fdstat_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, stat: u32) -> Answer {
    let descriptor = ctx.descriptor(fd)?;
    let mut record = [0; 24];
    record[0] = file_type(&descriptor.stream);
    record[2..4].copy_from_slice(&descriptor.flags.to_le_bytes());
    let rights = natural_rights(&descriptor.stream) & !descriptor.dropped_rights;
    record[8..16].copy_from_slice(&rights.to_le_bytes());
    Ok(guest.write(stat, &record)?)
}

/// `nonblock` is refused: it would change the stream for every process that shares it. `append` is what streams do.
pub(crate) fn fd_fdstat_set_flags(ctx: &mut WasiCtx, _: &mut Guest<'_>, fd: u32, flags: u32) -> Answer {
    ctx.stream(fd, rights::FD_FDSTAT_SET_FLAGS)?;
    if flags & !u32::from(APPEND) != 0 {
        return Err(Errno::Notsup.into());
    }
    ctx.descriptor(fd)?.flags = flags as u16;
    Ok(())
}

/// Rights can only be given up.
pub(crate) fn fd_fdstat_set_rights(ctx: &mut WasiCtx, _: &mut Guest<'_>, fd: u32, base: u64, inheriting: u64) -> Answer {
    let descriptor = ctx.descriptor(fd)?;
    let now = natural_rights(&descriptor.stream) & !descriptor.dropped_rights;
    if base & !now != 0 || inheriting != 0 {
        return Err(Errno::Notcapable.into());
    }
    descriptor.dropped_rights |= now & !base;
    Ok(())
}

pub(crate) fn fd_filestat_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, stat: u32) -> Answer {
    let stream = ctx.stream(fd, rights::FD_FILESTAT_GET)?;
    let mut record = [0; 64];
    record[16] = file_type(stream);
    record[24] = 1; // links
    Ok(guest.write(stat, &record)?)
}

/// The answer to what can't be done with a stream: that there is no such descriptor, or why it can't.
pub(crate) fn no_stream(ctx: &mut WasiCtx, fd: u32, why: Errno) -> Answer {
    ctx.descriptor(fd)?;
    Err(why.into())
}
