//! Counters of construction.

use weir_contract::stats::Counters;

/// Counters of construction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BuildStats {
    /// Counters that every compilation reports.
    pub counters: Counters,
    /// How often a phi was examined for triviality.
    pub checks: u64,
    /// Number of operands that were compared for that.
    pub operands_checked: u64,
    /// Number of values, constants and phis included.
    pub values: u32,
    /// Steps taken: instructions, their operands, and [`Braun::work`](super::braun::Braun::work).
    pub work: u64,
}
