//! BLAKE2s (RFC 7693) of as many kibibytes as the argument says, of a counter's bytes.

#[allow(dead_code)]
#[path = "../kernel.rs"]
mod kernel;

const START: [u32; 8] =
    [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

/// In which order each round takes the words of the message.
const ORDER: [[usize; 16]; 10] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    [14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3],
    [11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4],
    [7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8],
    [9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13],
    [2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9],
    [12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11],
    [13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10],
    [6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5],
    [10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0],
];

fn mix(v: &mut [u32; 16], [a, b, c, d]: [usize; 4], x: u32, y: u32) {
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(x);
    v[d] = (v[d] ^ v[a]).rotate_right(16);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(12);
    v[a] = v[a].wrapping_add(v[b]).wrapping_add(y);
    v[d] = (v[d] ^ v[a]).rotate_right(8);
    v[c] = v[c].wrapping_add(v[d]);
    v[b] = (v[b] ^ v[c]).rotate_right(7);
}

/// Takes 16 words in; `count` is the number of bytes up to their end.
fn compress(state: &mut [u32; 8], message: &[u32; 16], count: u64, last: bool) {
    let mut v = [0; 16];
    v[..8].copy_from_slice(state);
    v[8..].copy_from_slice(&START);
    v[12] ^= count as u32;
    v[13] ^= (count >> 32) as u32;
    v[14] ^= if last { u32::MAX } else { 0 };
    for order in &ORDER {
        for i in 0..4 {
            mix(&mut v, [i, 4 + i, 8 + i, 12 + i], message[order[2 * i]], message[order[2 * i + 1]]);
        }
        for i in 0..4 {
            let lanes = [i, 4 + (i + 1) % 4, 8 + (i + 2) % 4, 12 + (i + 3) % 4];
            mix(&mut v, lanes, message[order[8 + 2 * i]], message[order[9 + 2 * i]]);
        }
    }
    for i in 0..8 {
        state[i] ^= v[i] ^ v[i + 8];
    }
}

fn main() {
    let kibibytes = kernel::argument(200_000);
    let mut state = START;
    state[0] ^= 0x0101_0020;
    let blocks = kibibytes as u64 * 16;
    for block in 0..blocks {
        let mut message = [0; 16];
        for (i, word) in message.iter_mut().enumerate() {
            *word = (block as u32).wrapping_mul(16).wrapping_add(i as u32);
        }
        compress(&mut state, &message, (block + 1) * 64, block + 1 == blocks);
    }
    let digits: String = state.iter().map(|word| format!("{:08x}", word.swap_bytes())).collect();
    println!("blake2s {kibibytes} KiB: {digits}");
}
