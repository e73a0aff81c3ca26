//! The public APIs of two crates, from what rustdoc says of them as JSON, and their differences.

pub mod api;
pub mod compare;
pub mod docs;
pub mod render;
