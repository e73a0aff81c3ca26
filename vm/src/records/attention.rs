//! What a call between the embedder and the guest has to do besides calling.
//!
//! One byte of the store has a flag for each such thing. So a call of the guest that has nothing else to do finds this by one comparison
//! before and one after it. A call of a host function compares it once, when the function returns, and only if the function can use the
//! store: what is to be done before, for a hook or where everything moves, has an entry of its own, to which the contexts of the store's
//! host functions lead. See [`exec::host`](crate::exec::host).
//!
//! Scoped roots are the reason for a flag that changes during calls. A *call* here is one of the guest by the embedder, or of a host function
//! by the guest, and those that are running are nested. Without [`Attention::ROOTS`] the innermost one has no scoped roots:
//! [`Roots::base`](super::roots::Roots::base) of them are of calls around it. While the guest runs, the flag is clear: a call of the guest
//! that finds it set sets the base, clears the flag, and restores both at its end, and a host function that returns removes its roots. So
//! the embedder's roots make no calls slower that the guest makes.

/// Flags of what calls have to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Attention(u8);

impl Attention {
    /// Dead host values are to be dropped, or everything is to move ([`Heap::stress`](super::heap::Heap::stress)).
    pub const HEAP: Attention = Attention(1);
    /// The store has a hook that is to be called.
    pub const HOOK: Attention = Attention(2);
    /// Scoped roots have been added since the innermost call began.
    pub const ROOTS: Attention = Attention(4);

    /// Returns the flags of a store without objects, roots and a hook.
    pub fn new(stress: bool) -> Attention {
        if stress { Attention::HEAP } else { Attention(0) }
    }

    /// Returns whether there is anything to do.
    #[inline(always)]
    pub fn is_needed(self) -> bool {
        self.0 != 0
    }

    /// Returns whether one of these flags is set.
    pub fn has(self, which: Attention) -> bool {
        self.0 & which.0 != 0
    }

    /// Sets or clears the flags of `which`.
    pub fn set(&mut self, which: Attention, value: bool) {
        self.0 = if value { self.0 | which.0 } else { self.0 & !which.0 };
    }
}
