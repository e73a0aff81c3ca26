//! What the tests of loops on vectors share.

use weir_jit::Options;
use weir_jit::ir::Func;
use weir_jit::opt::vectorise;
use weir_jit::pipeline::{self, Finished, Form, Phase, Unit};

/// Returns the function after the pass `vectorise`, and whether the pass changed it.
///
/// # Panics
/// The verifier refuses the result.
pub fn vectorised<'a>(func: Func<'a>) -> (Func<'a>, bool) {
    let options = Options { verify: true, ..Options::default() };
    let mut unit = Unit::without_module(func, &options);
    let _ = pipeline::run(&mut unit, [Phase::of(&vectorise::PASS)], &mut ()).unwrap();
    let Finished { form: Form::Ssa(func), stats, .. } = unit.finish() else { panic!("the pass is on SSA") };
    (func, stats.changes[0].1 > 0)
}

/// Returns whether two memories are equal, or, if they have floats, differ at most in the bits of NaNs, which are open.
pub fn same_up_to_nans(floats: bool, a: &[u8], b: &[u8]) -> bool {
    let is_nan = |bytes: &[u8]| match bytes.len() {
        4 => f32::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        _ => f64::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
    };
    let in_nan = |i: usize| {
        [4, 8].into_iter().any(|size| {
            let mut starts = i.saturating_sub(size - 1)..=i.min(a.len() - size);
            starts.any(|start| is_nan(&a[start..start + size]) && is_nan(&b[start..start + size]))
        })
    };
    a == b || floats && a.len() == b.len() && (0..a.len()).filter(|&i| a[i] != b[i]).all(in_nan)
}
