//! Backtraces of a guest that is running.

use crate::api::store::AsContext;
use crate::records::backtrace::WasmBacktrace;
use crate::records::config::DEFAULT_MAX_BACKTRACE;
#[cfg(feature = "profiling")]
use crate::records::walk::{Frame, walk};
#[cfg(feature = "profiling")]
use std::ops::ControlFlow;

impl WasmBacktrace {
    /// Returns the guest functions that are active in this store, innermost first, including those outside other host
    /// functions on the stack. The trace is empty if the guest is not running.
    ///
    /// ```
    /// use weir::{Caller, Engine, Linker, Module, Store, WasmBacktrace};
    ///
    /// let engine = Engine::default();
    /// let module = Module::new(&engine, r#"
    ///     (module
    ///         (import "host" "log" (func $log))
    ///         (func $work (call $log))
    ///         (func (export "main") (call $work)))
    /// "#)?;
    /// let mut linker: Linker<Vec<u32>> = Linker::new(&engine);
    /// linker.func_wrap("host", "log", |mut caller: Caller<'_, Vec<u32>>| {
    ///     let trace = WasmBacktrace::capture(&caller);
    ///     *caller.data_mut() = trace.frames().iter().map(|frame| frame.func_index()).collect();
    /// })?;
    /// let mut store = Store::new(&engine, Vec::new());
    /// let instance = linker.instantiate(&mut store, &module)?;
    /// instance.get_typed_func::<(), ()>(&mut store, "main")?.call(&mut store, ())?;
    /// assert_eq!(store.data(), &[1, 2]);
    /// # Ok::<(), weir::Error>(())
    /// ```
    ///
    /// The trace is also empty if the engine collects no frames ([`Config::wasm_backtrace`](crate::Config::wasm_backtrace)).
    pub fn capture(store: impl AsContext) -> WasmBacktrace {
        let limit = store.as_context().engine().config().max_backtrace;
        WasmBacktrace::take(store, limit)
    }

    /// Returns the functions that [`WasmBacktrace::capture`] returns, also if the engine collects no frames for errors.
    pub fn force_capture(store: impl AsContext) -> WasmBacktrace {
        let limit = store.as_context().engine().config().max_backtrace;
        WasmBacktrace::take(store, if limit == 0 { DEFAULT_MAX_BACKTRACE } else { limit })
    }

    fn take(store: impl AsContext, limit: usize) -> WasmBacktrace {
        let mut trace = WasmBacktrace::default();
        // SAFETY: a borrowed store is live. One thread at a time uses it, and while its guest runs, only Rust code that
        // the guest called on this thread can borrow it.
        unsafe { trace.extend(store.as_context().record(), limit) };
        trace
    }
}

/// Calls `visit` with the frames of the guest of a store, innermost first, until it breaks.
#[cfg(feature = "profiling")]
pub(super) fn visit_frames(store: impl AsContext, visit: impl FnMut(Frame<'_>) -> ControlFlow<()>) {
    // SAFETY: as in `WasmBacktrace::take`.
    unsafe { walk(store.as_context().record(), visit) };
}
