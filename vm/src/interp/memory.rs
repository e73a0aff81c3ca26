//! Loads and stores, and instructions on memories and tables that [`bulk`] implements.
//!
//! Loads and stores with one-byte immediates, that is memory 0 and an offset below 128, are inline; others are out of
//! line.

use super::{code, decode};
use crate::records::bulk;
use crate::records::instance::{InstanceRecord, instance_of};
use crate::records::masks::unless_above;
use crate::records::scope::address_mask;
use weir_bytecode::semantics::{Access, access};
use weir_bytecode::{Opcode, Trap};
use weir_contract::InstanceCtx;

/// Returns the memory access of the opcode with code `code`.
const fn access_of(code: u16) -> Access {
    match Opcode::from_code(code) {
        Some(op) => access(op).expect("a load or a store"),
        None => panic!("a load or a store"),
    }
}

/// Memory 0 as the loop uses it.
#[derive(Clone, Copy)]
pub(super) struct View {
    pub base: *mut u8,
    /// Length in bytes.
    pub len: u64,
    /// Mask for a slot that holds an address: the upper half of an address of a 32-bit memory is unspecified.
    pub address_mask: u64,
}

impl View {
    /// Returns the address of the bytes at `address + offset`, computed without wrap-around.
    #[inline(always)]
    pub fn at(self, address: u64, offset: u64, width: u32) -> Result<*mut u8, Trap> {
        let width = u64::from(width);
        let end = (address & self.address_mask).checked_add(offset + width).filter(|&end| end <= self.len);
        let end = end.ok_or(Trap::MemoryOutOfBounds)?;
        let end = unless_above(end, self.len, end, self.len);
        Ok(self.base.wrapping_add(end.wrapping_sub(width) as usize))
    }
}

/// Executes the load `CODE` whose immediates are at `at`, on the address below `sp`. Returns the address of the next
/// instruction.
///
/// # Safety
/// Validated code, in an instance with context `ctx`, whose memory 0 is `view`.
#[inline(always)]
pub(super) unsafe fn load<const CODE: u16, const WORDS: usize>(
    at: *const u8,
    sp: *mut u64,
    view: View,
    ctx: *mut InstanceCtx,
) -> Result<*const u8, Trap> {
    // SAFETY: immediates have two bytes at least; the operand is there.
    unsafe {
        let Some(offset) = short_offset(at) else { return long_load::<CODE, WORDS>(at, sp, ctx) };
        load_at::<CODE, WORDS>(view, offset, sp)?;
        Ok(at.add(2))
    }
}

#[inline(never)]
unsafe fn long_load<const CODE: u16, const WORDS: usize>(
    at: *const u8,
    sp: *mut u64,
    ctx: *mut InstanceCtx,
) -> Result<*const u8, Trap> {
    // SAFETY: the caller's promise.
    unsafe {
        let (view, offset, next) = long_mem_arg(at, ctx);
        load_at::<CODE, WORDS>(view, offset, sp)?;
        Ok(next)
    }
}

#[inline(always)]
unsafe fn load_at<const CODE: u16, const WORDS: usize>(view: View, offset: u64, sp: *mut u64) -> Result<(), Trap> {
    let access = const { access_of(CODE) };
    // SAFETY: the address is below `sp`; `at` has checked that the bytes exist.
    unsafe {
        let top = sp.sub(WORDS);
        let bytes = view.at(*top, offset, access.width)?;
        let raw = match access.width {
            1 => u64::from(*bytes),
            2 => u64::from(u16::from_le_bytes(*bytes.cast())),
            4 => u64::from(u32::from_le_bytes(*bytes.cast())),
            _ => u64::from_le_bytes(*bytes.cast()),
        };
        *top = access.extend(raw);
    }
    Ok(())
}

/// Executes the store `CODE` like [`load`], on the value below `sp` and the address below that.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
pub(super) unsafe fn store<const CODE: u16, const WORDS: usize>(
    at: *const u8,
    sp: *mut u64,
    view: View,
    ctx: *mut InstanceCtx,
) -> Result<*const u8, Trap> {
    // SAFETY: immediates have two bytes at least; the operands are there.
    unsafe {
        let Some(offset) = short_offset(at) else { return long_store::<CODE, WORDS>(at, sp, ctx) };
        store_at::<CODE, WORDS>(view, offset, sp)?;
        Ok(at.add(2))
    }
}

#[inline(never)]
unsafe fn long_store<const CODE: u16, const WORDS: usize>(
    at: *const u8,
    sp: *mut u64,
    ctx: *mut InstanceCtx,
) -> Result<*const u8, Trap> {
    // SAFETY: the caller's promise.
    unsafe {
        let (view, offset, next) = long_mem_arg(at, ctx);
        store_at::<CODE, WORDS>(view, offset, sp)?;
        Ok(next)
    }
}

