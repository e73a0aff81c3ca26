//! Compiled code of modules, kept on the node for later containers.
//!
//! Only the shim can write to the directory of the cache: it belongs to root and has mode 0700. When a container is created, the
//! module is found in its root, and hashed; containerd has the hash of a module that is a layer. An entry of that hash is opened and
//! passed to the guest's process, which reads it after its root and user have changed. If there is none, the module is compiled for
//! later containers: [`compiler`](crate::compiler).

use crate::entry::Entry;
use crate::layers::Layer;
use crate::settings::Settings;
use oci_spec::runtime::Spec;
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{DirBuilder, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The directory, unless the variable [`VARIABLE`] names another.
const DIRECTORY: &str = "/var/cache/weir-shim";
/// A variable of containerd's environment. Empty, it turns the cache off.
const VARIABLE: &str = "WEIR_SHIM_CACHE";
/// A directory without content, which is the root of the process that compiles.
const EMPTY: &str = "empty";
/// The beginning of the name of a file that becomes an entry when it is complete.
const UNFINISHED: &str = "new-";
/// The beginning of the name of an empty file that says that a module could not be compiled.
const FAILED: &str = "failed-";
/// The file that a process locks while it compiles.
const LOCK: &str = "lock";
/// The bytes of all entries after which the least recently used are removed, and those of one at most.
pub(crate) const MAX_BYTES: u64 = 1 << 30;
/// Modules above this size, in bytes, are not cached: hashing them would delay each start.
const MAX_MODULE: u64 = 256 << 20;
/// How often a file is opened that the kernel asks to open again.
const ATTEMPTS: usize = 16;
/// The time after which a module is tried again that could not be compiled. It may have been for want of the node's memory.
const FORGIVEN: Duration = Duration::from_secs(600);

/// The directory, which exists and is root's alone.
#[derive(Clone, Debug)]
pub(crate) struct Cache(PathBuf);

impl Cache {
    /// Returns the directory, which is made if it is missing. If the cache is turned off, or the directory is not root's alone, which the
    /// log then says, the result is `None`.
    pub fn open() -> Option<Cache> {
        let path = match std::env::var_os(VARIABLE) {
            Some(path) if path.is_empty() => return None,
            Some(path) => PathBuf::from(path),
            None => DIRECTORY.into(),
        };
        let above = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let made = above.and_then(|()| DirBuilder::new().mode(0o700).recursive(true).create(&path));
        let data = std::fs::symlink_metadata(&path).ok();
        let is_private = data.is_some_and(|data| data.is_dir() && data.uid() == 0 && data.mode() & 0o777 == 0o700);
        if made.is_err() || !is_private {
            log::error!("{}: expected a directory of root with mode 0700: no code is cached", path.display());
            return None;
        }
        Some(Cache(path))
    }

    /// Opens the file that a process locks while it compiles.
    ///
    /// # Errors
    /// The system's error.
    pub fn lock(&self) -> io::Result<File> {
        File::options().write(true).create(true).truncate(true).mode(0o600).open(self.0.join(LOCK))
    }

    /// Returns a directory without content, which is made if it is missing.
    ///
    /// # Errors
    /// The system's error.
    pub fn empty(&self) -> io::Result<PathBuf> {
        let empty = self.0.join(EMPTY);
        DirBuilder::new().recursive(true).create(&empty)?;
        Ok(empty)
    }

    /// Whether a module is still to be compiled.
    pub fn lacks(&self, wanted: &Wanted) -> bool {
        (wanted.replaces || !self.0.join(&wanted.key).exists()) && !self.failed_lately(&wanted.key)
    }

    /// Opens a new file for the code of a module, after files have been removed that are of no use. To be called by the process that
    /// has the lock.
    ///
    /// # Errors
    /// The system's error.
    pub fn begin(&self, wanted: &Wanted) -> io::Result<Unfinished> {
        self.remove_old();
        let path = self.0.join(format!("{UNFINISHED}{}", wanted.key));
        // The file is new: an earlier process may have the old one open.
        let file = File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        Ok(Unfinished { file, path, entry: self.0.join(&wanted.key) })
    }

    /// Notes that a module could not be compiled.
    pub fn note_failure(&self, wanted: &Wanted) {
        let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(self.failure(&wanted.key));
        let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
    }

    /// Removes the entries that were not used for the longest time, until the others are small enough.
    pub fn prune(&self) {
        let Ok(files) = std::fs::read_dir(&self.0) else { return };
        let used = |file: io::Result<std::fs::DirEntry>| {
            let file = file.ok().filter(|file| file.file_name().to_str().is_some_and(is_key))?;
            let data = file.metadata().ok()?;
            Some((data.modified().ok()?, data.len(), file.path()))
        };
        let mut files: Vec<_> = files.filter_map(used).collect();
        files.sort();
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in files {
            if total <= MAX_BYTES {
                break;
            }
            if std::fs::remove_file(path).is_ok() {
                total -= bytes;
            }
        }
    }

    /// Opens an entry, and notes that it was used.
    fn entry(&self, key: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = File::from(open(self.0.join(key), flags, Mode::empty())?);
        let data = file.metadata()?;
        if !data.is_file() || data.uid() != 0 || data.nlink() != 1 || data.mode() & 0o077 != 0 {
            return Err(io::Error::other("it is not root's alone"));
        }
        file.set_modified(SystemTime::now())?;
        Ok(file)
    }

    /// The file that says that a module could not be compiled.
    fn failure(&self, key: &str) -> PathBuf {
        self.0.join(format!("{FAILED}{key}"))
    }

    /// Whether a module could not be compiled, a short time ago.
    fn failed_lately(&self, key: &str) -> bool {
        let failed = std::fs::metadata(self.failure(key)).and_then(|data| data.modified());
        // A time to come is one of a wrong clock.
        failed.is_ok_and(|failed| failed.elapsed().is_ok_and(|age| age < FORGIVEN))
    }

    /// Removes what processes have left that were ended while they compiled, and what says that modules failed long ago.
    fn remove_old(&self) {
        for file in std::fs::read_dir(&self.0).into_iter().flatten().flatten() {
            let name = file.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(UNFINISHED) || name.strip_prefix(FAILED).is_some_and(|key| !self.failed_lately(key)) {
                let _ = std::fs::remove_file(file.path());
            }
        }
    }
}

/// A file of code that is not complete. Dropping it removes the file, unless it has become an entry. A process that is killed leaves its file,
/// which the next compilation removes.
#[derive(Debug)]
pub(crate) struct Unfinished {
    pub file: File,
    path: PathBuf,
    entry: PathBuf,
}

impl Unfinished {
    /// Makes it an entry.
    ///
    /// # Errors
    /// The system's error.
    pub fn complete(self) -> io::Result<()> {
        self.file.sync_all()?;
        std::fs::rename(&self.path, &self.entry)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // A complete one has another name.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A module without code.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct Wanted {
    /// The root of a container, or the directory of a layer.
    rootfs: PathBuf,
    /// Its path there.
    pub path: PathBuf,
    /// Whether the file may be replaced by another, in a container's root.
    may_change: bool,
    /// The name of its entry: a hash of the module, or of its digest, the settings that code depends on, and this program.
    key: String,
    /// Whether there is an entry that a guest has refused.
    replaces: bool,
    /// The annotations with the settings.
    pub annotations: HashMap<String, String>,
}

impl Wanted {
    /// Whether its entry is replaced, which a guest has refused.
    pub fn replacing(self, replaces: bool) -> Wanted {
        Wanted { replaces, ..self }
    }

    /// Opens the module.
    ///
    /// # Errors
    /// The system's error, or it is no regular file any more.
    pub fn open(&self) -> io::Result<File> {
        open_within(&self.rootfs, &self.path)
    }

    /// The key that the module must have, if it may have changed.
    pub fn expected_key(&self) -> Option<String> {
        Some(self.key.clone()).filter(|_| self.may_change)
    }
}

/// What a guest gets: an entry, and the file that it was made of.
#[derive(Debug)]
pub(crate) struct Stored {
    pub entry: File,
    pub module: Identity,
}

/// A file that has not been replaced or changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity([i64; 5]);

impl Identity {
    /// Of an open file.
    ///
    /// # Errors
    /// The system's error.
    pub fn of(file: &File) -> io::Result<Identity> {
        let data = file.metadata()?;
        Ok(Identity([data.dev() as i64, data.ino() as i64, data.size() as i64, data.mtime(), data.mtime_nsec()]))
    }
}

/// Looks for the code of a container's module. Without the cache, or if the module is none that can be cached, the result is `None`;
/// without an entry, only the first part is there.
pub(crate) fn find(spec: &Spec, rootfs: &Path) -> Option<(Wanted, Option<Stored>)> {
    let cache = Cache::open()?;
    let path = path_within(spec, rootfs)?;
    let annotations = spec.annotations().clone().unwrap_or_default();
    let module = open_within(rootfs, &path).ok()?;
    let identity = Identity::of(&module).ok()?;
    let key = key(bounded(module).ok()?, &Settings::of_annotations(&annotations).ok()?)?;
    let wanted = Wanted { rootfs: rootfs.into(), path, may_change: true, key, replaces: false, annotations };
    found(&cache, wanted, identity)
}

/// [`find`] for a module that is a layer.
pub(crate) fn find_layer(spec: &Spec, layer: &Layer) -> Option<(Wanted, Option<Stored>)> {
    let cache = Cache::open()?;
    let annotations = spec.annotations().clone().unwrap_or_default();
    let module = File::open(&layer.file).ok()?;
    let settings = Settings::of_annotations(&annotations).ok()?;
    let identity = Identity::of(&module).ok()?;
    let module = bounded(module).ok()?;
    let key = match &layer.digest {
        Some(digest) => key_of(digest.as_bytes(), &settings)?,
        None => key(module, &settings)?,
    };
    let (rootfs, path) = (layer.file.parent()?.into(), layer.file.file_name()?.into());
    let wanted = Wanted { rootfs, path, may_change: layer.digest.is_none(), key, replaces: false, annotations };
    found(&cache, wanted, identity)
}

/// Opens the entry of a module.
fn found(cache: &Cache, wanted: Wanted, module: Identity) -> Option<(Wanted, Option<Stored>)> {
    match cache.entry(&wanted.key) {
        Ok(entry) => Some((wanted, Some(Stored { entry, module }))),
        Err(_) if cache.failed_lately(&wanted.key) => {
            log::error!("{}: it has no code, since it could not be compiled a short time ago", wanted.path.display());
            None
        }
        Err(_) => Some((wanted, None)),
    }
}

/// Whether the root has a file that the container's first argument names.
pub(crate) fn has_file(spec: &Spec, rootfs: &Path) -> bool {
    path_within(spec, rootfs).is_some()
}

/// The path in the root of the file that the first argument names.
fn path_within(spec: &Spec, rootfs: &Path) -> Option<PathBuf> {
    // A name in the working directory is relative to it.
    let directory = spec.process().as_ref()?.cwd();
    let entry = Entry::within(spec, |path| open_within(rootfs, &directory.join(path)).is_ok()).ok()?;
    Some(directory.join(entry.path))
}

/// Opens a regular file of a container's root. No link leads out of it, and no device is opened.
fn open_within(rootfs: &Path, path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let root = open(rootfs, flags | OFlags::DIRECTORY, Mode::empty())?;
    let rules = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let mut repetitions = 1..ATTEMPTS;
    let found = loop {
        match openat2(&root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), rules) {
            // The kernel gives up a path with `..` if something is renamed meanwhile, anywhere.
            Err(Errno::AGAIN) if repetitions.next().is_some() => (),
            found => break File::from(found?),
        }
    };
    if !found.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))
}

