//! The store's record: it owns instances, host functions, memories, tables, and everything that code refers to by
//! pointer.
//!
//! # Invariants
//!
//! - Every record is allocated once, when the store or one of its items is made, never moves, and is freed when the
//!   store is dropped. Engines and public handles therefore hold raw pointers to records, and dereference them only
//!   while they run, or borrow, the store.
//! - A record that extends a context of [`weir_contract`] has the context as its first field, so that one
//!   pointer serves both: see the assertions at the end of this file.
//! - Only one thread uses a store at a time. Nothing here is locked or atomic, except the data that modules share
//!   ([`ModuleRecord`](crate::records::module::ModuleRecord) and the engine).
//! - No reference into a record is held across a call of the guest or of a host function: these reach the same record
//!   by pointer. Records of instances and host functions are never mutated (their variable parts are each in a
//!   [`Cell`](std::cell::Cell)), so shared references to those may be held freely.

use crate::records::catches::Catches;
use crate::records::engine::Engine;
use crate::records::error::{Error, Result};
use crate::records::exceptions::{ExnRecord, InFlight, Landing, Site, TagRecord};
use crate::records::failure::Failure;
use crate::records::heap::Heap;
use crate::records::instance::Owner;
use crate::records::limiter::Limiter;
use crate::records::memory::{MemoryRecord, Plan};
use crate::records::pooling::Share;
use crate::records::quiescence::Word;
use crate::records::root_maps::RootMaps;
use crate::records::roots::{Root, Roots};
use crate::records::stack::StackRecord;
use crate::records::stripes::Stripe;
use crate::records::table::TableRecord;
use std::mem::offset_of;
use std::ops::Range;
use std::ptr;
use std::sync::atomic::Ordering;
use weir_bytecode::Trap;
use weir_bytecode::types::{MemoryType, TableType};
use weir_contract::{InstanceCtx, MemoryCtx, StackCtx, StoreCtx, TableCtx, TableEntry};

/// The response to reaching a deadline: see [`Store::epoch_deadline_callback`](crate::Store::epoch_deadline_callback).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum UpdateDeadline {
    /// Let it trap with [`Trap::Interrupt`].
    Interrupt,
    /// Continue until the engine's epoch has advanced by this much from now.
    Continue(u64),
}

/// The callback of [`crate::Store::epoch_deadline_callback`]. It receives the store, into which no reference is held.
/// May panic.
pub(crate) type OnDeadline = dyn FnMut(*mut StoreRecord) -> Result<UpdateDeadline> + Send + Sync;

/// A global that no instance defines.
#[repr(C, align(16))]
pub(crate) struct GlobalRecord {
    pub slot: [u64; 2],
    /// Whether it has a reference into the collected heap.
    pub is_collected: bool,
}

/// All of a store but the embedder's data.
#[repr(C)]
pub(crate) struct StoreRecord {
    /// First, so that [`InstanceCtx::store`] points to the whole: see [`store_of`].
    pub ctx: StoreCtx,
    pub engine: Engine,
    /// The stack that runs now.
    pub stack: *mut StackRecord,
    /// The reason of `Exit::Trap` or [`weir_contract::Status::Trap`]. The code that returns either sets it before
    /// native frames are unwound, and [`take_failure`] takes it when the failure is returned to Rust.
    pub failure: Option<Failure>,
    /// The exception that is being thrown.
    pub in_flight: InFlight,
    /// The handler to which it is thrown, while the failure is [`Failure::Thrown`].
    pub landing: Option<Landing>,
    /// The handlers that were found before.
    pub catches: Catches,
    /// The exception that the host has thrown or has received and not taken; null if there is none.
    pub pending: *mut ExnRecord,
    /// The frames of the guest around the innermost invocation are those at this address and above, on the native stack;
    /// [`ALL_FRAMES`](crate::records::walk::ALL_FRAMES) if there are none.
    pub outer_frames: usize,
    /// Number of invocations of the guest by Rust (`exec::entry`) on the native stack.
    pub invocations: u32,
    /// Whether there are any invocations, for the reclamation of code.
    pub quiescence: Word,
    /// Which counters the store's instances use.
    pub stripe: Stripe,
    /// The embedder's data, type-erased.
    pub data: *mut (),
    /// Frees `data`.
    pub drop_data: unsafe fn(*mut ()),
    pub limiter: Option<Limiter>,
    /// Called at the deadline; `None` while it runs, and if the deadline is a trap.
    pub on_deadline: Option<Box<OnDeadline>>,
    /// Unique in the process; handles carry it.
    pub id: u64,
    /// Host values and exception objects.
    pub heap: Heap,
    /// The embedder's references into it.
    pub roots: Roots,
    /// Where frames of the interpreter and of baseline code have theirs.
    pub root_maps: RootMaps,
    pub owned: Owned,
}

