//! Tests of layout, with an instruction set of jumps only.

use super::code::{Allocation, CodeBlock, Layout, MachineCode, Packed};
use super::isa::{Control, FlagSet, Inst};
use super::layout;
use super::list::RegList;
use super::text::Line;
use crate::regalloc::{AllocationError, Move, Operand, Place, Reg, RegSet};
use std::fmt;
use std::ops::Range;

/// An instruction is the control flow after it.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Jump(Control);

impl Inst for Jump {
    const COMPARED_ENTRIES: usize = 3;
    const CALLER_SAVED: RegSet = RegSet::EMPTY;
    const CALLEE_SAVED: RegSet = RegSet::EMPTY;

    fn pc(&self) -> u32 {
        0
    }

    fn at(self, _: u32) -> Jump {
        self
    }

    fn control(&self) -> Control {
        self.0
    }

    fn list(&self) -> Option<u32> {
        None
    }

    fn set_index(&mut self, index: u32) {
        self.0 = Control::Table(index);
    }

    fn is_call(&self) -> bool {
        false
    }

    fn is_tail_call(&self) -> bool {
        false
    }

    fn operands(&mut self, _: &mut [RegList], _: impl FnMut(Operand)) {}

    fn assign(&mut self, _: &mut [RegList], _: impl FnMut() -> Place) -> Result<(), AllocationError> {
        Ok(())
    }

    fn places(&mut self, _: &mut [RegList], _: impl FnMut(Operand, Place)) {}

    fn flags_read(&self) -> FlagSet {
        FlagSet::EMPTY
    }

    fn flags_defined(&self) -> Option<FlagSet> {
        None
    }

    fn clobbers(&self, _: &[RegList]) -> RegSet {
        RegSet::EMPTY
    }

    fn check(&self, _: usize) -> Result<(), String> {
        Ok(())
    }

