//! The error of register allocation.

use crate::meter::Ended;

/// The reason why there is no allocation: the code breaks a rule of [`Client`](super::Client), or the compilation ends.
#[derive(Clone, Debug, thiserror::Error)]
#[error("register allocation: {0}")]
pub struct AllocationError(pub String);

impl From<Ended> for AllocationError {
    fn from(_: Ended) -> AllocationError {
        AllocationError("it was stopped".into())
    }
}
