//! The record of published code: the function that it belongs to, and the meaning of its traps and calls.

use weir_contract::Entry;
use weir_contract::code::{Backend, FrameLayout, Inlining, Landing, TrapEntry};

/// Tag of regions that hold stubs.
pub(super) const STUB: usize = 1;

/// Identifies a module to the users of this folder; [`Site::module`] returns it.
pub(crate) type ModuleKey = usize;

/// A place in compiled code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Site {
    pub module: ModuleKey,
    pub func: u32,
    pub entry: Entry,
    pub backend: Backend,
    /// Offset in the module of the instruction: the one that trapped, or the call.
    pub pc: u32,
}

/// A frame of compiled code. With inlined calls it is that of several functions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NativeFrame {
    /// The frame pointer.
    pub fp: usize,
    /// The address of the code.
    pub code: usize,
    /// The offset in the code of the return address of its call.
    pub call: u32,
    /// The landings of the code. They live as long as it.
    pub landings: *const [Landing],
    /// The layout of the frame.
    pub layout: FrameLayout,
}

/// The tables of a published function. The tag of the code's region is the address of this record.
#[derive(Debug)]
pub(super) struct CodeInfo {
    pub(super) module: ModuleKey,
    pub(super) func: u32,
    pub(super) entry: Entry,
    pub(super) backend: Backend,
    /// Bytes of the code's region.
    pub(super) len: usize,
    /// Bytes of the region before the code: those of a counting entry, or none.
    pub(super) before: usize,
    /// The address of the counting entry, or 0.
    pub(super) counting_entry: usize,
    /// The address of the function's cell.
    pub(super) cell: usize,
    /// Ascending by offset.
    pub(super) traps: Box<[TrapEntry]>,
    /// Return offset and pc of calls, ascending.
    pub(super) calls: Box<[(u32, u32)]>,
    /// Loop and offset of the entries at loops, ascending.
    pub(super) headers: Box<[(u32, u32)]>,
    /// Ascending.
    pub(super) landings: Box<[Landing]>,
    pub(super) frame: FrameLayout,
    pub(super) inlining: Inlining,
}

impl CodeInfo {
    /// Returns the index of the trap site at exactly this offset.
    pub(super) fn trap_at(&self, offset: usize) -> Option<usize> {
        self.traps.binary_search_by_key(&offset, |trap| trap.offset as usize).ok()
    }

    /// Returns the index of the call that returns to exactly this offset.
    pub(super) fn call_at(&self, offset: usize) -> Option<usize> {
        self.calls.binary_search_by_key(&offset, |&(offset, _)| offset as usize).ok()
    }

    /// Returns the functions that are active at an entry of either table with this pc, innermost first. `link` is that
    /// of [`Inlining::expand`].
    pub(super) fn sites(&self, pc: u32, link: Option<u32>) -> impl Iterator<Item = Site> + '_ {
        let site = |(func, pc)| Site { module: self.module, func, entry: self.entry, backend: self.backend, pc };
        self.inlining.expand(self.func, pc, link).map(site)
    }
}
