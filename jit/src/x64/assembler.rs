//! The buffer that the encoder and `dynasm!` write machine code to.
//!
//! It takes the place of dynasm's own assemblers, whose buffers take only byte after byte or a slice: the encoder writes the up
//! to 15 bytes of an instruction at once.

use dynasmrt::components::{LabelRegistry, PatchLoc};
use dynasmrt::x64::X64Relocation;
use dynasmrt::{AssemblyOffset, DynamicLabel, DynasmApi, DynasmError, DynasmLabelApi, LabelKind, TargetKind};

/// The size of [`Assembler::room`]: more than an instruction has, with its parts written as whole words.
pub const ROOM: usize = 24;

/// Machine code with dynamic labels. Labels with names do not exist in it.
#[derive(Debug, Default)]
pub struct Assembler {
    /// The code, and room for more, which is initialised so that [`Assembler::room`] needs no `unsafe`.
    code: Vec<u8>,
    /// The number of bytes written.
    len: usize,
    labels: LabelRegistry,
    jumps: Vec<(PatchLoc<X64Relocation>, DynamicLabel)>,
    /// The first error.
    error: Option<DynasmError>,
}

impl Assembler {
    /// No code, with room for this many bytes, and for this many labels and references to them.
    pub fn with_capacity(bytes: usize, labels: usize) -> Assembler {
        Assembler {
            code: vec![0; bytes],
            len: 0,
            labels: LabelRegistry::with_capacity(0, 0, labels),
            jumps: Vec::with_capacity(labels),
            error: None,
        }
    }

    /// No code. It is written over the contents of `buffer`, which grows if needed.
    pub fn with_buffer(buffer: Vec<u8>) -> Assembler {
        Assembler { code: buffer, ..Assembler::default() }
    }

    /// The code so far. Jumps to labels are not resolved.
    pub fn written(&self) -> &[u8] {
        &self.code[..self.len]
    }

    /// Takes the buffer of [`Assembler::with_buffer`]. Nothing is left.
    pub fn take_buffer(&mut self) -> Vec<u8> {
        std::mem::take(self).code
    }

    /// The number of bytes written.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The next bytes, whose contents are unspecified. [`Assembler::advance`] makes them part of the code.
    #[inline(always)]
    pub fn room(&mut self) -> &mut [u8; ROOM] {
        let end = self.len + ROOM;
        if end > self.code.len() {
            self.grow(ROOM);
        }
        (&mut self.code[end - ROOM..end]).try_into().expect("the slice has this length")
    }

    /// Appends the first bytes of [`Assembler::room`], which have been written.
    #[inline(always)]
    pub fn advance(&mut self, bytes: usize) {
        debug_assert!(bytes <= ROOM);
        self.len += bytes;
    }

    /// Makes room for this many bytes.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, bytes: usize) {
        let needed = self.len + bytes;
        self.code.resize(needed.max(2 * self.code.len()), 0);
    }

    /// Appends bytes.
    #[inline]
    pub fn write_all(&mut self, bytes: &[u8]) {
        if self.code.len() - self.len < bytes.len() {
            self.grow(bytes.len());
        }
        self.code[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    /// Writes a 32-bit field in code that is already written.
    #[inline]
    pub fn patch(&mut self, field: usize, value: i32) {
        self.code[..self.len][field..field + 4].copy_from_slice(&value.to_le_bytes());
    }

    /// A label that has no place yet.
    pub fn new_dynamic_label(&mut self) -> DynamicLabel {
        self.labels.new_dynamic_label()
    }

    /// Takes the code, whose jumps to labels are resolved. Nothing is left.
    ///
    /// # Errors
    /// If a label has no place or two, or a jump is too short for its distance.
    pub fn take(&mut self) -> Result<Vec<u8>, DynasmError> {
        let Assembler { mut code, len, labels, jumps, error } = std::mem::take(self);
        code.truncate(len);
        if let Some(error) = error {
            return Err(error);
        }
        for (jump, label) in jumps {
            let target = labels.resolve_dynamic(label)?.0;
            let field = &mut code[jump.range(0)];
            jump.patch(field, 0, target).map_err(|_| DynasmError::ImpossibleRelocation(TargetKind::Dynamic(label)))?;
        }
        Ok(code)
    }

    /// Records a use of a label with a name.
    fn named(&mut self, label: LabelKind) {
        self.error.get_or_insert(DynasmError::UnknownLabel(label));
    }
}

impl Extend<u8> for Assembler {
    fn extend<T: IntoIterator<Item = u8>>(&mut self, bytes: T) {
        bytes.into_iter().for_each(|byte| self.push(byte));
    }
}

impl<'a> Extend<&'a u8> for Assembler {
    fn extend<T: IntoIterator<Item = &'a u8>>(&mut self, bytes: T) {
        bytes.into_iter().for_each(|&byte| self.push(byte));
    }
}

impl DynasmApi for Assembler {
    fn offset(&self) -> AssemblyOffset {
        AssemblyOffset(self.len)
    }

    fn push(&mut self, byte: u8) {
        self.room()[0] = byte;
        self.len += 1;
    }

    fn align(&mut self, alignment: usize, with: u8) {
        while !self.len.is_multiple_of(alignment) {
            self.push(with);
        }
    }
}

impl DynasmLabelApi for Assembler {
    type Relocation = X64Relocation;

    fn local_label(&mut self, name: &'static str) {
        self.named(LabelKind::Local(name));
    }

    fn global_label(&mut self, name: &'static str) {
        self.named(LabelKind::Global(name));
    }

    fn dynamic_label(&mut self, label: DynamicLabel) {
        if let Err(error) = self.labels.define_dynamic(label, AssemblyOffset(self.len)) {
            self.error.get_or_insert(error);
        }
    }

    fn forward_relocation(&mut self, name: &'static str, _: isize, _: u8, _: u8, _: X64Relocation) {
        self.named(LabelKind::Local(name));
    }

    fn backward_relocation(&mut self, name: &'static str, _: isize, _: u8, _: u8, _: X64Relocation) {
        self.named(LabelKind::Local(name));
    }

    fn global_relocation(&mut self, name: &'static str, _: isize, _: u8, _: u8, _: X64Relocation) {
        self.named(LabelKind::Global(name));
    }

    fn dynamic_relocation(&mut self, label: DynamicLabel, target_offset: isize, field: u8, base: u8, kind: X64Relocation) {
        self.jumps.push((PatchLoc::new(self.offset(), target_offset, field, base, kind), label));
    }

    fn value_relocation(&mut self, value: usize, field: u8, base: u8, kind: X64Relocation) {
        let place = PatchLoc::new(self.offset(), 0, field, base, kind);
        if place.patch(&mut self.code[place.range(0)], 0, value).is_err() {
            self.error.get_or_insert(DynasmError::ImpossibleRelocation(TargetKind::Value(value)));
        }
    }
}
