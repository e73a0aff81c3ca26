//! The in-place interpreter. It executes bytecode, with the side table of branches that validation wrote. Its set-up is one
//! [`Body`](crate::records::body::Body) per function and, if it executes superinstructions, a copy of each function's code
//! that is made at its first call. The copy has the same offsets as the module and differs from it in the opcodes of
//! superinstructions only.
//!
//! [`dispatch`] is the loop. Its arms are implemented in [`numeric`], [`vector`], [`memory`], [`calls`] and [`control`]. [`frame`]
//! lays out the value stack, [`x64`] has the fast paths in assembly, [`decode`] reads immediates, and [`lazy`] validates functions at
//! their first call.
//!
//! A call between interpreted functions, of one instance or of two, pushes a frame on the value stack and never recurses on the
//! native stack. One *activation*, a call of [`run()`] or [`resume`], ends when its base frame returns or is replaced by native code.
//!
//! # What `unsafe` relies on here
//!
//! The module's bytes have been validated and are immutable, as is a function's copy from its first call on. At every pc that is reached:
//!
//! - there is an opcode of TABLE 1 or of a superinstruction, with complete immediates and indices in range, before the end of the body;
//! - its operands are on the stack and have the right types, and its results are below the frame's end;
//! - `stp` is the entry of the next branch or loop of the body, and that entry's target is such a pc.
//!
//! Contexts and records follow the rules of `records::store`: they live as long as the store, never move, and no reference into one
//! is held across a call of the guest or of the host. Frames end at or below `StackCtx::value_limit`.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new opcode, class or lane operation must be named by the compiler")]

mod calls;
mod code;
mod control;
mod decode;
mod dispatch;
mod exceptions;
mod exit;
mod failing;
mod frame;
mod landing;
mod lazy;
mod memory;
mod numeric;
#[cfg(test)]
mod portable_log;
mod run;
mod state;
mod vector;
#[cfg(target_arch = "x86_64")]
mod x64;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_assembly.rs"]
mod x64;

pub(crate) use exit::Exit;
pub(crate) use run::run;
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
pub(crate) use run::{instance_of_state, proceed, resume};
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
pub(crate) use x64::immediate;

#[cfg(test)]
#[expect(clippy::wildcard_enum_match_arm, reason = "a test names the operations that it tests")]
mod tests;
