//! Support for native code: its engine, and the functions that compiled code calls. They are the Rust end of its
//! `to_rust` stubs, and wrappers of [`bulk`] in the System V convention.
//!
//! # Safety
//! Only compiled code calls them, with its context and the arguments that [`Helper`] lists.

use crate::code::{Assembly, Crossings, Grown, Hooks, Registers};
use crate::interp::immediate::{self, Count, ImmediateHooks};
use crate::interp::{self, Exit};
use crate::records::bulk;
use crate::records::config::Config;
use crate::records::deadline::deadline_reached;
use crate::records::engines::Engines;
use crate::records::error::{Error, Result};
use crate::records::exceptions::{InFlight, Site};
use crate::records::failure::Failure;
use crate::records::instance::{InstanceRecord, instance_of};
use crate::records::quiescence::Domain;
use crate::records::stack::{is_on_stack, native_overflow};
use crate::records::store::store_of;
use crate::records::unwind::throw_object;
use crate::sys::segment;
pub(super) use crate::sys::signals::has_stack as thread_is_prepared;
pub(super) use crate::tier::engine::has_processor;
use crate::tier::engine::{cell_address, reenter_stub};
pub(super) use crate::tier::reclaim::{enter, leave};
#[cfg(feature = "async")]
pub(super) use crate::tier::reclaim::{resume, suspend};
use crate::tier::state::{EngineState, engine_of};
use crate::tier::tier_up::{leave_osr, missed, tier_up_baseline};
use crate::tier::unwind::{on_throw, on_unwind};
use std::ptr;
use std::sync::Arc;
use weir_bytecode::Trap;
use weir_contract::{Dispatch, FRAME_HEADER, Helper, HelperAddress, InstanceCtx, MISSED, NO_LOOP, Outcome, Status};

/// The Rust end of a `to_rust` stub: interprets function `func` of `instance`. Arguments and results are in slots at
/// `args`, which is `value_sp`.
///
/// # Safety
/// Called by compiled code, with a function of an instance of the store that runs.
unsafe extern "sysv64" fn weir_to_rust(instance: *mut InstanceCtx, func: u32, args: *mut u64) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { outcome(interp::run(instance, func, args)) }
}

/// The Rust end of a `resume` stub.
///
/// # Safety
/// Called by a `resume` stub, which compiled code has jumped to as [`weir_contract`] says.
unsafe extern "sysv64" fn weir_resume(instance: *mut InstanceCtx, at: u64, fp: *mut u64) -> Outcome {
    let (func, index) = unpack(at);
    // SAFETY: the caller's promise.
    unsafe { outcome(interp::resume(instance, func, index, fp)) }
}

/// Runs an activation that leaves the interpreter's assembly: see [`ImmediateHooks::proceed`].
///
/// # Safety
/// Called by the assembly.
unsafe extern "sysv64" fn weir_proceed(state: *mut (), segment: u32) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe {
        let instance = interp::instance_of_state(state);
        let Outcome { status, target } = outcome(interp::proceed(state, segment));
        let unwind =
            || engine_of(instance_of(instance).module.engine().record()).space().map_or(ptr::null(), |space| space.unwind());
        Outcome { status, target: if status == Status::Trap { unwind() } else { target } }
    }
}

/// Converts the end of an activation for the stub that began it.
///
/// # Safety
/// The activation has just ended.
unsafe fn outcome(exit: Exit) -> Outcome {
    let done = |status| Outcome { status, target: ptr::null() };
    match exit {
        Exit::Return => done(Status::Return),
        Exit::Trap => done(Status::Trap),
        // SAFETY: the caller's promise: the instance is live.
        Exit::Dispatch { func, instance, code, args, osr } => unsafe {
            (*(*instance).stack).dispatch = Dispatch { code, args, instance };
            let target = reenter_stub(instance_of(instance).module.record(), func, osr);
            Outcome { status: Status::Dispatch, target }
        },
    }
}

/// [`weir_to_rust`] in an engine that counts crossings.
///
/// # Safety
/// As for [`weir_to_rust`].
unsafe extern "sysv64" fn weir_to_rust_counted(instance: *mut InstanceCtx, func: u32, args: *mut u64) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe {
        counted(
            instance,
            || weir_to_rust(instance, func, args),
            |crossings, at, limit| {
                let cell = cell_address(instance_of(instance).module.record(), func);
                crossings.interprets(at, limit, cell);
            },
        )
    }
}

