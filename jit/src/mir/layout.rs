//! The phase `layout`: orders blocks for emission, and chooses the blocks to be packed into few cache lines.
//!
//! Blocks that only jump are skipped, and cold ones come last. A loop that is tested at its top is rotated, so that its
//! one conditional jump is at its bottom: `h: test, exit; b; jump h` becomes `jump h; b; h: test, to b`.
//!
//! A loop around an indirect jump, which is the dispatch of a switch, is not rotated: its header falls through to the
//! dispatch. The latch, to which the arms jump, is placed directly before the header and falls through to it, so that
//! an iteration takes one direct jump. Where latch, header and dispatch are [packed](Packed) into one line, the
//! processor predicts the indirect jump from a longer history, because taken jumps and fall-through to a new line both
//! fill the history. Targets of the indirect jump are not aligned, except arms with a copy, see below: arms at equal
//! offsets in their lines look alike in that history. A short dispatch is also replicated: blocks that jump to it end with a copy of it instead (M. A. Ertl and
//! D. Gregg, "Optimizing indirect branch prediction accuracy in virtual machine interpreters", PLDI 2003). Copies are made
//! after allocation, because they need no parameters then. `docs/decisions/035-dispatch-in-one-line.md` has the measurements.
//!
//! Cost: linear in blocks, edges and loops. A rotation moves no block; it changes where the loop's sequence of blocks
//! and inner loops begins, and sequences become an order of blocks once, at the end.

use super::code::{CodeBlock, Layout, MachineCode, Packed};
use super::isa::{Control, Inst};
use std::ops::Range;

/// Sets [`MachineCode::layout`] of allocated code.
pub fn lay_out<I: Inst>(code: &mut MachineCode<I>) {
    code.layout = Some(of(code, |block| is_empty(code, block), &mut 0));
}

/// Whether a block only jumps.
fn is_empty<I: Inst>(code: &MachineCode<I>, block: usize) -> bool {
    let Range { start, end } = code.blocks[block].insts;
    end - start == 1
        && code.insts[start as usize].control() == Control::Jump
        && !code.allocation.as_ref().is_some_and(|allocation| allocation.moves_before(start))
}

/// The layout of `code`. `is_empty` says whether a block only jumps; `steps` counts the blocks, items and edges that
/// are visited.
pub(crate) fn of<I: Inst>(code: &MachineCode<I>, is_empty: impl Fn(usize) -> bool, steps: &mut u64) -> Layout {
    let targets = jump_targets(code, is_empty, steps);
    let sequences = Sequences::of(code, &targets, steps);
    let mut blocks = sequences.flatten(steps);
    let packed = packed(code, &sequences, &blocks, &targets, steps);
    let replicas = replicas(code, &blocks, &targets, &packed, steps);
    let is_cold = |&block: &u32| targets[block as usize] == block && code.blocks[block as usize].cold;
    blocks.extend((0..code.blocks.len() as u32).filter(is_cold));
    Layout { blocks, targets, packed, replicas }
}

/// The maximum number of blocks that are packed with the dispatch that follows them.
const BEFORE_DISPATCH: usize = 3;

/// Computes [`Layout::packed`]; `blocks` are the blocks that are not cold, in order.
fn packed<I: Inst>(
    code: &MachineCode<I>,
    sequences: &Sequences,
    blocks: &[u32],
    targets: &[u32],
    steps: &mut u64,
) -> Vec<Option<Packed>> {
    let mut packed = vec![None; code.blocks.len()];
    if code.loops.is_empty() {
        return packed;
    }
    let mut positions = vec![0; code.blocks.len()];
    (0..).zip(blocks).for_each(|(position, &block)| positions[block as usize] = position);
    for (sequence, range) in sequences.loops.iter().zip(&code.loops) {
        let innermost = code.loops.get(sequence.index as usize + 1).is_none_or(|next| next.end > range.end);
        if let Some((first, last)) = sequence.ends
            && innermost
        {
            packed[first as usize] = Some(Packed::Inner(positions[last as usize] - positions[first as usize] + 1));
        }
    }
    let successors = |block: u32| code.blocks[block as usize].succs.iter().map(|&succ| targets[succ as usize]);
    let dispatches: Vec<usize> = (0..blocks.len()).filter(|&position| code.dispatches(blocks[position] as usize)).collect();
    for &position in &dispatches {
        let frequency = code.blocks[blocks[position] as usize].frequency;
        packed[blocks[position] as usize] = (frequency > 1.0).then_some(Packed::Dispatch(1));
        for before in 1..=BEFORE_DISPATCH.min(position) {
            *steps += 1;
            let (block, next) = (blocks[position - before], blocks[position - before + 1]);
            let is_row = successors(block).any(|succ| succ == next) && !code.dispatches(block as usize);
            if code.blocks[block as usize].frequency < frequency.max(2.0) || !is_row {
                break;
            }
            packed[block as usize] = Some(Packed::Dispatch(before as u32 + 1));
        }
    }
    for &position in &dispatches {
        *steps += code.blocks[blocks[position] as usize].succs.len() as u64;
        for arm in successors(blocks[position]) {
            // The latch may be an arm too.
            if !matches!(packed[arm as usize], Some(Packed::Dispatch(2..))) || code.blocks[arm as usize].preds.len() == 1 {
                packed[arm as usize] = None;
            }
        }
    }
    packed
}

