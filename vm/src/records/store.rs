//! What a store owns: instances, host functions, memories, tables, and what code of them points to.
//!
//! # Invariants
//!
//! - Every record is allocated once, when the store or one of its items is made, never moves, and is freed when the
//!   store is dropped. Engines and public handles therefore hold raw pointers to records, and dereference them only
//!   while they run, or borrow, the store.
//! - A record that extends a context of [`weir_contract`] has the context as its first field, so that one
//!   pointer serves both: see the assertions at the end of this file.
//! - Only one thread uses a store at a time. Nothing here is locked or atomic, except what modules share
//!   ([`ModuleRecord`] and the engine).
//! - No reference into a record is held across a call of the guest or of a host function: these reach the same
//!   record by pointer. Records of instances and host functions are never mutated (what changes in them is in a
//!   [`Cell`]), so shared references to those may be held freely.

use crate::api::error::WasmBacktrace;
use crate::api::limits::Limiter;
use crate::exec::entry;
use crate::records::image::Images;
use crate::records::memory::MemoryRecord;
use crate::records::mismatch;
use crate::records::presence::Presence;
use crate::records::stack::StackRecord;
use crate::records::table::TableRecord;
use crate::tier::counters::FuncCode;
use crate::{Engine, Error, Module, Result, UpdateDeadline, interp, tier};
use std::any::Any;
use std::cell::{Cell, OnceCell};
use std::mem::offset_of;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_bytecode::module::ExternIndex;
use weir_bytecode::types::{MemoryType, TableType};
use weir_bytecode::{FuncType, Module as Bytecode, Trap};
use weir_contract::{
    FuncRef, HostCtx, InstanceCtx, Layout, MemoryCtx, StackCtx, Status, StoreCtx, TableCtx, TableEntry, call_words,
};

/// A loaded module: shared by its handles, its instances and the compiler threads.
#[derive(Debug)]
pub(crate) struct ModuleRecord {
    pub engine: Engine,
    pub bytecode: Bytecode,
    pub layout: Layout,
    /// Engine-wide signature identity of each type of the module.
    pub sig_ids: Box<[u32]>,
    /// One per function defined in the module, in order.
    pub code: Box<[FuncCode]>,
    /// The same functions as the interpreter sees them. Points into `bytecode` and `code`.
    pub bodies: interp::Bodies,
    /// Indices of the exports, ascending by name.
    pub exports: Box<[u32]>,
    /// What its data segments make of its memories.
    pub images: Images,
    /// Nanoseconds that decoding and validating took.
    pub validate_ns: u64,
    /// What the tiers keep per module.
    pub tier: tier::ModuleState,
}

impl ModuleRecord {
    /// What is exported under `name`.
    pub fn export(&self, name: &str) -> Option<ExternIndex> {
        let exports = &self.bytecode.exports;
        let i = self.exports.binary_search_by_key(&name, |&i| &exports[i as usize].name).ok()?;
        Some(exports[self.exports[i] as usize].item)
    }

    /// Words that a call of function `func` needs: for its arguments, which become its results.
    pub fn words(&self, func: u32) -> usize {
        call_words(self.bytecode.func_type(func))
    }

    /// The code pointers and ticks of function `func`, which is defined in the module.
    #[inline]
    pub fn func_code(&self, func: u32) -> &FuncCode {
        &self.code[(func - self.bytecode.imported_funcs) as usize]
    }
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
    pub module: Module,
    /// The same as the interpreter sees it.
    pub scope: interp::Scope,
    /// One per function of the module's index space, made when it is first asked for: until then its instance is null.
    /// Those of imported functions are unused (the context's import tail points to the exporter's).
    pub func_refs: Box<[Cell<FuncRef>]>,
    /// Which data segments `memory.init` may still use: not those that were active or dropped. A segment that is not
    /// live has length 0.
    pub data_live: Box<[Cell<bool>]>,
    /// Values of every element segment; set once, before any code runs.
    pub elems: OnceCell<Box<[Box<[u64]>]>>,
    /// Which element segments `table.init` may still use. A segment that is not live has length 0.
    pub elem_live: Box<[Cell<bool>]>,
}

/// A host function as one importer sees it. It has a context of its own, so that it can be called like any function: its
/// index is 0 there.
///
/// Each instance that imports the function gets a record of its own, which knows that instance: so [`crate::Caller`]
/// finds the exports of the caller without anybody passing it along, in every tier.
#[repr(C)]
pub(crate) struct HostRecord {
    /// First, so that a pointer to it points to the whole.
    pub ctx: HostCtx,
    pub func_ref: FuncRef,
    pub func: Arc<HostFunc>,
    /// The instance that imports it; null for the record that is nobody's import.
    pub importer: *mut InstanceCtx,
}

