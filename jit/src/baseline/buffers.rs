//! Memory that a compilation leaves to the next one, so that functions take no allocations besides those of their results.

use super::label::Link;
use super::parts::{Argument, Cold};
use super::values::{Spare, Value};
use crate::request::{Reloc, TrapEntry};

/// Vectors of more bytes are not kept: few functions need as much.
const KEPT: usize = 1 << 18;

/// Vectors that keep their capacity from one compilation to the next. All are empty but `code`, whose contents have no meaning.
#[derive(Debug, Default)]
pub struct Buffers {
    pub code: Vec<u8>,
    pub values: Vec<Value>,
    pub copies: Vec<u32>,
    pub unstored_locals: Vec<u32>,
    pub jumps: Vec<Link>,
    /// Copies that no label uses any more.
    pub spare: Spare,
    pub arguments: Vec<Argument>,
    pub cold: Vec<Cold>,
    pub relocs: Vec<Reloc>,
    pub traps: Vec<TrapEntry>,
    pub calls: Vec<(u32, u32)>,
}

/// Frees the memory of an empty vector if it is not kept.
pub fn free_if_large<T>(empty: &mut Vec<T>) {
    debug_assert!(empty.is_empty(), "its contents would be lost");
    if !is_kept(empty) {
        *empty = Vec::new();
    }
}

/// Whether the memory of the vector is kept.
fn is_kept<T>(vec: &Vec<T>) -> bool {
    vec.capacity() * size_of::<T>() <= KEPT
}

/// Returns the contents of a vector: a copy if its memory is kept.
pub fn leave_or_copy<T: Clone>(vec: &mut Vec<T>) -> Vec<T> {
    if is_kept(vec) { vec.clone() } else { std::mem::take(vec) }
}

impl Buffers {
    /// The buffers without their contents.
    pub fn emptied(self) -> Buffers {
        fn empty<T>(mut vec: Vec<T>) -> Vec<T> {
            vec.clear();
            free_if_large(&mut vec);
            vec
        }
        Buffers {
            code: if is_kept(&self.code) { self.code } else { Vec::new() },
            values: empty(self.values),
            copies: empty(self.copies),
            unstored_locals: empty(self.unstored_locals),
            jumps: empty(self.jumps),
            spare: self.spare,
            arguments: empty(self.arguments),
            cold: empty(self.cold),
            relocs: empty(self.relocs),
            traps: empty(self.traps),
            calls: empty(self.calls),
        }
    }
}
