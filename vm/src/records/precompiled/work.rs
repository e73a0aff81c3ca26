//! What earlier processes executed of functions that they did not optimise: later ones optimise these while they have time.

use weir_bytecode::stored;
use weir_contract::profile::Profile;

/// The work of a function without optimised code.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Work {
    /// The function.
    pub func: u32,
    /// About how many bytes of it a process executed.
    pub executed: u64,
    /// The counts of all processes.
    pub profile: Profile,
}

stored! {
    Work { func, executed, profile }
}

impl Work {
    /// Adds the work of another process.
    pub fn merge(&mut self, other: &Work) {
        self.executed = self.executed.max(other.executed);
        self.profile.merge(&other.profile);
    }
}
