//! Describes a signature mismatch of `call_indirect`.

use crate::records::instance::InstanceRecord;
use weir_bytecode::instrs::{Imm, Instrs};
use weir_contract::{NULL_SIG, TableEntry};

/// Describes a mismatch at `pc`: the table, the element, its type and the expected type. `None` if there is no such
/// instruction.
///
/// # Safety
/// The instance's code has just trapped there because of the element whose address is in the store's `operand`.
pub(crate) unsafe fn describe(instance: &InstanceRecord, pc: u32) -> Option<Box<str>> {
    let bytecode = instance.module.bytecode();
    let Imm::CallIndirect { ty, table } = Instrs::at(bytecode, pc)?.imm else { return None };
    // SAFETY: the caller's promise: the element is there, and nothing has run since that could have moved it.
    let (index, found) = unsafe {
        let entry = (*(*instance.ctx).store).operand as *const TableEntry;
        let first = (*instance.table(table)).ctx.entries.cast_const();
        ((entry as usize - first as usize) / size_of::<TableEntry>(), (*entry).sig)
    };
    debug_assert_ne!(found, NULL_SIG, "null is another trap");
    let signatures = &instance.module.engine().record().signatures;
    let expected = signatures.get(instance.module.record().sig_ids[ty as usize]);
    Some(format!("expected {expected}, found {} at index {index} of table {table}", signatures.get(found)).into())
}