/// A module as what may be read of it.
///
/// # Errors
/// The system's error, or it is too large for the cache.
pub(crate) fn bounded(module: File) -> io::Result<io::Take<File>> {
    if module.metadata()?.len() > MAX_MODULE {
        return Err(io::Error::other("it is too large for the cache"));
    }
    Ok(module.take(MAX_MODULE))
}

/// Whether a file of the directory has the name of an entry.
fn is_key(name: &str) -> bool {
    name.len() == 2 * blake3::OUT_LEN && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The name of the entry of a module. `None` if it is not in the binary format, if its code is not kept with these settings, or if it
/// cannot be read. Its bytes are not kept in memory: they count to no container.
pub(crate) fn key(mut module: impl Read, settings: &Settings) -> Option<String> {
    let mut magic = [0; 4];
    module.read_exact(&mut magic).ok()?;
    if magic == *b"\0asm" { key_of(magic.chain(module), settings) } else { None }
}

/// Returns the file name of an entry, made of a module's bytes or its digest, the settings and the shim's version, for which size and
/// time of its program stand.
fn key_of(content: impl Read, settings: &Settings) -> Option<String> {
    let settings = settings.of_code()?;
    let program = std::fs::metadata("/proc/self/exe").ok()?;
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(content).ok()?;
    let length = hasher.count();
    let text = format!("{settings} {} {} {}", program.len(), program.mtime(), program.mtime_nsec());
    hasher.update(&length.to_le_bytes());
    Some(hasher.update(text.as_bytes()).finalize().to_hex().to_string())
}
