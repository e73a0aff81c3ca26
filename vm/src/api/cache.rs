//! The cache of modules: what a later process need not validate and compile again.

use crate::api::cache_config::CacheConfig;
use crate::api::precompiled::identity_of;
use crate::records::config::{Config, Unavailable};
use crate::records::engine::Engine;
use crate::records::error::{Error, Result};
use crate::records::events::ProfilingStrategy;
use crate::records::loading::{self, Hash, Kind};
use crate::records::module::Module;
use crate::records::precompiled::artifact::Unfit;
use crate::records::precompiled::cache::{Cached, Directory, Entry};
use crate::records::precompiled::format::Identity;
use crate::sys::file::Opened;
use crate::sys::private_dir::Listed;
use crate::sys::thread;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use weir_bytecode::{Bytes, file};

/// The bytes from which a module is hashed by a thread of its own, beside its instantiation.
const LARGE: usize = 256 << 10;

/// A directory in which engines keep what they have validated and compiled: see [`Config::cache`]. Clones refer to the same cache.
#[derive(Clone, Debug)]
pub struct Cache {
    directory: Arc<Directory>,
    config: CacheConfig,
}

impl Cache {
    /// Creates a cache. The directory is not touched before a module is loaded.
    ///
    /// # Errors
    /// No directory is set, and the environment has none; a percentage is above 100.
    pub fn new(config: CacheConfig) -> Result<Cache> {
        let limits = config.limits()?;
        let directory = config.directory().cloned().or_else(default_directory);
        let directory =
            directory.ok_or_else(|| Error::new(Unavailable::new("there is no directory for the cache: HOME is not set")))?;
        let directory = Arc::new(Directory::new(std::path::absolute(directory)?, limits));
        Ok(Cache { directory, config })
    }

    /// Creates a cache with the default settings. Weir reads no file of settings.
    ///
    /// # Errors
    /// A file is given; as [`Cache::new`].
    pub fn from_file(path: Option<&Path>) -> Result<Cache> {
        Cache::new(CacheConfig::from_file(path)?)
    }

    /// Returns the directory.
    pub fn directory(&self) -> &PathBuf {
        self.directory.path()
    }

    /// Returns how many modules were found.
    pub fn cache_hits(&self) -> usize {
        self.directory.counts().0 as usize
    }

    /// Returns how many modules were looked for in vain.
    pub fn cache_misses(&self) -> usize {
        self.directory.counts().1 as usize
    }

    /// Returns the files in the cache: their names, which are hashes, their bytes, and when they were last used.
    ///
    /// # Errors
    /// The directory cannot be read, or is not the user's alone.
    pub fn entries(&self) -> Result<Vec<CacheEntry>> {
        let entry = |file: Listed| CacheEntry {
            name: String::from_utf8_lossy(&file.name).split(['-', '.']).next().unwrap_or_default().to_owned(),
            size: file.len,
            last_use: std::time::UNIX_EPOCH + Duration::from_nanos(u64::try_from(file.used).unwrap_or_default()),
        };
        Ok(self.directory.list()?.into_iter().map(entry).collect())
    }

    /// Removes all modules. Returns their number and their bytes.
    ///
    /// # Errors
    /// The directory cannot be changed, or is not the user's alone.
    pub fn clear(&self) -> Result<(usize, u64)> {
        Ok(self.directory.clear()?)
    }
}

/// Settings of a cache.
macro_rules! getters {
    ($($get:ident: $ty:ty)*) => {
        impl Cache {
            $(
                #[doc = concat!("Returns [`CacheConfig::", stringify!($get), "`] of its settings.")]
                pub fn $get(&self) -> $ty {
                    self.config.$get()
                }
            )*
        }
    };
}

getters! {
    files_total_size_soft_limit: u64
    file_count_soft_limit: u64
    file_count_limit_percent_if_deleting: u8
    files_total_size_limit_percent_if_deleting: u8
    worker_event_queue_size: u64
    baseline_compression_level: i32
    optimized_compression_level: i32
    optimized_compression_usage_counter_threshold: u64
    cleanup_interval: Duration
    optimizing_compression_task_timeout: Duration
    allowed_clock_drift_for_files_from_future: Duration
}

/// A file of a [`Cache`]: the code of a module with the results of its validation, or the bytes of a large module.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CacheEntry {
    /// Its name: a hash of the module, the settings, the build of Weir and the features of the processor.
    pub name: String,
    /// The bytes of its file.
    pub size: u64,
    /// When it was last used.
    pub last_use: std::time::SystemTime,
}

/// The user's directory for the cache.
fn default_directory() -> Option<PathBuf> {
    let absolute = |variable: &str| {
        let value: OsString = std::env::var_os(variable)?;
        Some(PathBuf::from(value)).filter(|path| path.is_absolute())
    };
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(caches.join("weir"))
}

