//! Data as bytes, for a later process: numbers are little-endian, lists follow their length, and nothing is aligned.
//!
//! There is no framework for this: an item is written field by field, in the order of its declaration, and [`stored!`](crate::stored!)
//! destructures it, so that a field that is added must be stored too. The bytes have no tags and no versions. Their container is of
//! one build of Weir, and no other reads them.
//!
//! Reading any bytes ends with an item or with [`Damaged`], and allocates at most a constant times their length.

use crate::body::FuncBody;
use crate::effects::Effects;
use crate::part::Part;
use crate::places::{Places, PlainSegment};
use crate::sidetable::{BranchEntry, Handler, LocalSet, LoopInfo, Segment, TryRegion};
use crate::types::{HeapType, RefType, ValType};
use std::ops::Range;

/// The bytes are not those of such an item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damaged;

/// Bytes that are read from their beginning.
#[derive(Debug)]
pub struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    /// Reads these bytes.
    pub fn new(bytes: &'b [u8]) -> Reader<'b> {
        Reader(bytes)
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// There are fewer.
    pub fn take(&mut self, len: usize) -> Result<&'b [u8], Damaged> {
        let (taken, rest) = self.0.split_at_checked(len).ok_or(Damaged)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Takes the next bytes, of which there is this number.
    ///
    /// # Errors
    /// There are fewer.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], Damaged> {
        self.take(N)?.try_into().map_err(|_| Damaged)
    }

    /// Takes all bytes that are left.
    pub fn rest(self) -> &'b [u8] {
        self.0
    }

    /// Ends reading.
    ///
    /// # Errors
    /// There are more bytes.
    pub fn finish(self) -> Result<(), Damaged> {
        if self.0.is_empty() { Ok(()) } else { Err(Damaged) }
    }
}

/// An item that can be stored.
pub trait Stored: Sized {
    /// Appends its bytes, at least one.
    fn write(&self, to: &mut Vec<u8>);

    /// Reads it.
    ///
    /// # Errors
    /// [`Damaged`].
    fn read(from: &mut Reader<'_>) -> Result<Self, Damaged>;
}

/// Returns the bytes of an item.
pub fn to_bytes<T: Stored>(item: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    item.write(&mut bytes);
    bytes
}

/// Reads an item that takes all of the bytes.
///
/// # Errors
/// [`Damaged`].
pub fn read_all<T: Stored>(bytes: &[u8]) -> Result<T, Damaged> {
    let mut reader = Reader::new(bytes);
    let item = T::read(&mut reader)?;
    reader.finish()?;
    Ok(item)
}

/// Implements `Stored` for structures, field by field.
#[macro_export]
macro_rules! stored {
    ($($ty:ident { $($field:ident),* $(,)? })*) => {$(
        impl $crate::stored::Stored for $ty {
            fn write(&self, to: &mut Vec<u8>) {
                let $ty { $($field),* } = self;
                $($crate::stored::Stored::write($field, to);)*
            }

            #[inline]
            fn read(from: &mut $crate::stored::Reader<'_>) -> Result<$ty, $crate::stored::Damaged> {
                Ok($ty { $($field: $crate::stored::Stored::read(from)?),* })
            }
        }
    )*};
}

macro_rules! numbers {
    ($($ty:ty)*) => {$(
        impl Stored for $ty {
            #[inline]
            fn write(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            #[inline]
            fn read(from: &mut Reader<'_>) -> Result<$ty, Damaged> {
                Ok(<$ty>::from_le_bytes(from.array()?))
            }
        }
    )*};
}

numbers! { u8 u16 u32 u64 i32 }

impl Stored for bool {
    fn write(&self, to: &mut Vec<u8>) {
        to.push(u8::from(*self));
    }

    fn read(from: &mut Reader<'_>) -> Result<bool, Damaged> {
        match u8::read(from)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Damaged),
        }
    }
}

impl<T: Stored> Stored for Option<T> {
    fn write(&self, to: &mut Vec<u8>) {
        self.is_some().write(to);
        if let Some(item) = self {
            item.write(to);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Option<T>, Damaged> {
        if bool::read(from)? { T::read(from).map(Some) } else { Ok(None) }
    }
}

impl<T: Stored, U: Stored> Stored for (T, U) {
    fn write(&self, to: &mut Vec<u8>) {
        self.0.write(to);
        self.1.write(to);
    }

    fn read(from: &mut Reader<'_>) -> Result<(T, U), Damaged> {
        Ok((T::read(from)?, U::read(from)?))
    }
}

impl<T: Stored> Stored for Range<T> {
    fn write(&self, to: &mut Vec<u8>) {
        self.start.write(to);
        self.end.write(to);
    }

    fn read(from: &mut Reader<'_>) -> Result<Range<T>, Damaged> {
        Ok(T::read(from)?..T::read(from)?)
    }
}

impl<T: Stored, const N: usize> Stored for [T; N] {
    fn write(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|item| item.write(to));
    }

    fn read(from: &mut Reader<'_>) -> Result<[T; N], Damaged> {
        let items: Vec<T> = (0..N).map(|_| T::read(from)).collect::<Result<_, _>>()?;
        items.try_into().map_err(|_| Damaged)
    }
}

/// Appends a list.
fn write_list<T: Stored>(items: &[T], to: &mut Vec<u8>) {
    let len = u32::try_from(items.len()).expect("a list has fewer than 2³² items");
    len.write(to);
    items.iter().for_each(|item| item.write(to));
}

impl<T: Stored> Stored for Vec<T> {
    fn write(&self, to: &mut Vec<u8>) {
        write_list(self, to);
    }

