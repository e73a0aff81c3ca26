//! The register file during the scan: the contents of each physical register and each spill slot from the scan's
//! current point on.

use super::point::{Point, Range};

/// A range of a segment in a register.
#[derive(Clone, Copy, Debug)]
struct Occupied {
    range: Range,
    segment: u32,
}

/// The result of a search for conflicts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// The first point of the conflict.
    pub at: Point,
    /// The segment that is there, or `None` if an instruction claims the register.
    pub segment: Option<u32>,
}

impl Conflict {
    /// No conflict.
    pub const NONE: Conflict = Conflict { at: Point::NEVER, segment: None };
}

/// After this many ranges of a segment, a search gives up and reports a conflict, so that placing a segment has a
/// bounded cost whatever its length.
const MAX_RANGES: usize = 64;

/// The first entries of a timeline that are not over; most queries concern only these.
#[derive(Debug)]
struct Front {
    /// The point at which the first of these entries ends.
    stale: Point,
    /// The entry that starts first.
    first: Conflict,
}

impl Front {
    #[inline]
    fn of(claim: Option<&Range>, taken: Option<&Occupied>) -> Front {
        let mut front = Front { stale: Point::NEVER, first: Conflict::NONE };
        if let Some(claim) = claim {
            front = Front { stale: claim.end, first: Conflict { at: claim.start, segment: None } };
        }
        if let Some(Occupied { range, segment }) = taken {
            front.stale = front.stale.min(range.end);
            if range.start < front.first.at {
                front.first = Conflict { at: range.start, segment: Some(*segment) };
            }
        }
        front
    }
}

/// The timeline of one register: the segments in it and the claims of instructions.
#[derive(Debug)]
pub struct Timeline<'a> {
    front: Front,
    /// Ranges of the segments, without overlap, last first.
    taken: Vec<Occupied>,
    /// Ranges in which instructions claim the register, ascending.
    claims: &'a [Range],
    /// The first claim that is not over.
    next_claim: usize,
}

impl<'a> Timeline<'a> {
    /// An empty timeline with these claims.
    pub fn new(claims: &'a [Range]) -> Timeline<'a> {
        Timeline { front: Front::of(claims.first(), None), taken: Vec::new(), claims, next_claim: 0 }
    }

    /// Removes the entries that end at or before `now`.
    #[inline]
    pub fn advance(&mut self, now: Point) {
        if now >= self.front.stale {
            self.forget(now);
        }
    }

    fn forget(&mut self, now: Point) {
        while self.taken.last().is_some_and(|taken| taken.range.end <= now) {
            self.taken.pop();
        }
        let claims = &self.claims[self.next_claim..];
        // Usually none or one is over.
        self.next_claim += claims.iter().take_while(|claim| claim.end <= now).count();
        self.find_front();
    }

    fn find_front(&mut self) {
        self.front = Front::of(self.claims.get(self.next_claim), self.taken.last());
    }

    /// Advances to `start` and returns the first conflict of a segment from there to `end` with the register's contents. The
    /// first entries decide most queries: either nothing begins before the segment ends, or the register is taken at its start.
    #[inline]
    pub fn conflict_from<R: Iterator<Item = Range>>(&mut self, start: Point, end: Point, ranges: impl FnOnce() -> R) -> Conflict {
        self.advance(start);
        let Conflict { at, segment } = self.front.first;
        match at {
            _ if end <= at => Conflict::NONE,
            _ if at <= start => Conflict { at: start, segment },
            _ => self.conflict(ranges(), None),
        }
    }

    /// Whether the register is free during these ranges, as far as they are searched.
    #[inline]
    pub fn is_free(&self, ranges: &[Range]) -> bool {
        // Usually nothing begins before they end.
        let ends_before = |last: &Range| last.end <= self.front.first.at;
        ranges.len() <= MAX_RANGES && ranges.last().is_none_or(ends_before)
            || self.conflict(ranges.iter().copied(), None) == Conflict::NONE
    }

    /// The first conflict of `ranges` with the register's contents, except those of segment `ignored`.
    pub fn conflict(&self, ranges: impl Iterator<Item = Range>, ignored: Option<u32>) -> Conflict {
        let mut claims = &self.claims[self.next_claim..];
        let mut taken = &self.taken[..];
        for (i, range) in ranges.enumerate() {
            claims = &claims[skip(claims.len(), |i| claims[i].end <= range.start)..];
            taken = &taken[..taken.len() - skip(taken.len(), |i| taken[taken.len() - 1 - i].range.end <= range.start)];
            let claim = claims.first().filter(|claim| claim.start < range.end);
            let other =
                taken.iter().rev().find(|taken| Some(taken.segment) != ignored).filter(|other| other.range.start < range.end);
            let claim = claim.map_or(Conflict::NONE, |claim| Conflict { at: claim.start.max(range.start), segment: None });
            let other = other.map_or(Conflict::NONE, |other| Conflict {
                at: other.range.start.max(range.start),
                segment: Some(other.segment),
            });
            let first = if other.at < claim.at { other } else { claim };
            if first != Conflict::NONE {
                return first;
            }
            if i == MAX_RANGES {
                return Conflict { at: range.end, segment: None };
            }
        }
        Conflict::NONE
    }

    /// Adds a segment.
    pub fn insert(&mut self, segment: u32, ranges: impl Iterator<Item = Range>) {
        for range in ranges {
            let after = skip(self.taken.len(), |i| self.taken[self.taken.len() - 1 - i].range.start < range.start);
            self.taken.insert(self.taken.len() - after, Occupied { range, segment });
        }
        self.find_front();
    }

    /// Removes a segment.
    pub fn remove(&mut self, segment: u32) {
        self.taken.retain(|taken| taken.segment != segment);
        self.find_front();
    }
}

/// The length of the prefix of `len` items for which `past` is true. It is fast if the prefix is short.
#[inline]
fn skip(len: usize, past: impl Fn(usize) -> bool) -> usize {
    if len == 0 || !past(0) {
        return 0;
    }
    let mut step = 2;
    let mut low = 1;
    while low + step <= len && past(low + step - 1) {
        low += step;
        step *= 2;
    }
    let mut high = len.min(low + step);
    while low < high {
        let middle = (low + high) / 2;
        if past(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
