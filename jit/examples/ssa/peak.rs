//! The most memory allocated at once. Tests of other packages include this file, too.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The result of `run`, and the most memory that it takes at once, its result included.
pub fn peak_during<R>(run: impl FnOnce() -> R) -> (R, usize) {
    PEAK.start();
    let result = run();
    (result, PEAK.read())
}

/// The memory in use over several steps.
#[allow(dead_code, reason = "not every program needs it")]
pub struct Watched;

#[allow(dead_code, reason = "not every program needs it")]
impl Watched {
    pub fn start() {
        PEAK.start();
    }

    /// The most since the last call, beyond what was in use at the start.
    pub fn most_since() -> usize {
        let most = PEAK.read();
        PEAK.most.store(PEAK.used.load(Relaxed), Relaxed);
        most
    }
}

/// The bytes in use.
#[allow(dead_code, reason = "not every program needs it")]
pub fn in_use() -> usize {
    PEAK.used.load(Relaxed)
}

/// The system's allocator, which counts bytes in use. Exact on one thread, so that counting needs no locked instructions,
/// which would take as long as the allocations that they count.
struct Peak {
    used: AtomicUsize,
    most: AtomicUsize,
    base: AtomicUsize,
}

/// Counts all of this program's allocations.
#[global_allocator]
static PEAK: Peak = Peak { used: AtomicUsize::new(0), most: AtomicUsize::new(0), base: AtomicUsize::new(0) };

impl Peak {
    /// From here on.
    fn start(&self) {
        let used = self.used.load(Relaxed);
        self.most.store(used, Relaxed);
        self.base.store(used, Relaxed);
    }

    /// The most bytes in use since the start, beyond those in use then.
    fn read(&self) -> usize {
        self.most.load(Relaxed) - self.base.load(Relaxed)
    }

    fn shrink(&self, size: usize) {
        self.used.store(self.used.load(Relaxed).wrapping_sub(size), Relaxed);
    }

    fn grow(&self, size: usize) {
        let used = self.used.load(Relaxed).wrapping_add(size);
        self.used.store(used, Relaxed);
        if used > self.most.load(Relaxed) {
            self.most.store(used, Relaxed);
        }
    }
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Peak {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.grow(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        self.shrink(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.shrink(layout.size());
        self.grow(size);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
