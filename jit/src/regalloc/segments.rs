//! Pieces: a live interval is cut into pieces, each of which is in one place from its start to its end.

use super::client::Reg;
use super::intervals::Intervals;
use super::point::{Point, Range};

/// Where a piece is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Home {
    /// Not decided.
    Pending,
    /// In a register.
    Reg(Reg),
    /// In its interval's spill slot: there is one for all pieces of an interval.
    Slot,
}

/// See the head of this file.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The virtual register's index.
    pub reg: u32,
    /// First point.
    pub start: Point,
    /// First point behind it.
    pub end: Point,
    /// Where it is.
    pub home: Home,
    /// The interval's next piece.
    pub next: Option<u32>,
    /// The register that the interval was in last, before this piece.
    pub previous: Option<Reg>,
    /// The first of the interval's ranges that doesn't end before the piece.
    first_range: u32,
}

/// All pieces.
#[derive(Debug)]
pub struct Pieces {
    all: Vec<Piece>,
    /// By virtual register: its first piece.
    first: Vec<Option<u32>>,
    /// By virtual register: the piece that was last made for it, mostly the one that is asked for.
    latest: Vec<Option<u32>>,
}

impl Pieces {
    /// Every interval in one piece.
    pub fn of(intervals: &Intervals) -> Pieces {
        let regs = intervals.regs.len();
        let mut pieces = Pieces { all: Vec::with_capacity(regs), first: Vec::with_capacity(regs), latest: Vec::new() };
        for reg in 0..regs {
            let ranges = intervals.ranges.get(reg);
            let piece = ranges.first().zip(ranges.last()).map(|(first, last)| {
                let (start, end) = (first.start, last.end);
                let home = Home::Pending;
                pieces.all.push(Piece { reg: reg as u32, start, end, home, next: None, previous: None, first_range: 0 });
                pieces.all.len() as u32 - 1
            });
            pieces.first.push(piece);
        }
        pieces.latest = pieces.first.clone();
        pieces
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// A piece.
    pub fn get(&self, piece: u32) -> &Piece {
        &self.all[piece as usize]
    }

    /// Decides where a piece is.
    pub fn set_home(&mut self, piece: u32, home: Home) {
        self.all[piece as usize].home = home;
    }

    /// All pieces of a virtual register, in order.
    pub fn of_reg(&self, reg: usize) -> impl Iterator<Item = &Piece> {
        let first = self.first[reg].map(|first| self.get(first));
        std::iter::successors(first, |piece| piece.next.map(|next| self.get(next)))
    }

    /// Where a register is at `point`, as far as that is decided and found with little effort.
    pub fn find(&self, reg: usize, point: Point) -> Home {
        const EFFORT: usize = 16;
        let latest = self.latest[reg].map(|latest| self.get(latest)).filter(|latest| latest.start <= point);
        let from = latest.or(self.first[reg].map(|first| self.get(first)));
        let all = std::iter::successors(from, |piece| piece.next.map(|next| self.get(next)));
        let found = all.take(EFFORT).find(|piece| piece.start <= point && point < piece.end);
        found.map_or(Home::Pending, |piece| piece.home)
    }

    /// The ranges of a piece.
    pub fn ranges<'p>(&'p self, intervals: &'p Intervals, piece: u32) -> impl Iterator<Item = Range> + 'p {
        let Piece { reg, start, end, first_range, .. } = *self.get(piece);
        let ranges = &intervals.ranges.get(reg as usize)[first_range as usize..];
        let clipped = move |range: &Range| Range { start: range.start.max(start), end: range.end.min(end) };
        ranges.iter().take_while(move |range| range.start < end).map(clipped)
    }

    /// Cuts a piece in two; answers the second, which has no home yet. In a hole it starts where the hole ends.
    pub fn split(&mut self, intervals: &Intervals, piece: u32, at: Point) -> u32 {
        let whole = *self.get(piece);
        debug_assert!(whole.start < at && at < whole.end);
        let ranges = &intervals.ranges.get(whole.reg as usize)[whole.first_range as usize..];
        let skipped = ranges.partition_point(|range| range.end <= at);
        let start = ranges[skipped].start.max(at);
        let first_range = whole.first_range + skipped as u32;
        let second = self.all.len() as u32;
        let previous = match whole.home {
            Home::Reg(reg) => Some(reg),
            Home::Slot | Home::Pending => whole.previous,
        };
        self.all.push(Piece { start, home: Home::Pending, previous, first_range, ..whole });
        let first = &mut self.all[piece as usize];
        (first.end, first.next) = (at, Some(second));
        self.latest[whole.reg as usize] = Some(second);
        second
    }
}
