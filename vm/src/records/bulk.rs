//! Instructions that the engines leave to the runtime: they grow, fill, copy and initialise memories and tables. The
//! interpreter and the helpers of compiled code call these functions.
//!
//! Bounds are checked first, then fuel is charged, then the instruction has its effect: a trap changes nothing. Without a
//! [table of costs](crate::Config::operator_cost), length / 64 units are charged, and nothing for growing.
//!
//! A deadline that has been reached ends the guest before the effect, too: a function may have a million of these instructions in a row, each
//! for gigabytes, and polls in loops and at calls only. Compiled code does not look for copies and fills of fewer than 64 bytes, which take
//! no longer than other instructions.
//!
//! # Safety
//! All functions are unsafe for one reason: the instance must belong to a live store that no other thread uses, and no
//! reference into its memories and tables may be held. Indices are those of validated code.

use crate::Error;
use crate::records::failure::Failure;
use crate::records::instance::InstanceRecord;
use crate::records::masks::unless_above;
use crate::records::memory::MemoryRecord;
use crate::records::store::{self, StoreRecord, store_of};
use std::cell::Cell;
use std::ptr;
use std::slice;
use weir_bytecode::Trap;
use weir_bytecode::cost::VariableOperatorCost;

/// The bytes or elements that cost one unit of fuel. Fewer cost nothing.
pub(crate) const BYTES_OF_UNIT: u64 = 64;

/// The most that an instruction costs: what compiled code subtracts from the rest, without a test, does not let it overflow.
const MAX_COST: i64 = 1 << 62;

/// The result of a failed `grow`: -1 in either index type.
pub(crate) const GROW_FAILED: u64 = u64::MAX;

/// `memory.grow`: returns the previous size in pages, or [`GROW_FAILED`]; `None` to end execution for the reason in the
/// store.
pub(crate) unsafe fn memory_grow(instance: &InstanceRecord, memory: u32, delta: u64) -> Option<u64> {
    // SAFETY: see the head of this file; a limiter cannot reach the store.
    unsafe {
        let store = store_of(instance.ctx);
        charge_growth(instance, delta, |costs| costs.memory_grow_per_page)?;
        let memory = &mut *instance.memory(memory);
        let grown = memory.grow(delta, StoreRecord::asked(store, (*store).fiber));
        grow_result(store, grown)
    }
}

/// Converts the result of growing. An error of the limiter is stored in the store.
unsafe fn grow_result(store: *mut StoreRecord, grown: Result<Option<u64>, Error>) -> Option<u64> {
    match grown {
        Ok(old) => Some(old.unwrap_or(GROW_FAILED)),
        Err(error) => {
            // SAFETY: see the head of this file.
            unsafe { (*store).failure = Some(Failure::Host(error)) };
            None
        }
    }
}

/// `memory.fill`
pub(crate) unsafe fn memory_fill(instance: &InstanceRecord, memory: u32, to: u64, byte: u8, len: u64) -> Result<(), Trap> {
    // SAFETY: see the head of this file; the range has been checked.
    unsafe {
        let to = bytes(instance.memory(memory), to, len)?;
        charge(instance, len, |costs| costs.memory_fill_per_byte)?;
        ptr::write_bytes(to, byte, len as usize);
    }
    Ok(())
}

/// `memory.copy`, from memory `src` to memory `dst`.
pub(crate) unsafe fn memory_copy(
    instance: &InstanceRecord,
    dst: u32,
    src: u32,
    to: u64,
    from: u64,
    len: u64,
) -> Result<(), Trap> {
    // SAFETY: see the head of this file; both ranges have been checked, and may overlap.
    unsafe {
        let to = bytes(instance.memory(dst), to, len)?;
        let from = bytes(instance.memory(src), from, len)?;
        charge(instance, len, |costs| costs.memory_copy_per_byte)?;
        ptr::copy(from, to, len as usize);
    }
    Ok(())
}

/// The most bytes from an end of fewer than 64 bytes at which [`copy_short`] and [`fill_short`] access them.
const MARGIN: u64 = 32;

/// The greatest length that [`copy_short`] and [`fill_short`] are for. For longer ones the checks before them do not matter.
pub(crate) const SHORT: u64 = 1 << 10;

