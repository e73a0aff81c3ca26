//! The container of a precompiled module: `header | parts | index`.
//!
//! The header has a fixed size and says which build and which settings the container is for. The index, written last and
//! found through the header, has the place and the checksum of each part. A part is never read with another.
//!
//! Checksums find accidents, not forgeries: whoever can write the file can run code as its reader.

use super::work::Work;
use crate::records::loading::Hash;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::time::Duration;
use twox_hash::XxHash3_64;
use weir_bytecode::effects::Effects;
use weir_bytecode::stored;
use weir_bytecode::stored::{Damaged, Reader, Stored, read_all, to_bytes};

/// The first bytes of a container. No text and no WebAssembly module begins so.
pub(crate) const MAGIC: [u8; 8] = *b"\xffweir\r\n\0";

/// The version of the header, which a build of any version reads. The rest is of one build.
const VERSION: u32 = 5;

/// Bytes of the header.
pub(crate) const HEADER: usize = MAGIC.len() + 4 + 4 * size_of::<Hash>() + 8 + Place::SIZE + 8;

/// What code depends on besides its module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    /// The build of Weir.
    pub build: Hash,
    /// The settings that code and side tables depend on, and the features of the processor.
    pub settings: Hash,
    /// The hash of the version that the embedder gives; `None` if each is accepted, and if there is none.
    pub version: Option<Hash>,
}

impl Identity {
    /// The identity of this build's code with these settings, as text.
    pub fn of(settings: &str, version: Option<&str>) -> Identity {
        let hash = |text: &str| *blake3::hash(text.as_bytes()).as_bytes();
        Identity { build: hash(env!("WEIR_BUILD")), settings: hash(settings), version: version.map(hash) }
    }
}

/// The reason why a container is not used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("it is no precompiled module")]
    Other,
    #[error("it was compiled by another version of Weir, whose files differ")]
    Version,
    #[error("it was compiled by another build of Weir")]
    Build,
    #[error("it was compiled with other settings, or for a processor or a system with other features")]
    Settings,
    #[error("it was compiled with another module version")]
    ModuleVersion,
    #[error("it is damaged")]
    Damaged,
}

impl From<Damaged> for Unusable {
    fn from(_: Damaged) -> Unusable {
        Unusable::Damaged
    }
}

/// The checksum of a part. It finds accidents at 10 GB/s or more; a cryptographic hash would find no more of them, at 3 GB/s, or for the many
/// small parts at less than 1.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// The place of a part in the container.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// Its offset.
    pub at: u64,
    /// Its bytes.
    pub len: u32,
    /// Their checksum.
    pub sum: u64,
}

impl Place {
    const SIZE: usize = 8 + 4 + 8;
}

/// The tier of stored code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Grade {
    /// Baseline code.
    Baseline,
    /// The native back end's code, optimised.
    Optimised,
}

impl Stored for Grade {
    fn write(&self, to: &mut Vec<u8>) {
        (*self as u8).write(to);
    }

    fn read(from: &mut Reader<'_>) -> Result<Grade, Damaged> {
        match u8::read(from)? {
            0 => Ok(Grade::Baseline),
            1 => Ok(Grade::Optimised),
            _ => Err(Damaged),
        }
    }
}

/// Code of a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct CodePlace {
    /// The function.
    pub func: u32,
    /// Its tier.
    pub grade: Grade,
    /// The code with its tables.
    pub place: Place,
}

/// A piece of the module's bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// Its offset in the module.
    pub at: u32,
    /// Its bytes.
    pub place: Place,
}

/// The results of validation of some bodies: for each the offset after its result, then the results.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Group {
    /// The bodies, by index, ascending.
    pub bodies: Vec<u32>,
    /// The bytes.
    pub place: Place,
}

/// Bodies in a group, at most. With a part for each body, the index would be larger than what a run reads of the results.
const GROUP: usize = 32;

/// The results of a module's validation, and the module if the container is for itself.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ModulePart {
    /// The bytes of the module.
    pub len: u32,
    /// Those of them that are not all zeros, ascending; none if the container has no module.
    pub pieces: Vec<Piece>,
    /// What its bodies may do.
    pub effects: Effects,
    /// The number of bodies, all of which are valid.
    pub bodies: u32,
    /// The results of their validation, of all or some, ascending.
    pub results: Vec<Group>,
}

impl ModulePart {
    /// That of a module whose bodies are all valid, without pieces and results.
    pub fn of(module: &weir_bytecode::Module) -> ModulePart {
        ModulePart {
            len: module.bytes.len() as u32,
            effects: module.effects,
            bodies: module.bodies.len() as u32,
            ..ModulePart::default()
        }
    }
}

