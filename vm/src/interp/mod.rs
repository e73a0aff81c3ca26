//! The in-place interpreter: it executes the module's own bytes, with the side table that validation left for its
//! branches. Setting up costs nothing but one [`Body`](crate::records::body::Body) per function.
//!
//! [`dispatch`] is the loop. What its arms do is in [`numeric`], [`vector`], [`memory`], [`calls`] and [`control`]; [`frame`]
//! lays out the value stack, [`x64`] has the fast paths in assembly, [`decode`] reads immediates, [`lazy`] sees to functions that are validated when first called.
//!
//! Calls between interpreted functions push frames on the value stack and never recurse natively, whichever instances
//! they run in. One *activation*, a call of [`run()`], ends when its base frame returns, or leaves for native code.
//!
//! # What `unsafe` relies on here
//!
//! The bytes were validated and are immutable. So at every pc that control reaches
//!
//! - an opcode of TABLE 1 stands, with complete immediates and indices in range, before the end of the body;
//! - the operands it takes are there, of the types it takes, and what it pushes stays below the frame's end;
//! - `stp` is the entry of the next branch or loop of the body, and that entry's target is such a pc.
//!
//! Contexts and records obey `records::store`: they live as long as the store, never move, and no reference into one
//! is held across a call of the guest or of the host. Frames end at or below `StackCtx::value_limit`.

mod calls;
mod code;
mod control;
mod decode;
mod dispatch;
mod exit;
mod failing;
mod frame;
mod lazy;
mod memory;
mod numeric;
mod run;
mod state;
mod vector;
#[cfg(target_arch = "x86_64")]
mod x64;
#[cfg(not(target_arch = "x86_64"))]
#[path = "absent.rs"]
mod x64;

pub(crate) use exit::Exit;
pub(crate) use run::run;

#[cfg(test)]
mod tests;
