//! A small random-number generator, from a seed or from bytes. The same seed, or bytes, give the same numbers on every host and in
//! every version.

/// xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators, scrambled", 2014), after bytes that are given.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
    /// The bytes that decide first, of which those before `at` have.
    bytes: Box<[u8]>,
    at: usize,
}

impl Rng {
    /// The generator with this seed. Different seeds give unrelated sequences.
    pub fn new(seed: u64) -> Rng {
        // SplitMix64's finaliser spreads seeds that differ in few bits; the state must not be 0.
        let mut state = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        state = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        state = (state ^ (state >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Rng { state: (state ^ (state >> 31)) | 1 << 63, bytes: Box::default(), at: 0 }
    }

    /// The generator whose first numbers are made of these bytes, as few for each as it needs, so that a change of one byte changes one
    /// decision. When they are used up, those of a fixed seed follow: a generator that searches for a fitting number ends.
    pub fn of_bytes(bytes: &[u8]) -> Rng {
        Rng { bytes: bytes.into(), ..Rng::new(0) }
    }

    /// The bytes that are not used up.
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.at..]
    }

    /// Takes up to `len` bytes, as a little-endian number; `None` if none is left.
    fn take(&mut self, len: usize) -> Option<u64> {
        let taken = &self.rest()[..len.min(self.rest().len())];
        let number = taken.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
        let count = taken.len();
        self.at += count;
        (count > 0).then_some(number)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        if let Some(bits) = self.take(8) {
            return bits;
        }
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `n`, which must not be 0.
    pub fn below(&mut self, n: u32) -> u32 {
        // One byte decides among few numbers, however many values of it each has.
        let len = if n <= 1 << 8 { 1 } else { size_of::<u32>() };
        match self.take(len) {
            Some(number) => (number % u64::from(n)) as u32,
            None => (((self.bits() >> 32) * u64::from(n)) >> 32) as u32,
        }
    }

    /// True with a probability of `percent` in a hundred.
    pub fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// True with a probability of one in `n`.
    pub fn one_in(&mut self, n: u32) -> bool {
        self.below(n) == 0
    }

    /// A random element of `items`, which must not be empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u32) as usize]
    }
}
