//! Constants in memory, each stored once.

use rustc_hash::FxHashMap;

/// A pool of up to this many bytes is searched linearly, which is cheaper than hashing.
const SEARCHED: usize = 512;
/// The widths of constants in bytes.
const WIDTHS: [usize; 3] = [4, 8, 16];

/// The constants of a function.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    bytes: Vec<u8>,
    /// By width and bits, the first aligned offset in the pool with that constant.
    offsets: FxHashMap<(usize, u128), u32>,
    /// By width, the number of bytes that `offsets` covers.
    indexed: [usize; 3],
}

impl PartialEq for Pool {
    fn eq(&self, other: &Pool) -> bool {
        self.bytes == other.bytes
    }
}

impl From<Vec<u8>> for Pool {
    fn from(bytes: Vec<u8>) -> Pool {
        Pool { bytes, ..Pool::default() }
    }
}

impl Pool {
    /// The pool's contents.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The offset of the first aligned constant of `width` bytes (4, 8 or 16) with these bits, which may be part of a wider
    /// one. It is added if there is none.
    pub fn offset(&mut self, bits: u128, width: usize) -> u32 {
        let wanted = &bits.to_le_bytes()[..width];
        if self.bytes.len() <= SEARCHED {
            if let Some(found) = self.bytes.chunks_exact(width).position(|chunk| chunk == wanted) {
                return (found * width) as u32;
            }
        } else if let Some(found) = self.find(wanted) {
            return found;
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(width), 0);
        self.bytes.extend_from_slice(wanted);
        (self.bytes.len() - width) as u32
    }

    /// The offset of a constant of 32 bytes that are these 16, twice.
    pub fn twice(&mut self, bits: u128) -> u32 {
        let wanted = bits.to_le_bytes();
        let chunks = self.bytes[..self.bytes.len().min(SEARCHED)].chunks_exact(16);
        if let Some(found) = chunks.clone().zip(chunks.skip(1)).position(|pair| pair == (&wanted, &wanted)) {
            return 16 * found as u32;
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(16), 0);
        self.bytes.extend_from_slice(&[wanted, wanted].concat());
        self.bytes.len() as u32 - 32
    }

    fn find(&mut self, wanted: &[u8]) -> Option<u32> {
        let key = |chunk: &[u8]| {
            let mut bits = [0; 16];
            bits[..chunk.len()].copy_from_slice(chunk);
            (chunk.len(), u128::from_le_bytes(bits))
        };
        for (width, indexed) in WIDTHS.into_iter().zip(&mut self.indexed).filter(|(width, _)| *width == wanted.len()) {
            for chunk in self.bytes[*indexed..].chunks_exact(width) {
                self.offsets.entry(key(chunk)).or_insert(*indexed as u32);
                *indexed += width;
            }
        }
        self.offsets.get(&key(wanted)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected result of `offset`, by linear search.
    fn searched(bytes: &mut Vec<u8>, bits: u128, width: usize) -> u32 {
        let wanted = &bits.to_le_bytes()[..width];
        if let Some(found) = bytes.chunks_exact(width).position(|chunk| chunk == wanted) {
            return (found * width) as u32;
        }
        bytes.resize(bytes.len().next_multiple_of(width), 0);
        bytes.extend_from_slice(wanted);
        (bytes.len() - width) as u32
    }

    #[test]
    fn a_constant_is_found_where_a_search_finds_it() {
        let (mut pool, mut bytes) = (Pool::default(), Vec::new());
        let mut state = 1u64;
        for _ in 0..3000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let width = WIDTHS[(state >> 60) as usize % 3];
            // Few distinct halves, so that parts of wider constants are found.
            let bits = u128::from(state >> 33 & 7) << 96 | u128::from(state >> 36 & 7) << 64 | u128::from(state >> 40 & 255);
            assert_eq!(pool.offset(bits, width), searched(&mut bytes, bits, width));
        }
        assert_eq!(pool.bytes(), bytes);
        assert!(bytes.len() > 2 * SEARCHED, "most are found by their hash");
    }
}
