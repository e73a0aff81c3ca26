//! The queue of the scan: segments without a location, ordered by their starts. Those of whole intervals are in the order
//! of their definitions; only the rests of split segments, which are few, are in a heap.

use super::intervals::Intervals;
use super::point::Point;
use super::segments::Segments;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The queue.
pub struct Queue<'a> {
    /// Virtual registers whose segments do not exist yet, by the starts of their intervals.
    whole: &'a [u32],
    /// The start of the first of them.
    next: Point,
    /// Rests of segments.
    rests: BinaryHeap<Reverse<(Point, u32)>>,
}

impl<'a> Queue<'a> {
    /// The queue of all intervals.
    pub fn of(intervals: &'a Intervals) -> Queue<'a> {
        let mut queue = Queue { whole: &intervals.by_start, next: Point::NEVER, rests: BinaryHeap::new() };
        queue.find_next(intervals);
        queue
    }

    fn find_next(&mut self, intervals: &Intervals) {
        self.next = self.whole.first().map_or(Point::NEVER, |&reg| intervals.ranges.get(reg as usize)[0].start);
    }

    /// Adds the rest of a segment.
    pub fn push(&mut self, start: Point, segment: u32) {
        self.rests.push(Reverse((start, segment)));
    }

    /// Removes the segment that starts first; of several, the one that was made first. Makes that of a whole interval.
    #[inline]
    pub fn pop(&mut self, intervals: &Intervals, segments: &mut Segments) -> Option<u32> {
        if self.rests.peek().is_some_and(|Reverse(rest)| rest.0 < self.next) {
            return self.rests.pop().map(|Reverse(rest)| rest.1);
        }
        let (&reg, whole) = self.whole.split_first()?;
        self.whole = whole;
        self.find_next(intervals);
        Some(segments.add_whole(intervals, reg))
    }
}
