//! Vectorisation: counted loops of one block, or of blocks with arms, run on vectors of 256 bits.
//!
//! ```text
//!             b1 (the loop's entry edge)
//! b0 → b1     check: how many rounds are there, do they fit, are the groups of accesses apart → else b1
//!     ↺       vector loop: loads, operations and stores of eight rounds at once
//!             done: has the loop ended with this round? → what follows b1, with the results of the loop
//!             exit: inductions and reductions as after these rounds → b1, which does the rest
//! ```
//!
//! The original loop stays as it is. It makes the rounds that are left, and all that the check refuses. If not all results of the loop
//! can be told without it (see the file `ending`), at least one round is left to it. So every trap, and every store before a trap,
//! happens in code as it was written: in the rounds of the vector loop no access is out of bounds, no address wraps around, and there is
//! enough fuel.
//!
//! - **Bounds.** If an element that the loop would access in one of the rounds for which there is fuel is beyond the memory, the loop runs as it is.
//! - **Order.** All loads of a round of the vector loop come before all its stores. A pair of groups of accesses, one with stores,
//!   must be apart in each such round, or the loads must be ahead of the stores.
//! - **Fuel** is checked for all rounds and charged in each round, at its head, so that a poll sees what it would see in the
//!   original loop.
//! - **Polls.** The head of the vector loop compares the epoch with the deadline. If the host must be called, the original loop does
//!   it: it goes on from that round, because the host may change memory, fuel, or the size of the memory.
//! - **Lanes** have one width in a loop, the least that is exact. Numbers in memory may be narrower, or parts of elements: see the
//!   files `pack` and `emit`.
//! - **Arms** of branches are taken in every round of the vector loop, and their results selected; see the file `flatten`.
//! - **Pairs.** The producer's own vectors of 128 bits are lanes of 16 bytes. Their instructions are the same on each half of 256 bits.
//! - **Floats.** Each operation of the original loop is done, on the same operands; there are no reductions of floats.
//!
//! It is the last pass, and works best on what the others leave. Those that remove branches on constants, redundant phis and dead code run
//! again on a function in which it has made a loop; their rewrites are not counted as its own. Cost: O(s) in the size of blocks that are loops and have at most
//! `MAX_BLOCK` instructions, for each access of the block, and of these passes if a loop was vectorised.

mod bounds;
mod demand;
mod emit;
mod ending;
mod flatten;
mod pack;
mod plan;
mod precheck;
mod used_bytes;
mod work;

use super::pass::{Changed, Context, Pass};
use super::{cfg_edit, dce, phis, simplify_cfg};
use crate::ir::{Block, Func};
use ending::Outer;
use plan::{MOST_COPIES, Plan};
use work::Allowed;

/// Vectorisation of counted loops.
pub const PASS: Pass = Pass { name: "vectorise", run, needs: &[], keeps: &[] };

/// A loop is left as it is if the profile says that on average it makes fewer copies of what the producer has unrolled. Those of 16 copies stay
/// above it: probabilities are rounded, and a profile that is taken while the loop runs lacks the rounds to come.
const MIN_COPIES: u64 = 14;

fn run(func: &mut Func<'_>, cx: &Context<'_>) -> Changed {
    let mut changed = 0;
    if !cx.long_vectors {
        return Changed(0);
    }
    let allowed = Allowed { module: cx.module, floats: !cx.options.canonical_nans };
    // The vector loops that this pass makes use no more values of other loops than those did.
    let mut outer = None;
    for latch in func.blocks() {
        if !cx.goes_on(1) {
            break;
        }
        let Some(head) = head(func, latch) else { continue };
        let before = func.num_values();
        let rounds = if cx.options.opt_all { f32::INFINITY } else { rounds(func, latch, head) };
        if rounds < MIN_COPIES as f32 / MOST_COPIES {
            continue;
        }
        let pays = |plan: &Plan| {
            let enough = rounds * plan.layout.unrolled as f32 >= plan.layout.copies(MIN_COPIES) as f32;
            enough && (cx.options.opt_all || plan.work.pays(plan.layout)) && cx.spend()
        };
        if head == latch {
            let outer = outer.get_or_insert_with(|| Outer::of(func));
            if let Some(plan) = plan::plan(func, allowed, head, Some(outer)).filter(pays) {
                emit::emit(func, cx.module, &plan, head, plan.entry);
                changed += 1;
            }
        } else if let Some(flat) = flatten::flatten(func, head, latch) {
            if let Some(plan) = plan::plan(func, allowed, flat.block, None).filter(pays) {
                emit::emit(func, cx.module, &plan, head, flat.entry);
                changed += 1;
            }
            cfg_edit::empty(func, flat.block);
        }
        if !cx.goes_on(func.block(latch).insts.len() + func.num_values() - before) {
            break;
        }
    }
    if changed > 0 && cx.goes_on(0) {
        // Numbers of rounds that are constants decide branches of the check.
        for pass in [&simplify_cfg::PASS, &phis::PASS, &dce::PASS].into_iter().filter(|pass| !cx.is_off(pass)) {
            (pass.run)(func, cx);
        }
    }
    Changed(changed)
}

