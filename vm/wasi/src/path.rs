//! `path_*`: files by name, relative to an open directory. cap-std ensures that no path and no link leads outside it.

use crate::ctx::WasiCtx;
use crate::descriptor::{Descriptor, Object, Origin, flags};
use crate::directory::Directory;
use crate::errno::Errno;
use crate::guard::Use;
use crate::guest::{Buffer, Guest};
use crate::outcome::Outcome;
use crate::sys::file::Flags;
use crate::{rights, stat};
use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsMaybeDirExt};
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The one bit of `lookupflags`: a symbolic link at the end of the path is followed.
const FOLLOW: u32 = 1;

/// Bits of `oflags`.
const CREATE: u32 = 1;
const DIRECTORY: u32 = 2;
const EXCLUSIVE: u32 = 4;
const TRUNCATE: u32 = 8;

fn follows(lookup: u32) -> Result<bool, Errno> {
    match lookup {
        0 => Ok(false),
        FOLLOW => Ok(true),
        _ => Err(Errno::Inval),
    }
}

/// A file by name: in the guest's directory, or where the guard has found it.
enum At<'a> {
    Given(&'a Dir, &'a str),
    Found(Dir, OsString),
}

impl At<'_> {
    /// Returns the folder.
    fn dir(&self) -> &Dir {
        match self {
            At::Given(dir, _) => dir,
            At::Found(dir, _) => dir,
        }
    }

    /// Returns the path in the folder.
    fn path(&self) -> &Path {
        match self {
            At::Given(_, path) => Path::new(path),
            At::Found(_, name) => Path::new(name),
        }
    }

    /// Returns whether a link at the end of the path is still to be followed, if links are.
    fn follows(&self, follow: bool) -> bool {
        follow && matches!(self, At::Given(..))
    }
}

/// Returns the file at a path, for an operation that needs these rights.
fn at<'a>(ctx: &'a WasiCtx, fd: u32, rights: u64, path: &'a str, follow: bool, used: Use) -> Result<At<'a>, Errno> {
    at_in(ctx, ctx.table.get(fd)?.dir(rights)?, path, follow, used)
}

fn at_in<'a>(ctx: &WasiCtx, directory: &'a Directory, path: &'a str, follow: bool, used: Use) -> Result<At<'a>, Errno> {
    match &ctx.guard {
        Some(guard) if directory.is_related => {
            let (dir, name) = guard.find(&directory.dir, path, follow, used)?;
            Ok(At::Found(dir, name))
        }
        _ => Ok(At::Given(&directory.dir, path)),
    }
}

#[expect(clippy::too_many_arguments, reason = "the call has as many")]
pub(crate) fn path_open(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    fd: u32,
    lookup: u32,
    path: u32,
    len: u32,
    how: u32,
    base: u64,
    inheriting: u64,
    fd_flags: u32,
    opened: u32,
) -> Outcome {
    let parent = ctx.table.get(fd)?;
    let request = Request {
        follow: follows(lookup)?,
        how,
        base: base & rights::ALL,
        inheriting: inheriting & rights::ALL,
        flags: u16::try_from(fd_flags).ok().filter(|set| set & !flags::ALL == 0).ok_or(Errno::Inval)?,
    };
    let directory = parent.dir(request.rights_needed()?)?;
    if (request.base | request.inheriting) & !parent.inheriting != 0 {
        return Err(Errno::Notcapable.into());
    }
    guest.check_u32(opened)?;
    let used = if request.asks(CREATE) { Use::Change } else { Use::Look };
    let path = guest.path(path, len)?;
    let at = at_in(ctx, directory, path, request.follow, used)?;
    let descriptor = request.open(ctx, &at, path, directory.is_related)?;
    let number = ctx.table.insert(descriptor)?;
    Ok(guest.write_u32(opened, number)?)
}

/// The arguments of `path_open`.
struct Request {
    follow: bool,
    how: u32,
    base: u64,
    inheriting: u64,
    flags: u16,
}

impl Request {
    fn asks(&self, oflag: u32) -> bool {
        self.how & oflag != 0
    }

    /// Returns the rights that the directory must have.
    fn rights_needed(&self) -> Result<u64, Errno> {
        if self.how & !(CREATE | DIRECTORY | EXCLUSIVE | TRUNCATE) != 0 {
            return Err(Errno::Inval);
        }
        let create = if self.asks(CREATE) { rights::PATH_CREATE_FILE } else { 0 };
        let truncate = if self.asks(TRUNCATE) { rights::PATH_FILESTAT_SET_SIZE } else { 0 };
        Ok(rights::PATH_OPEN | create | truncate)
    }

