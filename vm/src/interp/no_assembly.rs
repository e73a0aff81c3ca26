//! The interface of the handlers in assembly, for processors without them.

use super::state::State;
use crate::records::config::LoopKind;

/// There are no handlers.
#[derive(Clone, Copy, Debug)]
pub(super) enum TableRef {}

/// Returns `None`: there are no handlers.
pub(super) fn table_for(_kind: LoopKind) -> Option<TableRef> {
    None
}

/// Returns `None`: there are no handlers.
pub(super) fn wide_table_for(_kind: LoopKind) -> Option<TableRef> {
    None
}

/// Never called, because there is no table.
///
/// # Safety
/// None.
pub(super) unsafe fn advance<const WORDS: usize>(_state: State, table: TableRef, _limit: *mut u64) -> State {
    match table {}
}
