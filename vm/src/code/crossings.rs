//! Counts of the crossings between engines, for tests: how often code of one engine called, returned to or replaced a frame
//! of another. Nothing is counted, and no code differs, unless [`CodeSpace::new`](super::CodeSpace::new) is asked for it.
//!
//! With counts, the entry of code for calls is a *counting entry*, which calls [`entered`] through a stub and runs into the
//! code. The return address tells which engine called. A call is told from a tail call by the call instruction at the return
//! address, if that is direct, and otherwise by `rax`, which has the address of the code if a stub calls it. A tail call of
//! unknown kind counts as a call.
//!
//! A return is counted later: when a function is entered, the frames whose return addresses are deeper in the same native
//! stack have returned, because [`Crossings::unwound`] has removed those that a trap unwound. Where a call cannot be told from
//! a tail call, the return of the frame before is not counted, and neither are the returns after the last entry. So the counts
//! of returns are lower bounds.

use super::info::{CodeInfo, STUB};
use super::map::CodeArena;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use weir_contract::InstanceCtx;
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
    /// A return.
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

/// A frame that compiled code or a stub called.
#[derive(Clone, Copy, Debug)]
struct Frame {
    return_address: usize,
    /// The engine to which it returns.
    caller: Runner,
    /// The engine that runs it.
    runner: Runner,
    /// Whether it continues in `runner` at its entry, which is not entered by a call.
    moved: bool,
}

/// By the address of its return address, each frame that may not have returned yet.
type Frames = BTreeMap<usize, Frame>;

/// How a function is entered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Arrival {
    Called,
    TailCalled,
    /// The interpreter jumps to code in place of a frame of its own.
    Dispatched,
    /// By a call or a tail call.
    Unknown,
}

/// The counts of an engine.
#[derive(Debug)]
pub(crate) struct Crossings {
    arena: Arc<CodeArena>,
    counts: [[[AtomicU64; Runner::ALL.len()]; Runner::ALL.len()]; Crossing::ALL.len()],
    frames: Mutex<Frames>,
}

impl Crossings {
    pub(super) fn new(arena: Arc<CodeArena>) -> Crossings {
        Crossings { arena, counts: Default::default(), frames: Mutex::default() }
    }

