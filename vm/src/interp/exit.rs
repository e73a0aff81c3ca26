//! The ways in which an activation ends.

use weir_contract::InstanceCtx;

/// The way in which an activation ends.
#[derive(Debug)]
pub(crate) enum Exit {
    /// The results are at the `fp` that was passed to [`run`](super::run()).
    Return,
    /// The reason is in [`StoreRecord::failure`](crate::records::store::StoreRecord::failure).
    Trap,
    /// Native code continues: the caller of [`run`](super::run()) has to enter it. Nothing of this activation is left
    /// on the stack. The results of the code are those of this activation, and belong at `args`, which is the `fp` that
    /// was passed to [`run`](super::run()).
    Dispatch {
        /// The function of the code.
        func: u32,
        /// The instance in which it runs.
        instance: *mut InstanceCtx,
        /// The address of the code.
        code: *const u8,
        /// The arguments; for code that is entered at a loop, the frame.
        args: *mut u64,
        /// Whether the code is entered at a loop.
        osr: bool,
    },
}
