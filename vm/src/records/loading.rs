//! Reads the files of modules, and makes the hashes by which the cache finds modules. Several threads read and hash large ones: a hash is one
//! of the hashes of pieces.

use crate::sys::buffer::Buffer;
use crate::sys::mapping::LARGE_PAGE;
use crate::sys::thread;
use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use weir_bytecode::Bytes;

/// A BLAKE3 hash.
pub(crate) type Hash = [u8; 32];

/// Bytes of a piece, at most: few, so that they stay in a core's cache between being read and being hashed, and each thread touches few pages.
const PIECE: usize = 64 << 10;

/// The bytes of a module from which it is better not to have all of it in memory.
pub(crate) const LARGE: usize = 1 << 20;

/// The bytes from which several threads read them: starting a thread takes as long as reading a quarter of them.
const MANY: usize = 16 * PIECE;

/// The most threads that read a module.
const THREADS: usize = 4;

/// The kind of bytes that a hash is of. A file with debugging information, which is not read, has another hash than a module with zeros in
/// its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// The bytes of a file that are [needed](weir_bytecode::file::needed).
    File,
    /// The bytes of a module that was not a file, or whose file was in the text format.
    Bytes,
}

impl Kind {
    /// The context of its hashes.
    fn context(self) -> &'static str {
        match self {
            Kind::File => "weir cache 4: file",
            Kind::Bytes => "weir cache 4: bytes",
        }
    }
}

/// Reads these ranges of a file of `len` bytes; all other bytes are zero. With `wants_hash`, also returns the hash of the bytes that were
/// read. `read_at` fills a buffer with the bytes from an offset on.
///
/// # Errors
/// Those of `read_at`.
pub(crate) fn read(
    len: usize,
    ranges: &[Range<usize>],
    wants_hash: bool,
    read_at: impl Fn(&mut [u8], usize) -> io::Result<()> + Sync,
) -> io::Result<(Bytes, Option<Hash>)> {
    let places = pieces(ranges);
    let (bytes, hashes) = fill(len, &places, |piece, into| {
        read_at(into, places[piece].start)?;
        Ok(if wants_hash { *blake3::hash(into).as_bytes() } else { Hash::default() })
    })?;
    Ok((bytes, wants_hash.then(|| combine(Kind::File, len, &places, &hashes))))
}