    /// Opens what is at `at`, where the guest's `path` leads.
    fn open(&self, ctx: &WasiCtx, at: &At<'_>, path: &str, is_related: bool) -> Result<Descriptor, Errno> {
        if self.asks(DIRECTORY) && self.how & (CREATE | EXCLUSIVE | TRUNCATE) != 0 {
            return Err(Errno::Inval);
        }
        let file = at.dir().open_with(at.path(), &self.options(at.follows(self.follow)))?;
        let object = if file.metadata()?.is_dir() {
            let dir = Dir::from_std_file(file.into_std());
            // It may just have come to this place.
            if let Some(guard) = ctx.guard.as_ref().filter(|_| is_related)
                && guard.is_guarded(&dir)?
            {
                return Err(Errno::Acces);
            }
            Object::Dir(Directory::new(dir, is_related))
        } else {
            Object::File(file)
        };
        let (rights, inheriting) = object.natural_rights();
        let (rights, inheriting) = (self.base & rights, self.inheriting & inheriting);
        let origin = Origin::Opened(path.into());
        Ok(Descriptor { object, flags: self.flags, rights, inheriting, origin })
    }

    /// Opens the file for the operations that the rights allow. A file without the right to read or write must still be
    /// opened for one of them.
    fn options(&self, follow: bool) -> OpenOptions {
        let write = !self.asks(DIRECTORY) && (self.base & rights::WRITING != 0 || self.asks(TRUNCATE));
        let read = self.base & (rights::FD_READ | rights::FD_READDIR) != 0 || !write;
        let mut options = OpenOptions::new();
        options.read(read).write(write).maybe_dir(true);
        options.follow(if follow { FollowSymlinks::Yes } else { FollowSymlinks::No });
        options.custom_flags(self.host_flags().bits());
        options
    }

    fn host_flags(&self) -> Flags {
        // Not by `OpenOptions::create`, which would refuse to create a file that is then only read.
        let mut host = Flags::NONE;
        host.set(Flags::CREATE, self.asks(CREATE));
        host.set(Flags::EXCLUSIVE, self.asks(EXCLUSIVE));
        host.set(Flags::DIRECTORY, self.asks(DIRECTORY));
        host.set(Flags::TRUNCATE, self.asks(TRUNCATE));
        host.set(Flags::APPEND, self.flags & flags::APPEND != 0);
        host.set(Flags::NONBLOCK, self.flags & flags::NONBLOCK != 0);
        host.set(Flags::DSYNC, self.flags & flags::DSYNC != 0);
        // Linux does not distinguish the two.
        host.set(Flags::SYNC, self.flags & (flags::SYNC | flags::RSYNC) != 0);
        host
    }
}

/// Whether there is a file at a path, in a directory in which others may be created.
fn exists(ctx: &WasiCtx, fd: u32, path: &str) -> bool {
    let at = at(ctx, fd, rights::PATH_CREATE_DIRECTORY, path, false, Use::Look);
    at.is_ok_and(|at| at.dir().symlink_metadata(at.path()).is_ok())
}

pub(crate) fn path_create_directory(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, path: u32, len: u32) -> Outcome {
    let path = guest.path(path, len)?;
    let at = match at(ctx, fd, rights::PATH_CREATE_DIRECTORY, path, false, Use::Change) {
        // A program that makes all folders of a path expects this of those that exist.
        Err(Errno::Acces) if exists(ctx, fd, path) => return Err(Errno::Exist.into()),
        at => at?,
    };
    Ok(at.dir().create_dir(at.path())?)
}

pub(crate) fn path_remove_directory(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, path: u32, len: u32) -> Outcome {
    let at = at(ctx, fd, rights::PATH_REMOVE_DIRECTORY, guest.path(path, len)?, false, Use::Change)?;
    Ok(at.dir().remove_dir(at.path())?)
}

pub(crate) fn path_unlink_file(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, path: u32, len: u32) -> Outcome {
    let at = at(ctx, fd, rights::PATH_UNLINK_FILE, guest.path(path, len)?, false, Use::Change)?;
    Ok(at.dir().remove_file(at.path())?)
}

