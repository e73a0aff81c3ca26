//! Compilation of hot functions: when it happens, and how code is installed and removed.
//!
//! [`policy`] decides, and has every threshold. [`tier_up`] handles a function whose ticks have run out; [`entry`] is
//! the state machine of an entry; [`install`] compiles and places code, [`earlier`] that which [`stored`] has of earlier processes, [`ahead`] compiles whole modules,
//! [`fill`] what later processes will use, for which their end waits while it is [`running`]; [`publish`] is the only writer of the pointers
//! to code; [`evict`] chooses code to retire, and [`reclaim`] frees it; [`queue`] has the compiler threads, [`requests`] what waits for them, and
//! [`held`] the modules for which they work. [`state`] is the data kept for each engine and module, [`listeners`] report to the embedder and to a profiler ([`perf`]),
//! [`unwind`] prepares the unwinding of a trap. [`engine`] is the tier as the records and the interpreter see it.
//!
//! The lock order is in [`crate::sys::lock`]. Callbacks of the embedder run without any lock held.

pub(crate) mod ahead;
mod earlier;
pub(crate) mod engine;
mod entry;
mod evict;
mod fill;
mod held;
mod install;
mod listeners;
mod perf;
mod policy;
mod publish;
mod queue;
pub(crate) mod reclaim;
mod requests;
mod running;
pub(crate) mod state;
pub(crate) mod stored;
#[cfg(test)]
mod tests;
pub(crate) mod tier_up;
pub(crate) mod unwind;
