//! `proc_*` and `sched_yield`.

use crate::ctx::WasiCtx;
use crate::errno::Errno;
use crate::guest::Guest;
use crate::outcome::{Failure, I32Exit, Outcome};
use crate::sys;

/// Returns the error with which `proc_exit` ends the guest.
pub(crate) fn exit(status: u32) -> weir::Error {
    I32Exit(status as i32).into()
}

/// Performs the default action of a signal: the guest has no handlers, and its signals are not the host's.
pub(crate) fn proc_raise(_: &mut WasiCtx, _: &mut Guest<'_>, signal: u32) -> Outcome {
    match signal {
        NONE | CHILD | CONTINUE | URGENT | WINDOW_CHANGED => Ok(()),
        // A stopped guest could not be continued.
        STOP..=TERMINAL_OUTPUT => Err(Errno::Notsup.into()),
        _ if signal > LAST => Err(Errno::Inval.into()),
        _ => Err(Failure::End(I32Exit(ENDED_BY_SIGNAL + posix_number(signal)).into())),
    }
}

/// Numbers of `signal`.
const NONE: u32 = 0;
const CHILD: u32 = 16;
const CONTINUE: u32 = 17;
const STOP: u32 = 18;
const TERMINAL_OUTPUT: u32 = 21;
const URGENT: u32 = 22;
const WINDOW_CHANGED: u32 = 27;
const LAST: u32 = 30;

/// The offset that shells add to the number of the signal that ended a program.
const ENDED_BY_SIGNAL: i32 = 128;

/// Converts to the number on Linux, which reserves signal 16; WASI does not.
fn posix_number(signal: u32) -> i32 {
    if signal < CHILD { signal as i32 } else { signal as i32 + 1 }
}

pub(crate) fn sched_yield(_: &mut WasiCtx, _: &mut Guest<'_>) -> Outcome {
    sys::thread::yield_now();
    Ok(())
}
