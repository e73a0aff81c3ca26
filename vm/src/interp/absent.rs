//! What stands for the handlers in assembly where there are none.

use super::state::State;
use crate::Config;

/// There is none.
#[derive(Debug)]
pub(super) enum Table {}

/// There is none.
pub(super) fn table_for(_config: &Config) -> Option<&'static Table> {
    None
}

/// Never called, for want of a table.
///
/// # Safety
/// None.
pub(super) unsafe fn advance(_state: State, table: &Table, _limit: *mut u64) -> State {
    match *table {}
}
