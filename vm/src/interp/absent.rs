//! Replaces the handlers in assembly on other processors.

use super::state::State;
use crate::records::config::LoopKind;

/// There are no handlers.
#[derive(Debug)]
pub(super) enum Table {}

/// Returns `None`: there are no handlers.
pub(super) fn table_for(_kind: LoopKind) -> Option<&'static Table> {
    None
}

/// Never called, because there is no table.
///
/// # Safety
/// None.
pub(super) unsafe fn advance(_state: State, table: &Table, _limit: *mut u64) -> State {
    match *table {}
}
