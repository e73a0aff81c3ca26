//! Sources of random bytes of one's own: types that implement [`rand_core::Rng`], which is `rand::Rng` of rand 0.10.

use rand_core::{Rng, TryRng};
use std::convert::Infallible;
use std::iter::Cycle;
use std::vec::IntoIter;

/// A source that repeats some bytes.
///
/// ```
/// use weir_wasi::{Deterministic, WasiCtxBuilder};
///
/// let ctx = WasiCtxBuilder::new().secure_random(Deterministic::new(vec![1, 2, 3])).build_p1();
/// # drop(ctx);
/// ```
#[derive(Clone, Debug)]
pub struct Deterministic {
    cycle: Cycle<IntoIter<u8>>,
}

impl Deterministic {
    /// Creates a source that begins with the first of these bytes.
    ///
    /// # Panics
    /// When it is used, if there are none.
    pub fn new(bytes: Vec<u8>) -> Self {
        Deterministic { cycle: bytes.into_iter().cycle() }
    }

    fn byte(&mut self) -> u8 {
        self.cycle.next().expect("there are bytes to repeat")
    }
}

impl TryRng for Deterministic {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(u32::from_be_bytes(std::array::from_fn(|_| self.byte())))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(u64::from_be_bytes(std::array::from_fn(|_| self.byte())))
    }

    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), Infallible> {
        into.fill_with(|| self.byte());
        Ok(())
    }
}

/// The host's random bytes.
struct Host;

impl TryRng for Host {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        let mut bytes = [0; 4];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u32::from_ne_bytes(bytes))
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        let mut bytes = [0; 8];
        self.try_fill_bytes(&mut bytes)?;
        Ok(u64::from_ne_bytes(bytes))
    }

    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), Infallible> {
        crate::sys::random::fill(into).expect("the system has random bytes");
        Ok(())
    }
}

/// Returns the source that programs get unless they are given another: that of the host's system.
///
/// # Panics
/// When it is used, if the system has no random bytes.
pub fn thread_rng() -> Box<dyn Rng + Send> {
    Box::new(Host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_repeated() {
        let mut source = Deterministic::new(vec![1, 2, 3]);
        assert_eq!(source.next_u32(), 0x0102_0301);
        assert_eq!(source.next_u64(), 0x0203_0102_0301_0203);
        let mut bytes = [0; 4];
        source.fill_bytes(&mut bytes);
        assert_eq!(bytes, [1, 2, 3, 1]);
    }

    #[test]
    fn the_hosts_bytes_differ() {
        let mut source = thread_rng();
        assert_ne!(source.next_u64(), source.next_u64());
        source.next_u32();
    }
}
