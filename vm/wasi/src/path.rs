//! `path_*`: files by name, relative to an open directory. cap-std ensures that no path and no link leads outside it.

use crate::ctx::WasiCtx;
use crate::descriptor::{DESCRIPTOR, Descriptor, Object, Origin, flags};
use crate::directory::Directory;
use crate::errno::Errno;
use crate::guard::{Guard, Use};
use crate::guest::{Buffer, Guest};
use crate::outcome::Outcome;
use crate::sys::dir::FileType;
use crate::sys::file::Flags;
use crate::{rights, stat};
use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt, OpenOptionsMaybeDirExt};
use cap_std::fs::{Dir, MetadataExt, OpenOptions, OpenOptionsExt};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// A path of the guest, relative to one of its directories.
struct Place {
    dir: Arc<Dir>,
    path: Box<str>,
    guard: Option<Arc<Guard>>,
    /// Whether a guarded directory can be reached in `dir`.
    is_related: bool,
}

impl Place {
    fn new(ctx: &WasiCtx, directory: &Directory, path: &str) -> Place {
        let (guard, is_related) = (ctx.guard.clone(), directory.is_related);
        Place { dir: Arc::clone(&directory.dir), path: path.into(), guard, is_related }
    }

    /// Returns the guard if the path may lead to a directory that it keeps.
    fn related(&self) -> Option<&Guard> {
        self.guard.as_deref().filter(|_| self.is_related)
    }

    /// Returns where the path leads. This may block.
    fn find(&self, follow: bool, used: Use) -> Result<At<'_>, Errno> {
        Ok(match self.related() {
            Some(guard) => {
                let (dir, name) = guard.find(&self.dir, &self.path, follow, used)?;
                At::Found(dir, name)
            }
            None => At::Given(&self.dir, &self.path),
        })
    }
}