/// A host function, in no store yet.
pub(crate) struct HostFunc {
    pub ty: FuncType,
    /// Calls the closure, whose type it knows.
    pub call: HostCall,
    pub closure: Box<dyn Send + Sync>,
}

impl HostFunc {
    /// A host function of this type.
    pub fn new<F: HostClosure>(ty: FuncType, closure: F) -> HostFunc {
        HostFunc { ty, call: entry::host_call::<F>, closure: Box::new(closure) }
    }
}

/// A host function as compiled code calls it: see [`HostCtx::call`].
pub(crate) type HostCall = unsafe extern "C" fn(host: *mut InstanceCtx, args: *mut u64) -> Status;

/// What a host function does. Arguments come in slots at the pointer, results go to the same place, in the way that
/// [`HostCtx::call`] says; there is room for the longer of the two. The first argument is the store, the second
/// [`HostRecord::importer`]. May panic. Only [`entry`] calls it.
pub(crate) trait HostClosure:
    Fn(*mut StoreRecord, *mut InstanceCtx, *mut u64) -> Result<()> + Send + Sync + 'static
{
}

impl<F: Fn(*mut StoreRecord, *mut InstanceCtx, *mut u64) -> Result<()> + Send + Sync + 'static> HostClosure for F {}

/// Why execution ended abnormally, on its way up through engines to whoever called.
///
/// Each activation that it passes through appends the frames that were active in it, innermost first, with
/// [`Failure::push_frame`]; those of a native activation are appended when it is unwound.
pub(crate) enum Failure {
    /// A trap, and what it was about if there is more to say than the backtrace does.
    Trap { trap: Trap, detail: Option<Box<str>>, frames: WasmBacktrace },
    /// A host function's error. Its backtrace is in it.
    Host(Error),
    /// A host function's panic, to be resumed in the Rust code that entered the guest.
    Panic(Box<dyn Any + Send>),
}

impl Failure {
    /// A trap without frames yet.
    pub fn trap(trap: Trap) -> Failure {
        Failure::Trap { trap, detail: None, frames: WasmBacktrace::default() }
    }

    /// A trap of the instruction at `pc` of `instance`, without frames yet.
    ///
    /// # Safety
    /// The instance's code has just trapped there, in a store that lives.
    pub unsafe fn trap_at(trap: Trap, instance: &InstanceRecord, pc: u32) -> Failure {
        let detail = match trap {
            // SAFETY: the caller's promise.
            Trap::BadSignature => unsafe { mismatch::describe(instance, pc) },
            _ => None,
        };
        Failure::Trap { trap, detail, frames: WasmBacktrace::default() }
    }

    /// Adds a function that was active: the caller of the last one added. `pc` is that of the instruction that
    /// trapped or of the call.
    pub fn push_frame(&mut self, module: &Module, func: u32, pc: u32) {
        match self {
            Failure::Trap { frames, .. } => frames.push(module, func, pc),
            Failure::Host(error) => error.backtrace_mut().push(module, func, pc),
            Failure::Panic(_) => (),
        }
    }
}

impl From<Trap> for Failure {
    fn from(trap: Trap) -> Failure {
        Failure::trap(trap)
    }
}

/// See [`crate::Store::epoch_deadline_callback`]. It is given the store, into which no reference is held. May panic.
pub(crate) type OnDeadline = dyn FnMut(*mut StoreRecord) -> Result<UpdateDeadline> + Send + Sync;

/// A global that no instance defines.
#[repr(C, align(16))]
pub(crate) struct GlobalRecord {
    pub slot: [u64; 2],
}

/// Everything of a store but the embedder's data.
#[repr(C)]
pub(crate) struct StoreRecord {
    /// First, so that [`InstanceCtx::store`] points to the whole: see [`store_of`].
    pub ctx: StoreCtx,
    pub engine: Engine,
    /// The stack that runs now.
    pub stack: *mut StackRecord,
    /// Set by whoever returns `Exit::Trap` or [`weir_contract::Status::Trap`], before native frames are unwound,
    /// and taken by whoever hands the failure to a caller in Rust: [`take_failure`].
    pub failure: Option<Failure>,
    /// How many activations of the guest by Rust are on the native stack.
    pub activations: u32,
    /// Whether there are any, for who frees code.
    pub presence: Presence,
    /// The embedder's data, type-erased.
    pub data: *mut (),
    /// Frees `data`.
    pub drop_data: unsafe fn(*mut ()),
    pub limiter: Option<Limiter>,
    /// Asked at the deadline; `None` while it runs, and if the deadline is a trap.
    pub on_deadline: Option<Box<OnDeadline>>,
    /// Unique in the process; handles carry it.
    pub id: u64,
    pub owned: Owned,
}

