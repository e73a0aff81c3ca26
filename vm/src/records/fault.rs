//! Describes a memory access that was out of bounds.

use crate::records::instance::InstanceRecord;
use std::fmt;
use weir_bytecode::instrs::{Imm, Instrs};
use weir_contract::Bounds;

/// The address of a load or store that was out of bounds: a context of the error for [`Trap::MemoryOutOfBounds`](crate::Trap), if page
/// protection decides about the access in compiled code, whichever engine has executed it. Memories of 64 bits, those of an engine with
/// [`guard_regions`](crate::Config::guard_regions) off, and accesses at constant offsets of 32 MiB and more have none.
///
/// ```
/// use weir::{Engine, Instance, MemoryFault, Module, Store};
///
/// let engine = Engine::default();
/// let module = Module::new(&engine, r#"
///     (module
///         (memory 1)
///         (func (export "load") (param i32) (result i32) (i32.load offset=4 (local.get 0))))
/// "#)?;
/// let mut store = Store::new(&engine, ());
/// let instance = Instance::new(&mut store, &module, &[])?;
/// let error = instance.get_typed_func::<u32, u32>(&mut store, "load")?.call(&mut store, 70_000).unwrap_err();
/// let fault = error.downcast_ref::<MemoryFault>().expect("the memory has a guard region");
/// assert_eq!((fault.address(), fault.memory_size()), (70_004, 65_536));
/// # Ok::<(), weir::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryFault {
    address: u64,
    size: u64,
}

impl MemoryFault {
    /// Returns the first address that was accessed outside of the memory.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the size that the memory had, in bytes.
    pub fn memory_size(&self) -> u64 {
        self.size
    }
}

impl fmt::Display for MemoryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MemoryFault { address, size } = self;
        write!(f, "memory fault at wasm address {address:#x} in linear memory of size {size:#x}")
    }
}

impl std::error::Error for MemoryFault {}

/// The offsets from which on wasmtime's code compares addresses, and so has no fault.
const COMPARED_OFFSETS: u64 = 32 << 20;

/// Describes the access of the instruction at `pc`, if it is one for which page protection decides.
///
/// # Safety
/// The instance's code has just trapped there because of the access to the address in the store's `operand`, or to one that its code has
/// compared.
pub(crate) unsafe fn describe(instance: &InstanceRecord, pc: u32) -> Option<MemoryFault> {
    let bytecode = instance.module.bytecode();
    let arg = match Instrs::new(bytecode, pc, u32::MAX).next()?.imm {
        Imm::Mem(arg) | Imm::MemLane(arg, _) => arg,
        _ => return None,
    };
    let guard_regions = instance.module.engine().config().guards_memory();
    if Bounds::of(&bytecode.memories[arg.memory as usize], arg.offset, guard_regions) == Bounds::Explicit
        || arg.offset >= COMPARED_OFFSETS
    {
        return None;
    }
    // SAFETY: the caller's promise; the memory exists as long as its instance.
    unsafe {
        let address = std::mem::take(&mut (*(*instance.ctx).store).operand);
        let memory = &(*instance.memory(arg.memory)).ctx;
        // The first byte of an access may be inside.
        let address = address.checked_sub(memory.base.addr() as u64)?.max(memory.len);
        Some(MemoryFault { address, size: memory.len })
    }
}

/// Records the address of the access of the instruction at `pc` for [`describe`]; `operand` returns the operand at this depth, counted
/// from 1 at the top of the stack.
///
/// # Safety
/// The instance is live.
pub(crate) unsafe fn record(instance: &InstanceRecord, pc: u32, operand: impl FnOnce(usize) -> u64) {
    let bytecode = instance.module.bytecode();
    let Some(instr) = Instrs::new(bytecode, pc, u32::MAX).next() else { return };
    let (Imm::Mem(arg) | Imm::MemLane(arg, _)) = instr.imm else { return };
    let Some((operands, _)) = instr.op.effect().arity() else { return };
    if bytecode.memories[arg.memory as usize].memory64 {
        return;
    }
    // The address is the first operand; the upper half of its slot is unspecified.
    let address = u64::from(operand(operands) as u32) + arg.offset;
    // SAFETY: the caller's promise.
    unsafe {
        let base = (*instance.memory(arg.memory)).ctx.base.addr() as u64;
        (*(*instance.ctx).store).operand = base.wrapping_add(address);
    }
}
