//! Compilation hints: custom sections with advice for compilers, which changes no result.
//!
//! Four of them are of two proposals, and tools of any producer write them: `metadata.code.branch_hint` of [branch hinting], and
//! `metadata.code.compilation_priority`, `instr_freq` and `call_targets` of [compilation hints], as of commit 07727467 (phase 2). They have
//! one form, a list of functions, each with a list of hints:
//!
//! ```text
//! functions, each: index, hints, each: offset, length, data
//! ```
//!
//! All numbers are LEB128. Functions and offsets ascend. An offset is that of an instruction from the beginning of its body, the local
//! declarations included, or 0 for the function. The fifth section is Weir's own: a profile as text.
//!
//! A section that is malformed is as if it were absent, which custom sections always may be.
//!
//! [branch hinting]: https://github.com/WebAssembly/branch-hinting
//! [compilation hints]: https://github.com/WebAssembly/compilation-hints

use crate::bytes::Bytes;
use std::ops::Range;
use wasmparser::BinaryReader;

/// A kind of section with hints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HintKind {
    /// Whether the condition of a `br_if` or an `if` is likely to be true: one byte, 0 or 1.
    Branch,
    /// The functions to compile first: the priority, lowest first, then the negative binary logarithm of the function's share of the time.
    Priority,
    /// How often an instruction is executed in a call of its function: one byte, 32 and the binary logarithm.
    Frequency,
    /// The functions that an indirect call calls, each with its percentage.
    Targets,
    /// A profile of Weir, which has counts that the others cannot hold.
    Profile,
}

impl HintKind {
    /// All kinds.
    pub const ALL: [HintKind; 5] =
        [HintKind::Branch, HintKind::Priority, HintKind::Frequency, HintKind::Targets, HintKind::Profile];

    /// Returns the name of the section.
    pub fn name(self) -> &'static str {
        match self {
            HintKind::Branch => "metadata.code.branch_hint",
            HintKind::Priority => "metadata.code.compilation_priority",
            HintKind::Frequency => "metadata.code.instr_freq",
            HintKind::Targets => "metadata.code.call_targets",
            HintKind::Profile => "weir.profile",
        }
    }

    /// Returns the kind of the custom section with this name. Until 2025 the proposal called priorities an order.
    fn of(name: &str) -> Option<HintKind> {
        let name = if name == "metadata.code.compilation_order" { HintKind::Priority.name() } else { name };
        HintKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Where the sections with hints are in a module's bytes: the first of each kind.
#[derive(Clone, Debug, Default)]
pub struct HintSections([Option<Range<u32>>; HintKind::ALL.len()]);

impl HintSections {
    /// Adds a custom section with these contents, if it is one of those.
    pub fn add(&mut self, name: &str, contents: Range<u32>) {
        if let Some(kind) = HintKind::of(name) {
            self.0[kind as usize].get_or_insert(contents);
        }
    }

    /// Returns the hints of this kind in the order of functions and offsets; none if the section is absent, malformed or unreadable. `bytes` are the
    /// module's.
    pub fn hints<'m>(&self, kind: HintKind, bytes: &'m Bytes) -> Vec<Hint<&'m [u8]>> {
        self.contents(kind, bytes).and_then(read).unwrap_or_default()
    }

    /// Returns the contents of the section of this kind. `bytes` are the module's.
    pub fn contents<'m>(&self, kind: HintKind, bytes: &'m Bytes) -> Option<&'m [u8]> {
        let range = self.0[kind as usize].clone()?;
        bytes.try_part(range.start as usize..range.end as usize).ok()
    }
}

/// A hint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hint<D> {
    /// The function.
    pub func: u32,
    /// The offset of the instruction in its body.
    pub offset: u32,
    /// The contents of the hint.
    pub data: D,
}

impl Hint<&[u8]> {
    /// Returns the numbers that the data consists of; `None` if it does not.
    pub fn numbers(&self) -> Option<Vec<u32>> {
        let mut reader = BinaryReader::new(self.data, 0);
        let mut numbers = Vec::new();
        while !reader.eof() {
            numbers.push(reader.read_var_u32().ok()?);
        }
        Some(numbers)
    }
}

