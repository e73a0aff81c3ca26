//! Turns faults of compiled code into traps.
//!
//! The process's fault handler claims a fault only if its pc is exactly that of an entry in the trap table of published
//! code. It then records pc and frame, and resumes in the common stub that unwinds. Any other fault goes to the handler
//! that was installed before, so a crash of the host looks as it does without Weir.
//!
//! Everything the handler reads is immutable or atomic, and none of it is freed while it reads. The list of arenas only
//! grows (entries are reused), and an arena, a region or a trap table that contains the faulting pc is in use by the
//! faulting thread.

use super::info::CodeInfo;
use super::map::{CODE_LEN, CodeArena};
use super::stubs;
use crate::sys::fork::{AtomicProcess, PerProcess};
use crate::sys::signals::{self, Fault, Register};
use std::io;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};
use weir_contract::InstanceCtx;

/// An entry of the list of arenas; unused while `base` is 0, and in forked children of the process that used it. Never freed.
#[derive(Debug)]
struct Entry {
    /// Address of the arena's code. Written last and cleared first.
    base: AtomicUsize,
    arena: AtomicPtr<CodeArena>,
    /// [`stubs::Common::trap`].
    pad: AtomicPtr<u8>,
    /// The process that has the arena. A child has no code there, and may have an arena of its own at the same address.
    process: AtomicProcess,
    next: *const Entry,
}

static ENTRIES: AtomicPtr<Entry> = AtomicPtr::new(null_mut());
/// Held while the list is changed.
static WRITER: PerProcess<Mutex<()>> = PerProcess::new();

/// The registration of an arena with the handler, until it is dropped.
#[derive(Debug)]
pub(super) struct Registration {
    entry: &'static Entry,
    /// The arena outlives its entry.
    _arena: Arc<CodeArena>,
}

// SAFETY: an entry is only changed under `WRITER`, through atomics.
unsafe impl Send for Registration {}
// SAFETY: as above.
unsafe impl Sync for Registration {}

/// Registers `arena`: its faults become traps that resume at `pad`. Installs the handlers if they are not installed.
///
/// # Errors
/// The system does not allow the handlers.
pub(super) fn register(arena: &Arc<CodeArena>, pad: NonNull<u8>) -> io::Result<Registration> {
    signals::install_fault_handlers(resume_in_pad)?;
    let _writer = WRITER.get().lock().unwrap_or_else(PoisonError::into_inner);
    let head = ENTRIES.load(Ordering::Relaxed);
    let entry = entries().find(|entry| !entry.is_used()).unwrap_or_else(|| {
        let entry = Box::leak(Box::new(Entry {
            base: AtomicUsize::new(0),
            arena: AtomicPtr::new(null_mut()),
            pad: AtomicPtr::new(null_mut()),
            process: AtomicProcess::current(),
            next: head,
        }));
        ENTRIES.store(entry, Ordering::Release);
        entry
    });
    // The entry may be one that the parent of this process used.
    entry.base.store(0, Ordering::Relaxed);
    fence(Ordering::Release);
    entry.arena.store(Arc::as_ptr(arena).cast_mut(), Ordering::Relaxed);
    entry.pad.store(pad.as_ptr(), Ordering::Relaxed);
    entry.process.set_current();
    entry.base.store(arena.base(), Ordering::Release);
    Ok(Registration { entry, _arena: arena.clone() })
}

impl Entry {
    /// Returns whether an arena of this process has the entry.
    fn is_used(&self) -> bool {
        self.base.load(Ordering::Acquire) != 0 && self.process.is_current()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let _writer = WRITER.get().lock().unwrap_or_else(PoisonError::into_inner);
        self.entry.base.store(0, Ordering::Release);
    }
}

fn entries() -> impl Iterator<Item = &'static Entry> {
    let mut next = ENTRIES.load(Ordering::Acquire).cast_const();
    std::iter::from_fn(move || {
        // SAFETY: entries are leaked, and initialised before they are linked.
        let entry = unsafe { next.as_ref()? };
        next = entry.next;
        Some(entry)
    })
}

/// If the interrupted instruction is a trap site, records the trap and resumes in the stub that unwinds.
fn resume_in_pad(fault: &mut Fault<'_>) -> bool {
    let (pc, fp) = (fault.get(Register::Rip), fault.get(Register::Rbp));
    let arena_of_pc =
        |entry: &&Entry| pc.wrapping_sub(entry.base.load(Ordering::Acquire)) < CODE_LEN && entry.process.is_current();
    let Some(entry) = entries().find(arena_of_pc) else { return false };
    // SAFETY: this thread is running in the arena, so the arena lives.
    let arena = unsafe { &*entry.arena.load(Ordering::Relaxed) };
    let Some((start, tag)) = arena.region_at(pc).filter(|&(_, tag)| tag != stubs::STUB) else { return false };
    // SAFETY: the tag of a function's region is the address of its record, which lives as long as the region, and this
    // thread runs in the region.
    let info = unsafe { &*(tag as *const CodeInfo) };
    if info.tables.trap_at((pc - start).wrapping_sub(info.before)).is_none() {
        return false;
    }

    let instance = fault.get(Register::R15) as *mut InstanceCtx;
    // SAFETY: at a trap site r15 is the running instance, and only this thread uses its store.
    unsafe {
        let store = (*instance).store;
        (*store).trap_pc = pc;
        (*store).trap_fp = fp;
        if let Some(address) = fault.address() {
            (*store).operand = address as u64;
        }
    }
    // Below the red zone of the interrupted code.
    let sp = (fault.get(Register::Rsp) - 128) & !15;
    for (register, value) in [
        (Register::Rip, entry.pad.load(Ordering::Relaxed) as usize),
        (Register::Rsp, sp),
        (Register::Rdi, instance as usize),
        (Register::Rsi, pc),
        (Register::Rdx, fp),
    ] {
        fault.set(register, value);
    }
    true
}

/// Bytes of an alternate signal stack: a trap and other signals nest on it.
const HANDLER_STACK: usize = 64 << 10;

/// Provides this thread with an alternate signal stack that is large enough. Must be called before native code is entered;
/// after the first time it costs a thread-local read.
///
/// # Errors
/// There is no memory for it.
#[inline]
pub(crate) fn ensure_altstack() -> io::Result<()> {
    signals::ensure_stack(HANDLER_STACK)
}
