//! Functions as the interpreter sees them, and those among them that are validated before their first execution.
//!
//! Until it is validated, a function's [`Body`] has no code and a frame too big for any stack. Whoever calls it finds its
//! ticks gone, and so comes to [`prepare`]; whoever then finds no room for the frame asks [`refused`] whether the function is
//! invalid. So calls of validated functions take no step more.

use super::Exit;
use super::dispatch::{End, State, Step};
use super::frame::{self, Body, Scope};
use crate::records::store::{Failure, ModuleRecord, instance_of, store_of};
use crate::tier;
use crate::tier::counters::FuncCode;
use crate::{Error, Module};
use std::cell::UnsafeCell;
use std::sync::atomic::{Ordering, fence};
use std::sync::{Mutex, PoisonError};
use weir_bytecode::module::FuncBody;
use weir_bytecode::{Module as Bytecode, Opcode};

/// A module's own functions.
#[derive(Debug)]
pub(crate) struct Bodies {
    bodies: Box<[UnsafeCell<Body>]>,
    /// For the handlers in assembly of an engine that consumes fuel, else empty: at the offset of each segment's first byte what
    /// it costs to come there, at most 255, elsewhere 0. A `loop` charges for itself, so its cost stands at its second byte.
    costs: Box<[UnsafeCell<u8>]>,
    /// Held while a body is validated and made ready; `None` if all are.
    lazy: Option<Mutex<()>>,
}

// SAFETY: a body that is not ready, and what its segments cost, is written by one thread at a time, under the lock, and read by
// others only after they have read what that thread stored, with release order, in the function's ticks. One that is ready is not
// written any more.
unsafe impl Sync for Bodies {}

impl Bodies {
    /// The bodies of `module`, and if `fuel` is set, what segments cost.
    ///
    /// They point to `module`'s boxes and to `code`: the record that owns all three must not replace any of them.
    pub fn new(module: &Bytecode, code: &[FuncCode], fuel: bool) -> Bodies {
        assert_eq!(module.bodies.len(), code.len());
        let bodies = code.iter().zip(module.imported_funcs..).map(|(code, func)| Body::new(module, func, code));
        let lazy = module.unvalidated.as_ref().map(|_| Mutex::default());
        let costs = Box::new_zeroed_slice(if fuel { module.bytes.len() } else { 0 });
        // SAFETY: zeros are bytes.
        let bodies = Bodies { bodies: bodies.map(UnsafeCell::new).collect(), costs: unsafe { costs.assume_init() }, lazy };
        for source in module.bodies.iter().filter_map(|body| body.get()) {
            // SAFETY: nobody else has the costs.
            unsafe { bodies.write_costs(module, source) };
        }
        bodies
    }

    /// Writes what the segments of a function cost, if that is wanted.
    ///
    /// # Safety
    /// The function is of `module`, whose bodies these are, and nobody reads these costs now.
    unsafe fn write_costs(&self, module: &Bytecode, source: &FuncBody) {
        if self.costs.is_empty() {
            return;
        }
        for segment in &source.segments {
            let is_loop = module.bytes[segment.pc as usize] == Opcode::Loop as u8;
            let cost = self.costs[segment.pc as usize + usize::from(is_loop)].get();
            // SAFETY: the caller's promise.
            unsafe { *cost = u8::try_from(segment.cost).unwrap_or(u8::MAX) };
        }
    }

    /// Where the costs are.
    pub(super) fn costs(&self) -> *const u8 {
        self.costs.as_ptr().cast()
    }

    /// The first of them.
    pub fn as_ptr(&self) -> *const Body {
        self.bodies.as_ptr().cast()
    }
}

/// Sees to it that function `func`, which somebody calls, is validated and ready. Whether the tier policy is to be asked
/// about it now: not if it is invalid, or has just got its first ticks.
pub(super) fn prepare(module: &ModuleRecord, func: u32) -> bool {
    let Some(lock) = &module.bodies.lazy else { return true };
    let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
    let body = module.bodies.bodies[(func - module.bytecode.imported_funcs) as usize].get();
    // SAFETY: the lock is held, so nobody writes it.
    if unsafe { (*body).is_ready() } {
        return true;
    }
    let Some(Ok(source)) = module.bytecode.validated_body(func) else { return false };
    // SAFETY: the lock is held, and who does not hold it reads nothing of the body that this writes before it has seen the
    // ticks that are stored below, nor, before that or the frame's size, of the costs.
    unsafe {
        module.bodies.write_costs(&module.bytecode, source);
        fence(Ordering::Release);
        Body::make_ready(body, &module.bytecode, source);
    }
    let ticks = tier::first_ticks(&module.engine, source.len()) - 1;
    module.func_code(func).ticks.store(ticks, Ordering::Release);
    drop(guard);
    ticks < 0
}

/// Why function `func` is invalid, if it has been found so.
pub(super) fn refusal(module: &Module, func: u32) -> Option<Error> {
    module.record().bodies.lazy.as_ref()?;
    let error = module.bytecode().validated_body(func)?.err()?;
    Some(Error::new(error.clone()))
}

/// The end of the activation that stands at a call of `body` for whose frame there is no room, if the function is invalid.
///
/// # Safety
/// The state is valid, `body` is a function of the instance of `scope`.
#[cold]
pub(super) unsafe fn refused(state: State, body: *const Body, scope: *const Scope) -> Option<Step> {
    // SAFETY: the caller's promise.
    unsafe {
        let mut failure = Failure::Host(refusal(&instance_of((*scope).ctx).module, (*body).func)?);
        frame::describe(&mut failure, state.scope, state.body, state.fp, state.pc);
        (*store_of((*scope).ctx)).failure = Some(failure);
    }
    Some(Step::Leave(End::Exit(Exit::Trap)))
}
