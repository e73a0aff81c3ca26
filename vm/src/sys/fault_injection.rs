//! Makes functions of the operating-system layer fail, to test how failures are handled.
//!
//! ```
//! use weir::fault_injection::{FaultInjection, functions};
//! use weir::{Engine, Instance, Module, Store};
//!
//! let engine = Engine::default();
//! let module = Module::new(&engine, "(module (memory 1))")?;
//! let reserve = functions().iter().find(|function| function.name() == "weir::mapping::reserve").unwrap();
//! let mut faults = FaultInjection::begin();
//! faults.fail(reserve, 1.., 12); // ENOMEM
//! assert!(Instance::new(&mut Store::new(&engine, ()), &module, &[]).is_err());
//! assert!(reserve.failed() > 0);
//! drop(faults);
//! assert!(Instance::new(&mut Store::new(&engine, ()), &module, &[]).is_ok());
//! # Ok::<(), weir::Error>(())
//! ```
//!
//! Counts and failures apply to the whole process, to all threads. A test of something that a process does once, such
//! as installing signal handlers, needs a process of its own.

pub use super::calls::functions;
pub use super::faults::{FaultInjection, Function};
#[cfg(all(feature = "jit", target_os = "linux", target_arch = "x86_64"))]
pub use super::testing::remove_signal_stack;
