//! Weir: a WebAssembly virtual machine.

#[cfg(all(feature = "jit", target_os = "linux", target_arch = "x86_64"))]
mod code;
mod config;
mod engine;
mod error;
mod interp;
mod limits;
mod module;
mod runtime;
mod stats;
mod tier;
mod types;

pub use config::{Config, Tier};
pub use engine::Engine;
pub use error::{Context, Error, FrameInfo, LinkError, Result, WasmBacktrace};
pub use limits::{ResourceLimiter, StoreLimits, StoreLimitsBuilder};
pub use module::Module;
pub use stats::{Fallback, FunctionStats, SsaStats, Stats, TierUp};
pub use types::{ExportType, ExternType, ImportType};
pub use weir_bytecode::Trap;
pub use weir_bytecode::types::{FuncType, GlobalType, HeapType, Limits, MemoryType, RefType, TableType, ValType};
pub use weir_bytecode::validate::InvalidModule;
