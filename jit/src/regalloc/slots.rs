//! Spill slots: intervals of one width that are never live together share one, and a block's parameter shares its
//! argument's if it can, so that a value stays where it is when control passes on.

use super::client::SlotWidth;
use super::intervals::Intervals;
use super::lane::{Conflict, Lane};
use super::pieces::{Home, Pieces};
use super::point::Point;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The slot of a register that has none.
pub const NO_SLOT: u32 = u32::MAX;
/// So many slots are searched for a hole before there is a new one.
const MAX_SEARCH: usize = 8;

/// Answers the slot of each virtual register, and the slots.
pub fn assign(intervals: &Intervals, pieces: &Pieces) -> (Vec<u32>, Vec<SlotWidth>) {
    let regs = intervals.regs.len();
    let in_memory = |&reg: &usize| pieces.of_reg(reg).any(|piece| piece.home == Home::Slot);
    let mut spilled: Vec<usize> = (0..regs).filter(in_memory).collect();
    spilled.sort_by_key(|&reg| intervals.defs[reg]);
    let (slots, free) = (vec![NO_SLOT; regs], [BinaryHeap::new(), BinaryHeap::new()]);
    let mut assigner = Assigner { intervals, slots, lanes: Vec::new(), widths: Vec::new(), ends: Vec::new(), free };
    spilled.into_iter().for_each(|reg| assigner.assign(reg));
    (assigner.slots, assigner.widths)
}

struct Assigner<'i> {
    intervals: &'i Intervals,
    slots: Vec<u32>,
    lanes: Vec<Lane<'static>>,
    /// By slot.
    widths: Vec<SlotWidth>,
    /// By slot, where its last range ends.
    ends: Vec<Point>,
    /// By width, slots by where their last range ends; entries may be out of date.
    free: [BinaryHeap<Reverse<(Point, u32)>>; 2],
}

impl Assigner<'_> {
    fn assign(&mut self, reg: usize) {
        let slot = self.find(reg);
        let ranges = self.intervals.ranges.get(reg);
        self.lanes[slot as usize].insert(reg as u32, ranges.iter().copied());
        let end = ranges.last().map_or(Point::default(), |last| last.end);
        let known = &mut self.ends[slot as usize];
        *known = end.max(*known);
        self.free[self.widths[slot as usize] as usize].push(Reverse((*known, slot)));
        self.slots[reg] = slot;
    }

    fn find(&mut self, reg: usize) -> u32 {
        let related = self.intervals.relations.get(reg).iter().filter(|relation| relation.other.is_virtual());
        let related = related.map(|relation| self.slots[relation.other.index()]).filter(|&slot| slot != NO_SLOT).take(MAX_SEARCH);
        let related: Vec<u32> = related.collect();
        if let Some(slot) = related.into_iter().find(|&slot| self.fits(reg, slot)) {
            return slot;
        }
        let (start, width) = (self.intervals.defs[reg], SlotWidth::of(self.intervals.regs[reg]));
        let free = &mut self.free[width as usize];
        while let Some(&Reverse((end, slot))) = free.peek().filter(|Reverse((end, _))| *end <= start) {
            free.pop();
            if self.ends[slot as usize] == end {
                return slot;
            }
        }
        let newest = (self.lanes.len().saturating_sub(MAX_SEARCH)..self.lanes.len()).map(|slot| slot as u32);
        if let Some(slot) = newest.rev().find(|&slot| self.fits(reg, slot)) {
            return slot;
        }
        self.lanes.push(Lane::default());
        self.widths.push(width);
        self.ends.push(Point::default());
        self.lanes.len() as u32 - 1
    }

    fn fits(&mut self, reg: usize, slot: u32) -> bool {
        if self.widths[slot as usize] != SlotWidth::of(self.intervals.regs[reg]) {
            return false;
        }
        let lane = &mut self.lanes[slot as usize];
        lane.advance(self.intervals.defs[reg]);
        lane.conflict(self.intervals.ranges.get(reg).iter().copied(), None) == Conflict::NONE
    }
}