/// The index.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Index {
    /// The module.
    pub module: ModulePart,
    /// Ascending by function and tier.
    pub code: Vec<CodePlace>,
    /// The [`Work`] of functions that are still to be compiled, as several processes left it. It may name a function again, or one that
    /// has been compiled since.
    pub work: Vec<Place>,
    /// How long processes ran the module, in nanoseconds: the mean of the last one and of this for those before it. 0 if none did.
    pub lasted: u64,
}

impl Piece {
    /// Where it is in the module.
    pub fn range(&self) -> Range<usize> {
        self.at as usize..self.at as usize + self.place.len as usize
    }
}

stored! {
    Place { at, len, sum }
    CodePlace { func, grade, place }
    Piece { at, place }
    Group { bodies, place }
    ModulePart { len, pieces, effects, bodies, results }
    Index { module, code, work, lasted }
}

/// The header of a container.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub identity: Identity,
    /// The hash of the module's bytes.
    pub module: Hash,
    /// The bytes of the container.
    pub len: u64,
    pub index: Place,
}

impl Header {
    fn write(&self) -> Vec<u8> {
        let Header { identity: Identity { build, settings, version }, module, len, index } = self;
        let mut bytes = MAGIC.to_vec();
        VERSION.write(&mut bytes);
        bytes.extend_from_slice(build);
        bytes.extend_from_slice(settings);
        bytes.extend_from_slice(&version.unwrap_or_default());
        bytes.extend_from_slice(module);
        len.write(&mut bytes);
        index.write(&mut bytes);
        checksum(&bytes).write(&mut bytes);
        debug_assert_eq!(bytes.len(), HEADER);
        bytes
    }

    /// Reads the header of a container of `len` bytes, of which these are the first.
    pub fn read(bytes: &[u8], len: u64, identity: &Identity) -> Result<Header, Unusable> {
        if !bytes.starts_with(&MAGIC) {
            return Err(Unusable::Other);
        }
        let mut from = Reader::new(&bytes[MAGIC.len()..]);
        if u32::read(&mut from)? != VERSION {
            return Err(Unusable::Version);
        }
        let (build, settings, version, module) = (from.array()?, from.array()?, from.array()?, from.array()?);
        let header = Header {
            identity: Identity { build, settings, version: Some(version).filter(|version| *version != Hash::default()) },
            module,
            len: Stored::read(&mut from)?,
            index: Stored::read(&mut from)?,
        };
        // What is after the container is of a process that did not finish adding to it.
        if header.write() != bytes.get(..HEADER).ok_or(Damaged)? || header.len > len {
            return Err(Unusable::Damaged);
        }
        match (build == identity.build, settings == identity.settings) {
            (false, _) => Err(Unusable::Build),
            (true, false) => Err(Unusable::Settings),
            (true, true) if identity.version.is_some_and(|wanted| wanted != version) => Err(Unusable::ModuleVersion),
            (true, true) => Ok(header),
        }
    }
}

impl Index {
    /// Returns the bytes of all parts that are used.
    pub fn len(&self) -> u64 {
        let Index { module, code, work, lasted: _ } = self;
        let results = module.results.iter().map(|group| &group.place);
        let places = module.pieces.iter().map(|piece| &piece.place).chain(results).chain(work);
        places.chain(code.iter().map(|code| &code.place)).map(|place| u64::from(place.len)).sum()
    }

    /// Reads an index.
    pub fn read(bytes: &[u8]) -> Result<Index, Damaged> {
        let index: Index = read_all(bytes)?;
        let sorted = index.code.is_sorted_by(|a, b| (a.func, a.grade) < (b.func, b.grade));
        if sorted { Ok(index) } else { Err(Damaged) }
    }
}

/// A container that is being written.
#[derive(Debug)]
pub(crate) struct Builder<W> {
    to: W,
    /// Bytes that are written.
    len: u64,
    index: Index,
}

/// Bytes of the module in a piece, at most.
const PIECE: usize = 256 << 10;

/// Runs of zeros that are left out are of whole multiples of this number of bytes, which is a page's.
const ZEROS: usize = 4 << 10;

impl<W: Write + Seek> Builder<W> {
    /// Begins a container.
    ///
    /// # Errors
    /// Of this and all methods: the writer's.
    pub fn new(mut to: W) -> io::Result<Builder<W>> {
        to.write_all(&[0; HEADER])?;
        Ok(Builder { to, len: HEADER as u64, index: Index::default() })
    }

    /// Adds to a container. Its readers see what it was or what it becomes, because the header is written last.
    pub fn resume(mut to: W, header: &Header, index: &Index) -> io::Result<Builder<W>> {
        to.seek(SeekFrom::Start(header.len))?;
        Ok(Builder { to, len: header.len, index: index.clone() })
    }

