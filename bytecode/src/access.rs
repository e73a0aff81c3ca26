//! The width of accesses to memory.

use crate::opcodes::Opcode;

impl Opcode {
    /// Returns the binary logarithm of the number of bytes that a load or a store accesses, which is its maximum alignment. The mnemonic has
    /// the number of bits after `load` or `store` (`8`, or `8x8` for eight times eight), unless it is that of the type, with which it begins
    /// (`i32`). For other instructions the number is meaningless.
    pub const fn access_log2(self) -> u8 {
        let name = self.mnemonic().as_bytes();
        let (of_type, mut at) = number(name, 1);
        while at < name.len() && !name[at].is_ascii_digit() && name[at] != b'_' {
            at += 1;
        }
        let (mut bits, after) = number(name, at);
        if bits == 0 {
            bits = of_type;
        } else if after < name.len() && name[after] == b'x' {
            bits *= number(name, after + 1).0;
        }
        (bits / 8).trailing_zeros() as u8
    }
}

/// The decimal number at `at`, 0 if there is none, and the index after it.
const fn number(text: &[u8], mut at: usize) -> (u32, usize) {
    let mut number = 0;
    while at < text.len() && text[at].is_ascii_digit() {
        number = 10 * number + (text[at] - b'0') as u32;
        at += 1;
    }
    (number, at)
}
