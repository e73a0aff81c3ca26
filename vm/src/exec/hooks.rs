//! Calls of the embedder's hook where execution passes between the embedder and the guest.

use crate::records::call_hook::CallHook;
use crate::records::error::Result;
use crate::records::store::StoreRecord;

/// Calls the hook of a store, if it has one. While it runs the store has none, so what it calls is not reported.
///
/// # Errors
/// That of the hook.
///
/// # Safety
/// The store is live, and no reference into it is held.
pub(crate) unsafe fn pass(store: *mut StoreRecord, passage: CallHook) -> Result<()> {
    // SAFETY: the caller's promise.
    unsafe {
        let Some(mut hook) = (*store).call_hook.take() else { return Ok(()) };
        let result = hook(store, passage);
        (*store).call_hook = Some(hook);
        result
    }
}
