//! Numeric instructions: operands from their slots, the meaning from [`weir_bytecode::semantics`], the result to its slot.

use weir_bytecode::Trap;
use weir_bytecode::semantics::{Outcome, Slot};

/// Replaces the `N` operands below `sp`, in slots of `WORDS` words, by the two results of `meaning`; the new `sp`.
///
/// # Safety
/// There are `N` operands below `sp`, two or more, all i64.
#[inline(always)]
pub(super) unsafe fn wide<const WORDS: usize, const N: usize>(
    sp: *mut u64,
    meaning: impl FnOnce([i64; N]) -> [i64; 2],
) -> *mut u64 {
    const { assert!(N >= 2) };
    // SAFETY: the slots below `sp` are operands of this frame, and the results take no more than they did.
    unsafe {
        let first = sp.sub(N * WORDS);
        let [low, high] = meaning(std::array::from_fn(|i| *first.add(i * WORDS) as i64));
        *first = low as u64;
        *first.add(WORDS) = high as u64;
        first.add(2 * WORDS)
    }
}

/// Replaces the operand below `sp` by `meaning` of it. Slots have `words` words.
///
/// # Safety
/// There is an operand of type `A` below `sp`.
#[inline(always)]
pub(super) unsafe fn unary<A: Slot, R: Outcome>(words: usize, sp: *mut u64, meaning: impl FnOnce(A) -> R) -> Result<(), Trap> {
    // SAFETY: the slot below `sp` is an operand of this frame.
    unsafe {
        let top = sp.sub(words);
        *top = meaning(A::from_slot(*top)).into_outcome()?;
    }
    Ok(())
}

/// Replaces the two operands below `sp` by `meaning` of them; the new `sp`. Slots have `words` words.
///
/// # Safety
/// There are operands of types `A` and `B` below `sp`.
#[inline(always)]
pub(super) unsafe fn binary<A: Slot, B: Slot, R: Outcome>(
    words: usize,
    sp: *mut u64,
    meaning: impl FnOnce(A, B) -> R,
) -> Result<*mut u64, Trap> {
    // SAFETY: the two slots below `sp` are operands of this frame.
    unsafe {
        let (left, right) = (sp.sub(2 * words), sp.sub(words));
        *left = meaning(A::from_slot(*left), B::from_slot(*right)).into_outcome()?;
        Ok(right)
    }
}
