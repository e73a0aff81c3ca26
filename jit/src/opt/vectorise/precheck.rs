//! The arithmetic of the check before a vector loop, in numbers that cannot overflow.
//!
//! It is written once, for any [`Numbers`]: the pass makes instructions of 64 bits with it, and the tests compute with
//! addresses of 8 bits and compare it with the loop itself, for all inputs.
//!
//! All numbers are non-negative or small negative ones in 64 bits: addresses and counters have 32 bits, the number of
//! rounds is at most 2³² + 1, and the strides of accesses are at most [`MAX_STRIDE`].

use crate::analysis::counted::Test;

/// The largest stride of an access, and the largest extent of the accesses at one address.
pub const MAX_STRIDE: u32 = 1 << 12;

/// Numbers of 64 bits.
pub trait Numbers {
    /// A number, or a condition, which is not a number.
    type Number: Copy;

    /// A constant.
    fn constant(&mut self, value: u64) -> Self::Number;
    /// The sum, which does not overflow.
    fn add(&mut self, a: Self::Number, b: Self::Number) -> Self::Number;
    /// The difference. It may be negative.
    fn sub(&mut self, a: Self::Number, b: Self::Number) -> Self::Number;
    /// The product with a constant, which does not overflow.
    fn times(&mut self, a: Self::Number, by: u64) -> Self::Number;
    /// The quotient of a non-negative number.
    fn divide(&mut self, a: Self::Number, by: u64) -> Self::Number;
    /// The number modulo the size of the address space.
    fn wrapped(&mut self, a: Self::Number) -> Self::Number;
    /// Whether a signed number is less than another.
    fn less(&mut self, a: Self::Number, b: Self::Number) -> Self::Number;
    /// Whether two conditions are true.
    fn both(&mut self, a: Self::Number, b: Self::Number) -> Self::Number;
    /// Whether one of two conditions is true.
    fn either(&mut self, a: Self::Number, b: Self::Number) -> Self::Number;
    /// One of two numbers, by a condition.
    fn select(&mut self, condition: Self::Number, a: Self::Number, b: Self::Number) -> Self::Number;

    /// The smaller of two numbers.
    fn least(&mut self, a: Self::Number, b: Self::Number) -> Self::Number {
        let less = self.less(a, b);
        self.select(less, a, b)
    }

    /// Whether `a <= b`.
    fn at_most(&mut self, a: Self::Number, b: Self::Number) -> Self::Number {
        let one = self.constant(1);
        let above = self.add(b, one);
        self.less(a, above)
    }
}

/// A number of rounds that the loop makes at least. `tested` is the tested value at the end of round 0, and `bound` its bound,
/// both sign-extended if the test is signed and zero-extended otherwise.
///
/// The rounds are those before the tested value would leave its range: it never wraps around while they last.
pub fn rounds<N: Numbers>(n: &mut N, test: Test, tested: N::Number, bound: N::Number, step: i32) -> N::Number {
    let by = u64::from(step.unsigned_abs());
    let (low, high) = if step > 0 { (tested, bound) } else { (bound, tested) };
    let (zero, one) = (n.constant(0), n.constant(1));
    let distance = n.sub(high, low);
    let repeated = match test {
        // If the step does not divide the distance, the quotient is less than the number of rounds.
        Test::Differs => {
            let distance = n.wrapped(distance);
            n.divide(distance, by)
        }
        Test::Less { or_equal: false, .. } | Test::Greater { or_equal: false, .. } => {
            let before_last = n.constant(by - 1);
            let up = n.add(distance, before_last);
            let quotient = n.divide(up, by);
            let goes_on = n.less(low, high);
            n.select(goes_on, quotient, zero)
        }
        Test::Less { or_equal: true, .. } | Test::Greater { or_equal: true, .. } => {
            let quotient = n.divide(distance, by);
            let repeated = n.add(quotient, one);
            let goes_on = n.at_most(low, high);
            n.select(goes_on, repeated, zero)
        }
    };
    n.add(repeated, one)
}

/// A group of accesses whose addresses differ by constants.
#[derive(Clone, Copy, Debug)]
pub struct Extent<V> {
    /// The lowest address in round 0, without offset.
    pub start: V,
    /// The least distance of an accessed byte from that address.
    pub from: u64,
    /// The end of the accessed bytes, as a distance from that address.
    pub to: u64,
    /// What each round adds to the addresses, or subtracts from them.
    pub stride: u32,
    /// Whether it subtracts.
    pub descends: bool,
}

