//! Compiled code of modules, kept on the node for later containers.
//!
//! Only the shim can write to the directory of the cache: it belongs to root and has mode 0700. When a container is created, the
//! module is found in its root, and hashed; containerd has the hash of a module that is a layer. An entry of that hash is opened and
//! passed to the guest's process, which reads it after its root and user have changed. If there is none, a module is compiled, as a rule
//! after its container has been created, in a process without privileges whose only output is the new entry: a module that takes control
//! of the compiler can spoil its own entry only.

use crate::entry::Entry;
use crate::guest;
use crate::inherited::Inherited;
use crate::layers::Layer;
use crate::settings::Settings;
use libseccomp::error::SeccompError;
use libseccomp::{ScmpAction, ScmpArgCompare, ScmpCompareOp, ScmpFilterContext, ScmpSyscall};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use oci_spec::runtime::Spec;
use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat2};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{DirBuilder, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use weir::Module;
use zygote::{WireFd, Zygote};

/// The directory, unless the variable [`VARIABLE`] names another.
const DIRECTORY: &str = "/var/cache/weir-shim";
/// A variable of containerd's environment. Empty, it turns the cache off.
const VARIABLE: &str = "WEIR_SHIM_CACHE";
/// The directory that is the root of the process that compiles.
const EMPTY: &str = "empty";
/// The beginning of the name of a file that becomes an entry when it is complete.
const UNFINISHED: &str = "new-";
/// The beginning of the name of an empty file that says that a module could not be compiled.
const FAILED: &str = "failed-";
/// The file that a process locks while it compiles.
const LOCK: &str = "lock";
/// The bytes of all entries after which the least recently used are removed.
const MAX_BYTES: u64 = 1 << 30;
/// The user and group of the process that compiles: `nobody`, who owns no files.
const NOBODY: u32 = 65534;
/// Seconds of processor time after which a compilation is given up.
const MAX_SECONDS: u64 = 300;
/// Modules above this size, in bytes, are not cached: hashing them would delay each start.
const MAX_MODULE: u64 = 256 << 20;
/// Bytes of memory that the process that compiles may have, beside [`DATA_PER_BYTE`] for each byte of the module.
const MAX_DATA: u64 = 1 << 30;
const DATA_PER_BYTE: u64 = 64;
/// The time after which a module is tried again that could not be compiled. It may have been for want of the node's memory.
const FORGIVEN: Duration = Duration::from_secs(600);
/// The time that a creation waits for the compilations of others.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time that a creation waits for its own compilation; with the other it is less than the two minutes that the kubelet waits.
const MAX_AWAITED: Duration = Duration::from_secs(60);
/// The time after which any compilation is given up.
const MAX_TIME: Duration = Duration::from_secs(1800);
/// The time between two tries to lock.
const RETRY: Duration = Duration::from_millis(20);

/// A module without code.
#[derive(Clone, Serialize, Deserialize, Debug)]
pub(crate) struct Wanted {
    /// The root of a container, or the directory of a layer.
    rootfs: PathBuf,
    /// Its path there.
    path: PathBuf,
    /// Whether the file may be replaced by another, in a container's root.
    may_change: bool,
    /// The name of its entry: a hash of the module, or of its digest, the settings that code depends on, and this program.
    key: String,
    /// Whether there is an entry that a guest has refused.
    replaces: bool,
    /// The annotations with the settings.
    annotations: HashMap<String, String>,
}

impl Wanted {
    /// Whether its entry is replaced, which a guest has refused.
    pub fn replacing(self, replaces: bool) -> Wanted {
        Wanted { replaces, ..self }
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
    let directory = directory()?;
    let path = path_within(spec, rootfs)?;
    let annotations = spec.annotations().clone().unwrap_or_default();
    let module = open_within(rootfs, &path).ok()?;
    let identity = Identity::of(&module).ok()?;
    let key = key(&read(module).ok()?, &Settings::of_annotations(&annotations).ok()?)?;
    let wanted = Wanted { rootfs: rootfs.into(), path, may_change: true, key, replaces: false, annotations };
    found(&directory, wanted, identity)
}

/// [`find`] for a module that is a layer.
pub(crate) fn find_layer(spec: &Spec, layer: &Layer) -> Option<(Wanted, Option<Stored>)> {
    let directory = directory()?;
    let annotations = spec.annotations().clone().unwrap_or_default();
    let module = File::open(&layer.file).ok()?;
    if module.metadata().ok()?.len() > MAX_MODULE {
        return None;
    }
    let settings = Settings::of_annotations(&annotations).ok()?;
    let identity = Identity::of(&module).ok()?;
    let key = match &layer.digest {
        Some(digest) => key_of(digest.as_bytes(), &settings)?,
        None => key(&read(module).ok()?, &settings)?,
    };
    let (rootfs, path) = (layer.file.parent()?.into(), layer.file.file_name()?.into());
    let wanted = Wanted { rootfs, path, may_change: layer.digest.is_none(), key, replaces: false, annotations };
    found(&directory, wanted, identity)
}

/// Opens the entry of a module.
fn found(directory: &Path, wanted: Wanted, module: Identity) -> Option<(Wanted, Option<Stored>)> {
    match open_entry(&directory.join(&wanted.key)) {
        Ok(entry) => Some((wanted, Some(Stored { entry, module }))),
        Err(_) if failed_lately(directory, &wanted.key) => {
            log::error!("{}: it has no code, since it could not be compiled a short time ago", wanted.path.display());
            None
        }
        Err(_) => Some((wanted, None)),
    }
}

/// The file that says that a module could not be compiled.
fn failure(directory: &Path, key: &str) -> PathBuf {
    directory.join(format!("{FAILED}{key}"))
}

/// Whether a module could not be compiled, a short time ago.
fn failed_lately(directory: &Path, key: &str) -> bool {
    let failed = std::fs::metadata(failure(directory, key)).and_then(|data| data.modified());
    // A time to come is one of a wrong clock.
    failed.is_ok_and(|failed| failed.elapsed().is_ok_and(|age| age < FORGIVEN))
}

/// Notes that a module could not be compiled.
fn note_failure(directory: &Path, key: &str) {
    let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(failure(directory, key));
    let _ = file.and_then(|file| file.set_modified(SystemTime::now()));
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

/// Whether one process compiles at a time by waiting for others, or by leaving a module to them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    Awaited,
    Left,
}

/// Compiles a module for the cache. If another is being compiled and the turn is [`Turn::Left`], nothing is done: containers that
/// start meanwhile find no entry, and one of them tries again. Runs in a zygote of its own, as root, which may go on after the
/// container and the shim have ended.
///
/// # Errors
/// The module has changed, or cannot be compiled.
pub(crate) fn compile(wanted: &Wanted, turn: Turn) -> Result<(), String> {
    let failed = |error: io::Error| error.to_string();
    if turn == Turn::Awaited {
        // It has the descriptors of the process that waits, whose end the shim would not see.
        end_with_parent().map_err(failed)?;
    }
    let Some(directory) = directory() else { return Ok(()) };
    // It only keeps the load low: an entry does not depend on it.
    let lock = File::options().write(true).create(true).truncate(true).mode(0o600).open(directory.join(LOCK)).map_err(failed)?;
    let begun = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if turn == Turn::Left => return Ok(()),
            Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => std::thread::sleep(RETRY),
            Err(TryLockError::WouldBlock) => return Err(format!("other modules were compiled for {} s", PATIENCE.as_secs())),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    let entry = directory.join(&wanted.key);
    if (entry.exists() && !wanted.replaces) || failed_lately(&directory, &wanted.key) {
        return Ok(());
    }
    let module = open_within(&wanted.rootfs, &wanted.path).map_err(failed)?;
    // A new file of its own: what an earlier process has open is another.
    remove_old(&directory);
    let unfinished = directory.join(format!("{UNFINISHED}{}", wanted.key));
    let output = File::options().write(true).create_new(true).mode(0o600).open(&unfinished).map_err(failed)?;
    let complete = || output.sync_all().and_then(|()| std::fs::rename(&unfinished, &entry));
    let done = compile_into(wanted, turn, module, &output, &directory);
    let done = done.and_then(|()| complete().map_err(|error| NotCompiled::Other(failed(error))));
    if done.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    prune(&directory);
    done.map_err(|reason| match reason {
        NotCompiled::Module(message) => {
            note_failure(&directory, &wanted.key);
            message
        }
        NotCompiled::Other(message) => message,
    })
}

/// Why a module was not compiled. The text is a message.
#[derive(Serialize, Deserialize)]
enum NotCompiled {
    /// It is not valid, or its compilation ended for want of memory or time: it would probably fail again.
    Module(String),
    /// Another reason, which may have gone next time.
    Other(String),
}

/// Compiles a module into a file, in a process without privileges.
fn compile_into(wanted: &Wanted, turn: Turn, module: File, output: &File, directory: &Path) -> Result<(), NotCompiled> {
    let failed = |error: io::Error| NotCompiled::Other(error.to_string());
    let own = File::open("/proc/self/ns/pid").map_err(failed)?;
    let inherited = Inherited::list(&[]).map_err(failed)?;
    let empty = directory.join(EMPTY);
    DirBuilder::new().recursive(true).create(&empty).map_err(failed)?;
    // The next child is the first process of a namespace: it sees no other process.
    unshare(CloneFlags::CLONE_NEWPID).map_err(|error| failed(error.into()))?;
    let worker = Zygote::new();
    // A process whose children are in another namespace cannot start threads.
    setns(&own, CloneFlags::CLONE_NEWPID).map_err(|error| failed(error.into()))?;
    let work = Work {
        inherited,
        module: WireFd::new(module),
        output: WireFd::new(output.try_clone().map_err(failed)?),
        key: Some(wanted.key.clone()).filter(|_| wanted.may_change),
        annotations: wanted.annotations.clone(),
        empty,
        is_awaited: turn == Turn::Awaited,
    };
    // The worker is killed when this process ends.
    let is_awaited = turn == Turn::Awaited;
    let limit = if is_awaited { MAX_AWAITED } else { MAX_TIME };
    let (directory, key, path) = (directory.to_path_buf(), wanted.key.clone(), wanted.path.clone());
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        // What takes too long for a creation may be compiled in the background.
        if !is_awaited {
            note_failure(&directory, &key);
        }
        log::error!("{}: it was compiled for {} s, and that was given up", path.display(), limit.as_secs());
        std::process::exit(1);
    });
    // A process that ends without a result was killed for what it used.
    worker.try_run(compile_without_privileges, work).unwrap_or_else(|error| Err(NotCompiled::Module(error.to_string())))
}

