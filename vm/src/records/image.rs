//! Images of a module's memories after its data segments, in files that instances map instead of copying the data.
//! Pages that an instance only reads are shared; pages that it writes are copied at that time; pages that it never
//! touches cost nothing.
//!
//! An image is made for the second instance of a module, because a module that is instantiated once would not profit.

use crate::Result;
use crate::records::error::Context;
use crate::records::memory::byte_len;
use crate::sys::mapping::{map_file_over, page_size};
use crate::sys::memory_file::{MemoryFile, Purpose};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_bytecode::Module as Bytecode;
use weir_bytecode::module::{ConstExpr, ConstOp};

/// Less data than this is copied: mapping costs a system call and a fault for each page touched, copying a fault for
/// each page.
const MIN_BYTES: usize = 16 << 10;

/// The images of a module's memories.
#[derive(Debug, Default)]
pub(crate) struct Images {
    /// Whether the module has been instantiated.
    instantiated: AtomicBool,
    made: OnceLock<Option<Box<[Image]>>>,
}

impl Images {
    /// Returns the images that a new instance maps instead of writing its data segments; `None` if it writes them.
    pub fn for_instance(&self, bytecode: &Bytecode) -> Option<&[Image]> {
        if !self.instantiated.load(Ordering::Relaxed) {
            self.instantiated.store(true, Ordering::Relaxed);
            return None;
        }
        self.made.get_or_init(|| images(bytecode)).as_deref()
    }
}

/// The pages of a memory that the data segments reach.
#[derive(Debug)]
pub(crate) struct Image {
    /// The memory.
    pub memory: u32,
    file: MemoryFile,
    /// Their first byte in the memory.
    start: usize,
    len: usize,
}

impl Image {
    /// Maps the pages over the zeros of a new memory.
    ///
    /// # Errors
    /// The system cannot make another mapping.
    ///
    /// # Safety
    /// `base` is the base of a memory of the module, which has at least its minimal size and into which no reference is held.
    pub unsafe fn map(&self, base: *mut u8) -> Result<()> {
        // SAFETY: whole pages within the accessible part of the memory's own reservation, and the file keeps its
        // length.
        unsafe { map_file_over(base.add(self.start), self.len, &self.file) }.context("mapping a module's data")
    }
}

/// Returns the images of all memories, if mapping them replaces instantiation's writes entirely: the active segments
/// cannot fail, and write only memories that the module defines.
fn images(bytecode: &Bytecode) -> Option<Box<[Image]>> {
    let mut segments: Vec<(u32, u64, &[u8])> = Vec::new();
    for segment in &bytecode.data {
        let Some((memory, offset)) = &segment.active else { continue };
        let bytes = &bytecode.bytes[segment.range.start as usize..segment.range.end as usize];
        let ty = bytecode.memories[*memory as usize];
        let (at, size) = (constant(offset)?, byte_len(&ty, ty.limits.min)?);
        if *memory < bytecode.imported_memories || u128::from(at) + bytes.len() as u128 > size as u128 {
            return None;
        }
        segments.push((*memory, at, bytes));
    }
    if segments.iter().map(|segment| segment.2.len()).sum::<usize>() < MIN_BYTES {
        return None;
    }
    let memories = bytecode.imported_memories..bytecode.memories.len() as u32;
    let image = |memory| {
        let segments = segments.iter().filter(|segment| segment.0 == memory && !segment.2.is_empty());
        image(memory, &segments.map(|&(_, at, bytes)| (at, bytes)).collect::<Vec<_>>())
    };
    memories.filter_map(|memory| image(memory).transpose()).collect::<io::Result<_>>().ok()
}

/// Returns the value of an offset that does not depend on the instance.
fn constant(offset: &ConstExpr) -> Option<u64> {
    match *offset.0 {
        [ConstOp::I32(value)] => Some(u64::from(value as u32)),
        [ConstOp::I64(value)] => Some(value as u64),
        _ => None,
    }
}

/// Creates the image of a memory; `None` if no segment writes to it.
///
/// # Errors
/// The system cannot make such a file; or the image would have more holes than data, and reading a page of a hole would
/// allocate memory for it.
fn image(memory: u32, segments: &[(u64, &[u8])]) -> io::Result<Option<Image>> {
    let first = segments.iter().map(|&(at, _)| at as usize).min();
    let Some(end) = segments.iter().map(|&(at, bytes)| at as usize + bytes.len()).max() else { return Ok(None) };
    let start = first.unwrap_or_default() / page_size() * page_size();
    let len = end.next_multiple_of(page_size()) - start;
    let data: usize = segments.iter().map(|(_, bytes)| bytes.len()).sum();
    if len > 2 * data.next_multiple_of(page_size()) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let file = MemoryFile::new("weir-data", Purpose::Data)?;
    file.set_len(len as u64)?;
    for &(at, bytes) in segments {
        file.write_all_at(bytes, at - start as u64)?;
    }
    file.seal()?;
    Ok(Some(Image { memory, file, start, len }))
}
