//! Publication: the only writer of entry cells and of [`FuncCode::native`](crate::records::func_code::FuncCode::native) while a
//! module runs. Two others write before that, or instead: `CodeSpace::add_module` puts thunks into new cells, and the
//! tier `exec::ssa`, which has no cells, stores its translations in `native`.
//!
//! # Invariant
//!
//! Code of a function is reached through two words: its cell, which compiled callers jump through, and `native`, which the
//! interpreter and Rust read. Either both hold the address of the code that is ready for the function's call, or the cell holds
//! the function's interpreter thunk and `native` is null. Between the two stores a reader may see one of each: it then calls
//! the code or interprets, and both are right. The words change under the lock of the module's `Entries` alone, so that no two
//! threads write them, and code that is not ready is in neither.
//!
//! `native` has a companion, the stub that enters the code, which is stored before code of the function is first made known.

use super::entry::Code;
use super::state::NativeModule;
use crate::code::Enter as Stub;
use crate::records::func_code::Enter;
use crate::records::module::ModuleRecord;
use std::mem;
use std::ptr;
use std::sync::atomic::Ordering;

/// Says how code of function `func` is entered: before any of its code is known to anyone.
pub(super) fn introduce(module: &ModuleRecord, native: &NativeModule, func: u32) {
    let stub = native.stubs(module, func).enter;
    module.func_code(func).set_enter(enter(stub));
}

/// A stub as the records know it.
pub(super) fn enter(stub: Stub) -> Enter {
    // SAFETY: the types differ in the name of the convention only: C's on x86-64 Linux, where there are stubs, is System V's.
    unsafe { mem::transmute::<Stub, Enter>(stub) }
}

/// Points function `func` at its code. The module's entries are locked, and there the code is ready.
pub(super) fn publish(module: &ModuleRecord, native: &NativeModule, func: u32, code: Code) {
    let counted = module.func_code(func);
    if counted.native.load(Ordering::Relaxed).is_null() {
        native.code.cell(func).store(code.0.cast_mut(), Ordering::Release);
        counted.native.store(code.0.cast_mut(), Ordering::Release);
    }
}

/// Sends function `func` back to the interpreter, where its next call asks for its code. The module's entries are locked.
pub(super) fn withdraw(module: &ModuleRecord, native: &NativeModule, func: u32) {
    let counted = module.func_code(func);
    native.code.cell(func).store(native.code.thunk(func).cast_mut(), Ordering::Release);
    counted.native.store(ptr::null_mut(), Ordering::Release);
    counted.reset_ticks(0);
}
