//! Decodes a module that an earlier process has validated, and of which it knows where the bodies are: without reading the code section, or
//! the contents of data segments and names.

use super::invalid::InvalidModule;
use super::memory;
use super::options::Options;
use super::sections::Sections;
use super::unfinished::{Unfinished, of_body};
use crate::account::Account;
use crate::bytes::Bytes;
use crate::module::DataSegment;
use std::ops::Range;
use std::sync::Arc;
use wasmparser::{
    BinaryReader, DataSectionReader, ElementSectionReader, Encoding, ExportSectionReader, FunctionBody, FunctionSectionReader,
    GlobalSectionReader, ImportSectionReader, MemorySectionReader, Payload, TableSectionReader, TagSectionReader,
    TypeSectionReader, ValidPayload, Validator,
};

type Result<T> = std::result::Result<T, InvalidModule>;

/// The beginning of every module.
const PREAMBLE: usize = 8;

/// Most bytes of a LEB128 number of 32 bits.
const NUMBER: usize = 5;

/// Maximum length of the name of a custom section that is read.
const NAME: usize = 128;

/// Decodes and validates all of a module but its bodies.
///
/// # Errors
/// The first item that is malformed or invalid; it is not [known](Bytes::places) where the bodies are.
pub(super) fn sections(bytes: Bytes, options: Options, account: Account) -> Result<Unfinished> {
    let account = Arc::new(account);
    let charge = |bytes: usize, at: usize| account.charge(bytes).map_err(|error| InvalidModule::exceeding(error, at as u64));
    charge(bytes.held(), 0)?;
    let mut validator = Validator::new_with_features(options.features());
    let mut sections = Sections::new(account.clone());
    let (mut resources, mut bodies) = (None, Vec::new());
    let range = 0..PREAMBLE as u64;
    validator.payload(&Payload::Version { num: 1, encoding: Encoding::Module, range })?;
    let mut at = PREAMBLE;
    while at < bytes.len() {
        let mut head = reader(&bytes, at..bytes.len().min(at + 1 + NUMBER))?;
        let (id, size) = (head.read_u8()?, head.read_var_u32()? as usize);
        let contents = head.original_position() as usize;
        let section = contents..contents + size;
        if section.end > bytes.len() {
            return Err(InvalidModule::new("unexpected end-of-file", at as u64));
        }
        at = section.end;
        match id {
            CUSTOM => custom(&mut sections, &bytes, section)?,
            CODE => {
                let count = reader(&bytes, section.start..section.end.min(section.start + NUMBER))?.read_var_u32()?;
                let unchecked_range = section.start as u64..section.end as u64;
                validator.payload(&Payload::CodeSectionStart { count, unchecked_range, size: size as u32 })?;
                bodies = bytes.places().map_or_else(Vec::new, |places| places.bodies.to_vec());
                if count == 0 && bodies.is_empty() {
                    continue;
                }
                let Some(first) = bodies.first() else {
                    return Err(InvalidModule::new("the bodies are not known", section.start as u64));
                };
                if bodies.len() != count as usize || !fill_section(&bodies, &section) {
                    return Err(InvalidModule::new("the bodies are not those of the code section", section.start as u64));
                }
                charge(bodies.len() * of_body(&options), section.start)?;
                let first = FunctionBody::new(reader(&bytes, first.start as usize..first.end as usize)?);
                resources = Some(validator.code_section_entry(&first)?.resources);
            }
            DATA if sections.read_data(|| known_segments(&bytes, section.clone(), &options)) => {}
            _ => {
                let payload = payload(id, &bytes, section.clone())?;
                charge(memory::of_section(&payload)?, section.start)?;
                validator.payload(&payload)?;
                sections.read(payload)?;
            }
        }
    }
    let ValidPayload::End(_) = validator.payload(&Payload::End(at as u64))? else { unreachable!("the payload is the end") };
    Ok(Unfinished::of(bytes, sections, resources, bodies, options))
}

const CUSTOM: u8 = 0;
const CODE: u8 = 10;
const DATA: u8 = 11;

/// A reader of these bytes.
fn reader(bytes: &Bytes, range: Range<usize>) -> Result<BinaryReader<'_>> {
    let start = range.start;
    let part = bytes.try_part(range).map_err(|unreadable| InvalidModule::of_unreadable(unreadable, start))?;
    Ok(BinaryReader::new(part, start as u64))
}

