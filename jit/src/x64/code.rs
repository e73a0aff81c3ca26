//! A function as machine instructions in blocks, and its side of the conversation with the register allocator.

use super::abi;
use super::flow::Blocks;
use super::insts::{Asm, Inst};
use crate::contract::Helper;
use crate::regalloc::{Class, Operand, Reg, RegSet};
use smallvec::SmallVec;

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
    pub insts: std::ops::Range<u32>,
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
}

/// How often a loop is assumed to go round.
const LOOP_TRIPS: f32 = 8.0;
/// Loops nested deeper are assumed to be executed as often as this.
const MAX_DEPTH: i32 = 5;
/// How much rarer a cold block is than what is around it.
const COLD_ODDS: f32 = 256.0;

/// A function as machine instructions.
#[derive(Debug, Default)]
pub struct Code {
    /// All instructions, block after block.
    pub insts: Vec<Inst>,
    /// Blocks, the entry first, loops contiguous.
    pub blocks: Vec<CodeBlock>,
    /// Loops as ranges of blocks, each with its head first; properly nested, outer before inner.
    pub loops: Vec<std::ops::Range<u32>>,
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

    /// Without a profile: every loop goes round [`LOOP_TRIPS`] times, cold blocks are executed hardly ever.
    fn estimate_frequency(&mut self) {
        let mut depth = vec![0i32; self.blocks.len() + 1];
        for range in &self.loops {
            depth[range.start as usize] += 1;
            depth[range.end as usize] -= 1;
        }
        let mut current = 0;
        let frequencies = self.blocks.iter().zip(&depth).map(|(block, change)| {
            current += change;
            let often = LOOP_TRIPS.powi(current.min(MAX_DEPTH));
            if block.cold { often / COLD_ODDS } else { often }
        });
        self.frequency = frequencies.collect();
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

    fn insts(&self, block: usize) -> std::ops::Range<u32> {
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