/// [`weir_resume`] in an engine that counts crossings.
///
/// # Safety
/// As for [`weir_resume`].
unsafe extern "sysv64" fn weir_resume_counted(instance: *mut InstanceCtx, at: u64, fp: *mut u64) -> Outcome {
    // SAFETY: the caller's promise. The frame is known: `tick` or `osr_target` has moved it.
    unsafe { counted(instance, || weir_resume(instance, at, fp), |_, _, _| ()) }
}

/// [`weir_proceed`] in an engine that counts crossings.
///
/// # Safety
/// As for [`weir_proceed`].
unsafe extern "sysv64" fn weir_proceed_counted(state: *mut (), segment: u32) -> Outcome {
    // SAFETY: the caller's promise. `weir_begun` has counted the call.
    unsafe { counted(interp::instance_of_state(state), || weir_proceed(state, segment), |_, _, _| ()) }
}

/// Counts a call of an interpreted function that the assembly begins: see [`Count::begun`].
///
/// # Safety
/// Called by the assembly.
unsafe extern "sysv64" fn weir_begun(instance: *mut InstanceCtx, func: u32, at: *const usize) {
    // SAFETY: the caller's promise.
    unsafe {
        with_crossings(instance, |crossings, limit| {
            let cell = cell_address(instance_of(instance).module.record(), func);
            crossings.interprets(at, limit, cell);
        });
    }
}

/// Counts its return: see [`Count::returned`].
///
/// # Safety
/// Called by the assembly.
unsafe extern "sysv64" fn weir_returned(instance: *mut InstanceCtx, at: *const usize) {
    // SAFETY: the caller's promise.
    unsafe { with_crossings(instance, |crossings, limit| crossings.interpreted(at, limit, true)) };
}

/// Calls `count` with the counts of crossings, if there are any, and the end of the native stack.
///
/// # Safety
/// `instance` is live.
unsafe fn with_crossings(instance: *mut InstanceCtx, count: impl FnOnce(&Crossings, usize)) {
    // SAFETY: the caller's promise.
    unsafe {
        let space = engine_of(instance_of(instance).module.engine().record()).space().ok();
        if let Some(crossings) = space.and_then(|space| space.crossings()) {
            count(crossings, (*(*instance).stack).native_limit);
        }
    }
}

/// Runs an activation that a stub begins, with calls of the crossings before and after it. `begin` has the address of the return
/// address and the end of the native stack.
///
/// # Safety
/// A stub is the caller, and the instance is live.
unsafe fn counted(
    instance: *mut InstanceCtx,
    run: impl FnOnce() -> Outcome,
    begin: impl FnOnce(&Crossings, *const usize, usize),
) -> Outcome {
    // SAFETY: the caller's promise. The module lives until the activation has ended.
    unsafe {
        let stack = (*instance).stack;
        // The stub's frame is below its return address.
        let at = ptr::with_exposed_provenance::<usize>((*stack).exit_fp).add(1);
        let module = instance_of(instance).module.clone();
        let space = engine_of(module.engine().record()).space().ok();
        let Some((space, crossings)) = space.and_then(|space| Some((space, space.crossings()?))) else { return run() };
        let limit = (*stack).native_limit;
        begin(crossings, at, limit);
        let outcome = run();
        match outcome.status {
            Status::Return | Status::Trap => crossings.interpreted(at, limit, outcome.status == Status::Return),
            Status::Dispatch if outcome.target == space.reenter_osr() => crossings.moved(at, (*stack).dispatch.code, false),
            // The code has a counting entry.
            Status::Dispatch => {}
        }
        outcome
    }
}

/// Notes that the frame with the return address at `at` continues at `target`, if crossings are counted.
///
/// # Safety
/// Both are addresses in code.
unsafe fn moved(ctx: *mut InstanceCtx, at: *const usize, target: *const u8, at_entry: bool) {
    // SAFETY: the caller's promise.
    unsafe {
        let space = engine_of(instance_of(ctx).module.engine().record()).space().ok();
        if let Some(crossings) = space.and_then(|space| space.crossings()) {
            crossings.moved(at, target, at_entry);
        }
    }
}

