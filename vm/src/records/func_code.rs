//! Per-function execution counters and code pointers, shared by all instances of a module and by all engines.

use crate::records::profile::{Counters, Directions};
use std::mem;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use weir_bytecode::{FuncBody, Module as Bytecode};
use weir_contract::profile::Profile;
use weir_contract::{InstanceCtx, StackCtx, Status};

/// Enters code: calls `code` with the arguments in slots at `args`, and leaves the results there. For native code it is a stub
/// of the function's type, in the System V convention, which is C's on hosts with native code.
pub(crate) type Enter =
    unsafe extern "C" fn(code: *const u8, args: *mut u64, instance: *mut InstanceCtx, stack: *mut StackCtx) -> Status;

/// Execution state of one function of a module.
#[derive(Debug)]
pub(crate) struct FuncCode {
    /// Ticks left until the tier policy is asked. The interpreter subtracts the work of a call at every call and that of an iteration
    /// at every `loop` opcode, not atomically (lost ticks are harmless), and asks when the result is negative.
    pub ticks: AtomicI32,
    /// The work of a call: see [`FuncBody::work`].
    pub work: AtomicU32,
    /// What `ticks` was last set to,
    given: AtomicI32,
    /// and how many ticks were taken before.
    spent: AtomicU64,
    /// Code to call, or null to interpret.
    pub native: AtomicPtr<u8>,
    /// An [`Enter`] for that code. Null until there is code, of a call or of a loop; after that always the same.
    enter: AtomicPtr<u8>,
    /// What is counted beside the ticks, from when the function is warm.
    profile: OnceLock<Box<Counters>>,
    /// The same counts' [`Counters::directions`], where the interpreter's assembly finds them; null before.
    pub directions: AtomicPtr<Directions>,
}

impl FuncCode {
    /// That of a function that is interpreted and asks after `ticks` ticks, of which a call takes `work`.
    pub fn new(ticks: i32, work: u32) -> FuncCode {
        FuncCode {
            ticks: AtomicI32::new(ticks),
            work: AtomicU32::new(work),
            given: AtomicI32::new(ticks),
            spent: AtomicU64::new(0),
            native: AtomicPtr::default(),
            enter: AtomicPtr::default(),
            profile: OnceLock::new(),
            directions: AtomicPtr::default(),
        }
    }

    /// Gives a function that has just been validated, because of a call, the rest of its first ticks. Releases what was written.
    pub fn begin(&self, ticks: i32, work: u32) -> i32 {
        let left = ticks.saturating_sub_unsigned(work);
        self.given.store(ticks, Ordering::Relaxed);
        self.work.store(work, Ordering::Relaxed);
        self.ticks.store(left, Ordering::Release);
        left
    }

    /// Sets the ticks, after the policy was asked. With 0 the next call asks.
    pub fn reset_ticks(&self, ticks: i32) {
        self.spent.store(self.ticks_taken(), Ordering::Relaxed);
        self.given.store(ticks, Ordering::Relaxed);
        self.ticks.store(ticks, Ordering::Relaxed);
    }

    /// The work of calls and loop iterations so far, in the interpreter. Not exact when threads share the module.
    pub fn ticks_taken(&self) -> u64 {
        let since = self.given.load(Ordering::Relaxed).wrapping_sub(self.ticks.load(Ordering::Relaxed));
        self.spent.load(Ordering::Relaxed).saturating_add(u64::from(since as u32))
    }

    /// Whether it was ever called.
    pub fn was_called(&self) -> bool {
        self.ticks_taken() > 0
    }

    /// Whether there ever was code for it, of its call or of a loop.
    pub fn was_compiled(&self) -> bool {
        !self.enter.load(Ordering::Relaxed).is_null()
    }

    /// Says how code of this function is entered, when there is some for the first time.
    pub fn set_enter(&self, enter: Enter) {
        self.enter.store(enter as *mut u8, Ordering::Release);
    }

    /// Calls code of this function, arguments and results in slots at `args`, above which `value_sp` must lie.
    ///
    /// # Safety
    /// `code` was read from [`FuncCode::native`] with acquire order, or came from the policy, for a call. `args` has room for the
    /// arguments and the results. The function is one of `instance`, whose guest runs.
    #[inline(always)]
    pub unsafe fn call(&self, instance: *mut InstanceCtx, code: *const u8, args: *mut u64) -> Status {
        // SAFETY: whoever makes code known has stored the stub before, so it is an `Enter`.
        unsafe {
            let enter: Enter = mem::transmute::<*mut u8, Enter>(self.enter.load(Ordering::Relaxed));
            enter(code, args, instance, (*instance).stack)
        }
    }

    /// The function's counts, if it has begun to count.
    #[inline(always)]
    pub fn counters(&self) -> Option<&Counters> {
        self.profile.get().map(|counters| &**counters)
    }

    /// Begins to count, if it has not: the function is this one.
    pub fn begin_profile(&self, module: &Bytecode, body: &FuncBody) {
        let counters = self.profile.get_or_init(|| Box::new(Counters::new(module, body)));
        self.directions.store(counters.directions().cast_mut(), Ordering::Release);
    }

    /// What was counted so far, if it has begun to count.
    pub fn profile(&self) -> Option<Profile> {
        Some(self.counters()?.snapshot())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_counted_from_the_first_on() {
        let code = FuncCode::new(3, 1);
        assert_eq!(code.ticks_taken(), 0);
        code.reset_ticks(0);
        assert!(!code.was_called(), "nobody called it");
        // As the interpreter does: it asks when the ticks are gone.
        let take = || code.ticks.fetch_sub(1, Ordering::Relaxed);
        take();
        assert!(code.was_called());
        for (taken, given, takes) in [(1, 2, 2), (3, i32::MAX, 1), (4, 0, 1)] {
            assert_eq!(code.ticks_taken(), taken);
            code.reset_ticks(given);
            assert_eq!(code.ticks_taken(), taken);
            for _ in 0..takes {
                take();
            }
        }
        assert_eq!(code.ticks_taken(), 5);
    }

    #[test]
    fn a_function_that_is_validated_at_a_call_was_called() {
        let code = FuncCode::new(0, 1);
        assert_eq!(code.begin(1, 1), 0);
        assert_eq!(code.ticks_taken(), 1);
    }
}
