//! The execution counters and code pointers of a function, shared by all instances of a module and by all engines.

use crate::records::profile::{Counters, Directions, Memory};
use crate::sys::segment::Base;
use std::mem;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use weir_bytecode::account::Account;
use weir_bytecode::{FuncBody, Module as Bytecode};
use weir_contract::profile::{CounterCounts, Profile};
use weir_contract::{InstanceCtx, StackCtx, Status};

/// Enters code: calls `code` with the arguments in slots at `args`, and writes the results there. For native code it is
/// a stub for the function's type, in the System V convention, which is C's on hosts with native code.
pub(crate) type Enter =
    unsafe extern "C" fn(code: *const u8, args: *mut u64, instance: *mut InstanceCtx, stack: *mut StackCtx) -> Status;

/// Enters code of `instance` by its stub.
///
/// # Safety
/// As for [`FuncCode::call`]; for a loop, `args` is the interpreter's frame.
#[inline(always)]
pub(crate) unsafe fn enter_code(enter: Enter, instance: *mut InstanceCtx, code: *const u8, args: *mut u64) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        let base = Base::now();
        base.or_of((*instance).memory0_base);
        let status = enter(code, args, instance, (*instance).stack);
        if status != Status::Return {
            base.restore();
        }
        status
    }
}

/// Execution state of one function of a module.
///
/// `ticks` and `native` may share a cache line: the interpreter, which alone reads `native` often, subtracts from `ticks` next unless there
/// is code, and with code nothing subtracts from them. The words that native code reads are elsewhere, in cells.
#[derive(Debug)]
pub(crate) struct FuncCode {
    /// Ticks left until [`Engines::tier_up`](crate::records::engines::Engines::tier_up) is called. The interpreter
    /// subtracts the work of a call at every call, and that of an iteration at every `loop` opcode, and calls it when
    /// the result is negative. The subtraction is not atomic; losing ticks is harmless. Baseline code has a counter of its
    /// own.
    pub ticks: AtomicI32,
    /// The work of a call: see [`FuncBody::work`].
    pub work: AtomicU32,
    /// The last value to which `ticks` was reset.
    given: AtomicI32,
    /// Ticks spent before the last reset.
    spent: AtomicU64,
    /// Ticks that baseline code spent before its ticks were last set.
    baseline_spent: AtomicU64,
    /// Code to call, or null to interpret.
    pub native: AtomicPtr<u8>,
    /// The [`Enter`] for that code. Null until there is code for a call or a loop; after that it does not change.
    pub enter: AtomicPtr<u8>,
    /// Counts of branches and calls, allocated when the function is warm.
    profile: OnceLock<Box<Counters>>,
    /// [`Counters::directions`] of the profile, for the interpreter's assembly; null before.
    pub directions: AtomicPtr<Directions>,
}

impl FuncCode {
    /// Creates the record of an interpreted function with `ticks` ticks, of which a call takes `work`.
    pub fn new(ticks: i32, work: u32) -> FuncCode {
        FuncCode {
            ticks: AtomicI32::new(ticks),
            work: AtomicU32::new(work),
            given: AtomicI32::new(ticks),
            spent: AtomicU64::new(0),
            baseline_spent: AtomicU64::new(0),
            native: AtomicPtr::default(),
            enter: AtomicPtr::default(),
            profile: OnceLock::new(),
            directions: AtomicPtr::default(),
        }
    }

    /// Sets the ticks of a function that has just been validated because of a call, less that call's, and returns them.
    /// Releases earlier writes.
    pub fn begin(&self, ticks: i32, work: u32) -> i32 {
        let left = ticks.saturating_sub_unsigned(work);
        self.given.store(ticks, Ordering::Relaxed);
        self.work.store(work, Ordering::Relaxed);
        self.ticks.store(left, Ordering::Release);
        left
    }

    /// Resets the ticks. With 0 the next call runs out of ticks.
    pub fn reset_ticks(&self, ticks: i32) {
        self.spent.store(self.ticks_taken(), Ordering::Relaxed);
        self.given.store(ticks, Ordering::Relaxed);
        self.ticks.store(ticks, Ordering::Relaxed);
    }