/// Whether these ranges can be the contents of all items of a section. Before each is a number or more.
fn fill_section<'r>(items: impl IntoIterator<Item = &'r Range<u32>>, section: &Range<usize>) -> bool {
    let mut items = items.into_iter().map(|item| (item.start as usize, item.end as usize));
    let end = items.try_fold(section.start, |last, (start, end)| (last < start && start <= end).then_some(end));
    end == Some(section.end)
}

/// The segments of a data section, which is in this range, if all of them are plain and it is known where they are. Their addresses are
/// believed.
fn known_segments(bytes: &Bytes, section: Range<usize>, options: &Options) -> Option<Vec<DataSegment>> {
    let segments = bytes.places()?.data.as_deref()?;
    let count = reader(bytes, section.start..section.end.min(section.start + NUMBER)).ok()?.read_var_u32().ok()?;
    let are_those = segments.len() == count as usize && fill_section(segments.iter().map(|segment| &segment.contents), &section);
    let are_valid = options.features().bulk_memory() || segments.iter().all(|segment| segment.address.is_some());
    (are_those && are_valid).then(|| segments.iter().cloned().map(DataSegment::from).collect())
}

/// Reads the name of a custom section.
fn custom(sections: &mut Sections, bytes: &Bytes, section: Range<usize>) -> Result<()> {
    let mut head = reader(bytes, section.start..section.end.min(section.start + NUMBER + NAME))?;
    let len = head.read_var_u32()? as usize;
    let name = head.original_position() as usize;
    if len <= NAME {
        let text = head.read_bytes(len)?;
        // Offsets fit: the file is below 4 GiB.
        sections.custom(text, (name + len) as u32..section.end as u32);
    }
    Ok(())
}

/// A section of which all is read.
fn payload(id: u8, bytes: &Bytes, section: Range<usize>) -> Result<Payload<'_>> {
    let (range, mut contents) = (section.start as u64..section.end as u64, reader(bytes, section)?);
    Ok(match id {
        1 => Payload::TypeSection(TypeSectionReader::new(contents)?),
        2 => Payload::ImportSection(ImportSectionReader::new(contents)?),
        3 => Payload::FunctionSection(FunctionSectionReader::new(contents)?),
        4 => Payload::TableSection(TableSectionReader::new(contents)?),
        5 => Payload::MemorySection(MemorySectionReader::new(contents)?),
        6 => Payload::GlobalSection(GlobalSectionReader::new(contents)?),
        7 => Payload::ExportSection(ExportSectionReader::new(contents)?),
        8 => Payload::StartSection { func: contents.read_var_u32()?, range },
        9 => Payload::ElementSection(ElementSectionReader::new(contents)?),
        DATA => Payload::DataSection(DataSectionReader::new(contents)?),
        12 => Payload::DataCountSection { count: contents.read_var_u32()?, range },
        13 => Payload::TagSection(TagSectionReader::new(contents)?),
        _ => return Err(InvalidModule::new("unknown section", range.start)),
    })
}

#[cfg(test)]
mod tests {
    use crate::bytes::{Bytes, Parts, Unreadable};
    use crate::instrs::Instrs;
    use crate::module::Module;
    use crate::places::{Places, PlainSegment};
    use crate::validate::{Options, Proposal, Proposals, parse_with};
    use std::ops::Range;
    use std::sync::{Arc, Mutex};

    /// Bytes with the ranges of them that were asked for.
    struct Asked {
        bytes: Vec<u8>,
        places: Places,
        damaged: Range<usize>,
        ranges: Arc<Mutex<Vec<Range<usize>>>>,
    }

    impl Parts for Asked {
        fn len(&self) -> usize {
            self.bytes.len()
        }

        fn get(&self, range: Range<usize>) -> Result<&[u8], Unreadable> {
            self.ranges.lock().unwrap().push(range.clone());
            let is_damaged = range.start < self.damaged.end && self.damaged.start < range.end;
            if is_damaged { Err(Unreadable) } else { Ok(&self.bytes[range]) }
        }

