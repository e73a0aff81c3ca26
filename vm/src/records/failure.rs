//! Why execution ended, on its way out of the guest.

use crate::records::backtrace::WasmBacktrace;
use crate::records::error::Error;
use crate::records::instance::InstanceRecord;
use crate::records::mismatch;
use crate::records::module::Module;
use std::any::Any;
use weir_bytecode::Trap;

/// Why execution ended abnormally, on its way up through engines to whoever called.
///
/// Each activation that it passes through appends the frames that were active in it, innermost first, with
/// [`Failure::push_frame`]; those of a native activation are appended when it is unwound.
pub(crate) enum Failure {
    /// A trap, and what it was about if there is more to say than the backtrace does.
    Trap { trap: Trap, detail: Option<Box<str>>, frames: WasmBacktrace },
    /// A host function's error. Its backtrace is in it.
    Host(Error),
    /// A host function's panic, to be resumed in the Rust code that entered the guest.
    Panic(Box<dyn Any + Send>),
}

impl Failure {
    /// A trap without frames yet.
    pub fn trap(trap: Trap) -> Failure {
        Failure::Trap { trap, detail: None, frames: WasmBacktrace::default() }
    }

    /// A trap of the instruction at `pc` of `instance`, without frames yet.
    ///
    /// # Safety
    /// The instance's code has just trapped there, in a store that lives.
    pub unsafe fn trap_at(trap: Trap, instance: &InstanceRecord, pc: u32) -> Failure {
        let detail = match trap {
            // SAFETY: the caller's promise.
            Trap::BadSignature => unsafe { mismatch::describe(instance, pc) },
            _ => None,
        };
        Failure::Trap { trap, detail, frames: WasmBacktrace::default() }
    }

    /// Adds a function that was active: the caller of the last one added. `pc` is that of the instruction that
    /// trapped or of the call.
    pub fn push_frame(&mut self, module: &Module, func: u32, pc: u32) {
        match self {
            Failure::Trap { frames, .. } => frames.push(module, func, pc),
            Failure::Host(error) => error.backtrace_mut().push(module, func, pc),
            Failure::Panic(_) => (),
        }
    }
}

impl From<Trap> for Failure {
    fn from(trap: Trap) -> Failure {
        Failure::trap(trap)
    }
}
