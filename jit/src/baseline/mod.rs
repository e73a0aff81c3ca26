//! The baseline compiler: bytecode to x86-64 in one pass, without an intermediate representation.
//!
//! The code keeps the interpreter's frame: each local and operand has its slot there. Registers hold copies and what is not stored yet
//! (`values`). Before a branch everything that its target may read is stored, so that the state at a label is a set of registers that
//! hold copies, and joining two states is an intersection. Calls, traps, fuel and polls are those of [`weir_contract`], as in code of
//! the other back ends.
//!
//! Instructions that are frequent in real programs are written here, each by one or two of TABLE 3. The others (`stencil`) are the
//! code that the native back end selects for them: their meaning is not written again.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new operation must be named by the compiler")]

mod arithmetic;
mod branches;
mod calls;
mod cold;
mod compiler;
mod control;
mod dispatch;
mod finish;
mod frame;
mod inline;
mod label;
mod memory;
mod numeric;
mod parts;
mod pins;
mod registers;
mod stencil;
mod tables;
mod values;
mod vector;

pub use stencil::Stencils;

use crate::form::Compile;
use crate::request::{Backend, Compiled, Refusal, Request};
use crate::x64;
use compiler::Compiler;

/// Compiles the function of `request`, to be entered by a call. `native` compiles the stencils that are missing.
///
/// # Errors
/// [`Refusal::Unsupported`] on a processor that lacks instructions, or for an entry at a loop; [`Refusal::Budget`] if the code is too
/// long for the bytecode.
pub fn compile(request: &Request<'_>, stencils: &mut Stencils, native: Compile) -> Result<Compiled, Refusal> {
    x64::check_processor()?;
    let unsupported = |what: &str| Refusal::Unsupported { backend: Backend::Baseline, what: what.into() };
    if request.entry != weir_contract::Entry::Call {
        return Err(unsupported("an entry at a loop"));
    }
    let body = request.module.body(request.func).ok_or_else(|| unsupported("a function without a body"))?;
    if body.wide && !x64::has_avx2() {
        return Err(unsupported("v128 on a processor without AVX2"));
    }
    let mut compiler = Compiler::new(request, body, stencils, native);
    compiler.function()?;
    compiler.finish()
}
