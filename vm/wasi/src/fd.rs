//! `fd_*` calls on any descriptor: type, flags, rights and number.

use crate::ctx::WasiCtx;
use crate::descriptor::{Descriptor, Object, flags};
use crate::errno::Errno;
use crate::guest::Guest;
use crate::outcome::Outcome;
use crate::rights;
use crate::stat::{bare_filestat, file_type, filestat, new_times};
use crate::sys::dir::FileType;
use crate::sys::file;
use cap_std::fs::MetadataExt;
use std::os::fd::{AsFd, BorrowedFd};

pub(crate) fn fd_close(ctx: &mut WasiCtx, _: &mut Guest<'_>, fd: u32) -> Outcome {
    Ok(ctx.table.close(fd)?)
}

pub(crate) fn fd_renumber(ctx: &mut WasiCtx, _: &mut Guest<'_>, from: u32, to: u32) -> Outcome {
    Ok(ctx.table.renumber(from, to)?)
}

pub(crate) fn fd_fdstat_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, stat: u32) -> Outcome {
    let descriptor = ctx.table.get(fd)?;
    let mut record = [0; 24];
    record[0] = match &descriptor.object {
        Object::File(file) => file_type(FileType::of_mode(file.metadata()?.mode())),
        object => object.file_type(),
    };
    record[2..4].copy_from_slice(&descriptor.flags.to_le_bytes());
    record[8..16].copy_from_slice(&descriptor.rights.to_le_bytes());
    record[16..24].copy_from_slice(&descriptor.inheriting.to_le_bytes());
    Ok(guest.write(stat, &record)?)
}

/// Only `append` and `nonblock` can be changed. `nonblock` is refused for standard streams, because it would change
/// them for every process that shares them. `append` is accepted, because they always append.
pub(crate) fn fd_fdstat_set_flags(ctx: &mut WasiCtx, _: &mut Guest<'_>, fd: u32, new: u32) -> Outcome {
    const CHANGEABLE: u16 = flags::APPEND | flags::NONBLOCK;
    let descriptor = ctx.table.get_mut(fd)?;
    descriptor.require(rights::FD_FDSTAT_SET_FLAGS)?;
    let new = u16::try_from(new).ok().filter(|new| new & !flags::ALL == 0).ok_or(Errno::Inval)?;
    if (new ^ descriptor.flags) & !CHANGEABLE != 0 {
        return Err(Errno::Inval.into());
    }
    match &descriptor.object {
        Object::Stream(_) if new & flags::NONBLOCK != 0 => return Err(Errno::Notsup.into()),
        Object::Stream(_) | Object::Dir(_) => {}
        Object::File(file) => set_host_flags(file.as_fd(), new)?,
        Object::Listener(socket) | Object::Socket(socket) => set_host_flags(socket.as_fd(), new)?,
    }
    descriptor.flags = new;
    Ok(())
}

fn set_host_flags(fd: BorrowedFd<'_>, new: u16) -> Result<(), Errno> {
    let mut host = file::flags(fd)?;
    host.set(file::Flags::APPEND, new & flags::APPEND != 0);
    host.set(file::Flags::NONBLOCK, new & flags::NONBLOCK != 0);
    Ok(file::set_flags(fd, host)?)
}

/// Rights can only be removed.
pub(crate) fn fd_fdstat_set_rights(ctx: &mut WasiCtx, _: &mut Guest<'_>, fd: u32, base: u64, inheriting: u64) -> Outcome {
    let descriptor = ctx.table.get_mut(fd)?;
    if base & !descriptor.rights != 0 || inheriting & !descriptor.inheriting != 0 {
        return Err(Errno::Notcapable.into());
    }
    descriptor.rights = base;
    descriptor.inheriting = inheriting;
    Ok(())
}

pub(crate) fn fd_filestat_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, stat: u32) -> Outcome {
    let descriptor = ctx.table.get(fd)?;
    descriptor.require(rights::FD_FILESTAT_GET)?;
    let record = match &descriptor.object {
        Object::File(file) => filestat(&file.metadata()?),
        Object::Dir(directory) => filestat(&directory.dir.dir_metadata()?),
        object => bare_filestat(object.file_type()),
    };
    Ok(guest.write(stat, &record)?)
}

pub(crate) fn fd_filestat_set_times(
    ctx: &mut WasiCtx,
    _: &mut Guest<'_>,
    fd: u32,
    access: u64,
    modification: u64,
    flags: u32,
) -> Outcome {
    let host = stored(ctx.table.get(fd)?, rights::FD_FILESTAT_SET_TIMES)?;
    let [access, modification] = new_times(access, modification, flags)?;
    Ok(file::set_times(host, access, modification)?)
}

pub(crate) fn fd_sync(ctx: &mut WasiCtx, _: &mut Guest<'_>, fd: u32) -> Outcome {
    Ok(file::sync(stored(ctx.table.get(fd)?, rights::FD_SYNC)?)?)
}

pub(crate) fn fd_datasync(ctx: &mut WasiCtx, _: &mut Guest<'_>, fd: u32) -> Outcome {
    Ok(file::sync_data(stored(ctx.table.get(fd)?, rights::FD_DATASYNC)?)?)
}

/// Returns the host's descriptor of a file or directory, for an operation that needs this right.
fn stored(descriptor: &Descriptor, right: u64) -> Result<BorrowedFd<'_>, Errno> {
    match &descriptor.object {
        Object::File(file) => descriptor.require(right).map(|()| file.as_fd()),
        Object::Dir(directory) => descriptor.require(right).map(|()| directory.dir.as_fd()),
        Object::Stream(_) | Object::Listener(_) | Object::Socket(_) => Err(Errno::Inval),
    }
}
