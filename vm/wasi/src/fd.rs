//! `fd_*` calls on any descriptor: type, flags, rights and number.

use crate::ctx::WasiCtx;
use crate::descriptor::{Descriptor, Object, flags};
use crate::errno::Errno;
use crate::guest::Guest;
use crate::outcome::Outcome;
use crate::rights;
use crate::stat::{bare_filestat, filestat, new_times};
use crate::sys::file;
use cap_std::fs::{Dir, File};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

pub(crate) async fn fd_close(ctx: &mut WasiCtx, _: &mut Guest<'_>, fd: u32) -> Outcome {
    let descriptor = ctx.table.take(fd)?;
    close(ctx, descriptor).await;
    Ok(())
}

pub(crate) async fn fd_renumber(ctx: &mut WasiCtx, _: &mut Guest<'_>, from: u32, to: u32) -> Outcome {
    if let Some(replaced) = ctx.table.renumber(from, to)? {
        close(ctx, replaced).await;
    }
    Ok(())
}

/// Closing a file may write it.
async fn close(ctx: &mut WasiCtx, descriptor: Descriptor) {
    if let Object::File(file, _) = descriptor.object {
        ctx.blocking.call(move || drop(file)).await;
    }
}

pub(crate) fn fd_fdstat_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, stat: u32) -> Outcome {
    let descriptor = ctx.table.get(fd)?;
    let mut record = [0; 24];
    record[0] = descriptor.object.file_type();
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
        Object::File(file, _) => set_host_flags(file.as_fd(), new)?,
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

pub(crate) async fn fd_filestat_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, stat: u32) -> Outcome {
    let descriptor = ctx.table.get(fd)?;
    descriptor.require(rights::FD_FILESTAT_GET)?;
    let record = match Stored::of(descriptor) {
        Some(Stored::File(file)) => ctx.blocking.call(move || file.metadata()).await.map(|metadata| filestat(&metadata))?,
        Some(Stored::Dir(dir)) => ctx.blocking.call(move || dir.dir_metadata()).await.map(|metadata| filestat(&metadata))?,
        None => bare_filestat(descriptor.object.file_type()),
    };
    Ok(guest.write(stat, &record)?)
}

pub(crate) async fn fd_filestat_set_times(
    ctx: &mut WasiCtx,
    _: &mut Guest<'_>,
    fd: u32,
    access: u64,
    modification: u64,
    flags: u32,
) -> Outcome {
    let host = stored(ctx.table.get(fd)?, rights::FD_FILESTAT_SET_TIMES)?;
    let [access, modification] = new_times(access, modification, flags)?;
    Ok(ctx.blocking.call(move || file::set_times(&host, access, modification)).await?)
}

pub(crate) async fn fd_sync(ctx: &mut WasiCtx, _: &mut Guest<'_>, fd: u32) -> Outcome {
    let host = stored(ctx.table.get(fd)?, rights::FD_SYNC)?;
    Ok(ctx.blocking.call(move || file::sync(&host)).await?)
}

pub(crate) async fn fd_datasync(ctx: &mut WasiCtx, _: &mut Guest<'_>, fd: u32) -> Outcome {
    let host = stored(ctx.table.get(fd)?, rights::FD_DATASYNC)?;
    Ok(ctx.blocking.call(move || file::sync_data(&host)).await?)
}

/// A file or a directory.
enum Stored {
    File(Arc<File>),
    Dir(Arc<Dir>),
}

impl Stored {
    fn of(descriptor: &Descriptor) -> Option<Stored> {
        match &descriptor.object {
            Object::File(file, _) => Some(Stored::File(Arc::clone(file))),
            Object::Dir(directory) => Some(Stored::Dir(Arc::clone(&directory.dir))),
            Object::Stream(_) | Object::Listener(_) | Object::Socket(_) => None,
        }
    }
}

impl AsFd for Stored {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Stored::File(file) => file.as_fd(),
            Stored::Dir(dir) => dir.as_fd(),
        }
    }
}

/// Returns the file or directory, for an operation that needs this right.
fn stored(descriptor: &Descriptor, right: u64) -> Result<Stored, Errno> {
    let stored = Stored::of(descriptor).ok_or(Errno::Inval)?;
    descriptor.require(right).map(|()| stored)
}
