//! `--max-memory` and `--timeout`.

use crate::failure::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir::{Engine, Error, ResourceLimiter, Trap};

/// The time that a program may continue after its time limit. Guest code stops at its next loop iteration or call; a
/// blocking host function, such as a read of standard input, does not.
const GRACE: Duration = Duration::from_millis(500);

/// Limits the total size of a store's memories.
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
        match self.left.checked_sub(desired.saturating_sub(current)) {
            Some(left) => self.left = left,
            None => self.exceeded = true,
        }
        Ok(!self.exceeded)
    }

    fn table_growing(&mut self, _current: usize, _desired: usize, _maximum: Option<usize>) -> weir::Result<bool> {
        Ok(true)
    }
}

/// Sets `expired` and interrupts the engine's guests after `limit`, and exits the process if they do not stop.
pub(crate) fn interrupt_after(engine: Engine, limit: Duration, expired: Arc<AtomicBool>) {
    std::thread::spawn(move || {
        std::thread::sleep(limit);
        expired.store(true, Ordering::Relaxed);
        engine.increment_epoch();
        std::thread::sleep(GRACE);
        let failure = out_of_time(Trap::Interrupt.into(), limit);
        eprintln!("{}", failure.message().unwrap_or_default());
        std::process::exit(failure.status().into());
    });
}

/// Adds the time limit to the error of an interrupted program.
pub(crate) fn out_of_time(error: Error, limit: Duration) -> Failure {
    match error.downcast_ref::<Trap>() {
        Some(Trap::Interrupt) => Failure::Guest(error.context(format!("not done within {} s", limit.as_secs_f64()))),
        _ => Failure::Guest(error),
    }
}
