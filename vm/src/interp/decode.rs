//! Decoding of immediates: one byte inline, longer ones out of line. Each function takes the address of the immediate,
//! and returns its value and the address after it.
//!
//! # Safety
//! The address is that of an immediate of the named kind in validated code, which therefore ends within the module.

/// Decodes an unsigned LEB128 of at most 32 bits: indices, labels, counts.
#[inline(always)]
pub(super) unsafe fn u32(at: *const u8) -> (u32, *const u8) {
    // SAFETY: an immediate has at least one byte.
    unsafe { if *at < 0x80 { (u32::from(*at), at.add(1)) } else { long_u32(at) } }
}

#[inline(never)]
unsafe fn long_u32(at: *const u8) -> (u32, *const u8) {
    // SAFETY: the caller's promise.
    let (value, next) = unsafe { u64(at) };
    (value as u32, next)
}

/// Decodes an unsigned LEB128 of at most 64 bits.
pub(super) unsafe fn u64(mut at: *const u8) -> (u64, *const u8) {
    let (mut value, mut shift) = (0, 0);
    loop {
        // SAFETY: the previous byte, if any, has the continuation bit.
        let byte = unsafe { *at };
        // SAFETY: at most the end of the module.
        at = unsafe { at.add(1) };
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return (value, at);
        }
        shift += 7;
    }
}

/// Decodes a signed LEB128 of at most 64 bits. One of 32 bits is the lower half.
#[inline(always)]
pub(super) unsafe fn i64(at: *const u8) -> (i64, *const u8) {
    // SAFETY: an immediate has at least one byte.
    unsafe { if *at < 0x80 { (i64::from((*at << 1) as i8 >> 1), at.add(1)) } else { long_i64(at) } }
}

#[inline(never)]
unsafe fn long_i64(mut at: *const u8) -> (i64, *const u8) {
    let (mut value, mut shift) = (0i64, 0);
    loop {
        // SAFETY: the previous byte, if any, has the continuation bit.
        let byte = unsafe { *at };
        // SAFETY: at most the end of the module.
        at = unsafe { at.add(1) };
        value |= i64::from(byte & 0x7F) << shift;
        shift += 7;
        if byte < 0x80 {
            let unused = 64u32.saturating_sub(shift);
            return (value << unused >> unused, at);
        }
    }
}

/// Skips a LEB128 whose value is not needed: the depth of a branch not taken, a heap type.
#[inline(always)]
pub(super) unsafe fn skip(at: *const u8) -> *const u8 {
    // SAFETY: the caller's promise.
    unsafe { u32(at).1 }
}

/// Skips a block type.
#[inline(always)]
pub(super) unsafe fn skip_block_type(at: *const u8) -> *const u8 {
    /// The most frequent block type: no parameters and no results.
    const EMPTY: u8 = 0x40;
    // SAFETY: the caller's promise.
    unsafe { if *at == EMPTY { at.add(1) } else { skip_type(at) } }
}

/// Skips a value type, or a block type that is a value type or a type index.
#[inline(never)]
pub(super) unsafe fn skip_type(at: *const u8) -> *const u8 {
    // SAFETY: the heap type follows the first byte of `(ref null ht)` and `(ref ht)`.
    unsafe { if matches!(*at, 0x63 | 0x64) { skip(at.add(1)) } else { skip(at) } }
}

/// Skips the types of a typed select; there is one.
#[inline(always)]
pub(super) unsafe fn skip_types(at: *const u8) -> *const u8 {
    // SAFETY: the caller's promise.
    unsafe { skip_type(skip(at)) }
}
