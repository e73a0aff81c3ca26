//! Tables of code as bytes. Most tables are never read, and those of a process's first functions are all there before its guest begins, so
//! they stay in the form in which they are stored. Looking something up allocates nothing: a signal handler may do it.

use crate::code::{FrameLayout, Reloc, Roots, TrapEntry};
use std::marker::PhantomData;
use std::sync::Arc;
use weir_bytecode::stored::{Damaged, Reader, Stored};

/// An item whose bytes are always as many.
pub trait Row: Stored {
    /// Their number.
    const BYTES: usize;
}

impl Row for u16 {
    const BYTES: usize = 2;
}

impl Row for (u32, u32) {
    const BYTES: usize = 8;
}

impl Row for TrapEntry {
    const BYTES: usize = 9;
}

impl Row for Reloc {
    const BYTES: usize = 13;
}

/// A list of rows, as bytes.
#[derive(Debug)]
pub struct Rows<'b, T> {
    bytes: &'b [u8],
    of: PhantomData<T>,
}

impl<T> Clone for Rows<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Rows<'_, T> {}

impl<'b, T: Row> Rows<'b, T> {
    /// Reads a list that was written as a vector. Its rows are not looked at.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn read(from: &mut Reader<'b>) -> Result<Rows<'b, T>, Damaged> {
        let len = u32::read(from)? as usize;
        Ok(Rows::of(from.take(len.checked_mul(T::BYTES).ok_or(Damaged)?)?))
    }

    fn of(bytes: &'b [u8]) -> Rows<'b, T> {
        Rows { bytes, of: PhantomData }
    }

    /// The number of rows.
    pub fn len(self) -> usize {
        self.bytes.len() / T::BYTES
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }

    /// The row with this index, if there is one and it is not damaged.
    #[inline]
    pub fn get(self, index: usize) -> Option<T> {
        row(self.bytes.get(index.checked_mul(T::BYTES)?..)?)
    }

    /// The rows up to a damaged one.
    pub fn iter(self) -> impl Iterator<Item = T> {
        self.bytes.chunks_exact(T::BYTES).map_while(row)
    }

    /// The rows, if none is damaged and this holds for all.
    pub(crate) fn all(self, holds: impl FnMut(T) -> bool) -> bool {
        let mut intact = 0;
        self.iter().inspect(|_| intact += 1).all(holds) && intact == self.len()
    }

    /// The index of the row with this key, in a list that ascends by keys.
    #[inline]
    pub fn find(self, key: u32, key_of: impl Fn(T) -> u32) -> Option<usize> {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from.midpoint(to);
            if self.get(middle).is_some_and(|row| key_of(row) < key) { from = middle + 1 } else { to = middle }
        }
        self.get(from).is_some_and(|row| key_of(row) == key).then_some(from)
    }
}

/// The row with which these bytes begin.
#[inline]
fn row<T: Row>(bytes: &[u8]) -> Option<T> {
    T::read(&mut Reader::new(bytes)).ok()
}

/// A part of the bytes of [`Tables`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Span {
    at: u32,
    len: u32,
}

/// The tables of one function's code that are looked up by offsets in it.
#[derive(Clone, Debug)]
pub struct Tables {
    /// Those of this function, and maybe of others.
    bytes: Arc<Vec<u8>>,
    traps: Span,
    calls: Span,
    headers: Span,
    /// See [`Roots`].
    roots: [Span; 2],
}

/// The tables as they are stored.
struct Lists<'b> {
    traps: Rows<'b, TrapEntry>,
    calls: Rows<'b, (u32, u32)>,
    headers: Rows<'b, (u32, u32)>,
    roots: Rows<'b, (u32, u32)>,
    places: Rows<'b, u16>,
}

