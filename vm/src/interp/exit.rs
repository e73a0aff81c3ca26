//! How an activation ends.

use weir_contract::InstanceCtx;

/// How an activation ends.
#[derive(Debug)]
pub(crate) enum Exit {
    /// The results are at the `fp` that [`run`](super::run()) was given.
    Return,
    /// The reason is in [`StoreRecord::failure`](crate::records::store::StoreRecord::failure).
    Trap,
    /// With native code, which whoever called [`run`](super::run()) now has to enter, with nothing of this activation left behind.
    /// Its results, which are those that [`run`](super::run()) was asked for, belong at `args`, which is the `fp` that [`run`](super::run()) was given.
    Dispatch {
        /// The function it belongs to.
        func: u32,
        /// What to run it in.
        instance: *mut InstanceCtx,
        /// Its address.
        code: *const u8,
        /// The arguments; for an OSR body, the frame.
        args: *mut u64,
        /// Whether it is an OSR body.
        osr: bool,
    },
}
