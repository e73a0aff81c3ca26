//! The register file during the scan: the contents of each physical register and each spill slot from the scan's
//! current point on.

use super::client::{Class, Reg, RegSet};
use super::intervals::Claims;
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
pub const MAX_RANGES: usize = 64;

/// The first entries of a timeline that are not over; most queries concern only these.
#[derive(Clone, Copy, Debug)]
struct Front {
    /// The point at which the first of these entries ends.
    stale: Point,
    /// The entry that starts first.
    first: Conflict,
}

impl Front {
    #[inline]
    fn of(claims: [&[Range]; 2], taken: Option<&Occupied>) -> Front {
        let mut front = Front { stale: Point::NEVER, first: Conflict::NONE };
        for claims in claims {
            if let Some(claim) = claims.first() {
                front.stale = front.stale.min(claim.end);
                front.first.at = front.first.at.min(claim.start);
            }
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
    /// Ranges in which instructions claim the register and that are not over, in two lists, ascending.
    claims: [&'a [Range]; 2],
}

impl<'a> Timeline<'a> {
    /// An empty timeline with these claims.
    pub fn new(claims: [&'a [Range]; 2]) -> Timeline<'a> {
        Timeline { front: Front::of(claims, None), taken: Vec::new(), claims }
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
        for claims in &mut self.claims {
            if claims.first().is_some_and(|first| first.end <= now) {
                *claims = not_over(claims, now);
            }
        }
        self.find_front();
    }

    fn find_front(&mut self) {
        self.front = Front::of(self.claims, self.taken.last());
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
        let mut claims = self.claims;
        let mut taken = &self.taken[..];
        for (i, range) in ranges.enumerate() {
            let mut claim = Point::NEVER;
            for claims in &mut claims {
                *claims = not_over(claims, range.start);
                claim = claims.first().map_or(claim, |first| claim.min(first.start));
            }
            taken = &taken[..taken.len() - skip(taken.len(), |i| taken[taken.len() - 1 - i].range.end <= range.start)];
            let other =
                taken.iter().rev().find(|taken| Some(taken.segment) != ignored).filter(|other| other.range.start < range.end);
            let claim = if claim < range.end { claim.max(range.start) } else { Point::NEVER };
            let other = other.map_or(Conflict::NONE, |other| Conflict {
                at: other.range.start.max(range.start),
                segment: Some(other.segment),
            });
            let first = if other.at < claim { other } else { Conflict { at: claim, segment: None } };
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
            match skip(self.taken.len(), |i| self.taken[self.taken.len() - 1 - i].range.start < range.start) {
                // Usually it is before all others.
                0 => self.taken.push(Occupied { range, segment }),
                after => self.taken.insert(self.taken.len() - after, Occupied { range, segment }),
            }
        }
        self.find_front();
    }

    /// Removes a segment.
    pub fn remove(&mut self, segment: u32) {
        self.taken.retain(|taken| taken.segment != segment);
        self.find_front();
    }
}

/// The registers of `class` whose point is at or after `point`. Each is compared, which a compiler turns into few vector
/// instructions.
#[inline]
fn at_or_after(points: &[Point; Reg::PHYSICAL], class: Class, point: Point) -> RegSet {
    const COUNT: usize = Reg::OF_CLASS;
    let points: &[Point; COUNT] = &points.as_chunks().0[class as usize];
    const LANES: usize = 4;
    let mut bits = [0i32; LANES];
    for i in 0..COUNT {
        bits[i % LANES] |= -i32::from(points[i].signed() >= point.signed()) & 1 << i;
    }
    RegSet::of_class(class, bits.into_iter().fold(0, |mask, bit| mask | bit) as u16)
}

/// The timelines of all physical registers. The first entry of each is also in an array, so that the registers that are
/// free for a while are found in one walk.
#[derive(Debug)]
pub struct RegisterFile<'a> {
    /// By register, the start of its first entry that is not over.
    first: [Point; Reg::PHYSICAL],
    /// By register, the point at which one of its first entries is over.
    stale: [Point; Reg::PHYSICAL],
    /// By class, a point before which no entry is over.
    soonest: [Point; 2],
    timelines: Vec<Timeline<'a>>,
}

impl<'a> RegisterFile<'a> {
    /// Registers with these claims, and no segments.
    pub fn new(claims: &'a Claims) -> RegisterFile<'a> {
        let timelines = Reg::all_physical().map(|reg| Timeline::new(claims.of(reg))).collect();
        let (first, stale) = ([Point::NEVER; Reg::PHYSICAL], [Point::NEVER; Reg::PHYSICAL]);
        let mut file = RegisterFile { first, stale, soonest: [Point::NEVER; 2], timelines };
        (0..Reg::PHYSICAL).for_each(|reg| file.note_front(reg));
        file
    }

    fn note_front(&mut self, reg: usize) {
        let Front { stale, first } = self.timelines[reg].front;
        (self.first[reg], self.stale[reg]) = (first.at, stale);
        let soonest = &mut self.soonest[reg / Reg::OF_CLASS];
        *soonest = stale.min(*soonest);
    }

    /// Removes what ends at or before `now` from the timelines of these registers of `class`.
    #[inline]
    pub fn advance_all(&mut self, class: Class, regs: RegSet, now: Point) {
        if now < self.soonest[class as usize] {
            return;
        }
        let stale = regs.minus(at_or_after(&self.stale, class, now.next()));
        stale.iter().for_each(|reg| self.advance(reg, now));
        let of_class = &self.stale[Reg::OF_CLASS * class as usize..][..Reg::OF_CLASS];
        self.soonest[class as usize] = of_class.iter().fold(Point::NEVER, |soonest, &stale| soonest.min(stale));
    }

    /// Removes what ends at or before `now` from a register's timeline.
    #[inline]
    pub fn advance(&mut self, reg: Reg, now: Point) {
        if now >= self.stale[reg.number()] {
            self.timelines[reg.number()].forget(now);
            self.note_front(reg.number());
        }
    }

    /// The registers of `class` whose first entry begins at or after `point`.
    #[inline]
    pub fn free_until(&self, class: Class, point: Point) -> RegSet {
        at_or_after(&self.first, class, point)
    }

    /// The start of the register's first entry that is not over.
    #[inline]
    pub fn first(&self, reg: Reg) -> Point {
        self.first[reg.number()]
    }

    /// The first conflict from `start` on, to which the register was advanced.
    #[inline]
    pub fn first_conflict(&self, reg: Reg, start: Point) -> Conflict {
        let Conflict { at, segment } = self.timelines[reg.number()].front.first;
        Conflict { at: at.max(start), segment }
    }

    /// The first conflict of `ranges` with the register's contents, except those of segment `ignored`.
    pub fn conflict(&self, reg: Reg, ranges: impl Iterator<Item = Range>, ignored: Option<u32>) -> Conflict {
        self.timelines[reg.number()].conflict(ranges, ignored)
    }

    /// Whether the register is free during these ranges, as far as they are searched.
    #[inline]
    pub fn is_free(&self, reg: Reg, ranges: &[Range]) -> bool {
        self.timelines[reg.number()].is_free(ranges)
    }

    /// Adds a segment without holes that begins before everything else in the register.
    #[inline]
    pub fn insert_first(&mut self, reg: Reg, segment: u32, range: Range) {
        let timeline = &mut self.timelines[reg.number()];
        timeline.taken.push(Occupied { range, segment });
        timeline.front.stale = timeline.front.stale.min(range.end);
        timeline.front.first = Conflict { at: range.start, segment: Some(segment) };
        self.note_front(reg.number());
    }

    /// Adds a segment to a register.
    pub fn insert(&mut self, reg: Reg, segment: u32, ranges: impl Iterator<Item = Range>) {
        self.timelines[reg.number()].insert(segment, ranges);
        self.note_front(reg.number());
    }

    /// Removes a segment from a register.
    pub fn remove(&mut self, reg: Reg, segment: u32) {
        self.timelines[reg.number()].remove(segment);
        self.note_front(reg.number());
    }
}

/// The ranges that end after `now`.
#[inline]
fn not_over(ranges: &[Range], now: Point) -> &[Range] {
    &ranges[skip(ranges.len(), |i| ranges[i].end <= now)..]
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
