//! The process, as distinct from those that it was forked from.
//!
//! A forked child has the memory of its parent and one of its threads. What the others were doing is never finished there: a lock that one of
//! them held stays locked. So what belongs to a process remembers [which](Process), and the child can tell before it takes a lock.
//!
//! The number of the process is in a page that the kernel clears in children (`MADV_WIPEONFORK`, Linux 4.14). This also holds for children
//! of clone(2), which handlers of pthread_atfork(3) do not see.

use super::mapping::Mapping;
use std::fmt;
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// A process, different from the ones that it was forked from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Process(u64);

/// The word with the number of the process. Null before it is first needed.
static WORD: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());

impl Process {
    /// Returns the process that executes this. Where the system cannot clear a page in children, these are not told from their parents.
    pub fn current() -> Process {
        /// The last number that this process or one before it has had.
        static LAST: AtomicU64 = AtomicU64::new(0);
        let word = word();
        let number = word.load(Ordering::Relaxed);
        if number != 0 {
            return Process(number);
        }
        let new = LAST.fetch_add(1, Ordering::Relaxed) + 1;
        match word.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => Process(new),
            Err(number) => Process(number),
        }
    }

    /// Returns whether this process executes this, and no child of it. Costs two loads. May be called in a signal handler.
    #[inline(always)]
    pub fn is_current(self) -> bool {
        let word = WORD.load(Ordering::Relaxed);
        // SAFETY: `current`, which made this value, has set the pointer, and the word is never freed.
        unsafe { (*word).load(Ordering::Relaxed) == self.0 }
    }
}

/// A static value of which each process has its own: a forked child begins with a new one, and never uses its parent's.
#[doc(hidden)]
pub struct PerProcess<T: 'static>(AtomicPtr<(Process, T)>);

impl<T: Default + Send + Sync> PerProcess<T> {
    /// Creates the place of the value.
    #[must_use]
    pub const fn new() -> PerProcess<T> {
        PerProcess(AtomicPtr::new(ptr::null_mut()))
    }

    /// Returns the value of this process, which is made at its first call.
    pub fn get(&self) -> &'static T {
        let known = self.0.load(Ordering::Acquire);
        // SAFETY: values are leaked, and initialised before they are stored.
        if let Some((process, value)) = unsafe { known.as_ref() }
            && process.is_current()
        {
            return value;
        }
        let new = Box::into_raw(Box::new((Process::current(), T::default())));
        match self.0.compare_exchange(known, new, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: as above.
            Ok(_) => unsafe { &(*new).1 },
            // SAFETY: `new` is no one else's. Another thread of this process was faster, and its value is as above.
            Err(other) => unsafe {
                drop(Box::from_raw(new));
                &(*other).1
            },
        }
    }
}

impl<T: Default + Send + Sync> Default for PerProcess<T> {
    fn default() -> PerProcess<T> {
        PerProcess::new()
    }
}

impl<T> fmt::Debug for PerProcess<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PerProcess").finish_non_exhaustive()
    }
}

// SAFETY: it gives out shared references to values that are never freed.
unsafe impl<T: Send + Sync> Sync for PerProcess<T> {}

/// A [`Process`] that can be changed.
#[derive(Debug)]
pub(crate) struct AtomicProcess(AtomicU64);

impl AtomicProcess {
    /// Creates one of the process that executes this.
    pub fn current() -> AtomicProcess {
        AtomicProcess(AtomicU64::new(Process::current().0))
    }

    /// Changes it to the process that executes this.
    pub fn set_current(&self) {
        self.0.store(Process::current().0, Ordering::Relaxed);
    }

    /// As [`Process::is_current`], also in a signal handler.
    pub fn is_current(&self) -> bool {
        Process(self.0.load(Ordering::Relaxed)).is_current()
    }
}

/// Returns the word, in a page that is made at the first call.
fn word() -> &'static AtomicU64 {
    /// The word of systems that cannot clear a page.
    static KEPT: AtomicU64 = AtomicU64::new(0);
    let word = WORD.load(Ordering::Acquire);
    if !word.is_null() {
        // SAFETY: it is never freed.
        return unsafe { &*word };
    }
    let page = wiped_page().ok();
    let new = page.as_ref().map_or(ptr::from_ref(&KEPT).cast_mut(), |page| page.as_mut_ptr().cast());
    // The page was mapped before.
    match WORD.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            mem::forget(page);
            // SAFETY: the page has been given up, and is aligned and 0, a valid value.
            unsafe { &*new }
        }
        // SAFETY: another thread has set it; as above.
        Err(word) => unsafe { &*word },
    }
}

/// Maps a page that is 0, and in each forked child again.
#[cfg(target_os = "linux")]
fn wiped_page() -> std::io::Result<Mapping> {
    let page = Mapping::zeroed(super::mapping::page_size())?;
    page.wipe_in_forks()?;
    Ok(page)
}

/// Other systems cannot.
#[cfg(not(target_os = "linux"))]
fn wiped_page() -> std::io::Result<Mapping> {
    Err(std::io::ErrorKind::Unsupported.into())
}
