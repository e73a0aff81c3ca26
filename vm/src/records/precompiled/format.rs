//! The container of a precompiled module: `header | parts | index`.
//!
//! The header has a fixed size and says which build and which settings the container is for. The index, written last and
//! found through the header, has the place and the checksum of each part. A part is never read with another.
//!
//! Checksums find accidents, not forgeries: whoever can write the file can run code as its reader.

use weir_bytecode::stored;
use weir_bytecode::stored::{Damaged, Reader, Stored, read_all};

/// The first bytes of a container. No text and no WebAssembly module begins so.
pub(crate) const MAGIC: [u8; 8] = *b"\xffweir\r\n\0";

/// The version of the header, which a build of any version reads. The rest is of one build.
const VERSION: u32 = 2;

/// Bytes of the header.
pub(crate) const HEADER: usize = MAGIC.len() + 4 + 3 * size_of::<Hash>() + 8 + Place::SIZE + 8;

/// A BLAKE3 hash.
pub(crate) type Hash = [u8; 32];

/// What code depends on besides its module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    /// The build of Weir.
    pub build: Hash,
    /// The settings that code and side tables depend on, and the features of the processor.
    pub settings: Hash,
}

impl Identity {
    /// The identity of this build's code with these settings, as text.
    pub fn of(settings: &str) -> Identity {
        let build = blake3::hash(env!("WEIR_BUILD").as_bytes());
        Identity { build: *build.as_bytes(), settings: *blake3::hash(settings.as_bytes()).as_bytes() }
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
    #[error("it was compiled with other settings, or for a processor with other features")]
    Settings,
    #[error("it is damaged")]
    Damaged,
}

impl From<Damaged> for Unusable {
    fn from(_: Damaged) -> Unusable {
        Unusable::Damaged
    }
}

/// The first bytes of the hash of a part.
pub(crate) fn checksum(bytes: &[u8]) -> u64 {
    let hash = blake3::hash(bytes);
    let (first, _) = hash.as_bytes().split_first_chunk().expect("a hash has more than 8 bytes");
    u64::from_le_bytes(*first)
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

/// A module and the results of its validation.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ModulePart {
    /// The bytes of the module.
    pub len: u32,
    /// Those of them that are not all zeros, ascending.
    pub pieces: Vec<Piece>,
    /// See [`weir_bytecode::Module::foreign_tail_calls`].
    pub foreign_tail_calls: bool,
    /// See [`weir_bytecode::Module::accepted_bytes`].
    pub accepted: u64,
    /// The results of validation, by body.
    pub bodies: Vec<Place>,
}

/// The index.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Index {
    /// The module, unless the container has code only.
    pub module: Option<ModulePart>,
    /// Ascending by function and tier.
    pub code: Vec<CodePlace>,
}

stored! {
    Place { at, len, sum }
    CodePlace { func, grade, place }
    Piece { at, place }
    ModulePart { len, pieces, foreign_tail_calls, accepted, bodies }
    Index { module, code }
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
        let Header { identity: Identity { build, settings }, module, len, index } = self;
        let mut bytes = MAGIC.to_vec();
        VERSION.write(&mut bytes);
        bytes.extend_from_slice(build);
        bytes.extend_from_slice(settings);
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
        let (build, settings, module) = (from.array()?, from.array()?, from.array()?);
        let header = Header {
            identity: Identity { build, settings },
            module,
            len: Stored::read(&mut from)?,
            index: Stored::read(&mut from)?,
        };
        if header.write() != bytes.get(..HEADER).ok_or(Damaged)? || header.len != len {
            return Err(Unusable::Damaged);
        }
        match (build == identity.build, settings == identity.settings) {
            (false, _) => Err(Unusable::Build),
            (true, false) => Err(Unusable::Settings),
            (true, true) => Ok(header),
        }
    }
}

impl Index {
    /// Reads an index.
    pub fn read(bytes: &[u8]) -> Result<Index, Damaged> {
        let index: Index = read_all(bytes)?;
        let sorted = index.code.is_sorted_by(|a, b| (a.func, a.grade) < (b.func, b.grade));
        if sorted { Ok(index) } else { Err(Damaged) }
    }
}

/// A container that is being made.
#[derive(Debug)]
pub(crate) struct Builder {
    bytes: Vec<u8>,
    index: Index,
}

impl Default for Builder {
    fn default() -> Builder {
        Builder { bytes: vec![0; HEADER], index: Index::default() }
    }
}

/// Bytes of the module in a piece, at most.
const PIECE: usize = 256 << 10;

/// Runs of zeros that are left out are of whole multiples of this number of bytes.
const ZEROS: usize = 4 << 10;

impl Builder {
    /// Appends what `write` writes as a part.
    fn part(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Place {
        let start = self.bytes.len();
        write(&mut self.bytes);
        let part = &self.bytes[start..];
        Place { at: start as u64, len: part.len() as u32, sum: checksum(part) }
    }

    /// Adds a module whose bodies are all validated.
    pub fn module(&mut self, module: &weir_bytecode::Module) {
        let bytes = &module.bytes;
        // Most of the container, which would otherwise be copied each time that it grows.
        self.bytes.reserve(bytes.len());
        let is_zero = |block: &[u8]| block.iter().all(|byte| *byte == 0);
        let (mut pieces, mut at) = (Vec::new(), 0);
        for run in bytes.chunks(ZEROS).collect::<Vec<_>>().chunk_by(|a, b| is_zero(a) == is_zero(b)) {
            let len: usize = run.iter().map(|block| block.len()).sum();
            if !is_zero(run[0]) {
                for piece in bytes[at..at + len].chunks(PIECE) {
                    let offset = (piece.as_ptr().addr() - bytes.as_ptr().addr()) as u32;
                    let place = self.part(|to| to.extend_from_slice(piece));
                    pieces.push(Piece { at: offset, place });
                }
            }
            at += len;
        }
        let bodies = module.bodies.iter().map(|body| self.part(|to| weir_bytecode::FuncBody::write(body, to))).collect();
        let (foreign_tail_calls, accepted) = (module.foreign_tail_calls, module.accepted_bytes());
        self.index.module = Some(ModulePart { len: bytes.len() as u32, pieces, foreign_tail_calls, accepted, bodies });
    }

    /// Adds code. The functions and tiers ascend.
    pub fn code(&mut self, func: u32, grade: Grade, code: &[u8]) {
        let place = self.part(|to| to.extend_from_slice(code));
        self.index.code.push(CodePlace { func, grade, place });
    }

    /// Returns the container of the module with this hash.
    pub fn finish(mut self, identity: Identity, module: Hash) -> Vec<u8> {
        let index = std::mem::take(&mut self.index);
        let index = self.part(|to| index.write(to));
        let header = Header { identity, module, len: self.bytes.len() as u64, index };
        self.bytes[..HEADER].copy_from_slice(&header.write());
        self.bytes
    }
}
