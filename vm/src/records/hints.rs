//! The compilation hints of a module. They are read when something is first compiled, on the thread that compiles it.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use weir_bytecode::Module as Bytecode;
use weir_contract::Entry;
use weir_contract::hints::{Hints, priorities};
use weir_contract::profile::Profile;
use weir_contract::profile_text::ModuleHash;

/// The hints of a module.
#[derive(Debug, Default)]
pub(crate) struct ModuleHints {
    counts: OnceLock<Hints>,
    /// They are read apart from the others, because the thread that requests a compilation needs them.
    priorities: OnceLock<BTreeMap<u32, u32>>,
}

impl ModuleHints {
    /// Returns the counts of the profile in `module`, which this is of, for an entry; `None` if it has none.
    pub fn exact(&self, module: &Bytecode, func: u32, entry: Entry) -> Option<&Profile> {
        self.counts(module).exact(func, entry)
    }

    /// Returns the other hints of `module`, which this is of, for a function, as counts.
    pub fn profile(&self, module: &Bytecode, func: u32) -> Option<Profile> {
        self.counts(module).profile(module, func)
    }

    /// Returns the priority of the compilation of a function of `module`, which this is of: the lowest comes first.
    pub fn priority(&self, module: &Bytecode, func: u32) -> u32 {
        self.priorities.get_or_init(|| priorities(module)).get(&func).copied().unwrap_or(u32::MAX)
    }

    fn counts(&self, module: &Bytecode) -> &Hints {
        self.counts.get_or_init(|| Hints::read(module, hash))
    }
}

/// The hash of profiles.
pub(crate) fn hash(bytes: &[u8]) -> ModuleHash {
    *blake3::hash(bytes).as_bytes()
}
