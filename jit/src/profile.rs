//! What the interpreter has seen of a function, as plain data: how often control went each way at a branch, and which
//! functions its calls through tables and references called. A snapshot: the function may go on being interpreted meanwhile.

use crate::ir::{Func, Op};

/// A function's profile. Counts stop at [`u32::MAX`]; those of threads that count at once may get lost.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Profile {
    /// Its conditional branches, ascending by pc.
    pub branches: Box<[BranchProfile]>,
    /// Its indirect calls that were executed, ascending by pc.
    pub calls: Box<[CallProfile]>,
}

/// How often control went each way at an instruction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BranchProfile {
    /// Offset of the opcode.
    pub pc: u32,
    /// For `br_if` and its like: taken, not taken. For `if`: into the first arm, to the `else` arm or behind the `end`. For
    /// `br_table`: to each label, the default last.
    pub ways: Box<[u32]>,
}

/// Which functions a `call_indirect`, a `call_ref` or a tail call of these kinds called.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CallProfile {
    /// Offset of the opcode.
    pub pc: u32,
    /// The first few that it called, and how often, the most frequent first: index of a function of the same instance, or `None` for
    /// all those of other instances and of the host.
    pub targets: Box<[(Option<u32>, u32)]>,
    /// Calls of any others.
    pub others: u32,
}

/// A branch that was executed fewer times says nothing.
const MIN_SEEN: u64 = 16;

impl Profile {
    /// Writes the odds into the branches of `func`, which has just been built and still has them as its bytecode does.
    pub fn weigh(&self, func: &mut Func<'_>) {
        for block in func.blocks() {
            let Some(branch) = func.terminator(block).filter(|&last| func.op(last) == Op::Branch) else { continue };
            if let &[first, second] = self.branch(func.inst(branch).pc)
                && u64::from(first) + u64::from(second) >= MIN_SEEN
            {
                func.set_odds(branch, odds(first, second));
            }
        }
    }

    /// How often control went each way at the branch at `pc`; nothing if there is none.
    pub fn branch(&self, pc: u32) -> &[u32] {
        self.branches.binary_search_by_key(&pc, |branch| branch.pc).map_or(&[], |i| &self.branches[i].ways)
    }

    /// What the indirect call at `pc` called, if it was ever executed.
    pub fn call(&self, pc: u32) -> Option<&CallProfile> {
        self.calls.binary_search_by_key(&pc, |call| call.pc).ok().map(|i| &self.calls[i])
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
    use crate::build::{BuildStats, build};
    use crate::ir::{Entry, print};
    use bumpalo::Bump;
    use weir_bytecode::validate;

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
        profile.weigh(&mut func);
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
