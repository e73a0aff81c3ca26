//! Faults of compiled code become traps.
//!
//! One handler for SIGSEGV, SIGBUS, SIGILL and SIGFPE is installed once per process. It claims a fault only if the pc
//! is exactly that of an entry of the trap table of published code; then it records pc and frame and resumes in the
//! common stub that unwinds. Any other fault goes to the handler that was there before, so a crash of the host
//! looks as it would without Weir.
//!
//! Everything the handler reads is immutable or atomic and none of it is freed under it: the list of arenas
//! only grows (entries are reused), and an arena, a region or a trap table that holds the faulting pc is in use by the
//! very thread that faulted.

use super::map::{CODE_LEN, CodeArena};
use super::{CodeInfo, stubs};
use memmap2::MmapMut;
use rustix::mm::{MprotectFlags, mprotect};
use std::cell::{Cell, OnceCell};
use std::io;
use std::mem::MaybeUninit;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use weir_contract::InstanceCtx;

const SIGNALS: [libc::c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];

/// What each of [`SIGNALS`] did before; all set before the first handler is installed.
static PREVIOUS: OnceLock<[libc::sigaction; SIGNALS.len()]> = OnceLock::new();

/// One arena, or none while `base` is 0. Never freed.
#[derive(Debug)]
struct Entry {
    /// Address of the arena's code. Written last and cleared first.
    base: AtomicUsize,
    arena: AtomicPtr<CodeArena>,
    /// [`stubs::Common::trap`].
    pad: AtomicPtr<u8>,
    next: *const Entry,
}

static ENTRIES: AtomicPtr<Entry> = AtomicPtr::new(null_mut());
/// Held by whoever changes the list.
static WRITER: Mutex<()> = Mutex::new(());

/// Keeps an arena known to the handler.
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

/// Lets faults in `arena` be traps that resume at `pad`. Installs the handlers if that has not been done.
///
/// # Errors
/// If the system denies them.
pub(super) fn register(arena: &Arc<CodeArena>, pad: NonNull<u8>) -> io::Result<Registration> {
    install_handlers()?;
    let _writer = WRITER.lock().unwrap_or_else(PoisonError::into_inner);
    let head = ENTRIES.load(Ordering::Relaxed);
    let entry = entries().find(|entry| entry.base.load(Ordering::Relaxed) == 0).unwrap_or_else(|| {
        let entry = Box::leak(Box::new(Entry {
            base: AtomicUsize::new(0),
            arena: AtomicPtr::new(null_mut()),
            pad: AtomicPtr::new(null_mut()),
            next: head,
        }));
        ENTRIES.store(entry, Ordering::Release);
        entry
    });
    entry.arena.store(Arc::as_ptr(arena).cast_mut(), Ordering::Relaxed);
    entry.pad.store(pad.as_ptr(), Ordering::Relaxed);
    entry.base.store(arena.base(), Ordering::Release);
    Ok(Registration { entry, _arena: arena.clone() })
}

impl Drop for Registration {
    fn drop(&mut self) {
        let _writer = WRITER.lock().unwrap_or_else(PoisonError::into_inner);
        self.entry.base.store(0, Ordering::Release);
    }
}

fn entries() -> impl Iterator<Item = &'static Entry> {
    let mut next = ENTRIES.load(Ordering::Acquire).cast_const();
    std::iter::from_fn(move || {
        // SAFETY: entries are leaked, and complete before they are linked.
        let entry = unsafe { next.as_ref()? };
        next = entry.next;
        Some(entry)
    })
}

fn install_handlers() -> io::Result<()> {
    static INSTALLED: Mutex<bool> = Mutex::new(false);
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if *installed {
        return Ok(());
    }
    let mut previous = [empty_action(); SIGNALS.len()];
    for (&signal, old) in SIGNALS.iter().zip(&mut previous) {
        // SAFETY: only asks.
        check(unsafe { libc::sigaction(signal, std::ptr::null(), old) })?;
    }
    PREVIOUS.get_or_init(|| previous);
    let mut action = empty_action();
    action.sa_sigaction = handle as *const () as usize;
    // NODEFER: a fault while handling one must kill, not hang; and the mask stays right when the handler does not return
    // to where it was.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
    for signal in SIGNALS {
        // SAFETY: `handle` is async-signal-safe and passes on what is not ours.
        check(unsafe { libc::sigaction(signal, &action, null_mut()) })?;
    }
    *installed = true;
    Ok(())
}

