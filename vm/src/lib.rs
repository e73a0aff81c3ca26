//! Weir: a WebAssembly virtual machine for Rust programs to embed.
//!
//! An interpreter starts every module without delay; hot functions are compiled in the background while the program
//! runs. A host that is written for wasmtime's API of core modules compiles on Linux x86-64 once the crate's name is changed. Components,
//! the C API, macOS and Windows are outside. The API in short:
//!
//! - an [`Engine`] holds settings ([`Config`]) and the data that modules share;
//! - a [`Module`] is loaded and validated once, and instantiated any number of times;
//! - a [`Store`] owns instances, and the embedder's data that host functions use;
//! - a [`Linker`] resolves a module's imports by name: host functions over Rust types ([`Linker::func_wrap`]), exports
//!   of other instances, memories, tables and globals;
//! - an [`Instance`] provides its exports as handles: [`Func`] or [`TypedFunc`], [`Memory`], [`Table`], [`Global`]. A
//!   handle is `Copy` and is used together with its store; with another store it panics.
//!
//! ```
//! use weir::{Caller, Config, Engine, Linker, Module, Store, Trap};
//!
//! let mut config = Config::new();
//! config.consume_fuel(true);
//! let engine = Engine::new(&config)?;
//! let module = Module::new(&engine, r#"
//!     (module
//!         (import "host" "tick" (func $tick (result i64)))
//!         (func (export "spin") (param $n i64)
//!             (loop $again
//!                 (br_if $again (i64.lt_s (call $tick) (local.get $n))))))
//! "#)?;
//!
//! let mut linker = Linker::new(&engine);
//! linker.func_wrap("host", "tick", |mut caller: Caller<'_, i64>| {
//!     *caller.data_mut() += 1;
//!     *caller.data()
//! })?;
//!
//! let mut store = Store::new(&engine, 0);
//! store.set_fuel(1_000)?;
//! let instance = linker.instantiate(&mut store, &module)?;
//! let spin = instance.get_typed_func::<i64, ()>(&mut store, "spin")?;
//! spin.call(&mut store, 10)?;
//! assert_eq!(*store.data(), 10);
//!
//! let error = spin.call(&mut store, i64::MAX).unwrap_err();
//! assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::OutOfFuel));
//! # Ok::<(), weir::Error>(())
//! ```
//!
//! # Failure
//!
//! When the guest's execution ends abnormally, the call returns an [`Error`] that downcasts to its cause: a [`Trap`],
//! or the error of a host function. It carries a [`WasmBacktrace`]. The store remains usable. A panic in a host
//! function passes through the guest and is resumed in the Rust code that called it.
//!
//! # Limits
//!
//! [`Config::consume_fuel`] limits the work, exactly and equally in every tier; [`Config::epoch_interruption`] limits
//! the time, [`Store::limiter`] the memory, and [`Config::max_wasm_stack`] the depth of recursion.
//!
//! # Forked processes
//!
//! Threads and code of an engine do not exist in a forked child process. There, what loads, instantiates, makes or calls something with an
//! engine of the parent returns the error [`ForkedEngine`], and dropping it frees nothing; a new engine works as in any process. A host
//! function may fork, but its child process must not return to the guest.
//!
//! # Asynchronous calls
//!
//! [`Func::call_async`] and [`TypedFunc::call_async`] run the guest on a stack of its own. A host function that was made with
//! [`Linker::func_wrap_async`] returns a future, and the guest is suspended until that has completed. Guests can also yield at
//! deadlines ([`Store::epoch_deadline_async_yield_and_update`]) and after fuel ([`Store::fuel_async_yield_interval`]). No executor
//! is needed but that of the embedder. [`Func::call_resumable`] is for embedders without futures: the guest stops after an error of a
//! host function, or when fuel has run out, and can be resumed.
//!
//! # Cargo features
//!
//! On by default: `jit`: native code; without it no executable memory is ever created. `cranelift`: the second back
//! end. `wat`: [`Module::new`] accepts the text format. `snapshot`: the type `Snapshot`. `coredump`: the type `WasmCoreDump`. `anyhow`: [`Error`] converts to and from the error
//! of that crate. `async`: asynchronous and resumable calls. `demangle`: backtraces show names as in the source. `addr2line`: backtraces have source files and
//! lines. `profiling`: `GuestProfiler`. `backtrace`: `Error::backtrace`. `runtime`, `std`, `call-hook`, `parallel-compilation`, `cache`, `pooling-allocator`, `gc`,
//! `gc-copying`, `gc-drc` and `gc-null`: names of wasmtime's features, which are empty, because their function is always there. That of `gc` is
//! host values and exceptions, for which there is one collector; modules with structs and arrays are refused. Off by
//! default: `regalloc2`: a second register allocator, to compare
//! with. `fault-injection`: tests can make system calls of the library fail, with the module `fault_injection`.

// On hosts without native code, some functions have no caller.
#![cfg_attr(not(all(feature = "jit", target_arch = "x86_64", target_os = "linux")), allow(dead_code))]

