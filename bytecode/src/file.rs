//! Reads a module's file without the contents that only debuggers read. They may be most of the file.

use std::io;
use std::ops::Range;
use wasmparser::{Chunk, Parser, Payload};

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

/// Reads a file of `len` bytes, which may be a module. `read` fills a buffer with the bytes from an offset on.
///
/// The contents of custom sections with debugging information are not read, and zero, except for a few bytes after the section's name:
/// neither validation nor execution needs them. All other bytes, and all offsets, are those of the file.
///
/// # Errors
/// Those of `read`.
pub fn read(len: usize, mut read: impl FnMut(&mut [u8], usize) -> io::Result<()>) -> io::Result<Box<[u8]>> {
    // A page of zeros takes no memory until it is written.
    let mut bytes = vec![0; len];
    let mut read = |bytes: &mut [u8], range: Range<usize>| read(&mut bytes[range.clone()], range.start);
    let mut at = PREAMBLE.len().min(len);
    read(&mut bytes, 0..at)?;
    if bytes[..at] == *PREAMBLE {
        while at < len {
            let head = at..len.min(at + HEAD);
            read(&mut bytes, head.clone())?;
            // A section that is malformed is read with all that comes after it.
            let Some(section) = Section::at(&bytes[head], at, len) else { break };
            read(&mut bytes, section.needed)?;
            at = section.end;
        }
    }
    read(&mut bytes, at..len)?;
    Ok(bytes.into())
}

/// Bytes that [`visit`] reads at once.
const BUFFER: usize = 64 << 10;

/// Calls `visit` with the bytes of a file of `len` bytes, which may be a module, in their order and with their offset, through a small
/// buffer. The contents of custom sections with debugging information are left out. `read` is as for [`read`].
///
/// # Errors
/// Those of `read`.
pub fn visit<R>(len: usize, read: R, mut visit: impl FnMut(usize, &[u8])) -> io::Result<()>
where
    R: FnMut(&mut [u8], usize) -> io::Result<()>,
{
    let mut window = Window { read, len, bytes: vec![0; BUFFER.min(len)], range: 0..0 };
    let mut at = PREAMBLE.len().min(len);
    let is_module = window.get(0..at)? == PREAMBLE;
    window.pass(0..at, &mut visit)?;
    while is_module && at < len {
        let head = at..len.min(at + HEAD);
        let Some(section) = Section::at(window.get(head)?, at, len) else { break };
        window.pass(at..section.needed.end, &mut visit)?;
        at = section.end;
    }
    window.pass(at..len, &mut visit)
}

/// The bytes of a file that were read last.
struct Window<R> {
    read: R,
    /// Bytes of the file.
    len: usize,
    bytes: Vec<u8>,
    /// Which they are.
    range: Range<usize>,
}

impl<R: FnMut(&mut [u8], usize) -> io::Result<()>> Window<R> {
    /// Returns these bytes of the file, of which there are at most [`BUFFER`].
    fn get(&mut self, range: Range<usize>) -> io::Result<&[u8]> {
        if range.start < self.range.start || range.end > self.range.end {
            let end = self.len.min(range.start + self.bytes.len());
            self.range = 0..0;
            (self.read)(&mut self.bytes[..end - range.start], range.start)?;
            self.range = range.start..end;
        }
        Ok(&self.bytes[range.start - self.range.start..range.end - self.range.start])
    }

    /// Visits these bytes of the file.
    fn pass(&mut self, range: Range<usize>, visit: &mut impl FnMut(usize, &[u8])) -> io::Result<()> {
        let mut next = range.start;
        while next < range.end {
            let part = next..range.end.min(next + self.bytes.len());
            visit(next, self.get(part.clone())?);
            next = part.end;
        }
        Ok(())
    }
}

/// A section of a file.
struct Section {
    /// The bytes to read: all after the size, or of debugging information the name.
    needed: Range<usize>,
    /// Offset after the section.
    end: usize,
}

