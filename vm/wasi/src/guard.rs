//! Directories of the host that no program reaches, whatever is preopened: those of the command's cache, since who writes there can run
//! code as the user.
//!
//! A program cannot open a file in one or the directory itself, remove, rename or replace any folder or link on the way to it, or create
//! what is missing of that way. Folders are compared by device and inode, so that the way through a bind mount or a symbolic link is the
//! same. A file may have a name elsewhere too, by a hard link or a mount: it is not opened for writing there.
//!
//! A preopened directory is *related* if a guarded one can be reached in it: it is a folder on the way, or something is mounted below
//! it. Only paths in related directories are examined. They are resolved here, link by link, and the operation is then done in the folder
//! that was found, with a name that is not followed: another program that changes links meanwhile changes nothing.

use crate::errno::Errno;
use crate::sys::dir::{self, Identity};
use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, Metadata, MetadataExt};
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Maximum number of symbolic links on a way, as in Linux.
const MAX_LINKS: usize = 40;

/// The guarded directories.
#[derive(Clone, Debug, Default)]
pub(crate) struct Guard {
    ways: Vec<Way>,
}

/// The way to a guarded directory.
#[derive(Clone, Debug)]
struct Way {
    /// Each folder or link on it: the folder that it is in, by a path without links, and its name. The last is the directory.
    steps: Vec<(PathBuf, OsString)>,
}

/// The use of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Use {
    /// The file at its end is opened or looked at.
    Look,
    /// The file at its end may be created, removed, or get another name.
    Change,
}

impl Way {
    /// Finds the way to the directory at a path, which need not exist.
    fn to(path: &Path) -> io::Result<Way> {
        let path = std::path::absolute(path)?;
        let (mut steps, mut folder, mut links) = (Vec::new(), PathBuf::from("/"), 0);
        let components = |path: &Path| -> Vec<OsString> {
            let named = path.components().filter(|component| matches!(component, Component::Normal(_) | Component::ParentDir));
            named.map(|component| component.as_os_str().to_owned()).collect()
        };
        let mut rest: VecDeque<OsString> = components(&path).into();
        while let Some(name) = rest.pop_front() {
            if name == ".." {
                folder.pop();
                continue;
            }
            steps.push((folder.clone(), name.clone()));
            let next = folder.join(&name);
            let Some(target) = dir::link(&next) else {
                folder = next;
                continue;
            };
            links += 1;
            if links > MAX_LINKS {
                return Err(io::Error::other("too many symbolic links"));
            }
            if target.is_absolute() {
                folder = "/".into();
            }
            for component in components(&target).into_iter().rev() {
                rest.push_front(component);
            }
        }
        Ok(Way { steps })
    }

    /// Returns the path of the directory, without links.
    fn end(&self) -> Option<PathBuf> {
        self.steps.last().map(|(folder, name)| folder.join(name))
    }
}

impl Guard {
    /// Guards the directory at a path, which need not exist, too.
    ///
    /// # Errors
    /// The current directory is unknown, or there are too many links on the way.
    pub fn add(&mut self, path: &Path) -> io::Result<()> {
        self.ways.push(Way::to(path)?);
        Ok(())
    }