pub(crate) fn path_filestat_get(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    fd: u32,
    lookup: u32,
    path: u32,
    len: u32,
    record: u32,
) -> Outcome {
    let follow = follows(lookup)?;
    let at = at(ctx, fd, rights::PATH_FILESTAT_GET, guest.path(path, len)?, follow, Use::Look)?;
    let metadata = if at.follows(follow) { at.dir().metadata(at.path()) } else { at.dir().symlink_metadata(at.path()) };
    let filestat = stat::filestat(&metadata?);
    Ok(guest.write(record, &filestat)?)
}

#[expect(clippy::too_many_arguments, reason = "the call has as many")]
pub(crate) fn path_filestat_set_times(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    fd: u32,
    lookup: u32,
    path: u32,
    len: u32,
    access: u64,
    modification: u64,
    flags: u32,
) -> Outcome {
    ctx.table.get(fd)?.dir(rights::PATH_FILESTAT_SET_TIMES)?;
    let [access, modification] = stat::new_times(access, modification, flags)?.map(stat::spec);
    let (path, follow) = (guest.path(path, len)?, follows(lookup)?);
    let at = at(ctx, fd, rights::PATH_FILESTAT_SET_TIMES, path, follow, Use::Look)?;
    let set = if at.follows(follow) {
        at.dir().set_times(at.path(), access, modification)
    } else {
        at.dir().set_symlink_times(at.path(), access, modification)
    };
    Ok(set?)
}

/// A symbolic link itself gets a second name: following it first is not possible within the sandbox in one step, and is
/// refused, as by wasmtime.
#[expect(clippy::too_many_arguments, reason = "the call has as many")]
pub(crate) fn path_link(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    fd: u32,
    lookup: u32,
    path: u32,
    len: u32,
    new_fd: u32,
    new_path: u32,
    new_len: u32,
) -> Outcome {
    let from = ctx.table.get(fd)?.dir(rights::PATH_LINK_SOURCE)?;
    let to = ctx.table.get(new_fd)?.dir(rights::PATH_LINK_TARGET)?;
    if follows(lookup)? {
        return Err(Errno::Inval.into());
    }
    let from = at_in(ctx, from, guest.path(path, len)?, false, Use::Look)?;
    let to = at_in(ctx, to, guest.path(new_path, new_len)?, false, Use::Change)?;
    Ok(from.dir().hard_link(from.path(), to.dir(), to.path())?)
}

#[expect(clippy::too_many_arguments, reason = "the call has as many")]
pub(crate) fn path_rename(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    fd: u32,
    path: u32,
    len: u32,
    new_fd: u32,
    new_path: u32,
    new_len: u32,
) -> Outcome {
    let from = ctx.table.get(fd)?.dir(rights::PATH_RENAME_SOURCE)?;
    let to = ctx.table.get(new_fd)?.dir(rights::PATH_RENAME_TARGET)?;
    let from = at_in(ctx, from, guest.path(path, len)?, false, Use::Change)?;
    let to = at_in(ctx, to, guest.path(new_path, new_len)?, false, Use::Change)?;
    Ok(from.dir().rename(from.path(), to.dir(), to.path())?)
}

/// The link's target is not interpreted, but an absolute path is refused, because it would mean something else to the
/// host.
pub(crate) fn path_symlink(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    target: u32,
    target_len: u32,
    fd: u32,
    path: u32,
    len: u32,
) -> Outcome {
    ctx.table.get(fd)?.dir(rights::PATH_SYMLINK)?;
    let target = guest.path(target, target_len)?;
    let at = at(ctx, fd, rights::PATH_SYMLINK, guest.path(path, len)?, false, Use::Change)?;
    Ok(at.dir().symlink(target, at.path())?)
}

/// Truncates the path at the end of the buffer. The target of an absolute link is not revealed, because it is a path of
/// the host.
#[expect(clippy::too_many_arguments, reason = "the call has as many")]
pub(crate) fn path_readlink(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    fd: u32,
    path: u32,
    len: u32,
    into: u32,
    into_len: u32,
    used: u32,
) -> Outcome {
    let at = at(ctx, fd, rights::PATH_READLINK, guest.path(path, len)?, false, Use::Look)?;
    let target = at.dir().read_link(at.path())?;
    let target = target.as_os_str().as_bytes();
    let target = &target[..target.len().min(into_len as usize)];
    guest.check_u32(used)?;
    guest.slice(Buffer { at: into, len: into_len })?;
    guest.write(into, target)?;
    Ok(guest.write_u32(used, target.len() as u32)?)
}
