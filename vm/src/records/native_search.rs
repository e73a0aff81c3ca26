//! The progress of the search for a handler over native frames.

use std::ptr;
use weir_contract::PRESERVED_REGS;
use weir_contract::code::FrameLayout;

/// What frames inside a native frame of the same segment have saved of its state at its call.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Unwound {
    /// The addresses at which the values of [`PRESERVED_REGS`] are; 0 if they are in the registers.
    pub preserved: [usize; 4],
    /// The value of `value_sp`, if a frame inside has changed it.
    pub value_sp: Option<*mut u64>,
}

/// The progress of a search over native frames.
#[derive(Debug)]
pub(crate) struct NativeSearch {
    /// The fuel that the search costs so far: a unit for each frame of the source program, of any engine, that has been left, and for
    /// each clause that has been tested.
    pub cost: u64,
    /// The cost at which the deadline and the fuel are checked next.
    pub check_at: u64,
    /// How often code has been freed, for [`Catches`](super::catches::Catches).
    pub freed: usize,
    /// What the frames of this segment that have been left have saved.
    pub unwound: Unwound,
}

impl NativeSearch {
    /// Returns the cost in units of fuel.
    pub fn fuel(&self) -> i64 {
        i64::try_from(self.cost).unwrap_or(i64::MAX)
    }
}

impl Unwound {
    /// The frame with this layout and frame pointer is left.
    ///
    /// # Safety
    /// It is on this thread's stack.
    #[inline]
    pub unsafe fn leave(&mut self, fp: usize, layout: &FrameLayout) {
        for (at, &word) in self.preserved.iter_mut().zip(&layout.preserved) {
            *at = if word == 0 { *at } else { fp - 8 * word as usize };
        }
        if layout.value_sp != 0 {
            let at = ptr::with_exposed_provenance::<*mut u64>(fp - 8 * layout.value_sp as usize);
            // SAFETY: the caller's promise.
            self.value_sp = Some(unsafe { at.read() });
        }
    }

    /// An activation without a record is left, whose base frame is at `base`. The stub that began it has the frame pointer `exit_fp`.
    pub fn leave_immediate(exit_fp: usize, base: *mut u64) -> Unwound {
        // The head of `interp/x64/immediate` has the frame.
        let preserved = [1, 3, 4, 5].map(|word| exit_fp - 8 * word);
        const { assert!(matches!(PRESERVED_REGS, [3, 12, 13, 14])) };
        Unwound { preserved, value_sp: Some(base) }
    }
}
