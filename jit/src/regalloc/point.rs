//! Program points: the positions in the code by which live ranges are measured.
//!
//! Each instruction has four points. At its *gap*, values may change their places. At *setup*, operands that must be in
//! fixed registers are moved there. Then the instruction reads its *early* operands and writes its *late* ones.

/// A program point.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Point(u32);

impl Point {
    /// After all code. Points are below 2³¹, so that they can be compared as signed numbers, too.
    pub const NEVER: Point = Point(i32::MAX as u32);

    /// Before instruction `inst`.
    pub const fn gap(inst: u32) -> Point {
        Point(4 * inst)
    }

    /// When the registers that `inst` requires are loaded.
    pub const fn setup(inst: u32) -> Point {
        Point(4 * inst + 1)
    }

    /// When `inst` reads.
    pub const fn early(inst: u32) -> Point {
        Point(4 * inst + 2)
    }

    /// When `inst` writes.
    pub const fn late(inst: u32) -> Point {
        Point(4 * inst + 3)
    }

    /// The point as a signed number, in the same order.
    pub const fn signed(self) -> i32 {
        self.0 as i32
    }

    /// The instruction that the point belongs to.
    pub const fn inst(self) -> u32 {
        self.0 / 4
    }

    /// Whether the point is an instruction's gap.
    pub const fn is_gap(self) -> bool {
        self.0.is_multiple_of(4)
    }

    /// The gap of the point's instruction.
    pub const fn floor(self) -> Point {
        Point(self.0 & !3)
    }

    /// The first gap at or after the point.
    pub const fn ceil(self) -> Point {
        Point(self.0.next_multiple_of(4))
    }

    /// The next point.
    pub const fn next(self) -> Point {
        Point(self.0 + 1)
    }

    /// The previous point.
    pub const fn previous(self) -> Point {
        Point(self.0.saturating_sub(1))
    }

    /// The gap of the next instruction.
    pub const fn next_gap(self) -> Point {
        Point((self.0 & !3) + 4)
    }
}

impl std::fmt::Debug for Point {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.inst(), ["g", "s", "e", "l"][(self.0 % 4) as usize])
    }
}

/// A half-open range of points.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// The first point.
    pub start: Point,
    /// The first point after the range.
    pub end: Point,
}