/// What the process without privileges gets.
#[derive(Serialize, Deserialize)]
struct Work {
    inherited: Inherited,
    module: WireFd<File>,
    output: WireFd<File>,
    /// The module's key, if it may have changed.
    key: Option<String>,
    annotations: HashMap<String, String>,
    empty: PathBuf,
    /// Whether a creation waits for it.
    is_awaited: bool,
}

/// Compiles a module into a file that is open, as nobody.
fn compile_without_privileges(work: Work) -> Result<(), NotCompiled> {
    let failed = |error: io::Error| NotCompiled::Other(error.to_string());
    let Work { inherited, module, output, key: expected, annotations, empty, is_awaited } = work;
    // SAFETY: this process was forked from the one that made the list, and got those files later that it uses.
    unsafe { inherited.close() };
    end_with_parent().map_err(failed)?;
    // Otherwise tools show the shim's name.
    let _ = rustix::thread::set_name(c"weir-compile");
    let settings = Settings::of_annotations(&annotations).map_err(NotCompiled::Other)?;
    let bytes = read(module.into_inner()).map_err(failed)?;
    if expected.is_some() && key(&bytes, &settings) != expected {
        return Err(NotCompiled::Other("the module has changed since its container was created".into()));
    }
    if !is_awaited {
        // Containers have precedence.
        let _ = rustix::process::nice(19);
    }
    drop_privileges(&empty, bytes.len() as u64).map_err(failed)?;
    let engine = guest::engine(&settings, None).map_err(NotCompiled::Other)?;
    let stored = Module::new(&engine, bytes).and_then(|module| module.serialize());
    let stored = stored.map_err(|error| NotCompiled::Module(crate::message::of(&error)))?;
    output.into_inner().write_all(&stored).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => NotCompiled::Module(error.to_string()),
        _ => failed(error),
    })
}

