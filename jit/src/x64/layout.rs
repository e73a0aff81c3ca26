//! The order in which allocated blocks are emitted.
//!
//! Blocks that only jump are skipped, those that lead into a trap come last. A loop that is tested at its top is rotated, so
//! that its one conditional jump stands at its bottom: `h: test, exit; b; jump h` becomes `jump h; b; h: test, to b`.

use super::code::Code;
use super::insts::Asm;
use std::ops::Range;

/// Where blocks go.
#[derive(Debug)]
pub struct Order {
    /// Blocks in the order of emission.
    pub blocks: Vec<u32>,
    /// For each block the one that a jump to it should go to.
    pub targets: Vec<u32>,
    /// Blocks at the top of an innermost loop.
    pub aligned: Vec<bool>,
}

impl Order {
    /// Decides. `is_empty` says of a block whether it does nothing but jump.
    pub fn of(code: &Code, is_empty: impl Fn(usize) -> bool) -> Order {
        let targets = jump_targets(code, is_empty);
        let kept = |cold: bool| {
            let targets = &targets;
            (0..code.blocks.len() as u32).filter(move |&b| targets[b as usize] == b && code.blocks[b as usize].cold == cold)
        };
        let mut order = Order { blocks: kept(false).collect(), aligned: vec![false; code.blocks.len()], targets: Vec::new() };
        for (i, range) in code.loops.iter().enumerate().rev() {
            let inner: Vec<&Range<u32>> = code.loops[i + 1..].iter().take_while(|inner| inner.end <= range.end).collect();
            order.rotate(code, &targets, range, &inner);
            if inner.is_empty()
                && let Some(&top) = order.blocks.iter().find(|block| range.contains(block))
            {
                order.aligned[top as usize] = true;
            }
        }
        order.blocks.extend(kept(true));
        order.targets = targets;
        order
    }

    fn rotate(&mut self, code: &Code, targets: &[u32], range: &Range<u32>, inner: &[&Range<u32>]) {
        let Some(start) = self.blocks.iter().position(|block| range.contains(block)) else {
            return;
        };
        let len = self.blocks[start..].iter().take_while(|block| range.contains(block)).count();
        let segment = &mut self.blocks[start..start + len];
        let successors = |block: u32| code.blocks[block as usize].succs.iter().map(|&succ| targets[succ as usize]);
        let jumps_back = successors(segment[len - 1]).eq([segment[0]]);
        if !jumps_back {
            return;
        }
        let is_test = |i: usize| {
            let block = segment[i];
            let conditional = code.insts[code.blocks[block as usize].insts.end as usize - 1].op == Asm::Jcc;
            conditional
                && !inner.iter().any(|inner| inner.contains(&block))
                && successors(block).any(|succ| succ == segment[i + 1])
                && successors(block).any(|succ| !range.contains(&succ))
        };
        if let Some(test) = (0..len - 1).find(|&i| is_test(i)) {
            segment.rotate_left(test + 1);
        }
    }
}

/// A cycle of empty blocks, an endless loop, keeps its blocks.
fn jump_targets(code: &Code, is_empty: impl Fn(usize) -> bool) -> Vec<u32> {
    let blocks = code.blocks.len();
    let target = |block: usize| {
        let mut end = block;
        for _ in 0..=blocks {
            if !is_empty(end) {
                return end as u32;
            }
            end = code.blocks[end].succs[0] as usize;
        }
        block as u32
    };
    (0..blocks).map(target).collect()
}