#[inline(always)]
unsafe fn store_at<const CODE: u16, const WORDS: usize>(view: View, offset: u64, sp: *mut u64) -> Result<(), Trap> {
    let access = const { access_of(CODE) };
    // SAFETY: both operands are below `sp`; `at` has checked that the bytes exist.
    unsafe {
        let bytes = view.at(*sp.sub(2 * WORDS), offset, access.width)?;
        let value = *sp.sub(WORDS);
        match access.width {
            1 => *bytes = value as u8,
            2 => *bytes.cast() = (value as u16).to_le_bytes(),
            4 => *bytes.cast() = (value as u32).to_le_bytes(),
            _ => *bytes.cast() = value.to_le_bytes(),
        }
    }
    Ok(())
}

/// Returns the offset, if alignment and offset have one byte each and no memory index follows the alignment.
#[inline(always)]
unsafe fn short_offset(at: *const u8) -> Option<u64> {
    // SAFETY: immediates have two bytes at least.
    let [align, offset] = unsafe { *at.cast::<[u8; 2]>() };
    (u16::from_le_bytes([align, offset]) & 0x80C0 == 0).then_some(u64::from(offset))
}

/// Decodes a memory argument: the memory, which is `view` if it is memory 0, the offset, and the address of the next
/// byte.
///
/// # Safety
/// Validated code in an instance with context `ctx`.
pub(super) unsafe fn mem_arg(at: *const u8, view: View, ctx: *mut InstanceCtx) -> (View, u64, *const u8) {
    // SAFETY: immediates have two bytes at least.
    unsafe {
        match short_offset(at) {
            Some(offset) => (view, offset, at.add(2)),
            None => long_mem_arg(at, ctx),
        }
    }
}

/// Decodes any memory argument: the memory, the offset, and the address of the next instruction.
///
/// The offset is clamped so that adding an access's width does not overflow: no memory is that long.
unsafe fn long_mem_arg(at: *const u8, ctx: *mut InstanceCtx) -> (View, u64, *const u8) {
    // SAFETY: validated immediates; the instance is live.
    unsafe {
        let (align, at) = decode::u32(at);
        let (memory, at) = if align & 0x40 != 0 { decode::u32(at) } else { (0, at) };
        let (offset, next) = decode::u64(at);
        let memory = &*instance_of(ctx).memory(memory);
        let view = View { base: memory.ctx.base, len: memory.ctx.len, address_mask: address_mask(&memory.ty) };
        (view, offset.min(u64::MAX - 16), next)
    }
}

/// Executes `memory.size`, whose immediate is at `at`. Returns the size, which the caller pushes, and the address after
/// the immediate.
///
/// # Safety
/// Validated code in an instance with context `ctx`.
pub(super) unsafe fn size(at: *const u8, ctx: *mut InstanceCtx) -> (u64, *const u8) {
    // SAFETY: the caller's promise.
    unsafe {
        let (memory, next) = decode::u32(at);
        ((*instance_of(ctx).memory(memory)).pages(), next)
    }
}

/// Executes `memory.grow`, whose immediate is at `at`, on the operand in slot `top`. Returns the address after the
/// immediate, or `None` to end execution for the reason in the store.
///
/// # Safety
/// As for [`size`].
pub(super) unsafe fn grow(at: *const u8, top: *mut u64, ctx: *mut InstanceCtx) -> Option<*const u8> {
    // SAFETY: the caller's promise.
    unsafe {
        let (memory, next) = decode::u32(at);
        let instance = instance_of(ctx);
        let delta = *top & address_mask(&(*instance.memory(memory)).ty);
        *top = bulk::memory_grow(instance, memory, delta)?;
        Some(next)
    }
}

/// Executes `table.grow`, whose immediate is at `at`, on the operands in slots `below` and `top`. Returns the address
/// after the immediate, or `None` as for [`grow`].
///
/// # Safety
/// As for [`size`].
pub(super) unsafe fn grow_table(at: *const u8, below: *mut u64, top: *mut u64, ctx: *mut InstanceCtx) -> Option<*const u8> {
    // SAFETY: the caller's promise.
    unsafe {
        let (table, next) = decode::u32(at);
        let instance = instance_of(ctx);
        let delta = *top & index_mask(instance, table);
        *below = bulk::table_grow(instance, table, *below, delta)?;
        Some(next)
    }
}

/// The instructions that [`execute`] executes.
#[derive(Clone, Copy)]
enum BulkOp {
    TableGet,
    TableSet,
    TableSize,
    TableFill,
    TableCopy,
    TableInit,
    ElemDrop,
    MemoryFill,
    MemoryCopy,
    MemoryInit,
    DataDrop,
}

