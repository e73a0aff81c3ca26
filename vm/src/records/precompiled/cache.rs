//! The cache: a directory with two files for each module that was loaded, of its validation and of its code.
//!
//! The name of an entry is a hash of everything that it depends on: the module's bytes, the build of Weir, the settings and the
//! processor. Nothing in an entry depends on where the module was, its name or its time. The file of the module is written once; that of
//! the code is replaced when there is more.
//!
//! A cache that cannot be used is as if it were empty.

use super::artifact::{Artifact, Source};
use super::format::{Builder, Hash, Identity, Unusable};
use super::shelf::{CodeMap, Shelf};
use crate::sys::private_dir::{Listed, Locked, PrivateDir};
use crate::sys::thread;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use weir_bytecode::Module as Bytecode;

/// How long an entry may wait for other processes, before it is left as it is.
const PATIENCE: Duration = Duration::from_millis(3);

/// The share of the limit to which a cache shrinks that exceeds it.
const KEEP: f64 = 0.75;

/// A directory of entries.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    /// The bytes of all entries, about at most.
    limit: u64,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// The files of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Module,
    Code,
}

/// The name of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    identity: Identity,
    /// The hash of the module's bytes.
    module: Hash,
}

impl Entry {
    /// The entry of the module with this hash.
    pub fn new(identity: Identity, module: Hash) -> Entry {
        Entry { identity, module }
    }

    fn name(&self, part: Part) -> String {
        let Entry { identity: Identity { build, settings }, module } = self;
        let hash = blake3::hash(&[build.as_slice(), settings, module].concat());
        let extension = match part {
            Part::Module => "module",
            Part::Code => "code",
        };
        format!("{}.{extension}", hash.to_hex())
    }
}

/// What an entry has.
#[derive(Debug)]
pub(crate) struct Found {
    /// The module, with the results of its validation.
    pub module: Arc<Artifact>,
    /// The code, if there is some.
    pub code: Option<Arc<Artifact>>,
}

/// An entry of a cache, as [`list`](Directory::list) shows it.
#[derive(Debug)]
pub(crate) struct Shown {
    /// The name, a hash.
    pub name: String,
    /// The bytes of its files.
    pub len: u64,
    /// When it was last used, in nanoseconds since 1970.
    pub used: i128,
}

impl Directory {
    /// The cache in a directory, which need not exist, with about this limit in bytes.
    pub fn new(path: PathBuf, limit: u64) -> Directory {
        Directory { path, limit, hits: AtomicU64::new(0), misses: AtomicU64::new(0) }
    }

    /// Returns the path.
    pub fn path(&self) -> &PathBuf {
        &self.path
    }

    /// Returns how many modules were found, and how many were not.
    pub fn counts(&self) -> (u64, u64) {
        (self.hits.load(Ordering::Relaxed), self.misses.load(Ordering::Relaxed))
    }

    /// Finds an entry.
    ///
    /// # Errors
    /// Why it is not used: a reason for `--stats`.
    pub fn find(&self, entry: &Entry) -> Result<Found, String> {
        let found = self.find_counted(entry);
        let count = if found.is_ok() { &self.hits } else { &self.misses };
        count.fetch_add(1, Ordering::Relaxed);
        found
    }

    fn find_counted(&self, entry: &Entry) -> Result<Found, String> {
        let absent =
            |error: io::Error| if error.kind() == io::ErrorKind::NotFound { "miss".into() } else { format!("miss: {error}") };
        let dir = PrivateDir::open(&self.path, false).map_err(absent)?;
        let open = |part| -> Result<Arc<Artifact>, String> {
            let file = dir.open_file(&entry.name(part)).map_err(absent)?;
            open(Box::new(file), entry).map_err(|reason| format!("refused: {reason}"))
        };
        let module = open(Part::Module)?;
        // An entry that is used now is the last to be evicted.
        let _ = dir.touch(&entry.name(Part::Module));
        Ok(Found { module, code: open(Part::Code).ok() })
    }

    /// Writes the module of an entry.
    ///
    /// # Errors
    /// The system's error.
    pub fn write_module(&self, entry: &Entry, module: &Bytecode) -> io::Result<()> {
        let mut builder = Builder::default();
        builder.module(module);
        let bytes = builder.finish(entry.identity, entry.module);
        let dir = PrivateDir::open(&self.path, true)?;
        dir.write(&entry.name(Part::Module), &bytes)?;
        self.evict(&dir, &dir.lock(PATIENCE)?, entry)
    }

    /// Adds code to an entry. Code that another process has added meanwhile stays.
    ///
    /// # Errors
    /// The system's error, or other processes keep the entry locked.
    pub fn add_code(&self, entry: &Entry, mut code: CodeMap) -> io::Result<()> {
        let dir = PrivateDir::open(&self.path, true)?;
        let locked = dir.lock(PATIENCE)?;
        let name = entry.name(Part::Code);
        if let Ok(artifact) = dir.open_file(&name).map_err(|_| ()).and_then(|file| open(Box::new(file), entry).map_err(|_| ())) {
            let there = artifact.code().iter();
            code.extend(there.filter_map(|code| Some(((code.func, code.grade), artifact.part(code.place)?.into()))));
        }
        let mut builder = Builder::default();
        let mut rest = code.iter().peekable();
        while let Some((&(func, grade), code)) = rest.next() {
            // Where there is optimised code, which comes next, no other is used.
            if rest.peek().is_none_or(|(next, _)| next.0 != func) {
                builder.code(func, grade, code);
            }
        }
        dir.write(&name, &builder.finish(entry.identity, entry.module))?;
        self.evict(&dir, &locked, entry)
    }

