//! Native stacks beside those of threads, and coroutines that run on them.
//!
//! A coroutine here differs from the crate's in three points. It may be resumed on another thread, which its user makes sound. It never
//! unwinds out of its body. It is not unwound by force: one that is dropped while it is suspended keeps its stack, which is then never
//! used again.

use super::mapping::{Access, Mapping, page_size};
use super::segment::Base;
use corosensei::CoroutineResult;
use corosensei::stack::{Stack as CorosenseiStack, StackPointer};
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;

/// A native stack with a guard page below it, and memory above it for a stack that grows upwards. Both begin in one page, so a coroutine
/// that uses little of them takes one page.
#[derive(Debug)]
pub(crate) struct Stack {
    memory: Mapping,
    guard: usize,
    /// Where in the mapping the native stack ends and the memory above it begins.
    middle: usize,
}

/// Bytes of the page in the middle that belong to the native stack, whose frames are larger.
const NATIVE_PART: usize = 3 << 10;

impl Stack {
    /// Maps a stack of `bytes`, in whole pages, and `above` bytes above it. They use memory where they are touched.
    ///
    /// # Errors
    /// The system has no address space, or no further mapping, left.
    pub fn new(bytes: usize, above: usize) -> io::Result<Stack> {
        let guard = page_size();
        let bytes = bytes.max(corosensei::stack::MIN_STACK_SIZE).next_multiple_of(guard);
        let middle = guard + bytes + NATIVE_PART;
        let memory = Mapping::zeroed(middle.saturating_add(above))?;
        // SAFETY: nothing points into the mapping.
        unsafe { memory.protect(0..guard, Access::None)? };
        Ok(Stack { memory, guard, middle })
    }

    /// Returns the addresses of the native stack that may be used.
    pub fn bounds(&self) -> Range<usize> {
        let start = self.memory.as_mut_ptr().addr();
        start + self.guard..start + self.middle
    }

    /// Returns the address of the memory above it.
    pub fn above(&self) -> *mut u8 {
        self.memory.as_mut_ptr().wrapping_add(self.middle)
    }

    /// Returns the memory of all but the first `kept` bytes of both parts to the system.
    ///
    /// # Errors
    /// The system refuses.
    pub fn trim(&self, kept: usize) -> io::Result<()> {
        let deep = self.middle.saturating_sub(kept) / page_size() * page_size();
        let high = (self.middle + kept).next_multiple_of(page_size());
        for range in [self.guard..deep, high..self.memory.len()] {
            if !range.is_empty() {
                // SAFETY: a stack on which nothing runs has no contents.
                unsafe { self.memory.discard(range)? };
            }
        }
        Ok(())
    }
}

// SAFETY: the memory from the limit to the base is in the mapping, whose lowest page is a guard page, and is at least as large as asked for.
unsafe impl CorosenseiStack for Stack {
    fn base(&self) -> StackPointer {
        StackPointer::new(self.bounds().end).expect("a mapping is not at address 0")
    }

    fn limit(&self) -> StackPointer {
        StackPointer::new(self.memory.as_mut_ptr().addr()).expect("a mapping is not at address 0")
    }
}

/// Suspends the coroutine in which it was received.
#[repr(transparent)]
pub(crate) struct Suspender<Y>(corosensei::Yielder<(), Y>);

impl<Y> Suspender<Y> {
    /// Suspends the coroutine, until it is resumed.
    ///
    /// # Safety
    /// This is the coroutine that runs on the current stack. Its frames may continue on another thread.
    pub unsafe fn suspend(&self, value: Y) {
        let base = Base::now();
        self.0.suspend(value);
        base.restore();
    }
}

/// The state of a coroutine after it was resumed.
pub(crate) enum Resumed<Y, R> {
    Suspended(Y),
    /// The body has returned, and nothing is left on the stack.
    Returned(R),
}

/// A body that runs on a stack of its own.
pub(crate) struct Coroutine<Y, R>(ManuallyDrop<corosensei::Coroutine<(), Y, R, Stack>>);

impl<Y, R> Coroutine<Y, R> {
    /// Creates a coroutine that runs `body` when it is resumed for the first time.
    ///
    /// # Safety
    /// The body does not unwind. What it borrows lives until it has returned. If the coroutine is resumed on another thread than
    /// before, the frames of its body may continue there.
    pub unsafe fn new(stack: Stack, body: impl FnOnce(&Suspender<Y>) -> R) -> Coroutine<Y, R> {
        let body = move |yielder: &corosensei::Yielder<(), Y>, ()| {
            // SAFETY: the representations are the same.
            body(unsafe { &*std::ptr::from_ref(yielder).cast::<Suspender<Y>>() })
        };
        // SAFETY: the caller's promise.
        Coroutine(ManuallyDrop::new(unsafe { corosensei::Coroutine::with_stack_unchecked(stack, body) }))
    }

    /// Runs the body until it suspends itself or returns.
    pub fn resume(&mut self) -> Resumed<Y, R> {
        let base = Base::now();
        let result = self.0.resume(());
        base.restore();
        match result {
            CoroutineResult::Yield(value) => Resumed::Suspended(value),
            CoroutineResult::Return(result) => Resumed::Returned(result),
        }
    }

    /// Returns whether the body has returned.
    pub fn is_done(&self) -> bool {
        self.0.done()
    }

    /// Returns the stack of a coroutine whose body has returned.
    pub fn into_stack(mut self) -> Stack {
        assert!(self.is_done(), "a coroutine's stack is taken after its body has returned");
        // SAFETY: it is taken once, because dropping `self` does nothing.
        unsafe { ManuallyDrop::take(&mut self.0) }.into_stack()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_continues_on_another_thread() {
        struct Moved(Coroutine<u32, u32>);
        // SAFETY: the body has numbers only.
        unsafe impl Send for Moved {}
        let stack = Stack::new(64 << 10, 100 << 10).unwrap();
        let bounds = stack.bounds();
        assert_eq!((stack.above().addr(), stack.above().addr() % page_size()), (bounds.end, NATIVE_PART));
        // SAFETY: the last byte.
        unsafe { stack.above().add((100 << 10) - 1).write(1) };
        let body = move |suspender: &Suspender<u32>| {
            let local = 7u32;
            assert!(bounds.contains(&(&raw const local).addr()));
            // SAFETY: this coroutine runs.
            unsafe { suspender.suspend(local) };
            local + 1
        };
        // SAFETY: the body does not unwind unless the test fails, and borrows nothing.
        let mut moved = Moved(unsafe { Coroutine::new(stack, body) });
        assert!(matches!(moved.0.resume(), Resumed::Suspended(7)) && !moved.0.is_done());
        let mut moved = std::thread::spawn(move || {
            let mut moved = moved;
            assert!(matches!(moved.0.resume(), Resumed::Returned(8)));
            moved
        })
        .join()
        .unwrap();
        assert!(moved.0.is_done());
        let stack = moved.0.into_stack();
        stack.trim(8 << 10).unwrap();
        // SAFETY: as above.
        moved = Moved(unsafe { Coroutine::new(stack, |_| 3) });
        assert!(matches!(moved.0.resume(), Resumed::Returned(3)));
        moved.0.into_stack();
    }
}