/// The functions that the stubs call.
const HOOKS: Hooks = Hooks {
    to_rust: weir_to_rust,
    resume: weir_resume,
    on_unwind,
    poll,
    tick,
    osr_target,
    memory_grow,
    table_grow,
    throw,
    throw_ref,
    no_entry,
    assembly: None,
};

/// Whether there is native code.
pub(super) const AVAILABLE: bool = true;

/// Creates the engine that compiles, for these settings.
///
/// # Errors
/// The profiler's file can't be written.
pub(super) fn engines(config: &Config, quiescence: &Arc<Domain>) -> Result<Box<dyn Engines>> {
    if config.uses_segment() {
        segment::use_it();
    }
    let counting = Hooks { to_rust: weir_to_rust_counted, resume: weir_resume_counted, ..HOOKS };
    let hooks = if config.count_crossings { counting } else { HOOKS };
    let hooks = Hooks { assembly: config.has_assembly().then(|| assembly(config)), ..hooks };
    let table = match &config.costs {
        Some(_) if config.consume_fuel => table::<0>,
        _ if config.consume_fuel || config.polls() => table::<{ bulk::BYTES_OF_UNIT - 1 }>,
        _ => table::<{ bulk::SHORT }>,
    };
    Ok(Box::new(EngineState::new(config, quiescence, hooks, table)?))
}

/// Returns the entry of the interpreter's assembly.
fn assembly(config: &Config) -> Assembly {
    let count = config.count_crossings.then_some(Count { begun: weir_begun, returned: weir_returned });
    let proceed = if config.count_crossings { weir_proceed_counted } else { weir_proceed };
    let table = immediate::table(config.loop_kind(), ImmediateHooks { proceed, count });
    Assembly { table, begin: immediate::BEGIN, scale: immediate::SCALE }
}

/// Returns the table that [`InstanceCtx::helpers`] points to. Entries of helpers that have stubs are null. Copies and fills of `FREE` bytes
/// or fewer cost nothing, and need not look at the deadline.
fn table<const FREE: u64>() -> [HelperAddress; Helper::COUNT] {
    std::array::from_fn(|i| address::<FREE>(Helper::ALL[i]))
}

fn address<const FREE: u64>(helper: Helper) -> HelperAddress {
    match helper {
        // These helpers are stubs, which call the functions of `Hooks`.
        Helper::Raise | Helper::Poll | Helper::Tick | Helper::OsrTarget | Helper::MemoryGrow | Helper::TableGrow => ptr::null(),
        Helper::Throw | Helper::ThrowRef | Helper::Relocate => ptr::null(),
        Helper::MemoryFill if FREE > 0 => memory_fill_short::<FREE> as *const u8,
        Helper::MemoryFill => memory_fill as *const u8,
        Helper::MemoryCopy if FREE > 0 => memory_copy_short::<FREE> as *const u8,
        Helper::MemoryCopy => memory_copy as *const u8,
        Helper::MemoryInit => memory_init as *const u8,
        Helper::DataDrop => data_drop as *const u8,
        Helper::TableSet => table_set as *const u8,
        Helper::TableFill => table_fill as *const u8,
        Helper::TableCopy => table_copy as *const u8,
        Helper::TableInit => table_init as *const u8,
        Helper::ElemDrop => elem_drop as *const u8,
        Helper::RefFunc => ref_func as *const u8,
    }
}

/// Runs a bulk operation of the instance. A trap is stored where compiled code expects it.
unsafe fn run(ctx: *mut InstanceCtx, operation: impl FnOnce(&InstanceRecord) -> Result<(), Trap>) -> u64 {
    // SAFETY: see the head of this file.
    match operation(unsafe { instance_of(ctx) }) {
        Ok(()) => Status::Return as u64,
        Err(trap) => {
            // SAFETY: see the head of this file.
            unsafe { (*(*ctx).store).trap = trap as u64 };
            Status::Trap as u64
        }
    }
}

/// Splits a packed argument into two indices, low half first.
fn unpack(pair: u64) -> (u32, u32) {
    (pair as u32, (pair >> 32) as u32)
}

