//! Source lines of a module's code, from its DWARF.
//!
//! Debugging information is not kept with the module: it may be ten times as large, and is of use only after an error. It is read again from the file
//! when the first line is asked for. A module that was made from bytes has it in them.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
#[cfg(feature = "addr2line")]
use weir_bytecode::Module as Bytecode;

/// A place in the source of a module: see [`FrameInfo::symbols`](crate::FrameInfo::symbols).
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct FrameSymbol {
    name: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
}

impl FrameSymbol {
    /// Returns the function's name in the debugging information, as the linker sees it.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the source file.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Returns the line in the file, from 1.
    pub fn line(&self) -> Option<u32> {
        self.line
    }

    /// Returns the column in the line, from 1.
    pub fn column(&self) -> Option<u32> {
        self.column
    }

    /// Returns `file:line:column`, as far as they are known.
    pub(crate) fn place(&self) -> Option<String> {
        let mut place = self.file.clone()?;
        for number in self.line.into_iter().chain(self.column) {
            place.push_str(&format!(":{number}"));
        }
        Some(place)
    }
}

/// Bytes of a name that are shown. One of a megabyte, of which each byte is escaped, would be there for every frame.
const SHOWN: usize = 4096;

/// Returns the beginning of a name, if it is longer than anybody reads.
pub(crate) fn shown(name: &str) -> &str {
    &name[..name.floor_char_boundary(SHOWN)]
}

/// The source lines of a module.
#[derive(Default, Debug)]
pub(crate) struct Symbols {
    /// The module's file.
    file: OnceLock<PathBuf>,
    #[cfg(feature = "addr2line")]
    lines: OnceLock<Option<dwarf::Lines>>,
}

impl Symbols {
    /// Sets the file from which the module was loaded.
    pub fn set_file(&self, path: &Path) {
        let _ = self.file.set(path.into());
    }
}

#[cfg(feature = "addr2line")]
impl Symbols {
    /// Returns the places in the source of the instruction at `pc`, which is in function `func` of this module: that in the innermost of the
    /// functions that the producer has inlined there first.
    pub fn at(&self, module: &Bytecode, func: u32, pc: u32) -> Vec<FrameSymbol> {
        let lines = self.lines.get_or_init(|| dwarf::Lines::of(self.file.get().map(PathBuf::as_path), module));
        lines.as_ref().map_or_else(Vec::new, |lines| lines.at(module, func, pc))
    }
}

#[cfg(feature = "addr2line")]
mod dwarf {
    use super::{FrameSymbol, shown};
    use crate::records::dwarf_cost::is_bounded;
    use crate::sys;
    use addr2line::{Context, Frame};
    use gimli::{Dwarf, EndianArcSlice, LittleEndian, SectionId};
    use std::fmt;
    use std::io;
    use std::path::Path;
    use std::sync::{Arc, Mutex, PoisonError};
    use weir_bytecode::Module;
    use weir_bytecode::account::Charge;
    use weir_bytecode::file::debugging;

    type Bytes = EndianArcSlice<LittleEndian>;

    /// Bytes for each byte of debugging information, once it is decoded, at most: a byte may be a row of the table of lines.
    const PER_BYTE: usize = 32;

    /// What DWARF says of a module.
    pub(super) struct Lines {
        /// The offset in the module from which DWARF counts addresses.
        code: u32,
        /// The file, if it has been read again. It may not be that of the module any more.
        file: Option<Box<[u8]>>,
        /// Decoded when it is asked for.
        context: Mutex<Context<Bytes>>,
    }

    impl fmt::Debug for Lines {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Lines").finish_non_exhaustive()
        }
    }

    impl Lines {
        /// Reads the debugging information of a module, from its file if it has one. `None` if it would take more memory than it is worth, or
        /// than the module may.
        pub fn of(file: Option<&Path>, module: &Module) -> Option<Lines> {
            let mut of_file = None;
            let file = file.and_then(|path| {
                let all = |len, read_at: &sys::file::ReadAt<'_>| {
                    of_file = Some(module.account.charge_for_now(len).map_err(|_| io::ErrorKind::OutOfMemory)?);
                    let mut bytes = vec![0; len];
                    read_at(&mut bytes, 0)?;
                    Ok(bytes.into())
                };
                sys::file::read::<Box<[u8]>, io::Error>(path, all).ok()
            });
            // A file in the text format has no debugging information, and says nothing about the module.
            let file = file.filter(|file| file.starts_with(b"\0asm"));
            let of_file = of_file.filter(|_| file.is_some());
            let binary = match &file {
                Some(file) => file,
                None => module.bytes.all().ok()?,
            };
            let found = debugging(binary);
            let bytes = found.sections.iter().map(|section| section.1.len()).sum::<usize>();
            let of_lines = module.account.charge_for_now(bytes.saturating_mul(1 + PER_BYTE)).ok()?;
            let section = |id: SectionId| -> Result<Bytes, ()> {
                let section = found.sections.iter().find(|section| section.0 == id.name());
                Ok(Bytes::new(Arc::from(section.map_or(&[][..], |section| section.1)), LittleEndian))
            };
            let mut dwarf = Dwarf::load(section).ok()?;
            is_bounded(&mut dwarf).then_some(())?;
            let (code, context) = (found.code as u32, Mutex::new(Context::from_dwarf(dwarf).ok()?));
            of_file.into_iter().chain([of_lines]).for_each(Charge::keep);
            Some(Lines { code, file, context })
        }

        /// Whether the file that has been read has this function.
        fn has(&self, module: &Module, func: u32) -> bool {
            let Some(file) = &self.file else { return true };
            let Some(Ok(body)) = module.validated_body(func) else { return false };
            let range = body.entry as usize..body.end as usize;
            file.get(range.clone()) == Some(module.bytes.part(range))
        }

        pub fn at(&self, module: &Module, func: u32, pc: u32) -> Vec<FrameSymbol> {
            let mut symbols = Vec::new();
            let Some(address) = pc.checked_sub(self.code).filter(|_| self.has(module, func)) else { return symbols };
            let context = self.context.lock().unwrap_or_else(PoisonError::into_inner);
            let Ok(mut frames) = context.find_frames(address.into()).skip_all_loads() else { return symbols };
            while let Ok(Some(Frame { function, location, .. })) = frames.next() {
                symbols.push(FrameSymbol {
                    name: function.and_then(|function| Some(shown(&function.raw_name().ok()?).into())),
                    file: location.as_ref().and_then(|location| Some(shown(location.file?).into())),
                    line: location.as_ref().and_then(|location| location.line),
                    column: location.as_ref().and_then(|location| location.column).filter(|&column| column > 0),
                });
            }
            symbols
        }
    }
}
