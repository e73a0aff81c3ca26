//! Per-function execution counters and code pointers, shared by all instances of a module.

use crate::records::profile::{Counters, Directions};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use weir_bytecode::{FuncBody, Module as Bytecode};
use weir_contract::profile::Profile;

/// Execution state of one function of a module.
#[derive(Debug)]
pub(crate) struct FuncCode {
    /// Ticks left until the tier policy is asked. The interpreter subtracts one at every call and every `loop` opcode,
    /// not atomically (a lost tick is harmless), and asks when the result is negative.
    pub ticks: AtomicI32,
    /// Native code to call, or null to interpret.
    pub native: AtomicPtr<u8>,
    /// What is counted beside the ticks, from when the function is warm.
    profile: OnceLock<Box<Counters>>,
    /// The same counts' [`Counters::directions`], where the interpreter's assembly finds them; null before.
    pub directions: AtomicPtr<Directions>,
}

impl FuncCode {
    /// That of a function that is interpreted and asks after so many ticks.
    pub fn new(ticks: i32) -> FuncCode {
        let (native, directions) = (AtomicPtr::default(), AtomicPtr::default());
        FuncCode { ticks: AtomicI32::new(ticks), native, profile: OnceLock::new(), directions }
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
