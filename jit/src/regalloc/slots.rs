//! Spill slots. Intervals of one width that are never live together share a slot. A block parameter shares its
//! argument's slot if possible, so that the value need not be copied along the edge. The slot of a loop's parameter is
//! kept for the value that the loop passes back: a copy from slot to slot there would cost a load and a store in every
//! iteration.

use super::client::SlotWidth;
use super::intervals::{Intervals, Origin};
use super::point::Point;
use super::register_file::Timeline;
use super::segments::{Location, Segments};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The slot of a register that has none.
pub const NO_SLOT: u32 = u32::MAX;
/// The number of slots that are searched for a hole before a new one is made.
const MAX_SEARCH: usize = 8;

/// Returns the slot of each virtual register, and the slots.
pub fn assign(intervals: &Intervals, segments: &Segments) -> (Vec<u32>, Vec<SlotWidth>) {
    let regs = intervals.regs.len();
    let in_memory = segments.all().iter().filter(|segment| segment.location == Location::Slot);
    let mut spilled: Vec<usize> = in_memory.map(|segment| segment.reg as usize).collect();
    spilled.sort_unstable_by_key(|&reg| (intervals.defs[reg], reg));
    spilled.dedup();
    let mut waiting = vec![false; regs];
    spilled.iter().for_each(|&reg| waiting[reg] = true);
    let mut assigner = Assigner {
        intervals,
        now: Point::default(),
        waiting,
        slots: vec![NO_SLOT; regs],
        timelines: Vec::new(),
        widths: Vec::new(),
        ends: Vec::new(),
        free: [BinaryHeap::new(), BinaryHeap::new(), BinaryHeap::new()],
    };
    for reg in spilled {
        if assigner.waiting[reg] {
            assigner.assign(reg);
        }
    }
    (assigner.slots, assigner.widths)
}

struct Assigner<'i> {
    intervals: &'i Intervals,
    /// The definition of the current register: no waiting register is defined earlier.
    now: Point,
    /// By virtual register, whether it needs a slot and has none yet.
    waiting: Vec<bool>,
    slots: Vec<u32>,
    timelines: Vec<Timeline<'static>>,
    /// The width of each slot.
    widths: Vec<SlotWidth>,
    /// By slot, the end of its last range.
    ends: Vec<Point>,
    /// By width, the slots ordered by the end of their last range; entries may be out of date.
    free: [BinaryHeap<Reverse<(Point, u32)>>; 3],
}

impl Assigner<'_> {
    /// Gives `reg` a slot, and gives the same slot to registers related to it and to each other, where their ranges allow it.
    fn assign(&mut self, reg: usize) {
        self.now = self.intervals.defs[reg];
        let slot = self.find(reg);
        self.put(reg, slot);
        let mut work = vec![reg];
        while let Some(reg) = work.pop() {
            for other in passed(self.intervals, reg) {
                if self.waiting[other] && self.fits(other, slot) {
                    self.put(other, slot);
                    work.push(other);
                }
            }
        }
    }

    fn put(&mut self, reg: usize, slot: u32) {
        let ranges = self.intervals.ranges.get(reg);
        self.timelines[slot as usize].insert(reg as u32, ranges.iter().copied());
        let end = ranges.last().map_or(Point::default(), |last| last.end);
        let known = &mut self.ends[slot as usize];
        *known = end.max(*known);
        self.free[self.widths[slot as usize] as usize].push(Reverse((*known, slot)));
        self.slots[reg] = slot;
        self.waiting[reg] = false;
    }

    fn find(&mut self, reg: usize) -> u32 {
        for other in passed(self.intervals, reg) {
            let slot = self.slots[other];
            if slot != NO_SLOT && self.fits(reg, slot) {
                return slot;
            }
        }
        let width = SlotWidth::of(self.intervals.regs[reg]);
        let free = &mut self.free[width as usize];
        while let Some(&Reverse((end, slot))) = free.peek().filter(|Reverse((end, _))| *end <= self.now) {
            free.pop();
            if self.ends[slot as usize] == end {
                return slot;
            }
        }
        let newest = (self.timelines.len().saturating_sub(MAX_SEARCH)..self.timelines.len()).map(|slot| slot as u32);
        if let Some(slot) = newest.rev().find(|&slot| self.fits(reg, slot)) {
            return slot;
        }
        self.timelines.push(Timeline::new([&[]; 2]));
        self.widths.push(width);
        self.ends.push(Point::default());
        self.timelines.len() as u32 - 1
    }

    fn fits(&mut self, reg: usize, slot: u32) -> bool {
        if self.widths[slot as usize] != SlotWidth::of(self.intervals.regs[reg]) {
            return false;
        }
        let timeline = &mut self.timelines[slot as usize];
        timeline.advance(self.now);
        timeline.is_free(self.intervals.ranges.get(reg))
    }
}

/// The registers that are passed to a parameter, or the parameters to which a register is passed.
fn passed(intervals: &Intervals, reg: usize) -> impl Iterator<Item = usize> {
    let is_param = move |reg: usize| intervals.origins[reg] == Origin::Param;
    let others = intervals.relations.get(reg).iter().filter(|relation| relation.other.is_virtual());
    others.map(|relation| relation.other.index()).filter(move |&other| is_param(reg) || is_param(other)).take(MAX_SEARCH)
}
