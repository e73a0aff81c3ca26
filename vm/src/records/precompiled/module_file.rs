//! The bytes of a large module in the cache, so that a process that has hashed the module's file needs only those in memory that it uses.
//!
//! The file is a container of the module's bytes that [`loading`](crate::records::loading) reads, in pieces, and after them, as if they were the module's too, of the places
//! of its bodies and data segments: then nobody reads code or data to find them. Its contents follow from the module, so that several processes write it,
//! each for a short time and from where the last one ended. The header is written last.

use super::artifact::{Artifact, Source};
use super::format::{Builder, HEADER, Identity, ModulePart, Piece, checksum};
use crate::records::loading::{Hash, all, divide};
use crate::sys::buffer::PartialBuffer;
use std::fmt;
use std::io::{self, Cursor, Seek, SeekFrom, Write};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, TryLockError};
use std::time::{Duration, Instant};

use weir_bytecode::stored::{read_all, to_bytes};
use weir_bytecode::{Bytes, Module as Bytecode, Parts, Places, Unreadable};

/// Bytes of a piece, at most.
const PIECE: usize = 64 << 10;

/// The identity of these files: nothing in them depends on settings.
pub(super) fn identity() -> Identity {
    Identity::of("the bytes of a module", None)
}

/// Writes the file of `module`, of which these ranges are needed, to a file that has some of it and is at its beginning, for about as long as `time`.
/// Returns whether all of it was written.
///
/// # Errors
/// The writer's.
pub(super) fn write(
    to: impl Write + Seek,
    module: &Bytecode,
    needed: &[Range<usize>],
    hash: Hash,
    time: Duration,
) -> io::Result<bool> {
    let to = Continued::new(to, time)?;
    let written = write_all(to, module, &divide(needed, PIECE), hash);
    match written {
        Err(error) if error.kind() == io::ErrorKind::TimedOut => Ok(false),
        written => written.map(|()| true),
    }
}

/// Returns whether a process has ended the file, with its header.
pub(super) fn was_ended(file: &dyn Source) -> bool {
    let mut header = [0; HEADER];
    file.read_at(&mut header, 0).is_ok() && header != [0; HEADER]
}

/// Returns the bytes of a module as this process reads them from such a file: see [`RoundTrip`](crate::RoundTrip).
///
/// # Errors
/// The file cannot be opened, for want of memory.
pub(crate) fn in_parts(module: &Bytecode) -> io::Result<Bytes> {
    /// Bytes of a piece: few, so that most bodies reach several.
    const FEW: usize = 40;
    let (len, mut file) = (module.bytes.len(), Cursor::new(Vec::new()));
    write_all(&mut file, module, &divide(&all(len), FEW), Hash::default())?;
    let source = Box::new(file.into_inner().into_boxed_slice());
    let file = ModuleFile::open(source, Hash::default(), len, || None).ok_or(io::ErrorKind::InvalidData)?;
    Ok(Bytes::of_parts(file))
}

fn write_all(to: impl Write + Seek, module: &Bytecode, pieces: &[Range<usize>], hash: Hash) -> io::Result<()> {
    let bytes = &*module.bytes;
    let places = to_bytes(&module.places());
    let mut builder = Builder::new(to)?;
    builder.module(ModulePart { len: (bytes.len() + places.len()) as u32, ..ModulePart::default() });
    for range in pieces {
        builder.piece(range.start, &bytes[range.clone()])?;
    }
    builder.piece(bytes.len(), &places)?;
    builder.finish(identity(), hash).map(drop)
}

/// A file of which the first bytes were written earlier. There is nothing to write for them, but for the header.
struct Continued<W> {
    to: W,
    at: u64,
    there: u64,
    /// How long it may write.
    time: Duration,
    /// When it ends, after the first bytes were written. Passing over those that are there takes a part of the time of hashing them, which each
    /// process has done.
    end: Option<Instant>,
}

impl<W: Write + Seek> Continued<W> {
    fn new(mut to: W, time: Duration) -> io::Result<Continued<W>> {
        let there = to.seek(SeekFrom::End(0))?;
        Ok(Continued { to, at: 0, there, time, end: None })
    }
}

impl<W: Write + Seek> Write for Continued<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let skipped = self.there.saturating_sub(self.at).min(bytes.len() as u64) as usize;
        if skipped > 0 {
            self.at += skipped as u64;
            return Ok(skipped);
        }
        let end = *self.end.get_or_insert_with(|| Instant::now() + self.time);
        if Instant::now() >= end {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let written = self.to.write(bytes)?;
        self.at += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl<W: Write + Seek> Seek for Continued<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        // Only the header is written after a seek.
        self.there = 0;
        self.at = self.to.seek(to)?;
        Ok(self.at)
    }
}

