//! Code that the Rust kernels share.

/// The first command line argument as a number, or `fallback` without one.
pub fn argument(fallback: u32) -> u32 {
    std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(fallback)
}

/// Marsaglia's xorshift: small, and the same everywhere.
pub fn next_random(state: &mut u32) -> u32 {
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    *state
}
