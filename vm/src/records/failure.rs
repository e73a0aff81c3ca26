//! The reason why execution of the guest ended abnormally.

use crate::records::backtrace::WasmBacktrace;
use crate::records::error::Error;
use crate::records::fault::{self, MemoryFault};
use crate::records::fiber::Cancelled;
use crate::records::instance::InstanceRecord;
use crate::records::mismatch;
use std::any::Any;
use weir_bytecode::Trap;

/// The reason why execution ended abnormally, passed from the failing engine to the Rust code that called the guest.
///
/// Its backtrace is taken once, by the engine whose code failed or called a function that failed.
pub(crate) enum Failure {
    /// A trap, with details if there are any beyond the backtrace.
    Trap { trap: Trap, detail: Option<Box<str>>, fault: Option<MemoryFault>, frames: Option<WasmBacktrace> },
    /// A host function's error, which includes its backtrace.
    Host(Error),
    /// An exception that was thrown, whose handler has not been looked for; with the error of the host function that threw it. The
    /// exception is in [`StoreRecord::in_flight`](crate::records::store::StoreRecord::in_flight).
    Throw(Option<Error>),
    /// An exception on the way to the handler in [`StoreRecord::landing`](crate::records::store::StoreRecord::landing).
    Thrown,
    /// A host function's panic, to be resumed in the Rust code that entered the guest.
    Panic(Box<dyn Any + Send>),
}

impl Failure {
    /// Creates a trap without frames.
    pub fn trap(trap: Trap) -> Failure {
        Failure::Trap { trap, detail: None, fault: None, frames: None }
    }

    /// Creates a trap of the instruction at `pc` of `instance`, without frames.
    ///
    /// # Safety
    /// The instance's code has just trapped there, in a live store.
    pub unsafe fn trap_at(trap: Trap, instance: &InstanceRecord, pc: u32) -> Failure {
        // A function made of a text has positions of its own, at which the bytecode has no instruction.
        #[cfg(feature = "jit")]
        if !instance.module.engine().config().function_texts.is_empty() {
            return Failure::trap(trap);
        }
        // SAFETY: the caller's promise.
        let (detail, fault) = unsafe {
            match trap {
                Trap::BadSignature => (mismatch::describe(instance, pc), None),
                Trap::MemoryOutOfBounds => (None, fault::describe(instance, pc)),
                _ => (None, None),
            }
        };
        Failure::Trap { trap, detail, fault, frames: None }
    }

    /// Returns the backtrace to be filled in with `limit` frames, if the failure has none yet. A panic has none.
    pub fn missing_backtrace(&mut self, limit: usize) -> Option<&mut WasmBacktrace> {
        match self {
            _ if limit == 0 => None,
            Failure::Trap { frames: frames @ None, .. } => Some(frames.insert(WasmBacktrace::default())),
            Failure::Host(error) if error.wasm_backtrace().is_none() && !error.is::<Cancelled>() => Some(error.backtrace_mut()),
            Failure::Trap { .. } | Failure::Host(_) | Failure::Panic(_) => None,
            Failure::Throw(_) | Failure::Thrown => None,
        }
    }
}

impl From<Trap> for Failure {
    fn from(trap: Trap) -> Failure {
        Failure::trap(trap)
    }
}