    /// Appends a part.
    fn part(&mut self, bytes: &[u8]) -> io::Result<Place> {
        self.to.write_all(bytes)?;
        let place = Place { at: self.len, len: bytes.len() as u32, sum: checksum(bytes) };
        self.len += bytes.len() as u64;
        Ok(place)
    }

    /// Describes the module. Everything else is added after this.
    pub fn module(&mut self, part: ModulePart) {
        self.index.module = part;
    }

    /// Adds the bytes of the module. Where they are not zeros, pages of the container are pages of the module, so that they can be mapped.
    pub fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut at = 0;
        for run in bytes.chunks(ZEROS).collect::<Vec<_>>().chunk_by(|a, b| is_zero(a) == is_zero(b)) {
            let len: usize = run.iter().map(|block| block.len()).sum();
            if is_zero(run[0]) {
                at += len;
                continue;
            }
            let padding = self.len.wrapping_neg() as usize % ZEROS;
            self.to.write_all(&[0; ZEROS][..padding])?;
            self.len += padding as u64;
            for piece in bytes[at..at + len].chunks(PIECE) {
                self.piece(at, piece)?;
                at += piece.len();
            }
        }
        Ok(())
    }

    /// Adds these bytes of the module, which are at `at` in it.
    pub fn piece(&mut self, at: usize, bytes: &[u8]) -> io::Result<()> {
        let place = self.part(bytes)?;
        self.index.module.pieces.push(Piece { at: at as u32, place });
        Ok(())
    }

    /// Adds results of validation, of the bodies with these indices, ascending.
    pub fn results(&mut self, results: &[(u32, impl AsRef<[u8]>)]) -> io::Result<()> {
        for group in results.chunks(GROUP) {
            let (mut bytes, mut end) = (Vec::new(), 0);
            for (_, result) in group {
                end += result.as_ref().len() as u32;
                end.write(&mut bytes);
            }
            group.iter().for_each(|(_, result)| bytes.extend_from_slice(result.as_ref()));
            let place = self.part(&bytes)?;
            self.index.module.results.push(Group { bodies: group.iter().map(|(body, _)| *body).collect(), place });
        }
        Ok(())
    }

    /// Adds code.
    pub fn code(&mut self, func: u32, grade: Grade, code: &[u8]) -> io::Result<()> {
        let place = self.part(code)?;
        self.index.code.push(CodePlace { func, grade, place });
        Ok(())
    }

    /// Adds work of functions that are still to be compiled.
    pub fn work(&mut self, work: &Vec<Work>) -> io::Result<()> {
        if !work.is_empty() {
            let place = self.part(&to_bytes(work))?;
            self.index.work.push(place);
        }
        Ok(())
    }

    /// Leaves out the work that is there.
    pub fn forget_work(&mut self) {
        self.index.work.clear();
    }

    /// Adds a process that ran the module for so long.
    pub fn lasted(&mut self, ran: Duration) {
        let ran = u64::try_from(ran.as_nanos()).unwrap_or(u64::MAX);
        let before = if self.index.lasted == 0 { ran } else { self.index.lasted };
        self.index.lasted = before.midpoint(ran);
    }

    /// Ends the container, of the module with this hash.
    pub fn finish(mut self, identity: Identity, module: Hash) -> io::Result<W> {
        // Of each function the best code is used, and of several with that tier the last: the others may be damaged.
        let code = &mut self.index.code;
        code.sort_unstable_by_key(|code| (code.func, code.grade, code.place.at));
        code.dedup_by(|later, earlier| {
            let same = later.func == earlier.func;
            if same {
                *earlier = *later;
            }
            same
        });
        let index = self.part(&to_bytes(&self.index))?;
        let header = Header { identity, module, len: self.len, index };
        self.to.seek(SeekFrom::Start(0))?;
        self.to.write_all(&header.write())?;
        self.to.flush()?;
        Ok(self.to)
    }
}

/// Whether all bytes of a block are zero. Most blocks are not, and differ in the first bytes.
fn is_zero(block: &[u8]) -> bool {
    block.chunks(64).all(|bytes| bytes.iter().fold(0, |any, byte| any | byte) == 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn the_time_that_processes_ran_is_a_mean() {
        let mut builder = Builder::new(Cursor::new(Vec::new())).unwrap();
        let mut times = [80, 40, 100].map(Duration::from_nanos).into_iter().map(|ran| {
            builder.lasted(ran);
            builder.index.lasted
        });
        assert!(times.by_ref().eq([80, 60, 80]));
    }
}
