//! When functions become native code, and how that is made.
//!
//! [`policy`] decides, with every threshold. [`ask`] is the question of a function whose ticks have run out; [`entry`] the state
//! machine of what there is for it; [`install`] compiles and places code; [`publish`] makes it known, and alone changes the words
//! through which it is reached; [`evict`] chooses code to retire, [`reclaim`] frees it; [`queue`] has the threads that compile.
//! [`state`] is what is kept per engine and module, [`listeners`] tell embedder and profiler ([`perf`]), [`unwind`] is what is
//! done about a trap. [`engine`] is the tier as the records and the interpreter know it.
//!
//! The order of locks is at the head of [`reclaim`]. Callbacks of the embedder run with none held.

mod ask;
pub(crate) mod engine;
mod entry;
mod evict;
mod install;
mod listeners;
mod perf;
mod policy;
mod publish;
mod queue;
pub(crate) mod reclaim;
pub(crate) mod state;
#[cfg(test)]
mod tests;
pub(crate) mod unwind;
