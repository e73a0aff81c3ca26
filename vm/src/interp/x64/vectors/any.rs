//! The prefix of vector instructions, and those that have no handler of their own.

use crate::interp::memory::View;
use crate::interp::state::State;
use crate::interp::x64::asm::{dispatch, leave};
use crate::interp::x64::table::{Table, VECTORS};
use crate::interp::{decode, vector};
use std::arch::naked_asm;
use std::mem::offset_of;
use weir_bytecode::Opcode;
use weir_bytecode::semantics::nan;

/// Executes the vector instruction at the pc of `state`, and advances pc and `sp`. Returns false, and has changed nothing, if the
/// instruction traps, and with `EXACT` if its result may be a NaN that the specification leaves open.
///
/// # Safety
/// Validated code, in slots of two words. In `state` all fields are valid but `fp`, `stp` and `body`.
unsafe extern "sysv64" fn execute<const EXACT: bool>(state: *mut State) -> bool {
    // SAFETY: the caller's promise. Only the caller has another pointer to the state, and does not use it during the call.
    unsafe {
        let state = &mut *state;
        let at = state.pc.add(1);
        if EXACT {
            let code = 0x200 + decode::u32(at).0 as u16;
            if Opcode::from_code(code).and_then(nan::open).is_some() {
                return false;
            }
        }
        let view = View { base: state.base, len: state.len, address_mask: (*state.scope).address_mask };
        match vector::execute(at, state.sp, view, (*state.scope).ctx) {
            Ok((pc, sp)) => {
                (state.pc, state.sp) = (pc, sp);
                true
            }
            // The portable loop executes it again, and traps.
            Err(_) => false,
        }
    }
}

/// Defines the handler that calls [`execute`]. The call preserves `rbx`, `rbp` and `r12` to `r15`.
macro_rules! any_vector {
    ($name:ident, $exact:literal) => {
        #[unsafe(naked)]
        pub(in crate::interp::x64) unsafe extern "sysv64" fn $name() {
            naked_asm!(
                "mov rcx, [rsp + 8]",
                "mov [rcx + {pc}], rsi",
                "mov [rcx + {sp}], rdi",
                "push r8",
                "push r9",
                "push r10",
                "push r11",
                // The fifth push aligns the stack for the call.
                "push rcx",
                "mov rdi, rcx",
                "call {execute}",
                "pop rcx",
                "pop r11",
                "pop r10",
                "pop r9",
                "pop r8",
                "mov rsi, [rcx + {pc}]",
                "mov rdi, [rcx + {sp}]",
                "test al, al",
                "je 9f",
                "mov rax, [rdi - {slot}]",
                dispatch!(),
                leave!(),
                pc = const offset_of!(State, pc),
                sp = const offset_of!(State, sp),
                execute = sym execute::<$exact>,
                slot = const 16,
            )
        }
    };
}

any_vector!(any_vector, false);
any_vector!(exact_vector, true);

/// Dispatches by the opcode after the prefix. Opcodes that are longer than necessary go to the entry of [`UNASSIGNED`], which is
/// that of instructions without handlers, so that handlers know the length of their opcode.
#[unsafe(naked)]
pub(in crate::interp::x64) unsafe extern "sysv64" fn prefix() {
    naked_asm!(
        "movzx ecx, byte ptr [rsi + 1]",
        "test cl, cl",
        "js 8f",
        "jmp qword ptr [r15 + 8 * rcx + {vectors}]",
        "8:",
        "movzx edx, byte ptr [rsi + 2]",
        "lea r13d, [rdx - 1]",
        "cmp r13d, 1",
        "ja 9f",
        "shl edx, 7",
        "lea ecx, [rcx + rdx - 128]",
        "jmp qword ptr [r15 + 8 * rcx + {vectors}]",
        "9:",
        "jmp qword ptr [r15 + 8 * {unassigned} + {vectors}]",
        vectors = const offset_of!(Table<VECTORS>, vectors),
        unassigned = const UNASSIGNED,
    )
}

/// A code below [`VECTORS`] that is no vector instruction's.
const UNASSIGNED: u16 = 0x9A;

const _: () = assert!(Opcode::from_code(0x200 + UNASSIGNED).is_none() && (UNASSIGNED as usize) < VECTORS);
const _: () = assert!(VECTORS <= 3 * 128, "the second byte of an opcode is 1 or 2");
