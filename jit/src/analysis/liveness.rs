//! Which values are live at the edges of each block.
//!
//! By exploring paths backwards from each use to the definition, value by value in ascending order (Boissinot,
//! Brandner, Darte, Dupont de Dinechin, Rastello, "Computing Liveness Sets for SSA-Form Programs", 2011): a value is
//! already in a block's set exactly if it is the set's last element. Cost and memory are proportional to the sets
//! computed, where a bit per value and block would be quadratic.
//!
//! The argument of a phi is live at the end of the predecessor and not at the start of the phi's block; the phi's own
//! value is live from the start of its block but not in its live-in set.

use crate::ir::{Block, Func, Op, Value};

/// Live values per block. Every set is ascending.
#[derive(Clone, Debug)]
pub struct Liveness {
    live_in: Vec<Vec<Value>>,
    live_out: Vec<Vec<Value>>,
}

impl Liveness {
    /// Finds what is live in `func`, in which no replacement may be pending.
    pub fn compute(func: &Func<'_>) -> Liveness {
        let mut this = Liveness { live_in: vec![Vec::new(); func.num_blocks()], live_out: vec![Vec::new(); func.num_blocks()] };
        let mut defined_in = vec![Block::ENTRY; func.num_values()];
        for block in func.blocks() {
            for &value in &func.block(block).insts {
                defined_in[value.index()] = block;
            }
        }
        let (starts, uses) = uses_by_value(func);
        let mut work = Vec::new();
        for value in (0..func.num_values() as u32).map(Value) {
            let home = defined_in[value.index()];
            for &used in &uses[starts[value.index()] as usize..starts[value.index() + 1] as usize] {
                match used {
                    Use::In(block) => this.live_into(func, block, value, home, &mut work),
                    Use::AtEnd(block) => {
                        push_once(&mut this.live_out[block.index()], value);
                        this.live_into(func, block, value, home, &mut work);
                    }
                }
            }
        }
        this
    }

    /// Makes `value`, defined in `home`, live from there to the start of `block`.
    fn live_into(&mut self, func: &Func<'_>, block: Block, value: Value, home: Block, work: &mut Vec<Block>) {
        work.push(block);
        while let Some(block) = work.pop() {
            if block == home || !push_once(&mut self.live_in[block.index()], value) {
                continue;
            }
            for &pred in &func.block(block).preds {
                push_once(&mut self.live_out[pred.index()], value);
                work.push(pred);
            }
        }
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

/// Appends `value`, which is at least the last element, unless it is the last element.
fn push_once(set: &mut Vec<Value>, value: Value) -> bool {
    let new = set.last() != Some(&value);
    if new {
        set.push(value);
    }
    new
}

#[derive(Clone, Copy)]
enum Use {
    /// By an instruction of this block.
    In(Block),
    /// By a phi, at the end of this predecessor of its block.
    AtEnd(Block),
}

/// All uses, those of value `v` in the range `starts[v]..starts[v + 1]`.
fn uses_by_value(func: &Func<'_>) -> (Vec<u32>, Vec<Use>) {
    let mut starts = vec![0; func.num_values() + 1];
    for_each_use(func, |value, _| starts[value.index() + 1] += 1);
    for i in 1..starts.len() {
        starts[i] += starts[i - 1];
    }
    let mut next = starts.clone();
    let mut uses = vec![Use::In(Block::ENTRY); starts[func.num_values()] as usize];
    for_each_use(func, |value, used| {
        uses[next[value.index()] as usize] = used;
        next[value.index()] += 1;
    });
    (starts, uses)
}

fn for_each_use(func: &Func<'_>, mut found: impl FnMut(Value, Use)) {
    for block in func.blocks() {
        let data = func.block(block);
        for &user in &data.insts {
            for (i, &arg) in func.args(user).iter().enumerate() {
                found(arg, if func.op(user) == Op::Phi { Use::AtEnd(data.preds[i]) } else { Use::In(block) });
            }
        }
    }
}