/// What is freed with the store. Every pointer comes from `Box::into_raw`.
#[derive(Default)]
pub(crate) struct Owned {
    pub owners: Vec<*mut Owner>,
    pub memories: Vec<*mut MemoryRecord>,
    pub tables: Vec<*mut TableRecord>,
    pub globals: Vec<*mut GlobalRecord>,
    pub externs: Vec<*mut ExternRecord>,
    /// How many of the owners are instances.
    pub instances: usize,
}

/// What an `externref` points to.
pub(crate) struct ExternRecord {
    pub value: Box<dyn Any + Send + Sync>,
}

/// The store that an instance belongs to.
///
/// # Safety
/// `instance` is the context of an instance or host function of a live store.
#[inline]
pub(crate) unsafe fn store_of(instance: *mut InstanceCtx) -> *mut StoreRecord {
    // SAFETY: the caller's promise; the `StoreCtx` is the first field of a `StoreRecord`.
    unsafe { (*instance).store.cast() }
}

/// The record behind a context.
///
/// # Safety
/// `instance` is the context of an instance or host function of a store that lives for `'a`.
#[inline]
pub(crate) unsafe fn owner_of<'a>(instance: *mut InstanceCtx) -> &'a Owner {
    // SAFETY: the caller's promise; owners are never mutated, nor freed before the store.
    unsafe { &*(*instance).owner.cast::<Owner>() }
}

/// The record behind the context of an instance, which is not that of a host function.
///
/// # Safety
/// `instance` is the context of an instance of a store that lives for `'a`.
#[inline]
pub(crate) unsafe fn instance_of<'a>(instance: *mut InstanceCtx) -> &'a InstanceRecord {
    // SAFETY: the caller's promise.
    match unsafe { owner_of(instance) } {
        Owner::Instance(record) => record,
        Owner::Host(_) => unreachable!("a host function has no module"),
    }
}

/// The fixed part of a context.
///
/// # Safety
/// `store` is live.
pub(crate) unsafe fn context(store: *mut StoreRecord, owner: *mut Owner) -> InstanceCtx {
    // SAFETY: the caller's promise.
    let (stack, helpers) = unsafe { ((*store).stack.cast(), tier::helpers(&(*store).engine)) };
    InstanceCtx { store: store.cast(), stack, memory0_base: ptr::null_mut(), helpers, owner: owner.cast() }
}

/// Takes the reason out of a store whose guest has just trapped.
///
/// # Safety
/// `store` is live, and an engine has just returned a trap from it.
pub(crate) unsafe fn take_failure(store: *mut StoreRecord) -> Failure {
    // SAFETY: the caller's promise; no other reference to the field exists.
    let failure = unsafe { (*store).failure.take() };
    failure.expect("whoever returns a trap leaves its reason, native code by way of the landing pad")
}

/// Takes `cost` from `fuel`, which stays negative once it ran out.
///
/// # Errors
/// [`Trap::OutOfFuel`]
#[inline(always)]
pub(crate) fn charge(fuel: &mut i64, cost: i64) -> Result<(), Trap> {
    *fuel = fuel.saturating_sub(cost);
    if *fuel < 0 { Err(Trap::OutOfFuel) } else { Ok(()) }
}

impl StoreRecord {
    /// Sets the deadline to so many ticks from now.
    pub fn set_deadline(&mut self, ticks: u64) {
        self.ctx.deadline = self.engine.record().epoch.load(Ordering::Relaxed).saturating_add(ticks);
    }

    /// Makes a memory.
    ///
    /// # Errors
    /// See [`MemoryRecord::new`]; or the store may have no more.
    pub fn add_memory(&mut self, ty: MemoryType) -> Result<*mut MemoryRecord> {
        self.check_counts(0, 1, 0)?;
        let guard_regions = self.engine.config().guards_memory();
        let memory = MemoryRecord::new(ty, guard_regions, &self.engine.record().reservations, self.limiter.as_mut(), self.data)?;
        let memory = Box::into_raw(Box::new(memory));
        self.owned.memories.push(memory);
        Ok(memory)
    }

    /// Makes a table filled with a reference. A concrete element type is given by its engine-wide identity.
    ///
    /// # Errors
    /// See [`TableRecord::new`]; or the store may have no more.
    pub fn add_table(&mut self, ty: TableType, reference: u64) -> Result<*mut TableRecord> {
        self.check_counts(0, 0, 1)?;
        let table = TableRecord::new(ty, reference, self.limiter.as_mut(), self.data)?;
        let table = Box::into_raw(Box::new(table));
        self.owned.tables.push(table);
        Ok(table)
    }

