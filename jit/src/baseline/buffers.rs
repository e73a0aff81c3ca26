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

/// Empties a vector, and frees its memory if that is not kept.
pub fn empty<T>(vec: &mut Vec<T>) {
    vec.clear();
    if !is_kept(vec) {
        *vec = Vec::new();
    }
}

/// Whether the memory of the vector is kept.
fn is_kept<T>(vec: &Vec<T>) -> bool {
    vec.capacity() * size_of::<T>() <= KEPT
}

/// Returns the contents of a vector, copied if its memory is kept.
pub fn leave_or_copy<T: Clone>(vec: &mut Vec<T>) -> Vec<T> {
    if is_kept(vec) { vec.clone() } else { std::mem::take(vec) }
}

impl Buffers {
    /// The buffers without their contents.
    pub fn emptied(mut self) -> Buffers {
        if !is_kept(&self.code) {
            self.code = Vec::new();
        }
        empty(&mut self.values);
        empty(&mut self.copies);
        empty(&mut self.unstored_locals);
        empty(&mut self.jumps);
        empty(&mut self.arguments);
        empty(&mut self.cold);
        empty(&mut self.relocs);
        empty(&mut self.traps);
        empty(&mut self.calls);
        self
    }
}