/// Leaves the process no file but those that are open, no network, no privileges, no other process, and what a module of this size needs at
/// most. It ends with its parent. `empty` is a directory without content.
fn drop_privileges(empty: &Path, module_bytes: u64) -> io::Result<()> {
    // If memory is scarce, it goes before all containers.
    std::fs::write("/proc/self/oom_score_adj", "1000")?;
    let data = module_bytes.saturating_mul(DATA_PER_BYTE).saturating_add(MAX_DATA);
    setrlimit(Resource::RLIMIT_DATA, data, data)?;
    setrlimit(Resource::RLIMIT_FSIZE, MAX_BYTES, MAX_BYTES)?;
    setrlimit(Resource::RLIMIT_CPU, MAX_SECONDS, MAX_SECONDS)?;
    unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWIPC)?;
    std::os::unix::fs::chroot(empty)?;
    std::env::set_current_dir("/")?;
    setgroups(&[])?;
    let (user, group) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    setresgid(group, group, group)?;
    setresuid(user, user, user)?;
    rustix::thread::set_no_new_privs(true)?;
    // The change of the user has undone it.
    end_with_parent()?;
    forbid_processes().map_err(io::Error::other)
}

fn end_with_parent() -> io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?)
}

/// Lets the process and its threads start threads, and no processes and programs: limits hold for each process.
fn forbid_processes() -> Result<(), SeccompError> {
    let call = ScmpSyscall::from_name;
    let refused = ScmpAction::Errno(nix::libc::EPERM);
    let mut filter = ScmpFilterContext::new(ScmpAction::Allow)?;
    for name in ["fork", "vfork", "execve", "execveat"] {
        filter.add_rule(refused, call(name)?)?;
    }
    let is_process = ScmpArgCompare::new(0, ScmpCompareOp::MaskedEqual(nix::libc::CLONE_THREAD as u64), 0);
    filter.add_rule_conditional(refused, call("clone")?, &[is_process])?;
    // Its flags are in memory, which a filter does not see. The C library goes on with `clone`.
    filter.add_rule(ScmpAction::Errno(nix::libc::ENOSYS), call("clone3")?)?;
    // It would live on after its parent.
    let is_death = ScmpArgCompare::new(0, ScmpCompareOp::MaskedEqual(u32::MAX.into()), nix::libc::PR_SET_PDEATHSIG as u64);
    filter.add_rule_conditional(refused, call("prctl")?, &[is_death])?;
    filter.load()
}

