//! Memory that a compilation leaves to the next one, so that functions take no allocations besides those of their results.

use super::label::Link;
use super::parts::{Argument, Cold};
use super::values::{Spare, Value};
use crate::request::{Reloc, TrapEntry};

/// Code of more bytes is not kept: few functions are that long.
const KEPT_CODE: usize = 1 << 18;

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

impl Buffers {
    /// The buffers without their contents.
    pub fn emptied(self) -> Buffers {
        fn empty<T>(mut vec: Vec<T>) -> Vec<T> {
            vec.clear();
            vec
        }
        Buffers {
            code: if self.code.len() > KEPT_CODE { Vec::new() } else { self.code },
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
