//! Synchronous signals: the process's fault handler, and the alternate stack on which a thread handles them.

use super::calls::Call;
use super::fork::PerProcess;
use super::mapping::{Access, Mapping, page_size};
use std::cell::{Cell, OnceCell};
use std::io;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// A register, as an index into the general registers of a [`Fault`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub(crate) enum Register {
    Rip = libc::REG_RIP,
    Rsp = libc::REG_RSP,
    Rbp = libc::REG_RBP,
    Rdi = libc::REG_RDI,
    Rsi = libc::REG_RSI,
    Rdx = libc::REG_RDX,
    R15 = libc::REG_R15,
}

/// A faulting instruction: the registers of the thread, which it has again when the handler returns.
#[derive(Debug)]
pub(crate) struct Fault<'a> {
    registers: &'a mut [libc::greg_t; 23],
    address: Option<usize>,
}

impl Fault<'_> {
    /// Returns the address whose access caused it, if an access did.
    pub fn address(&self) -> Option<usize> {
        self.address
    }

    /// Returns the value of a register.
    pub fn get(&self, register: Register) -> usize {
        self.registers[register as usize] as usize
    }

    /// Sets the value that a register has when the thread continues.
    pub fn set(&mut self, register: Register, value: usize) {
        self.registers[register as usize] = value as libc::greg_t;
    }
}

