//! Linear memories: reserved address space, committed from its start as the memory grows; or memories of the host. A memory never moves.

use super::pool::Pool;
use crate::records::host_memory::{Creator, Demand, HostMemory};
use crate::records::limiter::Asked;
use crate::sys::mapping::{Access, Mapping, page_size};
use crate::{Error, Result};
use std::io;
use weir_bytecode::types::{Limits, MemoryType};
use weir_contract::{Bounds, GUARDED_RESERVATION, MemoryCtx};

/// How an engine makes memories.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan<'a> {
    /// Whether 32-bit memories have guard regions.
    pub guard_regions: bool,
    /// A memory without guard regions reserves its maximum, but not more than this (or its minimum, if that is more), and
    /// cannot grow beyond its reservation.
    pub unguarded: usize,
    /// The maximum size in bytes of any memory.
    pub max: usize,
    /// The host's creator, if the host makes memories.
    pub host: Option<&'a Creator>,
}

/// A linear memory.
#[repr(C)]
pub(crate) struct MemoryRecord {
    pub ctx: MemoryCtx,
    pub ty: MemoryType,
    space: Space,
    /// The maximum length in bytes that fits both the type and the reservation.
    max_len: usize,
}

/// The bytes of a memory.
enum Space {
    Own(Reservation),
    Host(HostMemory),
}

impl MemoryRecord {
    /// Creates a zeroed memory of the type's minimum size.
    ///
    /// # Errors
    /// The size exceeds a limit, or the memory or address space of the host.
    pub fn new(ty: MemoryType, plan: Plan<'_>, kept: &Reservations, limiter: Option<Asked<'_>>) -> Result<MemoryRecord> {
        let too_large = || {
            let pages = ty.limits.min;
            let details = match byte_len(&ty, pages) {
                Some(min) => format!("a memory of {min} bytes exceeds the limits of the store or of memories"),
                None => format!("a memory of {pages} pages is too large"),
            };
            Error::detailed_msg(format!("memory minimum size of {pages} pages exceeds memory limits"), details)
        };
        if let Some(mut limiter) = limiter {
            let min = byte_len(&ty, ty.limits.min).unwrap_or_else(|| largest(&ty));
            if !limiter.memory_growing(0, min, maximum(&ty))? {
                return Err(too_large());
            }
        }
        let min = byte_len(&ty, ty.limits.min).ok_or_else(too_large)?;
        let declared_max =
            byte_len(&ty, ty.limits.max.unwrap_or(u64::MAX)).unwrap_or(usize::MAX).min(max_addressable(&ty)).min(plan.max);
        if min > declared_max {
            return Err(too_large());
        }
        let guarded = Bounds::of(&ty, 0, plan.guard_regions) == Bounds::Guard;
        let (reserved, max_len) = match guarded {
            true => (GUARDED_RESERVATION, declared_max),
            false => {
                let reserved = declared_max.min(plan.unguarded).max(min);
                (reserved, reserved)
            }
        };
        if let Some(creator) = plan.host {
            let (reserved, guard) = match guarded {
                true => (MAX_GUARDED, GUARDED_RESERVATION - MAX_GUARDED),
                false => (reserved.checked_next_multiple_of(page_size()).ok_or_else(too_large)?, 0),
            };
            let memory = HostMemory::new(creator, ty, Demand { min, max: maximum(&ty), reserved, guard })?;
            let (base, max_len) = (memory.base(), max_len.min(memory.capacity()).max(min));
            let ctx = MemoryCtx { base, len: min as u64 };
            return Ok(MemoryRecord { ctx, ty, space: Space::Host(memory), max_len });
        }
        let failed = |error| Error::from(error).context(format!("reserving {reserved} bytes for a memory"));
        let (reservation, max_len) = match kept.take(reserved, min) {
            Some(reservation) => (reservation, max_len),
            None if guarded => (reserve(reserved).map_err(failed)?, max_len),
            None => reserve_most(reserved, min).map_err(failed)?,
        };
        let ctx = MemoryCtx { base: reservation.base(), len: 0 };
        let mut memory = MemoryRecord { ctx, ty, space: Space::Own(reservation), max_len };
        memory.commit(min)?;
        Ok(memory)
    }