unsafe extern "sysv64" fn poll(ctx: *mut InstanceCtx) -> u64 {
    // SAFETY: see the head of this file; native code keeps nothing on the value stack.
    unsafe {
        let store = store_of(ctx);
        match deadline_reached(store) {
            Ok(()) => Status::Return as u64,
            Err(failure) => {
                (*store).failure = Some(failure);
                Status::Trap as u64
            }
        }
    }
}

unsafe extern "sysv64" fn tick(ctx: *mut InstanceCtx, at: u64, frame: *const *mut u64) -> *const u8 {
    let (func, index) = unpack(at);
    if index != NO_LOOP && index & MISSED != 0 {
        // SAFETY: see the head of this file.
        unsafe { (*(*ctx).store).misses = missed(instance_of(ctx).module.record(), index & !MISSED, func) };
        return ptr::null();
    }
    let index = (index != NO_LOOP).then_some(index);
    // SAFETY: see the head of this file; at a loop, baseline code has its frame.
    let (module, room) = unsafe {
        let stack = (*ctx).stack;
        debug_assert!(index.is_none() || is_on_stack(stack, *frame.sub(1), FRAME_HEADER as usize), "a frame of baseline code");
        (instance_of(ctx).module.record(), !native_overflow(stack))
    };
    let Some(target) = tier_up_baseline(module, func, index, room) else { return ptr::null() };
    // SAFETY: at an entry, the return address is after that of the stub's call; at a loop, in the frame.
    unsafe {
        let exit_fp = ptr::with_exposed_provenance::<usize>((*(*ctx).stack).exit_fp);
        let at = if index.is_some() { frame.cast::<usize>().add(1) } else { exit_fp.add(2) };
        moved(ctx, at, target, index.is_none());
    }
    target
}

unsafe extern "sysv64" fn osr_target(ctx: *mut InstanceCtx, at: u64, frame: *const usize) -> *const u8 {
    let (func, index) = unpack(at);
    // SAFETY: see the head of this file; an OSR body that calls has a frame.
    unsafe {
        let (target, ticks) = leave_osr(instance_of(ctx).module.record(), func, index, !native_overflow((*ctx).stack));
        (*(*ctx).store).osr_ticks = ticks;
        let Some(target) = target else { return ptr::null() };
        moved(ctx, frame.add(1), target, false);
        target
    }
}

unsafe extern "sysv64" fn throw(ctx: *mut InstanceCtx, at: u64, registers: &mut Registers) -> u32 {
    // SAFETY: see the head of this file; the payload is in the overflow slots.
    unsafe {
        let tag = instance_of(ctx).tag(at as u32);
        let site = Site { instance: ctx, pc: (at >> 32) as u32 };
        (*store_of(ctx)).in_flight = InFlight { tag, object: ptr::null_mut(), site };
        on_throw(ctx, registers)
    }
}

unsafe extern "sysv64" fn throw_ref(ctx: *mut InstanceCtx, exception: u64, registers: &mut Registers) -> u32 {
    // SAFETY: see the head of this file; the reference is not null.
    unsafe {
        throw_object(store_of(ctx), exception);
        on_throw(ctx, registers)
    }
}

unsafe extern "sysv64" fn no_entry(ctx: *mut InstanceCtx) {
    let error = Error::msg("native code calls a function for whose entry there was no room in the engine's code memory");
    // SAFETY: see the head of this file; the contexts of host functions begin as those of instances do.
    unsafe { (*store_of(ctx)).failure = Some(Failure::Host(error)) };
}

/// Converts the result of growing for a stub; after `None` the reason is in the store.
fn grown(old: Option<u64>) -> Grown {
    Grown { old: old.unwrap_or_default(), status: if old.is_some() { Status::Return } else { Status::Trap } }
}

unsafe extern "sysv64" fn memory_grow(ctx: *mut InstanceCtx, memory: u32, delta: u64, _: u64) -> Grown {
    // SAFETY: see the head of this file.
    grown(unsafe { bulk::memory_grow(instance_of(ctx), memory, delta) })
}

#[inline(never)]
unsafe extern "sysv64" fn memory_fill(ctx: *mut InstanceCtx, memory: u32, address: u64, byte: u32, len: u64) -> u64 {
    // SAFETY: see the head of this file.
    unsafe { run(ctx, |instance| bulk::memory_fill(instance, memory, address, byte as u8, len)) }
}

