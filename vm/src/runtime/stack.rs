//! A stack: the value stack that interpreted frames live on, and the limits of the native stack beside it.

use crate::{Result, error::Context};
use memmap2::{MmapOptions, MmapRaw};
use std::ptr;
use weir_jit::contract::{Dispatch, OVERFLOW_SLOTS, StackCtx, VALUE_STACK_RESERVE};

/// A stack of a store.
#[repr(C)]
pub(crate) struct StackRecord {
    pub ctx: StackCtx,
    /// What `ctx.value_sp` and `ctx.value_limit` point into.
    _values: MmapRaw,
    /// What `ctx.overflow` points to.
    _overflow: MmapRaw,
}

impl StackRecord {
    /// A stack whose frames may fill `bytes` of values; [`VALUE_STACK_RESERVE`] slots come on top.
    ///
    /// # Errors
    /// No address space.
    pub fn new(bytes: usize) -> Result<StackRecord> {
        let slots = bytes / size_of::<u64>();
        let values = map_slots(slots.saturating_add(VALUE_STACK_RESERVE)).context("mapping the value stack")?;
        let overflow = map_slots(OVERFLOW_SLOTS)?;
        let base = values.as_mut_ptr().cast::<u64>();
        let ctx = StackCtx {
            native_limit: 0,
            value_sp: base,
            value_limit: base.wrapping_add(slots),
            boundary: 0,
            overflow: overflow.as_mut_ptr().cast(),
            dispatch: Dispatch { code: ptr::null(), args: ptr::null_mut(), instance: ptr::null_mut() },
        };
        Ok(StackRecord { ctx, _values: values, _overflow: overflow })
    }
}

/// Zeroed slots that take memory only once they are touched.
fn map_slots(slots: usize) -> std::io::Result<MmapRaw> {
    let bytes = slots.saturating_mul(size_of::<u64>());
    Ok(MmapOptions::new().len(bytes).no_reserve_swap().map_anon()?.into())
}
