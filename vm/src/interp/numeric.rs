//! Numeric instructions: they read operands from slots, apply [`weir_bytecode::semantics`], and write the result to a
//! slot.

use super::code;
use super::decode;
use weir_bytecode::semantics::nan::{self, Floats};
use weir_bytecode::semantics::{Outcome, Slot};
use weir_bytecode::{Opcode, Trap};

/// Replaces the `N` operands below `sp`, in slots of `WORDS` words, by the two results of `meaning`. Returns the new
/// `sp`.
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

/// Replaces the two operands below `sp` by `meaning` of them. Returns the new `sp`. Slots have `words` words.
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

/// Replaces NaNs in the result of the instruction at `at`, which has just been executed, by canonical ones, if the
/// specification leaves the NaNs of that instruction open. The result is below `sp`, in a slot of `words` words.
///
/// # Safety
/// The instruction at `at` has just been executed, and `sp` is the value after it.
pub(super) unsafe fn canonicalise_nans(at: *const u8, sp: *mut u64, words: usize) {
    // SAFETY: such an instruction has a result, and one on vectors is in a function whose slots have two words.
    unsafe {
        let code = match u16::from(*at) {
            code::VectorPrefix => 0x200 + decode::u32(at.add(1)).0 as u16,
            code => code,
        };
        let Some(floats) = Opcode::from_code(code).and_then(nan::open) else { return };
        let slot = sp.sub(words);
        match floats {
            Floats::F32 | Floats::F64 => *slot = floats.canonicalise((*slot).into()) as u64,
            Floats::F32x4 | Floats::F64x2 => {
                let slot = slot.cast::<[u8; 16]>();
                *slot = floats.canonicalise(u128::from_le_bytes(*slot)).to_le_bytes();
            }
        }
    }
}
