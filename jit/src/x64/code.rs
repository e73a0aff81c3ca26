//! A function as machine instructions in blocks, and its side of the conversation with the register allocator.

use super::abi;
use super::flow::Blocks;
use super::insts::{Asm, Inst};
use crate::regalloc::{Class, Operand, Reg, RegSet};
use smallvec::SmallVec;
use std::ops::Range;
use weir_contract::Helper;

/// What a block defines or passes on: mostly little.
pub type Regs = SmallVec<[Reg; 4]>;

/// The registers of a call, a return or the function's entry, and the rest of what those need.
#[derive(Clone, Debug)]
pub struct RegList {
    /// Read, each in its register.
    pub uses: Vec<(Reg, Reg)>,
    /// Written, each in its register.
    pub defs: Vec<(Reg, Reg)>,
    /// Destroyed besides.
    pub clobbers: RegSet,
    /// Whom it calls.
    pub target: Target,
    /// Whether the pinned register is to be restored behind it.
    pub restore: bool,
}

/// Whom a call calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// Nobody: it is no call.
    None,
    /// This very code.
    Itself,
    /// A function of this module, through its cell.
    Cell(u32),
    /// The function whose `FuncRef` or `TableEntry` is at [`abi::CALLEE`].
    Reference,
    /// A function of the runtime.
    Helper(Helper),
}

/// A basic block: ranges in [`Code`]'s pools.
#[derive(Clone, Debug, Default)]
pub struct CodeBlock {
    /// Its instructions.
    pub insts: Range<u32>,
    /// Its successors, as its last instruction orders them.
    pub succs: Blocks,
    /// Its predecessors, one entry per edge.
    pub preds: Blocks,
    /// Registers it defines at its head.
    pub params: Regs,
    /// What it passes to its only successor.
    pub args: Regs,
    /// Not expected to be executed.
    pub cold: bool,
    /// How much of what comes here goes on to the first successor, if that was seen.
    pub odds: Option<f32>,
}

/// How often a loop is assumed to go round.
const LOOP_TRIPS: f32 = 8.0;
/// Loops nested deeper are assumed to be executed as often as this.
const MAX_DEPTH: i32 = 5;
/// How much rarer a cold block is than what is around it.
const COLD_ODDS: f32 = 256.0;
/// What is seen to be executed less often than this, as a share of what is around it, is cold.
const COLD_SHARE: f32 = 1.0 / 64.0;

/// A function as machine instructions.
#[derive(Debug, Default)]
pub struct Code {
    /// All instructions, block after block.
    pub insts: Vec<Inst>,
    /// Blocks, the entry first, loops contiguous.
    pub blocks: Vec<CodeBlock>,
    /// Loops as ranges of blocks, each with its head first; properly nested, outer before inner.
    pub loops: Vec<Range<u32>>,
    /// Register lists that instructions name by index.
    pub lists: Vec<RegList>,
    /// Targets of jump tables, as indices into the block's successors; the default is the last successor.
    pub tables: Vec<Vec<u32>>,
    /// Constants in memory.
    pub pool: Vec<u8>,
    /// How many virtual registers there are.
    pub num_regs: u32,
    /// A register that holds memory 0's base throughout and is not the allocator's.
    pub pinned_base: Option<Reg>,
    /// Whether it calls anything.
    pub calls: bool,
    /// Whether a call may come back with another instance in the pinned register.
    pub restores: bool,
    /// Whether it must not fault: see [`Options::signals`](crate::request::Options::signals).
    pub raises: bool,
    /// Offset of the function's first Wasm instruction.
    pub pc: u32,
    frequency: Vec<f32>,
    operands: Vec<Operand>,
    operand_starts: Vec<u32>,
}

impl Code {
    /// No code.
    pub fn new(pinned_base: Option<Reg>) -> Code {
        Code { pinned_base, ..Code::default() }
    }

    /// A new virtual register.
    pub fn new_reg(&mut self, class: Class) -> Reg {
        let reg = Reg::new_virtual(class, self.num_regs);
        self.num_regs += 1;
        reg
    }