    /// Returns the work of calls and loop iterations in the interpreter so far. Not exact when threads share the
    /// module.
    pub fn ticks_taken(&self) -> u64 {
        let since = self.given.load(Ordering::Relaxed).wrapping_sub(self.ticks.load(Ordering::Relaxed));
        self.spent.load(Ordering::Relaxed).saturating_add(u64::from(since as u32))
    }

    /// Sets the ticks that baseline code has left, in every stripe. For each there are those left and those given.
    pub fn arm_baseline<'t>(&self, stripes: impl Iterator<Item = [&'t AtomicU32; 2]>, ticks: i32) {
        for [left, given] in stripes {
            let (left, given) = (left.swap(ticks as u32, Ordering::Relaxed), given.swap(ticks as u32, Ordering::Relaxed));
            self.baseline_spent.fetch_add(u64::from(given.wrapping_sub(left)), Ordering::Relaxed);
        }
    }

    /// Returns about how many bytes of the function have been executed, in the interpreter and in baseline code, with these ticks as for
    /// [`FuncCode::arm_baseline`].
    pub fn executed<'t>(&self, stripes: impl Iterator<Item = [&'t AtomicU32; 2]>) -> u64 {
        let since =
            |[left, given]: [&AtomicU32; 2]| u64::from(given.load(Ordering::Relaxed).wrapping_sub(left.load(Ordering::Relaxed)));
        let baseline = self.baseline_spent.load(Ordering::Relaxed).saturating_add(stripes.map(since).sum());
        self.ticks_taken().saturating_add(baseline)
    }

    /// Returns whether the function has been called in the interpreter.
    pub fn was_called(&self) -> bool {
        self.ticks_taken() > 0
    }

    /// Returns whether the function has ever had code, for its calls or for a loop.
    pub fn was_compiled(&self) -> bool {
        !self.enter.load(Ordering::Relaxed).is_null()
    }

    /// Sets the stub that enters code of this function, before the first code is published.
    pub fn set_enter(&self, enter: Enter) {
        self.enter.store(enter as *mut u8, Ordering::Release);
    }

    /// Calls code of this function. Arguments and results are in slots at `args`; `value_sp` must be above them.
    ///
    /// # Safety
    /// `code` was read from [`FuncCode::native`] with acquire order, or came from the policy, for a call. `args` has
    /// room for the arguments and the results. The function is one of `instance`, whose guest runs.
    #[inline(always)]
    pub unsafe fn call(&self, instance: *mut InstanceCtx, code: *const u8, args: *mut u64) -> Status {
        // SAFETY: the stub is stored before code is published, so this is an `Enter`.
        unsafe {
            let enter: Enter = mem::transmute::<*mut u8, Enter>(self.enter.load(Ordering::Relaxed));
            enter_code(enter, instance, code, args)
        }
    }

    /// Returns the function's counters, if its profile has begun.
    #[inline(always)]
    pub fn counters(&self) -> Option<&Counters> {
        self.profile.get().map(|counters| &**counters)
    }

    /// Begins the profile of the function, which has this number of counters, if it has not begun, and charges it to `account`. Returns whether
    /// there is a profile now. `allocate` is for [`Counters::new`].
    pub fn begin_profile<M: Memory + 'static>(
        &self,
        account: &Account,
        counts: CounterCounts,
        allocate: impl FnOnce(usize) -> Option<M>,
    ) -> bool {
        if self.profile.get().is_some() {
            return true;
        }
        let size = Counters::size(counts);
        if account.charge(size).is_err() {
            return false;
        }
        let mut is_new = false;
        let counters = self.profile.get_or_init(|| {
            is_new = true;
            Box::new(Counters::new(counts, allocate))
        });
        if !is_new {
            account.give_back(size);
        }
        self.directions.store(counters.directions().cast_mut(), Ordering::Release);
        true
    }

    /// Returns the counts so far of the function, which is `body` of `module`, if the profile has begun.
    pub fn profile(&self, module: &Bytecode, body: &FuncBody) -> Option<Profile> {
        Some(self.counters()?.snapshot(module, body))
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
        assert!(!code.was_called(), "it was not called");
        // The interpreter's check: a negative result calls `tier_up`.
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