impl Section {
    /// The section at `at` of a file of `len` bytes, unless its size or name is malformed. `head` has its head.
    fn at(head: &[u8], at: usize, len: usize) -> Option<Section> {
        let id = *head.first()?;
        let (size, contents) = number(head, 1)?;
        let start = at + contents;
        let end = start.checked_add(size).filter(|end| *end <= len)?;
        if id != CUSTOM {
            return Some(Section { needed: start..end, end });
        }
        let (size, name) = number(head, contents)?;
        let name_end = (at + name).checked_add(size).filter(|name_end| *name_end <= end)?;
        let is_debug = size >= DEBUG.len() && head[name..].starts_with(DEBUG);
        Some(Section { needed: start..if is_debug { name_end } else { end }, end })
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

    /// Reads a file with these bytes, and returns the number of bytes that were read, some of them twice.
    fn read_counting(file: &[u8]) -> (Box<[u8]>, usize) {
        let mut count = 0;
        let bytes = read(file.len(), |into, at| {
            count += into.len();
            into.copy_from_slice(&file[at..at + into.len()]);
            Ok(())
        });
        (bytes.expect("no call of `read` fails"), count)
    }

    /// The bytes that a visit shows, and zeros.
    fn visited(file: &[u8]) -> (Box<[u8]>, usize) {
        let (mut bytes, mut count, mut next) = (vec![0; file.len()], 0, 0);
        let read = |into: &mut [u8], at: usize| {
            into.copy_from_slice(&file[at..at + into.len()]);
            Ok(())
        };
        let copy = |at: usize, part: &[u8]| {
            assert!(at >= next, "in order");
            next = at + part.len();
            count += part.len();
            bytes[at..next].copy_from_slice(part);
        };
        visit(file.len(), read, copy).expect("no call of `read` fails");
        (bytes.into(), count)
    }

    /// A section with a size of two bytes.
    fn section(id: u8, contents: &[u8]) -> Vec<u8> {
        [&[id, contents.len() as u8 | 0x80, (contents.len() >> 7) as u8], contents].concat()
    }

    fn custom(name: &str, contents: &[u8]) -> Vec<u8> {
        section(CUSTOM, &[&[name.len() as u8], name.as_bytes(), contents].concat())
    }

    #[test]
    fn debugging_information_is_not_read() {
        let long_name = format!(".debug_{}", "x".repeat(90));
        let debug = [custom(".debug_info", &[7; 5000]), custom(&long_name, &[7; 5000]), custom(".debug_", &[7; 5000])].concat();
        let parts = [PREAMBLE.to_vec(), custom(".debu", &[1; 200]), debug, section(1, &[2; 200]), custom("name", &[3; 200])];
        let (file, kept) = (parts.concat(), PREAMBLE.len() + parts[1].len());
        let (bytes, count) = read_counting(&file);
        assert_eq!(bytes.len(), file.len());
        assert_eq!(bytes[..kept], file[..kept]);
        let after = kept + parts[2].len();
        assert_eq!(bytes[after..], file[after..]);
        let name_end = kept + 4 + ".debug_info".len();
        assert_eq!(bytes[kept..name_end], file[kept..name_end]);
        assert!(bytes[kept + HEAD..kept + 5000].iter().all(|byte| *byte == 0));
        assert!(bytes[kept..after].windows(long_name.len()).any(|window| window == long_name.as_bytes()));
        assert!(count < 1000, "read {count} bytes");
        let (seen, count) = visited(&file);
        // Reading shows a few bytes more of each section.
        let differ = seen.iter().zip(&bytes).filter(|(seen, read)| seen != read);
        assert!(differ.clone().all(|(seen, _)| *seen == 0) && differ.count() <= 3 * HEAD && count < 800, "{count}");
        assert_eq!((&seen[..kept], &seen[after..]), (&bytes[..kept], &bytes[after..]));
        assert!(seen.windows(long_name.len()).any(|window| window == long_name.as_bytes()));
    }

    #[test]
    fn malformed_files_are_read_whole() {
        let debug = custom(".debug_info", &[7; 100]);
        let endless = [PREAMBLE, &[0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 1], &debug].concat();
        let too_long = [PREAMBLE, &[0, 0x7F, 7], b".debug_"].concat();
        let name_too_long = [PREAMBLE, &[0, 10, 20], b".debug_info is long"].concat();
        let without_name = [PREAMBLE, &[0, 0]].concat();
        let text = [b"(module)".as_slice(), &debug].concat();
        for file in [endless, too_long, name_too_long, without_name, text, PREAMBLE.to_vec(), b"\0asm".to_vec(), Vec::new()] {
            assert_eq!(*read_counting(&file).0, *file);
            assert_eq!(*visited(&file).0, *file);
            let mut damaged = file;
            damaged.push(0);
            assert_eq!(*read_counting(&damaged).0, *damaged);
        }
    }

    #[test]
    fn a_failure_is_returned() {
        let read = read(100, |_, _| Err(io::ErrorKind::UnexpectedEof.into()));
        assert_eq!(read.expect_err("it fails").kind(), io::ErrorKind::UnexpectedEof);
    }
}
