//! Vectorisation: counted loops of one block, or of blocks with arms, run on vectors of 256 bits.
//!
//! ```text
//!             b1 (the loop's entry edge)
//! b0 → b1     check: how many rounds are there, do they fit, are the groups of accesses apart → else b1
//!     ↺       vector loop: loads, operations and stores of eight rounds at once
//!             exit: inductions and reductions as after these rounds → b1, which does the rest
//! ```
//!
//! The original loop stays as it is. It is the remainder, because the vector loop leaves it at least one round, and all that
//! the check refuses. So every trap, and every store before a trap, happens in code as it was written: in the rounds of the
//! vector loop no access is out of bounds, no address wraps around, and there is enough fuel.
//!
//! - **Bounds.** If a trip would leave the memory, the vector loop runs the rounds that fit.
//! - **Order.** All loads of a round of the vector loop come before all its stores. A pair of groups of accesses, one with stores,
//!   must be apart in each such round, or the loads must be ahead of the stores.
//! - **Fuel** is checked for all rounds and charged in each round, at its head, so that a poll sees what it would see in the
//!   original loop.
//! - **Polls.** The head of the vector loop compares the epoch with the deadline. If the host must be called, the original loop does
//!   it: it goes on from that round, because the host may change memory, fuel, or the size of the memory.
//! - **Lanes** have one width in a loop, the least that is exact. Numbers in memory may be narrower, or parts of elements: see the
//!   files `pack` and `emit`.
//! - **Arms** of branches are taken in every round of the vector loop, and their results selected; see the file `flatten`.
//! - **Floats.** Each operation of the original loop is done, on the same operands; there are no reductions of floats.
//!
//! It is the last pass: it adds code that no other pass needs to simplify, and works best on what the others leave. Cost: O(s) in the
//! size of blocks that are loops and have at most `MAX_BLOCK` instructions, for each access of the block.

mod bounds;
mod emit;
mod flatten;
mod pack;
mod plan;
mod precheck;
mod work;

use super::pass::{Changed, Context, Pass};
use crate::ir::{Block, Func};
use work::Allowed;

/// Vectorisation of counted loops.
pub const PASS: Pass = Pass { name: "vectorise", run, needs: &[], keeps: &[] };

/// A loop is left as it is if the profile says that it makes fewer rounds on average.
const MIN_ROUNDS: f32 = 16.0;

fn run(func: &mut Func<'_>, cx: &Context<'_>) -> Changed {
    let mut changed = 0;
    if !cx.long_vectors {
        return Changed(0);
    }
    let allowed = Allowed { module: cx.module, floats: !cx.options.canonical_nans };
    for latch in func.blocks() {
        let Some(head) = head(func, latch) else { continue };
        if !(cx.options.opt_all || pays(func, latch, head)) {
            continue;
        }
        if head == latch {
            if let Some(plan) = plan::plan(func, allowed, head).filter(|_| cx.spend()) {
                emit::emit(func, cx.module, &plan, head, plan.entry);
                changed += 1;
            }
        } else if let Some(flat) = flatten::flatten(func, head, latch) {
            if let Some(plan) = plan::plan(func, allowed, flat.block).filter(|_| cx.spend()) {
                emit::emit(func, cx.module, &plan, head, flat.entry);
                changed += 1;
            }
            flatten::remove(func, flat.block);
        }
    }
    Changed(changed)
}

/// The head of the loop that ends with `latch`, if the loop is one block or a sequence of blocks with arms.
fn head(func: &Func<'_>, latch: Block) -> Option<Block> {
    let leads = |head: &Block| *head == latch || flatten::is_sequence(func, *head, latch);
    func.block(latch).succs.iter().copied().find(leads)
}

/// Whether the loop makes enough rounds, as far as it is known.
fn pays(func: &Func<'_>, latch: Block, head: Block) -> bool {
    let Some(probability) = func.terminator(latch).and_then(|branch| func.inst(branch).probability) else { return true };
    let repeats = if func.block(latch).succs[0] == head { probability } else { probability.complement() };
    1.0 - repeats.as_f32() <= 1.0 / MIN_ROUNDS
}
