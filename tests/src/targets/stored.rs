//! Bytes as a precompiled module. The target corrects checksums, so that the reader gets past them: to an index that leads anywhere, a module,
//! results of validation, and code with its tables. Who can write such a file can run code, so nothing of it is executed: only reading it
//! must end without a panic, and in bounded memory.

use super::target::{Target, files};
use std::cell::OnceCell;
use std::ops::Range;
use twox_hash::XxHash3_64;
use weir::{Config, Engine, Module};
use weir_bytecode::stored::{Damaged, Reader, Stored, read_all, to_bytes};
use weir_bytecode::{FuncBody, validate};
use weir_contract::unplaced::UnplacedCode;

/// The target.
pub const TARGET: Target = Target { name: "stored", run, seeds };

/// The layout of the header: the identity of the build, the settings and the version; the place of the index; the checksum of all before it.
const IDENTITY: Range<usize> = 0..8 + 4 + 3 * 32;
const INDEX: usize = IDENTITY.end + 32 + 8;
const SUM: usize = INDEX + PLACE;
const HEADER: usize = SUM + 8;
/// Bytes of a place: offset, length and checksum.
const PLACE: usize = 8 + 4 + 8;
/// Bytes of the module in the container, at most. An index may claim any number of zeros, which are allocated.
const MODULE: u32 = 1 << 20;

/// The module to which code and results are said to belong.
const TEXT: &str = r#"(module (memory 1) (table 2 funcref) (type $t (func (param i32) (result i32)))
    (func (export "f") (type $t)
        (block $out (loop $again
            (br_if $out (i32.load (local.get 0)))
            (local.set 0 (call_indirect (type $t) (local.get 0) (i32.const 0)))
            (br_if $again (call 0 (local.get 0)))))
        (i32.div_u (i32.const 1) (local.get 0)))
    (func (type $t) (br_table 0 0 (local.get 0) (local.get 0))))"#;

/// An engine, and the beginning of what it serialises.
struct Subject {
    engine: Engine,
    identity: Vec<u8>,
    bytecode: weir_bytecode::Module,
}

thread_local! {
    static SUBJECT: OnceCell<Subject> = const { OnceCell::new() };
}

impl Subject {
    fn new() -> Subject {
        let engine = crate::engines::default_engine();
        let identity = serialised(&engine, "(module)")[IDENTITY].to_vec();
        let wasm = wat::parse_str(TEXT).expect("it is well formed");
        Subject { engine, identity, bytecode: validate::parse(wasm.into()).expect("it is valid") }
    }
}

fn serialised(engine: &Engine, text: &str) -> Vec<u8> {
    Module::new(engine, text).and_then(|module| module.serialize()).expect("a valid module")
}

fn run(data: &[u8]) {
    SUBJECT.with(|subject| {
        let Subject { engine, identity, bytecode } = subject.get_or_init(Subject::new);
        let mut container = data.to_vec();
        let parts = match seal(&mut container, identity) {
            Ok(parts) => parts,
            Err(Damaged) => return parts_of(data, bytecode),
        };
        parts.iter().for_each(|part| parts_of(&container[part.clone()], bytecode));
        // SAFETY: the code in the container is not executed.
        if let Ok(module) = unsafe { Module::deserialize(engine, &container) } {
            let module = module.bytecode();
            (module.imported_funcs..module.funcs.len() as u32).for_each(|func| {
                let _ = module.validated_body(func);
            });
        }
    });
}

/// Reads bytes as each kind of part. What is read is written as the same bytes.
fn parts_of(bytes: &[u8], module: &weir_bytecode::Module) {
    if let Ok(code) = UnplacedCode::read(bytes, module) {
        let _ = format!("{code:?}");
    }
    if let Ok(body) = read_all::<FuncBody>(bytes) {
        assert_eq!(to_bytes(&body), bytes, "of {body:?}");
    }
    if let Ok(profile) = read_all::<weir_contract::profile::Profile>(bytes) {
        assert_eq!(to_bytes(&profile), bytes, "of {profile:?}");
    }
}

