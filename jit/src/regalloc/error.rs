//! The error of register allocation.

/// The reason why there is no allocation: the code breaks a rule of [`Client`](super::Client).
#[derive(Clone, Debug, thiserror::Error)]
#[error("register allocation: {0}")]
pub struct AllocationError(pub String);
