//! Changes of a store's [`Attention`]: its scoped roots, its hook and its dead host values.

use crate::records::attention::Attention;
use crate::records::heap::{HostValue, drop_values};
use crate::records::roots::Root;
use crate::records::store::{OnCall, StoreRecord};

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

    /// Ends a call, and leaves its scoped roots to the one around it.
    #[cfg(feature = "async")]
    pub fn continue_call(&mut self, outer: usize) {
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