/// The bytes of a module in a file of the cache.
pub(super) struct ModuleFile {
    artifact: Artifact,
    buffer: PartialBuffer,
    places: Places,
    /// Reads the bytes again, from where the module was loaded; `None` if they are others now.
    again: Box<dyn Fn() -> Option<Bytes> + Send + Sync>,
    /// What that has returned, once a piece was damaged.
    elsewhere: OnceLock<Option<Bytes>>,
    is_damaged: AtomicBool,
    /// Bytes that were read.
    read: AtomicU64,
    copied: Mutex<Copied>,
}

/// The piece of which bytes were copied last. If data segments are small, the next one is in it, too.
#[derive(Default)]
struct Copied {
    piece: Option<usize>,
    bytes: Vec<u8>,
}

impl ModuleFile {
    /// Opens the file of the module of `len` bytes with this hash. `None` if it is another one's, not complete or damaged.
    pub fn open(
        source: Box<dyn Source>,
        hash: Hash,
        len: usize,
        again: impl Fn() -> Option<Bytes> + Send + Sync + 'static,
    ) -> Option<ModuleFile> {
        let artifact = Artifact::open(source, &identity()).ok().filter(|artifact| artifact.hash() == hash)?;
        let (last, pieces) = artifact.module().pieces.split_last()?;
        let places = read_all(&artifact.part(last.place)?).ok()?;
        let buffer = PartialBuffer::zeroed(len, pieces.iter().map(Piece::range)).ok().flatten()?;
        Some(ModuleFile {
            artifact,
            buffer,
            places,
            copied: Mutex::default(),
            again: Box::new(again),
            elsewhere: OnceLock::new(),
            is_damaged: AtomicBool::new(false),
            read: AtomicU64::new(0),
        })
    }

    /// Returns how many of the bytes never take memory, less what their places and the piece that is copied take.
    pub fn untouched(&self) -> usize {
        let pieces = &self.artifact.module().pieces;
        let read: usize = pieces.iter().map(|piece| piece.range().len()).sum();
        self.buffer.len().saturating_sub(read + self.artifact.size() + self.places.size() + self.buffer.size() + PIECE)
    }

    /// Reads a piece, and returns whether it is not damaged.
    fn read_piece(&self, piece: usize, into: &mut [u8]) -> bool {
        let place = self.artifact.module().pieces[piece].place;
        let is_right = self.artifact.read_at(into, place.at).is_ok() && checksum(into) == place.sum;
        self.read.fetch_add(into.len() as u64, Ordering::Relaxed);
        if !is_right {
            self.is_damaged.store(true, Ordering::Relaxed);
        }
        is_right
    }

    /// Copies bytes of a piece from `at` on, unless it is damaged or another thread copies. Returns whether it does.
    fn copy_part(&self, piece: usize, at: usize, to: &mut [u8]) -> bool {
        // Threads that copy from different pieces would read them again and again. One of them keeps its own.
        let mut copied = match self.copied.try_lock() {
            Ok(copied) => copied,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let Copied { piece: last, bytes } = &mut *copied;
        if *last != Some(piece) {
            *last = None;
            bytes.resize(self.buffer.part(piece).0.len(), 0);
            if !self.read_piece(piece, bytes) {
                return false;
            }
            *last = Some(piece);
        }
        to.copy_from_slice(&bytes[at..at + to.len()]);
        true
    }
}

impl Parts for ModuleFile {
    fn len(&self) -> usize {
        self.buffer.len()
    }

    fn get(&self, range: Range<usize>) -> Result<&[u8], Unreadable> {
        self.buffer.get(range, |piece, into| {
            if !self.read_piece(piece, into) {
                let again = self.elsewhere.get_or_init(&self.again).as_ref().ok_or(Unreadable)?;
                into.copy_from_slice(again.part(self.buffer.part(piece).0));
            }
            Ok(())
        })
    }

    fn copy(&self, range: Range<usize>, into: &mut [u8]) -> Result<(), Unreadable> {
        let Range { start, end } = range;
        let mut at = start;
        for piece in self.buffer.reached(&range) {
            let (place, is_read) = self.buffer.part(piece);
            let to = &mut into[at - start..];
            let upto = place.end.min(end);
            let (before, to) = to[..upto - at].split_at_mut(place.start.saturating_sub(at));
            before.fill(0);
            let from = at.max(place.start);
            at = upto;
            let is_whole = from == place.start && upto == place.end;
            let is_copied =
                !is_read && if is_whole { self.read_piece(piece, to) } else { self.copy_part(piece, from - place.start, to) };
            if !is_copied {
                to.copy_from_slice(self.get(from..upto)?);
            }
        }
        into[at - start..].fill(0);
        Ok(())
    }