impl<'b> Lists<'b> {
    fn read(from: &mut Reader<'b>) -> Result<Lists<'b>, Damaged> {
        Ok(Lists {
            traps: Rows::read(from)?,
            calls: Rows::read(from)?,
            headers: Rows::read(from)?,
            roots: Rows::read(from)?,
            places: Rows::read(from)?,
        })
    }
}

impl Tables {
    /// Appends tables: trap sites, return offsets with pcs, loops with offsets of their entries, each ascending, and roots.
    pub fn write(traps: &Vec<TrapEntry>, calls: &Vec<(u32, u32)>, headers: &Vec<(u32, u32)>, roots: &Roots, to: &mut Vec<u8>) {
        traps.write(to);
        calls.write(to);
        headers.write(to);
        roots.write(to);
    }

    /// The tables that were written at this offset of `bytes`.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn at(bytes: Arc<Vec<u8>>, at: usize) -> Result<Tables, Damaged> {
        let mut from = Reader::new(bytes.get(at..).ok_or(Damaged)?);
        let Lists { traps, calls, headers, roots, places } = Lists::read(&mut from)?;
        let span = |part: &[u8]| Span { at: (part.as_ptr().addr() - bytes.as_ptr().addr()) as u32, len: part.len() as u32 };
        let (traps, calls, headers) = (span(traps.bytes), span(calls.bytes), span(headers.bytes));
        let roots = [span(roots.bytes), span(places.bytes)];
        Ok(Tables { bytes, traps, calls, headers, roots })
    }

    /// Whether these bytes are tables that do not lead out of `len` bytes of code and a frame of this layout.
    pub fn are_within(bytes: &[u8], len: usize, frame: &FrameLayout) -> bool {
        let mut from = Reader::new(bytes);
        let Ok(Lists { traps, calls, headers, roots, places }) = Lists::read(&mut from) else { return false };
        let inside = |offset: u32| (offset as usize) < len;
        let is_place = |word: u16| word > 0 && 8 * u32::from(word) <= frame.bytes;
        let has_list = |list: u32| {
            let count = places.get(list as usize);
            count.is_some_and(|count| (1..=usize::from(count)).all(|i| places.get(list as usize + i).is_some_and(is_place)))
        };
        from.finish().is_ok()
            && traps.all(|trap| inside(trap.offset))
            && calls.all(|call| call.0 as usize <= len)
            && headers.all(|header| inside(header.1))
            && roots.all(|(_, list)| has_list(list))
    }

