//! Machine code as the compiler returns it and a later process finds it.

use crate::code::{Backend, FrameLayout, Inlining, Landing, Reloc, RelocTarget};
use crate::profile::CounterCounts;
use crate::tables::{Rows, Tables};
use weir_bytecode::Module;
use weir_bytecode::stored::{Damaged, Reader, Stored};

/// Machine code that is not placed in memory yet. Position-independent except for its relocations. It refers to the bytes as which the
/// compiler returns it and a later process finds it.
#[derive(Clone, Debug)]
pub struct UnplacedCode<'b> {
    /// The back end that made it.
    pub backend: Backend,
    /// The code, entered by calls at its first byte and at loops by [`Tables::header`]; 16-byte alignment is assumed.
    pub code: &'b [u8],
    /// The function's counters, which the code may count in.
    pub counters: CounterCounts,
    /// Fields to patch, ascending.
    pub relocs: Rows<'b, Reloc>,
    /// The landings of handlers, ascending: see [`Landing`].
    pub landings: Box<[Landing]>,
    /// The layout of the native frame.
    pub frame: FrameLayout,
    /// The traps and calls that are in code of inlined functions.
    pub inlining: Inlining,
    /// Its [`Tables`].
    pub tables: &'b [u8],
}

impl<'b> UnplacedCode<'b> {
    /// Reads code of a function of `module` that takes all of the bytes.
    ///
    /// # Errors
    /// [`Damaged`]; also if a table leads out of the code or of the module.
    pub fn read(bytes: &'b [u8], module: &Module) -> Result<UnplacedCode<'b>, Damaged> {
        let mut from = Reader::new(bytes);
        let backend = Stored::read(&mut from)?;
        let len = u32::read(&mut from)?;
        let unplaced = UnplacedCode {
            backend,
            code: from.take(len as usize)?,
            counters: Stored::read(&mut from)?,
            relocs: Rows::read(&mut from)?,
            landings: Stored::read(&mut from)?,
            frame: Stored::read(&mut from)?,
            inlining: Stored::read(&mut from)?,
            tables: from.rest(),
        };
        if unplaced.is_within(module) { Ok(unplaced) } else { Err(Damaged) }
    }

    /// Whether no table leads out of the code or of the module.
    fn is_within(&self, module: &Module) -> bool {
        let end = self.code.len();
        let field = |reloc: Reloc| {
            let is_index = match reloc.target {
                RelocTarget::Cell | RelocTarget::Ticks(_) | RelocTarget::Counters(_) => {
                    (module.imported_funcs..module.funcs.len() as u32).contains(&reloc.index)
                }
                RelocTarget::Signature => (reloc.index as usize) < module.types.len(),
            };
            is_index && reloc.offset as usize + size_of::<i32>() <= end
        };
        end > 0
            && self.relocs.all(field)
            && self.landings.iter().all(|landing| (landing.offset as usize) < end)
            && self.inlining.has_chains()
            && Tables::are_within(self.tables, end, &self.frame)
    }
}