/// Whether the accesses of `rounds` rounds, at least one, are all within a memory of `len` bytes. Then no address wraps around in these rounds.
pub fn fit<N: Numbers>(n: &mut N, extent: Extent<N::Number>, len: N::Number, rounds: N::Number) -> N::Number {
    let (to, one) = (n.constant(extent.to), n.constant(1));
    let end = n.add(extent.start, to);
    if extent.stride == 0 {
        return n.at_most(end, len);
    }
    let further = n.sub(rounds, one);
    let distance = n.times(further, extent.stride.into());
    if !extent.descends {
        let last_end = n.add(end, distance);
        return n.at_most(last_end, len);
    }
    let (below, above) = (n.at_most(distance, extent.start), n.at_most(end, len));
    n.both(below, above)
}

/// Whether two groups access no common byte in `rounds` rounds, which [`fit`]. Arrays may follow each other without a gap.
pub fn are_apart<N: Numbers>(n: &mut N, a: Extent<N::Number>, b: Extent<N::Number>, rounds: N::Number) -> N::Number {
    let mut range = |extent: Extent<N::Number>| {
        let (from, to) = (n.constant(extent.from), n.constant(extent.to));
        let (first, end) = (n.add(extent.start, from), n.add(extent.start, to));
        let one = n.constant(1);
        let further = n.sub(rounds, one);
        let distance = n.times(further, extent.stride.into());
        if extent.descends { (n.sub(first, distance), end) } else { (first, n.add(end, distance)) }
    };
    let ((a_first, a_end), (b_first, b_end)) = (range(a), range(b));
    let below = n.at_most(a_end, b_first);
    let above = n.at_most(b_end, a_first);
    n.either(below, above)
}

/// Where loads must be, in relation to stores, so that no load reads what an earlier round has stored: the least distance of the
/// addresses of the loads from those of the stores, or, if the addresses descend, the greatest one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ahead {
    /// At least so far above.
    Above(i64),
    /// At most so far above: the loads are below, if it is negative.
    Below(i64),
}

/// Whether, in each group of rounds that are executed together, two groups of accesses with the same stride access no common
/// byte; `span` is the distance between the first and the last of these rounds. If `b` are loads each of which stands before
/// every store of `a` that it may meet in one round, `ahead` says where no load of `b` reads what an earlier round has stored.
pub fn are_apart_together<N: Numbers>(
    n: &mut N,
    a: Extent<N::Number>,
    b: Extent<N::Number>,
    span: u64,
    ahead: Option<Ahead>,
) -> N::Number {
    // The distance of the starts decides, in either direction: a ends before b begins, b before a, or b is ahead of a.
    let distance = n.sub(b.start, a.start);
    let above = n.constant((a.to + span).wrapping_sub(b.from));
    let above = n.at_most(above, distance);
    let below = n.constant(a.from.wrapping_sub(b.to + span));
    let below = n.at_most(distance, below);
    let apart = n.either(above, below);
    let ahead = match ahead {
        None => return apart,
        Some(Ahead::Above(least)) => {
            let least = n.constant(least as u64);
            n.at_most(least, distance)
        }
        Some(Ahead::Below(most)) => {
            let most = n.constant(most as u64);
            n.at_most(distance, most)
        }
    };
    n.either(apart, ahead)
}

/// A load or store of a group: its position in the block, the distance of its first byte from the group's address, and its bytes.
pub type Placed = (usize, u64, u64);

/// Where the addresses of loads must be, in relation to those of stores with the same stride, so that no load reads what a store wrote
/// before it: in an earlier round, because it is ahead of all bytes of the store, and in the same round unless it stands first.
pub fn ahead_of(stores: &[Placed], loads: &[Placed], stride: u32, descends: bool) -> Ahead {
    let pairs = || stores.iter().flat_map(|store| loads.iter().map(move |load| (store, load)));
    // A load that stands first need be ahead of the stores of earlier rounds only.
    let later = |store: &Placed, load: &Placed| if store.0 < load.0 { 0 } else { i64::from(stride) };
    if descends {
        let most = pairs().map(|(store, load)| store.1 as i64 - (load.1 + load.2) as i64 + later(store, load));
        return Ahead::Below(most.min().unwrap_or(0));
    }
    let least = pairs().map(|(store, load)| (store.1 + store.2) as i64 - load.1 as i64 - later(store, load));
    Ahead::Above(least.max().unwrap_or(0))
}

#[cfg(test)]
mod tests;
