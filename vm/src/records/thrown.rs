//! The error for an exception of the guest.

use std::fmt;

/// The error of a guest that has thrown an exception which nothing in it catches, and with which a host function throws one. The
/// exception is [pending](crate::Store::take_pending_exception) in the store.
///
/// ```
/// use weir::{Engine, Instance, Module, Store, ThrownException, Val};
///
/// let engine = Engine::default();
/// let module = Module::new(&engine, r#"
///     (module
///         (tag $failed (export "failed") (param i32))
///         (func (export "run") (throw $failed (i32.const 7))))
/// "#)?;
/// let mut store = Store::new(&engine, ());
/// let instance = Instance::new(&mut store, &module, &[])?;
/// let error = instance.get_typed_func::<(), ()>(&mut store, "run")?.call(&mut store, ()).unwrap_err();
/// assert!(error.is::<ThrownException>());
/// let exception = store.take_pending_exception().expect("it was thrown");
/// assert_eq!(exception.field(&mut store, 0)?.i32(), Some(7));
/// # Ok::<(), weir::Error>(())
/// ```
#[derive(Debug)]
pub struct ThrownException;

impl fmt::Display for ThrownException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("thrown Wasm exception")
    }
}

impl std::error::Error for ThrownException {}
