//! What a module keeps of its profile so that the profile can outlive the process: see [`Config::keep_profiles`].
//!
//! [`Config::keep_profiles`]: crate::Config::keep_profiles

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
    /// The counts that the last compilation of each entry used. They are kept because the interpreter goes on counting.
    compiled: Mutex<BTreeMap<(u32, Entry), Profile>>,
}

impl KeptProfile {
    /// For the module with these bytes, which must be those of its file: the interpreter changes its copy.
    pub fn new(bytes: &[u8]) -> KeptProfile {
        KeptProfile { hash: *blake3::hash(bytes).as_bytes(), used: OnceLock::new(), compiled: Mutex::default() }
    }

    /// The hash of the module's bytes.
    pub fn hash(&self) -> ModuleHash {
        self.hash
    }

    /// Compilations from now on use these counts. Returns them if there are others already.
    pub fn use_profile(&self, profile: ModuleProfile) -> Result<(), ModuleProfile> {
        self.used.set(profile)
    }

    /// The counts that an earlier run has for the compilation of an entry. Empty counts are none: that run had counted nothing.
    pub fn used(&self, func: u32, entry: Entry) -> Option<&Profile> {
        self.used.get()?.counts(func, entry).filter(|profile| !profile.is_empty())
    }

    /// Code that was compiled with these counts is to be installed.
    pub fn compiled(&self, func: u32, entry: Entry, profile: Profile) {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).insert((func, entry), profile);
    }

    /// The profile of this run: the counts of each compilation; of what was not compiled, those of the earlier run; of functions
    /// that neither has compiled, the last `counts`.
    pub fn profile(&self, counts: impl Iterator<Item = (u32, Profile)>) -> ModuleProfile {
        let mut entries = self.used.get().map_or_else(BTreeMap::new, |used| used.entries.clone());
        entries.extend(self.compiled.lock().unwrap_or_else(PoisonError::into_inner).clone());
        for (func, profile) in counts {
            entries.entry((func, Entry::Call)).or_insert(profile);
        }
        ModuleProfile { module: self.hash, entries }
    }
}