/// Returns the bytes of a module with these sections of hints in the place of all of their kinds, before the code section, where branch hints
/// must be. `sections` are the module's: the id of each, and where its contents are.
pub fn replace(bytes: &[u8], sections: &[(u8, Range<usize>)], hints: &[(HintKind, Vec<u8>)]) -> Vec<u8> {
    const PREAMBLE: usize = 8;
    const CUSTOM: u8 = 0;
    const CODE: u8 = 10;
    let is_hint = |(id, range): &&(u8, Range<usize>)| {
        let name = || BinaryReader::new(&bytes[range.clone()], 0).read_string().ok();
        *id == CUSTOM && name().and_then(HintKind::of).is_some()
    };
    let kept: Vec<_> = sections.iter().filter(|section| !is_hint(section)).collect();
    let (before, after) = kept.split_at(kept.iter().position(|(id, _)| *id == CODE).unwrap_or(kept.len()));
    let mut out = bytes[..PREAMBLE].to_vec();
    let copy = |out: &mut Vec<u8>, (id, range): &(u8, Range<usize>)| section(out, *id, &[&bytes[range.clone()]]);
    before.iter().for_each(|kept| copy(&mut out, kept));
    for (kind, contents) in hints {
        let mut name = Vec::new();
        number(&mut name, kind.name().len());
        name.extend_from_slice(kind.name().as_bytes());
        section(&mut out, CUSTOM, &[&name, contents]);
    }
    after.iter().for_each(|kept| copy(&mut out, kept));
    out
}

/// Appends a section with these contents, one after another.
fn section(out: &mut Vec<u8>, id: u8, contents: &[&[u8]]) {
    out.push(id);
    number(out, contents.iter().map(|contents| contents.len()).sum());
    contents.iter().for_each(|contents| out.extend_from_slice(contents));
}

/// Reads the hints of a section; `None` if it is malformed.
fn read(contents: &[u8]) -> Option<Vec<Hint<&[u8]>>> {
    let mut reader = BinaryReader::new(contents, 0);
    let (mut hints, mut last_func) = (Vec::new(), None);
    for _ in 0..reader.read_var_u32().ok()? {
        let func = reader.read_var_u32().ok()?;
        let mut last_offset = None;
        for _ in 0..reader.read_var_u32().ok()? {
            let offset = reader.read_var_u32().ok()?;
            let len = reader.read_var_u32().ok()? as usize;
            let data = reader.read_bytes(len).ok()?;
            // Nothing is below `None`.
            (last_offset < Some(offset)).then_some(())?;
            last_offset = Some(offset);
            hints.push(Hint { func, offset, data });
        }
        (last_func < Some(func)).then_some(())?;
        last_func = Some(func);
    }
    reader.eof().then_some(hints)
}

/// Returns the contents of a section with these hints, which are in the order of functions and offsets.
pub fn write<D: AsRef<[u8]>>(hints: &[Hint<D>]) -> Vec<u8> {
    let funcs: Vec<_> = hints.chunk_by(|a, b| a.func == b.func).collect();
    let mut out = Vec::new();
    number(&mut out, funcs.len());
    for hints in funcs {
        number(&mut out, hints[0].func as usize);
        number(&mut out, hints.len());
        for Hint { offset, data, .. } in hints {
            number(&mut out, *offset as usize);
            number(&mut out, data.as_ref().len());
            out.extend_from_slice(data.as_ref());
        }
    }
    out
}

/// Returns the data that consists of these numbers.
pub fn data(numbers: &[u32]) -> Vec<u8> {
    let mut data = Vec::new();
    numbers.iter().for_each(|&value| number(&mut data, value as usize));
    data
}

