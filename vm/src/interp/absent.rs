//! Replaces the handlers in assembly on processors that have none.

use super::state::State;
use crate::records::config::LoopKind;

/// There is none.
#[derive(Debug)]
pub(super) enum Table {}

/// There is none.
pub(super) fn table_for(_kind: LoopKind) -> Option<&'static Table> {
    None
}

/// Never called, for want of a table.
///
/// # Safety
/// None.
pub(super) unsafe fn advance(_state: State, table: &Table, _limit: *mut u64) -> State {
    match *table {}
}
