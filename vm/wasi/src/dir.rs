//! `fd_readdir` and `fd_prestat_*`.

use crate::ctx::WasiCtx;
use crate::descriptor::Object;
use crate::directory::{self, Directory};
use crate::errno::Errno;
use crate::guest::{Buffer, Guest};
use crate::outcome::Outcome;
use crate::rights;
use std::sync::Arc;

/// Size of a `dirent`, which the name follows.
const DIRENT_SIZE: usize = 24;
/// The one type of `prestat`: a directory.
const PREOPENED_DIRECTORY: u32 = 0;

/// Writes as many entries as fit, from the one with number `cookie` on; the last one may be truncated. A buffer that is
/// not full means that there are no more. Cookie 0 lists the directory anew, and so does any other after the end was seen.
pub(crate) async fn fd_readdir(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    fd: u32,
    into: u32,
    len: u32,
    cookie: u64,
    used: u32,
) -> Outcome {
    let directory = ctx.table.get(fd)?.dir(rights::FD_READDIR)?;
    guest.check_u32(used)?;
    let buffer = guest.slice_mut(Buffer { at: into, len })?;
    let first = usize::try_from(cookie).map_err(|_| Errno::Overflow)?;
    if cookie == 0 || directory.listing.is_empty() {
        let dir = Arc::clone(&directory.dir);
        ctx.table.set_listing(fd, Vec::new());
        let room = ctx.room();
        match ctx.blocking.call(move || directory::list(&dir, room)).await? {
            Ok(listing) => ctx.table.set_listing(fd, listing),
            // With more room, the call is repeated.
            Err(needed) => ctx.reserve(needed)?,
        }
    }
    let directory = ctx.table.get(fd)?.dir(rights::FD_READDIR)?;
    let mut filled = 0;
    for (i, entry) in directory.listing.iter().enumerate().skip(first) {
        let mut record = [0; DIRENT_SIZE];
        record[0..8].copy_from_slice(&(i as u64 + 1).to_le_bytes());
        record[8..16].copy_from_slice(&entry.inode.to_le_bytes());
        record[16..20].copy_from_slice(&(entry.name.len() as u32).to_le_bytes());
        record[20] = entry.file_type;
        for part in [&record[..], &entry.name] {
            let fits = part.len().min(buffer.len() - filled);
            buffer[filled..filled + fits].copy_from_slice(&part[..fits]);
            filled += fits;
        }
        if filled == buffer.len() {
            break;
        }
    }
    if filled < buffer.len() {
        // The guest has seen the end.
        ctx.table.set_listing(fd, Vec::new());
    }
    Ok(guest.write_u32(used, filled as u32)?)
}

/// Returns the guest's path of a preopened directory. The C library of a guest stops enumerating them at `EBADF`.
fn preopened_as(ctx: &WasiCtx, fd: u32) -> Result<&str, Errno> {
    match &ctx.table.get(fd)?.object {
        Object::Dir(Directory { preopened_as: Some(path), .. }) => Ok(path),
        _ => Err(Errno::Badf),
    }
}

pub(crate) fn fd_prestat_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, prestat: u32) -> Outcome {
    let length = preopened_as(ctx, fd)?.len() as u32;
    let record = [PREOPENED_DIRECTORY.to_le_bytes(), length.to_le_bytes()].concat();
    Ok(guest.write(prestat, &record)?)
}

pub(crate) fn fd_prestat_dir_name(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, name: u32, len: u32) -> Outcome {
    let path = preopened_as(ctx, fd)?.as_bytes();
    if path.len() > len as usize {
        return Err(Errno::Nametoolong.into());
    }
    Ok(guest.write(name, path)?)
}
