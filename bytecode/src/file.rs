//! Finds the bytes of a module's file that must be read. The contents of sections that only debuggers read may be most of the file.

use std::io;
use std::ops::Range;
use wasmparser::{Chunk, Parser, Payload};

/// The beginning of the binary format.
pub const MAGIC: &[u8; 4] = b"\0asm";

/// The beginning of every module of version 1.
const PREAMBLE: &[u8] = b"\0asm\x01\0\0\0";

/// The id of custom sections.
const CUSTOM: u8 = 0;

/// What the names of custom sections with debugging information begin with.
const DEBUG: &[u8] = b".debug_";

/// Maximum length of a LEB128 number of 32 bits.
const NUMBER: usize = 5;

/// Maximum length of a section's id and size, the length of a custom section's name, and [`DEBUG`].
const HEAD: usize = 1 + 2 * NUMBER + DEBUG.len();

/// Returns whether a file of `len` bytes is in the binary format. `read` fills a buffer with the bytes from an offset on.
///
/// # Errors
/// Those of `read`.
pub fn is_binary(len: usize, read: impl FnOnce(&mut [u8], usize) -> io::Result<()>) -> io::Result<bool> {
    let mut first = [0; MAGIC.len()];
    if len < first.len() {
        return Ok(false);
    }
    read(&mut first, 0)?;
    Ok(first == *MAGIC)
}

/// Returns the bytes of a file of `len` bytes that must be read if it is a module: ascending ranges, not empty and with a gap between them.
/// The contents of custom sections with debugging information are in no range. Neither validation nor execution needs them, and a copy of
/// the file may have zeros in their place. `read` fills a buffer with the bytes from an offset on. It is called for the head of each section.
///
/// # Errors
/// Those of `read`.
pub fn needed(len: usize, mut read: impl FnMut(&mut [u8], usize) -> io::Result<()>) -> io::Result<Vec<Range<usize>>> {
    let mut needed: Vec<Range<usize>> = Vec::new();
    let mut need = |range: Range<usize>| match needed.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => needed.extend(Some(range).filter(|range| !range.is_empty())),
    };
    let mut head = [0; HEAD];
    let mut at = PREAMBLE.len().min(len);
    read(&mut head[..at], 0)?;
    let is_module = head[..at] == *PREAMBLE;
    need(0..at);
    while is_module && at < len {
        let head = &mut head[..HEAD.min(len - at)];
        read(head, at)?;
        // A section that is malformed is needed with all that comes after it.
        let Some(section) = Section::at(head, at, len) else { break };
        need(at..section.needed);
        at = section.end;
    }
    need(at..len);
    Ok(needed)
}

/// As [`needed`], of a file that is in memory.
pub fn needed_of(bytes: &[u8]) -> Vec<Range<usize>> {
    let read = |into: &mut [u8], at: usize| {
        into.copy_from_slice(&bytes[at..at + into.len()]);
        Ok(())
    };
    needed(bytes.len(), read).expect("reading memory does not fail")
}

/// A section of a file.
struct Section {
    /// Offset after the bytes that are needed: all of them, or of debugging information those before its contents.
    needed: usize,
    /// Offset after the section.
    end: usize,
}

impl Section {
    /// The section at `at` of a file of `len` bytes, unless its size or name is malformed. `head` has its head.
    fn at(head: &[u8], at: usize, len: usize) -> Option<Section> {
        let id = *head.first()?;
        let (size, contents) = number(head, 1)?;
        let end = (at + contents).checked_add(size).filter(|end| *end <= len)?;
        if id != CUSTOM {
            return Some(Section { needed: end, end });
        }
        let (size, name) = number(head, contents)?;
        let name_end = (at + name).checked_add(size).filter(|name_end| *name_end <= end)?;
        let is_debug = size >= DEBUG.len() && head[name..].starts_with(DEBUG);
        Some(Section { needed: if is_debug { name_end } else { end }, end })
    }
}

/// The LEB128 number at `at`, and the offset after it.
fn number(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let mut number = 0;
    for (i, byte) in bytes.get(at..)?.iter().take(NUMBER).enumerate() {
        number |= usize::from(byte & 0x7F) << (7 * i);
        if *byte < 0x80 {
            return Some((number, at + i + 1));
        }
    }
    None
}