    /// Returns the size in bytes.
    pub fn len(&self) -> usize {
        self.ctx.len as usize
    }

    /// Returns the size in pages.
    pub fn pages(&self) -> u64 {
        self.ctx.len >> self.ty.page_size_log2
    }

    /// Returns the type, with the current size as the minimum.
    pub fn current_type(&self) -> MemoryType {
        MemoryType { limits: Limits { min: self.pages(), ..self.ty.limits }, ..self.ty }
    }

    /// Adds `delta` zeroed pages and returns the previous number of pages; `None` without any change if that exceeds
    /// the memory's maximum, the store's limits or the memory of the host.
    ///
    /// # Errors
    /// The error of the limiter.
    pub fn grow(&mut self, delta: u64, limiter: Option<Asked<'_>>) -> Result<Option<u64>> {
        let old = self.pages();
        let allowed = |pages: &u64| self.ty.limits.max.is_none_or(|max| *pages <= max);
        let pages = old.checked_add(delta).filter(allowed);
        let len = pages.and_then(|pages| byte_len(&self.ty, pages)).filter(|&len| len <= self.max_len);
        if delta == 0 && !limiter.as_ref().is_some_and(Asked::must_wait) {
            return Ok(Some(old));
        }
        let Some(mut limiter) = limiter else { return Ok(len.and_then(|len| self.commit(len).ok()).map(|()| old)) };
        // The limiter hears of every size that the guest wants.
        let wanted = byte_len(&self.ty, delta).and_then(|more| more.checked_add(self.len()));
        if !limiter.memory_growing(self.len(), wanted.unwrap_or(usize::MAX).min(largest(&self.ty)), maximum(&self.ty))? {
            return Ok(None);
        }
        let grown = match len {
            Some(len) => self.commit(len),
            None => Err(Error::msg("Memory maximum size exceeded")),
        };
        match grown {
            Ok(()) => Ok(Some(old)),
            Err(error) => limiter.memory_grow_failed(error).map(|()| None),
        }
    }

    /// Makes the first `len` bytes accessible; `len` is not less than the current size.
    fn commit(&mut self, len: usize) -> Result<()> {
        match &mut self.space {
            Space::Own(reservation) => reservation.expose(len)?,
            Space::Host(memory) if len as u64 > self.ctx.len => memory.expose(len)?,
            Space::Host(_) => (),
        }
        self.ctx.len = len as u64;
        Ok(())
    }
}

/// Reserved address space for a memory, of which the beginning is accessible.
#[derive(Debug)]
struct Reservation {
    /// With inaccessible bytes before the memory's: where an access is longer than the memory, speculative execution after a failed check may
    /// read as many bytes before the memory's base as the access is long.
    space: Mapping,
    /// Their number, in whole pages.
    front: usize,
    /// Number of accessible bytes at the beginning, in whole pages.
    exposed: usize,
}

/// Reservations of an engine's dropped memories with guard regions, all zero where accessible. The next memory of the
/// same size reuses one without system calls.
#[derive(Debug, Default)]
pub(crate) struct Reservations(Pool<Reservation, KEPT_RESERVATIONS>);

/// Maximum number of kept reservations.
const KEPT_RESERVATIONS: usize = 16;

impl Reservations {
    /// Takes a reservation of `len` bytes of which at most the first `exposed` are accessible.
    fn take(&self, len: usize, exposed: usize) -> Option<Reservation> {
        let mut reservation = if len == GUARDED_RESERVATION { self.0.take()? } else { return None };
        reservation.hide(exposed).ok()?;
        Some(reservation)
    }

