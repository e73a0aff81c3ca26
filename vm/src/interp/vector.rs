//! Vector instructions: they read operands from slots of two words, apply [`weir_bytecode::semantics::vector`], and
//! write the result to a slot. All are in one function outside the loop, so that the loop's code stays small.

use super::code;
use super::decode;
use super::memory::{View, mem_arg};
use weir_bytecode::semantics::vector::{self, Wide};
use weir_bytecode::{Opcode, Trap, for_each_lane, for_each_lane_access, for_each_vector, for_each_vector_load};
use weir_contract::InstanceCtx;

/// Words of a slot.
const WORDS: usize = 2;

unsafe fn read<T: Wide>(slot: *const u64) -> T {
    // SAFETY: the caller's slot is an operand; it has two words, of which a number sets only the first.
    let [low, high] = unsafe { *slot.cast::<[u64; WORDS]>() };
    T::from_wide(u128::from(low) | u128::from(high) << 64)
}

unsafe fn write(slot: *mut u64, value: impl Wide) {
    let value = value.into_wide();
    // SAFETY: the caller's slot is within the frame.
    unsafe { *slot.cast::<[u64; WORDS]>() = [value as u64, (value >> 64) as u64] };
}

/// Executes the instruction whose code after the prefix is at `at`, on the operands below `sp`. Returns the values of
/// both after it.
///
/// # Safety
/// Validated code in an instance with context `ctx`, whose memory 0 is `view`, in a function whose slots have two words.
#[inline(never)]
pub(super) unsafe fn execute(
    at: *const u8,
    sp: *mut u64,
    view: View,
    ctx: *mut InstanceCtx,
) -> Result<(*const u8, *mut u64), Trap> {
    // SAFETY: validated code has the immediates and operands that each arm reads.
    unsafe {
        let (sub, at) = decode::u32(at);
        let code = 0x200 + sub as u16;
        Ok(match code {
            code::V128Const => {
                write(sp, u128::from_le_bytes(*at.cast()));
                (at.add(16), sp.add(WORDS))
            }
            code::I8x16Shuffle => {
                let (a, b) = (sp.sub(2 * WORDS), sp.sub(WORDS));
                write(a, vector::i8x16_shuffle(read(a), read(b), *at.cast()));
                (at.add(16), b)
            }
            code::V128Store => {
                let (view, offset, next) = mem_arg(at, view, ctx);
                let address = sp.sub(2 * WORDS);
                let value: u128 = read(sp.sub(WORDS));
                *view.at(*address, offset, 16)?.cast() = value.to_le_bytes();
                (next, address)
            }
            _ => match plain(code, sp) {
                Some(sp) => (at, sp),
                None => return with_immediates(code, at, sp, view, ctx),
            },
        })
    }
}

/// Pops the operands of a function and pushes its result. Returns the new `sp`.
macro_rules! apply {
    ($sp:expr, $name:ident, $($arg:ident: $ty:ty),* $(; $lane:expr)?) => {{
        let base = $sp.sub(WORDS * [$(stringify!($arg)),*].len());
        let mut next = base;
        $(
            let $arg = read::<$ty>(next);
            next = next.add(WORDS);
        )*
        debug_assert_eq!(next, $sp);
        write(base, vector::$name($($arg),* $(, $lane)?));
        base.add(WORDS)
    }};
}

/// Executes an instruction that has neither immediates nor access to memory; returns `None` for another.
#[inline(always)]
unsafe fn plain(code: u16, sp: *mut u64) -> Option<*mut u64> {
    macro_rules! arms {
        ($($op:ident, $name:ident, ($($arg:ident: $ty:ty),*) -> $result:ty, $meaning:expr;)*) => {
            match code {
                $(code::$op => apply!(sp, $name, $($arg: $ty),*),)*
                _ => return None,
            }
        };
    }
    use weir_bytecode::semantics::vector::*;
    // SAFETY: the caller's operands are there.
    Some(unsafe { for_each_vector!(arms) })
}

/// Executes a load, or an instruction on one lane.
#[inline(always)]
unsafe fn with_immediates(
    code: u16,
    at: *const u8,
    sp: *mut u64,
    view: View,
    ctx: *mut InstanceCtx,
) -> Result<(*const u8, *mut u64), Trap> {
    // SAFETY: as for `execute`.
    unsafe {
        if let Some(sp) = on_lane(code, sp, (*at).into()) {
            return Ok((at.add(1), sp));
        }
        let (view, offset, next) = mem_arg(at, view, ctx);
        match load(code, sp.sub(WORDS), view, offset) {
            Some(result) => result.map(|()| (next, sp)),
            None => Ok((next.add(1), access_lane(code, sp, view, offset, (*next).into())?)),
        }
    }
}

