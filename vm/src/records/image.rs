//! The image of a module's memories after its data segments: a file in memory whose parts instances map instead of copying the data.
//! Pages that an instance only reads are shared; pages that it writes are copied at that time; pages that it never
//! touches cost nothing.
//!
//! An image is made for the second instance of a module, because a module that is instantiated once would not profit; or for the first, if
//! the module was prepared for many.
//!
//! A process may have 65,530 mappings, so that ten thousand instances of a module may have five each; stores share
//! mappings for their stacks. A memory is two of them, its accessible part and the reserved rest. Each part of it that is mapped
//! from the file adds one, or two if it lies between others. Parts are therefore joined, except at the longest zeros
//! between them. A page of zeros within a part takes memory once, for all instances, when one of them first reads it.

use crate::Result;
use crate::records::error::Context;
use crate::records::memory::byte_len;
use crate::sys::mapping::{Access, map_file_over, page_size};
use crate::sys::memory_file::{MemoryFile, Purpose};
use std::cmp::Reverse;
use std::io;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_bytecode::Module as Bytecode;

/// Less data than this in a memory is copied: mapping costs a system call and a fault for each page touched, copying a fault for each page.
const MIN_BYTES: usize = 16 << 10;

/// Zeros of fewer bytes than this at an end of a memory are not worth a mapping of their own.
const MIN_EDGE: usize = 64 << 10;

/// The same for zeros between data, which cost two.
const MIN_INNER: usize = 1 << 20;

/// The number of mappings that an instance may have.
const MAX_MAPPINGS: usize = 5;

/// Mappings of a memory without an image, or with one that covers its accessible part.
const MEMORY: usize = 2;

/// The image of a module's memories, if one is made.
#[derive(Debug, Default)]
pub(crate) struct Images {
    /// Whether the next instance maps it.
    expected: AtomicBool,
    made: OnceLock<Option<Image>>,
}

impl Images {
    /// Makes the first instance map the image, too.
    pub fn expect_many(&self) {
        self.expected.store(true, Ordering::Relaxed);
    }

    /// Returns the image that a new instance maps instead of writing data segments; `None` if it writes all of them.
    pub fn for_instance(&self, bytecode: &Bytecode) -> Option<&Image> {
        if !self.expected.load(Ordering::Relaxed) {
            self.expect_many();
            return None;
        }
        self.made.get_or_init(|| image(bytecode)).as_ref()
    }
}

/// The data of some memories, in one file.
#[derive(Debug)]
pub(crate) struct Image {
    file: MemoryFile,
    parts: Box<[Part]>,
}

/// Consecutive pages of a memory.
#[derive(Debug)]
struct Part {
    memory: u32,
    /// In bytes.
    range: Range<usize>,
    /// Their place in the file.
    at: u64,
}

impl Image {
    /// Whether it has all data of a memory.
    pub fn has(&self, memory: u32) -> bool {
        self.parts.iter().any(|part| part.memory == memory)
    }

    /// Maps the pages over the zeros of new memories. `base` returns the base of a memory.
    ///
    /// # Errors
    /// The system cannot make another mapping.
    ///
    /// # Safety
    /// The memories are of the module, have at least their minimal size, and no reference into them is held.
    pub unsafe fn map(&self, base: impl Fn(u32) -> *mut u8) -> Result<()> {
        for Part { memory, range, at } in &self.parts {
            // SAFETY: whole pages within the accessible part of the memory's own reservation, and the file keeps its
            // length.
            unsafe { map_file_over(base(*memory).add(range.start), range.len(), &self.file, *at, Access::ReadWrite) }
                .context("mapping a module's data")?;
        }
        Ok(())
    }
}

/// The data of a memory that the module defines.
#[derive(Debug)]
struct Data<'a> {
    memory: u32,
    /// Bytes of the memory, in whole pages.
    len: usize,
    /// Whether it can grow, and then has accessible pages after these.
    grows: bool,
    segments: Vec<(usize, &'a [u8])>,
}