/// Returns the place of a path, for an operation that needs these rights.
fn place(ctx: &WasiCtx, guest: &Guest<'_>, fd: u32, rights: u64, path: u32, len: u32) -> Result<Place, Errno> {
    let directory = ctx.table.get(fd)?.dir(rights)?;
    Ok(Place::new(ctx, directory, guest.path(path, len)?))
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

#[expect(clippy::too_many_arguments, reason = "the call has as many")]
pub(crate) async fn path_open(
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
    ctx.reserve(DESCRIPTOR)?;
    let place = Place::new(ctx, directory, guest.path(path, len)?);
    let descriptor = ctx.blocking.call(move || request.open(&place)).await?;
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

    /// Opens what is at a place. This may block.
    fn open(&self, place: &Place) -> Result<Descriptor, Errno> {
        if self.asks(DIRECTORY) && self.how & (CREATE | EXCLUSIVE | TRUNCATE) != 0 {
            return Err(Errno::Inval);
        }
        let used = if self.asks(CREATE) { Use::Change } else { Use::Look };
        let at = place.find(self.follow, used)?;
        let file = at.dir().open_with(at.path(), &self.options(at.follows(self.follow)))?;
        let metadata = file.metadata()?;
        let object = if metadata.is_dir() {
            let dir = Dir::from_std_file(file.into_std());
            // It may just have come to this place.
            if let Some(guard) = place.related()
                && guard.is_guarded(&dir)?
            {
                return Err(Errno::Acces);
            }
            if self.base & rights::FD_WRITE != 0 {
                return Err(Errno::Isdir);
            }
            Object::Dir(Directory::new(dir, place.is_related))
        } else {
            if self.writes()
                && let Some(guard) = &place.guard
                && guard.has_file(&file, &metadata)
            {
                return Err(Errno::Acces);
            }
            Object::File(Arc::new(file), FileType::of_mode(metadata.mode()))
        };
        let (rights, inheriting) = object.natural_rights();
        let (rights, inheriting) = (self.base & rights, self.inheriting & inheriting);
        let origin = Origin::Opened(place.path.clone());
        Ok(Descriptor { object, flags: self.flags, rights, inheriting, origin })
    }

    /// Whether a file is opened for writing.
    fn writes(&self) -> bool {
        !self.asks(DIRECTORY) && (self.base & rights::WRITING != 0 || self.asks(TRUNCATE))
    }

    /// Opens the file for the operations that the rights allow. A file without the right to read or write must still be
    /// opened for one of them.
    fn options(&self, follow: bool) -> OpenOptions {
        let write = self.writes();
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

pub(crate) async fn path_create_directory(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, path: u32, len: u32) -> Outcome {
    let place = place(ctx, guest, fd, rights::PATH_CREATE_DIRECTORY, path, len)?;
    let create = move || {
        let at = match place.find(false, Use::Change) {
            // A program that makes all folders of a path expects this of those that exist.
            Err(Errno::Acces) if exists(&place) => return Err(Errno::Exist),
            at => at?,
        };
        Ok(at.dir().create_dir(at.path())?)
    };
    Ok(ctx.blocking.call(create).await?)
}

/// Whether there is a file at a place, as far as the guest may know.
fn exists(place: &Place) -> bool {
    place.find(false, Use::Look).is_ok_and(|at| at.dir().symlink_metadata(at.path()).is_ok())
}

pub(crate) async fn path_remove_directory(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, path: u32, len: u32) -> Outcome {
    let place = place(ctx, guest, fd, rights::PATH_REMOVE_DIRECTORY, path, len)?;
    let remove = move || -> Result<(), Errno> {
        let at = place.find(false, Use::Change)?;
        Ok(at.dir().remove_dir(without_slashes(at.path()))?)
    };
    Ok(ctx.blocking.call(remove).await?)
}

/// Returns a path without the slashes at its end, with which cap-std does not remove a directory.
fn without_slashes(path: &Path) -> &Path {
    let bytes = path.as_os_str().as_bytes();
    match bytes.iter().rposition(|byte| *byte != b'/') {
        Some(last) => Path::new(OsStr::from_bytes(&bytes[..=last])),
        None => path,
    }
}

pub(crate) async fn path_unlink_file(ctx: &mut WasiCtx, guest: &mut Guest<'_>, fd: u32, path: u32, len: u32) -> Outcome {
    let place = place(ctx, guest, fd, rights::PATH_UNLINK_FILE, path, len)?;
    let remove = move || -> Result<(), Errno> {
        let at = place.find(false, Use::Change)?;
        Ok(at.dir().remove_file(at.path())?)
    };
    Ok(ctx.blocking.call(remove).await?)
}

pub(crate) async fn path_filestat_get(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    fd: u32,
    lookup: u32,
    path: u32,
    len: u32,
    record: u32,
) -> Outcome {
    let follow = follows(lookup)?;
    let place = place(ctx, guest, fd, rights::PATH_FILESTAT_GET, path, len)?;
    let look = move || -> Result<[u8; 64], Errno> {
        let at = place.find(follow, Use::Look)?;
        let dir = at.dir();
        let metadata = if at.follows(follow) { dir.metadata(at.path()) } else { dir.symlink_metadata(at.path()) };
        Ok(stat::filestat(&metadata?))
    };
    let filestat = ctx.blocking.call(look).await?;
    Ok(guest.write(record, &filestat)?)
}

#[expect(clippy::too_many_arguments, reason = "the call has as many")]
pub(crate) async fn path_filestat_set_times(
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
    let times = stat::new_times(access, modification, flags)?;
    let place = place(ctx, guest, fd, rights::PATH_FILESTAT_SET_TIMES, path, len)?;
    let follow = follows(lookup)?;
    let set = move || -> Result<(), Errno> {
        let [access, modification] = times.map(stat::spec);
        let at = place.find(follow, Use::Look)?;
        Ok(if at.follows(follow) {
            at.dir().set_times(at.path(), access, modification)
        } else {
            at.dir().set_symlink_times(at.path(), access, modification)
        }?)
    };
    Ok(ctx.blocking.call(set).await?)
}

/// A symbolic link itself gets a second name: following it first is not possible within the sandbox in one step, and is
/// refused, as by wasmtime.
#[expect(clippy::too_many_arguments, reason = "the call has as many")]
pub(crate) async fn path_link(
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
    let from = place(ctx, guest, fd, rights::PATH_LINK_SOURCE, path, len)?;
    let to = place(ctx, guest, new_fd, rights::PATH_LINK_TARGET, new_path, new_len)?;
    if follows(lookup)? {
        return Err(Errno::Inval.into());
    }
    let link = move || -> Result<(), Errno> {
        let (from, to) = (from.find(false, Use::Look)?, to.find(false, Use::Change)?);
        Ok(from.dir().hard_link(from.path(), to.dir(), to.path())?)
    };
    Ok(ctx.blocking.call(link).await?)
}

#[expect(clippy::too_many_arguments, reason = "the call has as many")]
pub(crate) async fn path_rename(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    fd: u32,
    path: u32,
    len: u32,
    new_fd: u32,
    new_path: u32,
    new_len: u32,
) -> Outcome {
    let from = place(ctx, guest, fd, rights::PATH_RENAME_SOURCE, path, len)?;
    let to = place(ctx, guest, new_fd, rights::PATH_RENAME_TARGET, new_path, new_len)?;
    let rename = move || -> Result<(), Errno> {
        let (from, to) = (from.find(false, Use::Change)?, to.find(false, Use::Change)?);
        Ok(from.dir().rename(from.path(), to.dir(), to.path())?)
    };
    Ok(ctx.blocking.call(rename).await?)
}

/// The link's target is not interpreted, but an absolute path is refused, because it would mean something else to the
/// host.
pub(crate) async fn path_symlink(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    target: u32,
    target_len: u32,
    fd: u32,
    path: u32,
    len: u32,
) -> Outcome {
    let place = place(ctx, guest, fd, rights::PATH_SYMLINK, path, len)?;
    let target: Box<str> = guest.path(target, target_len)?.into();
    let link = move || -> Result<(), Errno> {
        let at = place.find(false, Use::Change)?;
        Ok(at.dir().symlink(&*target, at.path())?)
    };
    Ok(ctx.blocking.call(link).await?)
}

/// Truncates the path at the end of the buffer. The target of an absolute link is not revealed, because it is a path of
/// the host.
#[expect(clippy::too_many_arguments, reason = "the call has as many")]
pub(crate) async fn path_readlink(
    ctx: &mut WasiCtx,
    guest: &mut Guest<'_>,
    fd: u32,
    path: u32,
    len: u32,
    into: u32,
    into_len: u32,
    used: u32,
) -> Outcome {
    let place = place(ctx, guest, fd, rights::PATH_READLINK, path, len)?;
    let read = move || -> Result<PathBuf, Errno> {
        let at = place.find(false, Use::Look)?;
        Ok(at.dir().read_link(at.path())?)
    };
    let target = ctx.blocking.call(read).await?;
    let target = target.as_os_str().as_bytes();
    let target = &target[..target.len().min(into_len as usize)];
    guest.check_u32(used)?;
    guest.slice(Buffer { at: into, len: into_len })?;
    guest.write(into, target)?;
    Ok(guest.write_u32(used, target.len() as u32)?)
}
