//! A stack: the value stack that holds interpreted frames, and the limits of the native stack beside it.

use super::pool::Pool;
use crate::Result;
use crate::records::error::Context;
#[cfg(feature = "async")]
use crate::sys::coroutine::Stack;
use crate::sys::mapping::{self, Mapping, page_size};
use crate::sys::thread;
use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};
use weir_contract::{Dispatch, NATIVE_STACK_RESERVE, OVERFLOW_SLOTS, StackCtx, VALUE_STACK_RESERVE};

/// Maximum length of the value stack, in words of 8 bytes.
pub(crate) const MAX_VALUE_WORDS: usize = 1 << 31;

/// A stack of a store.
#[repr(C)]
pub(crate) struct StackRecord {
    pub ctx: StackCtx,
    /// The lowest slot for values, of the value stack to which `ctx` refers.
    pub base: *mut u64,
    /// The overflow slots, then the values, for all that runs on no fiber.
    slots: Slots,
}

/// Memory for a value stack: a piece of a mapping for several. A process may have 65,530 mappings, so that a store has none of its own.
#[derive(Debug)]
struct Slots {
    /// In bytes of the mapping.
    range: Range<usize>,
    mapping: Arc<Mapping>,
}

/// The mapping of which new stacks are pieces.
#[derive(Debug, Default)]
struct Source {
    /// The part from which no stack was taken yet.
    rest: Option<Slots>,
    /// Pieces of mappings for several stacks that are free again. They take no memory.
    free: Vec<Slots>,
    /// The number of stacks for which the next one has room.
    next: usize,
}

/// Maximum number of stacks in a mapping.
const STACKS_PER_MAPPING: usize = 64;
/// Maximum size of a stack that is not alone in a mapping.
const MAX_SHARING: usize = 8 << 20;

/// Value stacks of an engine's dropped stores. Mapping and unmapping one would be half of the cost of a small instance.
/// Their old contents have no meaning: a slot is never read before it is written.
#[derive(Debug, Default)]
pub(crate) struct Stacks {
    /// One that keeps all its memory: returning memory to the system costs more than all other work here.
    whole: Pool<Slots, 1>,
    /// Some that keep [`KEPT_BYTES`] of theirs.
    trimmed: Pool<Slots, KEPT_STACKS>,
    source: Mutex<Source>,
}

/// Maximum number of trimmed stacks.
const KEPT_STACKS: usize = 16;
/// Bytes that a trimmed stack keeps in memory.
const KEPT_BYTES: usize = 64 << 10;
/// Maximum size of a stack that is kept whole.
const KEPT_WHOLE: usize = 8 << 20;

/// Stacks of finished fibers, for new ones. Making a stack takes three system calls.
#[cfg(feature = "async")]
#[derive(Debug, Default)]
pub(crate) struct FiberStacks {
    /// Some that keep all their memory: an asynchronous call that is not suspended takes less time than returning memory to the system.
    whole: Pool<Stack, KEPT_WHOLE_FIBER_STACKS>,
    /// Some that keep [`KEPT_FIBER_BYTES`] of theirs.
    trimmed: Pool<Stack, KEPT_FIBER_STACKS>,
}

/// Maximum number of stacks that are kept whole.
#[cfg(feature = "async")]
const KEPT_WHOLE_FIBER_STACKS: usize = 8;
/// Maximum number of trimmed stacks.
#[cfg(feature = "async")]
const KEPT_FIBER_STACKS: usize = 64;
/// Bytes of each part of a stack that a trimmed one keeps in memory.
#[cfg(feature = "async")]
const KEPT_FIBER_BYTES: usize = 16 << 10;

#[cfg(feature = "async")]
impl FiberStacks {
    /// Takes a stack of `native` bytes with room for `values` bytes of values, which are the same each time.
    ///
    /// # Errors
    /// The system has no address space, or no further mapping, left.
    pub fn take(&self, native: usize, values: usize) -> Result<FiberStack> {
        let kept = self.whole.take().or_else(|| self.trimmed.take());
        let words = value_words(values);
        let above = (words + VALUE_STACK_RESERVE + OVERFLOW_SLOTS).saturating_mul(size_of::<u64>());
        let stack = kept.map_or_else(|| Stack::new(native, above), Ok).context("mapping a stack for a fiber")?;
        let base = stack.above().cast::<u64>();
        let limit = base.wrapping_add(words);
        Ok(FiberStack { stack, base, limit, overflow: limit.wrapping_add(VALUE_STACK_RESERVE) })
    }

