//! What a physical register holds, from the point that the scan has reached onwards.

use super::point::{Point, Range};

/// A range of a piece.
#[derive(Clone, Copy, Debug)]
struct Taken {
    range: Range,
    piece: u32,
}

/// What a search meets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conflict {
    /// Where.
    pub at: Point,
    /// The piece there; none if an instruction claims the register.
    pub piece: Option<u32>,
}

impl Conflict {
    /// There is none.
    pub const NONE: Conflict = Conflict { at: Point::NEVER, piece: None };
}

/// After this many ranges of a piece a search gives up and reports a conflict: so the cost of placing
/// a piece is bounded whatever its length.
const MAX_RANGES: usize = 64;

/// The first things in a lane that are not past: what most questions are about.
#[derive(Debug)]
struct Front {
    /// When the first of them ends.
    stale: Point,
    /// The one that starts first.
    first: Conflict,
}

impl Front {
    #[inline]
    fn of(claim: Option<&Range>, taken: Option<&Taken>) -> Front {
        let mut front = Front { stale: Point::NEVER, first: Conflict::NONE };
        if let Some(claim) = claim {
            front = Front { stale: claim.end, first: Conflict { at: claim.start, piece: None } };
        }
        if let Some(Taken { range, piece }) = taken {
            front.stale = front.stale.min(range.end);
            if range.start < front.first.at {
                front.first = Conflict { at: range.start, piece: Some(*piece) };
            }
        }
        front
    }
}

/// One register.
#[derive(Debug)]
pub struct Lane<'a> {
    front: Front,
    /// Ranges of the pieces in it, without overlap, last first.
    taken: Vec<Taken>,
    /// Ranges in which instructions claim it, ascending.
    claims: &'a [Range],
    /// The first of them that is not past.
    next_claim: usize,
}

impl<'a> Lane<'a> {
    /// A register with these claims on it.
    pub fn new(claims: &'a [Range]) -> Lane<'a> {
        Lane { front: Front::of(claims.first(), None), taken: Vec::new(), claims, next_claim: 0 }
    }

    /// Forgets what ends at or before `now`.
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
        // Mostly none or one is past.
        self.next_claim += claims.iter().take_while(|claim| claim.end <= now).count();
        self.find_front();
    }

    fn find_front(&mut self) {
        self.front = Front::of(self.claims.get(self.next_claim), self.taken.last());
    }

    /// Advances to `start`, and answers the first conflict of a piece from there to `end` with what is in the register.
    /// Mostly the first things there tell: nothing comes before the piece ends, or the register is taken where it starts.
    #[inline]
    pub fn conflict_from<R: Iterator<Item = Range>>(&mut self, start: Point, end: Point, ranges: impl FnOnce() -> R) -> Conflict {
        self.advance(start);
        let Conflict { at, piece } = self.front.first;
        match at {
            _ if end <= at => Conflict::NONE,
            _ if at <= start => Conflict { at: start, piece },
            _ => self.conflict(ranges(), None),
        }
    }

    /// The first conflict of `ranges` with what is in the register, the piece `ignored` excepted.
    pub fn conflict(&self, ranges: impl Iterator<Item = Range>, ignored: Option<u32>) -> Conflict {
        let mut claims = &self.claims[self.next_claim..];
        let mut taken = &self.taken[..];
        for (i, range) in ranges.enumerate() {
            claims = &claims[skip(claims.len(), |i| claims[i].end <= range.start)..];
            taken = &taken[..taken.len() - skip(taken.len(), |i| taken[taken.len() - 1 - i].range.end <= range.start)];
            let claim = claims.first().filter(|claim| claim.start < range.end);
            let other =
                taken.iter().rev().find(|taken| Some(taken.piece) != ignored).filter(|other| other.range.start < range.end);
            let claim = claim.map_or(Conflict::NONE, |claim| Conflict { at: claim.start.max(range.start), piece: None });
            let other = other
                .map_or(Conflict::NONE, |other| Conflict { at: other.range.start.max(range.start), piece: Some(other.piece) });
            let first = if other.at < claim.at { other } else { claim };
            if first != Conflict::NONE {
                return first;
            }
            if i == MAX_RANGES {
                return Conflict { at: range.end, piece: None };
            }
        }
        Conflict::NONE
    }

    /// Puts a piece in.
    pub fn insert(&mut self, piece: u32, ranges: impl Iterator<Item = Range>) {
        for range in ranges {
            let behind = skip(self.taken.len(), |i| self.taken[self.taken.len() - 1 - i].range.start < range.start);
            self.taken.insert(self.taken.len() - behind, Taken { range, piece });
        }
        self.find_front();
    }

    /// Takes a piece out.
    pub fn remove(&mut self, piece: u32) {
        self.taken.retain(|taken| taken.piece != piece);
        self.find_front();
    }
}

/// How many of the first of `len` things are `past`, which is true up to some point: fast where they are few.
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