/// The head of the loop that ends with `latch`, if the loop is one block or a sequence of blocks with arms. Construction makes heads before
/// the other blocks of their loops, so that most edges are seen to be no back edges by their numbers.
fn head(func: &Func<'_>, latch: Block) -> Option<Block> {
    let leads = |head: &Block| *head == latch || head.0 < latch.0 && flatten::is_sequence(func, *head, latch);
    func.block(latch).succs.iter().copied().find(leads)
}

/// The number of rounds of the loop on average; infinite if it is not known.
fn rounds(func: &Func<'_>, latch: Block, head: Block) -> f32 {
    let Some(probability) = func.terminator(latch).and_then(|branch| func.inst(branch).probability) else { return f32::INFINITY };
    let repeats = if func.block(latch).succs[0] == head { probability } else { probability.complement() };
    1.0 / (1.0 - repeats.as_f32())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse;
    use crate::pipeline::{self, Finished, Form, Phase, Unit};
    use crate::request::Options;
    use bumpalo::Bump;

    /// A loop whose selection depends on a ladder of conditions, each step of which uses both results of the step before twice.
    fn ladder(steps: u32) -> String {
        let mut text = String::from(
            "func 0 (i32, i32, i32)\nb0:\n v0: i32 = param 0\n v1: i32 = param 1\n v2: i32 = param 2\n v3: i32 = const 4
 v4: i32 = const -1\n jump b1\nb1:\n v5: i32 = phi b0: v0, b1: v6\n v7: i32 = phi b0: v2, b1: v8\n v9: i32 = load v5
 v10: i32 = lt_s v9, v1\n v11: i32 = gt_s v9, v2\n",
        );
        let (mut a, mut b) = (10, 11);
        for step in 0..steps {
            let first = 12 + 4 * step;
            let [c, d, both, either] = [0, 1, 2, 3].map(|i| first + i);
            text += &format!(" v{c}: i32 = eqz v{a}\n v{d}: i32 = eqz v{b}\n");
            text += &format!(" v{both}: i32 = and v{c}, v{d}\n v{either}: i32 = or v{c}, v{d}\n");
            (a, b) = (both, either);
        }
        let last = 12 + 4 * steps;
        text += &format!(" v{last}: i32 = and v{a}, v{b}\n v{}: i32 = select v{last}, v9, v1\n", last + 1);
        text += &format!(
            " store v5, v{}\n v6: i32 = add v5, v3\n v8: i32 = add v7, v4\n branch v8, b1, b2\nb2:\n return\n",
            last + 1
        );
        text
    }

    #[test]
    fn shared_conditions_have_one_mask() {
        let values = |steps: u32| {
            let arena = Bump::new();
            let options = Options { verify: true, ..Options::default() };
            let mut unit = Unit::without_module(parse(&arena, &ladder(steps)).unwrap(), &options);
            let _ = pipeline::run(&mut unit, [Phase::of(&PASS)], &mut ()).unwrap();
            let Finished { form: Form::Ssa(func), stats, .. } = unit.finish() else { panic!("the pass is on SSA") };
            assert_eq!(stats.changes[0].1, 1, "the loop is vectorised");
            func.num_values()
        };
        let (short, long) = (values(5), values(25));
        assert!(long < short + 20 * 20, "{short} values, {long} values");
    }

    #[test]
    fn a_loop_of_sixteen_copies_is_vectorised_though_its_count_is_rounded() {
        let vectorised = |probability: u32| {
            let (arena, options) = (Bump::new(), Options { verify: true, ..Options::default() });
            let text = format!(
                "func 0 (i32, i32)\nb0:\n v0: i32 = param 0\n v1: i32 = param 1\n v2: i32 = const 8\n v3: i32 = const 1\n jump b1\nb1:
 v4: i32 = phi b0: v0, b1: v9\n v5: i32 = load v4\n v6: i32 = add v5, v3\n store v4, v6\n v7: i32 = load v4 +4
 v8: i32 = add v7, v3\n store v4 +4, v8\n v9: i32 = add v4, v2\n v10: i32 = lt_u v9, v1
 branch p{probability} v10, b1, b2\nb2:\n return\n"
            );
            let mut unit = Unit::without_module(parse(&arena, &text).unwrap(), &options);
            let _ = pipeline::run(&mut unit, [Phase::of(&PASS)], &mut ()).unwrap();
            let Finished { stats, .. } = unit.finish();
            stats.changes[0].1
        };
        // Eight rounds are 224 of 256.
        assert_eq!([224, 223, 222].map(vectorised), [1, 1, 1]);
        assert_eq!([216, 128].map(vectorised), [0, 0]);
    }
}