/// The debugging information of a module.
#[derive(Debug, Default)]
pub struct Debugging<'m> {
    /// The offset in the module of the contents of the code section, from which DWARF counts addresses.
    pub code: usize,
    /// The name, which begins with `.debug_`, and the contents of each section.
    pub sections: Vec<(&'m str, &'m [u8])>,
}

/// Finds the debugging information of a binary module, up to the first byte that is malformed.
pub fn debugging(module: &[u8]) -> Debugging<'_> {
    let mut found = Debugging::default();
    let mut at = Parser::new(0);
    let mut rest = module;
    // Bodies are skipped with their section, which may be most of the module.
    while let Ok(Chunk::Parsed { consumed, payload }) = at.parse(rest, true) {
        rest = &rest[consumed..];
        if let Payload::CodeSectionStart { unchecked_range: range, size, .. } = payload {
            found.code = range.start as usize;
            at.skip_section();
            let Some(after) = rest.get(size as usize..) else { break };
            rest = after;
        } else if let Payload::CustomSection(section) = payload {
            if section.name().as_bytes().starts_with(DEBUG) {
                found.sections.push((section.name(), section.data()));
            }
        } else if let Payload::End(_) = payload {
            break;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A section with a size of two bytes.
    fn section(id: u8, contents: &[u8]) -> Vec<u8> {
        [&[id, contents.len() as u8 | 0x80, (contents.len() >> 7) as u8], contents].concat()
    }

    fn custom(name: &str, contents: &[u8]) -> Vec<u8> {
        section(CUSTOM, &[&[name.len() as u8], name.as_bytes(), contents].concat())
    }

    #[test]
    fn debugging_information_is_not_needed() {
        let long_name = format!(".debug_{}", "x".repeat(90));
        let debug = [custom(".debug_info", &[7; 5000]), custom(&long_name, &[7; 5000]), custom(".debug_", &[7; 5000])].concat();
        let parts = [PREAMBLE.to_vec(), custom(".debu", &[1; 200]), debug, section(1, &[2; 200]), custom("name", &[3; 200])];
        let (file, kept) = (parts.concat(), PREAMBLE.len() + parts[1].len());
        let needed = needed_of(&file);
        let name = |name: &str| 3 + 1 + name.len();
        let first = kept + name(".debug_info");
        let second = first + 5000 + name(&long_name);
        let third = second + 5000 + name(".debug_");
        assert_eq!(needed, [0..first, first + 5000..second, second + 5000..third, third + 5000..file.len()]);
        // A copy with zeros in place of the other bytes needs the same ranges.
        let mut zeroed = vec![0; file.len()];
        needed.iter().for_each(|range| zeroed[range.clone()].copy_from_slice(&file[range.clone()]));
        assert_eq!(needed_of(&zeroed), needed);
    }

    #[test]
    fn malformed_files_are_needed_whole() {
        let debug = custom(".debug_info", &[7; 100]);
        let endless = [PREAMBLE, &[0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1], &debug].concat();
        let too_long = [PREAMBLE, &[0, 0x7F, 7], b".debug_"].concat();
        let name_too_long = [PREAMBLE, &[0, 10, 20], b".debug_info is long"].concat();
        let without_name = [PREAMBLE, &[0, 0]].concat();
        let text = [b"(module)".as_slice(), &debug].concat();
        for file in [endless, too_long, name_too_long, without_name, text, PREAMBLE.to_vec(), b"\0asm".to_vec(), Vec::new()] {
            for file in [[&*file, &[0]].concat(), file] {
                assert!(needed_of(&file).into_iter().eq((!file.is_empty()).then_some(0..file.len())), "{file:x?}");
            }
        }
    }

    #[test]
    fn a_failure_is_returned() {
        let needed = needed(100, |_, _| Err(io::ErrorKind::UnexpectedEof.into()));
        assert_eq!(needed.expect_err("it fails").kind(), io::ErrorKind::UnexpectedEof);
    }
}
