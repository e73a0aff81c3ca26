//! Why execution ended, on its way out of the guest.

use crate::records::backtrace::WasmBacktrace;
use crate::records::error::Error;
use crate::records::instance::InstanceRecord;
use crate::records::mismatch;
use std::any::Any;
use weir_bytecode::Trap;

/// Why execution ended abnormally, on its way up through engines to whoever called.
///
/// Its backtrace is taken once, where it arises, by the engine whose code failed or called what failed.
pub(crate) enum Failure {
    /// A trap, and what it was about if there is more to say than the backtrace does.
    Trap { trap: Trap, detail: Option<Box<str>>, frames: Option<WasmBacktrace> },
    /// A host function's error. Its backtrace is in it.
    Host(Error),
    /// A host function's panic, to be resumed in the Rust code that entered the guest.
    Panic(Box<dyn Any + Send>),
}

impl Failure {
    /// A trap without frames yet.
    pub fn trap(trap: Trap) -> Failure {
        Failure::Trap { trap, detail: None, frames: None }
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
        Failure::Trap { trap, detail, frames: None }
    }

    /// The empty backtrace of a failure that had none until now; a panic has none.
    pub fn missing_backtrace(&mut self) -> Option<&mut WasmBacktrace> {
        match self {
            Failure::Trap { frames: frames @ None, .. } => Some(frames.insert(WasmBacktrace::default())),
            Failure::Host(error) if error.wasm_backtrace().is_none() => Some(error.backtrace_mut()),
            Failure::Trap { .. } | Failure::Host(_) | Failure::Panic(_) => None,
        }
    }
}

impl From<Trap> for Failure {
    fn from(trap: Trap) -> Failure {
        Failure::trap(trap)
    }
}