    /// A new virtual register for a vector.
    pub fn new_wide_reg(&mut self) -> Reg {
        let reg = Reg::new_wide(self.num_regs);
        self.num_regs += 1;
        reg
    }

    /// Offset in the pool of a constant of `width` bytes, 4, 8 or 16.
    pub fn constant(&mut self, bits: u128, width: usize) -> u32 {
        let bytes = &bits.to_le_bytes()[..width];
        if let Some(found) = self.pool.chunks_exact(width).position(|chunk| chunk == bytes) {
            return (found * width) as u32;
        }
        self.pool.resize(self.pool.len().next_multiple_of(width), 0);
        self.pool.extend_from_slice(bytes);
        (self.pool.len() - width) as u32
    }

    fn allocatable(&self, set: RegSet) -> RegSet {
        self.pinned_base.map_or(set, |base| set.without(base))
    }

    /// Collects for the allocator what it asks for.
    pub fn prepare(&mut self) {
        self.estimate_frequency();
        self.collect_operands();
    }

    /// Every loop goes round [`LOOP_TRIPS`] times, cold blocks are executed hardly ever. More of what was seen than which blocks are
    /// cold is not asked for: weights in proportion made as many programs slower as faster (`fib` by a third, `chacha20` by 8 %),
    /// and so did loops that go round as often as seen.
    fn estimate_frequency(&mut self) {
        let mut depth = vec![0i32; self.blocks.len() + 1];
        for range in &self.loops {
            depth[range.start as usize] += 1;
            depth[range.end as usize] -= 1;
        }
        let mut current = 0;
        let shares = self.shares();
        let frequencies = self.blocks.iter_mut().zip(shares).zip(&depth).map(|((block, share), change)| {
            current += change;
            block.cold |= share < COLD_SHARE;
            let often = LOOP_TRIPS.powi(current.min(MAX_DEPTH));
            if block.cold { often / COLD_ODDS } else { often }
        });
        self.frequency = frequencies.collect();
    }

    /// How often each block is executed, as a share of what is around it: a round of the innermost loop, or the function. So a
    /// loop that is hardly ever entered is not cold: it may go round often. What leaves a loop does so as often as the loop is
    /// entered. Where no odds are known, everything goes both ways.
    fn shares(&self) -> Vec<f32> {
        // Sums over the edges that lead forward; a block that none leads to is taken to be executed always.
        let mut sums: Vec<Option<f32>> = vec![None; self.blocks.len()];
        let mut shares = Vec::with_capacity(self.blocks.len());
        let mut loops = self.loops.iter().peekable();
        // The loops around, and how often each is entered.
        let mut open: Vec<(&Range<u32>, f32)> = Vec::new();
        for (i, block) in (0..).zip(&self.blocks) {
            while open.pop_if(|last| last.0.end <= i).is_some() {}
            let mut share = sums[i as usize].unwrap_or(1.0).min(1.0);
            if let Some(head) = loops.next_if(|next| next.start == i) {
                open.push((head, share));
                share = 1.0;
            }
            shares.push(share);
            for (k, &succ) in block.succs.iter().enumerate().filter(|(_, succ)| **succ > i) {
                // Outer loops begin earlier and end later.
                let outermost_left = open.partition_point(|around| around.0.end > succ);
                let passed = match (open.get(outermost_left), block.odds) {
                    (Some(&(_, entered)), _) => entered,
                    (None, Some(odds)) if block.succs.len() == 2 => share * if k == 0 { odds } else { 1.0 - odds },
                    (None, _) => share,
                };
                *sums[succ as usize].get_or_insert(0.0) += passed;
            }
        }
        shares
    }

    fn collect_operands(&mut self) {
        // Most instructions have two or three.
        self.operands = Vec::with_capacity(3 * self.insts.len());
        self.operand_starts = Vec::with_capacity(self.insts.len() + 1);
        self.operand_starts.push(0);
        for inst in &mut self.insts {
            inst.visit(&mut self.lists, |field, constraint, role, position| {
                self.operands.push(Operand { reg: field.get(), constraint, role, position });
            });
            self.operand_starts.push(self.operands.len() as u32);
        }
    }
}