    /// Keeps a stack on which nothing runs any more, or unmaps it.
    pub fn put(&self, stack: Stack) {
        let rest = self.whole.put(stack);
        if let Some(stack) = rest.filter(|stack| stack.trim(KEPT_FIBER_BYTES).is_ok()) {
            drop(self.trimmed.put(stack));
        }
    }
}

/// A native stack with a value stack above it, and with overflow slots.
#[cfg(feature = "async")]
pub(crate) struct FiberStack {
    pub stack: Stack,
    /// The lowest slot for values.
    pub base: *mut u64,
    /// See [`StackCtx::value_limit`].
    pub limit: *mut u64,
    /// See [`StackCtx::overflow`].
    pub overflow: *mut u64,
}

/// Returns the number of words of a value stack with this many bytes.
fn value_words(bytes: usize) -> usize {
    (bytes / size_of::<u64>()).min(MAX_VALUE_WORDS)
}

impl Source {
    /// Takes `len` bytes, which are the same each time, of zeros. The first mapping is for one stack, each later one for twice as many as
    /// the last one, or for one again if there is no room.
    fn take(&mut self, len: usize) -> io::Result<Slots> {
        if let Some(slots) = self.free.pop() {
            return Ok(slots);
        }
        let rest = match self.rest.take() {
            Some(rest) => rest,
            None => {
                let map = |count| Mapping::zeroed(len.next_multiple_of(page_size()).saturating_mul(count));
                let most = if len > MAX_SHARING || mapping::is_limited() { 1 } else { self.next.max(1) };
                let (count, mapping) = match map(most) {
                    Err(_) if most > 1 => (1, map(1)?),
                    mapping => (most, mapping?),
                };
                if count > 1 {
                    // A large page would be memory of several stacks, for the first of them that is used.
                    mapping::avoid_large_pages(&mapping);
                }
                self.next = (2 * count).min(STACKS_PER_MAPPING);
                Slots { range: 0..mapping.len(), mapping: Arc::new(mapping) }
            }
        };
        let Range { start, end } = rest.range;
        let next = start + len.next_multiple_of(page_size());
        self.rest = (next < end).then(|| Slots { range: next..end, mapping: rest.mapping.clone() });
        Ok(Slots { range: start..start + len, mapping: rest.mapping })
    }
}

impl Slots {
    fn as_mut_ptr(&self) -> *mut u8 {
        self.mapping.as_mut_ptr().wrapping_add(self.range.start)
    }

    fn len(&self) -> usize {
        self.range.len()
    }

    /// Returns memory beyond the first `kept` bytes to the system, and whether that succeeded.
    ///
    /// # Safety
    /// Nothing points into the stack any more.
    unsafe fn trim(&self, kept: usize) -> bool {
        // SAFETY: the caller's promise.
        self.len() <= kept || unsafe { self.mapping.discard(self.range.start + kept..self.range.end).is_ok() }
    }
}

impl Stacks {
    fn take(&self) -> Option<Slots> {
        self.whole.take().or_else(|| self.trimmed.take())
    }

    /// Takes a stack of `len` bytes that was not used.
    fn make(&self, len: usize) -> io::Result<Slots> {
        self.source.lock().unwrap_or_else(PoisonError::into_inner).take(len)
    }

    /// Keeps the stack of a dropped store or its address space, or unmaps it.
    pub fn put(&self, stack: StackRecord) {
        let slots = stack.slots;
        let rest = if slots.len() <= KEPT_WHOLE { self.whole.put(slots) } else { Some(slots) };
        let Some(slots) = rest else { return };
        // SAFETY: nothing points into the stack any more.
        let rest = if unsafe { slots.trim(KEPT_BYTES) } { self.trimmed.put(slots) } else { Some(slots) };
        // Other stacks keep the mapping.
        if let Some(slots) = rest.filter(|slots| Arc::strong_count(&slots.mapping) > 1) {
            // SAFETY: as above.
            let is_free = unsafe { slots.trim(0) };
            if is_free {
                self.source.lock().unwrap_or_else(PoisonError::into_inner).free.push(slots);
            }
        }
    }
}

