//! Describes a memory access that was out of bounds.

use crate::records::instance::InstanceRecord;
use crate::records::memory::byte_len;
use crate::sys::mapping::page_size;
use std::fmt;
use weir_bytecode::instrs::{Imm, Instrs};
use weir_contract::Bounds;

/// The address of a load or store that was out of bounds: a context of the error for [`Trap::MemoryOutOfBounds`](crate::Trap), where page
/// protection decides about the access in wasmtime's code, whichever engine has executed it. So most accesses to 32-bit memories have one, accesses
/// to 64-bit memories if the memory has a maximum of 4 GiB at most or the address is not beyond the memory's end, and none without
/// [`guard_regions`](crate::Config::guard_regions).
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

/// An access of `width` bytes at an address plus a constant `offset`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub memory: u32,
    pub offset: u64,
    pub width: u64,
}

impl Access {
    /// Decodes the access of the instruction at `pc`, if it is a load or a store. Returns the number of its operands, too, of which the first is the
    /// address.
    fn at(instance: &InstanceRecord, pc: u32) -> Option<(Access, usize)> {
        let instr = Instrs::at(instance.module.bytecode(), pc)?;
        let (Imm::Mem(arg) | Imm::MemLane(arg, _)) = instr.imm else { return None };
        let access = Access { memory: arg.memory, offset: arg.offset, width: 1 << instr.op.access_log2() };
        Some((access, instr.op.effect().arity()?.0))
    }

    /// Records for [`describe`] that the access is out of bounds at `start`, the address plus the offset, which may have wrapped around.
    ///
    /// # Safety
    /// The instance is live.
    pub unsafe fn record(self, instance: &InstanceRecord, start: u64) {
        // SAFETY: the caller's promise; the memory exists as long as its instance.
        unsafe {
            let base = (*instance.memory(self.memory)).ctx.base.addr() as u64;
            (*(*instance.ctx).store).operand = match self.bounds(instance) {
                Bounds::Guard => base.wrapping_add(start),
                Bounds::Explicit => start.wrapping_add(self.width),
            };
        }
    }

    /// How compiled code checks the access.
    fn bounds(self, instance: &InstanceRecord) -> Bounds {
        let guard_regions = instance.module.engine().config().guards_memory();
        Bounds::of(&instance.module.bytecode().memories[self.memory as usize], self.offset, guard_regions)
    }

    /// Returns whether page protection refuses the access at `start` in wasmtime's code, to a memory of `len` bytes. That code checks as little as the
    /// settings allow (`bounds_checks.rs` of its crate `wasmtime-internal-cranelift`): nothing; or that the access ends within the reservation, if
    /// the memory cannot outgrow it; or that the address is in the memory, if the guard region is larger than the rest of the access.
    fn is_refused_by_pages(self, instance: &InstanceRecord, start: u64, len: u64) -> bool {
        let (ty, config) = (&instance.module.bytecode().memories[self.memory as usize], instance.module.engine().config());
        let Some(reach) = self.offset.checked_add(self.width) else { return false };
        let bytes = |pages: u64| byte_len(ty, pages).map_or(u64::MAX, |bytes| bytes as u64);
        let (min, max) = (bytes(ty.limits.min), ty.limits.max.map_or(if ty.memory64 { u64::MAX } else { 1 << 32 }, bytes));
        let has_pages = config.signals_based_traps && config.guard_regions && ty.page_size() as usize >= page_size();
        if reach > max || !has_pages {
            return false;
        }
        let (reservation, guard) = (config.reserved_bytes(), config.guard_bytes());
        let address = start.wrapping_sub(self.offset);
        let elided = !ty.memory64 && u64::from(u32::MAX) <= reservation.saturating_add(guard).saturating_sub(reach);
        let stays = !config.memory_may_move || min == max || max <= reservation;
        if elided {
            true
        } else if min <= reservation && stays && reach <= reservation {
            address <= reservation - reach
        } else {
            reach > 1 && reach <= guard && address <= len
        }
    }
}

/// Describes the access of the instruction at `pc`, if page protection decides about it in wasmtime.
///
/// # Safety
/// The instance's code has just trapped there because of the access to which the store's `operand` belongs.
pub(crate) unsafe fn describe(instance: &InstanceRecord, pc: u32) -> Option<MemoryFault> {
    let (access, _) = Access::at(instance, pc)?;
    // SAFETY: the caller's promise; the memory exists as long as its instance.
    unsafe {
        let operand = (*(*instance.ctx).store).operand;
        let memory = &(*instance.memory(access.memory)).ctx;
        let start = match access.bounds(instance) {
            Bounds::Guard => operand.checked_sub(memory.base.addr() as u64)?,
            Bounds::Explicit => operand.wrapping_sub(access.width),
        };
        // The first byte of an access may be inside.
        let fault = MemoryFault { address: start.max(memory.len), size: memory.len };
        access.is_refused_by_pages(instance, start, memory.len).then_some(fault)
    }
}

/// Records the address of the access of the instruction at `pc` for [`describe`]; `operand` returns the operand at this depth, counted
/// from 1 at the top of the stack.
///
/// # Safety
/// The instance is live.
pub(crate) unsafe fn record(instance: &InstanceRecord, pc: u32, operand: impl FnOnce(usize) -> u64) {
    let Some((access, operands)) = Access::at(instance, pc) else { return };
    let address = match instance.module.bytecode().memories[access.memory as usize].memory64 {
        true => operand(operands),
        // The upper half of the slot is unspecified.
        false => u64::from(operand(operands) as u32),
    };
    // SAFETY: the caller's promise.
    unsafe { access.record(instance, address.wrapping_add(access.offset)) };
}
