//! The interface of the handlers in assembly, for processors without them.

use super::state::State;
use crate::records::config::LoopKind;
use weir_contract::StackCtx;

/// There are no handlers.
#[derive(Clone, Copy, Debug)]
pub(super) enum TableRef {}

/// The reason why the assembly leaves: it never does.
#[derive(Clone, Copy, Debug)]
pub(super) enum Left {
    Instruction,
    Trapped,
    Segment,
}

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
pub(super) unsafe fn advance<const WORDS: usize>(_state: State, table: TableRef, _stack: *mut StackCtx) -> (State, Left) {
    match table {}
}