#[inline(never)]
unsafe extern "sysv64" fn memory_copy(ctx: *mut InstanceCtx, memories: u64, to: u64, from: u64, len: u64) -> u64 {
    let (dst, src) = unpack(memories);
    // SAFETY: see the head of this file.
    unsafe { run(ctx, |instance| bulk::memory_copy(instance, dst, src, to, from, len)) }
}

/// As [`memory_fill`], with a fast path for up to `FREE` bytes.
unsafe extern "sysv64" fn memory_fill_short<const FREE: u64>(
    ctx: *mut InstanceCtx,
    memory: u32,
    address: u64,
    byte: u32,
    len: u64,
) -> u64 {
    // SAFETY: see the head of this file.
    unsafe {
        match memory == 0 && len <= FREE && bulk::fill_short(instance_of(ctx), address, byte as u8, len) {
            true => Status::Return as u64,
            false => memory_fill(ctx, memory, address, byte, len),
        }
    }
}

/// As [`memory_copy`], with a fast path for up to `FREE` bytes.
unsafe extern "sysv64" fn memory_copy_short<const FREE: u64>(
    ctx: *mut InstanceCtx,
    memories: u64,
    to: u64,
    from: u64,
    len: u64,
) -> u64 {
    // SAFETY: see the head of this file.
    unsafe {
        match memories == 0 && len <= FREE && bulk::copy_short(instance_of(ctx), to, from, len) {
            true => Status::Return as u64,
            false => memory_copy(ctx, memories, to, from, len),
        }
    }
}

unsafe extern "sysv64" fn memory_init(ctx: *mut InstanceCtx, memory_segment: u64, to: u64, from: u32, len: u32) -> u64 {
    let (memory, segment) = unpack(memory_segment);
    // SAFETY: see the head of this file.
    unsafe { run(ctx, |instance| bulk::memory_init(instance, memory, segment, to, from, len)) }
}

unsafe extern "sysv64" fn data_drop(ctx: *mut InstanceCtx, segment: u32) -> u64 {
    // SAFETY: see the head of this file.
    bulk::data_drop(unsafe { instance_of(ctx) }, segment);
    Status::Return as u64
}

unsafe extern "sysv64" fn table_set(ctx: *mut InstanceCtx, table: u32, index: u64, reference: u64) -> u64 {
    // SAFETY: see the head of this file.
    unsafe { run(ctx, |instance| bulk::table_set(instance, table, index, reference)) }
}

unsafe extern "sysv64" fn table_grow(ctx: *mut InstanceCtx, table: u32, reference: u64, delta: u64) -> Grown {
    // SAFETY: see the head of this file.
    grown(unsafe { bulk::table_grow(instance_of(ctx), table, reference, delta) })
}

unsafe extern "sysv64" fn table_fill(ctx: *mut InstanceCtx, table: u32, index: u64, reference: u64, len: u64) -> u64 {
    // SAFETY: see the head of this file.
    unsafe { run(ctx, |instance| bulk::table_fill(instance, table, index, reference, len)) }
}

unsafe extern "sysv64" fn table_copy(ctx: *mut InstanceCtx, tables: u64, to: u64, from: u64, len: u64) -> u64 {
    let (dst, src) = unpack(tables);
    // SAFETY: see the head of this file.
    unsafe { run(ctx, |instance| bulk::table_copy(instance, dst, src, to, from, len)) }
}

unsafe extern "sysv64" fn table_init(ctx: *mut InstanceCtx, table_segment: u64, to: u64, from: u32, len: u32) -> u64 {
    let (table, segment) = unpack(table_segment);
    // SAFETY: see the head of this file.
    unsafe { run(ctx, |instance| bulk::table_init(instance, table, segment, to, from, len)) }
}

unsafe extern "sysv64" fn elem_drop(ctx: *mut InstanceCtx, segment: u32) -> u64 {
    // SAFETY: see the head of this file.
    bulk::elem_drop(unsafe { instance_of(ctx) }, segment);
    Status::Return as u64
}

unsafe extern "sysv64" fn ref_func(ctx: *mut InstanceCtx, func: u32) -> u64 {
    // SAFETY: see the head of this file.
    bulk::ref_func(unsafe { instance_of(ctx) }, func)
}
