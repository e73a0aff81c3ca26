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
    /// The base of `gs`, if a stub inside has changed it.
    pub segment: Option<usize>,
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

    /// The frame of the stub [`Helper::Relocate`](weir_contract::Helper::Relocate) with this frame pointer is left.
    ///
    /// # Safety
    /// It is on this thread's stack.
    #[inline]
    pub unsafe fn leave_relocation(&mut self, fp: usize) {
        // SAFETY: the caller's promise; the stub pushes the base after `rbp`.
        self.segment = Some(unsafe { ptr::with_exposed_provenance::<usize>(fp - 8).read() });
    }

    /// The segment of frames is left. What boundaries and activations save is no longer here.
    pub fn leave_segment(&mut self) {
        *self = Unwound { segment: self.segment, ..Unwound::default() };
    }

    /// An activation without a record is left, whose base frame is at `base`. The stub that began it has the frame pointer `exit_fp`.
    pub fn leave_immediate(&mut self, exit_fp: usize, base: *mut u64) {
        // The head of `interp/x64/immediate` has the frame.
        let preserved = [1, 3, 4, 5].map(|word| exit_fp - 8 * word);
        const { assert!(matches!(PRESERVED_REGS, [3, 12, 13, 14])) };
        (self.preserved, self.value_sp) = (preserved, Some(base));
    }
}
