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
    /// The interval's next segment, or [`NO_SEGMENT`].
    pub next: u32,
    /// The last register of the interval before this segment, or [`Reg::NONE`].
    pub previous: Reg,
    /// The first of the interval's ranges that does not end before the segment.
    first_range: u32,
}

impl Segment {
    /// A part of the segment, with a location of its own. Its ranges are not known.
    pub fn part(self, start: Point, end: Point, location: Location) -> Segment {
        Segment { start, end, location, ..self }
    }
}

/// The number of no segment.
pub const NO_SEGMENT: u32 = u32::MAX;

/// All segments.
#[derive(Debug)]
pub struct Segments {
    all: Vec<Segment>,
    /// By virtual register, its first segment, or [`NO_SEGMENT`].
    first: Vec<u32>,
    /// By virtual register, the segment that was made last; most queries concern it.
    latest: Vec<u32>,
}

impl Segments {
    /// The bytes that they take.
    pub fn size(&self) -> usize {
        size_of_val(&*self.all) + size_of_val(&*self.first) + size_of_val(&*self.latest)
    }

    /// No segments of this many virtual registers.
    pub fn new(regs: usize) -> Segments {
        Segments { all: Vec::with_capacity(regs + regs / 4), first: vec![NO_SEGMENT; regs], latest: vec![NO_SEGMENT; regs] }
    }

    /// Adds the segment of a whole interval, which has ranges.
    #[inline]
    pub fn add_whole(&mut self, intervals: &Intervals, reg: u32) -> u32 {
        let ranges = intervals.ranges.get(reg as usize);
        let (start, end) = (ranges[0].start, ranges[ranges.len() - 1].end);
        let (location, segment) = (Location::Pending, self.all.len() as u32);
        self.all.push(Segment { reg, start, end, location, next: NO_SEGMENT, previous: Reg::NONE, first_range: 0 });
        self.first[reg as usize] = segment;
        self.latest[reg as usize] = segment;
        segment
    }

    /// The number of segments.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// The first segment of a virtual register that is live somewhere.
    #[inline]
    pub fn first(&self, reg: usize) -> Option<&Segment> {
        self.all.get(self.first[reg] as usize)
    }

    /// All segments, in any order.
    pub fn all(&self) -> &[Segment] {
        &self.all
    }

    /// A segment.
    #[inline]
    pub fn get(&self, segment: u32) -> &Segment {
        &self.all[segment as usize]
    }

    /// Sets the location of a segment.
    pub fn set_location(&mut self, segment: u32, location: Location) {
        self.all[segment as usize].location = location;
    }

    /// All segments of a virtual register, in order.
    pub fn of_reg(&self, reg: usize) -> impl Iterator<Item = &Segment> {
        std::iter::successors(self.first(reg), |segment| self.all.get(segment.next as usize))
    }

    /// The location of a register at `point`, as far as it is decided and cheap to find.
    #[inline]
    pub fn find(&self, reg: usize, point: Point) -> Location {
        const EFFORT: usize = 16;
        let Some(latest) = self.all.get(self.latest[reg] as usize) else { return Location::Pending };
        let mut segment = if latest.start <= point { latest } else { self.get(self.first[reg]) };
        for _ in 0..EFFORT {
            if segment.start <= point && point < segment.end {
                return segment.location;
            }
            match self.all.get(segment.next as usize) {
                Some(next) => segment = next,
                None => break,
            }
        }
        Location::Pending
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

    /// Replaces the segments of a virtual register. Afterwards none of its segments can be split, and their ranges are not known. What is
    /// left over of the old ones are empty parts in memory.
    pub fn replace(&mut self, reg: u32, segments: &[Segment]) {
        let mut old = self.first[reg as usize];
        let mut last = NO_SEGMENT;
        for segment in segments {
            let i = if old == NO_SEGMENT { self.all.len() as u32 } else { old };
            match self.all.get_mut(i as usize) {
                Some(place) => {
                    old = place.next;
                    *place = Segment { next: NO_SEGMENT, ..*segment };
                }
                None => self.all.push(Segment { next: NO_SEGMENT, ..*segment }),
            }
            match self.all.get_mut(last as usize) {
                Some(last) => last.next = i,
                None => self.first[reg as usize] = i,
            }
            last = i;
        }
        while let Some(left) = self.all.get_mut(old as usize) {
            (left.start, left.location) = (left.end, Location::Slot);
            old = left.next;
        }
        self.latest[reg as usize] = self.first[reg as usize];
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
            Location::Reg(reg) => reg,
            Location::Slot | Location::Pending => whole.previous,
        };
        self.all.push(Segment { start, location: Location::Pending, previous, first_range, ..whole });
        let first = &mut self.all[segment as usize];
        (first.end, first.next) = (at, second);
        self.latest[whole.reg as usize] = second;
        second
    }
}
