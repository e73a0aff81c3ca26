//! The cache: a directory with a file for each module that was loaded. The file has code, and the results of validation of the bodies that
//! were called. It does not have the module, because a process reads and hashes the module before it looks for the entry. The bytes of a large
//! module are in a [file of their own](super::module_file), which later processes write.
//!
//! The name of an entry is a hash of everything that it depends on: the module's bytes, the build of Weir, the settings and the
//! processor. Nothing in an entry depends on where the module was, its name or its time. Later processes append what they
//! add; the file is replaced when less than half of it is used.
//!
//! A cache that cannot be used is as if it were empty.

use super::artifact::{Artifact, Source};
use super::format::{Builder, Grade, Identity, ModulePart, Unusable};
use super::module_file::{self, ModuleFile};
use super::shelf::{CodeMap, Shelf};
use super::tally::{self, Key, Tally};
use super::work::{Left, Work};
use crate::records::loading::{self, Hash, Kind, LARGE};
use crate::sys::private_dir::{Listed, Locked, PrivateDir};
use std::collections::{BTreeMap, btree_map};
use std::io::{self, BufWriter, Seek, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use weir_bytecode::stored::to_bytes;
use weir_bytecode::{Bytes, Module as Bytecode, file};

/// How long the end of a process takes for the cache, if it writes a part of the bytes of its module. Without those only the first entry of a large
/// module takes longer, or one for which other processes are waited for.
const END: Duration = Duration::from_millis(5);

/// How long an entry may wait for other processes, before it is left as it is.
const PATIENCE: Duration = Duration::from_millis(3);

/// How long a process writes the bytes of its module, at most.
const WRITING: Duration = Duration::from_millis(3);

/// In less time than this it does not begin.
const LEAST: Duration = Duration::from_micros(500);

/// Bytes that are written at once.
const BUFFER: usize = 64 << 10;

/// The size of a cache, about at most.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub files: u64,
    pub bytes: u64,
    /// The share of the first limit to which a cache shrinks that exceeds one.
    pub files_percent: u8,
    /// The same of the second one.
    pub bytes_percent: u8,
}

impl Limits {
    fn exceeds(&self, tally: &Tally) -> bool {
        tally.files > self.files || tally.bytes > self.bytes
    }

    /// Returns the files and the bytes that are left of a cache that exceeds a limit.
    fn left(&self) -> (u64, u64) {
        let part = |limit: u64, percent: u8| (u128::from(limit) * u128::from(percent) / 100) as u64;
        (part(self.files, self.files_percent), part(self.bytes, self.bytes_percent))
    }
}

/// The reason of a module that is not in a cache with which all is well.
const MISS: &str = "miss";

/// The reason of a module that is not found, because of this error.
fn absent(error: io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound { MISS.into() } else { format!("{MISS}: {error}") }
}

/// A directory of entries.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    limits: Limits,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// The name of an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    identity: Identity,
    /// The hash of the module's bytes.
    module: Hash,
    /// Their number.
    len: usize,
}

impl Entry {
    /// The entry of the module of `len` bytes with this hash.
    pub fn new(identity: Identity, module: Hash, len: usize) -> Entry {
        Entry { identity, module, len }
    }

    fn name(&self) -> String {
        format!("{}{ENDING}", self.stem(&self.identity))
    }

    /// Returns the name of the file with the module's bytes.
    fn file_name(&self) -> String {
        format!("{}{FILE_ENDING}", self.stem(&module_file::identity()))
    }

    fn stem(&self, identity: &Identity) -> String {
        let Identity { build, settings, version } = identity;
        let hash = blake3::hash(&[build.as_slice(), settings, &version.unwrap_or_default(), &self.module].concat());
        format!("{}-{:x}", hash.to_hex(), self.len)
    }
}

/// What the names of entries end with.
const ENDING: &str = ".weir";
/// What the names of files with the bytes of modules end with.
const FILE_ENDING: &str = ".module";

/// Returns what a file with this name is.
fn key_of(name: &[u8]) -> Option<Key> {
    let name = str::from_utf8(name).ok()?;
    let len = |stem: &str| u64::from_str_radix(stem.rsplit_once('-')?.1, 16).ok();
    match name.strip_suffix(ENDING) {
        Some(stem) => len(stem).map(Key::Entry),
        None => name.strip_suffix(FILE_ENDING).and_then(len).map(Key::File),
    }
}

