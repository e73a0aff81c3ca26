//! Counts of the crossings between engines, for tests: how often code of one engine called, returned to or replaced a frame
//! of another. Nothing is counted, and no code differs, unless [`CodeSpace::new`](super::CodeSpace::new) is asked for it.
//!
//! With counts, the entry of code for calls is a *counting entry*, which calls [`entered`] through a stub and runs into the
//! code. The return address tells which engine called. A tail call is recognised if the caller is a stub, which has the
//! address of the code that it calls in `rax`, or if the call at the return address is direct and names another function.
//! The engine that made it is that of the code entered last with the same return address. Other tail calls of compiled
//! code count as calls.

use super::info::{CodeInfo, STUB};
use super::map::CodeArena;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use weir_contract::code::Backend;

/// Bytes of a counting entry.
pub(super) const COUNTING_ENTRY: usize = 64;

/// An engine that runs frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Runner {
    /// The interpreter, or the host. A frame in a loop is never the host's.
    Interpreter,
    /// Code of the baseline compiler.
    Baseline,
    /// Code of the native back end or of Cranelift.
    Optimised,
}

impl Runner {
    const ALL: [Runner; 3] = [Runner::Interpreter, Runner::Baseline, Runner::Optimised];

    fn of(backend: Backend) -> Runner {
        match backend {
            Backend::Baseline => Runner::Baseline,
            Backend::Native | Backend::Cranelift => Runner::Optimised,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Runner::Interpreter => "interpreter",
            Runner::Baseline => "baseline",
            Runner::Optimised => "optimised",
        }
    }
}

/// The way in which a frame of one engine follows one of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Crossing {
    /// A call.
    Call,
    /// A tail call, or the interpreter finds code when it is called.
    TailCall,
    /// A return of an interpreted function.
    Return,
    /// A frame continues in another engine at a loop header.
    Loop,
    /// A frame continues in another engine at its function's entry.
    Entry,
}

impl Crossing {
    const ALL: [Crossing; 5] = [Crossing::Call, Crossing::TailCall, Crossing::Return, Crossing::Loop, Crossing::Entry];

    fn name(self) -> &'static str {
        match self {
            Crossing::Call => "call",
            Crossing::TailCall => "tail call",
            Crossing::Return => "return",
            Crossing::Loop => "loop",
            Crossing::Entry => "entry",
        }
    }
}

/// The counts of an engine.
#[derive(Debug)]
pub(crate) struct Crossings {
    arena: Arc<CodeArena>,
    counts: [[[AtomicU64; Runner::ALL.len()]; Runner::ALL.len()]; Crossing::ALL.len()],
    /// By the address of a return address on a native stack: the return address, and the code entered last with it.
    entered: Mutex<HashMap<usize, (usize, Runner)>>,
}

impl Crossings {
    pub(super) fn new(arena: Arc<CodeArena>) -> Crossings {
        Crossings { arena, counts: Default::default(), entered: Mutex::default() }
    }

    /// Counts a crossing.
    pub fn count(&self, crossing: Crossing, from: Runner, to: Runner) {
        self.counts[crossing as usize][from as usize][to as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the engine that runs code at `pc`.
    ///
    /// # Safety
    /// The code at `pc` is not freed meanwhile.
    pub unsafe fn runner_at(&self, pc: usize) -> Runner {
        match self.arena.region_at(pc) {
            // SAFETY: the tag of a function's region is the address of its record.
            Some((_, tag)) if tag != STUB => Runner::of(unsafe { &*(tag as *const CodeInfo) }.backend),
            _ => Runner::Interpreter,
        }
    }

    /// Returns the counts with their names, those of an engine within itself included.
    pub fn values(&self) -> Vec<(String, u64)> {
        let mut values = Vec::new();
        for crossing in Crossing::ALL {
            for from in Runner::ALL {
                for to in Runner::ALL {
                    let count = self.counts[crossing as usize][from as usize][to as usize].load(Ordering::Relaxed);
                    values.push((format!("{} {} to {}", crossing.name(), from.name(), to.name()), count));
                }
            }
        }
        values
    }
}

/// Called at the entry of the code of `info`, by its counting entry. The return address is at `at`. `rax` has the address
/// of the counting entry if a stub has jumped there.
///
/// # Safety
/// A counting entry calls it: all three are valid.
pub(super) unsafe extern "sysv64" fn entered(crossings: *const Crossings, info: *const CodeInfo, at: *const usize, rax: usize) {
    // SAFETY: the caller's promise; the thread will return to the code at the return address.
    unsafe {
        let (crossings, info, return_address) = (&*crossings, &*info, *at);
        let to = Runner::of(info.backend);
        let caller = crossings.runner_at(return_address);
        let mut last = crossings.entered.lock().unwrap_or_else(PoisonError::into_inner);
        let before = last.insert(at.addr(), (return_address, to));
        let jumped = match caller {
            Runner::Interpreter => rax != info.counting_entry,
            Runner::Baseline | Runner::Optimised => called_cell(return_address).is_some_and(|cell| cell != info.cell),
        };
        let (crossing, from) = match before {
            _ if caller != Runner::Interpreter && rax == info.counting_entry => (Crossing::TailCall, Runner::Interpreter),
            Some((same, from)) if jumped && same == return_address => (Crossing::TailCall, from),
            _ => (Crossing::Call, caller),
        };
        drop(last);
        crossings.count(crossing, from, to);
    }
}

/// Returns the address of the cell through which the call before `return_address` calls, if it calls through one.
///
/// # Safety
/// It is an address in compiled code, after a call.
unsafe fn called_cell(return_address: usize) -> Option<usize> {
    // SAFETY: a prologue is before the first call of each function.
    let [.., first, second, a, b, c, d] = unsafe { (return_address as *const [u8; 8]).sub(1).read() };
    let distance = i32::from_le_bytes([a, b, c, d]);
    ([first, second] == [0xFF, 0x15]).then(|| return_address.wrapping_add_signed(distance as isize))
}
