//! A function as machine instructions in blocks, after selection, after allocation and after layout.

use super::isa::{Control, Inst};
use super::list::{Blocks, RegList, Regs};
use super::pool::Pool;
use crate::ir::Probability;
use crate::ir::inlined::Copies;
use crate::regalloc::{Class, Move, Place, Reg, RegSet, SlotWidth};
use std::ops::Range;

/// A basic block.
#[derive(Clone, PartialEq, Debug)]
pub struct CodeBlock {
    /// Its instructions, as a range in [`MachineCode::insts`].
    pub insts: Range<u32>,
    /// Its successors, in the order of its last instruction.
    pub succs: Blocks,
    /// Its predecessors, ascending, with one entry for each edge.
    pub preds: Blocks,
    /// Registers that it defines at its start.
    pub params: Regs,
    /// The arguments for its only successor.
    pub args: Regs,
    /// Whether it is rarely executed: it leads only to traps, or branch probabilities show that it is rare.
    pub cold: bool,
    /// The probability of the first successor, if the profile has it.
    pub probability: Option<Probability>,
    /// The estimated number of executions per call of the function, for layout: blocks of a loop differ only if some are cold.
    pub frequency: f32,
    /// The same for the allocator: probabilities and counts make blocks of a loop differ.
    pub weight: f32,
}

impl CodeBlock {
    /// The bytes of those of its lists that have an allocation.
    fn spilled(&self) -> usize {
        let CodeBlock { succs, preds, params, args, .. } = self;
        let of_blocks = [succs, preds].into_iter().filter(|list| list.spilled()).map(|list| size_of_val(&**list));
        let of_regs = [params, args].into_iter().filter(|list| list.spilled()).map(|list| size_of_val(&**list));
        of_blocks.chain(of_regs).sum()
    }
}

impl Default for CodeBlock {
    fn default() -> CodeBlock {
        CodeBlock {
            insts: 0..0,
            succs: Blocks::new(),
            preds: Blocks::new(),
            params: Regs::new(),
            args: Regs::new(),
            cold: false,
            probability: None,
            frequency: 1.0,
            weight: 1.0,
        }
    }
}

/// The results of allocation besides the operands, whose registers are then physical.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Allocation {
    /// Inserted copies, ascending by instruction.
    pub moves: Vec<Move>,
    /// The spill slots.
    pub slots: Vec<SlotWidth>,
    /// Callee-saved registers that the function uses.
    pub saved: RegSet,
}

/// The number of inserted copies of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MoveCounts {
    /// From a register to a spill slot.
    pub spills: u32,
    /// From a spill slot to a register.
    pub reloads: u32,
    /// Between registers.
    pub copies: u32,
}

impl Allocation {
    /// Counts the copies.
    pub fn count_moves(&self) -> MoveCounts {
        let mut counts = MoveCounts::default();
        for m in &self.moves {
            match (m.from, m.to) {
                (_, Place::Slot(_)) => counts.spills += 1,
                (Place::Slot(_), Place::Reg(_)) => counts.reloads += 1,
                (Place::Reg(_), Place::Reg(_)) => counts.copies += 1,
            }
        }
        counts
    }

    /// Whether a copy is inserted before the instruction with this index.
    pub fn moves_before(&self, inst: u32) -> bool {
        self.moves.binary_search_by_key(&inst, |m| m.before).is_ok()
    }
}

/// Blocks that emission packs into few cache lines, by padding before the first of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packed {
    /// This many blocks from this one on, which are executed one after another and end in an indirect jump: in one line, if
    /// they fit.
    Dispatch(u32),
    /// This many blocks from this one on, which are an innermost loop: in as few lines as their length allows.
    Inner(u32),
}

/// The results of layout.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Blocks in the order of emission.
    pub blocks: Vec<u32>,
    /// For each block, the block to which a jump to it goes.
    pub targets: Vec<u32>,
    /// For each block, the packed blocks that begin with it, if any.
    pub packed: Vec<Option<Packed>>,
    /// For each block that ends with a copy of packed blocks instead of a jump to them, the position of the first of them in
    /// `blocks`.
    pub replicas: Vec<Option<u32>>,
}

