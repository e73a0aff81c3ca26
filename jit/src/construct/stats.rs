//! What construction counts.

use weir_contract::stats::Counters;

/// What construction counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BuildStats {
    /// What is reported of every compilation.
    pub counters: Counters,
    /// How often a phi was examined for triviality.
    pub checks: u64,
    /// Operands that were compared for that.
    pub operands_checked: u64,
    /// Values, constants and phis included.
    pub values: u32,
    /// Steps taken: instructions, their operands, and [`Braun::work`](super::braun::Braun::work).
    pub work: u64,
}
