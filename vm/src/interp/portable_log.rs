//! For tests: the instructions that the portable loop executed because the handlers in assembly left at them.

use super::{code, decode};
use std::cell::RefCell;
use std::collections::BTreeSet;
use weir_bytecode::{Opcode, fusion};

thread_local! {
    static EXECUTED: RefCell<BTreeSet<Opcode>> = const { RefCell::new(BTreeSet::new()) };
}

/// Records the instruction at `pc`.
///
/// # Safety
/// Validated code.
pub(super) unsafe fn record(pc: *const u8) {
    // SAFETY: the caller's promise: after a prefix comes the rest of the opcode.
    let code = unsafe {
        match u16::from(fusion::original(*pc)) {
            code::Prefix => 0x100 + decode::u32(pc.add(1)).0 as u16,
            code::VectorPrefix => 0x200 + decode::u32(pc.add(1)).0 as u16,
            code => code,
        }
    };
    let opcode = Opcode::from_code(code).expect("validated code has known opcodes");
    EXECUTED.with_borrow_mut(|executed| executed.insert(opcode));
}

/// Returns the instructions that this thread has recorded since the last call.
pub(super) fn take() -> BTreeSet<Opcode> {
    EXECUTED.take()
}
