//! Live-range segments: splitting cuts an interval into segments (split children), each of which has one location.

use super::client::Reg;
use super::intervals::Intervals;
use super::point::{Point, Range};

/// The location of a segment: a register, or the spill slot of its interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Location {
    /// Not decided yet.
    Pending,
    /// In a register.
    Reg(Reg),
    /// In its interval's spill slot, which all segments of the interval share.
    Slot,
}

/// A part of an interval with one location.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// The index of the virtual register.
    pub reg: u32,
    /// The first point.
    pub start: Point,
    /// The first point after the segment.
    pub end: Point,
    /// Its location.
    pub location: Location,
    /// The interval's next segment.
    pub next: Option<u32>,
    /// The last register of the interval before this segment.
    pub previous: Option<Reg>,
    /// The first of the interval's ranges that does not end before the segment.
    first_range: u32,
}

/// All segments.
#[derive(Debug)]
pub struct Segments {
    all: Vec<Segment>,
    /// By virtual register, its first segment.
    first: Vec<Option<u32>>,
    /// By virtual register, the segment that was made last; most queries concern it.
    latest: Vec<Option<u32>>,
}

impl Segments {
    /// One segment for every interval.
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

    /// The number of segments.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The first segment of a virtual register that is live somewhere.
    pub fn first(&self, reg: usize) -> Option<u32> {
        self.first[reg]
    }

    /// All segments.
    pub fn all(&self) -> &[Segment] {
        &self.all
    }

    /// A segment.
    pub fn get(&self, segment: u32) -> &Segment {
        &self.all[segment as usize]
    }

    /// Sets the location of a segment.
    pub fn set_location(&mut self, segment: u32, location: Location) {
        self.all[segment as usize].location = location;
    }

    /// All segments of a virtual register, in order.
    pub fn of_reg(&self, reg: usize) -> impl Iterator<Item = &Segment> {
        let first = self.first[reg].map(|first| self.get(first));
        std::iter::successors(first, |segment| segment.next.map(|next| self.get(next)))
    }

    /// The location of a register at `point`, as far as it is decided and cheap to find.
    pub fn find(&self, reg: usize, point: Point) -> Location {
        const EFFORT: usize = 16;
        let latest = self.latest[reg].map(|latest| self.get(latest)).filter(|latest| latest.start <= point);
        let from = latest.or(self.first[reg].map(|first| self.get(first)));
        let all = std::iter::successors(from, |segment| segment.next.map(|next| self.get(next)));
        let found = all.take(EFFORT).find(|segment| segment.start <= point && point < segment.end);
        found.map_or(Location::Pending, |segment| segment.location)
    }

    /// The end of a segment's first range.
    #[inline]
    pub fn first_end(&self, intervals: &Intervals, segment: u32) -> Point {
        let Segment { reg, end, first_range, .. } = *self.get(segment);
        intervals.ranges.get(reg as usize)[first_range as usize].end.min(end)
    }

    /// The ranges of a segment.
    pub fn ranges<'p>(&'p self, intervals: &'p Intervals, segment: u32) -> impl Iterator<Item = Range> + 'p {
        let Segment { reg, start, end, first_range, .. } = *self.get(segment);
        let ranges = &intervals.ranges.get(reg as usize)[first_range as usize..];
        let clipped = move |range: &Range| Range { start: range.start.max(start), end: range.end.min(end) };
        ranges.iter().take_while(move |range| range.start < end).map(clipped)
    }

    /// Splits a segment and returns the second part, which has no location yet. If `at` is in a hole, the second part starts at
    /// the end of the hole.
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