impl Data<'_> {
    fn bytes(&self) -> usize {
        self.segments.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Returns the ranges of bytes in whole pages that the segments reach, ascending and disjoint.
    fn pages(&self) -> Vec<Range<usize>> {
        let page = page_size();
        let pages = |(at, bytes): &(usize, &[u8])| at / page * page..(at + bytes.len()).next_multiple_of(page);
        let mut reached: Vec<Range<usize>> = self.segments.iter().map(pages).collect();
        reached.sort_unstable_by_key(|range| range.start);
        reached.dedup_by(|next, last| {
            let touch = next.start <= last.end;
            if touch {
                last.end = last.end.max(next.end);
            }
            touch
        });
        reached
    }

    /// Returns these ranges with their bytes.
    fn contents(&self) -> Vec<(Range<usize>, Vec<u8>)> {
        let mut contents: Vec<_> = self.pages().into_iter().map(|pages| (pages.clone(), vec![0; pages.len()])).collect();
        for (at, bytes) in &self.segments {
            let range = contents.partition_point(|(pages, _)| pages.end <= *at);
            let (pages, page_bytes) = &mut contents[range];
            page_bytes[at - pages.start..][..bytes.len()].copy_from_slice(bytes);
        }
        contents
    }
}

/// Returns the image of the memories whose data it can replace; `None` if there are none, the system cannot make such a file, or it would take
/// more memory than the module may.
fn image(bytecode: &Bytecode) -> Option<Image> {
    let data = data(bytecode);
    let memories = bytecode.memories.len() - bytecode.imported_memories as usize;
    let parts = parts(&data, MAX_MAPPINGS.saturating_sub(MEMORY * memories));
    let write = || {
        let file = MemoryFile::new("weir-data", Purpose::Data)?;
        file.set_len(parts.last().map_or(0, |part| part.at + part.range.len() as u64))?;
        for data in &data {
            for (pages, bytes) in data.contents() {
                let part = parts.iter().find(|part| part.memory == data.memory && part.range.contains(&pages.start));
                let part = part.expect("parts contain all data");
                file.write_all_at(&bytes, part.at + (pages.start - part.range.start) as u64)?;
            }
        }
        file.seal()?;
        Ok::<_, io::Error>(file)
    };
    if parts.is_empty() {
        return None;
    }
    // In the file and, while that is written, of one memory as a copy.
    let bytes = |data: &Data<'_>| data.pages().iter().map(Range::len).sum::<usize>();
    let all = data.iter().map(bytes).sum::<usize>();
    let copied = data.iter().map(bytes).max().unwrap_or(0);
    bytecode.account.charge(all + copied).ok()?;
    let file = write().ok();
    bytecode.account.give_back(if file.is_some() { copied } else { all + copied });
    Some(Image { file: file?, parts: parts.into() })
}

/// Returns the data of the memories of which an image has the same effect as instantiation. After a segment that may be out of bounds,
/// nothing may have been written.
fn data(bytecode: &Bytecode) -> Vec<Data<'_>> {
    let first = bytecode.imported_memories;
    let of_memory = |memory: u32| {
        let ty = &bytecode.memories[memory as usize];
        let len = byte_len(ty, ty.limits.min).unwrap_or(0).next_multiple_of(page_size());
        Data { memory, len, grows: ty.limits.max.is_none_or(|max| max > ty.limits.min), segments: Vec::new() }
    };
    let mut data: Vec<Data<'_>> = (first..bytecode.memories.len() as u32).map(of_memory).collect();
    let mut may_fail = false;
    for segment in &bytecode.data {
        let Some((memory, offset)) = &segment.active else { continue };
        let range = segment.range.start as usize..segment.range.end as usize;
        // Instantiation finds that it is unreadable.
        let Ok(bytes) = bytecode.bytes.try_part(range) else { return Vec::new() };
        let ty = &bytecode.memories[*memory as usize];
        let size = byte_len(ty, ty.limits.min).unwrap_or(0) as u128;
        let fits = offset.address().filter(|at| u128::from(*at) + bytes.len() as u128 <= size);
        match (fits, memory.checked_sub(first)) {
            (Some(at), Some(own)) if !may_fail && !bytes.is_empty() => data[own as usize].segments.push((at as usize, bytes)),
            (Some(_), Some(_)) if bytes.is_empty() => {}
            (_, own) => {
                may_fail = true;
                // The memory is written as a whole, in order.
                own.into_iter().for_each(|own| data[own as usize].len = 0);
            }
        }
    }
    data.retain(|data| data.len > 0 && data.bytes() >= MIN_BYTES);
    data
}

/// Zeros that parts can leave out, in the memory with this place in the list.
struct Hole {
    of: usize,
    range: Range<usize>,
}

