//! Branch probabilities of a function, from its profile.

use crate::ir::{Func, Op, Probability};
use weir_contract::profile::Profile;

/// Sets the probabilities of the branches of `func` that were executed [often enough](Profile::SEEN). It must be as
/// construction made it: passes may remove or swap branches, and then an offset no longer identifies the instruction that
/// was counted. This is not checked; wrong probabilities affect the layout but no result.
pub fn weigh(profile: &Profile, func: &mut Func<'_>) {
    for block in func.blocks() {
        let Some(branch) = func.terminator(block).filter(|&last| func.op(last) == Op::Branch) else { continue };
        if let &[first, second] = profile.branch(func.inst(branch).pc)
            && u64::from(first) + u64::from(second) >= Profile::SEEN
        {
            func.set_probability(branch, Some(Probability::of_counts(first, second)));
        }
    }
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
    fn a_branch_seen_often_enough_has_a_probability() {
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
        let branch = |pc, counts: [u32; 2]| BranchProfile { pc, counts: counts.into() };
        let mut func = built();
        let profile = Profile { branches: [branch(first, [48, 16]), branch(second, [3, 4])].into(), calls: [].into() };
        weigh(&profile, &mut func);
        let text = print(&func);
        assert_eq!(text.matches(" p192 ").count(), 1, "{text}");
        assert!(text.contains("branch p192 "), "{text}");
        assert_eq!(print(&crate::ir::parse(&arena, &text).unwrap()), text);
    }
}
