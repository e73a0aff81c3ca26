//! The record of published code: the function that it belongs to, and the meaning of its traps and calls.

use super::map::Regions;
use std::sync::Arc;
use weir_bytecode::account::{ALLOCATION, Account, flat};
use weir_contract::code::{Backend, FrameLayout, Inlining, Landing};
use weir_contract::tables::Tables;
use weir_contract::{Entry, TrapSite};

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
    /// Whether several functions are active at the call.
    pub is_inlined: bool,
    /// The layout of the frame.
    pub layout: FrameLayout,
    /// The tables of the code. They live as long as it.
    pub tables: *const Tables,
}

/// The tables of a published function. The tag of the code's region is the address of this record. What a throw reads of each frame
/// that it passes comes first.
#[derive(Debug)]
#[repr(C)]
pub(super) struct CodeInfo {
    /// Bytes of the region before the code: those of a counting entry, or none.
    pub(super) before: usize,
    pub(super) frame: FrameLayout,
    /// Ascending.
    pub(super) landings: Box<[Landing]>,
    pub(super) inlining: Inlining,
    pub(super) module: ModuleKey,
    pub(super) func: u32,
    pub(super) entry: Entry,
    pub(super) backend: Backend,
    /// Bytes of the code's region.
    pub(super) len: usize,
    /// The address of the counting entry, or 0.
    pub(super) counting_entry: usize,
    /// The address of the function's cell.
    pub(super) cell: usize,
    pub(super) tables: Tables,
    /// The charge of the tables of all code that was installed with it, which are one allocation.
    pub(super) batch: Arc<Batch>,
}

/// The tables of code that was installed together, which stay until all of it is gone.
#[derive(Debug)]
pub(super) struct Batch {
    /// Their bytes, which are charged.
    pub bytes: usize,
    pub account: Arc<Account>,
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.account.give_back(self.bytes);
    }
}

impl CodeInfo {
    /// Returns the bytes that the record takes, with what the tier keeps for the code, without the tables.
    pub(super) fn size(&self) -> usize {
        /// An entry of the map of installed code, one of the module's entries, and one in the order of eviction.
        const ENTRIES: usize = 256;
        let Inlining { traps, calls, links } = &self.inlining;
        let inlining = flat(traps) + flat(calls) + flat(links);
        size_of::<CodeInfo>() + ALLOCATION + flat(&self.landings) + inlining + ENTRIES
    }

    /// Returns the trap at exactly this offset, and the functions that are active there, innermost first.
    pub(super) fn trap_at(&self, offset: usize) -> Option<(TrapSite, impl Iterator<Item = Site> + '_)> {
        let index = self.tables.trap_at(offset)?;
        let trap = self.tables.traps().get(index)?;
        Some((trap.site, self.sites(trap.pc, self.inlining.of_trap(index))))
    }

    /// Returns the functions that are active at an entry of either table with this pc, innermost first. `link` is that
    /// of [`Inlining::expand`].
    fn sites(&self, pc: u32, link: Option<u32>) -> impl Iterator<Item = Site> + '_ {
        let site = |(func, pc)| Site { module: self.module, func, entry: self.entry, backend: self.backend, pc };
        self.inlining.expand(self.func, pc, link).map(site)
    }
}

/// The tables by which calls are found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calls<'a>(pub(super) Regions<'a>);

impl<'a> Calls<'a> {
    /// Returns the call that returns to this address; `None` if that is not in a function's code.
    ///
    /// # Safety
    /// Code there is not freed while the result is used.
    #[inline(always)]
    pub unsafe fn at(&self, return_address: usize) -> Option<CallSite<'a>> {
        let (start, tag) = self.0.at(return_address).filter(|&(_, tag)| tag != STUB)?;
        // SAFETY: the tag of a function's region is the address of its record, which lives as long as the region.
        let info = unsafe { &*(tag as *const CodeInfo) };
        let code = start + info.before;
        Some(CallSite { info, code, offset: return_address.wrapping_sub(code) })
    }
}

/// A call of compiled code, by its return address. Of the tables only what is asked for is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSite<'c> {
    pub(super) info: &'c CodeInfo,
    /// The address of the code.
    pub(super) code: usize,
    /// The offset in it of the return address.
    pub(super) offset: usize,
}

impl<'c> CallSite<'c> {
    /// Whether exceptions may continue somewhere in the code.
    #[inline]
    pub fn has_landings(&self) -> bool {
        !self.info.landings.is_empty()
    }

    /// Whether the call is in code of an inlined function, or may be.
    #[inline]
    fn has_inlining(&self) -> bool {
        !self.info.inlining.links.is_empty()
    }

    /// The layout of the frame.
    #[inline]
    pub fn layout(&self) -> &'c FrameLayout {
        &self.info.frame
    }

    /// The number of functions that are active at the call.
    #[inline]
    pub fn depth(&self) -> usize {
        if self.has_inlining() { self.sites().count() } else { 1 }
    }

    /// The functions that are active at the call, innermost first.
    pub fn sites(&self) -> impl Iterator<Item = Site> + '_ {
        let CallSite { info, offset, .. } = *self;
        let at = |index: usize| Some(info.sites(info.tables.calls().get(index)?.1, info.inlining.of_call(index)));
        info.tables.call_at(offset).and_then(at).into_iter().flatten()
    }

    /// The frame with this frame pointer that makes the call.
    pub fn frame(&self, fp: usize) -> NativeFrame {
        let CallSite { info, code, offset } = *self;
        NativeFrame {
            fp,
            code,
            call: offset as u32,
            landings: &raw const *info.landings,
            is_inlined: self.depth() > 1,
            layout: info.frame,
            tables: &raw const info.tables,
        }
    }
}
