//! A module with the state of an instance as its initial state.
//!
//! [`state`] reads the instance, [`encode`] is a function from module and state to the bytes of the new module, and `ranges` chooses the
//! data segments of a memory.

pub(crate) mod encode;
pub(crate) mod error;
mod names;
mod ranges;
pub(crate) mod state;
