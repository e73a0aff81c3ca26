//! Which addresses the processor computes as the program does: a sum or a shift that cannot wrap around is the same in 64 bits.
//!
//! The number of bits is a parameter, so that the tests execute all of it with addresses of 8 bits.

/// Numbers of this many bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bits(pub u32);

/// Addresses of memories without `memory64`, and all i32.
pub(super) const ADDRESS: Bits = Bits(32);

/// The largest shift in an address of the processor.
const MOST_SHIFT: u64 = 3;

impl Bits {
    /// The largest number.
    pub fn largest(self) -> u64 {
        u64::MAX >> (64 - self.0)
    }

    /// The bound of `a + b`, with these bounds, if the sum cannot wrap around.
    pub fn sum(self, a: u64, b: u64) -> Option<u64> {
        a.checked_add(b).filter(|&sum| sum <= self.largest())
    }

    /// The bound of `a << count`, if no bit is shifted out.
    pub fn shifted_left(self, a: u64, count: u64) -> Option<u64> {
        let count = count % u64::from(self.0);
        (a <= self.largest() >> count).then(|| a << count)
    }

    /// The bound of `a >> count`, unsigned; `a` may have no bound.
    pub fn shifted_right(self, a: Option<u64>, count: u64) -> u64 {
        a.unwrap_or(self.largest()) >> (count % u64::from(self.0))
    }

    /// Whether `a << shift`, with this bound of `a`, can be part of an address of the processor.
    pub fn scales(self, a: u64, shift: u64) -> bool {
        shift <= MOST_SHIFT && self.shifted_left(a, shift).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::Bits;

    const BYTE: Bits = Bits(8);
    const ALL: std::ops::RangeInclusive<u64> = 0..=255;

    #[test]
    fn bounds_hold_for_all_numbers_of_eight_bits() {
        for (bound, other) in ALL.flat_map(|bound| ALL.map(move |other| (bound, other))) {
            let (sum, left) = (BYTE.sum(bound, other), BYTE.shifted_left(bound, other));
            let right = BYTE.shifted_right(Some(bound), other);
            let count = other as u32;
            for a in 0..=bound {
                let byte = a as u8;
                if let Some(sum) = sum {
                    assert_eq!(u64::from(byte.wrapping_add(other as u8)), a + other, "{a} + {other}");
                    assert!(a + other <= sum, "{a} + {other}");
                }
                if let Some(left) = left {
                    assert!(u64::from(byte.wrapping_shl(count)) <= left, "{a} << {other}");
                }
                if BYTE.scales(bound, other) {
                    assert_eq!(u64::from(byte.wrapping_shl(count)), a << other, "{a} << {other}");
                }
                assert!(u64::from(byte.wrapping_shr(count)) <= right, "{a} >> {other}");
                assert!(byte & other as u8 <= other as u8, "{a} & {other}");
            }
            // None is left out for which it would hold.
            assert_eq!(sum.is_some(), bound + other <= 255, "{bound} + {other}");
            assert_eq!(left.is_some(), bound << (other % 8) <= 255, "{bound} << {other}");
            assert_eq!(BYTE.scales(bound, other), other <= 3 && bound << other <= 255, "{bound} << {other}");
        }
        for (a, count) in ALL.flat_map(|a| ALL.map(move |count| (a, count))) {
            assert!(u64::from((a as u8).wrapping_shr(count as u32)) <= BYTE.shifted_right(None, count), "{a} >> {count}");
        }
    }

    /// `(a << shift) + displacement`, as selection folds it: if both steps hold, the address is the one of 64 bits.
    #[test]
    fn addresses_of_eight_bits_are_those_of_the_processor() {
        let mut folded = 0;
        for bound in ALL {
            for shift in 0..8 {
                let Some(shifted) = BYTE.shifted_left(bound, shift).filter(|_| BYTE.scales(bound, shift)) else { continue };
                for displacement in ALL.filter(|&displacement| BYTE.sum(shifted, displacement).is_some()) {
                    for a in 0..=bound {
                        let program = (a as u8).wrapping_shl(shift as u32).wrapping_add(displacement as u8);
                        assert_eq!(u64::from(program), (a << shift) + displacement, "{a} << {shift} + {displacement}");
                        folded += 1;
                    }
                }
            }
        }
        assert!(folded > 1_000_000, "{folded}");
    }
}
