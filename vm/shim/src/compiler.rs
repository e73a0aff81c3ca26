//! Compiles a module for the node's cache, as a rule after its container has been created.
//!
//! That is done by a process without privileges whose only output is the new entry: a module that takes control of the compiler can spoil
//! its own entry only.

use crate::code_cache::{self, Cache, MAX_BYTES, Wanted};
use crate::inherited::Inherited;
use crate::settings::Settings;
use crate::{guest, message, signals};
use libseccomp::error::SeccompError;
use libseccomp::{ScmpAction, ScmpArgCompare, ScmpCompareOp, ScmpFilterContext, ScmpSyscall};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::resource::{Resource, setrlimit};
use nix::unistd::{Gid, Uid, setgroups, setresgid, setresuid};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use weir::Module;
use zygote::{WireFd, Zygote};

/// The user and group of the process that compiles: `nobody`, who owns no files.
const NOBODY: u32 = 65534;
/// Seconds of processor time after which a compilation is given up.
const MAX_SECONDS: u64 = 300;
/// Bytes of memory that the process that compiles may have, beside [`DATA_PER_BYTE`] for each byte of the module.
const MAX_DATA: u64 = 1 << 30;
const DATA_PER_BYTE: u64 = 64;
/// The time that a creation waits for the compilations of others.
const PATIENCE: Duration = Duration::from_secs(30);
/// The time that a creation waits for its own compilation; with the other it is less than the two minutes that the kubelet waits.
const MAX_AWAITED: Duration = Duration::from_secs(60);
/// The time after which any compilation is given up.
const MAX_TIME: Duration = Duration::from_secs(1800);
/// The time between two tries to lock.
const RETRY: Duration = Duration::from_millis(20);

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
        signals::end_with_parent().map_err(failed)?;
    }
    let Some(cache) = Cache::open() else { return Ok(()) };
    // It keeps the load low, and unfinished files apart. Without it an entry could be spoilt, which a guest would refuse.
    let lock = cache.lock().map_err(failed)?;
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
    if !cache.lacks(wanted) {
        return Ok(());
    }
    let module = wanted.open().map_err(failed)?;
    let unfinished = cache.begin(wanted).map_err(failed)?;
    let done = compile_into(wanted, turn, module, &unfinished.file, &cache);
    let done = done.and_then(|()| unfinished.complete().map_err(|error| NotCompiled::Other(failed(error))));
    cache.prune();
    done.map_err(|reason| match reason {
        NotCompiled::Module(message) => {
            cache.note_failure(wanted);
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
fn compile_into(wanted: &Wanted, turn: Turn, module: File, output: &File, cache: &Cache) -> Result<(), NotCompiled> {
    let failed = |error: io::Error| NotCompiled::Other(error.to_string());
    let is_awaited = turn == Turn::Awaited;
    let own = File::open("/proc/self/ns/pid").map_err(failed)?;
    let inherited = Inherited::list(&[]).map_err(failed)?;
    let empty = cache.empty().map_err(failed)?;
    // The next child is the first process of a namespace: it sees no other process.
    unshare(CloneFlags::CLONE_NEWPID).map_err(|error| failed(error.into()))?;
    let worker = Zygote::new();
    // A process whose children are in another namespace cannot start threads.
    setns(&own, CloneFlags::CLONE_NEWPID).map_err(|error| failed(error.into()))?;
    let work = Work {
        inherited,
        module: WireFd::new(module),
        output: WireFd::new(output.try_clone().map_err(failed)?),
        key: wanted.expected_key(),
        annotations: wanted.annotations.clone(),
        empty,
        is_awaited,
    };
    // The worker is killed when this process ends.
    let limit = if is_awaited { MAX_AWAITED } else { MAX_TIME };
    let (cache, wanted) = (cache.clone(), wanted.clone());
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        // What takes too long for a creation may be compiled in the background.
        if !is_awaited {
            cache.note_failure(&wanted);
        }
        log::error!("{}: it was compiled for {} s, and that was given up", wanted.path.display(), limit.as_secs());
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
    signals::end_with_parent().map_err(failed)?;
    // Otherwise tools show the shim's name.
    let _ = rustix::thread::set_name(c"weir-compile");
    let settings = Settings::of_annotations(&annotations).map_err(NotCompiled::Other)?;
    let mut bytes = Vec::new();
    code_cache::bounded(module.into_inner()).and_then(|mut module| module.read_to_end(&mut bytes)).map_err(failed)?;
    if expected.is_some() && code_cache::key(bytes.as_slice(), &settings) != expected {
        return Err(NotCompiled::Other("the module has changed since its container was created".into()));
    }
    if !is_awaited {
        // Containers have precedence.
        let _ = rustix::process::nice(19);
    }
    drop_privileges(&empty, bytes.len() as u64).map_err(failed)?;
    let engine = guest::engine(&settings, None).map_err(NotCompiled::Other)?;
    let stored = Module::new(&engine, bytes).and_then(|module| module.serialize());
    let stored = stored.map_err(|error| NotCompiled::Module(message::of(&error)))?;
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
    signals::end_with_parent()?;
    forbid_processes().map_err(io::Error::other)
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
