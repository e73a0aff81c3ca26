//! The header of an interpreter's frame on the value stack. It links the frame to its caller's.

use crate::records::body::Body;
use crate::records::scope::Scope;
use std::ptr;
use weir_contract::FRAME_HEADER;

/// What lies between a frame's locals and its operands: the caller, as it is to be found again.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Header {
    /// The caller's frame; null if Rust or a stub called. Tagged with [`Header::OTHER_WIDTH`] if the caller's slots are
    /// not as wide as the function's own.
    fp: *mut u64,
    /// Where the caller continues, in its module's bytes.
    pub pc: u32,
    /// Its next branch entry there.
    pub stp: u32,
    /// Its function.
    pub body: *const Body,
    /// Its instance.
    pub scope: *const Scope,
}

const _: () = assert!(size_of::<Header>() == FRAME_HEADER as usize * size_of::<u64>());

impl Header {
    /// That of an activation's base frame.
    pub const BASE: Header = Header { fp: ptr::null_mut(), pc: 0, stp: 0, body: ptr::null(), scope: ptr::null() };

    /// A bit that no address has.
    const OTHER_WIDTH: usize = 1 << (usize::BITS - 1);

    /// That of a frame whose caller, of the same width, is as the other arguments say.
    #[inline(always)]
    pub fn new(fp: *mut u64, pc: u32, stp: u32, body: *const Body, scope: *const Scope) -> Header {
        Header { fp, pc, stp, body, scope }
    }

    /// The caller's frame.
    #[inline(always)]
    pub fn fp(&self) -> *mut u64 {
        self.fp.map_addr(|address| address & !Header::OTHER_WIDTH)
    }

    /// Whether the frame is the base of its activation.
    pub fn is_base(&self) -> bool {
        self.fp.is_null()
    }

    /// Whether returning leaves the loop, because the frame is the base or its caller has slots of another width.
    #[inline(always)]
    pub fn leaves_loop(&self) -> bool {
        self.fp as isize <= 0
    }

    /// Words of the caller's slots, those of the function's own being `words`.
    pub fn caller_words(&self, words: usize) -> usize {
        if self.fp.addr() & Header::OTHER_WIDTH == 0 { words } else { 3 - words }
    }

    /// The header of a frame in the place of this one, whose slots have the other width.
    pub fn with_other_width(self) -> Header {
        match self.is_base() {
            true => self,
            false => Header { fp: self.fp.map_addr(|address| address ^ Header::OTHER_WIDTH), ..self },
        }
    }
}

/// The header of the frame of `body`, whose slots have `words` words, at `fp`.
///
/// # Safety
/// There is such a frame.
#[inline(always)]
pub(crate) unsafe fn header(fp: *mut u64, body: *const Body, words: usize) -> *mut Header {
    // SAFETY: the header lies behind the locals.
    unsafe { fp.add((*body).locals as usize * words).cast() }
}
