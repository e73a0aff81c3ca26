//! The interpreter's frames. The layout of a frame on the value stack is
//!
//! ```text
//! fp → local 0 … local n-1 | Header | operand 0 … operand max-1
//! ```
//!
//! as [`weir_contract`] defines it. A slot is one *word* of 8 bytes. In a *wide* function, which may have v128 values, it is two words;
//! a number or a reference is then in the first word, and the second is unspecified. When a function calls one of the other width,
//! its arguments are converted in place to the callee's slot width, and the results back. So a frame always begins at its arguments,
//! and its results are stored at the same address. The [`Header`] holds the state of the *caller*, which a return restores. The
//! running function gives the offset of its frame's header, and that header gives the next outer frame.

use crate::records::body::Body;
pub(super) use crate::records::header::{Header, header};
use crate::records::stack::{MAX_VALUE_WORDS, is_on_stack};
use std::ptr;
use weir_contract::{FRAME_HEADER, StackCtx};

/// Whether a frame of `body` at `fp`, with slots of `words` words, would end beyond the value stack. Always true if the function's
/// slots have another width.
///
/// # Safety
/// `body` and `stack` are live, `fp` points into the value stack.
#[inline(always)]
pub(super) unsafe fn overflows(stack: *const StackCtx, fp: *mut u64, body: *const Body, words: usize) -> bool {
    // SAFETY: the caller's promise. Compared as numbers, because the frame may well end beyond the allocation.
    unsafe { fp as usize + (*body).sizes[words - 1] as usize * size_of::<u64>() > (*stack).value_limit as usize }
}

/// Makes the frame of `body`, whose slots have `words` words and whose parameters are at `fp`. Returns the address of its first operand.
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

/// Returns the address after the frame of `body` at `fp`, whose slots have `words` words.
///
/// # Safety
/// There is such a frame.
#[inline(always)]
pub(super) unsafe fn end(fp: *mut u64, body: *const Body, words: usize) -> *mut u64 {
    // SAFETY: the end of the frame.
    unsafe { fp.add((*body).sizes[words - 1] as usize) }
}

/// Returns whether a frame of `body` may be at `fp` when a loop with operands up to `height` is reached, as far as can be
/// seen: it is on the value stack or in the reserve above that, the function has the width of its slots, and the operands are
/// within the frame. For checks in debug builds.
///
/// # Safety
/// `body` and `stack` are live.
pub(super) unsafe fn is_at_loop(stack: *const StackCtx, body: *const Body, fp: *mut u64, height: u32) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        let (words, size) = ((*body).words(), (*body).sizes[(*body).words() - 1] as usize);
        let used = (*body).locals as usize * words + FRAME_HEADER as usize + height as usize * words;
        is_on_stack(stack, fp, size) && used <= size && size <= MAX_VALUE_WORDS
    }
}

/// Copies a slot of `words` words.
///
/// # Safety
/// Both slots have that width.
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

/// Converts the `count` slots at `at` in place from `from` words each to `to` words each.
///
/// # Safety
/// The value stack has room for them. No value is wider than `to` words.
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

/// Moves the `count` words below `sp` to `to`, which is lower. Returns the address after the moved words.
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
