//! Weir: a WebAssembly virtual machine.

#[cfg(all(feature = "jit", target_os = "linux", target_arch = "x86_64"))]
mod code;
mod config;
mod engine;
mod error;
mod externs;
mod func;
mod global;
mod instance;
mod interp;
mod limits;
mod linker;
mod memory;
mod module;
mod runtime;
mod stats;
mod store;
mod table;
mod tier;
mod typed;
mod types;
mod value;

pub use config::{Config, Tier};
pub use engine::Engine;
pub use error::{Context, Error, FrameInfo, LinkError, Result, WasmBacktrace};
pub use externs::Extern;
pub use func::{Caller, Func};
pub use global::Global;
pub use instance::Instance;
pub use limits::{ResourceLimiter, StoreLimits, StoreLimitsBuilder};
pub use linker::Linker;
pub use memory::{Memory, MemoryAccessError};
pub use module::Module;
pub use stats::{Fallback, FunctionStats, SsaStats, Stats, TierUp};
pub use store::{AsContext, AsContextMut, Store, StoreContext, StoreContextMut};
pub use table::Table;
pub use typed::{IntoFunc, TypedFunc, WasmParams, WasmResults, WasmRet, WasmTy};
pub use types::{ExportType, ExternType, ImportType};
pub use value::{ExternRef, Ref, Val};
pub use weir_bytecode::Trap;
pub use weir_bytecode::types::{FuncType, GlobalType, HeapType, Limits, MemoryType, RefType, TableType, ValType};
pub use weir_bytecode::validate::InvalidModule;