/// What is added to an entry.
#[derive(Debug)]
pub(crate) struct Addition {
    pub module: ModulePart,
    /// Results of validation as bytes, by body.
    pub results: BTreeMap<u32, Vec<u8>>,
    pub code: CodeMap,
    /// By function.
    pub work: BTreeMap<u32, Work>,
    /// How long this process has run the module.
    pub ran: Duration,
}

impl Addition {
    /// Adds what is there already.
    fn merge(&mut self, there: &Artifact) {
        let code = there.code().iter().map(|code| ((code.func, code.grade), code.place));
        for (key, place) in code {
            if let btree_map::Entry::Vacant(entry) = self.code.entry(key) {
                there.part(place).map(|bytes| entry.insert(bytes.into()));
            }
        }
        self.merge_work(there.work());
        self.results.extend(there.results());
    }

    /// Adds work of earlier processes.
    fn merge_work(&mut self, earlier: BTreeMap<u32, Work>) {
        earlier.into_values().for_each(|earlier| Work::add(&mut self.work, earlier));
    }

    /// Leaves out what another process has added since this one `found` the entry. Code that was there before and is compiled again was damaged,
    /// or its guards failed: this process's replaces it.
    fn subtract(&mut self, there: &Artifact, found: Option<&Artifact>) {
        self.work.retain(|func, _| there.find(*func, Grade::Optimised).is_none());
        let is_known = |func, grade| found.is_some_and(|found| found.find(func, grade).is_some());
        let is_new = |func, grade| there.find(func, grade).is_some() && !is_known(func, grade);
        self.code.retain(|&(func, grade), _| !is_new(func, grade) && !is_new(func, Grade::Optimised));
        let was_damaged = |body: &u32| found.is_some_and(|found| found.names_result(*body) && !found.has_result(*body));
        self.results.retain(|body, _| !there.has_result(*body) || was_damaged(body));
    }

    /// Appends this to an existing entry.
    fn append<W: Write + Seek>(mut self, to: W, there: &Artifact, entry: &Entry) -> io::Result<W> {
        let mut builder = there.resume(to)?;
        let (mut work, code) = (there.work(), &self.code);
        let all = work.len();
        let is_optimised = |func| there.find(func, Grade::Optimised).is_some() || code.contains_key(&(func, Grade::Optimised));
        work.retain(|func, _| !is_optimised(*func));
        // Merging work takes longer than everything else that a process does here, so most processes only append theirs.
        if there.has_much_work() || work.len() <= all / 2 {
            self.merge_work(work);
            builder.forget_work();
        }
        self.write(builder, entry)
    }

    /// Writes an entry, or adds to one.
    fn write<W: Write + Seek>(mut self, mut builder: Builder<W>, entry: &Entry) -> io::Result<W> {
        builder.results(&self.results.into_iter().collect::<Vec<_>>())?;
        self.work.retain(|func, _| !self.code.contains_key(&(*func, Grade::Optimised)));
        let is_used = |&(func, grade)| grade == Grade::Optimised || !self.code.contains_key(&(func, Grade::Optimised));
        for (&(func, grade), code) in self.code.iter().filter(|(key, _)| is_used(key)) {
            builder.code(func, grade, code)?;
        }
        builder.work(&self.work.into_values().collect())?;
        builder.lasted(self.ran);
        builder.finish(entry.identity, entry.module)
    }
}

