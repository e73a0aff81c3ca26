//! A checker of finished machine code: a second opinion that shares nothing with the compilers.
//!
//! [`check`] disassembles the code of one function from its entries, and proves by abstract interpretation, for every path:
//!
//! - **Loads and stores** are of a linear memory, at an index that cannot leave the memory and its guard region, or that was compared with
//!   the memory's length; of the function's own native or value frame, but not the return address or the saved frame pointer; of
//!   a field that the contract lets code read or write; of a table's element whose index was compared with the table's length; of
//!   a function reference that is not null; of the function's own bytes; of its own counters.
//! - **Accesses relative to `gs`** come after a comparison which shows that its base is that of memory 0. Calls preserve the base, by the
//!   contract, and the function does not change it.
//! - **Branches** lead to an instruction of the same function, which overlaps no other one; to a function of the module, through its cell;
//!   to a helper; to an entry of a jump table whose index is within it; to the entry of a table's element or a function reference whose
//!   signature and null were checked, with its instance in the pinned register; or back to the caller.
//! - **Conventions** hold where code is left: the stack pointer, the preserved registers, `value_sp` and the instance are what the contract
//!   says, references are passed where references are expected, and calls come after a check of the stack's limit.
//!
//! The proof is by induction: every entry and every return of another function is assumed to obey the contract, and this function is
//! shown to do so. It trusts the disassembler, the contract (layouts, and the code of helpers), and the validation of the
//! module, from which it has types. It does not cover the interpreter in assembly, and host code; nor does it show that the code
//! computes what the module says.
//!
//! [`check_stub`] proves that the stubs, handwritten code between the engines, obey the contract.
//!
//! What it cannot prove it refuses.

mod access;
mod analyse;
mod branch;
mod contract;
mod fault;
mod flags;
mod operands;
mod state;
mod stub;
mod transfer;
mod value;

pub use access::Kind;
pub use analyse::{Statistics, check};
pub use branch::Target;
pub use fault::{Fault, Rule};
pub use stub::{Listed, check_stub, instruction};

use weir_bytecode::Module;
use weir_contract::Entry;
use weir_contract::code::{Backend, Inlining, Landing, Reloc, TrapEntry};

/// The code of a function with the tables that the contract defines for it.
#[derive(Clone, Copy, Debug)]
pub struct Function<'f> {
    /// The module.
    pub module: &'f Module,
    /// The function.
    pub func: u32,
    /// How the code is entered.
    pub entry: Entry,
    /// The compiler.
    pub backend: Backend,
    /// The code.
    pub code: &'f [u8],
    /// Its relocations, ascending.
    pub relocs: &'f [Reloc],
    /// Its trap sites, ascending.
    pub traps: &'f [TrapEntry],
    /// The return offsets of its calls with the offsets of their instructions in the module, ascending.
    pub calls: &'f [(u32, u32)],
    /// The calls around those that were inlined.
    pub inlining: &'f Inlining,
    /// Its entries at loops.
    pub headers: &'f [(u32, u32)],
    /// Its landings, ascending.
    pub landings: &'f [Landing],
    /// How it was compiled.
    pub options: Options<'f>,
}

/// What the code relies on.
#[derive(Clone, Copy, Debug)]
pub struct Options<'f> {
    /// Memories have guard regions.
    pub guard_regions: bool,
    /// Faults become traps.
    pub signals: bool,
    /// Memories have the address space of guard regions, whether or not their faults become traps.
    pub reserves_guards: bool,
    /// Accesses to memory 0 may be relative to `gs`.
    pub segment: bool,
    /// An index that was compared with a length, or with the number of a jump table's entries, must be forced to a harmless value before it
    /// is used, without a branch, against speculation: 0, or the length of a memory. What an access reads up to 32 bytes before a memory
    /// is harmless, because memories begin after inaccessible address space.
    pub masks: bool,
    /// The identities of the module's types, if the code has them as constants.
    pub sig_ids: &'f [u32],
}
