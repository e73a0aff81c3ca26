//! Directories, and `fd_readdir`, `fd_prestat_*`.

use crate::Answer;
use crate::ctx::WasiCtx;
use crate::descriptor::Object;
use crate::errno::Errno;
use crate::guest::{Buffer, Guest};
use crate::sys::dir::FileType;
use crate::{rights, stat, sys};
use cap_std::fs::{Dir, MetadataExt};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// An open directory.
#[derive(Debug)]
pub(crate) struct Directory {
    pub dir: Dir,
    /// Its path in the program's eyes, of one that is opened for it at the start.
    preopened_as: Option<Box<str>>,
    /// The entries when the guest began to list the directory. Cookies are indices into them, so that a listing shows every entry
    /// once whatever is created and removed meanwhile.
    listing: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    inode: u64,
    file_type: u8,
    name: Box<[u8]>,
}

/// Size of a `dirent`, which the name follows.
const DIRENT_SIZE: usize = 24;
/// The one type of `prestat`: a directory.
const PREOPENED_DIRECTORY: u32 = 0;

impl Directory {
    /// Opened by the guest.
    pub fn new(dir: Dir) -> Directory {
        Directory { dir, preopened_as: None, listing: Vec::new() }
    }

    /// The host's directory `host`, which the guest knows as `guest`.
    pub fn preopened(host: &Path, guest: String) -> io::Result<Directory> {
        let fd = sys::dir::open(host)?;
        Ok(Directory { preopened_as: Some(guest.into()), ..Directory::new(Dir::from_std_file(fd.into())) })
    }

    /// The current entries by name, after `.` and `..`; the identity of `..` is hidden from the guest.
    /// The host's order might differ from one look to the next.
    fn list(&self) -> io::Result<Vec<Entry>> {
        let entry = |inode, name: &[u8]| Entry { inode, file_type: stat::DIRECTORY, name: name.into() };
        let mut entries = vec![entry(self.dir.dir_metadata()?.ino(), b"."), entry(0, b"..")];
        for found in sys::dir::entries(&self.dir)? {
            if *found.name != *b"." && *found.name != *b".." {
                entries.push(Entry { inode: found.inode, file_type: self.type_of(&found), name: found.name });
            }
        }
        entries[2..].sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// Some file systems say what type an entry has only when they are asked for it.
    fn type_of(&self, entry: &sys::dir::Entry) -> u8 {
        match entry.file_type {
            FileType::Unknown => {
                let metadata = self.dir.symlink_metadata(OsStr::from_bytes(&entry.name));
                metadata.map_or(stat::UNKNOWN, |metadata| stat::file_type(FileType::of_mode(metadata.mode())))
            }
            known => stat::file_type(known),
        }
    }
}

/// As many entries as fit from the one with number `cookie` on, the last one cut off. A buffer that is not filled says that
/// there are no more. Cookie 0 looks at the directory anew.
pub(crate) fn fd_readdir(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    fd: u32,
    into: u32,
    len: u32,
    cookie: u64,
    used: u32,
) -> Answer {
    let descriptor = ctx.table.get_mut(fd)?;
    descriptor.dir(rights::FD_READDIR)?;
    let Object::Dir(directory) = &mut descriptor.object else { return Err(Errno::Notdir.into()) };
    guest.check_u32(used)?;
    let buffer = guest.slice_mut(Buffer { at: into, len })?;
    if cookie == 0 || directory.listing.is_empty() {
        directory.listing = directory.list()?;
    }
    let mut filled = 0;
    let first = usize::try_from(cookie).map_err(|_| Errno::Overflow)?;
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
    Ok(guest.write_u32(used, filled as u32)?)
}

/// The path of a directory that is opened for the program. `EBADF` tells its library that it has seen the last of them.
fn preopened_as(ctx: &WasiCtx, fd: u32) -> Result<&str, Errno> {
    match &ctx.table.get(fd)?.object {
        Object::Dir(Directory { preopened_as: Some(path), .. }) => Ok(path),
        _ => Err(Errno::Badf),
    }
}

pub(crate) fn fd_prestat_get(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, prestat: u32) -> Answer {
    let length = preopened_as(ctx, fd)?.len() as u32;
    let record = [PREOPENED_DIRECTORY.to_le_bytes(), length.to_le_bytes()].concat();
    Ok(guest.write(prestat, &record)?)
}

pub(crate) fn fd_prestat_dir_name(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, name: u32, len: u32) -> Answer {
    let path = preopened_as(ctx, fd)?.as_bytes();
    if path.len() > len as usize {
        return Err(Errno::Nametoolong.into());
    }
    Ok(guest.write(name, path)?)
}
