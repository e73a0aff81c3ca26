//! The compilation hints of a module. They are read when something is first compiled, on the thread that compiles it.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use weir_bytecode::Module as Bytecode;
use weir_bytecode::hints::HintKind;
use weir_contract::hints::{Hints, priorities};
use weir_contract::profile::Profile;
use weir_contract::profile_text::{ModuleHash, ModuleProfile};

/// The hints of a module.
#[derive(Debug, Default)]
pub(crate) struct ModuleHints {
    counts: OnceLock<Hints>,
    /// They are read apart from the others, because the thread that requests a compilation needs them.
    priorities: OnceLock<BTreeMap<u32, u32>>,
}

impl ModuleHints {
    /// Returns the profile in `module`, which this is of, if it has one.
    pub fn exact(&self, module: &Bytecode) -> Option<&ModuleProfile> {
        self.counts(module).exact()
    }

    /// Returns the other hints of `module`, which this is of, for a function, as counts.
    pub fn profile(&self, module: &Bytecode, func: u32) -> Option<Profile> {
        self.counts(module).profile(module, func)
    }

    /// Returns the priority of the compilation of a function of `module`, which this is of: the lowest comes first.
    pub fn priority(&self, module: &Bytecode, func: u32) -> u32 {
        let read = || read(module, &[HintKind::Priority], || priorities(module), BTreeMap::is_empty);
        self.priorities.get_or_init(read).get(&func).copied().unwrap_or(u32::MAX)
    }

    fn counts(&self, module: &Bytecode) -> &Hints {
        const KINDS: [HintKind; 4] = [HintKind::Branch, HintKind::Frequency, HintKind::Targets, HintKind::Profile];
        self.counts.get_or_init(|| read(module, &KINDS, || Hints::read(module, hash), Hints::is_empty))
    }
}

/// Returns what `read` makes of the hints of these kinds in `module`, which is charged unless `is_empty`, as of malformed ones; without room it
/// is as if there were none.
fn read<T: Default>(module: &Bytecode, kinds: &[HintKind], read: impl FnOnce() -> T, is_empty: impl Fn(&T) -> bool) -> T {
    /// Bytes for each of their bytes, at most: a hint has three, and is an entry of a map.
    const PER_BYTE: usize = 32;
    let contents = kinds.iter().filter_map(|&kind| module.hint_sections.contents(kind, &module.bytes));
    let bytes = contents.map(|contents| contents.len() * PER_BYTE).sum();
    let Ok(charge) = module.account.charge_for_now(bytes) else { return T::default() };
    let hints = read();
    if !is_empty(&hints) {
        charge.keep();
    }
    hints
}

/// The hash of profiles.
pub(crate) fn hash(bytes: &[u8]) -> ModuleHash {
    *blake3::hash(bytes).as_bytes()
}