/// Gives a container the identity and the checksums that it needs. Returns the ranges of its parts.
///
/// # Errors
/// It has no index, or not one that can be read to its end.
fn seal(container: &mut [u8], identity: &[u8]) -> Result<Vec<Range<usize>>, Damaged> {
    if container.len() < HEADER {
        return Err(Damaged);
    }
    container[IDENTITY].copy_from_slice(identity);
    let index = range(container, INDEX)?;
    let places = Index { at: index.start, bytes: &container[index] }.places()?;
    let mut parts = Vec::new();
    for place in places.into_iter().chain([INDEX]) {
        // A part that is not within the container is damage, which the reader finds.
        if let Ok(part) = range(container, place) {
            write_sum(container, place + PLACE - 8, part.clone());
            parts.push(part);
        }
    }
    write_sum(container, SUM, 0..SUM);
    Ok(parts)
}

/// The range that the place at this offset names.
fn range(container: &[u8], place: usize) -> Result<Range<usize>, Damaged> {
    let mut from = Reader::new(container.get(place..).ok_or(Damaged)?);
    let (at, len) = (u64::read(&mut from)? as usize, u32::read(&mut from)? as usize);
    let range = at..at.checked_add(len).ok_or(Damaged)?;
    if range.end <= container.len() { Ok(range) } else { Err(Damaged) }
}

fn write_sum(container: &mut [u8], at: usize, of: Range<usize>) {
    let sum = XxHash3_64::oneshot(&container[of]);
    container[at..at + 8].copy_from_slice(&sum.to_le_bytes());
}

/// An index that is walked through.
struct Index<'b> {
    /// Where the bytes are in the container.
    at: usize,
    bytes: &'b [u8],
}

impl Index<'_> {
    /// Where each of its places is in the container.
    fn places(mut self) -> Result<Vec<usize>, Damaged> {
        let mut places = Vec::new();
        if self.number()? > MODULE {
            return Err(Damaged);
        }
        // Pieces, each with its offset.
        for _ in 0..self.number()? {
            self.skip(4)?;
            places.push(self.skip(PLACE)?);
        }
        // What the bodies may do, and their number.
        self.skip(1 + 8 + 4)?;
        // Results of groups of bodies.
        for _ in 0..self.number()? {
            let bodies = self.number()? as usize;
            self.skip(bodies.checked_mul(4).ok_or(Damaged)?)?;
            places.push(self.skip(PLACE)?);
        }
        // Code, each with its function and grade.
        for _ in 0..self.number()? {
            self.skip(4 + 1)?;
            places.push(self.skip(PLACE)?);
        }
        // Work that processes left.
        for _ in 0..self.number()? {
            places.push(self.skip(PLACE)?);
        }
        // How long they ran.
        self.skip(8)?;
        if self.bytes.is_empty() { Ok(places) } else { Err(Damaged) }
    }

    /// Passes these bytes, and returns where they were.
    fn skip(&mut self, len: usize) -> Result<usize, Damaged> {
        let at = self.at;
        self.bytes = self.bytes.get(len..).ok_or(Damaged)?;
        self.at += len;
        Ok(at)
    }

    fn number(&mut self) -> Result<u32, Damaged> {
        let number = u32::read(&mut Reader::new(self.bytes))?;
        self.skip(4)?;
        Ok(number)
    }
}

/// Containers of small modules, and their parts.
fn seeds() -> Vec<Vec<u8>> {
    let texts = files("filetests/build", &["wat"]);
    let texts = texts.iter().filter_map(|text| str::from_utf8(text).ok()).take(12).chain([TEXT]);
    let mut config = Config::new();
    config.wasm_legacy_exceptions(true);
    let engine = crate::engines::engine(&config).expect("nothing that could fail is asked for");
    let containers = texts.filter_map(|text| Module::new(&engine, text).and_then(|module| module.serialize()).ok());
    let mut seeds = Vec::new();
    for mut container in containers {
        let identity = container[IDENTITY].to_vec();
        let parts = seal(&mut container, &identity).expect("a container of this build");
        seeds.extend(parts.into_iter().map(|part| container[part].to_vec()));
        seeds.push(container);
    }
    seeds
}
