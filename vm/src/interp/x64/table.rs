//! Tables of handlers, through which a handler jumps to that of the next instruction.

#[cfg(doc)]
use crate::interp::code;
use std::mem::offset_of;
use std::ptr::NonNull;
use weir_bytecode::Opcode;

/// Code that is jumped to, not called, with registers as the head of [`super`] says.
pub(super) type Handler = unsafe extern "sysv64" fn();

/// The handlers by opcode, and routines that handlers or stubs jump to. A table for slots of one word has no handlers for vectors.
#[repr(C)]
#[derive(Clone, Debug)]
pub(super) struct Table<const VECTORS: usize = 0> {
    pub opcodes: [Handler; 256],
    /// At the displacement in `leave!`.
    pub exit: Handler,
    /// By the opcode after [`code::Prefix`], at the displacement in the handler of the prefix.
    pub prefixed: [Handler; PREFIXED],
    /// By opcode, for operands that are a pair, at the displacement in `dispatch_pair!`.
    pub pairs: [Handler; 256],
    /// The continuation of a call of native code, at the displacement in `enter!`: see [`super::crossings`].
    pub native: Handler,
    /// The return from a base frame, at the displacement in `ret!`.
    pub finish: Handler,
    /// The next four fields are for immediate activations. Their beginning.
    pub begin: Handler,
    /// The address of the function that runs them outside of the assembly.
    pub proceed: usize,
    /// The addresses of the functions that count them.
    pub begun: usize,
    pub returned: usize,
    /// 0.
    pub zero: usize,
    /// By the opcode after [`code::VectorPrefix`], at the displacement in the handler of the prefix.
    pub vectors: [Handler; VECTORS],
}

/// Number of prefixed opcodes that have handlers: the saturating conversions.
pub(super) const PREFIXED: usize = 8;

/// Number of codes of vector instructions, from 0x200 on.
pub(super) const VECTORS: usize = {
    let (mut end, mut i) = (0x200, 0);
    while i < Opcode::ALL.len() {
        let code = Opcode::ALL[i] as usize;
        end = if code < end { end } else { code + 1 };
        i += 1;
    }
    end - 0x200
};

const _: () = assert!(offset_of!(Table, exit) == 2048 && offset_of!(Table, prefixed) == 2056);
const _: () = assert!(offset_of!(Table, pairs) == 2120);
const _: () = assert!(offset_of!(Table, native) == 4168 && offset_of!(Table, finish) == 4176);

/// A table with or without handlers for vectors.
#[derive(Clone, Copy, Debug)]
pub(in crate::interp) struct TableRef(NonNull<()>);

impl TableRef {
    /// Returns a reference to `table`.
    pub(super) fn new<const VECTORS: usize>(table: &'static Table<VECTORS>) -> TableRef {
        TableRef(NonNull::from(table).cast())
    }

    /// Returns the table's address.
    pub(super) fn address(self) -> *const () {
        self.0.as_ptr()
    }
}

/// Handlers, each with its code.
pub(in crate::interp) type Handlers = &'static [(u16, Handler)];

/// Adds the handlers of `lists` to `table`, or with `pairs` to its half for pairs.
pub(super) const fn with<const VECTORS: usize>(mut table: Table<VECTORS>, lists: &[Handlers], pairs: bool) -> Table<VECTORS> {
    let mut i = 0;
    while i < lists.len() {
        let mut j = 0;
        while j < lists[i].len() {
            let (code, handler) = lists[i][j];
            match code {
                0..0x100 if pairs => table.pairs[code as usize] = handler,
                0..0x100 => table.opcodes[code as usize] = handler,
                0x100..0x200 => table.prefixed[code as usize - 0x100] = handler,
                _ => table.vectors[code as usize - 0x200] = handler,
            }
            j += 1;
        }
        i += 1;
    }
    table
}
