//! Branch probabilities of a function and counts of its tables, from its profile.

use crate::ir::{Func, Op, Probability};
use weir_contract::profile::Profile;

/// Sets the probabilities of the branches of `func`, and the counts of each `br_table`, that were executed [often enough](Profile::SEEN). It
/// must be as construction made it: passes may remove or swap branches, and then an offset no longer identifies the instruction that
/// was counted. This is not checked; wrong probabilities affect the layout but no result.
pub fn weigh(profile: &Profile, func: &mut Func<'_>) {
    for block in func.blocks() {
        let Some(last) = func.terminator(block) else { continue };
        let counts = profile.branch(func.inst(last).pc);
        if counts.iter().copied().map(u64::from).sum::<u64>() < Profile::SEEN {
            continue;
        }
        match (func.op(last), counts) {
            (Op::Branch, &[first, second]) => func.set_probability(last, Some(Probability::of_counts(first, second))),
            (Op::BrTable, counts) if counts.len() == func.block(block).succs.len() => func.set_table_counts(last, counts),
            _ => {}
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
            (block (block (br_table 0 1 (local.get 0)))) (block (block (br_table 0 1 (local.get 1))))
            i32.const 2))";
        let module = validate::parse(wat::parse_str(source).unwrap().into()).unwrap();
        let arena = Bump::new();
        let built = || build(&arena, &module, 0, Entry::Call, &Options::default(), &mut BuildStats::default()).unwrap();
        let branches: Vec<u32> = {
            let func = built();
            let ends = func.blocks().filter_map(|block| func.terminator(block));
            ends.filter(|&last| matches!(func.op(last), Op::Branch | Op::BrTable)).map(|last| func.inst(last).pc).collect()
        };
        let &[first, second, table, rare] = &branches[..] else { panic!("two branches and two tables: {branches:?}") };
        let branch = |pc, counts: [u32; 2]| BranchProfile { pc, counts: counts.into() };
        let branches = [branch(first, [48, 16]), branch(second, [3, 4]), branch(table, [7, 90]), branch(rare, [8, 7])];
        let mut func = built();
        let profile = Profile { branches: branches.into(), calls: [].into() };
        weigh(&profile, &mut func);
        let text = print(&func);
        assert_eq!(text.matches(" p192 ").count(), 1, "{text}");
        assert!(
            text.contains("branch p192 ") && text.contains(": 7, b") && text.contains(": 90]") && !text.contains(": 8,"),
            "{text}"
        );
        assert_eq!(print(&crate::ir::parse(&arena, &text).unwrap()), text);
    }
}
