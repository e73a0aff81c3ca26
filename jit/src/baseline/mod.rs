//! The baseline compiler: bytecode to x86-64 in one pass, without an intermediate representation.
//!
//! The code keeps the interpreter's frame, in which each local and operand has its slot. Registers hold copies and
//! values that are not stored yet (`values`). Before a branch, everything that its target may read is stored, so the
//! state at a label is a set of registers that hold copies, and joining two states is an intersection. Calls, traps,
//! fuel and polls follow [`weir_contract`], like the code of the other back ends.
//!
//! Instructions that are frequent in real programs are compiled here, each to one or two instructions of TABLE 3. For
//! the others, the code that the native back end selects is used (`stencil`), so that their meaning is not written
//! again.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new operation must be named by the compiler")]

mod arithmetic;
mod branches;
mod buffers;
mod calls;
mod cold;
mod compiler;
mod control;
mod counts;
mod dispatch;
mod exceptions;
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
use crate::meter::Meter;
use crate::request::{Backend, Compiled, Refusal, Request};
use crate::x64;
use compiler::Compiler;

/// Compiles the function of `request`. Its code is entered by calls and, with `Options::ticks`, also at loop headers. `native` compiles the
/// stencils that are missing.
///
/// # Errors
/// [`Refusal::Unsupported`] on a processor that lacks instructions, or for an entry at a loop; [`Refusal::Budget`] if the code is too
/// long for the bytecode.
pub fn compile(request: &Request<'_>, stencils: &mut Stencils, native: Compile, meter: &Meter<'_>) -> Result<Compiled, Refusal> {
    x64::check_processor()?;
    let unsupported = |what: &str| Refusal::Unsupported { backend: Backend::Baseline, what: what.into() };
    if request.entry != weir_contract::Entry::Call {
        return Err(unsupported("an entry at a loop"));
    }
    let body = request.module.body(request.func).ok_or_else(|| unsupported("a function without a body"))?;
    if body.wide && !x64::has_avx2() {
        return Err(unsupported("v128 on a processor without AVX2"));
    }
    let mut compiler = Compiler::new(request, body, stencils, native, meter);
    compiler.function()?;
    compiler.finish()
}
