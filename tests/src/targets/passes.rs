//! Bytes drive the generator of random SSA and choose passes, which keep the meaning of the function.

use super::target::{Target, random_inputs};
use crate::random_ssa::{branches, function, observe};
use crate::rng::Rng;
use bumpalo::Bump;
use weir_jit::Options;
use weir_jit::ir::{Entry, EvalError, parse, print};
use weir_jit::opt::{Pass, passes};
use weir_jit::pipeline::{self, Finished, Form, Phase, Unit};

/// The target.
pub const TARGET: Target = Target { name: "passes", run, seeds: || random_inputs(64, 300) };

/// Passes that run one after the other, at most.
const PASSES: u32 = 6;

fn run(data: &[u8]) {
    let arena = Bump::new();
    // The passes are chosen by the last bytes, so that their choice does not move when the function grows.
    let (head, tail) = data.split_at(data.len().saturating_sub(PASSES as usize + 1));
    let mut rng = Rng::of_bytes(head);
    let make = if rng.one_in(2) { function } else { branches };
    keep_meaning(&print(&make(&arena, &mut rng)), &mut Rng::of_bytes(tail));
}

/// Runs passes that `rng` chooses on the function with this text, which is well formed, and compares the evaluator's results.
///
/// # Panics
/// If they differ, or what a pass leaves is malformed.
pub(super) fn keep_meaning(text: &str, rng: &mut Rng) {
    let arena = Bump::new();
    let read = || parse(&arena, text).expect("a text that was parsed before");
    let func = read();
    // Frame slots of a function that is entered at a loop are a caller's.
    let observed = (func.entry == Entry::Call).then(|| observe(&func, 0));
    let chosen: Vec<&'static Pass> = match rng.below(PASSES + 1) {
        0 => passes::ORDER.to_vec(),
        count => (0..count).map(|_| *rng.pick(passes::ORDER)).collect(),
    };
    let options = Options { verify: true, ..Options::default() };
    let mut unit = Unit::without_module(func, &options);
    let _ = pipeline::run(&mut unit, chosen.iter().copied().map(Phase::of), &mut ()).expect("passes refuse nothing");
    let Finished { form: Form::Ssa(func), .. } = unit.finish() else { panic!("passes end with SSA") };
    let Some(expected) = observed else { return };
    // Runs that do not end are at different places after a number of steps.
    let same = observe(&func, 0).iter().zip(&expected).all(|(a, b)| a == b || b.0 == Err(EvalError::Steps));
    let names: Vec<_> = chosen.iter().map(|pass| pass.name).collect();
    assert!(same, "{names:?} change the meaning of\n{text}\nto that of\n{func}");
}