/// `memory.copy` of at most [`SHORT`] bytes within memory 0, without charge. Returns false without any effect if a range is not within the
/// memory, or is close to its ends. Most copies are of less than 64 bytes, which a call of the C library would take longer than.
#[inline(always)]
pub(crate) unsafe fn copy_short(instance: &InstanceRecord, to: u64, from: u64, len: u64) -> bool {
    // SAFETY: see the head of this file; both ranges have been checked. They may overlap, so all loads come first.
    unsafe {
        let (Some(to), Some(from)) = (short_range(instance, to, len), short_range(instance, from, len)) else { return false };
        match len {
            64.. => ptr::copy(from, to, len as usize),
            32.. => copy_long_ends(to, from, len),
            16.. => copy_ends::<u128>(to, from, len),
            8.. => copy_ends::<u64>(to, from, len),
            4.. => copy_ends::<u32>(to, from, len),
            2.. => copy_ends::<u16>(to, from, len),
            1 => *to = *from,
            0 => (),
        }
    }
    true
}

/// `memory.fill` in memory 0, as [`copy_short`].
#[inline(always)]
pub(crate) unsafe fn fill_short(instance: &InstanceRecord, to: u64, byte: u8, len: u64) -> bool {
    let bytes = u128::from_ne_bytes([byte; 16]);
    // SAFETY: see the head of this file; the range has been checked.
    unsafe {
        let Some(to) = short_range(instance, to, len) else { return false };
        match len {
            64.. => ptr::write_bytes(to, byte, len as usize),
            32.. => write_ends(to, len, [bytes; 2]),
            16.. => write_ends(to, len, bytes),
            8.. => write_ends(to, len, bytes as u64),
            4.. => write_ends(to, len, bytes as u32),
            2.. => write_ends(to, len, bytes as u16),
            1 => *to = byte,
            0 => (),
        }
    }
    true
}

/// Returns the address of `len` bytes of memory 0, unless it has not [`MARGIN`] bytes more on both sides. If the processor mispredicts which
/// accesses a length takes, they are within the memory, too.
#[inline(always)]
unsafe fn short_range(instance: &InstanceRecord, at: u64, len: u64) -> Option<*mut u8> {
    // SAFETY: see the head of this file.
    let (base, size) = unsafe { instance.scope.memory() };
    let (before, limit) = (at.wrapping_sub(MARGIN), size.checked_sub(2 * MARGIN + len)?);
    (before <= limit).then(|| base.wrapping_add((MARGIN + unless_above(before, limit, before, 0)) as usize))
}

/// Copies the first and the last `T` of `len` bytes, which overlap if `len` is less than two of them.
#[inline(always)]
unsafe fn copy_ends<T>(to: *mut u8, from: *const u8, len: u64) {
    // SAFETY: the caller's ranges have these bytes.
    unsafe {
        let first = from.cast::<T>().read_unaligned();
        let last = end::<T>(from.cast_mut(), len).read_unaligned();
        to.cast::<T>().write_unaligned(first);
        end::<T>(to, len).write_unaligned(last);
    }
}

/// Copies the first and the last 32 bytes of `len`.
#[inline(always)]
unsafe fn copy_long_ends(to: *mut u8, from: *const u8, len: u64) {
    // SAFETY: the caller's ranges have these bytes. Arrays would pass through the stack.
    unsafe {
        let (to_last, from_last) =
            (end::<[u128; 2]>(to, len).cast::<u128>(), end::<[u128; 2]>(from.cast_mut(), len).cast::<u128>());
        let (to, from) = (to.cast::<u128>(), from.cast::<u128>());
        let first = (from.read_unaligned(), from.add(1).read_unaligned());
        let last = (from_last.read_unaligned(), from_last.add(1).read_unaligned());
        to.write_unaligned(first.0);
        to.add(1).write_unaligned(first.1);
        to_last.write_unaligned(last.0);
        to_last.add(1).write_unaligned(last.1);
    }
}

/// Writes `value` at the beginning of `len` bytes and at their end.
#[inline(always)]
unsafe fn write_ends<T: Copy>(to: *mut u8, len: u64, value: T) {
    // SAFETY: the caller's range has these bytes.
    unsafe {
        to.cast::<T>().write_unaligned(value);
        end::<T>(to, len).write_unaligned(value);
    }
}