    fn read(from: &mut Reader<'_>) -> Result<Vec<T>, Damaged> {
        let len = u32::read(from)? as usize;
        // An item takes a byte or more.
        if len > from.0.len() {
            return Err(Damaged);
        }
        let mut items = Vec::with_capacity(len.min(from.0.len() / size_of::<T>().max(1) + 1));
        for _ in 0..len {
            items.push(T::read(from)?);
        }
        Ok(items)
    }
}

impl<T: Stored> Stored for Box<[T]> {
    fn write(&self, to: &mut Vec<u8>) {
        write_list(self, to);
    }

    fn read(from: &mut Reader<'_>) -> Result<Box<[T]>, Damaged> {
        Vec::read(from).map(Vec::into_boxed_slice)
    }
}

impl<T: Stored> Stored for Part<T> {
    fn write(&self, to: &mut Vec<u8>) {
        write_list(self, to);
    }

    fn read(from: &mut Reader<'_>) -> Result<Part<T>, Damaged> {
        Vec::read(from).map(Part::from)
    }
}

impl Stored for ValType {
    fn write(&self, to: &mut Vec<u8>) {
        match self {
            ValType::I32 => to.push(0),
            ValType::I64 => to.push(1),
            ValType::F32 => to.push(2),
            ValType::F64 => to.push(3),
            ValType::V128 => to.push(4),
            ValType::Ref(ty) => {
                to.push(5);
                ty.write(to);
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<ValType, Damaged> {
        Ok(match u8::read(from)? {
            0 => ValType::I32,
            1 => ValType::I64,
            2 => ValType::F32,
            3 => ValType::F64,
            4 => ValType::V128,
            5 => ValType::Ref(RefType::read(from)?),
            _ => return Err(Damaged),
        })
    }
}

impl Stored for HeapType {
    fn write(&self, to: &mut Vec<u8>) {
        match self {
            HeapType::Func => to.push(0),
            HeapType::Extern => to.push(1),
            HeapType::Exn => to.push(2),
            HeapType::NoExn => to.push(3),
            HeapType::Concrete(index) => {
                to.push(4);
                index.write(to);
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<HeapType, Damaged> {
        Ok(match u8::read(from)? {
            0 => HeapType::Func,
            1 => HeapType::Extern,
            2 => HeapType::Exn,
            3 => HeapType::NoExn,
            4 => HeapType::Concrete(u32::read(from)?),
            _ => return Err(Damaged),
        })
    }
}

impl Stored for LocalSet {
    fn write(&self, to: &mut Vec<u8>) {
        match self {
            LocalSet::All => to.push(0),
            LocalSet::Only(locals) => {
                to.push(1);
                locals.write(to);
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<LocalSet, Damaged> {
        match u8::read(from)? {
            0 => Ok(LocalSet::All),
            1 => Ok(LocalSet::Only(Stored::read(from)?)),
            _ => Err(Damaged),
        }
    }
}

stored! {
    Effects { foreign_tail_calls, written_tables }
    RefType { nullable, heap }
    BranchEntry { pc, stp, keep, drop }
    LoopInfo { pc, stp, height, parent, assigned }
    Segment { pc, cost }
    TryRegion { start, end, height, parent, next, first, count }
    Handler { tag, reference, saved, entry }
    Places { bodies, data }
    PlainSegment { contents, address }
    FuncBody {
        entry, end, locals, max_operands, wide, work, indirect_calls, branches, loops, segments, regions, handlers, exceptions,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body with an item in each of its tables.
    fn sample() -> FuncBody {
        let concrete = ValType::Ref(RefType { nullable: true, heap: HeapType::Concrete(7) });
        FuncBody {
            entry: 40,
            end: 90,
            locals: vec![ValType::I32, ValType::F64, ValType::V128, ValType::EXTERNREF, concrete].into(),
            max_operands: 3,
            wide: true,
            work: 17,
            indirect_calls: 1,
            branches: vec![BranchEntry { pc: 50, stp: 1, keep: 2, drop: 3 }].into(),
            loops: vec![
                LoopInfo { pc: 60, stp: 0, height: 1, parent: None, assigned: LocalSet::All },
                LoopInfo { pc: 70, stp: 1, height: 1, parent: Some(0), assigned: LocalSet::Only([1, 2].into()) },
            ]
            .into(),
            segments: vec![Segment { pc: 40, cost: 9 }].into(),
            regions: vec![TryRegion { start: 41, end: 80, height: 0, parent: 9, next: 9, first: 0, count: 1 }].into(),
            handlers: vec![Handler { tag: Some(3), reference: true, saved: None, entry: 0 }].into(),
            exceptions: true,
        }
    }

    #[test]
    fn a_body_is_read_as_it_was_written() {
        for body in [sample(), FuncBody::default()] {
            let mut bytes = Vec::new();
            body.write(&mut bytes);
            assert_eq!(read_all::<FuncBody>(&bytes), Ok(body));
        }
    }

    #[test]
    fn no_damage_is_more_than_an_error() {
        let mut bytes = Vec::new();
        sample().write(&mut bytes);
        for len in 0..bytes.len() {
            assert_eq!(read_all::<FuncBody>(&bytes[..len]), Err(Damaged));
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                // Any body, or an error.
                let _ = read_all::<FuncBody>(&damaged);
            }
        }
        bytes.push(0);
        assert_eq!(read_all::<FuncBody>(&bytes), Err(Damaged));
    }
}
