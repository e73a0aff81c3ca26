//! The base of the segment register `gs`, which code of the native back end needs to be that of memory 0: see the contract.
//!
//! The base belongs to the thread. Code that needs another one sets it, and restores it before it returns, as a function does with a register
//! that calls preserve. Rust does so where guests end without returning, and where a coroutine continues.

use std::sync::atomic::{AtomicBool, Ordering};

/// Whether some engine of the process makes code that uses it. The processor may not know the instructions otherwise.
static USED: AtomicBool = AtomicBool::new(false);

/// Notes that an engine makes code that uses the base. It [is available](is_available).
pub(crate) fn use_it() {
    debug_assert!(is_available());
    USED.store(true, Ordering::Relaxed);
}

/// Returns whether programs may read and write the base: the processor can, and the system lets them.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub(crate) fn is_available() -> bool {
    /// The bit by which Linux says so.
    const FSGSBASE: u64 = 1 << 1;
    // SAFETY: it reads a list that does not change.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & FSGSBASE != 0 }
}

/// Returns whether programs may read and write the base.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub(crate) fn is_available() -> bool {
    false
}

/// Returns the base.
///
/// # Safety
/// It is available.
#[inline(always)]
unsafe fn base() -> usize {
    let base;
    // SAFETY: the caller's promise; it changes nothing.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("rdgsbase {}", out(reg) base, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        base = 0;
    }
    base
}

/// Sets the base.
///
/// # Safety
/// It is available. No code that has not returned relies on the present base, unless it is restored before that continues.
#[cold]
pub(crate) unsafe fn set_base(base: usize) {
    // SAFETY: the caller's promise; Rust's code makes no use of the segment.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!("wrgsbase {}", in(reg) base, options(nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = base;
}

/// A base that code on this thread's stack may rely on. It is 0 if none does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Base(usize);

impl Base {
    /// Returns the present base.
    #[inline(always)]
    pub fn now() -> Base {
        // SAFETY: an engine that uses it has found it available.
        Base(if USED.load(Ordering::Relaxed) { unsafe { base() } } else { 0 })
    }

    /// Sets the base, if there is none, to that of a memory. Code of its instance then finds it.
    #[inline(always)]
    pub fn or_of(self, memory: *mut u8) {
        if self.0 == 0 && USED.load(Ordering::Relaxed) {
            // SAFETY: as in `now`; no code relies on the base.
            unsafe { set_base(memory.addr()) };
        }
    }

    /// Makes this the base again. Where it is 0, no code relies on the base.
    #[inline(always)]
    pub fn restore(self) {
        if self.0 != 0 && Base::now().0 != self.0 {
            // SAFETY: as in `now`; what ran meanwhile is over.
            unsafe { set_base(self.0) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_restored() {
        if !is_available() {
            return;
        }
        std::thread::spawn(|| {
            use_it();
            // A thread begins with the base of the one that started it.
            // SAFETY: no code relies on the base.
            unsafe { set_base(0) };
            Base::now().or_of(std::ptr::without_provenance_mut(0x1000));
            let first = Base::now();
            assert_eq!(first.0, 0x1000);
            first.or_of(std::ptr::without_provenance_mut(0x2000));
            assert_eq!(Base::now().0, 0x1000, "code may rely on it");
            // SAFETY: no code relies on the base.
            unsafe { set_base(0x3000) };
            first.restore();
            assert_eq!(Base::now().0, 0x1000);
            Base(0).restore();
            assert_eq!(Base::now().0, 0x1000, "nothing relied on the base");
        })
        .join()
        .unwrap();
    }
}