/// The maximum number of copies of one dispatch.
const MAX_REPLICAS: u32 = 48;
/// The maximum number of instructions, inserted copies included, of a dispatch that is replicated.
const MAX_REPLICA_INSTS: usize = 12;

/// Computes [`Layout::replicas`]; `blocks` are the blocks that are not cold, in order.
fn replicas<I: Inst>(
    code: &MachineCode<I>,
    blocks: &[u32],
    targets: &[u32],
    packed: &[Option<Packed>],
    steps: &mut u64,
) -> Vec<Option<u32>> {
    let mut replicas = vec![None; code.blocks.len()];
    let is_dispatch = |block: u32| matches!(packed[block as usize], Some(Packed::Dispatch(_)));
    if !blocks.iter().any(|&block| is_dispatch(block)) {
        return replicas;
    }
    // By block, the number of arms that end with a jump to it. A block that is executed less often, such as the entry of the
    // loop, is none.
    let mut jumps = vec![0; code.blocks.len()];
    let dispatch_after_jump = |position: usize| {
        let block = blocks[position] as usize;
        let jumps = code.block_insts(block).last().is_some_and(|last| last.control() == Control::Jump);
        let target = jumps.then(|| targets[code.blocks[block].succs[0] as usize])?;
        let is_arm = code.blocks[block].frequency >= code.blocks[target as usize].frequency;
        (is_dispatch(target) && is_arm && blocks.get(position + 1) != Some(&target)).then_some(target)
    };
    for target in (0..blocks.len()).filter_map(dispatch_after_jump) {
        jumps[target as usize] += 1;
    }
    // By block, its position if it begins a dispatch that is replicated.
    let mut starts = vec![None; code.blocks.len()];
    for (position, &block) in blocks.iter().enumerate() {
        *steps += 1;
        let Some(Packed::Dispatch(length)) = packed[block as usize] else { continue };
        let insts = blocks[position..position + length as usize].iter().map(|&block| insts_and_moves(code, block)).sum::<usize>();
        if jumps[block as usize] <= MAX_REPLICAS && insts <= MAX_REPLICA_INSTS {
            starts[block as usize] = Some(position as u32);
        }
    }
    for position in 0..blocks.len() {
        replicas[blocks[position] as usize] = dispatch_after_jump(position).and_then(|target| starts[target as usize]);
    }
    replicas
}

/// The number of instructions of a block, inserted copies included.
fn insts_and_moves<I: Inst>(code: &MachineCode<I>, block: u32) -> usize {
    let range = &code.blocks[block as usize].insts;
    let moves = code.allocation.as_ref().map_or(&[][..], |allocation| &allocation.moves);
    let before = |inst: u32| moves.partition_point(|m| m.before < inst);
    range.len() + before(range.end) - before(range.start)
}

/// A block or an inner loop.
#[derive(Clone, Copy)]
enum Item {
    Block(u32),
    Loop(u32),
}

/// The items directly in a loop, or in the function, in the order of emission.
#[derive(Default)]
struct Sequence {
    index: u32,
    items: Vec<Item>,
    /// The index of the item that is emitted first. The items before it follow the last one.
    first: usize,
    /// The first and the last block, if there are any.
    ends: Option<(u32, u32)>,
}

/// The sequences of all loops, by index, and of the function.
struct Sequences {
    loops: Vec<Sequence>,
    function: Sequence,
    /// See [`MachineCode::first_rare`].
    first_rare: u32,
}

impl Sequences {
    fn of<I: Inst>(code: &MachineCode<I>, targets: &[u32], steps: &mut u64) -> Sequences {
        let mut loops: Vec<Sequence> =
            (0..code.loops.len() as u32).map(|index| Sequence { index, ..Sequence::default() }).collect();
        let mut function = Sequence::default();
        // The open loops, with the innermost last.
        let mut open: Vec<u32> = Vec::new();
        let mut next = 0;
        for block in 0..code.blocks.len() as u32 {
            while open.pop_if(|last| code.loops[*last as usize].end <= block).is_some() {}
            while code.loops.get(next).is_some_and(|range| range.start == block) {
                let around = open.last().map_or(&mut function, |&last| &mut loops[last as usize]);
                around.items.push(Item::Loop(next as u32));
                open.push(next as u32);
                next += 1;
            }
            *steps += 1;
            if targets[block as usize] == block && !code.blocks[block as usize].cold {
                let around = open.last().map_or(&mut function, |&last| &mut loops[last as usize]);
                around.items.push(Item::Block(block));
            }
        }
        let mut sequences = Sequences { loops, function, first_rare: code.first_rare() };
        for index in (0..code.loops.len()).rev() {
            sequences.rotate(index, code, targets, steps);
        }
        sequences
    }

