//! Live-range segments: splitting cuts an interval into segments (split children), each of which is in one place from its start
//! to its end.

use super::client::Reg;
use super::intervals::Intervals;
use super::point::{Point, Range};

/// Where a segment is: a register, or the spill slot of its interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// Not decided.
    Pending,
    /// In a register.
    Reg(Reg),
    /// In its interval's spill slot, which all segments of the interval share.
    Slot,
}

/// See the head of this file.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// The virtual register's index.
    pub reg: u32,
    /// First point.
    pub start: Point,
    /// First point after it.
    pub end: Point,
    /// Where it is.
    pub location: Location,
    /// The interval's next segment.
    pub next: Option<u32>,
    /// The register that the interval was in last, before this segment.
    pub previous: Option<Reg>,
    /// The first of the interval's ranges that doesn't end before the segment.
    first_range: u32,
}

/// All segments.
#[derive(Debug)]
pub struct Segments {
    all: Vec<Segment>,
    /// By virtual register: its first segment.
    first: Vec<Option<u32>>,
    /// By virtual register: the segment that was last made for it, which most queries are about.
    latest: Vec<Option<u32>>,
}

impl Segments {
    /// Every interval in one segment.
    pub fn of(intervals: &Intervals) -> Segments {
        let regs = intervals.regs.len();
        let mut segments = Segments { all: Vec::with_capacity(regs), first: Vec::with_capacity(regs), latest: Vec::new() };
        for reg in 0..regs {
            let ranges = intervals.ranges.get(reg);
            let segment = ranges.first().zip(ranges.last()).map(|(first, last)| {
                let (start, end) = (first.start, last.end);
                let location = Location::Pending;
                segments.all.push(Segment { reg: reg as u32, start, end, location, next: None, previous: None, first_range: 0 });
                segments.all.len() as u32 - 1
            });
            segments.first.push(segment);
        }
        segments.latest = segments.first.clone();
        segments
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// A segment.
    pub fn get(&self, segment: u32) -> &Segment {
        &self.all[segment as usize]
    }

    /// Decides where a segment is.
    pub fn set_location(&mut self, segment: u32, location: Location) {
        self.all[segment as usize].location = location;
    }

    /// All segments of a virtual register, in order.
    pub fn of_reg(&self, reg: usize) -> impl Iterator<Item = &Segment> {
        let first = self.first[reg].map(|first| self.get(first));
        std::iter::successors(first, |segment| segment.next.map(|next| self.get(next)))
    }

    /// Where a register is at `point`, as far as that is decided and found with little effort.
    pub fn find(&self, reg: usize, point: Point) -> Location {
        const EFFORT: usize = 16;
        let latest = self.latest[reg].map(|latest| self.get(latest)).filter(|latest| latest.start <= point);
        let from = latest.or(self.first[reg].map(|first| self.get(first)));
        let all = std::iter::successors(from, |segment| segment.next.map(|next| self.get(next)));
        let found = all.take(EFFORT).find(|segment| segment.start <= point && point < segment.end);
        found.map_or(Location::Pending, |segment| segment.location)
    }

    /// The ranges of a segment.
    pub fn ranges<'p>(&'p self, intervals: &'p Intervals, segment: u32) -> impl Iterator<Item = Range> + 'p {
        let Segment { reg, start, end, first_range, .. } = *self.get(segment);
        let ranges = &intervals.ranges.get(reg as usize)[first_range as usize..];
        let clipped = move |range: &Range| Range { start: range.start.max(start), end: range.end.min(end) };
        ranges.iter().take_while(move |range| range.start < end).map(clipped)
    }

    /// Splits a segment; returns the second part, which has no location yet. If the split is in a hole, it starts where the hole ends.
    pub fn split(&mut self, intervals: &Intervals, segment: u32, at: Point) -> u32 {
        let whole = *self.get(segment);
        debug_assert!(whole.start < at && at < whole.end);
        let ranges = &intervals.ranges.get(whole.reg as usize)[whole.first_range as usize..];
        let skipped = ranges.partition_point(|range| range.end <= at);
        let start = ranges[skipped].start.max(at);
        let first_range = whole.first_range + skipped as u32;
        let second = self.all.len() as u32;
        let previous = match whole.location {
            Location::Reg(reg) => Some(reg),
            Location::Slot | Location::Pending => whole.previous,
        };
        self.all.push(Segment { start, location: Location::Pending, previous, first_range, ..whole });
        let first = &mut self.all[segment as usize];
        (first.end, first.next) = (at, Some(second));
        self.latest[whole.reg as usize] = Some(second);
        second
    }
}