    /// Returns the guarded directories that exist now, and their identities.
    fn guarded(&self) -> impl Iterator<Item = (PathBuf, Identity)> + '_ {
        self.ways.iter().filter_map(|way| {
            let path = way.end()?;
            let identity = dir::identity(&path)?;
            Some((path, identity))
        })
    }

    /// Returns whether a guarded directory has this identity.
    fn has(&self, folder: Identity) -> bool {
        self.guarded().any(|(_, guarded)| guarded == folder)
    }

    fn steps(&self) -> impl Iterator<Item = &(PathBuf, OsString)> {
        self.ways.iter().flat_map(|way| &way.steps)
    }

    /// Returns whether an open regular file is one of a guarded directory, of which it has another name or a mount.
    pub fn has_file(&self, file: impl AsFd, metadata: &Metadata) -> bool {
        if metadata.nlink() < 2 && !dir::is_mounted(file) {
            return false;
        }
        let identity = Identity { device: metadata.dev(), inode: metadata.ino() };
        let on_device = self.guarded().filter(|(_, folder)| folder.device == identity.device);
        on_device.flat_map(|(folder, _)| dir::identities(&folder)).any(|file| file == identity)
    }

    /// Returns whether a guarded directory can be reached in the preopened directory `opened`.
    ///
    /// # Errors
    /// `opened` is a guarded directory, or in one.
    pub fn is_related(&self, opened: &Dir) -> io::Result<bool> {
        let above = dir::above(opened)?;
        if above.iter().any(|folder| self.has(*folder)) {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "no program may access the directory of the cache"));
        }
        let is_on_way = |(folder, _): &(PathBuf, OsString)| dir::identity(folder).is_some_and(|folder| folder == above[0]);
        Ok(self.steps().any(is_on_way) || dir::has_mounts(opened))
    }

    /// Whether a name in this folder is on the way to a guarded directory. File systems may ignore case.
    fn is_step(&self, folder: &Dir, name: &OsStr) -> Result<bool, Errno> {
        let mut steps = self.steps().filter(|(_, step)| step.eq_ignore_ascii_case(name)).peekable();
        if steps.peek().is_none() {
            return Ok(false);
        }
        let folder = identity(folder)?;
        Ok(steps.any(|(step, _)| dir::identity(step) == Some(folder)))
    }

    /// Returns whether this is a guarded directory.
    pub fn is_guarded(&self, opened: &Dir) -> Result<bool, Errno> {
        Ok(self.has(identity(opened)?))
    }

    /// Finds the folder of the file at the end of `path`, relative to `dir`, and its name there, which is no link if links are followed.
    ///
    /// # Errors
    /// The path leads to or through a guarded directory, or would change the way to it, or leads out of `dir`; those of the host.
    pub fn find(&self, dir: &Dir, path: &str, follow: bool, used: Use) -> Result<(Dir, OsString), Errno> {
        if path.is_empty() {
            return Err(Errno::Noent);
        }
        if path.starts_with('/') {
            return Err(Errno::Perm);
        }
        let mut folders = vec![dir.try_clone()?];
        let mut rest: VecDeque<OsString> = path.split('/').map(OsString::from).collect();
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            let folder = folders.last().expect("the first is never removed");
            // A path that ends with `/`, or with `/.`, is that of a directory.
            let is_last = rest.iter().all(|name| name.is_empty() || name == ".");
            let of_directory = !rest.is_empty();
            if name.is_empty() || name == "." {
                if is_last && !of_directory {
                    return Ok((folders.pop().expect("as above"), ".".into()));
                }
                continue;
            }
            if name == ".." {
                if folders.len() == 1 {
                    return Err(Errno::Perm);
                }
                folders.pop();
                if is_last {
                    return Ok((folders.pop().expect("there is one more"), ".".into()));
                }
                continue;
            }
            let metadata = folder.symlink_metadata(&name);
            let is_link = metadata.as_ref().is_ok_and(|metadata| metadata.is_symlink());
            if is_link && (!is_last || follow || of_directory) {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::Loop);
                }
                let target = folder.read_link(&name)?;
                let target = target.as_os_str().as_bytes();
                if target.starts_with(b"/") {
                    return Err(Errno::Perm);
                }
                for component in target.rsplit(|byte| *byte == b'/') {
                    rest.push_front(OsStr::from_bytes(component).to_owned());
                }
                continue;
            }
            if let Ok(metadata) = &metadata
                && metadata.is_dir()
                && self.has(Identity { device: metadata.dev(), inode: metadata.ino() })
            {
                return Err(Errno::Acces);
            }
            if is_last {
                if used == Use::Change && self.is_step(folder, &name)? {
                    return Err(Errno::Acces);
                }
                let mut name = name;
                if of_directory {
                    name.push("/");
                }
                return Ok((folders.pop().expect("as above"), name));
            }
            metadata?;
            let next = folder.open_dir_nofollow(&name)?;
            if self.is_guarded(&next)? {
                return Err(Errno::Acces);
            }
            folders.push(next);
        }
        Ok((folders.pop().expect("as above"), ".".into()))
    }
}

/// Returns the identity of an open directory.
fn identity(dir: &Dir) -> Result<Identity, Errno> {
    let metadata = dir.dir_metadata()?;
    Ok(Identity { device: metadata.dev(), inode: metadata.ino() })
}