/// Decides about a fault. Returns true if the thread continues with the registers as they are now, and false to forward
/// the fault.
///
/// Called in a signal handler: it allocates nothing, takes no lock and does not panic.
pub(crate) type Claim = fn(&mut Fault<'_>) -> bool;

const SIGNALS: [libc::c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE];

static CLAIM: OnceLock<Claim> = OnceLock::new();

/// The previous actions of [`SIGNALS`]; all set before the first handler is installed.
static PREVIOUS: OnceLock<[libc::sigaction; SIGNALS.len()]> = OnceLock::new();

/// Installs the process's handlers of SIGSEGV, SIGBUS, SIGILL and SIGFPE, if they are not installed. They call `claim`,
/// which is always the same function. A fault that it does not claim is forwarded to the previous handler.
///
/// # Errors
/// The system's error. Some handlers may be installed; the next call installs the rest.
pub(crate) fn install_fault_handlers(claim: Claim) -> io::Result<()> {
    static INSTALLED: AtomicBool = AtomicBool::new(false);
    static WRITER: PerProcess<Mutex<()>> = PerProcess::new();
    let _writer = WRITER.get().lock().unwrap_or_else(PoisonError::into_inner);
    if INSTALLED.load(Ordering::Relaxed) {
        return Ok(());
    }
    let mut previous = [empty_action(); SIGNALS.len()];
    for (&signal, old) in SIGNALS.iter().zip(&mut previous) {
        Call::SignalAction.enter()?;
        // SAFETY: it only fills in `old`.
        check(unsafe { libc::sigaction(signal, null(), old) })?;
    }
    CLAIM.get_or_init(|| claim);
    PREVIOUS.get_or_init(|| previous);
    let mut action = empty_action();
    action.sa_sigaction = handle as *const () as usize;
    // NODEFER: a fault in the handler must kill, not hang; and the signal mask stays right although the handler may
    // resume elsewhere.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
    for signal in SIGNALS {
        Call::SignalInstall.enter()?;
        // SAFETY: `handle` is async-signal-safe and forwards other faults.
        check(unsafe { libc::sigaction(signal, &action, null_mut()) })?;
    }
    INSTALLED.store(true, Ordering::Relaxed);
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
    // SAFETY: the kernel passes both, valid until the handler returns.
    let (code, registers) = unsafe { ((*info).si_code, &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs) };
    // SAFETY: the address is set for these signals, and unused for others.
    let address = (signal == libc::SIGSEGV || signal == libc::SIGBUS).then(|| unsafe { (*info).si_addr() }.addr());
    // A code of 0 or less means that a process sent the signal; then the instruction at pc did not cause it.
    let claimed = code > 0 && CLAIM.get().is_some_and(|claim| claim(&mut Fault { registers, address }));
    if !claimed {
        // SAFETY: the arguments are the kernel's.
        unsafe { chain(signal, info, context) };
    }
}

/// Performs the previous action of the signal.
///
/// # Safety
/// Called by a signal handler with its own arguments.
unsafe fn chain(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let position = SIGNALS.iter().position(|&ours| ours == signal);
    let Some(previous) = PREVIOUS.get().zip(position).map(|(previous, i)| &previous[i]) else { return };
    // SAFETY: the arguments are the kernel's, and the previous action is a handler.
    unsafe {
        match previous.sa_sigaction {
            // A signal that was sent is ignored, and the handler stays for traps. The system ignores no fault.
            libc::SIG_IGN if (*info).si_code <= 0 => {}
            libc::SIG_DFL | libc::SIG_IGN => {
                // The faulting instruction runs again when the handler returns, and the signal then takes effect; a
                // signal that was sent must be sent again.
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

/// Provides this thread with an alternate signal stack of at least `bytes`. A smaller one is replaced: threads that Rust
/// made have 8 KiB, which two of the kernel's frames nearly fill where it saves the registers of AVX-512, and a third
/// ends the process. After the first time it costs a thread-local read.
///
/// # Errors
/// There is no memory for it, or the system refuses.
#[inline]
pub(crate) fn ensure_stack(bytes: usize) -> io::Result<()> {
    if READY.get() { Ok(()) } else { install_stack(bytes) }
}

/// Returns whether [`ensure_stack`] has succeeded on this thread.
#[inline]
pub(crate) fn has_stack() -> bool {
    READY.get()
}

thread_local! {
    /// Whether this thread has an alternate stack. Without a destructor, so that reading it costs one load.
    static READY: Cell<bool> = const { Cell::new(false) };
}

#[cold]
fn install_stack(bytes: usize) -> io::Result<()> {
    thread_local!(static OWN: OnceCell<Option<AltStack>> = const { OnceCell::new() });
    let install = |own: &OnceCell<Option<AltStack>>| {
        if own.get().is_none() {
            let _ = own.set(AltStack::install_if_small(bytes)?);
        }
        READY.set(true);
        Ok(())
    };
    // A thread that is ending has removed its stack, if it had one of ours.
    OWN.try_with(install).unwrap_or_else(|_| Err(io::Error::other("the thread has no signal stack any more")))
}

/// This thread's alternate stack, if it was made here; removed when the thread ends. The one before is not put back:
/// Rust's has been unmapped by then.
#[derive(Debug)]
struct AltStack {
    memory: Option<Mapping>,
}

impl AltStack {
    /// Returns `None` if the thread's stack is large enough, or if it runs on it, so that it cannot be replaced.
    fn install_if_small(bytes: usize) -> io::Result<Option<AltStack>> {
        let mut current = disabled();
        Call::SignalStack.enter()?;
        // SAFETY: it only fills in `current`.
        check(unsafe { libc::sigaltstack(null(), &mut current) })?;
        let is_enabled = current.ss_flags & libc::SS_DISABLE == 0;
        if is_enabled && (current.ss_size >= bytes || current.ss_flags & libc::SS_ONSTACK != 0) {
            return Ok(None);
        }
        // SAFETY: it reads a constant.
        let kernel_frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
        let guard = page_size();
        let memory = Mapping::zeroed(guard + bytes + kernel_frame)?;
        // SAFETY: nothing points into the mapping.
        unsafe { memory.protect(0..guard, Access::None)? };
        let ss_sp = memory.as_mut_ptr().wrapping_add(guard).cast();
        let stack = libc::stack_t { ss_sp, ss_flags: 0, ss_size: memory.len() - guard };
        Call::SignalStackInstall.enter()?;
        // SAFETY: the memory stays mapped until `drop` has removed the stack.
        check(unsafe { libc::sigaltstack(&stack, null_mut()) })?;
        Ok(Some(AltStack { memory: Some(memory) }))
    }
}

impl Drop for AltStack {
    fn drop(&mut self) {
        READY.set(false);
        // SAFETY: this is the thread that installed it, and it is not handling a signal.
        let remove = |()| check(unsafe { libc::sigaltstack(&disabled(), null_mut()) });
        let removed = Call::SignalStackRemove.enter().and_then(remove);
        if removed.is_err() {
            // The stack is still in use, so its memory must stay.
            std::mem::forget(self.memory.take());
        }
    }
}

/// No alternate stack.
fn disabled() -> libc::stack_t {
    libc::stack_t { ss_sp: null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 }
}
