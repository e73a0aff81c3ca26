//! Def-use chains: the definition and all uses of each value. Cost: O(values + arguments).

use weir_jit::analysis::DefBlocks;
use weir_jit::analysis::uses::count_uses;
use weir_jit::ir::{Block, Func, Op, Value};

/// One use: argument `index` of `user`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Use {
    /// The instruction with the argument.
    pub user: Value,
    /// The argument's index.
    pub index: u32,
    /// The block in which, or at whose end, the value is needed: the predecessor for a phi, else the user's block.
    pub block: Block,
    /// Whether `user` is a phi.
    pub by_phi: bool,
}

/// The definitions and uses of a function, which must have no pending replacements.
#[derive(Clone, Debug)]
pub struct Uses {
    def_blocks: DefBlocks,
    starts: Vec<u32>,
    uses: Vec<Use>,
}

impl Uses {
    /// Collects the uses in the blocks of `func`.
    pub fn compute(func: &Func<'_>) -> Uses {
        let mut starts = vec![0; func.num_values() + 1];
        count_uses(func, func.blocks(), |value| value, &mut starts[1..]);
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let nowhere = Use { user: Value(0), index: 0, block: Block::ENTRY, by_phi: false };
        let mut uses = vec![nowhere; starts[func.num_values()] as usize];
        for_each_use(func, |arg, found| {
            uses[next[arg.index()] as usize] = found;
            next[arg.index()] += 1;
        });
        Uses { def_blocks: DefBlocks::compute(func), starts, uses }
    }

    /// The block of `value`, if it is in one.
    pub fn def_block(&self, value: Value) -> Option<Block> {
        self.def_blocks.get(value)
    }

    /// The uses of `value`, in the order of the code.
    pub fn of(&self, value: Value) -> &[Use] {
        &self.uses[self.starts[value.index()] as usize..self.starts[value.index() + 1] as usize]
    }
}

fn for_each_use(func: &Func<'_>, mut found: impl FnMut(Value, Use)) {
    for block in func.blocks() {
        let data = func.block(block);
        for &user in &data.insts {
            let by_phi = func.op(user) == Op::Phi;
            for (i, &arg) in func.args(user).iter().enumerate() {
                let block = if by_phi { data.preds[i] } else { block };
                found(arg, Use { user, index: i as u32, block, by_phi });
            }
        }
    }
}
