//! Calls of native code by interpreted functions that do not go through Rust.
//!
//! [`native`] calls code by a stub of the signature, whose address lies before that of the `enter` stub. The frame of [`run`](super::run)
//! has room for a [`Boundary`], which is linked during the call. A trap returns from [`run`](super::run) with
//! [`Left::Trapped`](super::Left): the registers that it saved are where the landing pad expects them. Calls in the other direction are
//! in [`super::immediate`].

use super::asm::{cost, dispatch};
use crate::interp::state::State;
use crate::records::body::Body;
use crate::records::func_code::FuncCode;
use crate::records::scope::Scope;
use crate::records::walk::Activation;
use std::arch::naked_asm;
use std::mem::offset_of;
use weir_contract::{Boundary, InstanceCtx, MemoryCtx, StackCtx};

/// Bytes of the frame of [`run`](super::run) below the registers that it saved.
pub(super) const FRAME: usize = 48;
/// Displacements from `rsp` in that frame; the end of the value stack is at 0.
pub(super) const STATE: usize = 8;
pub(super) const BOUNDARY: usize = FRAME - size_of::<Boundary>();

const _: () = assert!(offset_of!(Boundary, prev) == 0 && size_of::<Boundary>() == 24);

/// Loads `r8` and `r9` for the scope in `r11`. Destroys `rdx`.
macro_rules! memory {
    () => {
        "mov rdx, [r11 + {small_memory}]\nmov r8, [rdx + {base}]\nmov r9, [rdx + {len}]\n"
    };
}

/// Charges the segment to which a call has returned, and if that is not possible leaves at label 9.
macro_rules! charged {
    () => {
        concat!(cost!("ecx", "rcx", "rsi"), "sub [r13], rcx\n")
    };
}

/// The head of a call: raises `value_sp` to the end of the frame, and loads the instance into `r15` and its stack into `r8`.
macro_rules! raise_value_sp {
    () => {
        "mov ecx, [r10 + {size}]\nlea rcx, [rbx + 8 * rcx]\nmov r15, [r11 + {ctx}]\nmov r8, [r15 + {stack}]\nmov [r8 + {value_sp}], rcx\n"
    };
}

/// Defines a handler that calls the code at `rax` of the function with the record `r13`, whose arguments are below `sp`, and continues at
/// `rdx`. While it runs, the `sp` of the position is that address. Afterwards it does `$charge` and, if that leaves, continues with
/// `$leave`, in the state at that address.
macro_rules! native {
    ($name:ident: $charge:expr, $leave:ident) => {
        #[unsafe(naked)]
        pub(super) unsafe extern "sysv64" fn $name<const WORDS: usize>() {
            naked_asm!(
                "mov r9, [rsp + {state}]",
                "mov [r9 + {pc}], rsi",
                "mov [r9 + {sp}], rdx",
                "mov [r9 + {fp}], rbx",
                "mov [r9 + {body}], r10",
                // Not used at the position, and preserved in `r14`.
                "mov [r9 + {stp}], r15",
                raise_value_sp!(),
                "mov rcx, [r8 + {boundary}]",
                "mov [rsp + {link}], rcx",
                "mov rcx, [r8 + {exit_fp}]",
                "mov [rsp + {link} + 16], rcx",
                "lea rcx, [rsp + {link}]",
                "mov [r8 + {boundary}], rcx",
                "mov rcx, [r8 + {activation}]",
                "mov [rcx + {position}], r9",
                "mov rcx, [r13 + {enter}]",
                "call qword ptr [rcx - {slot}]",
                "mov rcx, [rsp + {link} + 8]",
                "mov rdx, [rsp + {link}]",
                "mov [rcx + {boundary}], rdx",
                "mov rdx, [rsp + {link} + 16]",
                "mov [rcx + {exit_fp}], rdx",
                "mov rcx, [rsp + {state}]",
                "mov rsi, [rcx + {sp}]",
                "mov r10, [rcx + {body}]",
                "mov r11, [rcx + {scope}]",
                "mov r15, [rcx + {stp}]",
                // The portable loop reads the length of any memory.
                "mov rdx, [r11 + {memory}]",
                "mov rdx, [rdx + {len}]",
                "mov [rcx + {state_len}], rdx",
                memory!(),
                $charge,
                dispatch!(),
                "9:",
                "jmp {leave}",
                state = const STATE,
                link = const BOUNDARY,
                pc = const offset_of!(State, pc),
                sp = const offset_of!(State, sp),
                fp = const offset_of!(State, fp),
                stp = const offset_of!(State, stp),
                body = const offset_of!(State, body),
                scope = const offset_of!(State, scope),
                state_len = const offset_of!(State, len),
                size = const offset_of!(Body, sizes) + 4 * (WORDS - 1),
                ctx = const offset_of!(Scope, ctx),
                memory = const Scope::MEMORY,
                small_memory = const offset_of!(Scope, small_memory),
                base = const offset_of!(MemoryCtx, base),
                len = const offset_of!(MemoryCtx, len),
                stack = const offset_of!(InstanceCtx, stack),
                value_sp = const offset_of!(StackCtx, value_sp),
                boundary = const offset_of!(StackCtx, boundary),
                exit_fp = const offset_of!(StackCtx, exit_fp),
                activation = const offset_of!(StackCtx, activation),
                position = const Activation::POSITION,
                enter = const offset_of!(FuncCode, enter),
                slot = const 8 * WORDS,
                leave = sym super::$leave,
            )
        }
    };
}

native!(native: "", exit);
native!(native_then_charge: charged!(), exit_to_charge);

pub(super) use memory;
#[cfg(all(feature = "jit", target_os = "linux"))]
pub(super) use {charged, raise_value_sp};
