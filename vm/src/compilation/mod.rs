//! The parts shared by the tiers that use the compiler: its options, its requests, and the statistics of compilations.

pub(crate) mod options;
pub(crate) mod record;
pub(crate) mod request;