impl Directory {
    /// The cache in a directory, which need not exist.
    pub fn new(path: PathBuf, limits: Limits) -> Directory {
        Directory { path, limits, hits: AtomicU64::new(0), misses: AtomicU64::new(0) }
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
    pub fn find(&self, entry: &Entry) -> Result<Arc<Artifact>, String> {
        let found = self.find_counted(entry);
        let count = if found.is_ok() { &self.hits } else { &self.misses };
        count.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// Returns why no module of `len` bytes is in the cache, and counts that as a miss; `None` if one may be.
    pub fn why_absent(&self, len: usize) -> Option<String> {
        let may_have = |dir| tally::may_have(&dir, Key::Entry(len as u64));
        let reason = match PrivateDir::open(&self.path, false).and_then(may_have) {
            Ok(true) => return None,
            Ok(false) => MISS.into(),
            Err(error) => absent(error),
        };
        self.misses.fetch_add(1, Ordering::Relaxed);
        Some(reason)
    }

    /// Returns whether the bytes of a module of `len` bytes are kept: not if they would drive out the rest of a small cache.
    fn keeps(&self, len: usize) -> bool {
        len >= LARGE && len as u64 <= self.limits.bytes / 4
    }

    /// Returns whether the bytes of a module of `len` bytes may be in the cache.
    pub fn may_have_file(&self, len: usize) -> bool {
        let may_have = |dir| tally::may_have(&dir, Key::File(len as u64));
        self.keeps(len) && PrivateDir::open(&self.path, false).and_then(may_have).unwrap_or(false)
    }

    /// Returns the bytes of the module of an entry, if they are in the cache. `again` reads them from where the module was loaded; `None` if they
    /// are others now.
    pub fn find_file(&self, entry: &Entry, again: impl Fn() -> Option<Bytes> + Send + Sync + 'static) -> Option<Bytes> {
        let dir = PrivateDir::open(&self.path, false).ok()?;
        let name = entry.file_name();
        let file = ModuleFile::open(Box::new(dir.open_file(&name).ok()?), entry.module, entry.len, again)?;
        // As in `find_counted`.
        let _ = dir.touch(&name);
        let untouched = file.untouched();
        Some(Bytes::of_parts(file).with_untouched(untouched))
    }

    fn find_counted(&self, entry: &Entry) -> Result<Arc<Artifact>, String> {
        let dir = PrivateDir::open(&self.path, false).map_err(absent)?;
        let open = || {
            let file = dir.open_file(&entry.name()).map_err(absent)?;
            open(Box::new(file), entry).map_err(|reason| format!("refused: {reason}"))
        };
        // The header may be read while another process writes it.
        let artifact = open().or_else(|_| open())?;
        // An entry that is used now is the last to be evicted.
        let _ = dir.touch(&entry.name());
        Ok(artifact)
    }

    /// Locks the directory, which is made if there is none, to add to it. Waits so long for other processes.
    ///
    /// # Errors
    /// The system's error, or other processes keep it locked.
    fn lock(&self, patience: Duration) -> io::Result<(PrivateDir, Locked)> {
        let dir = PrivateDir::open(&self.path, true)?;
        let locked = dir.lock(patience)?;
        Ok((dir, locked))
    }

    /// Adds to an entry of the locked directory, in which this process has `found` something. What another process has added meanwhile stays.
    ///
    /// # Errors
    /// The system's error.
    fn add(
        &self,
        (dir, locked): (PrivateDir, Locked),
        entry: &Entry,
        found: Option<&Artifact>,
        addition: Addition,
    ) -> io::Result<()> {
        let name = entry.name();
        let key = Key::Entry(entry.len as u64);
        self.change((dir, locked), &name, |dir| write(dir, &name, entry, found, addition).map(|()| Some(key)))
    }

    /// Changes the file of the locked directory with this name. `write` returns what there is after it.
    fn change(
        &self,
        (dir, locked): (PrivateDir, Locked),
        name: &str,
        write: impl FnOnce(&PrivateDir) -> io::Result<Option<Key>>,
    ) -> io::Result<()> {
        let tally = Tally::begin(&locked)?;
        let before = dir.len_of(name);
        let written = write(&dir);
        let now = dir.len_of(name);
        let tally = tally.and_then(|tally| tally.after(before, now)).filter(|tally| !self.limits.exceeds(tally));
        let ended = match tally {
            Some(tally) => tally.end(&locked, written.as_ref().ok().copied().flatten()),
            None => self.evict(&dir, &locked, name),
        };
        written.and(ended)
    }

    /// Writes the file of `module`, whose entry this is, or goes on with it until `end`, for [`WRITING`] at most.
    fn add_file(&self, entry: &Entry, module: &Bytecode, end: Instant) -> io::Result<()> {
        let left = || end.saturating_duration_since(Instant::now());
        if left() < LEAST {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let name = entry.file_name();
        self.change(self.lock(PATIENCE.min(left()))?, &name, |dir| {
            let key = Some(Key::File(entry.len as u64));
            let there = match dir.open_file(&name) {
                // There is none, or one that nobody uses: a link, or a file that others can reach. It is replaced, as an entry is.
                Err(_) => {
                    dir.write(&name, |_| Ok(()))?;
                    dir.open_file(&name)
                }
                file => file,
            };
            let was_ended = module_file::was_ended(&there?);
            if was_ended && self.find_file(entry, || None).is_some() {
                return Ok(key);
            }
            let to = dir.open_to_add(&name)?;
            if was_ended {
                // It is damaged.
                to.set_len(0)?;
            }
            let needed = file::needed_of(&module.bytes);
            Ok(module_file::write(to, module, &needed, entry.module, WRITING.min(left()))?.then_some(key).flatten())
        })
    }

    /// Removes the file of the module of this entry.
    fn remove_file(&self, entry: &Entry) -> io::Result<()> {
        let name = entry.file_name();
        self.change(self.lock(PATIENCE)?, &name, |dir| dir.remove(name.as_bytes()).map(|()| None))
    }

    /// Lists the entries, and removes those that were not used for the longest time, if all exceed a limit.
    fn evict(&self, dir: &PrivateDir, locked: &Locked, keep: &str) -> io::Result<()> {
        let mut files = dir.list(locked)?;
        let mut tally = Tally::of(&files);
        if self.limits.exceeds(&tally) {
            let left = self.limits.left();
            files.sort_by_key(|file| file.used);
            files.retain(|file| {
                let goes = (tally.files > left.0 || tally.bytes > left.1) && *file.name != *keep.as_bytes();
                if goes {
                    let _ = dir.remove(&file.name);
                    tally.files -= 1;
                    tally.bytes -= file.len;
                }
                !goes
            });
        }
        tally.renew(locked, files.iter().filter_map(|file| key_of(&file.name)))
    }

    /// Returns the files of the entries.
    ///
    /// # Errors
    /// The system's error, or other processes change them.
    pub fn list(&self) -> io::Result<Vec<Listed>> {
        let mut files = self.files()?.map_or_else(Vec::new, |(_, _, files)| files);
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    /// Returns the directory, locked, and its files; `None` if it does not exist.
    fn files(&self) -> io::Result<Option<(PrivateDir, Locked, Vec<Listed>)>> {
        let dir = match PrivateDir::open(&self.path, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            dir => dir?,
        };
        let locked = dir.lock(Duration::from_secs(1))?;
        let files = dir.list(&locked)?;
        Ok(Some((dir, locked, files)))
    }

    /// Removes all entries. Returns their number and their bytes.
    ///
    /// # Errors
    /// The system's error, or other processes change them.
    pub fn clear(&self) -> io::Result<(usize, u64)> {
        let Some((dir, locked, files)) = self.files()? else { return Ok((0, 0)) };
        Tally::begin(&locked)?;
        files.iter().try_for_each(|file| dir.remove(&file.name))?;
        Tally::default().renew(&locked, std::iter::empty())?;
        Ok((files.len(), files.iter().map(|file| file.len).sum()))
    }
}

/// Writes the entry with this name, or adds to it: see [`Directory::add`].
fn write(dir: &PrivateDir, name: &str, entry: &Entry, found: Option<&Artifact>, mut addition: Addition) -> io::Result<()> {
    let there = dir.open_file(name).ok().and_then(|file| open(Box::new(file), entry).ok());
    match there {
        Some(there) if !there.is_sparse() => {
            addition.subtract(&there, found);
            addition.append(BufWriter::with_capacity(BUFFER, dir.open_to_add(name)?), &there, entry).map(drop)
        }
        there => {
            there.iter().for_each(|there| addition.merge(there));
            let before = there.and_then(|there| there.lasted());
            dir.write(name, |file| {
                let mut builder = Builder::new(BufWriter::with_capacity(BUFFER, file))?;
                builder.module(addition.module.clone());
                before.into_iter().for_each(|before| builder.lasted(before));
                addition.write(builder, entry).map(drop)
            })
        }
    }
}

/// The place of a loaded module in a cache.
#[derive(Debug)]
pub(crate) struct Cached {
    directory: Arc<Directory>,
    identity: Identity,
    kind: Kind,
    entry: OnceLock<Entry>,
    /// The result of looking for it.
    pub found: String,
    /// Held while the entry is written.
    written: Mutex<Written>,
    /// Why it could not be written the last time.
    failure: Mutex<Option<String>>,
}

/// What this process has written of a module.
#[derive(Debug, Default)]
struct Written {
    /// Whether the entry.
    entry: bool,
    /// Whether some of its bytes, or whether they were removed.
    file: bool,
}

/// The entry is written if functions with this many bytes together were called and are not in it.
const NEW_BYTES: usize = 16 << 10;

impl Cached {
    /// A module that was looked for, with this result, if `entry` is its entry; or is in no entry.
    pub fn new(directory: Arc<Directory>, identity: Identity, kind: Kind, entry: Option<Entry>, found: String) -> Cached {
        let entry = entry.map_or_else(OnceLock::new, Into::into);
        Cached { directory, identity, kind, entry, found, written: Mutex::default(), failure: Mutex::default() }
    }

    /// Returns why the entry could not be written the last time; `None` if it was, or there was never anything to write.
    pub fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns whether the module was hashed.
    pub fn is_hashed(&self) -> bool {
        self.entry.get().is_some()
    }

    /// The entry of `module`, which this is. Its bytes are hashed if that was not done.
    fn entry(&self, module: &Bytecode) -> &Entry {
        self.entry.get_or_init(|| {
            let bytes = &*module.bytes;
            let ranges = match self.kind {
                Kind::File => file::needed_of(bytes),
                Kind::Bytes => loading::all(bytes.len()),
            };
            Entry::new(self.identity, loading::hash(self.kind, bytes, &ranges, 1), bytes.len())
        })
    }

    /// Hashes `module`, which this is, if that was not done and nobody else does it.
    pub fn hash(&self, module: &Bytecode) {
        let _ = self.entry(module);
    }

    /// Adds to the entry of `module`, which this is, what it lacks: code that was compiled since this was last called, results of validation of
    /// the bodies that were `called`, and what is `left` to later processes. Nothing is written if there is little to add, unless
    /// the end of the process, which `began` at this time, has `cut_off` a compilation.
    pub fn update(
        &self,
        module: &Bytecode,
        shelf: &Shelf,
        called: &dyn Fn(u32) -> bool,
        (began, cut_off): (Instant, bool),
        left: &dyn Fn() -> Left,
    ) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        self.update_entry(module, shelf, called, cut_off, left, &mut written.entry);
        let has_file = module.bytes.places().is_some();
        let wants_file = self.kind == Kind::File && shelf.artifact().is_some() && self.directory.keeps(module.bytes.len());
        let changes = if has_file { module.bytes.is_damaged() } else { wants_file };
        // If the entry cannot be written, neither can this.
        if changes && self.failure().is_none() && !written.file {
            let entry = self.entry(module);
            // If this fails, later processes do it.
            let changed = match has_file {
                true => self.directory.remove_file(entry),
                false => self.directory.add_file(entry, module, began + END),
            };
            written.file = changed.is_ok();
        }
    }

    fn update_entry(
        &self,
        module: &Bytecode,
        shelf: &Shelf,
        called: &dyn Fn(u32) -> bool,
        cut_off: bool,
        left: &dyn Fn() -> Left,
        written: &mut bool,
    ) {
        let found = shelf.artifact();
        let is_new = |body: &u32| called(*body) && !found.is_some_and(|found| found.has_result(*body));
        let bodies: Vec<u32> = (0..module.bodies.len() as u32).filter(is_new).collect();
        let bytes: usize = bodies.iter().map(|&body| module.bodies[body as usize].range().len()).sum();
        let is_missing = found.is_none() && !*written;
        if !(is_missing || shelf.has_news() || cut_off || bytes >= NEW_BYTES && !*written) {
            return;
        }
        let result = |body: u32| Some((body, to_bytes(module.bodies[body as usize].get()?)));
        let Left { work, ran } = left();
        let mut addition = Addition {
            module: ModulePart::of(module),
            results: bodies.into_iter().filter_map(result).collect(),
            work: work.into_iter().map(|work| (work.func, work)).collect(),
            ran,
            code: CodeMap::new(),
        };
        // The module may have to be hashed first, which takes longer than other processes wait.
        let entry = self.entry(module);
        // If other processes keep the directory locked, the code stays for the next time.
        let added = self.directory.lock(PATIENCE).and_then(|locked| {
            addition.code = shelf.take_kept(&module.account);
            *written = true;
            self.directory.add(locked, entry, found, addition)
        });
        // Without the entry the next process validates and compiles again.
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = added.err().map(|error| error.to_string());
    }
}

/// Opens a file of an entry.
fn open(source: Box<dyn Source>, entry: &Entry) -> Result<Arc<Artifact>, Unusable> {
    let artifact = Artifact::open(source, &entry.identity)?;
    if artifact.hash() == entry.module { Ok(Arc::new(artifact)) } else { Err(Unusable::Damaged) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use weir_contract::profile::Profile;

    fn opened(written: &Cursor<Vec<u8>>, entry: &Entry) -> Arc<Artifact> {
        open(Box::new(written.get_ref().clone().into_boxed_slice()), entry).unwrap()
    }

    fn addition(code: &[(u32, Grade)], work: &[u32]) -> Addition {
        Addition {
            module: ModulePart::default(),
            results: BTreeMap::new(),
            code: code.iter().map(|&key| (key, Box::from(*b"code"))).collect(),
            work: work.iter().map(|&func| (func, Work::new(func, 1, 0, &Profile::default()))).collect(),
            ran: Duration::from_millis(1),
        }
    }

    /// Two processes find the same entry, and each adds results of validation, code and work. The second one that writes finds what the first
    /// one has added.
    #[test]
    fn two_processes_add_to_one_entry() {
        let entry = Entry::new(Identity::of("settings", None), Hash::default(), 0);
        let first = Builder::new(Cursor::new(Vec::new())).unwrap();
        let mut written = addition(&[(0, Grade::Optimised)], &[1, 9]).write(first, &entry).unwrap();
        let found = opened(&written, &entry);
        let of_one = addition(&[(1, Grade::Optimised), (2, Grade::Baseline), (3, Grade::Baseline)], &[4, 5]);
        let of_other =
            addition(&[(2, Grade::Optimised), (3, Grade::Baseline), (6, Grade::Baseline), (0, Grade::Baseline)], &[1, 5, 7]);
        for mut addition in [of_one, of_other] {
            let there = opened(&written, &entry);
            addition.subtract(&there, Some(&found));
            written = addition.append(written, &there, &entry).unwrap();
        }
        let there = opened(&written, &entry);
        let grade = |func| [Grade::Optimised, Grade::Baseline].into_iter().find(|&grade| there.find(func, grade).is_some());
        let grades: Vec<_> = (0..8).map(grade).collect();
        let (optimised, baseline) = (Some(Grade::Optimised), Some(Grade::Baseline));
        assert_eq!(grades, [optimised, optimised, optimised, baseline, None, None, baseline, None]);
        // Function 1 is optimised, so that its work is done.
        assert_eq!(
            there.work().into_keys().filter(|func| there.find(*func, Grade::Optimised).is_none()).collect::<Vec<_>>(),
            [4, 5, 7, 9]
        );
    }

    /// The first process leaves four functions, and each later one compiles one of them. The entry drops those that are compiled when they are half
    /// of what it names, so that it names none at the end.
    #[test]
    fn work_is_left_until_it_is_done() {
        const FUNCS: u32 = 4;
        let entry = Entry::new(Identity::of("settings", None), Hash::default(), 0);
        let opened = |written: &Cursor<Vec<u8>>| opened(written, &entry);
        let first = Builder::new(Cursor::new(Vec::new())).unwrap();
        let mut written = addition(&[], &[0, 1, 2, 3]).write(first, &entry).unwrap();
        let mut left = Vec::new();
        for func in 0..FUNCS {
            let there = opened(&written);
            let mut addition = addition(&[(func, Grade::Optimised)], &[]);
            addition.subtract(&there, Some(&there));
            written = addition.append(written, &there, &entry).unwrap();
            left.push(opened(&written).work().into_keys().collect::<Vec<u32>>());
        }
        assert_eq!(left, [vec![0, 1, 2, 3], vec![2, 3], vec![3], vec![]]);
        assert!(!opened(&written).has_work());
    }
}
