//! The forms of a function between the phases of a compilation, and the observer of each.

use crate::ir::Func;
use crate::request::{Compiled, Refusal, Request};
use crate::x64;
use bumpalo::Bump;
use std::ops::ControlFlow;

/// The form of a function during its compilation.
#[derive(Debug)]
pub enum Form<'a> {
    /// Bytecode of the request's module, whose SSA is built in this arena.
    Bytecode(&'a Bump),
    /// SSA.
    Ssa(Func<'a>),
    /// Instructions of the native back end.
    Machine(x64::Code),
    /// Bytes.
    Bytes(Compiled),
}

impl<'a> Form<'a> {
    /// The bytes that it takes, about.
    pub(crate) fn size(&self) -> usize {
        match self {
            Form::Bytecode(_) => 0,
            Form::Ssa(func) => func.size(),
            Form::Machine(code) => code.size(),
            Form::Bytes(Compiled { code, relocs, traps, calls, lines, .. }) => {
                code.len() + size_of_val(&**relocs) + size_of_val(&**traps) + size_of_val(&**calls) + size_of_val(&**lines)
            }
        }
    }

    /// The SSA, for a phase that takes it.
    ///
    /// # Panics
    /// It is another form.
    pub(crate) fn ssa(&mut self) -> &mut Func<'a> {
        match self {
            Form::Ssa(func) => func,
            form => panic!("the phase is of SSA, not of {form:?}"),
        }
    }

    /// The machine code, for a phase that takes it.
    ///
    /// # Panics
    /// It is another form.
    pub(crate) fn machine(&mut self) -> &mut x64::Code {
        match self {
            Form::Machine(code) => code,
            form => panic!("the phase is of machine code, not of {form:?}"),
        }
    }
}

/// Sees a function after each phase.
pub trait Observer {
    /// After a phase ran, and changed the function if it is a pass. Breaking stops the compilation there.
    fn after(&mut self, phase: &'static str, form: &Form<'_>) -> ControlFlow<()>;
}

/// Nothing is observed.
impl Observer for () {
    fn after(&mut self, _: &'static str, _: &Form<'_>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// A compilation within a phase: runs the phases from bytecode to the bytes of the native back end, without passes, as far as the
/// observer lets them. Returns the bytes, or `None` if the observer stopped it before.
pub type Compile = fn(&Request<'_>, &mut dyn Observer) -> Result<Option<Compiled>, Refusal>;