    /// The first and the last block of an item.
    fn ends(&self, item: Item) -> Option<(u32, u32)> {
        match item {
            Item::Block(block) => Some((block, block)),
            Item::Loop(inner) => self.loops[inner as usize].ends,
        }
    }

    /// Rotates a loop, after its inner loops, and computes its ends.
    fn rotate<I: Inst>(&mut self, index: usize, code: &MachineCode<I>, targets: &[u32], steps: &mut u64) {
        let mut items = std::mem::take(&mut self.loops[index].items);
        *steps += items.len() as u64;
        // A loop may consist of cold blocks only.
        items.retain(|&item| self.ends(item).is_some());
        let range = &code.loops[index];
        let dispatches = items.iter().any(|&item| matches!(item, Item::Block(block) if code.dispatches(block as usize)));
        if dispatches {
            move_latch(&mut items, targets[range.start as usize], code, targets);
        }
        let first_of = |item| self.ends(item).map(|ends| ends.0);
        let ends =
            items.first().zip(items.last()).and_then(|(&first, &last)| first_of(first).zip(self.ends(last).map(|ends| ends.1)));
        let successors = |block: u32| code.blocks[block as usize].succs.iter().map(|&succ| targets[succ as usize]);
        // The loop's rare blocks are not in its range.
        let rare = self.first_rare;
        let is_test = |i: &usize| {
            let (Item::Block(block), next) = (items[*i], first_of(items[i + 1])) else { return false };
            let branches = code.block_insts(block as usize).last().is_some_and(|last| last.control() == Control::Branch);
            let leaves = |succ: u32| !range.contains(&succ) && (succ < rare || rare <= range.start);
            branches && successors(block).any(|succ| Some(succ) == next) && successors(block).any(leaves)
        };
        let jumps_back = ends.is_some_and(|(first, last)| successors(last).eq([first]));
        let test = if jumps_back && !dispatches { (0..items.len() - 1).find(is_test) } else { None };
        let first = test.map_or(0, |test| test + 1);
        let ends = match test {
            Some(test) => first_of(items[first]).zip(first_of(items[test])),
            None => ends,
        };
        let loops = &mut self.loops[index];
        (loops.items, loops.first, loops.ends) = (items, first, ends);
    }

    /// The blocks of the function in order.
    fn flatten(&self, steps: &mut u64) -> Vec<u32> {
        let mut blocks = Vec::new();
        // The open sequences, each with the number of its items that are done.
        let mut open: Vec<(&Sequence, usize)> = vec![(&self.function, 0)];
        while let Some((sequence, done)) = open.last_mut() {
            *steps += 1;
            let len = sequence.items.len();
            if *done == len {
                open.pop();
                continue;
            }
            let item = sequence.items[(sequence.first + *done) % len];
            *done += 1;
            match item {
                Item::Block(block) => blocks.push(block),
                Item::Loop(inner) => open.push((&self.loops[inner as usize], 0)),
            }
        }
        blocks
    }
}

/// Moves the latch of a loop around a dispatch to the front, before `head`. The latch is the block whose only successor
/// is the header and that has more than one predecessor.
fn move_latch<I: Inst>(items: &mut [Item], head: u32, code: &MachineCode<I>, targets: &[u32]) {
    let is_latch = |item: &Item| match *item {
        Item::Block(block) => {
            let CodeBlock { succs, preds, .. } = &code.blocks[block as usize];
            block != head && preds.len() > 1 && succs.iter().map(|&succ| targets[succ as usize]).eq([head])
        }
        Item::Loop(_) => false,
    };
    if matches!(items.first(), Some(&Item::Block(first)) if first == head)
        && let Some(latch) = items.iter().rposition(is_latch)
    {
        items[..=latch].rotate_right(1);
    }
}

/// For each block, the end of the chain of empty blocks that begins with it. Chains that lead to a cycle of empty
/// blocks, an endless loop, are left as they are.
fn jump_targets<I: Inst>(code: &MachineCode<I>, is_empty: impl Fn(usize) -> bool, steps: &mut u64) -> Vec<u32> {
    const UNKNOWN: u32 = u32::MAX;
    const ON_PATH: u32 = u32::MAX - 1;
    let mut targets = vec![UNKNOWN; code.blocks.len()];
    let mut path = Vec::new();
    for start in 0..code.blocks.len() {
        let mut block = start;
        while targets[block] == UNKNOWN && is_empty(block) {
            *steps += 1;
            targets[block] = ON_PATH;
            path.push(block);
            block = code.blocks[block].succs[0] as usize;
        }
        *steps += 1;
        let target = match targets[block] {
            UNKNOWN => {
                targets[block] = block as u32;
                Some(block as u32)
            }
            // A cycle, or an empty block that leads to one.
            ON_PATH => None,
            target if target as usize == block && is_empty(block) => None,
            target => Some(target),
        };
        for block in path.drain(..) {
            targets[block] = target.unwrap_or(block as u32);
        }
    }
    targets
}
