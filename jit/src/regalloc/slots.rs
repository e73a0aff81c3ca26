//! Spill slots: intervals that are never live together share one, and a block's parameter shares its argument's if it can, so
//! that a value stays where it is when control passes on.

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

/// Answers the slot of each virtual register, and how many slots there are.
pub fn assign(intervals: &Intervals, pieces: &Pieces) -> (Vec<u32>, u32) {
    let regs = intervals.regs.len();
    let in_memory = |&reg: &usize| pieces.of_reg(reg).any(|piece| piece.home == Home::Slot);
    let mut spilled: Vec<usize> = (0..regs).filter(in_memory).collect();
    spilled.sort_by_key(|&reg| intervals.defs[reg]);
    let mut assigner =
        Assigner { intervals, slots: vec![NO_SLOT; regs], lanes: Vec::new(), ends: Vec::new(), free: BinaryHeap::new() };
    spilled.into_iter().for_each(|reg| assigner.assign(reg));
    (assigner.slots, assigner.lanes.len() as u32)
}

struct Assigner<'i> {
    intervals: &'i Intervals,
    slots: Vec<u32>,
    lanes: Vec<Lane<'static>>,
    /// By slot, where its last range ends.
    ends: Vec<Point>,
    /// Slots by where their last range ends; entries may be out of date.
    free: BinaryHeap<Reverse<(Point, u32)>>,
}

impl Assigner<'_> {
    fn assign(&mut self, reg: usize) {
        let slot = self.find(reg);
        let ranges = self.intervals.ranges.get(reg);
        self.lanes[slot as usize].insert(reg as u32, ranges.iter().copied());
        let end = ranges.last().map_or(Point::default(), |last| last.end);
        let known = &mut self.ends[slot as usize];
        *known = end.max(*known);
        self.free.push(Reverse((*known, slot)));
        self.slots[reg] = slot;
    }

    fn find(&mut self, reg: usize) -> u32 {
        let related = self.intervals.relations.get(reg).iter().filter(|relation| relation.other.is_virtual());
        let related = related.map(|relation| self.slots[relation.other.index()]).filter(|&slot| slot != NO_SLOT).take(MAX_SEARCH);
        let related: Vec<u32> = related.collect();
        if let Some(slot) = related.into_iter().find(|&slot| self.fits(reg, slot)) {
            return slot;
        }
        let start = self.intervals.defs[reg];
        while let Some(&Reverse((end, slot))) = self.free.peek().filter(|Reverse((end, _))| *end <= start) {
            self.free.pop();
            if self.ends[slot as usize] == end {
                return slot;
            }
        }
        let newest = (self.lanes.len().saturating_sub(MAX_SEARCH)..self.lanes.len()).map(|slot| slot as u32);
        if let Some(slot) = newest.rev().find(|&slot| self.fits(reg, slot)) {
            return slot;
        }
        self.lanes.push(Lane::default());
        self.ends.push(Point::default());
        self.lanes.len() as u32 - 1
    }

    fn fits(&mut self, reg: usize, slot: u32) -> bool {
        let lane = &mut self.lanes[slot as usize];
        lane.advance(self.intervals.defs[reg]);
        lane.conflict(self.intervals.ranges.get(reg).iter().copied(), None) == Conflict::NONE
    }
}