/// Executes an instruction on a lane; returns `None` for another.
#[inline(always)]
unsafe fn on_lane(code: u16, sp: *mut u64, lane: usize) -> Option<*mut u64> {
    macro_rules! arms {
        ($($op:ident, $name:ident, ($($arg:ident: $ty:ty),*; $lane:ident) -> $result:ty, $meaning:expr;)*) => {
            match code {
                $(code::$op => apply!(sp, $name, $($arg: $ty),*; lane),)*
                _ => return None,
            }
        };
    }
    use weir_bytecode::semantics::vector::*;
    // SAFETY: the caller's operands are there.
    Some(unsafe { for_each_lane!(arms) })
}

/// Replaces the address in slot `top` by the vector loaded from there; returns `None` for an instruction that does not
/// load a whole vector.
#[inline(always)]
unsafe fn load(code: u16, top: *mut u64, view: View, offset: u64) -> Option<Result<(), Trap>> {
    macro_rules! arms {
        ($($op:ident, $width:literal, $name:ident;)*) => {
            match code {
                $(
                    // SAFETY: the address is in the slot; `at` checks that the bytes exist.
                    code::$op => unsafe {
                        view.at(*top, offset, $width).map(|bytes| {
                            write(top, vector::$name(Wide::from_wide(read_bytes::<$width>(bytes))));
                        })
                    }
                )*
                _ => return None,
            }
        };
    }
    Some(for_each_vector_load!(arms))
}

/// Loads or stores a lane of the vector below `sp`; the address is below that. Returns the new `sp`.
#[inline(always)]
unsafe fn access_lane(code: u16, sp: *mut u64, view: View, offset: u64, lane: usize) -> Result<*mut u64, Trap> {
    let (address, value) = (sp.wrapping_sub(2 * WORDS), sp.wrapping_sub(WORDS));
    macro_rules! arms {
        ($($op:ident, $kind:ident, $width:literal, $name:ident;)*) => {
            match code {
                $(
                    // SAFETY: both operands are there; `at` checks that the bytes exist.
                    code::$op => unsafe {
                        let bytes = view.at(*address, offset, $width)?;
                        arms!(@$kind $width, $name, bytes)
                    }
                )*
                // The constant assertion on `arms_of` below proves that each vector instruction has exactly one arm in this file.
                _ => unreachable!("no vector instruction {code:#x} in validated code"),
            }
        };
        (@load $width:literal, $name:ident, $bytes:ident) => {{
            let lane_value = Wide::from_wide(read_bytes::<$width>($bytes));
            write(address, vector::$name(read(value), lane_value, lane));
            value
        }};
        (@store $width:literal, $name:ident, $bytes:ident) => {{
            let bytes = vector::$name(read(value), lane).into_wide().to_le_bytes();
            $bytes.copy_from_nonoverlapping(bytes.as_ptr(), $width);
            address
        }};
    }
    Ok(for_each_lane_access!(arms))
}

/// The number of arms above for the instruction with this code.
const fn arms_of(code: u16) -> u32 {
    macro_rules! plain {
        ($($op:ident, $name:ident, ($($arg:ident: $ty:ty),*) -> $result:ty, $meaning:expr;)*) => {
            match code { $(code::$op => 1,)* _ => 0 }
        };
    }
    macro_rules! on_lane {
        ($($op:ident, $name:ident, ($($arg:ident: $ty:ty),*; $lane:ident) -> $result:ty, $meaning:expr;)*) => {
            match code { $(code::$op => 1,)* _ => 0 }
        };
    }
    macro_rules! load {
        ($($op:ident, $width:literal, $name:ident;)*) => {
            match code { $(code::$op => 1,)* _ => 0 }
        };
    }
    macro_rules! access_lane {
        ($($op:ident, $kind:ident, $width:literal, $name:ident;)*) => {
            match code { $(code::$op => 1,)* _ => 0 }
        };
    }
    let own = match code {
        code::V128Const | code::I8x16Shuffle | code::V128Store => 1,
        _ => 0,
    };
    own + for_each_vector!(plain) + for_each_lane!(on_lane) + for_each_vector_load!(load) + for_each_lane_access!(access_lane)
}

// Every instruction with the vector prefix has one arm, so validated code does not reach the last arm of `access_lane`.
const _: () = {
    let mut i = 0;
    while i < Opcode::ALL.len() {
        let code = Opcode::ALL[i] as u16;
        assert!(code < 0x200 || arms_of(code) == 1);
        i += 1;
    }
};

/// Returns `N` bytes as a little-endian number.
#[inline(always)]
unsafe fn read_bytes<const N: usize>(bytes: *const u8) -> u128 {
    let mut all = [0; 16];
    // SAFETY: the caller has `N` bytes.
    all[..N].copy_from_slice(unsafe { &*bytes.cast::<[u8; N]>() });
    u128::from_le_bytes(all)
}