impl Layout {
    /// The positions in `blocks` of the blocks that are copied to the end of this block; empty if none are.
    pub fn replica(&self, block: usize) -> Range<usize> {
        let Some(start) = self.replicas[block].map(|start| start as usize) else { return 0..0 };
        match self.packed[self.blocks[start] as usize] {
            Some(Packed::Dispatch(blocks)) => start..start + blocks as usize,
            Some(Packed::Inner(_)) | None => 0..0,
        }
    }
}

/// The last phase of code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stage {
    /// Instructions are selected.
    Lowered,
    /// Registers are allocated.
    Allocated,
    /// Blocks are in the order of emission.
    LaidOut,
}

impl Stage {
    /// Every stage, in order, with its name.
    pub const ALL: [(Stage, &'static str); 3] =
        [(Stage::Lowered, "lowered"), (Stage::Allocated, "allocated"), (Stage::LaidOut, "laid_out")];
}

/// A function as machine instructions.
#[derive(Clone, PartialEq, Debug)]
pub struct MachineCode<I> {
    /// All instructions, block after block.
    pub insts: Vec<I>,
    /// Blocks, the entry first, loops contiguous. Those that are reached through cold blocks only are last.
    pub blocks: Vec<CodeBlock>,
    /// Loops as ranges of blocks, each starting with its header. They nest properly, and outer loops come before inner ones. Blocks that are
    /// last because of cold ones are in no loop, unless its header is one of them.
    pub loops: Vec<Range<u32>>,
    /// Register lists, to which instructions refer by index, in the order of these instructions.
    pub lists: Vec<RegList>,
    /// Jump tables, as indices into the block's successors, in the order of their instructions; the last entry is the default.
    pub tables: Vec<Vec<u32>>,
    /// Constants in memory.
    pub pool: Pool,
    /// The number of virtual registers; 0 after allocation.
    pub num_regs: u32,
    /// A register that always holds the base of memory 0 and is not allocated.
    pub pinned_base: Option<Reg>,
    /// Whether the code contains calls.
    pub calls: bool,
    /// Whether the frame has the instance: a call may return with another one in the pinned register, or there are landings.
    pub restores: bool,
    /// Whether the code must trap by a call, not by a fault: see [`Options::signals`](crate::request::Options::signals).
    pub raises: bool,
    /// The offset of the function's first Wasm instruction.
    pub pc: u32,
    /// The code of inlined functions in it.
    pub copies: Copies,
    /// Present after allocation.
    pub allocation: Option<Allocation>,
    /// Present after layout.
    pub layout: Option<Layout>,
}

impl<I> Default for MachineCode<I> {
    fn default() -> MachineCode<I> {
        MachineCode {
            insts: Vec::new(),
            blocks: Vec::new(),
            loops: Vec::new(),
            lists: Vec::new(),
            tables: Vec::new(),
            pool: Pool::default(),
            num_regs: 0,
            pinned_base: None,
            calls: false,
            restores: false,
            raises: false,
            pc: 0,
            copies: Copies::default(),
            allocation: None,
            layout: None,
        }
    }
}

impl<I: Inst> MachineCode<I> {
    /// The bytes that it takes.
    pub fn size(&self) -> usize {
        let MachineCode { insts, blocks, lists, tables, allocation, .. } = self;
        let of_blocks = size_of_val(&**blocks) + blocks.iter().map(CodeBlock::spilled).sum::<usize>();
        let of_lists = size_of_val(&**lists) + lists.iter().map(RegList::size).sum::<usize>();
        let of_tables = tables.iter().map(|table| size_of_val(&**table)).sum::<usize>();
        let of_moves = allocation.as_ref().map_or(0, |allocation| size_of_val(&*allocation.moves));
        size_of_val(&**insts) + of_blocks + of_lists + of_tables + of_moves
    }

    /// The first of the blocks that are last because they are reached through cold ones only; the number of blocks if there are none. No
    /// cold block comes before it.
    pub fn first_rare(&self) -> u32 {
        let first = self.blocks.iter().skip(1).position(|block| block.cold);
        first.map_or(self.blocks.len(), |first| first + 1) as u32
    }

    /// Whether a block ends in an indirect jump through a table.
    pub fn dispatches(&self, block: usize) -> bool {
        match self.block_insts(block).last().map(Inst::control) {
            Some(Control::Table(table)) => self.tables[table as usize].len() > I::COMPARED_ENTRIES + 1,
            Some(Control::Next | Control::Jump | Control::Branch | Control::Leave) | None => false,
            Some(Control::Try | Control::Throw) => false,
        }
    }

    /// Code without blocks.
    pub fn new(pinned_base: Option<Reg>) -> MachineCode<I> {
        MachineCode { pinned_base, ..MachineCode::default() }
    }

    /// A new virtual register.
    pub fn new_reg(&mut self, class: Class) -> Reg {
        let reg = Reg::new_virtual(class, self.num_regs);
        self.num_regs += 1;
        reg
    }

    /// A new virtual register for a reference that the collector may change.
    pub fn new_traced_reg(&mut self) -> Reg {
        let reg = Reg::new_traced(self.num_regs);
        self.num_regs += 1;
        reg
    }

    /// A new virtual register for a vector of 256 bits.
    pub fn new_long_reg(&mut self) -> Reg {
        let reg = Reg::new_long(self.num_regs);
        self.num_regs += 1;
        reg
    }

    /// A new virtual register for a vector of 128 bits.
    pub fn new_wide_reg(&mut self) -> Reg {
        let reg = Reg::new_wide(self.num_regs);
        self.num_regs += 1;
        reg
    }

    /// The last phase that the code has been through.
    pub fn stage(&self) -> Stage {
        match (&self.allocation, &self.layout) {
            (None, _) => Stage::Lowered,
            (Some(_), None) => Stage::Allocated,
            (Some(_), Some(_)) => Stage::LaidOut,
        }
    }

    /// The instructions of a block.
    pub fn block_insts(&self, block: usize) -> &[I] {
        let Range { start, end } = self.blocks[block].insts;
        &self.insts[start as usize..end as usize]
    }

    /// The results of allocation.
    ///
    /// # Panics
    /// Before allocation.
    pub fn allocated(&self) -> &Allocation {
        self.allocation.as_ref().expect("registers are allocated")
    }

    /// The results of layout.
    ///
    /// # Panics
    /// Before layout.
    pub fn laid_out(&self) -> &Layout {
        self.layout.as_ref().expect("blocks are laid out")
    }

    /// Sorts register lists and jump tables into the order of the instructions that refer to them.
    pub fn order_lists(&mut self) {
        let mut lists: Vec<Option<RegList>> = std::mem::take(&mut self.lists).into_iter().map(Some).collect();
        let mut tables = std::mem::take(&mut self.tables);
        self.lists.reserve(lists.len());
        self.tables.reserve(tables.len());
        for inst in &mut self.insts {
            if let Some(index) = inst.list() {
                let list = lists[index as usize].take().expect("each list belongs to one instruction");
                inst.set_index(self.lists.len() as u32);
                self.lists.push(list);
            } else if let Control::Table(index) = inst.control() {
                inst.set_index(self.tables.len() as u32);
                self.tables.push(std::mem::take(&mut tables[index as usize]));
            }
        }
    }

    /// Computes the predecessors of all blocks.
    pub fn find_preds(&mut self) {
        self.blocks.iter_mut().for_each(|block| block.preds.clear());
        for i in 0..self.blocks.len() {
            for succ in self.blocks[i].succs.clone() {
                self.blocks[succ as usize].preds.push(i as u32);
            }
        }
    }
}
