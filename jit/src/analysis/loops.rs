//! Natural loops and how they nest.
//!
//! A back edge goes to a block that dominates its source; that block is the header of a loop, which holds whatever
//! reaches the back edge without passing the header. All back edges to one header make one loop. A cycle that is
//! entered at two places (an irreducible one) has no header and is no loop here. Cost: nearly
//! O(edges).

use super::{Cfg, Dominators};
use crate::ir::{Block, Func};

/// One loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loop {
    /// The block through which it is entered.
    pub header: Block,
    /// Index of the nearest loop around it.
    pub parent: Option<u32>,
    /// 1 for an outermost loop.
    pub depth: u32,
}

/// The loops of a function.
#[derive(Clone, Debug)]
pub struct Loops {
    loops: Vec<Loop>,
    innermost: Vec<Option<u32>>,
}

impl Loops {
    /// Finds the loops of `func`.
    pub fn compute(func: &Func<'_>, cfg: &Cfg, dom: &Dominators) -> Loops {
        let mut this = Loops { loops: Vec::new(), innermost: vec![None; func.num_blocks()] };
        let (mut work, mut up) = (Vec::new(), Vec::new());
        // Inner headers come later in reverse postorder, so their loops are complete when an outer one meets them.
        for &header in cfg.order().iter().rev() {
            work.extend(func.block(header).preds.iter().copied().filter(|&pred| dom.dominates(header, pred)));
            if !work.is_empty() {
                this.collect(func, cfg, header, &mut work, &mut up);
            }
        }
        // Outer loops first, as their parents must know their depth before them.
        for i in (0..this.loops.len()).rev() {
            this.loops[i].depth = 1 + this.loops[i].parent.map_or(0, |parent| this.loops[parent as usize].depth);
        }
        this
    }

    /// Makes the loop of `header`, whose back edges come from `work`. `up` has for every loop one around it, or itself.
    fn collect(&mut self, func: &Func<'_>, cfg: &Cfg, header: Block, work: &mut Vec<Block>, up: &mut Vec<u32>) {
        let this = self.loops.len() as u32;
        up.push(this);
        self.loops.push(Loop { header, parent: None, depth: 0 });
        self.innermost[header.index()] = Some(this);
        while let Some(block) = work.pop() {
            let entered = match self.innermost[block.index()] {
                None => {
                    self.innermost[block.index()] = Some(this);
                    block
                }
                Some(inner) => {
                    let outermost = outermost(up, inner);
                    if outermost == this {
                        continue;
                    }
                    up[outermost as usize] = this;
                    self.loops[outermost as usize].parent = Some(this);
                    self.loops[outermost as usize].header
                }
            };
            work.extend(func.block(entered).preds.iter().copied().filter(|&pred| cfg.is_reachable(pred)));
        }
    }

    /// Every loop; outer loops come after the loops they hold.
    pub fn all(&self) -> &[Loop] {
        &self.loops
    }

    /// The innermost loop that holds `block`.
    pub fn innermost(&self, block: Block) -> Option<&Loop> {
        self.innermost[block.index()].map(|i| &self.loops[i as usize])
    }

    /// How many loops hold `block`.
    pub fn depth(&self, block: Block) -> u32 {
        self.innermost(block).map_or(0, |innermost| innermost.depth)
    }

    /// Whether `block` is the header of a loop.
    pub fn is_header(&self, block: Block) -> bool {
        self.innermost(block).is_some_and(|innermost| innermost.header == block)
    }

    /// Whether `outer`, a loop's header, is the header of a loop that holds `block`.
    pub fn contains(&self, outer: Block, block: Block) -> bool {
        let mut at = self.innermost(block);
        while let Some(found) = at {
            if found.header == outer {
                return true;
            }
            at = found.parent.map(|parent| &self.loops[parent as usize]);
        }
        false
    }
}

/// The outermost loop, of those found so far, around loop `inner`; halves the way to it.
fn outermost(up: &mut [u32], mut inner: u32) -> u32 {
    while up[inner as usize] != inner {
        up[inner as usize] = up[up[inner as usize] as usize];
        inner = up[inner as usize];
    }
    inner
}
