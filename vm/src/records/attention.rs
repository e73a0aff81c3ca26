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

use crate::records::heap::{HostValue, drop_values};
use crate::records::roots::Root;
use crate::records::store::{OnCall, StoreRecord};

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

impl StoreRecord {
    /// Adds a scoped root of the innermost call.
    ///
    /// # Panics
    /// There are 2³¹ of them.
    pub fn push_root(&mut self, reference: u32) -> Root {
        self.attention.set(Attention::ROOTS, true);
        self.roots.push(self.id, reference)
    }

    /// Ends a scope that began with this many scoped roots, in the innermost call.
    pub fn end_scope(&mut self, scope: usize) {
        self.roots.close(scope);
        self.attention.set(Attention::ROOTS, self.roots.open() > self.roots.base);
    }

    /// Begins a call that has scoped roots of its own. Returns the base of the one around it, for [`StoreRecord::end_call`].
    pub fn begin_call(&mut self) -> usize {
        self.attention.set(Attention::ROOTS, false);
        let inner = self.roots.open();
        std::mem::replace(&mut self.roots.base, inner)
    }

    /// Ends a call, and removes its scoped roots.
    pub fn end_call(&mut self, outer: usize) {
        self.roots.close(self.roots.base);
        self.roots.base = outer;
        self.attention.set(Attention::ROOTS, self.roots.open() > outer);
    }

    /// Removes the scoped roots of the innermost call, which began without any. It is the end of a call without
    /// [`StoreRecord::begin_call`].
    pub fn remove_roots(&mut self) {
        self.end_scope(self.roots.base);
    }

    /// Sets the hook that is called where execution passes between the embedder and the guest.
    pub fn set_call_hook(&mut self, hook: Box<OnCall>) {
        self.call_hook = Some(hook);
        self.attention.set(Attention::HOOK, true);
    }

    /// Takes the dead host values, which the caller must drop with [`drop_values`].
    pub fn take_dead(&mut self) -> Vec<HostValue> {
        self.attention.set(Attention::HEAP, self.heap.stress);
        self.heap.take_dead()
    }
}

/// Drops the host values that are dead, if there are any. Their destructors do not use the store.
///
/// # Panics
/// With the first panic of a destructor, after all have run.
///
/// # Safety
/// The store is live, and no reference into it is held.
#[cold]
pub(crate) unsafe fn drop_dead(store: *mut StoreRecord) {
    // SAFETY: the caller's promise.
    drop_values(unsafe { (*store).take_dead() });
}
