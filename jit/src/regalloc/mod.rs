//! Register allocation. A leaf: it knows registers, operands and blocks, and no instruction.
//!
//! [`client`] is what an allocator may ask about the code. The allocator is a linear scan on SSA form with splitting:
//!
//! 1. `intervals`: where each value is mentioned, and during which ranges it is live; `costs`: what a copy costs where;
//! 2. `scan`: cuts intervals into `segments` and gives each a register or leaves it in memory, with a `register_file` for each
//!    register;
//! 3. `resolve`: copies where a value changes its place, put into order by `parallel`, and `slots` for what is in memory.
//!
//! [`checker`] proves an answer right. [`regalloc2`] is the crate `regalloc2` behind the same questions, for comparison.
//! No step is recursive. Time and memory are proportional to the code, its live ranges and the splits, with a logarithm for
//! searches; the tests in `scale` hold it to that.

pub mod checker;
pub mod client;
mod costs;
mod intervals;
mod locations;
mod parallel;
mod point;
#[cfg(any(test, feature = "regalloc2"))]
pub mod regalloc2;
mod register_file;
mod resolve;
mod scan;
mod segments;
mod slots;
#[cfg(test)]
mod tests;

pub use client::{Assignment, Class, Client, Constraint, Move, Operand, Place, Position, Reg, RegSet, Role, SlotWidth};

/// Why there is no allocation: the code breaks a rule of [`Client`].
#[derive(Clone, Debug, thiserror::Error)]
#[error("register allocation: {0}")]
pub struct Impossible(String);

/// Which allocator.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Allocator {
    /// Weir's own.
    #[default]
    Own,
    /// The crate `regalloc2`.
    Regalloc2,
}

/// Allocates. With `verify`, proves the result right.
///
/// # Errors
/// [`Impossible`], when an instruction's constraints contradict each other or the code is not SSA.
///
/// # Panics
/// With `verify`, if the result is wrong.
pub fn allocate(client: &impl Client, allocator: Allocator, verify: bool) -> Result<Assignment, Impossible> {
    let assignment = match allocator {
        Allocator::Own => own(client)?,
        #[cfg(any(test, feature = "regalloc2"))]
        Allocator::Regalloc2 => regalloc2::allocate(client, verify)?,
        #[cfg(not(any(test, feature = "regalloc2")))]
        Allocator::Regalloc2 => return Err(Impossible("this build does not have the crate regalloc2".into())),
    };
    if verify && let Err(wrong) = checker::check(client, &assignment) {
        panic!("the allocation is wrong: {wrong}");
    }
    Ok(assignment)
}

fn own(client: &impl Client) -> Result<Assignment, Impossible> {
    let costs = costs::Costs::of(client);
    let intervals = intervals::Intervals::of(client, &costs.frequency)?;
    let segments = scan::scan(client, &intervals, &costs)?;
    Ok(resolve::resolve(client, &intervals, &costs, &segments))
}
