//! The header of an interpreter's frame on the value stack, which links the frame to its caller's.

use crate::records::body::Body;
use crate::records::scope::Scope;
use std::ptr;
use weir_contract::FRAME_HEADER;

/// The state of the caller that a return restores. It is between a frame's locals and its operands.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Header {
    /// The caller's frame; null if Rust or a stub called. Tagged with [`Header::OTHER_WIDTH`] if the caller's slots
    /// have another width than the function's own.
    fp: *mut u64,
    /// The pc at which the caller continues: offset in its module's bytes.
    pub pc: u32,
    /// The caller's next branch entry there.
    pub stp: u32,
    /// The caller's function.
    pub body: *const Body,
    /// The caller's instance.
    pub scope: *const Scope,
}

const _: () = assert!(size_of::<Header>() == FRAME_HEADER as usize * size_of::<u64>());

impl Header {
    /// The header of an activation's base frame.
    pub const BASE: Header = Header { fp: ptr::null_mut(), pc: 0, stp: 0, body: ptr::null(), scope: ptr::null() };

    /// A bit that is zero in every address.
    const OTHER_WIDTH: usize = 1 << (usize::BITS - 1);

    /// Creates the header of a frame whose caller has slots of the same width.
    #[inline(always)]
    pub fn new(fp: *mut u64, pc: u32, stp: u32, body: *const Body, scope: *const Scope) -> Header {
        Header { fp, pc, stp, body, scope }
    }

    /// Returns the caller's frame.
    #[inline(always)]
    pub fn fp(&self) -> *mut u64 {
        self.fp.map_addr(|address| address & !Header::OTHER_WIDTH)
    }

    /// Returns whether the frame is the base of its activation.
    pub fn is_base(&self) -> bool {
        self.fp.is_null()
    }

    /// Returns whether returning leaves the loop, because the frame is the base or its caller has slots of another
    /// width.
    #[inline(always)]
    pub fn leaves_loop(&self) -> bool {
        self.fp as isize <= 0
    }

    /// Returns the words of the caller's slots, given those of the function's own.
    pub fn caller_words(&self, words: usize) -> usize {
        if self.fp.addr() & Header::OTHER_WIDTH == 0 { words } else { 3 - words }
    }

    /// Returns this header for a frame in the same place whose slots have the other width.
    pub fn with_other_width(self) -> Header {
        match self.is_base() {
            true => self,
            false => Header { fp: self.fp.map_addr(|address| address ^ Header::OTHER_WIDTH), ..self },
        }
    }
}

/// Returns the header of the frame of `body` at `fp`, whose slots have `words` words.
///
/// # Safety
/// There is such a frame.
#[inline(always)]
pub(crate) unsafe fn header(fp: *mut u64, body: *const Body, words: usize) -> *mut Header {
    // SAFETY: the header is after the locals.
    unsafe { fp.add((*body).locals as usize * words).cast() }
}
