//! Points of time in the code, the scale on which live ranges are measured.
//!
//! Each instruction has four: at its *gap* values may change their places; then operands that must be in certain registers are
//! *set up*; then it reads its *early* operands and writes its *late* ones.

/// A point of time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Point(u32);

impl Point {
    /// Later than all code.
    pub const NEVER: Point = Point(u32::MAX);

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

    /// The instruction it belongs to.
    pub const fn inst(self) -> u32 {
        self.0 / 4
    }

    /// Whether it is an instruction's gap.
    pub const fn is_gap(self) -> bool {
        self.0.is_multiple_of(4)
    }

    /// The gap of its instruction.
    pub const fn floor(self) -> Point {
        Point(self.0 & !3)
    }

    /// The first gap that is not before it.
    pub const fn ceil(self) -> Point {
        Point(self.0.next_multiple_of(4))
    }

    /// The next point.
    pub const fn next(self) -> Point {
        Point(self.0 + 1)
    }

    /// The point before it.
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

/// From a point up to, and without, another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// First point.
    pub start: Point,
    /// First point after it.
    pub end: Point,
}
