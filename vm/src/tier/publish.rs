//! Publication: the only writer of entry cells and of [`FuncCode::native`](crate::records::func_code::FuncCode::native)
//! while a module runs. There are other writers: `CodeSpace::add_module` initialises new cells to thunks, stubs begin with the
//! cells of host functions, which never change, and the tier `exec::ssa`, which has no cells, stores its translations in `native`.
//!
//! # Invariant
//!
//! Two words lead to the code of a function: its cell, through which compiled callers jump, and `native`, which the
//! interpreter and Rust read. Either both hold the address of the ready code of the function's call, or the cell holds
//! the function's interpreter thunk and `native` is null. Between the two stores a reader may see one of each: it then
//! calls the code or interprets, and both are right. Both words are written only under the lock of the module's
//! `Entries`, so no two threads write them, and they never hold code that is not ready.
//!
//! The stub that enters the code is stored before any code of the function is published.

use super::entry::{Code, Entries, Key, Level};
use super::state::{NativeModule, engine_of};
use crate::code::Enter as Stub;
use crate::records::func_code::Enter;
use crate::records::module::ModuleRecord;
use std::mem;
use std::ptr;
use std::sync::atomic::Ordering;
use weir_contract::Entry;

/// Stores the stub that enters code of function `func`, before any of its code is published.
fn introduce(module: &ModuleRecord, native: &NativeModule, func: u32) {
    let stub = native.stubs(module, func).enter;
    module.func_code(func).set_enter(enter(stub));
}

/// Converts a stub to the type of the records.
pub(super) fn enter(stub: Stub) -> Enter {
    // SAFETY: the types differ only in the name of the convention: on x86-64 Linux, the only host with stubs, C's is
    // System V's.
    unsafe { mem::transmute::<Stub, Enter>(stub) }
}

/// Points both words of the function of `key` at its code, unless they lead to code that is as good. The caller holds
/// the lock of the module's entries, and the code is ready.
pub(super) fn publish(module: &ModuleRecord, native: &NativeModule, key: Key, code: Code) {
    let Key { func, level, .. } = key;
    let counted = module.func_code(func);
    let now = counted.native.load(Ordering::Relaxed);
    if now.is_null() || level == Level::Top && now.cast_const() != code.0 {
        native.code.cell(func).store(code.0.cast_mut(), Ordering::Release);
        counted.native.store(code.0.cast_mut(), Ordering::Release);
    }
}

/// Sets the ticks of baseline code that other threads may enter as soon as it is there. `is_cold` is whether the optimiser was not asked for
/// the function.
pub(super) fn arm_baseline(module: &ModuleRecord, native: &NativeModule, func: u32, is_cold: bool) {
    let (policy, code) = (&engine_of(module.engine.record()).policy, module.func_code(func));
    let left = policy.until_top(module.body_range(func).len() as u32, code.ticks_taken(), || is_cold);
    code.arm_baseline(native.code.ticks(func), left.unwrap_or_else(|| policy.next_ticks(Level::Top)));
}

/// Publishes code of an entry that is in place. `wanted` says whether a thread waits for it. The caller holds the lock of the module's entries,
/// which these are.
pub(super) fn installed(
    module: &ModuleRecord,
    native: &NativeModule,
    entries: &mut Entries,
    (key, code): (Key, Code),
    wanted: bool,
) {
    introduce(module, native, key.func);
    entries.installed(key, code, wanted);
    if key.entry == Entry::Call {
        publish(module, native, key, code);
    }
}

/// Returns function `func` to the interpreter, where its next call requests its code. The caller holds the lock of the
/// module's entries.
pub(super) fn withdraw(module: &ModuleRecord, native: &NativeModule, func: u32) {
    let counted = module.func_code(func);
    native.code.cell(func).store(native.code.thunk(func).cast_mut(), Ordering::Release);
    counted.native.store(ptr::null_mut(), Ordering::Release);
    counted.reset_ticks(0);
}