/// Appends a LEB128 number.
fn number(out: &mut Vec<u8>, mut value: usize) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module::Module;
    use crate::validate;

    fn hint(func: u32, offset: u32, data: &[u8]) -> Hint<&[u8]> {
        Hint { func, offset, data }
    }

    fn module(text: &str) -> Module {
        validate::parse(wat::parse_str(text).unwrap().into()).unwrap()
    }

    #[test]
    fn what_is_written_is_read() {
        let all = [hint(1, 3, &[1]), hint(1, 300, &[]), hint(70_000, 0, &[5; 200])];
        assert_eq!(read(&write(&all)).unwrap(), all);
        assert_eq!(read(&write::<&[u8]>(&[])).unwrap(), []);
        assert_eq!(hint(0, 0, &data(&[5, 300, u32::MAX])).numbers(), Some(vec![5, 300, u32::MAX]));
        assert_eq!(hint(0, 0, &[1, 0x80]).numbers(), None);
    }

    #[test]
    fn malformed_sections_have_no_hints() {
        let good = write(&[hint(1, 3, &[1]), hint(1, 9, &[0, 1]), hint(4, 3, &[1])]);
        for len in 0..good.len() {
            assert_eq!(read(&good[..len]), None, "{len}");
        }
        for malformed in [
            &[good.clone(), vec![0]].concat(),
            // A function and an offset twice.
            &write(&[hint(1, 3, &[1]), hint(0, 3, &[1])]),
            &write(&[hint(1, 3, &[1]), hint(1, 3, &[1])]),
            // Counts without their items.
            &[0xFF, 0xFF, 0xFF, 0xFF, 0x0F].to_vec(),
            &[1, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F].to_vec(),
            // Numbers of more than 32 bits.
            &vec![0x80; 10],
        ] {
            assert_eq!(read(malformed), None, "{malformed:x?}");
        }
    }

    #[test]
    fn hints_in_the_text_format_have_the_offsets_of_their_instructions() {
        let module = module(
            r#"(module (import "m" "f" (func))
                (func (param i32) (local i64) nop local.get 0 (@metadata.code.branch_hint "\00") if end)
                (func (param i32) block local.get 0 (@metadata.code.branch_hint "\01") br_if 0 end))"#,
        );
        let found = module.hints(HintKind::Branch);
        for (hint, (func, likely, mnemonic)) in found.iter().zip([(1, 0, "if"), (2, 1, "br_if")]) {
            assert_eq!((hint.func, hint.data), (func, &[likely][..]));
            let pc = module.bodies[func as usize - 1].range().start + hint.offset;
            let body = module.body(func).unwrap();
            let mut instrs = crate::Instrs::new(&module, body.entry, body.end);
            assert_eq!(instrs.find(|instr| instr.pc == pc).unwrap().op.mnemonic(), mnemonic);
        }
        assert_eq!(found.len(), 2);
        assert!(module.hints(HintKind::Targets).is_empty());
    }

    #[test]
    fn sections_are_replaced_and_the_others_kept() {
        let module = module(
            r#"(module (@custom "a" (before first) "1") (@custom "metadata.code.compilation_order" "\00")
                (func nop) (memory 1) (data (i32.const 0) "x") (@custom "weir.profile" "old") (@custom "z" "2"))"#,
        );
        let contents = write(&[hint(0, 0, &[7])]);
        let bytes = module.with_hints(&[(HintKind::Priority, contents.clone()), (HintKind::Profile, b"new".to_vec())]);
        let changed = validate::parse(bytes.into()).unwrap();
        let customs: Vec<_> = changed.custom_sections().collect();
        let expected =
            [("a", &b"1"[..]), (HintKind::Priority.name(), &contents), (HintKind::Profile.name(), b"new"), ("z", b"2")];
        assert_eq!(customs, expected);
        assert_eq!(changed.hints(HintKind::Priority), [hint(0, 0, &[7])]);
        assert_eq!(*changed.with_hints(&[]), *module.with_hints(&[]));
        // A module without code has them at its end.
        let empty = validate::parse(b"\0asm\x01\0\0\0".as_slice().into()).unwrap();
        let hinted = validate::parse(empty.with_hints(&[(HintKind::Profile, vec![])]).into()).unwrap();
        assert_eq!(hinted.custom_sections().collect::<Vec<_>>(), [("weir.profile", &b""[..])]);
    }
}
