//! Frames as the interpreter lays them out. A frame on the value stack is
//!
//! ```text
//! fp → local 0 … local n-1 | Header | operand 0 … operand max-1
//! ```
//!
//! as [`weir_contract`] says. A slot is one *word* of 8 bytes, or two in a *wide* function, where values may be
//! v128; a number or a reference is then in the first of the two, and the other is unspecified. Where a function
//! calls one of the other width, arguments and results are laid out anew in their place, so that a frame always
//! begins where its arguments were and its results belong. The [`Header`] holds what returning needs: the state of
//! the *caller*, because with the running function known, its frame's header is found at once, and from there the
//! next frame outward.

use crate::records::backtrace::MAX_FRAMES;
use crate::records::body::Body;
use crate::records::failure::Failure;
use crate::records::instance::{InstanceRecord, instance_of};
use crate::records::scope::Scope;
use crate::records::store::store_of;
use std::ptr;
use weir_bytecode::Trap;
use weir_bytecode::instrs::Instrs;
use weir_bytecode::module::FuncBody;
use weir_contract::{FRAME_HEADER, StackCtx};

/// What lies between a frame's locals and its operands: the caller, as it is to be found again.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Header {
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
pub(super) unsafe fn header(fp: *mut u64, body: *const Body, words: usize) -> *mut Header {
    // SAFETY: the header lies behind the locals.
    unsafe { fp.add((*body).locals as usize * words).cast() }
}

/// Whether a frame of `body` at `fp`, with slots of so many words, would end beyond the value stack. It always does if the
/// function's slots have another width.
///
/// # Safety
/// `body` and `stack` are live, `fp` points into the value stack.
#[inline(always)]
pub(super) unsafe fn overflows(stack: *const StackCtx, fp: *mut u64, body: *const Body, words: usize) -> bool {
    // SAFETY: the caller's promise. Compared as numbers, because the frame may well end beyond the allocation.
    unsafe { fp as usize + (*body).sizes[words - 1] as usize * size_of::<u64>() > (*stack).value_limit as usize }
}

/// Makes the frame of `body`, whose slots have `words` words and whose parameters are at `fp`; the address of its first operand.
///
/// # Safety
/// It does not overflow the value stack.
#[inline(always)]
pub(super) unsafe fn push(fp: *mut u64, body: *const Body, caller: Header, words: usize) -> *mut u64 {
    // SAFETY: locals and header are within the frame.
    unsafe {
        let mut local = fp.add((*body).params as usize * words);
        let header = header(fp, body, words);
        while local < header.cast() {
            *local = 0;
            local = local.add(1);
        }
        *header = caller;
        header.add(1).cast()
    }
}

/// The first word behind the frame of `body`, whose slots have `words` words, at `fp`.
///
/// # Safety
/// There is such a frame.
#[inline(always)]
pub(super) unsafe fn end(fp: *mut u64, body: *const Body, words: usize) -> *mut u64 {
    // SAFETY: the end of the frame.
    unsafe { fp.add((*body).sizes[words - 1] as usize) }
}

/// Copies a slot of so many words.
///
/// # Safety
/// Both have as many.
#[inline(always)]
pub(super) unsafe fn copy_slot(from: *const u64, to: *mut u64, words: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match words {
            1 => *to = *from,
            _ => *to.cast::<[u64; 2]>() = *from.cast::<[u64; 2]>(),
        }
    }
}

/// Gives the `count` slots at `at`, of `from` words each, `to` words each.
///
/// # Safety
/// The value stack has room for them; values that are wider than `to` are not among them.
#[inline(always)]
pub(super) unsafe fn relayout(at: *mut u64, count: usize, from: usize, to: usize) {
    // SAFETY: the caller's promise. Each word is read before anything is written to its place.
    unsafe {
        match (from, to) {
            (1, 2) => (0..count).rev().for_each(|i| *at.add(2 * i) = *at.add(i)),
            (2, 1) => (0..count).for_each(|i| *at.add(i) = *at.add(2 * i)),
            _ => (),
        }
    }
}

/// Moves the `count` words below `sp` to `to`, which is lower; the address behind them there.
///
/// # Safety
/// Both places are within the value stack.
#[inline(always)]
pub(super) unsafe fn move_down(sp: *mut u64, count: usize, to: *mut u64) -> *mut u64 {
    // SAFETY: the caller's promise.
    unsafe {
        match count {
            0 => (),
            1 => *to = *sp.sub(1),
            _ => ptr::copy(sp.sub(count), to, count),
        }
        to.add(count)
    }
}

/// Adds the frames of an activation to `failure`, the innermost being that of `body` at `fp`, stopped at `pc`.
///
/// # Safety
/// There is such a frame, in the instance of `scope`.
#[cold]
pub(super) unsafe fn describe(failure: &mut Failure, scope: *const Scope, body: *const Body, fp: *mut u64, pc: *const u8) {
    // SAFETY: the caller's promise.
    unsafe {
        let module = &instance_of((*scope).ctx).module;
        let pc = pc.offset_from_unsigned(module.bytecode().bytes.as_ptr()) as u32;
        failure.push_frame(module, (*body).func, pc);
        describe_from(failure, *header(fp, body, (*body).words()));
    }
}

/// Adds the frames of an activation from the one that `caller` tells of outward.
///
/// # Safety
/// It is the header of a frame of the activation.
#[cold]
pub(super) unsafe fn describe_from(failure: &mut Failure, mut caller: Header) {
    for depth in 0.. {
        if caller.is_base() {
            return;
        }
        // SAFETY: the frames down to the base are intact, and their instances and functions live.
        unsafe {
            let instance = instance_of((*caller.scope).ctx);
            // Beyond what is kept, only the number of frames matters.
            let kept = depth < MAX_FRAMES;
            let pc = if kept { call_before(instance, &*(*caller.body).source, caller.pc) } else { caller.pc };
            failure.push_frame(&instance.module, (*caller.body).func, pc);
            caller = *header(caller.fp(), caller.body, (*caller.body).words());
        }
    }
}

/// The pc of the call that returns to `pc`. Decodes the body, because code cannot be read backwards.
fn call_before(instance: &InstanceRecord, source: &FuncBody, pc: u32) -> u32 {
    Instrs::new(instance.module.bytecode(), source.entry, pc).last().map_or(pc, |call| call.pc)
}

/// Notes that the activation ends with `trap` in the frame of `body` at `fp`, at `pc`.
///
/// # Safety
/// As for [`describe`]; the store is live.
#[cold]
pub(super) unsafe fn trapped(trap: Trap, scope: *const Scope, body: *const Body, fp: *mut u64, pc: *const u8) {
    // SAFETY: the caller's promise; nobody else refers to the store's failure.
    unsafe {
        let instance = instance_of((*scope).ctx);
        let at = pc.offset_from_unsigned((*scope).bytes) as u32;
        let mut failure = Failure::trap_at(trap, instance, at);
        describe(&mut failure, scope, body, fp, pc);
        (*store_of((*scope).ctx)).failure = Some(failure);
    }
}
