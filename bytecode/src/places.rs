//! Where the bodies and data segments of a module are. A process that knows it reads neither code nor data to find them.

use std::ops::Range;

/// The places of a module's bodies and data segments.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Places {
    /// The bodies of functions, in order.
    pub bodies: Box<[Range<u32>]>,
    /// The data segments, in order; `None` if one of them is not plain.
    pub data: Option<Box<[PlainSegment]>>,
}

/// A data segment that is passive, or written to the first memory at a constant address of 32 bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlainSegment {
    /// Where its contents are.
    pub contents: Range<u32>,
    /// Its address in memory; `None` if it is passive.
    pub address: Option<i32>,
}

impl Places {
    /// The bytes of memory that they take.
    pub fn size(&self) -> usize {
        size_of_val(&*self.bodies) + self.data.as_deref().map_or(0, size_of_val)
    }
}