impl crate::regalloc::Client for Code {
    fn num_regs(&self) -> usize {
        self.num_regs as usize
    }

    fn num_insts(&self) -> usize {
        self.insts.len()
    }

    fn num_blocks(&self) -> usize {
        self.blocks.len()
    }

    fn insts(&self, block: usize) -> Range<u32> {
        self.blocks[block].insts.clone()
    }

    fn succs(&self, block: usize) -> &[u32] {
        &self.blocks[block].succs
    }

    fn preds(&self, block: usize) -> &[u32] {
        &self.blocks[block].preds
    }

    fn params(&self, block: usize) -> &[Reg] {
        &self.blocks[block].params
    }

    fn args(&self, block: usize) -> &[Reg] {
        &self.blocks[block].args
    }

    fn is_return(&self, inst: usize) -> bool {
        matches!(self.insts[inst].op, Asm::Ret | Asm::TailCall | Asm::Ud2)
    }

    fn operands(&self, inst: usize) -> &[Operand] {
        &self.operands[self.operand_starts[inst] as usize..self.operand_starts[inst + 1] as usize]
    }

    fn clobbers(&self, inst: usize) -> RegSet {
        self.insts[inst].clobbers(&self.lists)
    }

    fn frequency(&self, block: usize) -> f32 {
        self.frequency[block]
    }

    fn preferred(&self) -> RegSet {
        self.allocatable(abi::CALLER_SAVED)
    }

    fn others(&self) -> RegSet {
        self.allocatable(abi::CALLEE_SAVED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(only: Range<u32>) -> Vec<Range<u32>> {
        std::iter::once(only).collect()
    }

    /// Of blocks with these successors and odds, around some of which is a loop.
    fn shares(blocks: &[(&[u32], Option<f32>)], around: Range<u32>) -> Vec<f32> {
        let block = |&(succs, odds): &(&[u32], Option<f32>)| CodeBlock { succs: succs.into(), odds, ..CodeBlock::default() };
        Code { blocks: blocks.iter().map(block).collect(), loops: one(around), ..Code::default() }.shares()
    }

    #[test]
    fn shares_follow_the_odds_and_start_anew_behind_a_loop() {
        let body: &[(&[u32], _)] = &[
            (&[1, 6], Some(0.5)),
            (&[2, 3], Some(0.75)),
            (&[4], None),
            (&[4], None),
            (&[1, 5], Some(0.875)),
            (&[6], None),
            (&[], None),
        ];
        assert_eq!(shares(body, 1..5), [1.0, 1.0, 0.75, 0.25, 1.0, 0.5, 1.0]);
    }

    #[test]
    fn what_is_hardly_ever_executed_is_cold() {
        // A loop whose head goes on to a rare block and one after another to the others.
        let block = |succs: &[u32], odds| CodeBlock { succs: succs.into(), odds, ..CodeBlock::default() };
        let blocks = vec![
            block(&[1], None),
            block(&[2, 3], Some(1.0 / 128.0)),
            block(&[3], None),
            block(&[4, 5], Some(0.1)),
            block(&[5], None),
            block(&[1, 6], Some(0.9)),
            block(&[], None),
        ];
        let mut code = Code { blocks, loops: one(1..6), ..Code::default() };
        code.estimate_frequency();
        assert_eq!(code.frequency, [1.0, 8.0, 8.0 / COLD_ODDS, 8.0, 8.0, 8.0, 1.0]);
        assert_eq!(code.blocks.iter().map(|block| block.cold).collect::<Vec<_>>(), [0, 0, 1, 0, 0, 0, 0].map(|cold| cold == 1));
    }

    #[test]
    fn without_odds_everything_goes_both_ways() {
        let body: &[(&[u32], _)] = &[(&[1, 2], None), (&[3], None), (&[3], None), (&[1, 4], None), (&[], None)];
        assert_eq!(shares(body, 1..4), [1.0; 5]);
    }
}