/// Returns the hash that [`read`] makes, without the bytes.
///
/// # Errors
/// Those of `read_at`.
pub(crate) fn hash_file(
    len: usize,
    ranges: &[Range<usize>],
    read_at: impl Fn(&mut [u8], usize) -> io::Result<()> + Sync,
) -> io::Result<Hash> {
    thread_local! {
        /// Memory for a piece, which the thread has read before: the system need not clear it for each.
        static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    let places = pieces(ranges);
    let hash = |_, place: &Range<usize>| {
        BUFFER.with_borrow_mut(|buffer| {
            buffer.resize(PIECE, 0);
            let bytes = &mut buffer[..place.len()];
            read_at(bytes, place.start)?;
            Ok(*blake3::hash(bytes).as_bytes())
        })
    };
    let hashes = on_all(threads_for(&places, threads()), places.iter().enumerate().collect(), hash);
    // This thread goes on without it.
    drop(BUFFER.take());
    Ok(combine(Kind::File, len, &places, &hashes?))
}

/// Returns `len` bytes of which `write` writes these places, given their number; all others are zero. Also returns its results. Several
/// threads do this if the places have many bytes.
///
/// # Errors
/// Those of `write`; there is not enough memory; the places do not ascend, or are not within the bytes.
pub(crate) fn fill<R: Default + Clone + Send>(
    len: usize,
    places: &[Range<usize>],
    write: impl Fn(usize, &mut [u8]) -> io::Result<R> + Sync,
) -> io::Result<(Bytes, Vec<R>)> {
    let fill_places = |bytes: &mut [u8]| {
        let parts = split(bytes, places).ok_or(io::ErrorKind::InvalidData)?;
        let mut parts: Vec<_> = parts.into_iter().enumerate().collect();
        // Each thread begins in a large page of its own. Of two that reach the same one, both would clear it.
        parts.sort_by_key(|(place, _)| places[*place].start % LARGE_PAGE / PIECE);
        on_all(threads_for(places, threads()), parts, &write)
    };
    if len < LARGE_PAGE / 2 {
        let mut bytes = vec![0; len];
        let results = fill_places(&mut bytes)?;
        return Ok((bytes.into(), results));
    }
    let mut buffer = Buffer::zeroed(len, places)?;
    let results = fill_places(buffer.bytes_mut())?;
    // What is between the places is not written.
    let untouched = len - places.iter().map(Range::len).sum::<usize>();
    Ok((Bytes::of(buffer).with_untouched(untouched), results))
}

/// Returns the hash of a module, of which only these ranges count. `threads` threads make it.
pub(crate) fn hash(kind: Kind, bytes: &[u8], ranges: &[Range<usize>], threads: usize) -> Hash {
    let places = pieces(ranges);
    let hash = |_, place: &Range<usize>| Ok(*blake3::hash(&bytes[place.clone()]).as_bytes());
    let threads = threads_for(&places, threads);
    let hashes = on_all(threads, places.iter().enumerate().collect(), hash).expect("hashing does not fail");
    combine(kind, bytes.len(), &places, &hashes)
}

/// Returns the range of all of `len` bytes.
pub(crate) fn all(len: usize) -> Vec<Range<usize>> {
    std::iter::once(0..len).collect()
}

/// Returns how many threads work on a module while nothing else can be done.
pub(crate) fn threads() -> usize {
    thread::parallelism().unwrap_or(1).min(THREADS)
}

/// Returns how many of `threads` threads work on these places.
fn threads_for(places: &[Range<usize>], threads: usize) -> usize {
    if places.iter().map(Range::len).sum::<usize>() < MANY { 1 } else { threads }
}

/// Divides ranges into pieces.
fn pieces(ranges: &[Range<usize>]) -> Vec<Range<usize>> {
    divide(ranges, PIECE)
}

/// Divides ranges into ranges of `len` bytes at most.
pub(crate) fn divide(ranges: &[Range<usize>], len: usize) -> Vec<Range<usize>> {
    let divide = |&Range { start, end }: &Range<usize>| (start..end).step_by(len).map(move |at| at..end.min(at + len));
    ranges.iter().flat_map(divide).collect()
}

/// Returns these places of `bytes`, if they ascend and are within.
fn split<'b>(bytes: &'b mut [u8], places: &[Range<usize>]) -> Option<Vec<&'b mut [u8]>> {
    let (mut parts, mut rest, mut at) = (Vec::with_capacity(places.len()), bytes, 0);
    for Range { start, end } in places {
        let (part, after) = rest.split_at_mut_checked(end.checked_sub(at)?)?;
        parts.push(part.get_mut(start.checked_sub(at)?..)?);
        (rest, at) = (after, *end);
    }
    Some(parts)
}