    /// Keeps the reservation of a memory to which no pointers are left, or unmaps it. A memory of the host is dropped.
    pub fn put(&self, memory: MemoryRecord) {
        let Space::Own(reservation) = memory.space else { return };
        if reservation.len() == GUARDED_RESERVATION.next_multiple_of(PAGE_TABLE) && reservation.clear().is_ok() {
            drop(self.0.put(reservation));
        }
    }
}

impl Reservation {
    /// The address of the memory.
    fn base(&self) -> *mut u8 {
        self.space.as_mut_ptr().wrapping_add(self.front)
    }

    /// Bytes from the base on.
    fn len(&self) -> usize {
        self.space.len() - self.front
    }

    /// Makes the first `len` bytes accessible.
    fn expose(&mut self, len: usize) -> io::Result<()> {
        let exposed = len.next_multiple_of(page_size()).max(self.exposed);
        // SAFETY: nothing relies on pages that are inaccessible now.
        unsafe { self.space.protect(self.front + self.exposed..self.front + exposed, Access::ReadWrite)? };
        self.exposed = exposed;
        Ok(())
    }

    /// Makes the bytes after the first `len` inaccessible.
    fn hide(&mut self, len: usize) -> io::Result<()> {
        let exposed = len.next_multiple_of(page_size()).min(self.exposed);
        // SAFETY: the reservation belongs to no memory, so nothing refers to its bytes.
        unsafe { self.space.protect(self.front + exposed..self.front + self.exposed, Access::None)? };
        self.exposed = exposed;
        Ok(())
    }

    /// Zeroes the accessible bytes, whatever was mapped there.
    fn clear(&self) -> io::Result<()> {
        // SAFETY: as for `hide`.
        unsafe { self.space.zero(self.front..self.front + self.exposed) }
    }
}

/// The greatest size of a memory with guard regions, all that 32-bit addresses reach.
const MAX_GUARDED: usize = 4 << 30;

/// Bytes that one page table maps. Linux aligns a reservation that is a multiple of this to such a boundary, so that it
/// shares no page table with its neighbours, which unmapping it would have to scan.
const PAGE_TABLE: usize = 2 << 20;

/// Reserves inaccessible address space.
fn reserve(len: usize) -> io::Result<Reservation> {
    let unit = if len < PAGE_TABLE { page_size() } else { PAGE_TABLE };
    // An empty mapping is an error, and a memory of size 0 still needs a base.
    let len =
        len.max(1).checked_next_multiple_of(unit).and_then(|len| len.checked_add(unit)).ok_or(io::ErrorKind::OutOfMemory)?;
    Ok(Reservation { space: Mapping::reserve(len)?, front: unit, exposed: 0 })
}

/// Reserves inaccessible address space: `most` bytes, or half of that, and so on, if there is not as much, but no less than `least` bytes.
/// Returns the number of bytes, too.
fn reserve_most(most: usize, least: usize) -> io::Result<(Reservation, usize)> {
    let mut len = most;
    loop {
        match reserve(len) {
            Ok(reservation) => return Ok((reservation, len)),
            Err(error) if len <= least => return Err(error),
            Err(_) => len = (len / 2).max(least),
        }
    }
}

/// Returns `pages` in bytes, if a `usize` holds it.
pub(super) fn byte_len(ty: &MemoryType, pages: u64) -> Option<usize> {
    usize::try_from(u128::from(pages) << ty.page_size_log2).ok()
}

/// The size that stands for all that no `usize` holds, where a limiter is asked: the largest in whole pages.
fn largest(ty: &MemoryType) -> usize {
    0usize.wrapping_sub(1 << ty.page_size_log2)
}

/// Returns the maximum size in bytes of which a limiter is told: that of the type, or that of its addresses.
fn maximum(ty: &MemoryType) -> Option<usize> {
    match ty.limits.max {
        Some(max) => byte_len(ty, max),
        None if ty.memory64 => Some(largest(ty)),
        None => Some(1 << 32),
    }
}

