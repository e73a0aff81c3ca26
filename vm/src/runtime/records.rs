//! What a store owns: instances, host functions, and what code of them points to.

use crate::tier::counters::FuncCode;
use std::any::Any;
use std::sync::Arc;
use weir_bytecode::{FuncType, Module as Bytecode};
use weir_jit::contract::{FuncRef, InstanceCtx, Layout, StackCtx, StoreCtx};

/// A compiled-from-bytes module: shared by its handles, its instances and the compiler threads.
#[derive(Debug)]
pub(crate) struct ModuleRecord {
    pub bytecode: Bytecode,
    pub layout: Layout,
    /// Engine-wide signature identity of each type of the module.
    pub sig_ids: Box<[u32]>,
    /// One per function defined in the module, in order.
    pub code: Box<[FuncCode]>,
}

/// What [`InstanceCtx::owner`] points to.
pub(crate) enum Owner {
    Instance(InstanceRecord),
    Host(HostRecord),
}

/// An instance of a module.
pub(crate) struct InstanceRecord {
    /// The context, with its tails; allocated with it and freed with it.
    pub ctx: *mut InstanceCtx,
    pub module: Arc<ModuleRecord>,
    /// One per function of the module's index space; those of imported functions are unused (the context's
    /// import tail points to the exporter's).
    pub func_refs: Box<[FuncRef]>,
    /// Which data segments may still be used by `memory.init`.
    pub data_live: Box<[bool]>,
    /// Elements of the segments that `table.init` may still use; dropped ones are empty.
    pub elems: Box<[Box<[u64]>]>,
}

/// A host function. It has an [`InstanceCtx`] of its own, so that it can be called like any function.
pub(crate) struct HostRecord {
    pub ctx: Box<InstanceCtx>,
    pub func_ref: Box<FuncRef>,
    pub ty: FuncType,
    pub call: HostCall,
}

/// Arguments come in slots at the pointer, results go to the same slots; there is room for the longer of the two.
/// The first argument is the store, the second the calling instance, or null if the host called.
pub(crate) type HostCall =
    Box<dyn Fn(*mut StoreRecord, *mut InstanceCtx, *mut u64) -> Result<(), crate::runtime::records::Failure> + Send + Sync>;

/// Why execution ended abnormally, on its way up through engines to whoever called.
pub(crate) enum Failure {
    /// A trap, with the functions that were active, innermost first: (module, function, pc).
    Trap { trap: weir_bytecode::Trap, frames: Vec<(Arc<ModuleRecord>, u32, u32)> },
    /// A host function's error.
    Host(Box<dyn std::error::Error + Send + Sync>),
    /// A host function's panic, to be resumed above the outermost boundary.
    Panic(Box<dyn Any + Send>),
}

/// Everything of a store but the embedder's data.
pub(crate) struct StoreRecord {
    pub ctx: Box<StoreCtx>,
    pub stack: Box<StackCtx>,
    /// Set by whoever returns `Exit::Trap` or `Status::Trap` (native traps excepted: `StoreCtx::trap_pc` tells) and taken by whoever
    /// hands the failure to a caller in Rust.
    pub failure: Option<Failure>,
    /// The embedder's data, type-erased.
    pub data: *mut (),
}