        fn copy(&self, range: Range<usize>, into: &mut [u8]) -> Result<(), Unreadable> {
            into.copy_from_slice(self.get(range)?);
            Ok(())
        }

        fn as_ptr(&self) -> *const u8 {
            self.bytes.as_ptr()
        }

        fn places(&self) -> &Places {
            &self.places
        }

        fn read(&self) -> u64 {
            0
        }

        fn is_damaged(&self) -> bool {
            false
        }
    }

    fn options() -> Options {
        Options { lazy: true, proposals: Proposals::all(), ..Options::default() }
    }

    fn known(bytes: &[u8], places: Places) -> (Bytes, Arc<Mutex<Vec<Range<usize>>>>) {
        let ranges = Arc::default();
        let asked = Asked { bytes: bytes.into(), places, damaged: 0..0, ranges: Arc::clone(&ranges) };
        (Bytes::of_parts(asked), ranges)
    }

    /// All that is decoded, as text.
    fn decoded(module: &Module) -> String {
        let Module { types, imports, funcs, tables, memories, tags, globals, global_inits, exports, start, elems, data, .. } =
            module;
        let items = format!("{types:?} {imports:?} {funcs:?} {tables:?} {memories:?} {tags:?} {globals:?} {global_inits:?}");
        let more = format!("{exports:?} {start:?} {elems:?} {data:?} {:?}", module.hint_sections);
        let bodies: Vec<_> = (0..funcs.len() as u32).map(|func| module.validated_body(func)).collect();
        format!("{items} {more} {bodies:?} {:?}", (0..funcs.len() as u32).map(|func| module.func_name(func)).collect::<Vec<_>>())
    }

