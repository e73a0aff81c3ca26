//! `--max-memory` and `--timeout`.

use crate::failure::Failure;
use crate::style;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir::{Engine, Error, ResourceLimiter, Store, Trap};

/// The time that a program may continue after its time limit. Guest code stops at its next loop iteration or call; a
/// blocking host function, such as a read of standard input, does not, nor does the compiler.
const GRACE: Duration = Duration::from_millis(100);

/// The part of the time limit that the end of a run may take. What the cache gets takes less.
const END_SHARE: u32 = 8;

/// The bytes of an element of a table.
const TABLE_ELEMENT: usize = 32;

/// Limits the total size of a store's memories and tables, and of what the host holds for the guest.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    left: usize,
    /// Whether a request was refused.
    pub exceeded: bool,
}

impl MemoryBudget {
    pub fn new(bytes: usize) -> MemoryBudget {
        MemoryBudget { left: bytes, exceeded: false }
    }
}

impl ResourceLimiter for MemoryBudget {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> weir::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let left = self.left.checked_sub(desired.saturating_sub(current));
        match left {
            Some(left) => self.left = left,
            None => self.exceeded = true,
        }
        Ok(left.is_some())
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> weir::Result<bool> {
        let bytes = |elements: usize| elements.saturating_mul(TABLE_ELEMENT);
        self.memory_growing(bytes(current), bytes(desired), maximum.map(bytes))
    }
}

/// Whether the time limit is over.
#[derive(Clone, Debug)]
pub(crate) struct Expired {
    is_over: Arc<AtomicBool>,
    has_ended: Arc<AtomicBool>,
    limit: Duration,
}

impl Expired {
    /// Returns whether it is.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// The guest has ended: what is left is to write what was asked for, which may take longer.
    pub fn end(&self) {
        self.has_ended.store(true, Ordering::SeqCst);
    }

    /// Makes the store's guest end at the limit.
    ///
    /// # Errors
    /// It is over already.
    pub fn limit<T: 'static>(&self, store: &mut Store<T>) -> Result<(), Failure> {
        store.set_epoch_deadline(1);
        // The time may have ended before the deadline was set, relative to the epoch, which then began after that.
        if self.is_over() { Err(out_of_time(Trap::Interrupt.into(), self.limit)) } else { Ok(()) }
    }
}

/// Interrupts the engine's guests after `limit`, and exits the process if they do not stop, after `at_end`. It begins before the module is
/// opened, because loading it may take long, too.
pub(crate) fn interrupt_after(engine: Engine, limit: Duration, at_end: impl FnOnce() + Send + 'static) -> Expired {
    let expired = Expired { is_over: Arc::default(), has_ended: Arc::default(), limit };
    let Expired { is_over, has_ended, .. } = expired.clone();
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        is_over.store(true, Ordering::SeqCst);
        engine.increment_epoch();
        std::thread::sleep(GRACE);
        if has_ended.load(Ordering::SeqCst) {
            return;
        }
        let failure = out_of_time(Trap::Interrupt.into(), limit);
        let status = failure.status().into();
        // Nobody may read what the guest has written to standard error: then the message is lost, as when it is closed.
        std::thread::spawn(move || {
            std::thread::sleep(GRACE + limit / END_SHARE);
            std::process::exit(status);
        });
        at_end();
        let _ = style::message(&failure.message().unwrap_or_default());
        std::process::exit(status);
    });
    expired
}

/// Adds the time limit to the error of an interrupted program.
pub(crate) fn out_of_time(error: Error, limit: Duration) -> Failure {
    match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => Failure::Guest(error.context(format!("not done within {} s", limit.as_secs_f64()))),
        _ => Failure::Guest(error),
    }
}