fn empty_action() -> libc::sigaction {
    // SAFETY: all zeros is the default action with an empty mask.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

unsafe extern "C" fn handle(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes both, for our use until we return.
    let (code, registers) = unsafe { ((*info).si_code, &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs) };
    // A code of 0 or less means that a process sent the signal: then it is not about the instruction at pc.
    if code <= 0 || resume_in_pad(registers).is_none() {
        // SAFETY: the arguments are the kernel's.
        unsafe { chain(signal, info, context) };
    }
}

/// If the interrupted instruction is a trap site: records the trap and redirects to the stub that unwinds.
fn resume_in_pad(registers: &mut [libc::greg_t; 23]) -> Option<()> {
    let get = |register: libc::c_int| registers[register as usize] as usize;
    let (pc, fp) = (get(libc::REG_RIP), get(libc::REG_RBP));
    let entry = entries().find(|entry| pc.wrapping_sub(entry.base.load(Ordering::Acquire)) < CODE_LEN)?;
    // SAFETY: this thread is running in the arena, so the arena lives.
    let arena = unsafe { &*entry.arena.load(Ordering::Relaxed) };
    let (start, tag) = arena.region_at(pc).filter(|&(_, tag)| tag != stubs::STUB)?;
    // SAFETY: the tag of a region of a function is the address of its record, which lives as long as the region, in
    // which this thread is running.
    let info = unsafe { &*(tag as *const CodeInfo) };
    info.trap_at(pc - start)?;

    let instance = get(libc::REG_R15) as *mut InstanceCtx;
    // SAFETY: at a trap site r15 is the instance that runs, and nobody else uses its store now.
    unsafe {
        let store = (*instance).store;
        (*store).trap_pc = pc;
        (*store).trap_fp = fp;
    }
    // Clear of anything that the interrupted code may keep below rsp.
    let sp = (get(libc::REG_RSP) - 128) & !15;
    for (register, value) in [
        (libc::REG_RIP, entry.pad.load(Ordering::Relaxed) as usize),
        (libc::REG_RSP, sp),
        (libc::REG_RDI, instance as usize),
        (libc::REG_RSI, pc),
        (libc::REG_RDX, fp),
    ] {
        registers[register as usize] = value as libc::greg_t;
    }
    Some(())
}

/// Does what would have been done without our handler.
///
/// # Safety
/// For a signal handler to call with its own arguments.
unsafe fn chain(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let position = SIGNALS.iter().position(|&ours| ours == signal);
    let Some(previous) = PREVIOUS.get().zip(position).map(|(previous, i)| &previous[i]) else { return };
    // SAFETY: the arguments are the kernel's, and what was installed as a handler is one.
    unsafe {
        match previous.sa_sigaction {
            libc::SIG_DFL | libc::SIG_IGN => {
                // The faulting instruction runs again when we return, and then takes effect; a signal that was sent must be
                // sent again.
                libc::sigaction(signal, previous, null_mut());
                if (*info).si_code <= 0 {
                    libc::raise(signal);
                }
            }
            handler if previous.sa_flags & libc::SA_SIGINFO != 0 => {
                let handler: unsafe extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                    std::mem::transmute(handler);
                handler(signal, info, context);
            }
            handler => {
                let handler: unsafe extern "C" fn(libc::c_int) = std::mem::transmute(handler);
                handler(signal);
            }
        }
    }
}

/// Bytes for the handler itself; the kernel's own frame comes on top.
const ALTSTACK: usize = 64 << 10;
const PAGE: usize = 4 << 10;

/// Gives this thread an alternate signal stack if it has none: threads that Rust made have one, those of a C program need
/// not. To be called before native code is entered; costs a thread-local read after the first time.
///
/// # Errors
/// If there is no memory for it.
#[inline]
pub(crate) fn ensure_altstack() -> io::Result<()> {
    if READY.get() { Ok(()) } else { install_altstack() }
}

thread_local! {
    /// Whether this thread has an alternate stack. Without a destructor, so that asking costs one load.
    static READY: Cell<bool> = const { Cell::new(false) };
}

#[cold]
fn install_altstack() -> io::Result<()> {
    thread_local!(static OWN: OnceCell<Option<AltStack>> = const { OnceCell::new() });
    OWN.with(|own| {
        if own.get().is_none() {
            let _ = own.set(AltStack::install_if_missing()?);
        }
        READY.set(true);
        Ok(())
    })
}

/// This thread's alternate stack, if we made it; removed when the thread ends.
#[derive(Debug)]
struct AltStack {
    _memory: MmapMut,
}

impl AltStack {
    fn install_if_missing() -> io::Result<Option<AltStack>> {
        let mut current = libc::stack_t { ss_sp: null_mut(), ss_flags: 0, ss_size: 0 };
        // SAFETY: only asks.
        check(unsafe { libc::sigaltstack(std::ptr::null(), &mut current) })?;
        if current.ss_flags & libc::SS_DISABLE == 0 {
            return Ok(None);
        }
        // SAFETY: only asks.
        let kernel_frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
        let mut memory = MmapMut::map_anon(PAGE + ALTSTACK + kernel_frame)?;
        // SAFETY: the lowest page of a mapping of ours that nothing points into: a guard.
        unsafe { mprotect(memory.as_mut_ptr().cast(), PAGE, MprotectFlags::empty())? };
        // SAFETY: within the mapping.
        let ss_sp = unsafe { memory.as_mut_ptr().add(PAGE) }.cast();
        let stack = libc::stack_t { ss_sp, ss_flags: 0, ss_size: memory.len() - PAGE };
        // SAFETY: the memory stays until `drop` has taken the stack out of use.
        check(unsafe { libc::sigaltstack(&stack, null_mut()) })?;
        Ok(Some(AltStack { _memory: memory }))
    }
}

impl Drop for AltStack {
    fn drop(&mut self) {
        READY.set(false);
        let none = libc::stack_t { ss_sp: null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };
        // SAFETY: this is the thread that installed it, and it is not handling a signal.
        unsafe { libc::sigaltstack(&none, null_mut()) };
    }
}