/// Everything that is freed with the store. Every pointer comes from `Box::into_raw`.
#[derive(Default)]
pub(crate) struct Owned {
    pub owners: Vec<*mut Owner>,
    pub memories: Vec<*mut MemoryRecord>,
    pub tables: Vec<*mut TableRecord>,
    pub globals: Vec<*mut GlobalRecord>,
    pub tags: Vec<*mut TagRecord>,
    /// Number of the owners that are instances.
    pub instances: usize,
    /// What the store holds of the engine's limits, until it is dropped.
    pub held: Share,
}

/// Returns the store that an instance belongs to.
///
/// # Safety
/// `instance` is the context of an instance or host function of a live store.
#[inline]
pub(crate) unsafe fn store_of(instance: *mut InstanceCtx) -> *mut StoreRecord {
    // SAFETY: the caller's promise; the `StoreCtx` is the first field of a `StoreRecord`.
    unsafe { (*instance).store.cast() }
}

/// Creates the fixed part of a context.
///
/// # Safety
/// `store` is live.
pub(crate) unsafe fn context(store: *mut StoreRecord, owner: *mut Owner) -> InstanceCtx {
    // SAFETY: the caller's promise.
    let (stack, engines, stripe) = unsafe { ((*store).stack.cast(), &(*store).engine.record().engines, (*store).stripe.index) };
    let (helpers, counters) = (engines.helpers(), engines.counters(stripe));
    InstanceCtx { store: store.cast(), stack, memory0_base: ptr::null_mut(), helpers, owner: Owner::record(owner), counters }
}

/// Takes the failure of a store whose guest has just trapped.
///
/// # Safety
/// `store` is live, and an engine has just returned a trap from it.
pub(crate) unsafe fn take_failure(store: *mut StoreRecord) -> Failure {
    // SAFETY: the caller's promise; no other reference to the field exists.
    let failure = unsafe { (*store).failure.take() };
    failure.expect("every trap records its reason, native code's in the landing pad")
}

/// Subtracts `cost` from `fuel`, which stays negative once it has run out.
///
/// # Errors
/// [`Trap::OutOfFuel`]
#[inline(always)]
pub(crate) fn charge(fuel: &mut i64, cost: i64) -> Result<(), Trap> {
    *fuel = fuel.saturating_sub(cost);
    if *fuel < 0 { Err(Trap::OutOfFuel) } else { Ok(()) }
}

impl StoreRecord {
    /// Sets the deadline to `ticks` from now.
    pub fn set_deadline(&mut self, ticks: u64) {
        self.ctx.deadline = self.engine.record().epoch.load(Ordering::Relaxed).saturating_add(ticks);
    }

    /// Adds to what the store holds of the engine's limits.
    ///
    /// # Errors
    /// A limit of the engine is reached; nothing is added.
    pub fn hold(&mut self, share: Share) -> Result<()> {
        self.engine.record().quota.add(share)?;
        let held = &mut self.owned.held;
        held.instances += share.instances;
        held.memories += share.memories;
        held.tables += share.tables;
        Ok(())
    }

    /// Creates a memory in the store, which already holds it.
    ///
    /// # Errors
    /// The errors of [`MemoryRecord::new`]; or the store's limit is reached.
    pub fn add_memory(&mut self, ty: MemoryType) -> Result<*mut MemoryRecord> {
        self.check_counts(0, 1, 0)?;
        let (config, engine) = (self.engine.config(), self.engine.record());
        let (guard_regions, unguarded) = (config.guards_memory(), config.unguarded_reservation());
        let plan = Plan { guard_regions, unguarded, max: engine.quota.memory_size() };
        let memory = MemoryRecord::new(ty, plan, &engine.reservations, self.limiter.as_mut(), self.data)?;
        let memory = Box::into_raw(Box::new(memory));
        self.owned.memories.push(memory);
        Ok(memory)
    }

