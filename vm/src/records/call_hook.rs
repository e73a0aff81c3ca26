//! Where execution passes between the embedder and the guest.

/// A passage between the embedder and the guest: see [`Store::call_hook`](crate::Store::call_hook).
#[derive(Clone, Copy, Debug)]
pub enum CallHook {
    /// The embedder calls the guest.
    CallingWasm,
    /// The guest has returned to the embedder, or has trapped.
    ReturningFromWasm,
    /// The guest calls a host function.
    CallingHost,
    /// A host function has returned to the guest.
    ReturningFromHost,
}

impl CallHook {
    /// Whether the embedder's code is next.
    pub fn entering_host(&self) -> bool {
        matches!(self, CallHook::ReturningFromWasm | CallHook::CallingHost)
    }

    /// Whether the guest is next.
    pub fn exiting_host(&self) -> bool {
        !self.entering_host()
    }
}