    /// Removes the entries that were not used for the longest time, if all are larger than the limit.
    fn evict(&self, dir: &PrivateDir, locked: &Locked, keep: &Entry) -> io::Result<()> {
        let mut entries = entries(dir.list(locked)?);
        let mut len: u64 = entries.iter().map(|entry| entry.shown.len).sum();
        if len <= self.limit {
            return Ok(());
        }
        entries.sort_by_key(|entry| entry.shown.used);
        let kept = keep.name(Part::Code);
        for entry in entries {
            if len as f64 <= self.limit as f64 * KEEP {
                break;
            }
            if !kept.starts_with(&entry.shown.name) {
                entry.files.iter().for_each(|file| _ = dir.remove(file));
                len -= entry.shown.len;
            }
        }
        Ok(())
    }

    /// Returns the entries.
    ///
    /// # Errors
    /// The system's error, or other processes change them.
    pub fn list(&self) -> io::Result<Vec<Shown>> {
        let dir = match PrivateDir::open(&self.path, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            dir => dir?,
        };
        let files = dir.list(&dir.lock(Duration::from_secs(1))?)?;
        Ok(entries(files).into_iter().map(|entry| entry.shown).collect())
    }

    /// Removes all entries. Returns their number and their bytes.
    ///
    /// # Errors
    /// The system's error, or other processes change them.
    pub fn clear(&self) -> io::Result<(usize, u64)> {
        let dir = match PrivateDir::open(&self.path, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((0, 0)),
            dir => dir?,
        };
        let entries = entries(dir.list(&dir.lock(Duration::from_secs(1))?)?);
        for file in entries.iter().flat_map(|entry| &entry.files) {
            dir.remove(file)?;
        }
        Ok((entries.len(), entries.iter().map(|entry| entry.shown.len).sum()))
    }
}

/// The place of a loaded module in a cache.
#[derive(Debug)]
pub(crate) struct Cached {
    pub directory: Arc<Directory>,
    pub entry: Entry,
    /// The result of looking for it.
    pub found: String,
    /// Whether its validation is not written yet. Held while it is written.
    missing: Mutex<bool>,
}

impl Cached {
    /// The module of an entry, whose validation is there unless it is `missing`.
    pub fn new(directory: Arc<Directory>, entry: Entry, found: String, missing: bool) -> Cached {
        Cached { directory, entry, found, missing: Mutex::new(missing) }
    }

    /// The same of the module with this hash.
    pub fn with_hash(self, hash: Hash) -> Cached {
        Cached { entry: Entry::new(self.entry.identity, hash), ..self }
    }

    /// Writes the validation of `module`, which this is, unless that was done. Does not wait for another thread that does it.
    pub fn write_module(&self, module: &Bytecode) {
        let Ok(mut missing) = self.missing.try_lock() else { return };
        if std::mem::take(&mut *missing) {
            // Without that the next process validates again.
            let _ = self.directory.write_module(&self.entry, module);
        }
    }

    /// Waits for another thread that writes the validation, at most for a time that nobody notices.
    pub fn wait_for_module(&self) {
        let end = Instant::now() + PATIENCE;
        while self.missing.try_lock().is_err() && Instant::now() < end {
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// Adds the code that was compiled since this was last called.
    pub fn add_code(&self, shelf: &Shelf) {
        let code = shelf.take_kept();
        if !code.is_empty() {
            // Without that the next process compiles again.
            let _ = self.directory.add_code(&self.entry, code);
        }
    }
}

/// Opens a file of an entry.
fn open(source: Box<dyn Source>, entry: &Entry) -> Result<Arc<Artifact>, Unusable> {
    let artifact = Artifact::open(source, &entry.identity)?;
    if artifact.hash() == entry.module { Ok(Arc::new(artifact)) } else { Err(Unusable::Damaged) }
}

/// The files of an entry.
struct Files {
    shown: Shown,
    files: Vec<Box<[u8]>>,
}

/// Sorts files to entries, by name.
fn entries(files: Vec<Listed>) -> Vec<Files> {
    let mut entries = BTreeMap::<String, Files>::new();
    for Listed { name, len, used } in files {
        let text = String::from_utf8_lossy(&name);
        let stem = text.split('.').next().unwrap_or_default().to_owned();
        let new = || Files { shown: Shown { name: stem.clone(), len: 0, used: 0 }, files: Vec::new() };
        let entry = entries.entry(stem.clone()).or_insert_with(new);
        entry.shown.len += len;
        entry.shown.used = entry.shown.used.max(used);
        entry.files.push(name);
    }
    entries.into_values().collect()
}