/// The address of the last `T` of `len` bytes.
#[inline(always)]
fn end<T>(at: *mut u8, len: u64) -> *mut T {
    at.wrapping_add(len as usize - size_of::<T>()).cast()
}

/// `memory.init`, from data segment `segment`.
pub(crate) unsafe fn memory_init(
    instance: &InstanceRecord,
    memory: u32,
    segment: u32,
    to: u64,
    from: u32,
    len: u32,
) -> Result<(), Trap> {
    // SAFETY: see the head of this file; the ranges have been checked, and no memory overlaps the module.
    unsafe {
        let (to, from) = data_ranges(instance, memory, segment, to, from, len)?;
        charge(instance, u64::from(len), |costs| costs.memory_init_per_byte)?;
        ptr::copy_nonoverlapping(from.as_ptr(), to, from.len());
    }
    Ok(())
}

/// Writes a whole active data segment. Instantiation is free of charge.
pub(crate) unsafe fn write_data(instance: &InstanceRecord, memory: u32, segment: u32, to: u64, len: u32) -> Result<(), Trap> {
    let bytecode = instance.module.bytecode();
    let range = &bytecode.data[segment as usize].range;
    debug_assert_eq!(range.len(), len as usize);
    // SAFETY: see the head of this file. Nothing else refers to the memory while the segment is written.
    let to = unsafe {
        let to = bytes(instance.memory(memory), to, u64::from(len))?;
        slice::from_raw_parts_mut(to, range.len())
    };
    bytecode.bytes.copy(range.start as usize..range.end as usize, to)?;
    Ok(())
}

/// Returns the destination in a memory and the source in a data segment of `len` bytes.
unsafe fn data_ranges(
    instance: &InstanceRecord,
    memory: u32,
    segment: u32,
    to: u64,
    from: u32,
    len: u32,
) -> Result<(*mut u8, &[u8]), Trap> {
    let bytecode = instance.module.bytecode();
    let range = &bytecode.data[segment as usize].range;
    let live = instance.data_live[segment as usize].get();
    // A segment that was dropped is empty.
    let data_len = if live { range.end - range.start } else { 0 };
    if u64::from(from) + u64::from(len) > u64::from(data_len) {
        return Err(Trap::MemoryOutOfBounds);
    }
    let start = (range.start + from) as usize;
    // SAFETY: see the head of this file.
    let to = unsafe { bytes(instance.memory(memory), to, u64::from(len))? };
    Ok((to, bytecode.bytes.try_part(start..start + len as usize)?))
}

/// `data.drop`
pub(crate) fn data_drop(instance: &InstanceRecord, segment: u32) {
    instance.data_live[segment as usize].set(false);
}

/// `table.get`
pub(crate) unsafe fn table_get(instance: &InstanceRecord, table: u32, index: u64) -> Result<u64, Trap> {
    // SAFETY: see the head of this file.
    unsafe { (*instance.table(table)).get(index) }
}

/// `table.set`
pub(crate) unsafe fn table_set(instance: &InstanceRecord, table: u32, index: u64, reference: u64) -> Result<(), Trap> {
    // SAFETY: see the head of this file.
    unsafe { (*instance.table(table)).set(index, reference) }
}

/// `table.grow`: returns the previous size, or [`GROW_FAILED`]; `None` as for [`memory_grow`].
pub(crate) unsafe fn table_grow(instance: &InstanceRecord, table: u32, reference: u64, delta: u64) -> Option<u64> {
    // SAFETY: see the head of this file; a limiter cannot reach the store.
    unsafe {
        let store = store_of(instance.ctx);
        charge_growth(instance, delta, |costs| costs.table_grow_per_element)?;
        let table = &mut *instance.table(table);
        let grown = table.grow(delta, reference, StoreRecord::asked(store, (*store).fiber));
        grow_result(store, grown)
    }
}

/// `table.fill`
pub(crate) unsafe fn table_fill(instance: &InstanceRecord, table: u32, index: u64, reference: u64, len: u64) -> Result<(), Trap> {
    // SAFETY: see the head of this file.
    unsafe {
        let table = &mut *instance.table(table);
        table.range(index, len)?;
        charge(instance, len, |costs| costs.table_fill_per_element)?;
        table.fill(index, reference, len)
    }
}

