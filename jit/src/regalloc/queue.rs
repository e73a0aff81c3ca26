//! The queue of the scan: segments without a location, ordered by their starts. Those of whole intervals are sorted at
//! the beginning; only the rests of split segments, which are few, are in a heap.

use super::point::Point;
use super::segments::Segments;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

fn sort(entries: &mut [(Point, u32)]) {
    entries.sort_unstable_by_key(|&entry| Reverse(entry));
}

/// The queue.
pub struct Queue {
    /// Segments of whole intervals, last first.
    whole: Vec<(Point, u32)>,
    /// Rests of segments.
    rests: BinaryHeap<Reverse<(Point, u32)>>,
}

impl Queue {
    /// The queue of all segments, which are those of whole intervals; `defined` has the virtual registers in the order of their
    /// definitions.
    pub fn of(segments: &Segments, defined: &[u32]) -> Queue {
        let entry = |segment: u32| (segments.get(segment).start, segment);
        let mut whole: Vec<(Point, u32)> =
            defined.iter().rev().filter_map(|&reg| segments.first(reg as usize).map(entry)).collect();
        // Only the definitions of one instruction may be in another order.
        whole.chunk_by_mut(|a, b| a.0.inst() == b.0.inst()).filter(|chunk| chunk.len() > 1).for_each(sort);
        if !whole.is_sorted_by(|a, b| a > b) {
            sort(&mut whole);
        }
        Queue { whole, rests: BinaryHeap::new() }
    }

    /// Adds the rest of a segment.
    pub fn push(&mut self, start: Point, segment: u32) {
        self.rests.push(Reverse((start, segment)));
    }

    /// Removes the segment that starts first; of several, the one that was made first.
    pub fn pop(&mut self) -> Option<u32> {
        let whole = self.whole.last();
        match self.rests.peek() {
            Some(Reverse(rest)) if whole.is_none_or(|whole| rest < whole) => self.rests.pop().map(|Reverse(rest)| rest.1),
            _ => self.whole.pop().map(|entry| entry.1),
        }
    }
}
