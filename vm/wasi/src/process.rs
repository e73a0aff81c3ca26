//! `proc_*` and `sched_yield`.

use crate::ctx::WasiCtx;
use crate::errno::Errno;
use crate::guest::Guest;
use crate::{Answer, I32Exit};

/// How `proc_exit` ends the guest.
pub(crate) fn exit(status: u32) -> weir::Error {
    I32Exit(status as i32).into()
}

/// Not provided: the guest has no signals, and must not send any to its host.
pub(crate) fn proc_raise(_: &mut WasiCtx, _: &mut Guest<'_>, _signal: u32) -> Answer {
    Err(Errno::Nosys.into())
}

pub(crate) fn sched_yield(_: &mut WasiCtx, _: &mut Guest<'_>) -> Answer {
    std::thread::yield_now();
    Ok(())
}