impl StackRecord {
    /// Creates a stack with `bytes` for values, at most 16 GiB, and [`VALUE_STACK_RESERVE`] slots more. Memory is used
    /// only where it is touched. Reuses one of `kept`, which all have the same size, if there is one.
    ///
    /// # Errors
    /// The system has no address space.
    pub fn new(bytes: usize, kept: &Stacks) -> Result<StackRecord> {
        let words = value_words(bytes);
        let all = words.saturating_add(OVERFLOW_SLOTS + VALUE_STACK_RESERVE).saturating_mul(size_of::<u64>());
        let slots = kept.take().map_or_else(|| kept.make(all), Ok).context("mapping the value stack")?;
        let overflow = slots.as_mut_ptr().cast::<u64>();
        let base = overflow.wrapping_add(OVERFLOW_SLOTS);
        let ctx = StackCtx {
            native_limit: 0,
            value_sp: base,
            value_limit: base.wrapping_add(words),
            boundary: 0,
            overflow,
            dispatch: Dispatch { code: ptr::null(), args: ptr::null_mut(), instance: ptr::null_mut() },
            exit_fp: 0,
            activation: ptr::null(),
        };
        Ok(StackRecord { ctx, base, slots })
    }
}

/// Returns whether `words` words at `at` are on the value stack or in the reserve above its limit.
///
/// # Safety
/// The context is that of a [`StackRecord`].
pub(crate) unsafe fn is_on_stack(stack: *const StackCtx, at: *const u64, words: usize) -> bool {
    // SAFETY: the caller's promise.
    let StackRecord { base, ctx: StackCtx { value_limit, .. }, .. } = unsafe { &*stack.cast::<StackRecord>() };
    let base = base.addr();
    let end = value_limit.addr() + VALUE_STACK_RESERVE * size_of::<u64>();
    let bytes = words * size_of::<u64>();
    at.is_aligned() && at.addr() >= base && at.addr().checked_add(bytes).is_some_and(|last| last <= end)
}

/// Writes a value to a slot of `words` words; a slot of one word holds the low half.
///
/// # Safety
/// The slot is on the value stack.
#[inline(always)]
pub(crate) unsafe fn write_slot(slot: *mut u64, words: usize, bits: u128) {
    // SAFETY: the caller's promise.
    unsafe {
        slot.write(bits as u64);
        if words == 2 {
            slot.add(1).write((bits >> 64) as u64);
        }
    }
}

/// Reads a slot of `words` words. The upper bits of a number or a reference are unspecified.
///
/// # Safety
/// The slot is on the value stack.
#[inline(always)]
pub(crate) unsafe fn read_slot(slot: *const u64, words: usize) -> u128 {
    // SAFETY: the caller's promise.
    unsafe {
        let low = u128::from(slot.read());
        if words == 2 { low | u128::from(slot.add(1).read()) << 64 } else { low }
    }
}

/// Bytes to use of a native stack whose bounds the system does not report. Threads of common systems have more.
const UNKNOWN_STACK: usize = 512 << 10;

/// Returns the lowest address to which compiled code may take the native stack, which is now at about `here`. It takes
/// at most `max` bytes, and leaves [`NATIVE_STACK_RESERVE`] of the thread's stack.
#[inline]
pub(crate) fn native_limit(here: usize, max: usize) -> usize {
    let (lowest, end) = thread_stack();
    let limit = here.saturating_sub(if end == 0 { max.min(UNKNOWN_STACK) } else { max });
    // Code may run on a stack that is not the thread's, whose bounds are unknown.
    if (lowest..end).contains(&here) { limit.max(lowest + NATIVE_STACK_RESERVE) } else { limit }
}

/// Runs host code that needs much native stack, of which the guest may have left little: on this thread if `bytes` are
/// free, else on a new thread. `None` if no thread can be started.
pub(crate) fn with_room<R: Send>(bytes: usize, run: impl FnOnce() -> R + Send) -> Option<R> {
    let local = 0u8;
    let here = std::hint::black_box(&raw const local).addr();
    let (lowest, end) = thread_stack();
    if (lowest + bytes.min(end - lowest)..end).contains(&here) {
        return Some(run());
    }
    thread::run_on_stack(bytes, run).ok()
}

thread_local! {
    /// The bounds of the stack on which this thread runs, once they are known. A constant without a destructor costs a load; lazy
    /// initialisation would cost a call as well.
    static BOUNDS: Cell<Option<(usize, usize)>> = const { Cell::new(None) };
}

/// Makes these the bounds of the stack on which the thread runs, and returns the earlier ones.
#[cfg(feature = "async")]
#[inline(never)]
pub(crate) fn exchange_bounds(bounds: Option<(usize, usize)>) -> Option<(usize, usize)> {
    BOUNDS.replace(bounds)
}

/// Returns the lowest usable address of the thread's own stack, and its end. Both 0 if they are not known.
#[inline]
fn thread_stack() -> (usize, usize) {
    BOUNDS.get().unwrap_or_else(|| {
        // A failure may be temporary, so it is not remembered.
        let Ok(bounds) = thread::stack_bounds() else { return (0, 0) };
        BOUNDS.set(Some((bounds.start, bounds.end)));
        (bounds.start, bounds.end)
    })
}