    fn as_ptr(&self) -> *const u8 {
        self.buffer.as_ptr()
    }

    fn places(&self) -> &Places {
        &self.places
    }

    fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    fn is_damaged(&self) -> bool {
        self.is_damaged.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for ModuleFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes in the cache", self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::loading::{self, Kind};
    use std::sync::{Arc, Mutex};
    use weir_bytecode::file;
    use weir_bytecode::validate::parse;

    /// A module of several pieces, with debugging information, which is not needed.
    fn module() -> Bytecode {
        let data: String = (0..5 * PIECE).map(|i| char::from(b'a' + (i ^ i >> 7) as u8 % 26)).collect();
        let debugging = "z".repeat(2 * PIECE);
        let text = format!(
            r#"(module (memory 9) (data (i32.const 3) "{data}") (data (i32.const -9) "") (data "passive") (func) (func (param i32) (local.set 0 (i32.const 7)))
                (@custom ".debug_info" "{debugging}") (@custom "last" "{}"))"#,
            &data[..100]
        );
        parse(wat::parse_str(text).unwrap().into()).unwrap()
    }

    fn needed_and_hash(module: &Bytecode) -> (Vec<Range<usize>>, Hash) {
        let needed = file::needed_of(&module.bytes);
        let hash = loading::hash(Kind::File, &module.bytes, &needed, 1);
        (needed, hash)
    }

    fn open(written: &[u8], module: &Bytecode, again: Option<Bytes>) -> Option<ModuleFile> {
        let (_, hash) = needed_and_hash(module);
        ModuleFile::open(Box::new(Box::<[u8]>::from(written)), hash, module.bytes.len(), move || again.clone())
    }

    fn written(module: &Bytecode) -> Vec<u8> {
        let (needed, hash) = needed_and_hash(module);
        let mut to = Cursor::new(Vec::new());
        assert!(write(&mut to, module, &needed, hash, Duration::from_secs(100)).unwrap());
        to.into_inner()
    }

    /// What a file has of the bytes of a module: without its debugging information.
    fn needed_bytes(module: &Bytecode) -> Vec<u8> {
        let mut bytes = vec![0; module.bytes.len()];
        for range in needed_and_hash(module).0 {
            bytes[range.clone()].copy_from_slice(&module.bytes[range]);
        }
        bytes
    }

    #[test]
    fn several_processes_write_the_file() {
        let module = module();
        let (needed, hash) = needed_and_hash(&module);
        let whole = written(&module);
        // Each goes on at the length that the last one left, also within a piece, and writes nothing if it has no time.
        for there in [0, 1, PIECE, PIECE + 1000, whole.len() - 1, whole.len(), whole.len() + 9] {
            let mut start = whole.clone();
            start.resize(there, 0);
            let end = there.min(whole.len());
            start[..end.min(HEADER)].fill(0);
            let mut to = Cursor::new(start.clone());
            assert!(!write(&mut to, &module, &needed, hash, Duration::ZERO).unwrap() || there >= whole.len());
            to.set_position(0);
            assert!(open(to.get_ref(), &module, None).is_none() || there >= whole.len());
            assert!(write(&mut to, &module, &needed, hash, Duration::from_secs(100)).unwrap());
            assert_eq!(to.get_ref()[..whole.len()], whole);
        }
    }

    #[test]
    fn bytes_are_those_of_the_module() {
        let module = module();
        let (len, expected) = (module.bytes.len(), needed_bytes(&module));
        let file = || open(&written(&module), &module, None).unwrap();
        assert_eq!(file().get(0..len).unwrap(), expected);
        assert_eq!(file().places(), &module.places());
        let data = file().places().data.clone().unwrap();
        assert_eq!((data.len(), data[1].address, data[2].address), (3, Some(-9), None));
        let file = file();
        let ends = [0, 1, 70, PIECE - 1, PIECE, PIECE + 1, 3 * PIECE, 5 * PIECE + 200, 6 * PIECE, len - 1, len];
        for start in ends {
            for end in ends.into_iter().filter(|end| *end >= start) {
                let mut into = vec![0xFF; end - start];
                file.copy(start..end, &mut into).unwrap();
                assert_eq!(into, expected[start..end], "{start}..{end}");
            }
            let end = len.min(start + 10);
            assert_eq!(file.get(start..end).unwrap(), &expected[start..end]);
        }
        assert!(!file.is_damaged());
        let (_, hash) = needed_and_hash(&module);
        let other = |hash, len| ModuleFile::open(Box::new(written(&module).into_boxed_slice()), hash, len, || None).is_none();
        assert!(other(Hash::default(), len) && other(hash, len - 1));
    }

