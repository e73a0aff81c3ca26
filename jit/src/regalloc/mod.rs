//! Register allocation. It handles registers, operands and blocks, and depends on no instruction set.
//!
//! [`client`] is the interface through which an allocator sees the code. [`allocate`] is a linear scan on SSA form with splitting:
//!
//! 1. `intervals`: the uses and the live ranges of each value; `costs`: the cost of a copy at each point;
//! 2. `scan`: splits intervals into `segments` and, in the order of a `queue`, gives each a register or leaves it in
//!    memory, with a timeline (`register_file`) for each register;
//! 3. `placement`: the blocks in which a value that is partly in memory is in its register;
//! 4. `resolve`: copies where a value changes its place, ordered by `parallel`, and `slots` for values in memory.
//!
//! [`checker`] proves an allocation correct. [`regalloc2`] allocates with the crate of this name, through the same
//! interface, for comparison. No step is recursive. Time and memory are proportional to the code, its live ranges and
//! the splits, times a logarithm for searches; the tests in `scale` check this.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new constraint or place must be named by the compiler")]

pub mod checker;
pub mod client;
mod copies;
mod costs;
mod error;
mod intervals;
mod locations;
mod parallel;
mod placement;
mod point;
mod queue;
#[cfg(any(test, feature = "regalloc2"))]
pub mod regalloc2;
mod register_file;
mod resolve;
mod scan;
mod segments;
mod slots;
#[cfg(test)]
mod tests;

use crate::meter::Meter;
pub use client::{Assignment, Class, Client, Constraint, Move, Operand, Place, Position, Reg, RegSet, Role, SlotWidth};
pub use error::AllocationError;

/// Allocates by linear scan.
///
/// # Errors
/// [`AllocationError`] if an instruction's constraints contradict each other, if the code is not SSA, or if there are no steps left.
pub fn allocate(client: &impl Client, meter: &Meter<'_>) -> Result<Assignment, AllocationError> {
    let costs = costs::Costs::of(client);
    let intervals = intervals::Intervals::of(client, &costs, meter)?;
    let mut segments = scan::scan(client, &intervals, &costs, meter)?;
    placement::improve(client, &intervals, &costs, &mut segments, meter)?;
    resolve::resolve(client, &intervals, &costs, &segments, meter)
}
