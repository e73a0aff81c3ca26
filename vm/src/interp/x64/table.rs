//! Tables of handlers, through which a handler jumps to that of the next instruction.

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
    /// At the displacement in `leave!`.
    pub(super) exit: Handler,
    /// By the opcode after [`code::Prefix`], at the displacement in the handler of the prefix.
    pub(super) prefixed: [Handler; PREFIXED],
    /// By opcode, for operands that are a pair, at the displacement in `dispatch_pair!`.
    pub(super) pairs: [Handler; 256],
}

/// Number of prefixed opcodes that have handlers: the saturating conversions.
pub(super) const PREFIXED: usize = 8;

const _: () = assert!(offset_of!(Table, exit) == 2048 && offset_of!(Table, prefixed) == 2056);
const _: () = assert!(offset_of!(Table, pairs) == 2120);

/// Handlers, each with its code.
pub(in crate::interp) type Handlers = &'static [(u16, Handler)];

/// Adds the handlers of `lists` to `table`, or with `pairs` to its half for pairs.
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
