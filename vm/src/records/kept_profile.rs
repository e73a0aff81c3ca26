//! The parts of a module's profile that are kept so that it can outlive the process: see [`Config::keep_profiles`].
//!
//! [`Config::keep_profiles`]: crate::Config::keep_profiles

use super::hints::hash;
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use weir_contract::Entry;
use weir_contract::profile::Profile;
use weir_contract::profile_text::{ModuleHash, ModuleProfile};

/// The kept profile of a module.
#[derive(Debug)]
pub(crate) struct KeptProfile {
    hash: ModuleHash,
    /// The profile of an earlier run.
    used: OnceLock<ModuleProfile>,
    /// The counts that the last compilation of each entry used. They are copied because the interpreter continues to
    /// count.
    compiled: Mutex<BTreeMap<(u32, Entry), UsedCounts>>,
}

/// The counts that a compilation used.
#[derive(Debug, Default)]
pub(crate) struct UsedCounts {
    /// Those of the function.
    pub own: Profile,
    /// Those of the functions that were inlined, by index.
    pub inlined: BTreeMap<u32, Profile>,
}

impl KeptProfile {
    /// Creates the profile of the module with these bytes.
    pub fn new(bytes: &[u8]) -> KeptProfile {
        KeptProfile { hash: hash(bytes), used: OnceLock::new(), compiled: Mutex::default() }
    }

    /// Returns the hash of the module's bytes.
    pub fn hash(&self) -> ModuleHash {
        self.hash
    }

    /// Uses these counts for compilations from now on. Returns them as an error if a profile is used already.
    pub fn use_profile(&self, profile: ModuleProfile) -> Result<(), ModuleProfile> {
        self.used.set(profile)
    }

    /// Returns the profile of an earlier run, if one is used.
    pub fn used(&self) -> Option<&ModuleProfile> {
        self.used.get()
    }

    /// Returns, of the profile of an earlier run, the counts for calls of each function that has any, ascending by function.
    pub fn used_by_function(&self) -> Vec<(u32, &Profile)> {
        let Some(used) = self.used.get() else { return Vec::new() };
        let mut funcs: Vec<u32> = used.entries.keys().map(|&(func, _)| func).collect();
        funcs.dedup();
        let counts = |func: u32| used.counts(func, Entry::Call).filter(|profile| !profile.is_empty());
        funcs.into_iter().filter_map(|func| Some((func, counts(func)?))).collect()
    }

    /// Keeps the counts with which the code was compiled that is about to be installed.
    pub fn compiled(&self, func: u32, entry: Entry, counts: UsedCounts) {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).insert((func, entry), counts);
    }

    /// Returns the profile of this run: the counts of each compilation; for entries that were not compiled, those of
    /// the earlier run; for functions that neither run compiled, the last `counts`.
    pub fn profile(&self, counts: impl Iterator<Item = (u32, Profile)>) -> ModuleProfile {
        let empty = || ModuleProfile { module: self.hash, entries: BTreeMap::new(), inlined: BTreeMap::new() };
        let mut all = self.used.get().cloned().unwrap_or_else(empty);
        let compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        all.inlined.retain(|&(func, entry, _), _| !compiled.contains_key(&(func, entry)));
        for (&(func, entry), UsedCounts { own, inlined }) in &*compiled {
            all.entries.insert((func, entry), own.clone());
            all.inlined.extend(inlined.iter().map(|(&callee, profile)| ((func, entry, callee), profile.clone())));
        }
        for (func, profile) in counts {
            all.entries.entry((func, Entry::Call)).or_insert(profile);
        }
        all
    }
}
