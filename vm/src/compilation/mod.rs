//! What the tiers that use the compiler share: its options, its requests, and the account of what it did.

pub(crate) mod options;
pub(crate) mod record;
pub(crate) mod request;
