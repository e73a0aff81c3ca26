//! The compilation hints of a module. They are read when something is first compiled, on the thread that compiles it.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use weir_bytecode::Module as Bytecode;
use weir_bytecode::hints::HintKind;
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
        let read = || if has_room(module) { priorities(module) } else { BTreeMap::new() };
        self.priorities.get_or_init(read).get(&func).copied().unwrap_or(u32::MAX)
    }

    fn counts(&self, module: &Bytecode) -> &Hints {
        self.counts.get_or_init(|| if has_room(module) { Hints::read(module, hash) } else { Hints::default() })
    }
}

/// Charges the hints of `module`; without room it is as if it had none.
fn has_room(module: &Bytecode) -> bool {
    /// Bytes for each of their bytes, at most: a hint has three, and is an entry of a map.
    const PER_BYTE: usize = 32;
    let contents = HintKind::ALL.iter().filter_map(|&kind| module.hint_sections.contents(kind, &module.bytes));
    module.account.charge(contents.map(|contents| contents.len() * PER_BYTE).sum()).is_ok()
}

/// The hash of profiles.
pub(crate) fn hash(bytes: &[u8]) -> ModuleHash {
    *blake3::hash(bytes).as_bytes()
}