/// `table.copy`, from table `src` to table `dst`.
pub(crate) unsafe fn table_copy(instance: &InstanceRecord, dst: u32, src: u32, to: u64, from: u64, len: u64) -> Result<(), Trap> {
    // SAFETY: see the head of this file; both ranges have been checked, and may overlap. The element types are equal
    // or both of functions, so an entry means the same in both.
    unsafe {
        let to = (*instance.table(dst)).range(to, len)?;
        let from = (*instance.table(src)).range(from, len)?;
        charge(instance, len, |costs| costs.table_copy_per_element)?;
        ptr::copy(from, to, len as usize);
    }
    Ok(())
}

/// `table.init`, from element segment `segment`.
pub(crate) unsafe fn table_init(
    instance: &InstanceRecord,
    table: u32,
    segment: u32,
    to: u64,
    from: u32,
    len: u32,
) -> Result<(), Trap> {
    // SAFETY: see the head of this file.
    unsafe {
        let elems = elems(instance, segment).get(from as usize..(from as usize).saturating_add(len as usize));
        let elems = elems.ok_or(Trap::TableOutOfBounds)?;
        let table = &mut *instance.table(table);
        table.range(to, u64::from(len))?;
        charge(instance, u64::from(len), |costs| costs.table_init_per_element)?;
        table.write(to, elems.iter().map(Cell::get))
    }
}

/// Returns the elements of a segment, none if it was dropped.
fn elems(instance: &InstanceRecord, segment: u32) -> &[Cell<u64>] {
    match (instance.elems.get(), instance.elem_live[segment as usize].get()) {
        (Some(elems), true) => &elems[segment as usize],
        _ => &[],
    }
}

/// `elem.drop`
pub(crate) fn elem_drop(instance: &InstanceRecord, segment: u32) {
    instance.elem_live[segment as usize].set(false);
}

/// `ref.func`: returns the reference to function `func`.
#[inline]
pub(crate) fn ref_func(instance: &InstanceRecord, func: u32) -> u64 {
    instance.func_ref(func) as u64
}

/// Returns the address of `len` bytes at `at`, all of which exist.
pub(crate) unsafe fn bytes(memory: *mut MemoryRecord, at: u64, len: u64) -> Result<*mut u8, Trap> {
    // SAFETY: see the head of this file.
    let ctx = unsafe { &(*memory).ctx };
    match at.checked_add(len) {
        Some(end) if end <= ctx.len => Ok(ctx.base.wrapping_add(unless_above(end, ctx.len, at, 0) as usize)),
        _ => Err(Trap::MemoryOutOfBounds),
    }
}

/// Ends the guest at its deadline, and charges for an operation on `len` bytes or elements, of which each costs what the embedder's table
/// has for it. Such an operation may take long, so a guest on credit may overdraw only a little for it.
unsafe fn charge(instance: &InstanceRecord, len: u64, each: fn(&VariableOperatorCost) -> u8) -> Result<(), Trap> {
    // SAFETY: see the head of this file.
    let record = unsafe { &mut *store_of(instance.ctx) };
    let config = record.engine.config();
    // A callback is asked at the next poll: it may suspend the guest, which is not possible here.
    if config.polls() && record.on_deadline.is_none() && record.is_due() {
        return Err(Trap::Interrupt);
    }
    if !config.consume_fuel {
        return Ok(());
    }
    let cost = match &config.costs {
        None => len / BYTES_OF_UNIT,
        Some(costs) => len.saturating_mul(each(&costs.variable).into()),
    };
    store::charge(&mut record.ctx.fuel, i64::try_from(cost).unwrap_or(i64::MAX).min(MAX_COST))?;
    if record.is_overdrawn_much() { Err(Trap::OutOfFuel) } else { Ok(()) }
}

/// Charges for growing by `delta` pages or elements, if the embedder has a table of costs. `None` if there is not enough fuel, which is then
/// the reason in the store.
unsafe fn charge_growth(instance: &InstanceRecord, delta: u64, each: fn(&VariableOperatorCost) -> u8) -> Option<()> {
    // SAFETY: see the head of this file.
    unsafe {
        let store = store_of(instance.ctx);
        if (*store).engine.config().costs.is_some()
            && let Err(trap) = charge(instance, delta, each)
        {
            (*store).failure = Some(Failure::trap(trap));
            return None;
        }
    }
    Some(())
}