/// Calls `work` with the number of each item and the item, on this many threads, and returns its results in the order of the numbers, which are
/// all from 0 on.
///
/// # Errors
/// One of those of `work`; the items after it may be left out.
fn on_all<T: Send, R: Default + Clone + Send>(
    threads: usize,
    items: Vec<(usize, T)>,
    work: impl Fn(usize, T) -> io::Result<R> + Sync,
) -> io::Result<Vec<R>> {
    let results = Mutex::new(Ok(vec![R::default(); items.len()]));
    let next = Mutex::new(items.into_iter());
    let take = || next.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::run_on_all(threads, &|| {
        while let Some((number, item)) = take() {
            let result = work(number, item);
            let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
            match (&mut *results, result) {
                (Ok(results), Ok(result)) => results[number] = result,
                (failed @ Ok(_), Err(error)) => *failed = Err(error),
                (Err(_), _) => return,
            }
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the hash of a module of `len` bytes from those of its pieces.
fn combine(kind: Kind, len: usize, places: &[Range<usize>], hashes: &[Hash]) -> Hash {
    let mut all = blake3::Hasher::new_derive_key(kind.context());
    all.update(&(len as u64).to_le_bytes());
    for (Range { start, end }, hash) in places.iter().zip(hashes) {
        all.update(&(*start as u64).to_le_bytes()).update(&(*end as u64).to_le_bytes()).update(hash);
    }
    *all.finalize().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module of pieces that differ.
    fn module() -> Vec<u8> {
        (0..MANY + 3 * PIECE + 7).map(|i| (i ^ i >> 9) as u8).collect()
    }

    fn hash_of(bytes: &[u8], ranges: &[Range<usize>]) -> Hash {
        hash(Kind::File, bytes, ranges, 2)
    }

    #[test]
    fn every_byte_that_counts_and_its_place_decide() {
        let bytes = module();
        let ranges = [0..PIECE * 2 + 100, PIECE * 3..bytes.len()];
        let expected = hash_of(&bytes, &ranges);
        for at in [0, 99, PIECE - 1, PIECE * 2 + 99, PIECE * 3, bytes.len() - 1] {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert_ne!(hash_of(&other, &ranges), expected, "{at}");
        }
        let mut other = bytes.clone();
        other[PIECE * 2 + 100] ^= 1;
        assert_eq!(hash_of(&other, &ranges), expected, "a byte that does not count");
        for others in [all(bytes.len()), vec![0..PIECE * 2 + 99, PIECE * 3..bytes.len()], vec![]] {
            assert_ne!(hash_of(&bytes, &others), expected, "{others:?}");
        }
        other.push(0);
        assert_ne!(hash_of(&other, &ranges), expected, "the length");
        assert_ne!(hash(Kind::Bytes, &bytes, &ranges, 1), expected, "the kind");
    }

    #[test]
    fn what_is_read_is_what_is_hashed() {
        let file = module();
        let ranges = [3..PIECE * 9, PIECE * 9 + 1..file.len() - 1];
        let read_at = |into: &mut [u8], at: usize| {
            into.copy_from_slice(&file[at..at + into.len()]);
            Ok(())
        };
        for wants_hash in [false, true] {
            let (bytes, hash) = read(file.len(), &ranges, wants_hash, read_at).unwrap();
            assert_eq!(hash, wants_hash.then(|| hash_of(&bytes, &ranges)));
            assert_eq!(hash_file(file.len(), &ranges, read_at).unwrap(), hash_of(&bytes, &ranges));
            let differ: Vec<_> = (0..file.len()).filter(|&i| bytes[i] != file[i]).collect();
            assert!(differ.iter().all(|&i| bytes[i] == 0 && !ranges.iter().any(|range| range.contains(&i))));
        }
    }

    #[test]
    fn a_failure_is_returned() {
        let failing = |_: &mut [u8], at| if at < PIECE { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) };
        for len in [PIECE + 1, PIECE * 20] {
            let error = read(len, &all(len), true, failing).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
    }

    #[test]
    fn places_must_ascend_within_the_bytes() {
        let mut bytes = [0, 1, 2, 3, 4];
        let parts = |bytes: &mut [u8], places: &[Range<usize>]| split(bytes, places).map(|parts| parts.concat());
        assert_eq!(parts(&mut bytes, &[1..2, 2..2, 4..5]), Some(vec![1, 4]));
        for wrong in [&[0..3, 3..6][..], &[2..3, 1..4], &[3..4, 5..7], &[1..3, 2..3]] {
            assert_eq!(parts(&mut bytes, wrong), None, "{wrong:?}");
        }
    }
}