    fn module(data: &str) -> Vec<u8> {
        let nops = "nop ".repeat(5000);
        let text = format!(
            r#"(module
                (type $t (func (param i32) (result i32)))
                (import "a" "f" (func $f (type $t)))
                (import "a" "g" (global $g i32))
                (tag $e (param i64))
                (table 3 funcref)
                (memory 2)
                (global (mut f64) (f64.const 2))
                (export "run" (func $run))
                (start $begin)
                (elem (i32.const 0) $f $run)
                (elem declare func $run)
                (func $begin)
                (func $run (type $t) {nops} (call $f (local.get 0)))
                (func $last (param v128 i32) (throw $e (i64.const 1)))
                {data}
                (@custom "metadata.code.branch_hint" "\00")
                (@custom "other" "{other}"))"#,
            other = "o".repeat(9000)
        );
        wat::parse_str(text).unwrap()
    }

    #[test]
    fn a_module_is_the_same_without_its_code_and_data() {
        let long = "d".repeat(10_000);
        let plain =
            format!(r#"(data (i32.const 7) "{long}") (data (i32.const 1) "a") (data "p{long}") (data (i32.const 9) "{long}")"#);
        let general = format!(r#"(data (global.get $g) "abc") (data (i32.const 3) "{long}")"#);
        for data in [&*plain, &general, ""] {
            let bytes = module(data);
            let whole = parse_with(bytes.clone().into(), options()).unwrap();
            let bodies = whole.places().bodies;
            let (parts, ranges) = known(&bytes, whole.places());
            let again = parse_with(parts, options()).unwrap();
            let was_read = |at: usize| ranges.lock().unwrap().iter().any(|range| range.contains(&at));
            let middle = |range: Range<u32>| range.start.midpoint(range.end) as usize;
            assert!(!was_read(middle(bodies[1].clone())) && !was_read(middle(bodies[2].clone())), "{ranges:?}");
            if data == plain {
                assert!(whole.data.iter().filter(|data| data.range.len() > 1).all(|data| !was_read(middle(data.range.clone()))));
            }
            assert!(!was_read(bytes.len() - 1000), "the contents of a custom section");
            assert_eq!(decoded(&again), decoded(&whole));
            assert_eq!(again.bytes[..], bytes);
        }
    }

    #[test]
    fn places_of_other_segments_are_not_used() {
        let bytes = module(r#"(data (i32.const 7) "abc") (data "passive")"#);
        let whole = parse_with(bytes.clone().into(), options()).unwrap();
        let Places { bodies, data } = whole.places();
        let data = data.map(Vec::from);
        let [active, passive] = &data.unwrap()[..] else { panic!("two segments") };
        let (active, passive) = (active.clone(), passive.clone());
        let at = |start: u32, end: u32| PlainSegment { contents: start..end, address: None };
        for wrong in [
            vec![],
            vec![active.clone()],
            vec![passive.clone(), active.clone()],
            vec![at(0, 9), passive.clone()],
            vec![active.clone(), passive.clone(), passive.clone()],
            vec![active.clone(), at(passive.contents.start, passive.contents.end + 1)],
            vec![at(active.contents.end, active.contents.start), passive.clone()],
        ] {
            let places = Places { bodies: bodies.clone(), data: Some(wrong.into()) };
            assert_eq!(decoded(&parse_with(known(&bytes, places).0, options()).unwrap()), decoded(&whole));
        }
        // Without bulk memory there are no passive segments.
        let options = Options { proposals: Proposals::all().with(Proposal::BulkMemory, false), ..options() };
        assert!(parse_with(known(&bytes, whole.places()).0, options).is_err());
    }

    #[test]
    fn nothing_is_made_of_unreadable_bytes() {
        let bytes = module(r#"(data (i32.const 7) "abc") (data "passive")"#);
        let whole = parse_with(bytes.clone().into(), options()).unwrap();
        let bodies = whole.places().bodies;
        let all = decoded(&whole);
        for at in 0..bytes.len() {
            let (bytes, places) = (bytes.clone(), whole.places());
            let asked = Asked { bytes, places, damaged: at..at + 1, ranges: Arc::default() };
            match parse_with(Bytes::of_parts(asked), options()) {
                Err(error) => assert!(error.unreadable().is_some(), "{at}: {error}"),
                Ok(module) => {
                    let body = bodies.iter().position(|body| body.contains(&(at as u32)));
                    for (index, func) in (0..bodies.len()).zip(module.imported_funcs..) {
                        let unreadable = module.validated_body(func).unwrap().err().and_then(|error| error.unreadable());
                        assert_eq!(unreadable.is_some(), body == Some(index), "{at}");
                    }
                    let first = whole.validated_body(1).unwrap().unwrap().entry;
                    assert_eq!(Instrs::at(&module, first).is_none(), (first as usize..first as usize + 64).contains(&at), "{at}");
                    let is_same = body.is_none() && decoded(&module) == all;
                    let may_lack = |range: Range<u32>| range.contains(&(at as u32));
                    let is_data = module.data.iter().any(|data| may_lack(data.range.clone()));
                    assert!(is_same || body.is_some() || is_data || module.func_name(1).is_none(), "{at}");
                }
            }
        }
    }

    #[test]
    fn a_module_may_have_no_bodies() {
        const EMPTY_CODE_SECTION: &[u8] = &[10, 1, 0];
        for code in [&[], EMPTY_CODE_SECTION] {
            let mut bytes = wat::parse_str("(module (memory 1))").unwrap();
            bytes.extend_from_slice(code);
            let again = parse_with(known(&bytes, Places::default()).0, options()).unwrap();
            assert_eq!(decoded(&again), decoded(&parse_with(bytes.into(), options()).unwrap()));
        }
    }

    #[test]
    fn bodies_of_another_module_are_refused() {
        let bytes = module("");
        let whole = parse_with(bytes.clone().into(), options()).unwrap();
        let Places { bodies, .. } = whole.places();
        let [first, second, third] = &bodies[..] else { panic!("three bodies") };
        let (first, second, third) = (first.clone(), second.clone(), third.clone());
        for wrong in [
            vec![],
            vec![first.clone(), second.clone()],
            vec![second.clone(), first.clone(), third.clone()],
            vec![first.start - 100..first.end, second.clone(), third.clone()],
            vec![first.clone(), second.clone(), third.start..third.end + 1],
            vec![first.clone(), second.end..second.start, third.clone()],
            vec![first.clone(), second.clone(), third.end + 9..third.end],
        ] {
            assert!(
                parse_with(known(&bytes, Places { bodies: wrong.clone().into(), data: None }).0, options()).is_err(),
                "{wrong:?}"
            );
        }
        let cut = known(&bytes[..bytes.len() - 1], whole.places()).0;
        assert!(parse_with(cut, options()).is_err());
    }
}