    fn register_name(_: Reg) -> &'static str {
        "none"
    }

    fn name(&self) -> String {
        match self.0 {
            Control::Next => "next".into(),
            Control::Jump => "jump".into(),
            Control::Branch => "branch".into(),
            Control::Table(table) => format!("table{table}"),
            Control::Leave => "leave".into(),
            Control::Try => "try".into(),
            Control::Throw => "throw".into(),
        }
    }

    fn named(name: &str, _: u32) -> Option<Jump> {
        Some(Jump(match name {
            "next" => Control::Next,
            "jump" => Control::Jump,
            "branch" => Control::Branch,
            "leave" => Control::Leave,
            "try" => Control::Try,
            "throw" => Control::Throw,
            _ => Control::Table(name.strip_prefix("table")?.parse().ok()?),
        }))
    }

    fn write(&self, f: &mut dyn fmt::Write) -> fmt::Result {
        f.write_str(&self.name())
    }

    fn read(&mut self, _: Option<Reg>, _: &mut Line<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// Code whose blocks have these successors. A block for which `busy` is true also has another instruction.
fn code(succs: &[Vec<u32>], loops: &[Range<u32>], busy: impl Fn(u32) -> bool) -> MachineCode<Jump> {
    let mut code = MachineCode { loops: loops.to_vec(), ..MachineCode::new(None) };
    for (number, succs) in (0..).zip(succs) {
        let first = code.insts.len() as u32;
        if busy(number) {
            code.insts.push(Jump(Control::Next));
        }
        code.insts.push(Jump(match succs.len() {
            0 => Control::Leave,
            1 => Control::Jump,
            2 => Control::Branch,
            _ => {
                code.tables.push((0..succs.len() as u32).collect());
                Control::Table(code.tables.len() as u32 - 1)
            }
        }));
        let insts = first..code.insts.len() as u32;
        code.blocks.push(CodeBlock { insts, succs: succs[..].into(), ..CodeBlock::default() });
    }
    code.find_preds();
    code
}

fn lay_out(code: &MachineCode<Jump>) -> (Layout, u64) {
    let mut steps = 0;
    let layout = layout::of(code, |block| code.blocks[block].insts.len() == 1 && code.blocks[block].succs.len() == 1, &mut steps);
    (layout, steps)
}

#[test]
fn a_loop_tested_at_its_top_is_rotated() {
    // Block 1 is the test, block 2 the body.
    let code = code(&[vec![1], vec![2, 3], vec![1], vec![]], &[Range { start: 1, end: 3 }], |_| true);
    let (layout, _) = lay_out(&code);
    assert_eq!(layout.blocks, [0, 2, 1, 3]);
    assert_eq!(layout.packed, [None, None, Some(Packed::Inner(2)), None]);
}

#[test]
fn an_outer_loop_is_rotated_with_its_inner_loop_in_one_piece() {
    // Block 1 tests the outer loop, 2 and 3 are an inner loop tested at its bottom, 4 jumps back.
    let succs = [vec![1], vec![2, 5], vec![3], vec![2, 4], vec![1], vec![]];
    let (layout, _) = lay_out(&code(&succs, &[1..5, 2..4], |_| true));
    assert_eq!(layout.blocks, [0, 2, 3, 4, 1, 5]);
    assert_eq!(layout.packed, [None, None, Some(Packed::Inner(2)), None, None, None]);
}

#[test]
fn the_latch_of_a_loop_around_a_dispatch_comes_before_its_head() {
    // Block 1 is the header, 2 dispatches to 3 to 7, whose latch is 8; 9 is the exit.
    let mut succs = vec![vec![1], vec![2, 9], (3..8).collect()];
    succs.extend(vec![vec![8]; 5]);
    succs.extend([vec![1], vec![]]);
    let mut code = code(&succs, &[Range { start: 1, end: 9 }], |_| true);
    super::frequency::estimate_code(&mut code, |_| false);
    let (layout, _) = lay_out(&code);
    assert_eq!(layout.blocks, [0, 8, 1, 2, 3, 4, 5, 6, 7, 9]);
    let mut packed = [None; 10];
    (packed[8], packed[1], packed[2]) = (Some(Packed::Dispatch(3)), Some(Packed::Dispatch(2)), Some(Packed::Dispatch(1)));
    assert_eq!(layout.packed, packed);
}

/// A loop whose dispatch has this many arms, each of which jumps to the header.
fn dispatch_loop(arms: u32) -> MachineCode<Jump> {
    // Block 0 is the entry, 1 the header with the dispatch; the arms follow.
    let mut succs = vec![vec![1], (2..arms + 3).collect()];
    succs.extend(vec![vec![1]; arms as usize]);
    succs.push(vec![]);
    let mut code = code(&succs, &[Range { start: 1, end: arms + 2 }], |_| true);
    super::frequency::estimate_code(&mut code, |_| false);
    code
}

#[test]
fn arms_end_with_copies_of_a_short_dispatch_that_has_few_of_them() {
    let replicas = |code: &MachineCode<Jump>| lay_out(code).0.replicas.into_iter().flatten().collect::<Vec<_>>();
    // The entry is executed less often.
    let code = dispatch_loop(9);
    let (layout, _) = lay_out(&code);
    assert_eq!(replicas(&code), [1; 9], "{layout:?}");
    assert_eq!((layout.replica(0), layout.replica(2), layout.replica(11)), (0..0, 1..2, 0..0));
    super::verify::verify(&MachineCode { allocation: Some(Allocation::default()), layout: Some(layout), ..code }).unwrap();
    assert_eq!((replicas(&dispatch_loop(48)).len(), replicas(&dispatch_loop(49)).len()), (48, 0));
    // Before the two instructions of the dispatch, inserted copies.
    let copies = |count: usize| {
        let mut code = dispatch_loop(9);
        let copy = Move { before: code.blocks[1].insts.start, from: Place::Reg(Reg::int(0)), to: Place::Reg(Reg::int(1)) };
        code.allocation = Some(Allocation { moves: vec![copy; count], ..Allocation::default() });
        code
    };
    assert_eq!((replicas(&copies(10)).len(), replicas(&copies(11)).len()), (9, 0));
}

#[test]
fn empty_blocks_are_skipped_and_cold_ones_come_last() {
    let mut code = code(&[vec![1, 2], vec![3], vec![4], vec![5], vec![5], vec![]], &[], |block| ![1, 3].contains(&block));
    code.blocks[2].cold = true;
    let (layout, _) = lay_out(&code);
    assert_eq!(layout.targets, [0, 5, 2, 5, 4, 5]);
    assert_eq!(layout.blocks, [0, 4, 5, 2]);
}

/// The phase decides which blocks only jump; a block with an inserted copy does not.
#[test]
fn a_block_with_an_inserted_copy_is_not_skipped() {
    let mut code = code(&[vec![1, 2], vec![3], vec![3], vec![]], &[], |_| false);
    let copy = Move { before: code.blocks[1].insts.start, from: Place::Reg(Reg::int(0)), to: Place::Reg(Reg::int(1)) };
    code.allocation = Some(Allocation { moves: vec![copy], ..Allocation::default() });
    layout::lay_out(&mut code);
    let layout = code.layout.as_ref().unwrap();
    assert_eq!(layout.targets, [0, 1, 3, 3]);
    assert_eq!(layout.blocks, [0, 1, 3]);
}

#[test]
fn a_cycle_of_empty_blocks_keeps_them() {
    // Block 1 leads to the cycle of 2 and 3.
    let (layout, _) = lay_out(&code(&[vec![1], vec![2], vec![3], vec![2]], &[Range { start: 2, end: 4 }], |block| block == 0));
    assert_eq!(layout.targets, [0, 1, 2, 3]);
    assert_eq!(layout.blocks, [0, 1, 2, 3]);
}

/// Lays out code of size n and of ten times that size; returns the steps of the second.
fn growth(code: impl Fn(u32) -> MachineCode<Jump>) -> u64 {
    let (small, large) = (lay_out(&code(1000)).1, lay_out(&code(10_000)).1);
    assert!(large < 11 * small, "{small} steps become {large}");
    large
}

#[test]
fn layout_takes_linear_steps_for_chains_of_empty_blocks() {
    // A table with an edge to each block of a chain.
    growth(|n| {
        let mut succs = vec![(1..=n).collect::<Vec<_>>()];
        succs.extend((1..=n).map(|block| vec![block + 1]));
        succs.push(vec![]);
        code(&succs, &[], |block| block > n)
    });
    // The same chain ends in a cycle.
    growth(|n| {
        let mut succs = vec![(1..=n).collect::<Vec<_>>()];
        succs.extend((1..=n).map(|block| vec![block % n + 1]));
        code(&succs, &[Range { start: 1, end: n + 1 }], |_| false)
    });
}

#[test]
fn layout_takes_linear_steps_for_rows_and_nests_of_loops() {
    // Each block jumps to itself or to the next.
    growth(|n| {
        let mut succs: Vec<Vec<u32>> = (0..n).map(|block| vec![block, block + 1]).collect();
        succs.push(vec![]);
        let loops: Vec<Range<u32>> = (1..n).map(|block| block..block + 1).collect();
        succs[0] = vec![1];
        code(&succs, &loops, |_| true)
    });
    // Each of n headers leaves to the block that jumps back to the enclosing header: all loops are rotated.
    growth(|n| {
        let mut succs: Vec<Vec<u32>> = (0..n).map(|head| vec![head + 1, 2 * n - head + 1]).collect();
        succs[0] = vec![1];
        succs.push(vec![n]);
        succs.extend((1..=n).rev().map(|head| vec![head - 1]));
        succs[2 * n as usize] = vec![1];
        succs.push(vec![]);
        let loops: Vec<Range<u32>> = (1..n).map(|head| head..2 * n - head + 1).collect();
        code(&succs, &loops, |_| true)
    });
}

#[test]
fn text_of_laid_out_code_is_read_back() {
    let mut code = code(&[vec![1], vec![2, 3], vec![1], vec![]], &[Range { start: 1, end: 3 }], |block| block != 2);
    code.blocks[1].probability = crate::ir::Probability::new(192);
    super::frequency::estimate_code(&mut code, |_| false);
    code.allocation = Some(Allocation::default());
    layout::lay_out(&mut code);
    let text = code.to_string();
    assert_eq!(super::parse::parse(&text).as_ref(), Ok(&code), "{text}");
    super::verify::verify(&code).unwrap();
}