    /// Counts a crossing.
    pub fn count(&self, crossing: Crossing, from: Runner, to: Runner) {
        self.counts[crossing as usize][from as usize][to as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the engine that runs code at `pc`. A stub counts as the interpreter.
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

    /// The interpreter begins to run a function that compiled code calls, in the place of a frame with the return address at `at`.
    /// `cell` is the function's cell, and `stack_limit` the lowest address of the native stack.
    ///
    /// # Safety
    /// The return address is one in code.
    pub unsafe fn interprets(&self, at: *const usize, stack_limit: usize, cell: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            let caller = self.runner_at(*at);
            let arrival = match caller {
                // No stub calls a thunk.
                Runner::Interpreter => Arrival::TailCalled,
                Runner::Baseline | Runner::Optimised => arrival_by_cell(*at, cell),
            };
            self.enter(at, stack_limit, arrival, caller, Runner::Interpreter);
        }
    }

    /// The interpreted frame with the return address at `at` ends. `returned` is whether it returns, rather than traps.
    pub fn interpreted(&self, at: *const usize, stack_limit: usize, returned: bool) {
        let mut frames = self.frames();
        self.returned(&mut frames, stack_limit..at.addr() + usize::from(returned));
        frames.remove(&at.addr());
    }

    /// The frame with the return address at `at` continues at `target`: at its function's entry, or at a loop.
    ///
    /// # Safety
    /// The return address and `target` are those of code.
    pub unsafe fn moved(&self, at: *const usize, target: *const u8, at_entry: bool) {
        // SAFETY: the caller's promise.
        unsafe {
            let runner = self.runner_at(target.addr());
            let frame = || Frame { return_address: *at, caller: self.runner_at(*at), runner, moved: at_entry };
            let mut frames = self.frames();
            let frame = frames.get(&at.addr()).filter(|frame| frame.return_address == *at).copied().unwrap_or_else(frame);
            frames.insert(at.addr(), Frame { runner, moved: at_entry, ..frame });
        }
    }

    /// Frames with return addresses in this range of a native stack are unwound.
    pub fn unwound(&self, range: Range<usize>) {
        let mut frames = self.frames();
        while let Some((&at, _)) = frames.range(range.clone()).next_back() {
            frames.remove(&at);
        }
    }

    /// Returns whether the frame with the return address at `at` is interpreted.
    ///
    /// # Safety
    /// `at` is readable.
    unsafe fn is_interpreted(&self, at: *const usize) -> bool {
        // SAFETY: the caller's promise.
        let return_address = unsafe { *at };
        let frame = self.frames().get(&at.addr()).copied();
        frame.is_some_and(|frame| frame.return_address == return_address && frame.runner == Runner::Interpreter)
    }

    fn frames(&self) -> MutexGuard<'_, Frames> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the returns of the frames with return addresses in this range, innermost first.
    fn returned(&self, frames: &mut Frames, range: Range<usize>) {
        while let Some((&at, &frame)) = frames.range(range.clone()).next() {
            frames.remove(&at);
            self.count(Crossing::Return, frame.runner, frame.caller);
        }
    }

    /// A function is entered in `to`. `caller` is the engine at the return address.
    ///
    /// # Safety
    /// `at` is readable.
    unsafe fn enter(&self, at: *const usize, stack_limit: usize, arrival: Arrival, caller: Runner, to: Runner) {
        // SAFETY: the caller's promise.
        let return_address = unsafe { *at };
        let mut frames = self.frames();
        self.returned(&mut frames, stack_limit..at.addr());
        let frame = Frame { return_address, caller, runner: to, moved: false };
        let before = frames.insert(at.addr(), frame);
        let same = before.filter(|before| before.return_address == return_address);
        match (same, arrival) {
            (Some(Frame { moved: true, .. }), _) => {}
            (Some(before), Arrival::TailCalled | Arrival::Dispatched) => self.count(Crossing::TailCall, before.runner, to),
            (None, Arrival::Dispatched) => self.count(Crossing::TailCall, Runner::Interpreter, to),
            // Its source is unknown.
            (None, Arrival::TailCalled) => {}
            (_, Arrival::Called | Arrival::Unknown) => {
                let certain = arrival == Arrival::Called || same.is_none();
                if let Some(before) = before.filter(|_| certain) {
                    self.count(Crossing::Return, before.runner, before.caller);
                }
                self.count(Crossing::Call, caller, to);
            }
        }
    }
}

/// Called at the entry of the code of `info`, by its counting entry. The return address is at `at`. `rax` has the address
/// of the counting entry if a stub has called it or jumped there.
///
/// # Safety
/// A counting entry calls it: all are valid.
pub(super) unsafe extern "sysv64" fn entered(
    crossings: *const Crossings,
    info: *const CodeInfo,
    at: *const usize,
    rax: usize,
    instance: *const InstanceCtx,
) {
    // SAFETY: the caller's promise; the thread will return to the code at the return address.
    unsafe {
        let (crossings, info) = (&*crossings, &*info);
        let caller = crossings.runner_at(*at);
        let by_stub = rax == info.counting_entry;
        let arrival = match caller {
            Runner::Interpreter if by_stub && !crossings.is_interpreted(at) => Arrival::Called,
            Runner::Interpreter if !by_stub => Arrival::TailCalled,
            _ if by_stub => Arrival::Dispatched,
            _ => arrival_by_cell(*at, info.cell),
        };
        let stack_limit = (*(*instance).stack).native_limit;
        crossings.enter(at, stack_limit, arrival, caller, Runner::of(info.backend));
    }
}

/// Returns how the function with the cell at `cell` is entered, according to the call before `return_address`.
///
/// # Safety
/// As for [`called_cell`].
unsafe fn arrival_by_cell(return_address: usize, cell: usize) -> Arrival {
    // SAFETY: the caller's promise.
    match unsafe { called_cell(return_address) } {
        Some(called) if called == cell => Arrival::Called,
        Some(_) => Arrival::TailCalled,
        None => Arrival::Unknown,
    }
}

/// Returns the address of the cell through which the call before `return_address` calls, if it calls through one at a distance. A shorter call
/// after bytes that look like such a call is taken for it.
///
/// # Safety
/// It is an address in compiled code, after a call.
unsafe fn called_cell(return_address: usize) -> Option<usize> {
    // SAFETY: a prologue is before the first call of each function.
    let [.., first, second, a, b, c, d] = unsafe { (return_address as *const [u8; 8]).sub(1).read() };
    let distance = i32::from_le_bytes([a, b, c, d]);
    ([first, second] == [0xFF, 0x15]).then(|| return_address.wrapping_add_signed(distance as isize))
}