    /// A file that changes while it is open.
    #[derive(Clone, Debug)]
    struct Changing(Arc<Mutex<Box<[u8]>>>);

    impl Source for Changing {
        fn len(&self) -> u64 {
            Source::len(&*self.0.lock().unwrap())
        }

        fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
            Source::read_at(&*self.0.lock().unwrap(), into, at)
        }

        fn held(&self) -> usize {
            0
        }
    }

    /// Every byte of a small file is damaged, and it is cut off everywhere, before and after it is opened.
    #[test]
    fn no_damage_changes_a_byte() {
        let module = parse(wat::parse_str(r#"(module (memory 1) (data (i32.const 3) "some data") (func nop))"#).unwrap().into());
        let module = module.unwrap();
        let (bytes, len) = (&module.bytes, module.bytes.len());
        let mut whole = Cursor::new(Vec::new());
        write_all(&mut whole, &module, &divide(&all(len), 16), Hash::default()).unwrap();
        let whole = whole.into_inner();
        let flipped = (0..whole.len()).map(|at| {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            damaged
        });
        let mut counts = [0; 3];
        for damaged in flipped.chain((0..whole.len()).map(|end| whole[..end].to_vec())) {
            for opens_first in [false, true] {
                let source = Changing(Arc::new(Mutex::new(if opens_first { whole.clone() } else { damaged.clone() }.into())));
                let changing = source.clone();
                let again = bytes.clone();
                let Some(file) = ModuleFile::open(Box::new(source), Hash::default(), len, move || Some(again.clone())) else {
                    assert!(!opens_first);
                    counts[0] += 1;
                    continue;
                };
                *changing.0.lock().unwrap() = damaged.clone().into();
                let mut copy = vec![0; len];
                file.copy(0..len, &mut copy).unwrap();
                assert!(copy == **bytes && file.get(0..len).unwrap() == &**bytes);
                assert_eq!(file.places(), &module.places());
                counts[1 + usize::from(file.is_damaged())] += 1;
            }
        }
        assert!(counts.iter().all(|&count| count > len), "{counts:?}");
    }

    #[test]
    fn damaged_bytes_are_read_from_elsewhere() {
        let module = module();
        let (len, expected, whole) = (module.bytes.len(), needed_bytes(&module), written(&module));
        let again = Bytes::from(expected.clone());
        for at in (0..whole.len()).step_by(PIECE / 3).chain(whole.len() - 300..whole.len()) {
            let mut damaged = whole.clone();
            damaged[at] ^= 1;
            // Header, index and places are checked first.
            let Some(file) = open(&damaged, &module, Some(again.clone())) else { continue };
            assert!(at < len);
            let mut copy = vec![0; len];
            file.copy(0..len, &mut copy).unwrap();
            assert!(copy == expected && file.get(0..len).unwrap() == expected && file.is_damaged(), "{at}");
            // Parts of pieces, each twice, and in turn with those of another piece.
            let file = open(&damaged, &module, Some(again.clone())).unwrap();
            let alone = open(&damaged, &module, None).unwrap();
            let mut unreadable = 0;
            for start in (0..len - 200).step_by(PIECE).flat_map(|start| [start + 1, 9, start + 1, start + 100]) {
                let (range, mut part) = (start..start + 50, [0; 50]);
                file.copy(range.clone(), &mut part).unwrap();
                assert_eq!(part, expected[range.clone()], "{at} {start}");
                match alone.copy(range.clone(), &mut part) {
                    Ok(()) => assert_eq!(part, expected[range], "{at} {start}"),
                    Err(Unreadable) => unreadable += 1,
                }
            }
            assert!(file.is_damaged() == alone.is_damaged() && alone.is_damaged() == (unreadable > 0), "{at}");
            // If there is no elsewhere, the other pieces can be read.
            let file = open(&damaged, &module, None).unwrap();
            assert_eq!((file.copy(0..len, &mut copy), file.get(0..len)), (Err(Unreadable), Err(Unreadable)), "{at}");
            let can_read = |at: usize| file.get(at..at + 1).is_ok_and(|byte| byte == &expected[at..=at]);
            assert!((0..len).step_by(PIECE).filter(|&at| !can_read(at)).count() <= 1, "{at}");
        }
        for end in [0, 100, PIECE, whole.len() - 1] {
            assert!(open(&whole[..end], &module, None).is_none());
        }
    }
}
