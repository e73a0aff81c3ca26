//! Branch probabilities.

use std::fmt;
use std::num::NonZeroU8;

/// The probability that a branch goes to its first successor, in 256ths: 1/256 to 255/256. It is never 0 or 1, because
/// a profile records past executions, and others are possible.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Probability(NonZeroU8);

impl Probability {
    /// The probability `of_256 / 256`; `None` for 0.
    pub const fn new(of_256: u8) -> Option<Probability> {
        match NonZeroU8::new(of_256) {
            Some(of_256) => Some(Probability(of_256)),
            None => None,
        }
    }

    /// The largest one.
    pub const MOST: Probability = Probability(NonZeroU8::MAX);

    /// The observed frequency of the first of two outcomes, limited to the range of the type.
    pub fn of_counts(first: u32, second: u32) -> Probability {
        let all = (u64::from(first) + u64::from(second)).max(1);
        let of_256 = (256 * u64::from(first) / all).clamp(1, 255) as u8;
        Probability(NonZeroU8::new(of_256).expect("it is at least 1"))
    }

    /// The probability of the other successor.
    pub fn complement(self) -> Probability {
        Probability(NonZeroU8::new(self.0.get().wrapping_neg()).expect("256 less 1 to 255 is 1 to 255"))
    }

    /// The numerator, of 256.
    pub fn of_256(self) -> u8 {
        self.0.get()
    }

    /// The probability as a number between 0 and 1.
    pub fn as_f32(self) -> f32 {
        f32::from(self.0.get()) / 256.0
    }
}

/// The form in the text of SSA: `p192` is 192/256.
impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "p{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_never_give_certainty() {
        let of_256 = |(first, second)| Probability::of_counts(first, second).of_256();
        assert_eq!([(0, 0), (0, 9), (1, 1), (3, 1), (u32::MAX, 0)].map(of_256), [1, 1, 128, 192, 255]);
    }

    #[test]
    fn a_probability_and_its_complement_add_up_to_one() {
        for of_256 in 1..=255 {
            let first = Probability::new(of_256).unwrap();
            assert_eq!(first.as_f32() + first.complement().as_f32(), 1.0);
            assert_eq!(first.complement().complement(), first);
        }
        assert_eq!(Probability::new(0), None);
    }
}