    fn rows<T: Row>(&self, span: Span) -> Rows<'_, T> {
        Rows::of(&self.bytes[span.at as usize..][..span.len as usize])
    }

    /// Trap sites, ascending by offset.
    #[inline]
    pub fn traps(&self) -> Rows<'_, TrapEntry> {
        self.rows(self.traps)
    }

    /// The index of the trap site at exactly this offset.
    pub fn trap_at(&self, offset: usize) -> Option<usize> {
        self.traps().find(u32::try_from(offset).ok()?, |trap| trap.offset)
    }

    /// Return offsets of calls, ascending, with the pc of the call.
    #[inline]
    pub fn calls(&self) -> Rows<'_, (u32, u32)> {
        self.rows(self.calls)
    }

    /// The index of the call that returns to exactly this offset.
    pub fn call_at(&self, offset: usize) -> Option<usize> {
        self.calls().find(u32::try_from(offset).ok()?, |call| call.0)
    }

    /// The offset at which the code is entered at the loop with this index.
    pub fn header(&self, index: u32) -> Option<u32> {
        let headers: Rows<'_, (u32, u32)> = self.rows(self.headers);
        Some(headers.get(headers.find(index, |header| header.0)?)?.1)
    }

    /// The places of the roots at the call with this return offset, in words below `rbp`.
    pub fn roots(&self, call: u32) -> impl Iterator<Item = u16> + '_ {
        let (calls, places): (Rows<'_, (u32, u32)>, Rows<'_, u16>) = (self.rows(self.roots[0]), self.rows(self.roots[1]));
        let list = calls.find(call, |row| row.0).and_then(|found| Some(calls.get(found)?.1 as usize));
        let count = list.and_then(|list| places.get(list)).unwrap_or(0);
        (1..=usize::from(count)).filter_map(move |i| places.get(list? + i))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TrapSite;
    use weir_bytecode::stored::to_bytes;

    const FRAME: FrameLayout = FrameLayout { bytes: 64, preserved: [0; 4], instance: 0, value_sp: 0 };

    /// Tables of 100 bytes of code, at an offset of 3.
    fn bytes(roots: &Roots) -> Vec<u8> {
        let traps = [10, 20, 90].map(|offset| TrapEntry { offset, site: TrapSite::Stored, pc: offset + 1 });
        let mut bytes = vec![7; 3];
        Tables::write(&traps.into(), &vec![(5, 1), (100, 2)], &vec![(0, 30), (2, 99)], roots, &mut bytes);
        bytes
    }

    fn roots() -> Roots {
        Roots::of(vec![(5, vec![8, 1]), (9, vec![]), (100, vec![3])])
    }

    #[test]
    fn rows_have_the_bytes_that_they_say() {
        let trap = TrapEntry { offset: 1, site: TrapSite::Stored, pc: 2 };
        let reloc = Reloc { offset: 1, target: crate::code::RelocTarget::Cell, index: 3, addend: -4 };
        assert_eq!((to_bytes(&trap).len(), to_bytes(&reloc).len()), (TrapEntry::BYTES, Reloc::BYTES));
        assert_eq!((row(&to_bytes(&trap)), row(&to_bytes(&reloc))), (Some(trap), Some(reloc)));
        assert_eq!((to_bytes(&7u16).len(), to_bytes(&(1u32, 2u32)).len()), (u16::BYTES, <(u32, u32)>::BYTES));
    }

    #[test]
    fn what_is_at_an_offset_is_found() {
        let tables = Tables::at(bytes(&roots()).into(), 3).unwrap();
        assert_eq!(
            [9, 10, 11, 20, 90, 91, usize::MAX].map(|at| tables.trap_at(at)),
            [None, Some(0), None, Some(1), Some(2), None, None]
        );
        assert_eq!(tables.traps().get(1).unwrap().pc, 21);
        assert_eq!([0, 5, 99, 100].map(|at| tables.call_at(at)), [None, Some(0), None, Some(1)]);
        assert_eq!(tables.calls().iter().collect::<Vec<_>>(), [(5, 1), (100, 2)]);
        assert_eq!([0, 1, 2, 3].map(|index| tables.header(index)), [Some(30), None, Some(99), None]);
        let at = |call| tables.roots(call).collect::<Vec<_>>();
        assert_eq!([at(5), at(9), at(100), at(101)], [vec![1, 8], vec![], vec![3], vec![]]);
    }

    #[test]
    fn tables_that_lead_elsewhere_are_not_within() {
        let all = bytes(&roots());
        assert!(Tables::are_within(&all[3..], 100, &FRAME));
        assert!(!Tables::are_within(&all[3..], 99, &FRAME), "a call and a header are outside");
        assert!(!Tables::are_within(&all[3..], 100, &FrameLayout { bytes: 56, ..FRAME }), "a place is outside");
        assert!(!Tables::are_within(&all[3..all.len() - 1], 100, &FRAME) && !Tables::are_within(&all, 100, &FRAME));
        for wrong in [Roots { calls: vec![(5, 1)], places: vec![1] }, Roots { calls: vec![(5, 0)], places: vec![2, 1] }] {
            assert!(!Tables::are_within(&bytes(&wrong)[3..], 100, &FRAME), "{wrong:?}");
        }
        let (site, mut damaged) = (3 + 4 + 4, all.clone());
        damaged[site] = 200;
        assert!(!Tables::are_within(&damaged[3..], 100, &FRAME), "no trap has this number");
        assert!(Tables::at(all[..20].to_vec().into(), 3).is_err() && Tables::at(all.into(), 1 << 20).is_err());
    }
}
