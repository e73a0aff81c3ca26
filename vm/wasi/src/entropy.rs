//! Random bytes.

use crate::errno::Errno;
use crate::sys;
use rand_core::Rng;

/// The source of random bytes.
#[derive(Default)]
pub(crate) enum Random {
    #[default]
    Host,
    /// A source of the embedder.
    Given(Box<dyn Rng + Send>),
    /// A sequence determined by its state: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    Sequence(u64),
}

impl Random {
    /// Fills `bytes`.
    pub fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Errno> {
        match self {
            Random::Host => sys::random::fill(bytes)?,
            Random::Given(source) => source.fill_bytes(bytes),
            Random::Sequence(state) => {
                for chunk in bytes.chunks_mut(size_of::<u64>()) {
                    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
                    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
                    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
                    chunk.copy_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes()[..chunk.len()]);
                }
            }
        }
        Ok(())
    }
}
