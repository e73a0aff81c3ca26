//! Tables of handlers. A handler jumps to the next instruction's handler through one.

#[cfg(doc)]
use crate::interp::code;
use std::mem::offset_of;

/// Code that is jumped to, not called, with registers as the head of [`super`] says.
pub(super) type Handler = unsafe extern "sysv64" fn();

/// The handlers by opcode.
#[repr(C)]
#[derive(Debug)]
pub(in crate::interp) struct Table {
    pub(super) opcodes: [Handler; 256],
    /// At the displacement of `leave!`.
    pub(super) exit: Handler,
    /// By the opcode after [`code::Prefix`], at the displacement that the handler of the prefix names.
    pub(super) prefixed: [Handler; PREFIXED],
    /// For an instruction whose operands are a pair, by opcode, at the displacement of `dispatch_pair!`.
    pub(super) pairs: [Handler; 256],
}

/// Number of prefixed opcodes that have handlers: the saturating conversions.
pub(super) const PREFIXED: usize = 8;

const _: () = assert!(offset_of!(Table, exit) == 2048 && offset_of!(Table, prefixed) == 2056);
const _: () = assert!(offset_of!(Table, pairs) == 2120);

/// The handlers with the code of each.
pub(in crate::interp) type Handlers = &'static [(u16, Handler)];

/// `table` with the handlers of `lists` added, to its half for pairs if `pairs` holds.
pub(super) const fn with(mut table: Table, lists: &[Handlers], pairs: bool) -> Table {
    let mut i = 0;
    while i < lists.len() {
        let mut j = 0;
        while j < lists[i].len() {
            let (code, handler) = lists[i][j];
            match code {
                ..0x100 if pairs => table.pairs[code as usize] = handler,
                ..0x100 => table.opcodes[code as usize] = handler,
                _ => table.prefixed[code as usize - 0x100] = handler,
            }
            j += 1;
        }
        i += 1;
    }
    table
}
