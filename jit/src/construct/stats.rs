//! Counters of construction.

use weir_contract::stats::Counters;

/// Counters of construction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BuildStats {
    /// Counters that every compilation reports.
    pub counters: Counters,
    /// The number of examinations of phis for triviality.
    pub checks: u64,
    /// The number of operands compared in these examinations.
    pub operands_checked: u64,
    /// The number of values, including constants and phis.
    pub values: u32,
    /// The number of steps: instructions, their operands, and [`Braun::work`](super::braun::Braun::work).
    pub work: u64,
}