/// Returns whether the native stack has no room for an activation. Activations nest when host functions call the guest,
/// or native code calls interpreted functions.
///
/// # Safety
/// The stack is live.
#[inline(always)]
pub(crate) unsafe fn native_overflow(stack: *const StackCtx) -> bool {
    let here = 0u8;
    // SAFETY: the stack's context is live.
    std::hint::black_box(&raw const here).addr() < unsafe { (*stack).native_limit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_kept_as_new_ones() {
        let stacks = Stacks::default();
        let stack = || StackRecord::new(1 << 20, &stacks).unwrap();
        let [mut first, second] = [stack(), stack()];
        let (base, limit) = (first.ctx.value_sp, first.ctx.value_limit);
        assert_ne!(second.ctx.value_sp, base);
        // SAFETY: the last slot that frames may fill.
        unsafe { limit.sub(1).write(7) };
        (first.ctx.value_sp, first.ctx.boundary) = (limit, 1);
        stacks.put(second);
        stacks.put(first);
        // One stack is kept whole; the other is trimmed.
        let (_other, again) = (stack(), stack());
        assert_eq!((again.ctx.value_sp, again.ctx.value_limit, again.ctx.boundary), (base, limit, 0));
        // SAFETY: as above.
        assert_eq!(unsafe { limit.sub(1).read() }, 0, "what lies deep was given back");
        // SAFETY: the context of a stack.
        let fits = |at: *mut u64, words| unsafe { is_on_stack((&raw const again).cast(), at, words) };
        assert!(fits(base, 1) && fits(limit, VALUE_STACK_RESERVE) && !fits(limit, VALUE_STACK_RESERVE + 1));
        assert!(!fits(base.wrapping_sub(1), 1) && !fits(base.wrapping_byte_add(4), 1));
        let many: Vec<StackRecord> = (0..2 * KEPT_STACKS).map(|_| stack()).collect();
        many.into_iter().for_each(|stack| stacks.put(stack));
        assert_eq!((stacks.whole.len(), stacks.trimmed.len()), (1, KEPT_STACKS));
    }

    #[cfg(feature = "async")]
    #[test]
    fn fiber_stacks_are_kept_as_new_ones() {
        let stacks = FiberStacks::default();
        let take = || stacks.take(64 << 10, 1 << 20).unwrap();
        let many: Vec<FiberStack> = (0..KEPT_WHOLE_FIBER_STACKS + 2 * KEPT_FIBER_STACKS).map(|_| take()).collect();
        for stack in many {
            assert_eq!(
                (stack.base.addr(), stack.overflow.addr()),
                (stack.stack.bounds().end, stack.limit.addr() + 8 * VALUE_STACK_RESERVE)
            );
            // SAFETY: the last slots of each part.
            unsafe { stack.overflow.add(OVERFLOW_SLOTS - 1).write(stack.limit.sub(1).read() + 7) };
            stacks.put(stack.stack);
        }
        assert_eq!((stacks.whole.len(), stacks.trimmed.len()), (KEPT_WHOLE_FIBER_STACKS, KEPT_FIBER_STACKS));
        let [whole, trimmed]: [Vec<u64>; 2] = [KEPT_WHOLE_FIBER_STACKS, KEPT_FIBER_STACKS].map(|count| {
            // SAFETY: as above.
            (0..count).map(|_| unsafe { take().overflow.add(OVERFLOW_SLOTS - 1).read() }).collect()
        });
        assert!(whole.iter().all(|&word| word == 7) && trimmed.iter().all(|&word| word == 0));
    }

    #[test]
    fn room_is_on_another_thread_if_need_be() {
        let thread = || std::thread::current().id();
        assert_eq!(with_room(1 << 10, thread), Some(thread()));
        assert_ne!(with_room(64 << 20, thread).unwrap(), thread());
        let panic = std::panic::catch_unwind(|| with_room(64 << 20, || std::panic::panic_any(3u8)));
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&3u8));
    }

    #[test]
    fn limits_stay_within_the_thread() {
        static ELSEWHERE: u8 = 0;
        let here = (&raw const ELSEWHERE).addr();
        let local = 0u8;
        let on_stack = (&raw const local).addr();
        assert_eq!(native_limit(here, 1000), here - 1000, "a static is on no stack");
        assert_eq!(native_limit(on_stack, 1000), on_stack - 1000);
        let (lowest, end) = thread_stack();
        assert!((lowest..end).contains(&on_stack));
        assert_eq!(native_limit(on_stack, usize::MAX), lowest + NATIVE_STACK_RESERVE);
    }
}