/// Returns the directory if it exists, or can be made, and is root's alone.
fn directory() -> Option<PathBuf> {
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
    Some(path)
}

/// Opens an entry, and notes that it was used.
fn open_entry(path: &Path) -> io::Result<File> {
    let file = File::from(open(path, OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())?);
    let data = file.metadata()?;
    if !data.is_file() || data.uid() != 0 || data.nlink() != 1 || data.mode() & 0o077 != 0 {
        return Err(io::Error::other("it is not root's alone"));
    }
    file.set_modified(SystemTime::now())?;
    Ok(file)
}

/// Removes what processes have left that were ended while they compiled, and what says that modules failed long ago.
fn remove_old(directory: &Path) {
    for file in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = file.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(UNFINISHED) || name.strip_prefix(FAILED).is_some_and(|key| !failed_lately(directory, key)) {
            let _ = std::fs::remove_file(file.path());
        }
    }
}

/// Removes the entries that were not used for the longest time, until the others are small enough.
fn prune(directory: &Path) {
    let Ok(files) = std::fs::read_dir(directory) else { return };
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

/// Opens a regular file of a container's root. No link leads out of it, and no device is opened.
fn open_within(rootfs: &Path, path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let root = open(rootfs, flags | OFlags::DIRECTORY, Mode::empty())?;
    let rules = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let found = File::from(openat2(&root, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), rules)?);
    if !found.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    File::open(format!("/proc/self/fd/{}", found.as_raw_fd()))
}

fn read(file: File) -> io::Result<Vec<u8>> {
    if file.metadata()?.len() > MAX_MODULE {
        return Err(io::Error::other("it is too large for the cache"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_MODULE).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a file of the directory has the name of an entry.
fn is_key(name: &str) -> bool {
    name.len() == 2 * blake3::OUT_LEN && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The name of the entry of a module in the binary format.
fn key(module: &[u8], settings: &Settings) -> Option<String> {
    if module.starts_with(b"\0asm") { key_of(module, settings) } else { None }
}

/// Returns the file name of an entry, made of a module's bytes or its digest, the settings and the shim's version, for which size and
/// time of its program stand.
fn key_of(content: &[u8], settings: &Settings) -> Option<String> {
    let settings = settings.of_code()?;
    let program = std::fs::metadata("/proc/self/exe").ok()?;
    let mut hasher = blake3::Hasher::new();
    hasher.update(content);
    let text = format!("{settings} {} {} {}", program.len(), program.mtime(), program.mtime_nsec());
    hasher.update(&(content.len() as u64).to_le_bytes());
    Some(hasher.update(text.as_bytes()).finalize().to_hex().to_string())
}
