//! A container that is read part by part.

use super::format::{
    Builder, CodePlace, Grade, Group, HEADER, Header, Identity, Index, ModulePart, Piece, Place, Unusable, checksum,
};
use super::work::Work;
use crate::records::error::Error;
use crate::records::loading::{Hash, fill};
use crate::sys::file::Opened;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Seek, Write};
use std::ops::Range;
use std::sync::OnceLock;
use std::time::Duration;
use weir_bytecode::Bytes;
use weir_bytecode::FuncBody;
use weir_bytecode::account::{ModuleMemoryExceeded, flat};
use weir_bytecode::module::{Body, Results};
use weir_bytecode::stored::read_all;

/// The bytes of a container. They may change at any time.
pub(crate) trait Source: fmt::Debug + Send + Sync {
    /// Their number.
    fn len(&self) -> u64;

    /// Copies the bytes from an offset on.
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()>;

    /// Those of them that are in memory.
    fn held(&self) -> usize;

    /// Returns `len` bytes that are zeros but for these ranges, each of which is mapped from an offset; `None` if they cannot be mapped.
    fn map(&self, _len: usize, _places: &[(Range<usize>, u64)]) -> Option<Bytes> {
        None
    }
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

    fn held(&self) -> usize {
        (**self).len()
    }
}

impl Source for Opened {
    fn len(&self) -> u64 {
        Opened::len(self)
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        Opened::read_at(self, into, at)
    }

    fn held(&self) -> usize {
        0
    }

    fn map(&self, len: usize, places: &[(Range<usize>, u64)]) -> Option<Bytes> {
        let bytes = Opened::map(self, len, places).ok()??;
        // The pages are the file's.
        Some(Bytes::of(bytes).with_untouched(len))
    }
}

/// The reason why a module cannot be made from an artifact.
#[derive(Debug)]
pub(crate) enum Unfit {
    /// It is of another module, or damaged.
    Damaged,
    /// What the artifact takes is more than is allowed with the rest of the module.
    Memory(ModuleMemoryExceeded),
}

impl From<Unfit> for Error {
    fn from(unfit: Unfit) -> Error {
        match unfit {
            Unfit::Damaged => Error::new(Unusable::Damaged),
            Unfit::Memory(error) => Error::new(error),
        }
    }
}

