//! The optimiser: a file or a folder for each pass; [`passes`] has their order.
//!
//! A pass only transforms the function. Its [`Context`] has the analyses, and the rewrite fuel, which stops all
//! rewriting after a given number of rewrites, so that a wrong result can be bisected to one of them. Passes are phases
//! of [`pipeline`](crate::pipeline), which verifies, times and counts them, and switches them off.

#![deny(clippy::wildcard_enum_match_arm, reason = "a new operation must be named by the compiler")]

mod cfg_edit;
pub mod constprop;
pub mod dce;
pub mod dispatch;
pub mod gvn;
pub mod inline;
pub mod load_forwarding;
mod pass;
pub mod passes;
pub mod phis;
pub mod products;
pub mod simplify;
pub mod simplify_cfg;
pub mod threading;
pub mod vectorise;

use crate::ir::Func;
pub use pass::{Analyses, Analysis, Build, Changed, Context, Pass};

/// Runs a pass with the analyses that it needs. Measuring and verifying is left to [`pipeline`](crate::pipeline).
pub fn apply(pass: &Pass, func: &mut Func<'_>, cx: &mut Context<'_>) -> Changed {
    if cx.analyses.compute(func, pass.needs, &cx.meter).is_err() {
        return Changed(0);
    }
    let changed = (pass.run)(func, cx);
    cx.scratch.reset();
    if changed.0 > 0 {
        cx.analyses.forget_all_but(pass.keeps);
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::sandbox::Sandbox;
    use crate::ir::{Block, Entry, Op, Outcome, Type, eval, parse, print};
    use crate::pipeline::{self, Finished, Form, Phase, Unit};
    use crate::request::{CompileStats, Options};
    use bumpalo::Bump;

    /// A function in which every pass has work: constants, an `eqz`, a repeated operation, a branch that goes one way, a
    /// redundant phi.
    const TEXT: &str = "
func 0 (i32) -> i32
b0:
  v0: i32 = param 0
  v1: i32 = const 3
  v2: i32 = add v1, v1
  v3: i32 = add v0, v2
  v8: i32 = xor v3, v0
  branch v2, b1, b2
b1:
  v4: i32 = xor v0, v3
  jump b3
b2:
  jump b3
b3:
  v5: i32 = phi b1: v4, b2: v8
  v6: i32 = mul v5, v3
  v7: i32 = eqz v6
  branch v7, b4, b5
b4:
  return v0
b5:
  return v6
";

    /// `func` after every pass, the counts, and the remaining rewrite fuel.
    fn run<'a>(func: Func<'a>, options: &Options) -> (Func<'a>, CompileStats, Option<u64>) {
        let mut unit = Unit::without_module(func, options);
        let _ = pipeline::run(&mut unit, passes::ORDER.iter().copied().map(Phase::of), &mut ()).unwrap();
        let Finished { form: Form::Ssa(func), stats, rewrites_left, .. } = unit.finish() else { panic!("passes are on SSA") };
        (func, stats, rewrites_left)
    }

    fn optimised(fuel: Option<u64>, off: &[String]) -> (String, CompileStats, Option<u64>) {
        let arena = Bump::new();
        let options = Options { verify: true, passes_off: off.to_vec(), rewrite_fuel: fuel, ..Options::default() };
        let (func, stats, left) = run(parse(&arena, TEXT).unwrap(), &options);
        for (argument, result) in [(1, 42), (0u32.wrapping_sub(6), 0u32.wrapping_sub(6))] {
            let outcome = eval(&func, &mut Sandbox::default(), &[argument.into()], 100);
            assert_eq!(outcome, Ok(Outcome::Return(vec![result.into()])), "{func}");
        }
        (print(&func), stats, left)
    }

    #[test]
    fn passes_reduce_a_function() {
        let (text, stats, _) = optimised(None, &[]);
        let expected = "\
func 0 (i32) -> i32
b0:
  v0: i32 = param 0
  v2: i32 = const 6
  v3: i32 = add v0, v2
  v8: i32 = xor v3, v0
  v6: i32 = mul v8, v3
  branch v6, b5, b4
b4: preds b0
  return v0
b5: preds b0
  return v6
";
        assert_eq!(text, expected);
        assert_eq!((stats.changes.len(), stats.phases.len()), (passes::ORDER.len(), passes::ORDER.len()));
    }

    #[test]
    fn rewrite_fuel_stops_after_any_number_of_rewrites() {
        let (all, _, left) = optimised(Some(1000), &[]);
        let rewrites = 1000 - left.unwrap();
        assert!(rewrites > 4);
        for fuel in 0..=rewrites {
            let (text, _, left) = optimised(Some(fuel), &[]);
            assert_eq!((left, text == all), (Some(0), fuel == rewrites), "{fuel} of {rewrites}: {text}");
        }
    }

    #[test]
    fn passes_can_be_switched_off() {
        let names: Vec<String> = passes::ORDER.iter().map(|pass| pass.name.to_string()).collect();
        let arena = Bump::new();
        let (text, stats, _) = optimised(None, &names);
        assert_eq!((text, stats.changes.len()), (print(&parse(&arena, TEXT).unwrap()), 0));
    }

    /// A long chain of blocks that may each leave to one exit, every second one on a constant. No pass may recurse along the
    /// chain, or look at all of the exit's predecessors for each of them.
    #[test]
    fn long_functions_are_no_harder_than_short_ones() {
        const LENGTH: u32 = 100_000;
        let arena = Bump::new();
        let mut func = Func::new(&arena, 0, Entry::Call, [Type::I32], [Type::I32]);
        for _ in 0..LENGTH + 2 {
            func.create_block();
        }
        let param = func.append(Block::ENTRY, Op::Param, Type::I32, 0, 0, 0, &[]);
        let zero = func.append(Block::ENTRY, Op::Const, Type::I32, 0, 0, 0, &[]);
        let exit = Block(LENGTH + 1);
        for i in 0..LENGTH {
            func.add_edge(Block(i), exit);
            func.add_edge(Block(i), Block(i + 1));
            let condition = match i % 2 {
                0 => func.append(Block(i), Op::Call, Type::I32, 0, 0, 0, &[]),
                _ => zero,
            };
            func.append(Block(i), Op::Branch, Type::Void, 0, 0, 0, &[condition]);
        }
        func.append(Block(LENGTH), Op::Trap, Type::Void, 0, weir_bytecode::Trap::UnreachableCodeReached as u32, 0, &[]);
        let args = vec![param; LENGTH as usize];
        let phi = func.append(exit, Op::Phi, Type::I32, 0, 0, 0, &args);
        func.append(exit, Op::Return, Type::Void, 0, 0, 0, &[phi]);

        let options = Options { verify: true, ..Options::default() };
        let (func, ..) = run(func, &options);
        assert_eq!(func.block(exit).preds.len() as u32, LENGTH / 2);
        assert_eq!(func.args(func.terminator(exit).unwrap()), [param], "the phi is redundant");
        assert!(parse(&arena, &print(&func)).unwrap() == func);
    }
}