/// Returns the parts of memories to map, which leave out as many zeros as `spare` mappings allow. The parts contain all data.
fn parts(data: &[Data<'_>], mut spare: usize) -> Vec<Part> {
    let (mut left_out, mut edges, mut inner) = (Vec::new(), Vec::new(), Vec::new());
    for (of, data) in data.iter().enumerate() {
        let pages = data.pages();
        let (Some(first), Some(last)) = (pages.first(), pages.last()) else { continue };
        edges.push(Hole { of, range: 0..first.start });
        let rest = Hole { of, range: last.end..data.len };
        // The rest of a memory that can grow is a mapping of its own anyway, or will be one.
        if data.grows && spare > 0 {
            spare -= 1;
            left_out.push(rest);
        } else {
            edges.push(rest);
        }
        inner.extend(pages.windows(2).map(|pair| Hole { of, range: pair[0].end..pair[1].start }));
    }
    for (holes, min) in [(&mut edges, MIN_EDGE), (&mut inner, MIN_INNER)] {
        holes.retain(|hole| hole.range.len() >= min);
        holes.sort_by_key(|hole| Reverse(hole.range.len()));
    }
    // A hole between two parts costs two mappings, one at an edge costs one.
    let sum = |holes: &[Hole], count: usize| holes.iter().take(count).map(|hole| hole.range.len()).sum::<usize>();
    let best = (0..=spare / 2).max_by_key(|&count| sum(&inner, count) + sum(&edges, spare - 2 * count)).unwrap_or(0);
    left_out.extend(inner.into_iter().take(best));
    left_out.extend(edges.into_iter().take(spare - 2 * best));
    left_out.sort_by_key(|hole| (hole.of, hole.range.start));

    let (mut parts, mut at) = (Vec::new(), 0);
    for (of, data) in data.iter().enumerate() {
        let mut start = 0;
        let holes = left_out.iter().filter(|hole| hole.of == of).map(|hole| hole.range.clone());
        for hole in holes.chain(std::iter::once(data.len..data.len)) {
            if hole.start > start {
                parts.push(Part { memory: data.memory, range: start..hole.start, at });
                at += (hole.start - start) as u64;
            }
            start = hole.end.max(start);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: &[u8] = &[1; MIN_BYTES];
    const MIB: usize = 1 << 20;

    /// The parts of memories of 16 MiB with data at these offsets, in MiB.
    fn planned(memories: &[(bool, &[usize])], spare: usize) -> Vec<(u32, Range<usize>)> {
        let data = |(i, (grows, at)): (usize, &(bool, &[usize]))| Data {
            memory: i as u32,
            len: 16 * MIB,
            grows: *grows,
            segments: at.iter().map(|at| (at * MIB, DATA)).collect(),
        };
        let data: Vec<Data<'_>> = memories.iter().enumerate().map(data).collect();
        let parts = parts(&data, spare);
        for data in &data {
            for (at, bytes) in &data.segments {
                let has =
                    |part: &&Part| part.memory == data.memory && part.range.contains(at) && at + bytes.len() <= part.range.end;
                assert_eq!(parts.iter().filter(has).count(), 1);
            }
        }
        let mut end = 0;
        parts.iter().for_each(|part| (_, end) = (assert_eq!(part.at, end), part.at + part.range.len() as u64));
        parts.into_iter().map(|part| (part.memory, part.range)).collect()
    }

    #[test]
    fn the_longest_zeros_are_left_out() {
        let at = |mib: usize| mib * MIB + MIN_BYTES;
        assert_eq!(planned(&[(true, &[0, 3, 10])], 3), [(0, 0..at(3)), (0, 10 * MIB..at(10))]);
        assert_eq!(planned(&[(true, &[5, 6])], 3), [(0, 5 * MIB..at(6))], "the first and the last zeros");
        assert_eq!(planned(&[(false, &[1, 8, 15])], 3), [(0, MIB..at(1)), (0, 8 * MIB..16 * MIB)]);
        assert_eq!(planned(&[(false, &[4, 8])], 0), [(0, 0..16 * MIB)]);
        assert_eq!(planned(&[(true, &[4, 8])], 1), [(0, 0..at(8))]);
        assert_eq!(planned(&[(true, &[4]), (true, &[8])], 1), [(0, 0..at(4)), (1, 0..16 * MIB)]);
        assert_eq!(planned(&[(false, &[4]), (false, &[8])], 1), [(0, 0..at(4)), (1, 0..16 * MIB)]);
        assert_eq!(planned(&[], 5), []);
    }

    #[test]
    fn pages_that_segments_share_are_one_range() {
        let segments = vec![(5000, &DATA[..10]), (4096, &DATA[..1]), (12000, &DATA[..300]), (20480, &DATA[..1])];
        let data = Data { memory: 0, len: MIB, grows: false, segments };
        assert_eq!(data.pages(), [4096..16384, 20480..24576]);
    }
}