mod api;
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
mod code;
#[cfg(feature = "jit")]
mod compilation;
mod exec;
mod interp;
mod records;
mod sys;
#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux"))]
mod tier;

#[cfg(feature = "fault-injection")]
pub use sys::fault_injection;
#[doc(hidden)]
pub use sys::fork::PerProcess as __PerProcess;

#[cfg(feature = "anyhow")]
pub use anyhow;
pub use api::cache::{Cache, CacheEntry};
pub use api::cache_config::CacheConfig;
#[cfg(feature = "async")]
pub use api::call_hook::CallHookHandler;
pub use api::caller::Caller;
pub use api::config::choices::{Collector, Inlining, OptLevel, RegallocAlgorithm, Strategy};
#[cfg(feature = "coredump")]
pub use api::coredump::WasmCoreDump;
pub use api::error::{self, LinkError, UnknownImportError};
pub use api::events::TierEvent;
pub use api::exception::ExnRefPre;
pub use api::externs::{Export, Extern};
pub use api::func::Func;
pub use api::global::Global;
#[cfg(feature = "profiling")]
pub use api::guest_profiler::GuestProfiler;
#[cfg(feature = "profiling")]
pub use api::guest_profiler::profile::{
    GuestEvent, GuestFrame, GuestProfile, GuestSample, GuestStack, LostSamples, ProfiledModule,
};
pub use api::instance::Instance;
pub use api::limits::{StoreLimits, StoreLimitsBuilder};
pub use api::linker::{InstancePre, Linker};
pub use api::memory::{Memory, MemoryAccessError};
pub use api::module::{ModuleExport, ResourcesRequired};
pub use api::precompiled::Precompiled;
#[cfg(feature = "async")]
pub use api::resumable::{
    ResumableCall, ResumableCallHostTrap, ResumableCallOutOfFuel, TypedResumableCall, TypedResumableCallHostTrap,
    TypedResumableCallOutOfFuel,
};
pub use api::rooted::{GcHeapOutOfMemory, GcRef, OwnedRooted, RootScope, Rooted, RootedGcRef};
#[cfg(feature = "snapshot")]
pub use api::snapshot::Snapshot;
pub use api::store::{AsContext, AsContextMut, Store, StoreContext, StoreContextMut};
pub use api::table::Table;
pub use api::tag::Tag;
pub use api::typed::{IntoFunc, TypedFunc, WasmParams, WasmResults, WasmRet, WasmTy, WasmTyList};
pub use api::types::{ExnType, ExportType, ExternType, FuncType, ImportType, TagType, ValTypes};
pub use api::unchecked::ValRaw;
pub use api::value::{ExnRef, ExternRef, Ref, V128, Val};
pub use records::backtrace::{FrameInfo, WasmBacktrace};
pub use records::call_hook::CallHook;
pub use records::config::{Allocator, Config, ModuleVersionStrategy, RoundTrip, Tier, Unavailable, WasmBacktraceDetails};
pub use records::engine::{Engine, EngineWeak, ForkedEngine};
pub use records::error::{Error, Result, ToWasmtimeResult};
pub use records::events::{CompiledBy, ProfilingStrategy, TierEventKind};
pub use records::fault::MemoryFault;
#[cfg(feature = "profiling")]
pub use records::frame_tier::FrameTier;
pub use records::host_memory::{LinearMemory, MemoryCreator};
#[cfg(feature = "async")]
pub use records::limiter::ResourceLimiterAsync;
pub use records::limiter::{DEFAULT_INSTANCE_LIMIT, DEFAULT_MEMORY_LIMIT, DEFAULT_TABLE_LIMIT, ResourceLimiter};
pub use records::module::Module;
pub use records::pooling::{InstanceAllocationStrategy, PoolConcurrencyLimitError, PoolingAllocationConfig};
#[cfg(feature = "snapshot")]
pub use records::snapshot::error::SnapshotError;
pub use records::statistic::StatValue;
pub use records::stats::{Fallback, FunctionStats, RefusedBy, Stats, StoredStats, TierUp};
pub use records::store::UpdateDeadline;
pub use records::symbols::FrameSymbol;
pub use records::thrown::ThrownException;
pub use weir_bytecode::Trap;
pub use weir_bytecode::account::ModuleMemoryExceeded;
pub use weir_bytecode::cost::{OperatorCost, VariableOperatorCost};
pub use weir_bytecode::shape::{AvgBytesPerFunctionLimit, EnforcedLimits, EnforcedLimitsError};
pub use weir_bytecode::types::{
    GlobalType, HeapType, Limits, MemoryType, MemoryTypeBuilder, Mutability, RefType, TableType, ValType,
};
pub use weir_bytecode::validate::{InvalidModule, WasmFeatures};
pub use weir_contract::code::{PadAt, Padding};
pub use weir_contract::profile::{BranchProfile, CallProfile, Profile};
pub use weir_contract::profile_text::{ModuleProfile, ProfileError};
pub use weir_contract::stats::{Counters, Declaration as StatDeclaration, Unit as StatUnit};
#[cfg(feature = "jit")]
pub use weir_jit::explore::Section;