    /// Whether the store's limits allow so many more instances, memories and tables.
    ///
    /// # Errors
    /// They do not.
    pub fn check_counts(&mut self, instances: usize, memories: usize, tables: usize) -> Result<()> {
        let Some(limiter) = &mut self.limiter else { return Ok(()) };
        let limits = limiter.counts(self.data)?;
        let asked = [
            ("instances", self.owned.instances + instances, limits.0),
            ("memories", self.owned.memories.len() + memories, limits.1),
            ("tables", self.owned.tables.len() + tables, limits.2),
        ];
        match asked.into_iter().find(|(_, count, limit)| count > limit) {
            Some((what, _, limit)) => Err(Error::msg(format!("the store's limit of {limit} {what} is exceeded"))),
            None => Ok(()),
        }
    }
}

impl InstanceRecord {
    /// Memory `i`.
    ///
    /// # Panics
    /// The module has no such memory.
    pub fn memory(&self, i: u32) -> *mut MemoryRecord {
        assert!((i as usize) < self.module.bytecode().memories.len());
        self.tail::<MemoryRecord>(self.layout().memory(i))
    }

    /// Table `i`.
    ///
    /// # Panics
    /// The module has no such table.
    pub fn table(&self, i: u32) -> *mut TableRecord {
        assert!((i as usize) < self.module.bytecode().tables.len());
        self.tail::<TableRecord>(self.layout().table(i))
    }

    /// The slot that has the value of global `i`, wherever it is defined.
    ///
    /// # Panics
    /// The module has no such global.
    pub fn global(&self, i: u32) -> *mut u64 {
        assert!((i as usize) < self.module.bytecode().globals.len());
        let offset = self.layout().global(i);
        match self.layout().global_is_pointer(i) {
            true => self.tail::<u64>(offset),
            false => self.ctx.cast::<u8>().wrapping_add(offset as usize).cast(),
        }
    }

    /// The reference to function `func`, imported or not. Null for an import that is not linked yet.
    ///
    /// # Panics
    /// The module has no such function.
    #[inline]
    pub fn func_ref(&self, func: u32) -> *const FuncRef {
        self.find_func_ref(func, self.module.bytecode().imported_funcs)
    }

    /// The references to these functions.
    ///
    /// # Panics
    /// The module does not have one of them.
    #[inline]
    pub fn func_refs(&self, funcs: &[u32]) -> impl ExactSizeIterator<Item = *const FuncRef> {
        let imported = self.module.bytecode().imported_funcs;
        funcs.iter().map(move |&func| self.find_func_ref(func, imported))
    }

    /// `func_ref`, of a module that imports so many functions.
    #[inline]
    fn find_func_ref(&self, func: u32, imported: u32) -> *const FuncRef {
        if func < imported {
            return self.tail(self.layout().import(func));
        }
        let func_ref = &self.func_refs[func as usize];
        // SAFETY: nobody else reads it now, and nobody writes it a second time.
        if unsafe { (*func_ref.as_ptr()).instance.is_null() } {
            func_ref.set(self.make_func_ref(func));
        }
        func_ref.as_ptr()
    }

    #[inline(never)]
    fn make_func_ref(&self, func: u32) -> FuncRef {
        let record = self.module.record();
        let sig = record.sig_ids[record.bytecode.funcs[func as usize] as usize];
        FuncRef { entry: tier::entry_stub(record, func), sig, index: func, instance: self.ctx }
    }

    fn layout(&self) -> &Layout {
        &self.module.record().layout
    }

    /// The pointer at `offset` in the context, which the layout gave.
    fn tail<T>(&self, offset: u32) -> *mut T {
        let slot = self.ctx.cast::<u8>().wrapping_add(offset as usize).cast::<*mut T>();
        // SAFETY: the layout's offsets lie within the context, which lives as long as this record.
        unsafe { slot.read() }
    }
}

// What the pointers in the contexts rely on.
const _: () = {
    assert!(offset_of!(StoreRecord, ctx) == 0 && size_of::<StoreCtx>() <= size_of::<StoreRecord>());
    assert!(offset_of!(StackRecord, ctx) == 0 && size_of::<StackCtx>() <= size_of::<StackRecord>());
    assert!(offset_of!(MemoryRecord, ctx) == 0 && size_of::<MemoryCtx>() <= size_of::<MemoryRecord>());
    assert!(offset_of!(TableRecord, ctx) == 0 && size_of::<TableCtx>() <= size_of::<TableRecord>());
    assert!(offset_of!(GlobalRecord, slot) == 0);
    assert!(offset_of!(HostRecord, ctx) == 0 && offset_of!(HostCtx, instance) == 0);
    assert!(size_of::<TableEntry>() == 32 && size_of::<usize>() == size_of::<u64>());
    assert!(size_of::<InstanceCtx>().is_multiple_of(8) && align_of::<InstanceCtx>() <= 16);
};
