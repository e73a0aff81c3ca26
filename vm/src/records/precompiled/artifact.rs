//! A container that is read part by part.

use super::format::{CodePlace, Grade, HEADER, Hash, Header, Identity, Index, ModulePart, Place, Unusable, checksum};
use crate::sys::file::Opened;
use std::fmt;
use std::io;
use std::sync::Arc;
use weir_bytecode::FuncBody;
use weir_bytecode::module::Results;
use weir_bytecode::stored::read_all;

/// The bytes of a container. They may change at any time.
pub(crate) trait Source: fmt::Debug + Send + Sync {
    /// Their number.
    fn len(&self) -> u64;

    /// Copies the bytes from an offset on.
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()>;
}

impl Source for Box<[u8]> {
    fn len(&self) -> u64 {
        (**self).len() as u64
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        let bytes = usize::try_from(at).ok().and_then(|at| self.get(at..)?.get(..into.len()));
        into.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl Source for Opened {
    fn len(&self) -> u64 {
        Opened::len(self)
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        Opened::read_at(self, into, at)
    }
}

/// A container, of which header and index are read.
#[derive(Debug)]
pub(crate) struct Artifact {
    source: Box<dyn Source>,
    header: Header,
    index: Index,
}

impl Artifact {
    /// Opens a container, which must be of this build and settings.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub fn open(source: Box<dyn Source>, identity: &Identity) -> Result<Artifact, Unusable> {
        let mut first = [0; HEADER];
        let len = source.len();
        let some = usize::try_from(len).unwrap_or(HEADER).min(HEADER);
        source.read_at(&mut first[..some], 0).map_err(|_| Unusable::Damaged)?;
        let header = Header::read(&first[..some], len, identity)?;
        let index = Index::read(&read(&*source, header.index).ok_or(Unusable::Damaged)?)?;
        Ok(Artifact { source, header, index })
    }

    /// Returns the hash of the module.
    pub fn hash(&self) -> Hash {
        self.header.module
    }

    /// Returns the description of the module, if the container has it.
    pub fn module(&self) -> Option<&ModulePart> {
        self.index.module.as_ref()
    }

    /// Returns the code that the container has.
    pub fn code(&self) -> &[CodePlace] {
        &self.index.code
    }

    /// Returns the module's bytes, if the container has them and they are not damaged.
    pub fn module_bytes(&self) -> Option<Box<[u8]>> {
        let part = self.module()?;
        let mut bytes = vec![0; part.len as usize];
        for piece in &part.pieces {
            let start = piece.at as usize;
            let into = bytes.get_mut(start..)?.get_mut(..piece.place.len as usize)?;
            self.source.read_at(into, piece.place.at).ok()?;
            if checksum(into) != piece.place.sum {
                return None;
            }
        }
        Some(bytes.into())
    }

    /// Returns a copy of a part, if it is not damaged.
    pub fn part(&self, place: Place) -> Option<Vec<u8>> {
        read(&*self.source, place)
    }

    /// Finds the code of a function.
    pub fn find(&self, func: u32, grade: Grade) -> Option<Place> {
        let code = self.code();
        let found = code.binary_search_by_key(&(func, grade), |code| (code.func, code.grade)).ok()?;
        Some(code[found].place)
    }
}

/// Copies a part and checks the copy.
fn read(source: &dyn Source, Place { at, len, sum }: Place) -> Option<Vec<u8>> {
    at.checked_add(len.into()).filter(|&end| end <= source.len())?;
    let mut bytes = vec![0; len as usize];
    source.read_at(&mut bytes, at).ok()?;
    (checksum(&bytes) == sum).then_some(bytes)
}

/// The results of validation in an artifact.
#[derive(Debug)]
pub(crate) struct Validated(pub Arc<Artifact>);

impl Results for Validated {
    fn body(&self, index: u32) -> Option<FuncBody> {
        let place = *self.0.module()?.bodies.get(index as usize)?;
        read_all(&self.0.part(place)?).ok()
    }
}
