//! What the tests of loops on vectors share.

use weir_jit::Options;
use weir_jit::ir::Func;
use weir_jit::opt::vectorise;
use weir_jit::pipeline::{self, Finished, Form, Phase, Unit};

/// Returns the function after the pass `vectorise`, whether or not it pays, and whether the pass changed it.
///
/// # Panics
/// The verifier refuses the result.
pub fn vectorised<'a>(func: Func<'a>) -> (Func<'a>, bool) {
    let options = Options { verify: true, opt_all: true, ..Options::default() };
    let mut unit = Unit::without_module(func, &options);
    let _ = pipeline::run(&mut unit, [Phase::of(&vectorise::PASS)], &mut ()).unwrap();
    let Finished { form: Form::Ssa(func), stats, .. } = unit.finish() else { panic!("the pass is on SSA") };
    (func, stats.changes[0].1 > 0)
}
