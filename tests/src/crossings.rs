//! Sums of the crossings between engines that the engines of a run counted.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use weir::Stats;

static SUMS: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

/// Adds what an engine counted between two points in time.
pub fn add(before: &Stats, after: &Stats) {
    let mut sums = SUMS.lock().unwrap_or_else(PoisonError::into_inner);
    for (name, count) in &after.crossings {
        let earlier = before.crossings.iter().find(|(other, _)| other == name).map_or(0, |(_, count)| *count);
        *sums.entry(name.clone()).or_default() += count - earlier;
    }
}

/// The crossings that occurred, by name.
pub fn sums() -> Vec<(String, u64)> {
    let sums = SUMS.lock().unwrap_or_else(PoisonError::into_inner);
    sums.iter().filter(|(_, count)| **count > 0).map(|(name, count)| (name.clone(), *count)).collect()
}
