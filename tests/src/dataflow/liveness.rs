//! The values that are live at the start and end of each block.
//!
//! [`Liveness`] explores the blocks of one value after another, in ascending order, with [`LiveBlocks`], as the
//! allocator does. A value is therefore already in a block's set exactly if it is the set's last element. Cost and
//! memory are proportional to the sets.
//!
//! The argument of a phi is live at the end of the predecessor and not at the start of the phi's block. The phi itself
//! is live from the start of its block but is not in the block's live-in set.
//!
//! [`LiveSets`] is the same as an instance of [`super::solver`], with a bit per value and block.

use super::solver::{BitSet, Direction, GenKill, Problem, Solution, solve};
use super::uses::Uses;
use weir_jit::analysis::Cfg;
use weir_jit::graph::liveness::LiveBlocks;
use weir_jit::ir::{Block, Func, Op, Value};

/// Live values per block. Every set is ascending.
#[derive(Clone, Debug)]
pub struct Liveness {
    live_in: Vec<Vec<Value>>,
    live_out: Vec<Vec<Value>>,
}

impl Liveness {
    /// Finds the live values of `func`, in which no replacement may be pending.
    pub fn compute(func: &Func<'_>) -> Liveness {
        let mut this = Liveness { live_in: vec![Vec::new(); func.num_blocks()], live_out: vec![Vec::new(); func.num_blocks()] };
        let uses = Uses::compute(func);
        let mut live = LiveBlocks::new(func.num_blocks());
        for value in (0..func.num_values() as u32).map(Value) {
            let Some(def_block) = uses.def_block(value) else { continue };
            let used = || uses.of(value).iter();
            used().filter(|used| used.by_phi).for_each(|used| push_once(&mut this.live_out[used.block.index()], value));
            let preds = |block: u32| func.block(Block(block)).preds.iter().map(|pred| pred.0);
            live.explore(def_block.0, used().map(|used| used.block.0), preds, |block, at_end| {
                if block != def_block.0 {
                    this.live_in[block as usize].push(value);
                }
                if at_end {
                    push_once(&mut this.live_out[block as usize], value);
                }
            });
        }
        this
    }

    /// Values live at the start of `block`, phis of the block excluded.
    pub fn live_in(&self, block: Block) -> &[Value] {
        &self.live_in[block.index()]
    }

    /// Values live at the end of `block`, arguments of its successors' phis included.
    pub fn live_out(&self, block: Block) -> &[Value] {
        &self.live_out[block.index()]
    }
}

/// Appends `value` unless it is the last element; no element is greater.
fn push_once(set: &mut Vec<Value>, value: Value) {
    if set.last() != Some(&value) {
        set.push(value);
    }
}

/// Liveness with a bit per block and value.
#[derive(Clone, Debug)]
pub struct LiveSets(Solution<BitSet>);

impl LiveSets {
    /// Solves for `func`, in which no replacement may be pending.
    pub fn compute(func: &Func<'_>, cfg: &Cfg) -> LiveSets {
        let count = func.num_values();
        let mut transfer = GenKill::new(func.num_blocks(), count);
        let mut at_end = vec![BitSet::empty(count); func.num_blocks()];
        for block in func.blocks() {
            let data = func.block(block);
            for &value in data.insts.iter().rev() {
                transfer.kill(block, value.index());
                for (i, arg) in func.args(value).iter().enumerate() {
                    if func.op(value) == Op::Phi {
                        at_end[data.preds[i].index()].insert(arg.index());
                    } else {
                        transfer.generate(block, arg.index());
                    }
                }
            }
        }
        LiveSets(solve(&Live { transfer, at_end, count }, func, cfg))
    }

    /// Values live at the start of `block`, phis of the block excluded.
    pub fn live_in(&self, block: Block) -> &BitSet {
        self.0.at_start(block)
    }

    /// Values live at the end of `block`, arguments of its successors' phis included.
    pub fn live_out(&self, block: Block) -> &BitSet {
        self.0.at_end(block)
    }
}

struct Live {
    transfer: GenKill,
    /// By block, the arguments of its successors' phis.
    at_end: Vec<BitSet>,
    count: usize,
}

impl Problem for Live {
    type Fact = BitSet;
    const DIRECTION: Direction = Direction::Backward;

    fn top(&self) -> BitSet {
        BitSet::empty(self.count)
    }

    fn boundary(&self) -> BitSet {
        self.top()
    }

    fn meet(&self, fact: &mut BitSet, other: &BitSet) {
        fact.unite(other);
    }

    fn transfer(&self, block: Block, fact: &mut BitSet) {
        self.transfer.apply(block, fact);
    }

    fn edge(&self, from: Block, _to: Block, fact: &mut BitSet) {
        fact.unite(&self.at_end[from.index()]);
    }
}