impl BulkOp {
    const fn of(code: u16) -> Option<BulkOp> {
        Some(match code {
            code::TableGet => BulkOp::TableGet,
            code::TableSet => BulkOp::TableSet,
            code::TableSize => BulkOp::TableSize,
            code::TableFill => BulkOp::TableFill,
            code::TableCopy => BulkOp::TableCopy,
            code::TableInit => BulkOp::TableInit,
            code::ElemDrop => BulkOp::ElemDrop,
            code::MemoryFill => BulkOp::MemoryFill,
            code::MemoryCopy => BulkOp::MemoryCopy,
            code::MemoryInit => BulkOp::MemoryInit,
            code::DataDrop => BulkOp::DataDrop,
            _ => return None,
        })
    }
}

// The loop passes the codes of these instructions to `execute`, and no others.
const _: () = {
    let mut i = 0;
    while i < Opcode::ALL.len() {
        let code = Opcode::ALL[i] as u16;
        let passed = matches!(code, code::TableGet | code::TableSet | code::bulk_after_prefix!());
        assert!(passed == BulkOp::of(code).is_some());
        i += 1;
    }
};

/// Executes the [`BulkOp`] with code `code`. Its immediates are at `at`, its operands below `sp`. Returns the values of
/// both after it.
///
/// # Safety
/// As for [`size`].
#[inline(never)]
pub(super) unsafe fn execute<const WORDS: usize>(
    code: u16,
    at: *const u8,
    sp: *mut u64,
    ctx: *mut InstanceCtx,
) -> Result<(*const u8, *mut u64), Trap> {
    // SAFETY: validated code has the immediates and operands that each of these reads.
    unsafe {
        let instance = instance_of(ctx);
        let op = BulkOp::of(code).expect("the loop passes only codes of these instructions");
        let (first, at) = decode::u32(at);
        let (second, at) = match op {
            BulkOp::MemoryInit | BulkOp::MemoryCopy | BulkOp::TableInit | BulkOp::TableCopy => decode::u32(at),
            BulkOp::TableGet | BulkOp::TableSet | BulkOp::TableSize | BulkOp::TableFill | BulkOp::ElemDrop => (0, at),
            BulkOp::MemoryFill | BulkOp::DataDrop => (0, at),
        };
        let operand = |i: usize| *sp.sub(i * WORDS);
        let sp = match op {
            BulkOp::TableGet => {
                let index = operand(1) & index_mask(instance, first);
                *sp.sub(WORDS) = bulk::table_get(instance, first, index)?;
                sp
            }
            BulkOp::TableSet => {
                bulk::table_set(instance, first, operand(2) & index_mask(instance, first), operand(1))?;
                sp.sub(2 * WORDS)
            }
            BulkOp::TableSize => {
                *sp = (*instance.table(first)).ctx.len;
                sp.add(WORDS)
            }
            BulkOp::TableFill => {
                let mask = index_mask(instance, first);
                bulk::table_fill(instance, first, operand(3) & mask, operand(2), operand(1) & mask)?;
                sp.sub(3 * WORDS)
            }
            BulkOp::TableCopy => {
                let (to, from) = (index_mask(instance, first), index_mask(instance, second));
                // The length has the narrower of the two index types.
                bulk::table_copy(instance, first, second, operand(3) & to, operand(2) & from, operand(1) & to & from)?;
                sp.sub(3 * WORDS)
            }
            BulkOp::TableInit => {
                let to = operand(3) & index_mask(instance, second);
                bulk::table_init(instance, second, first, to, operand(2) as u32, operand(1) as u32)?;
                sp.sub(3 * WORDS)
            }
            BulkOp::ElemDrop => {
                bulk::elem_drop(instance, first);
                sp
            }
            BulkOp::MemoryFill => {
                let mask = memory_mask(instance, first);
                bulk::memory_fill(instance, first, operand(3) & mask, operand(2) as u8, operand(1) & mask)?;
                sp.sub(3 * WORDS)
            }
            BulkOp::MemoryCopy => {
                let (to, from) = (memory_mask(instance, first), memory_mask(instance, second));
                // As for tables.
                bulk::memory_copy(instance, first, second, operand(3) & to, operand(2) & from, operand(1) & to & from)?;
                sp.sub(3 * WORDS)
            }
            BulkOp::MemoryInit => {
                let to = operand(3) & memory_mask(instance, second);
                bulk::memory_init(instance, second, first, to, operand(2) as u32, operand(1) as u32)?;
                sp.sub(3 * WORDS)
            }
            BulkOp::DataDrop => {
                bulk::data_drop(instance, first);
                sp
            }
        };
        Ok((at, sp))
    }
}

fn memory_mask(instance: &InstanceRecord, memory: u32) -> u64 {
    address_mask(&instance.module.bytecode().memories[memory as usize])
}

/// Returns the mask for a slot that holds an index into table `table`.
fn index_mask(instance: &InstanceRecord, table: u32) -> u64 {
    if instance.module.bytecode().tables[table as usize].ty.table64 { u64::MAX } else { u64::from(u32::MAX) }
}