impl Config {
    /// Keeps modules that this engine has validated, and the code that it has compiled, in a cache for later processes. Such a module is
    /// loaded without validation, and its functions run in that code from their first call on. What an entry lacks is added when the
    /// module is dropped, or by [`Module::update_cache`]. A cache that cannot be used is as if it were empty. Default: none.
    ///
    /// Modules are not cached whose code depends on more than the module and the settings, or of which more is wanted: with
    /// [`deterministic`](Config::deterministic), [`keep_profiles`](Config::keep_profiles), [`profile`](Config::profile),
    /// [`lazy_validation`](Config::lazy_validation) or [`stress`](Config::stress), and in engines with another
    /// [`Tier`](crate::Tier) than `Auto` and `Native`.
    pub fn cache(&mut self, cache: Option<Cache>) -> &mut Config {
        self.cache = cache.map(|cache| cache.directory);
        self
    }
}

impl Module {
    /// Adds to the engine's cache what the module's entry lacks: its validation, and code that was compiled since. This is done when the
    /// module is dropped; a program that ends without dropping it calls this. Nothing happens without [`Config::cache`].
    pub fn update_cache(&self) {
        self.record().update_cache();
    }
}

/// The place of a module in the cache, if the engine has one that it may use.
pub(crate) struct Lookup<'e> {
    engine: &'e Engine,
    directory: &'e Arc<Directory>,
    /// What the engine's code depends on.
    identity: Identity,
}

impl<'e> Lookup<'e> {
    /// For the modules of an engine.
    pub fn of(engine: &'e Engine) -> Option<Lookup<'e>> {
        let config = engine.config();
        let directory = config.cache.as_ref()?;
        let wanted = config.deterministic || config.keep_profiles || config.profile.is_some() || config.lazy_validation;
        if wanted || config.profiler != ProfilingStrategy::None {
            return None;
        }
        Some(Lookup { engine, directory, identity: identity_of(engine).ok()? })
    }

    /// Loads a module from its bytes.
    pub fn module(&self, bytes: Bytes) -> Result<Module> {
        let kind = Kind::Bytes;
        let hash = match self.directory.why_absent(bytes.len()) {
            Some(reason) => Err(reason),
            None => Ok(loading::hash(kind, &bytes, &loading::all(bytes.len()), loading::threads())),
        };
        self.load(kind, bytes, hash)
    }

    /// Loads a module from a file in the binary format, which is read once. `None` if it is no such file, or has no known length.
    pub fn file(&self, path: &Path) -> Result<Option<Module>> {
        let file = Arc::new(Opened::open(path)?);
        let Ok(len @ 1..) = u32::try_from(file.len()) else { return Ok(None) };
        let len = len as usize;
        let read = |into: &mut [u8], at: usize| file.read_at(into, at as u64);
        if !file::is_binary(len, read).unwrap_or(false) {
            return Ok(None);
        }
        self.engine.config().check_size(len)?;
        let absent = self.directory.why_absent(len);
        let needed = file::needed(len, read)?;
        if absent.is_none() && self.directory.may_have_file(len) {
            let hash = loading::hash_file(len, &needed, read)?;
            let (file, again) = (file.clone(), needed.clone());
            let again = move || {
                let read = |into: &mut [u8], at: usize| file.read_at(into, at as u64);
                let (bytes, found) = loading::read(len, &again, true, read).ok()?;
                (found == Some(hash)).then_some(bytes)
            };
            if let Some(bytes) = self.directory.find_file(&Entry::new(self.identity, hash, len), again) {
                let module = self.load(Kind::File, bytes, Ok(hash));
                if module.is_ok() {
                    return module.map(Some);
                }
            }
        }
        // If it was hashed, it may be another one now.
        let (bytes, hash) = loading::read(len, &needed, absent.is_none(), read)?;
        self.load(Kind::File, bytes, hash.ok_or_else(|| absent.unwrap_or_default())).map(Some)
    }

    /// Loads a module with this hash, or one that was not hashed, for a reason: no entry is of a module of its length.
    fn load(&self, kind: Kind, bytes: Bytes, hash: Result<Hash, String>) -> Result<Module> {
        let entry = hash.map(|hash| Entry::new(self.identity, hash, bytes.len()));
        let known = entry.as_ref().ok().copied();
        let cached = |found: String| Some(Cached::new(self.directory.clone(), self.identity, kind, known, found));
        match entry.and_then(|entry| self.directory.find(&entry)) {
            Ok(artifact) => {
                let module = Module::of_artifact(self.engine, bytes, artifact, cached("hit".into()))?;
                module.or_else(|(bytes, unfit)| {
                    let reason = match unfit {
                        Unfit::Damaged => "refused: it is damaged",
                        Unfit::Memory(_) => "refused: it takes more memory than is allowed",
                    };
                    Module::loaded(self.engine, bytes, cached(reason.into()))
                })
            }
            Err(reason) => Module::loaded(self.engine, bytes, cached(reason)),
        }
    }
}

/// Begins to hash a large module for the cache, beside its instantiation.
pub(crate) fn hash_early(module: &Module) {
    let record = module.record();
    if record.cached.as_ref().is_some_and(|cached| !cached.is_hashed()) && record.bytecode.bytes.len() >= LARGE {
        let record = record.clone();
        // Otherwise it is hashed at the end.
        let _ = thread::spawn("weir-cache", move || record.cached.iter().for_each(|cached| cached.hash(&record.bytecode)));
    }
}