/// Returns the maximum number of bytes that the memory's addresses can reach.
fn max_addressable(ty: &MemoryType) -> usize {
    if ty.memory64 { isize::MAX as usize } else { 1 << 32 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory32(min: u64, max: Option<u64>) -> MemoryType {
        MemoryType { limits: Limits { min, max }, memory64: false, shared: false, page_size_log2: 16 }
    }

    fn plan(guard_regions: bool) -> Plan<'static> {
        Plan { guard_regions, unguarded: 8 << 30, max: usize::MAX, host: None }
    }

    fn new(ty: MemoryType, guard_regions: bool) -> Result<MemoryRecord> {
        MemoryRecord::new(ty, plan(guard_regions), &Reservations::default(), None)
    }

    #[test]
    fn reservations_are_kept_and_zeroed() {
        let kept = Reservations::default();
        let new = |pages, guard_regions| MemoryRecord::new(memory32(pages, None), plan(guard_regions), &kept, None).unwrap();
        let (mut first, unguarded) = (new(1, true), new(1, false));
        first.grow(2, None).unwrap();
        let base = first.ctx.base;
        // SAFETY: the memory has three pages.
        unsafe { base.add(2 * 65536).write(7) };
        kept.put(first);
        kept.put(unguarded);
        assert_eq!(kept.0.len(), 1, "the other is of another size");
        assert_ne!(new(1, false).ctx.base, base);
        let mut again = new(1, true);
        let Space::Own(reservation) = &again.space else { panic!("a memory of Weir's") };
        assert_eq!((again.ctx.base, reservation.exposed), (base, 65536), "the rest is guarded again");
        again.grow(2, None).unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { base.add(2 * 65536).read() }, 0);
        kept.put(again);
        let many: Vec<MemoryRecord> = (0..2 * KEPT_RESERVATIONS).map(|_| new(0, true)).collect();
        many.into_iter().for_each(|memory| kept.put(memory));
        assert_eq!(kept.0.len(), KEPT_RESERVATIONS);
    }

    #[test]
    fn grows_in_place_up_to_its_maximum() {
        for guard_regions in [true, false] {
            let mut memory = new(memory32(1, Some(3)), guard_regions).unwrap();
            let base = memory.ctx.base;
            assert_eq!(memory.grow(2, None).unwrap(), Some(1));
            assert_eq!((memory.pages(), memory.ctx.base), (3, base));
            // SAFETY: the memory has just grown over this byte.
            unsafe {
                let last = base.add(memory.len() - 1);
                assert_eq!(last.read(), 0);
                last.write(7);
            }
            assert_eq!(memory.grow(1, None).unwrap(), None);
            assert_eq!(memory.grow(u64::MAX, None).unwrap(), None);
            assert_eq!(memory.grow(0, None).unwrap(), Some(3));
        }
    }

    #[test]
    fn the_whole_of_a_32_bit_address_space() {
        let mut memory = new(memory32(0, None), true).unwrap();
        assert!(!memory.ctx.base.is_null());
        assert_eq!(memory.grow(65536, None).unwrap(), Some(0));
        assert_eq!(memory.ctx.len, 1 << 32);
        assert_eq!(memory.grow(1, None).unwrap(), None);
    }

    #[test]
    fn odd_pages_and_absurd_sizes() {
        let bytes = MemoryType { page_size_log2: 0, ..memory32(10, Some(5000)) };
        let mut memory = new(bytes, true).unwrap();
        assert_eq!((memory.len(), memory.grow(4990, None).unwrap()), (10, Some(10)));
        assert_eq!(memory.grow(1, None).unwrap(), None);

        let huge = MemoryType { memory64: true, ..memory32(1 << 48, None) };
        assert!(new(huge, true).is_err());
        let open = MemoryType { memory64: true, ..memory32(1, None) };
        let mut memory = new(open, true).unwrap();
        assert_eq!(memory.grow(1 << 47, None).unwrap(), None);
        assert_eq!(memory.grow(1, None).unwrap(), Some(1));
    }
}