/// A container, of which header and index are read.
#[derive(Debug)]
pub(crate) struct Artifact {
    source: Box<dyn Source>,
    header: Header,
    index: Index,
    /// Each body with a result, with its group and its position there, ascending. A body has several if the first ones are damaged.
    bodies: Vec<(u32, usize, usize)>,
    /// Copies of the groups of results that were read, unless they are damaged.
    groups: Box<[OnceLock<Option<Vec<u8>>>]>,
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
        let groups = &index.module.results;
        let bodies = groups.iter().enumerate().flat_map(|(group, Group { bodies, .. })| {
            bodies.iter().enumerate().map(move |(position, body)| (*body, group, position))
        });
        let mut bodies: Vec<_> = bodies.collect();
        bodies.sort_unstable();
        let groups = groups.iter().map(|_| OnceLock::new()).collect();
        Ok(Artifact { source, header, index, bodies, groups })
    }

    /// Returns the bytes that it takes: the container if it is in memory, the index, and the results of validation when they are read. Code is
    /// read to where it runs.
    pub fn size(&self) -> usize {
        let ModulePart { pieces, results, .. } = &self.index.module;
        let of_results = results.iter().map(|group| flat(&group.bodies) + group.place.len as usize).sum::<usize>();
        let index = flat(pieces) + flat(results) + of_results + flat(&self.index.code);
        self.source.held() + index + flat(&self.bodies) + flat(&self.groups)
    }

    /// Returns about how many bytes the side tables of all these bodies take, of which the container has results; real modules need less.
    pub fn tables_size(&self, bodies: &[Body]) -> usize {
        /// Bytes for a stored byte: that of a local becomes twelve.
        const STORED: usize = 12;
        /// Bytes for a byte of code, of which there is no result.
        const CODE: usize = 16;
        /// Bytes for a body besides.
        const BODY: usize = 512;
        let len = |body: &Body| body.range().len();
        let with_result = self.bodies.iter().filter_map(|(body, ..)| bodies.get(*body as usize)).map(len).sum::<usize>();
        let code = bodies.iter().map(len).sum::<usize>().saturating_sub(with_result);
        let stored = self.index.module.results.iter().map(|group| group.place.len as usize).sum::<usize>();
        stored * STORED + code * CODE + bodies.len() * BODY
    }

    /// Returns the hash of the module.
    pub fn hash(&self) -> Hash {
        self.header.module
    }

    /// Returns a builder that writes to the container's file and adds to it.
    ///
    /// # Errors
    /// The writer's.
    pub fn resume<W: Write + Seek>(&self, to: W) -> io::Result<Builder<W>> {
        Builder::resume(to, &self.header, &self.index)
    }

    /// Returns whether less than half of the container is used.
    pub fn is_sparse(&self) -> bool {
        self.index.len() < self.header.len / 2
    }

    /// Returns the description of the module.
    pub fn module(&self) -> &ModulePart {
        &self.index.module
    }

    /// Returns the code that the container has.
    pub fn code(&self) -> &[CodePlace] {
        &self.index.code
    }

    /// Returns the module's bytes, if the container has them. They are mapped if they can be; otherwise they are copied, and `None` if they
    /// are damaged.
    pub fn module_bytes(&self) -> Option<Bytes> {
        /// The most mappings that are made for a module.
        const MANY: usize = 256;
        let ModulePart { len, pieces, .. } = self.module();
        let mut runs: Vec<(Range<usize>, u64)> = Vec::new();
        for piece in pieces {
            let (Range { start, end }, at) = (piece.range(), piece.place.at);
            match runs.last_mut() {
                Some((run, from)) if run.end == start && *from + run.len() as u64 == at => run.end = end,
                _ => runs.push((start..end, at)),
            }
        }
        if let Some(mapped) = (runs.len() <= MANY).then(|| self.source.map(*len as usize, &runs)).flatten() {
            return Some(mapped);
        }
        let places: Vec<_> = pieces.iter().map(Piece::range).collect();
        let check = |piece: usize, into: &mut [u8]| {
            let Place { at, sum, .. } = pieces[piece].place;
            self.source.read_at(into, at)?;
            if checksum(into) == sum { Ok(()) } else { Err(io::ErrorKind::InvalidData.into()) }
        };
        Some(fill(*len as usize, &places, check).ok()?.0)
    }

    /// Returns whether the container has the work of functions that are still to be compiled.
    pub fn has_work(&self) -> bool {
        !self.index.work.is_empty()
    }

    /// Returns whether the work is in so many parts that they should be merged.
    pub fn has_much_work(&self) -> bool {
        const MANY: usize = 8;
        self.index.work.len() >= MANY
    }

    /// Returns the work of functions that are still to be compiled, by function.
    pub fn work(&self) -> BTreeMap<u32, Work> {
        let read = |place: &Place| read_all::<Vec<Work>>(&self.part(*place)?).ok();
        let mut all = BTreeMap::new();
        self.index.work.iter().filter_map(read).flatten().for_each(|work| Work::add(&mut all, work));
        all
    }

    /// Returns how long processes ran the module, as the [`Index`] has it; `None` if none did.
    pub fn lasted(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.index.lasted)).filter(|lasted| !lasted.is_zero())
    }

    /// Returns whether there is a result of validation of the body with this index, which is not known to be damaged.
    pub fn has_result(&self, body: u32) -> bool {
        self.find_result(body).is_some_and(|(group, _)| !matches!(self.groups[group].get(), Some(None)))
    }

    /// Returns whether there is a result of validation of the body with this index, damaged or not.
    pub fn names_result(&self, body: u32) -> bool {
        self.find_result(body).is_some()
    }

    /// Returns the last group with a result of the body, because earlier ones may be damaged, and the result's position there.
    fn find_result(&self, body: u32) -> Option<(usize, usize)> {
        let after = self.bodies.partition_point(|found| found.0 <= body);
        let (_, group, position) = *self.bodies[..after].last().filter(|found| found.0 == body)?;
        Some((group, position))
    }

    /// Returns all results that are not damaged, as bytes, by body.
    pub fn results(&self) -> BTreeMap<u32, Vec<u8>> {
        self.bodies.iter().filter_map(|&(body, ..)| Some((body, self.result(body)?.to_vec()))).collect()
    }

    /// Returns the result of a body as bytes.
    fn result(&self, body: u32) -> Option<&[u8]> {
        let (group, position) = self.find_result(body)?;
        let Group { bodies, place } = &self.module().results[group];
        let bytes = self.groups[group].get_or_init(|| self.part(*place)).as_deref()?;
        let (ends, results) = bytes.split_at_checked(size_of::<u32>() * bodies.len())?;
        let end = |position: usize| Some(u32::from_le_bytes(*ends.as_chunks().0.get(position)?) as usize);
        let start = position.checked_sub(1).map_or(Some(0), end)?;
        results.get(start..end(position)?)
    }

    /// Copies the bytes of the container from an offset on, which are not checked.
    pub fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        self.source.read_at(into, at)
    }

    /// Returns a copy of a part, if it is not damaged.
    pub fn part(&self, place: Place) -> Option<Vec<u8>> {
        read(&*self.source, place)
    }

    /// Calls `visit` with copies of code, some at a time, each with its bytes if they are not damaged. Parts that are near
    /// to each other are read at once, all to the same buffer, so that it stays in a core's cache.
    pub fn visit_parts(&self, mut wanted: Vec<CodePlace>, mut visit: impl FnMut(Vec<(CodePlace, Option<&[u8]>)>)) {
        /// Bytes between two parts that are read as well: what takes less time than another call.
        const GAP: u64 = 4 << 10;
        /// Bytes that are read at once, unless a part has more.
        const MOST: u64 = 64 << 10;
        wanted.sort_unstable_by_key(|code| code.place.at);
        let (mut rest, mut buffer) = (&wanted[..], Vec::new());
        while let Some(&CodePlace { place: Place { at: start, .. }, .. }) = rest.first() {
            let (mut end, mut count) = (start, 0);
            for CodePlace { place, .. } in rest {
                let next = place.at.saturating_add(place.len.into());
                if count > 0 && (place.at.saturating_sub(end) > GAP || next - start > MOST) {
                    break;
                }
                (end, count) = (next, count + 1);
            }
            let (run, after) = rest.split_at(count);
            // What leads out of the file is as if it had no bytes, and is damaged.
            buffer.resize(if end <= self.source.len() { (end - start) as usize } else { 0 }, 0);
            if self.source.read_at(&mut buffer, start).is_err() {
                buffer.clear();
            }
            let part = |code: &CodePlace| {
                let Place { at, len, sum } = code.place;
                let bytes = buffer.get((at - start) as usize..).and_then(|bytes| bytes.get(..len as usize));
                (*code, bytes.filter(|bytes| checksum(bytes) == sum))
            };
            visit(run.iter().map(part).collect());
            rest = after;
        }
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

impl Results for Artifact {
    fn body(&self, index: u32) -> Option<FuncBody> {
        read_all(self.result(index)?).ok()
    }

    fn may_run(&self, func: u32) -> bool {
        let code = self.code();
        let at = code.partition_point(|code| code.func < func);
        code.get(at).is_some_and(|code| code.func == func)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use weir_contract::profile::Profile;

    /// What several processes add, each to what those before it have written.
    #[test]
    fn work_of_several_processes_is_put_together() {
        let identity = Identity::of("settings", None);
        let work = |func, executed| Work::new(func, executed, 0, &Profile::default());
        let finish = |builder: Builder<Cursor<Vec<u8>>>| {
            let bytes = builder.finish(identity, Hash::default()).unwrap().into_inner();
            Artifact::open(Box::new(bytes.clone().into_boxed_slice()), &identity).map(|artifact| (artifact, bytes)).unwrap()
        };
        let mut builder = Builder::new(Cursor::new(Vec::new())).unwrap();
        builder.work(&vec![work(1, 10), work(2, 20)]).unwrap();
        let (mut artifact, mut bytes) = finish(builder);
        let mut processes = 1;
        while !artifact.has_much_work() {
            let mut builder = artifact.resume(Cursor::new(bytes)).unwrap();
            builder.work(&vec![]).unwrap();
            builder.work(&vec![work(2, 20 + processes), work(2 + processes as u32, 5)]).unwrap();
            (artifact, bytes) = finish(builder);
            processes += 1;
        }
        let executed =
            |artifact: &Artifact| artifact.work().into_values().map(|work| (work.func, work.executed)).collect::<Vec<_>>();
        let others = (1..processes).map(|process| (2 + process as u32, 5));
        let expected: Vec<(u32, u64)> = [(1, 10), (2, 20 + processes - 1)].into_iter().chain(others).collect();
        assert_eq!(executed(&artifact), expected);

        let mut builder = artifact.resume(Cursor::new(bytes)).unwrap();
        builder.forget_work();
        builder.work(&vec![work(9, 1)]).unwrap();
        let (artifact, _) = finish(builder);
        assert_eq!((executed(&artifact), artifact.has_much_work()), (vec![(9, 1)], false));
    }
}
