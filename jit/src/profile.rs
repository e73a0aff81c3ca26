//! Branch probabilities of a function, from its profile.

use crate::ir::{Func, Op};
use weir_contract::profile::Profile;

/// A branch that was executed fewer times says nothing.
const MIN_SEEN: u64 = 16;

/// Writes the odds into the branches of `func`, which has just been built and still has them as its bytecode does.
pub fn weigh(profile: &Profile, func: &mut Func<'_>) {
    for block in func.blocks() {
        let Some(branch) = func.terminator(block).filter(|&last| func.op(last) == Op::Branch) else { continue };
        if let &[first, second] = profile.branch(func.inst(branch).pc)
            && u64::from(first) + u64::from(second) >= MIN_SEEN
        {
            func.set_odds(branch, odds(first, second));
        }
    }
}

/// How often of 256 times control goes the first way; never 0 or 256, as the past is not the future.
fn odds(first: u32, second: u32) -> u8 {
    let all = (u64::from(first) + u64::from(second)).max(1);
    (256 * u64::from(first) / all).clamp(1, 255) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::construct::{BuildStats, build};
    use crate::ir::{Entry, print};
    use bumpalo::Bump;
    use weir_bytecode::validate;
    use weir_contract::profile::BranchProfile;

    #[test]
    fn a_branch_seen_often_enough_has_its_odds() {
        let source = "(module (func (param i32 i32) (result i32)
            (block (br_if 0 (local.get 0)) (if (local.get 1) (then nop) (else (return (i32.const 1)))))
            i32.const 2))";
        let module = validate::parse(wat::parse_str(source).unwrap().into()).unwrap();
        let arena = Bump::new();
        let built = || build(&arena, &module, 0, Entry::Call, &Options::default(), &mut BuildStats::default()).unwrap();
        let branches: Vec<u32> = {
            let func = built();
            let ends = func.blocks().filter_map(|block| func.terminator(block));
            ends.filter(|&last| func.op(last) == Op::Branch).map(|last| func.inst(last).pc).collect()
        };
        let &[first, second] = &branches[..] else { panic!("two branches") };
        let ways = |pc, ways: [u32; 2]| BranchProfile { pc, ways: ways.into() };
        let mut func = built();
        let profile = Profile { branches: [ways(first, [48, 16]), ways(second, [3, 4])].into(), calls: [].into() };
        weigh(&profile, &mut func);
        let text = print(&func);
        assert_eq!(text.matches("odds").count(), 1, "{text}");
        assert!(text.contains("branch odds192 "), "{text}");
        assert_eq!(print(&crate::ir::parse(&arena, &text).unwrap()), text);
    }

    #[test]
    fn odds_are_never_certain() {
        assert_eq!(
            [(0, 0), (0, 9), (1, 1), (3, 1), (u32::MAX, 0)].map(|(first, second)| odds(first, second)),
            [1, 1, 128, 192, 255]
        );
    }
}