    /// Creates a table filled with a reference, which the store already holds. A concrete element type is given by its engine-wide identity.
    ///
    /// # Errors
    /// The errors of [`TableRecord::new`]; or the store's limit is reached.
    pub fn add_table(&mut self, ty: TableType, reference: u64) -> Result<*mut TableRecord> {
        self.check_counts(0, 0, 1)?;
        let max = self.engine.record().quota.table_elements();
        let table = TableRecord::new(ty, reference, max, self.limiter.as_mut(), self.data)?;
        let table = Box::into_raw(Box::new(table));
        self.owned.tables.push(table);
        Ok(table)
    }

    /// Adds a tag.
    pub fn add_tag(&mut self, tag: TagRecord) -> *mut TagRecord {
        let tag = Box::into_raw(Box::new(tag));
        self.owned.tags.push(tag);
        tag
    }

    /// Adds an exception object whose payload is in slots at `payload`. Never collects.
    ///
    /// # Errors
    /// The limiter refuses it, or there is no memory.
    ///
    /// # Safety
    /// The tag is live, and the slots have values of its types.
    pub unsafe fn add_exception(&mut self, tag: *const TagRecord, site: Site, payload: *const u64) -> Result<*mut ExnRecord> {
        // SAFETY: the caller's promise; the words have just been allocated.
        unsafe {
            let words = ExnRecord::words(tag);
            self.ask_for_objects(words)?;
            let reference = self.heap.allocate(words)?;
            let object = self.heap.new_exception(reference);
            ExnRecord::write(object, tag, site, payload);
            Ok(object)
        }
    }

    /// Asks the limiter for the memory of an object of this many words. To it, the heap is a memory that grows by 64 KiB or more.
    ///
    /// # Errors
    /// It refuses.
    pub fn ask_for_objects(&mut self, words: usize) -> Result<()> {
        let Some(Range { start, end }) = self.heap.wanted(words) else { return Ok(()) };
        if let Some(limiter) = &mut self.limiter
            && !limiter.memory_growing(self.data, start, end, None)?
        {
            return Err(Error::msg("the store's limit of memory does not allow another reference"));
        }
        self.heap.grant(end);
        Ok(())
    }

    /// Returns the reference of a root.
    ///
    /// # Errors
    /// Its scope has ended.
    ///
    /// # Panics
    /// It is one of another store.
    pub fn reference(&self, root: Root) -> Result<u32> {
        assert_eq!(root.store, self.id, "a reference was used with a store that is not its own");
        self.roots.get(root).ok_or_else(|| Error::msg("a reference was used after the end of its scope"))
    }

    /// Checks that the store's limits allow this many more instances, memories and tables.
    ///
    /// # Errors
    /// They exceed a limit.
    pub fn check_counts(&mut self, instances: usize, memories: usize, tables: usize) -> Result<()> {
        let Some(limiter) = &mut self.limiter else { return Ok(()) };
        let limits = limiter.counts(self.data)?;
        let counts = [
            ("instances", self.owned.instances + instances, limits.0),
            ("memories", self.owned.memories.len() + memories, limits.1),
            ("tables", self.owned.tables.len() + tables, limits.2),
        ];
        match counts.into_iter().find(|(_, count, limit)| count > limit) {
            Some((what, _, limit)) => Err(Error::msg(format!("the store's limit of {limit} {what} is exceeded"))),
            None => Ok(()),
        }
    }
}

// Assumptions of the pointers in contexts.
const _: () = {
    assert!(offset_of!(StoreRecord, ctx) == 0 && size_of::<StoreCtx>() <= size_of::<StoreRecord>());
    assert!(offset_of!(StackRecord, ctx) == 0 && size_of::<StackCtx>() <= size_of::<StackRecord>());
    assert!(offset_of!(MemoryRecord, ctx) == 0 && size_of::<MemoryCtx>() <= size_of::<MemoryRecord>());
    assert!(offset_of!(TableRecord, ctx) == 0 && size_of::<TableCtx>() <= size_of::<TableRecord>());
    assert!(offset_of!(GlobalRecord, slot) == 0);
    assert!(size_of::<TableEntry>() == 32 && size_of::<usize>() == size_of::<u64>());
    assert!(size_of::<InstanceCtx>().is_multiple_of(8) && align_of::<InstanceCtx>() <= 16);
};
