//! The stack walker: the frames of the guest, of every engine, innermost first.
//!
//! A stack has two chains, both from the inside out, which begin in its [`StackCtx`]:
//!
//! - [`Boundary`]: one for each `enter` stub. Between a boundary and the one inside it lies a segment of native frames, linked by
//!   `rbp`. The segment ends at a stub through which native code called Rust, whose frame pointer is in [`StackCtx::exit_fp`]; the
//!   next `enter` stub saves it.
//! - [`Activation`]s: one for each run of the interpreter's loop, or of a function by the evaluator of SSA. It refers to the
//!   [`Position`] at which the engine called something that may walk the stack.
//!
//! A run of the interpreter that native code began, and that has not left the assembly, is in no chain until it calls native code.
//! Then the boundary of that call, which is one that unwinding passes, has its position after it.
//!
//! Both kinds of link lie on the native stack, which grows downwards: of two links the one at the lower address is the inner one.
//! So the walker merges the chains by address, and no link refers to the other kind.
//!
//! A store may have frames on several native stacks, of which each has its own chains: see [`fiber`](super::fiber). The walker goes
//! through all of them; the search for a handler ends at the innermost call by Rust, and so on the stack on which it begins.
//!
//! Only the thread that runs the guest can walk, from any Rust code: a host function, a helper that may grow a memory
//! or table, a callback at the deadline, or at a trap. Signal handlers and other threads cannot.

use crate::records::backtrace::WasmBacktrace;
use crate::records::body::Body;
use crate::records::engines::NativeSite;
use crate::records::fiber::Links;
use crate::records::frame_tier::FrameTier;
use crate::records::header::{Header, header};
use crate::records::instance::instance_of;
use crate::records::module::{Module, ModuleRecord};
use crate::records::pc::Pc;
use crate::records::scope::Scope;
use crate::records::store::StoreRecord;
use crate::sys::segment::Base;
use std::cell::Cell;
use std::mem::offset_of;
use std::ops::ControlFlow;
use std::ptr;
use weir_contract::{Boundary, StackCtx};

/// The position of the interpreter, or of the evaluator of SSA, in its innermost frame. The interpreter's state begins with these fields.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Position {
    /// Points to the instruction's opcode; if `sp` is null, to the instruction after the call.
    pub pc: *const u8,
    /// The first free operand slot. Null if `pc` is the address after the call.
    pub sp: *mut u64,
    /// Local 0. Null for the evaluator of SSA, which has one frame in an activation and none on the value stack.
    pub fp: *mut u64,
    /// The function.
    pub body: *const Body,
    /// The instance in which it runs.
    pub scope: *const Scope,
}

/// A run of the interpreter's loop, or of a function by the evaluator.
#[repr(C)]
pub(crate) struct Activation {
    prev: *const (),
    /// Null until [`record_position`] is called.
    position: Cell<*const Position>,
    /// The base of `gs` at its beginning, on which the code that it returns to may rely.
    base: Base,
}

/// That of the evaluator, which has its values elsewhere than on the value stack.
#[repr(C)]
pub(crate) struct EvaluatorActivation {
    pub activation: Activation,
    values: Cell<*const [Cell<u128>]>,
    /// The indices of the values that are references into the collected heap.
    roots: Cell<*const [u32]>,
}

impl EvaluatorActivation {
    /// Creates an activation as [`Activation::new`] does, without values.
    ///
    /// # Safety
    /// As there.
    pub unsafe fn new(stack: *const StackCtx) -> EvaluatorActivation {
        // SAFETY: the caller's promise.
        let activation = unsafe { Activation::new(stack) };
        EvaluatorActivation { activation, values: Cell::new(&[]), roots: Cell::new(&[]) }
    }

    /// Sets the values, and the indices of those that are references into the collected heap.
    pub fn set_roots(&self, values: *const [Cell<u128>], roots: *const [u32]) {
        self.values.set(values);
        self.roots.set(roots);
    }

    /// Calls `visit` with the values that are references into the collected heap.
    ///
    /// # Safety
    /// What [`EvaluatorActivation::set_roots`] was given last is still there.
    pub unsafe fn roots(&self, mut visit: impl FnMut(*mut u64)) {
        // SAFETY: the caller's promise. The upper half of a reference is zero.
        unsafe {
            let (values, roots) = (&*self.values.get(), &*self.roots.get());
            roots.iter().for_each(|&index| visit(values[index as usize].as_ptr().cast()));
        }
    }
}

impl Activation {
    /// Offset of the pointer to the position.
    pub const POSITION: usize = offset_of!(Activation, position);

    /// Creates an activation inside the innermost one of `stack`. It must be linked after it has been moved to its
    /// final place.
    ///
    /// # Safety
    /// `stack` is live.
    #[inline(always)]
    pub unsafe fn new(stack: *const StackCtx) -> Activation {
        // SAFETY: the caller's promise.
        Activation { prev: unsafe { (*stack).activation }, position: Cell::new(ptr::null()), base: Base::now() }
    }

    /// Makes this activation the innermost one, until [`Activation::unlink`].
    ///
    /// # Safety
    /// `stack` is that of [`Activation::new`]. This does not move until it is unlinked.
    #[inline(always)]
    pub unsafe fn link(&self, stack: *mut StackCtx) {
        // SAFETY: the caller's promise.
        unsafe { (*stack).activation = ptr::from_ref(self).cast() };
    }

    /// Makes the next outer activation the innermost one.
    ///
    /// # Safety
    /// This is the innermost activation of `stack`.
    #[inline(always)]
    pub unsafe fn unlink(&self, stack: *mut StackCtx) {
        // SAFETY: the caller's promise.
        unsafe { (*stack).activation = self.prev };
    }
}

/// Restores the base of `gs` that the innermost activation found, after native code that it called has ended without returning.
///
/// # Safety
/// An activation is linked in `stack`.
pub(crate) unsafe fn restore_base(stack: *const StackCtx) {
    // SAFETY: the caller's promise.
    unsafe { (*(*stack).activation.cast::<Activation>()).base.restore() };
}

/// Records the position of the innermost activation, before it calls anything that may walk the stack.
///
/// # Safety
/// An activation is linked in `stack`, and `position` is valid until that call is over.
#[inline(always)]
pub(crate) unsafe fn record_position(stack: *const StackCtx, position: *const Position) {
    // SAFETY: the caller's promise.
    unsafe { (*(*stack).activation.cast::<Activation>()).position.set(position) };
}

/// A frame of the guest. Native code with inlined calls has several for one machine frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    pub module: &'a Module,
    pub func: u32,
    /// The call, or at a trap the trapping instruction for the innermost frame.
    pub pc: Pc,
    #[cfg_attr(not(feature = "profiling"), allow(dead_code, reason = "only the sampler of guests reads it"))]
    pub tier: FrameTier,
}

/// A frame of the interpreter, or of the evaluator of SSA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InterpFrame {
    /// The call, or at a trap the trapping instruction for the innermost frame.
    pub pc: Pc,
    /// Local 0; see [`Position::fp`].
    pub fp: *mut u64,
    pub body: *const Body,
    pub scope: *const Scope,
}

/// In place of an address on the native stack, for [`segments`]: all frames.
pub(crate) const ALL_FRAMES: usize = usize::MAX;

/// A part of a stack, whose frames are of one engine.
pub(crate) enum Segment<'a> {
    /// Native frames, inside this boundary. Their stub has the frame pointer `exit_fp`.
    Native { exit_fp: usize, boundary: usize },
    /// An activation that has recorded its position.
    Activation { activation: *const (), position: &'a Position },
    /// An activation that native code began and that is in no chain. The stub that began it has the frame pointer `exit_fp`.
    Immediate { position: &'a Position, exit_fp: usize },
}

/// Calls `visit` with the segments of the stack of `store` that runs, innermost first, until it breaks. The last one is that before the
/// first link at the address `end` or above, on the native stack.
///
/// # Safety
/// This thread runs no guest of the live store, or is in Rust code called by its guest from a place that records the
/// guest's position: a stub that sets `exit_fp`, or the interpreter after [`record_position`]. The helpers for bulk
/// operations do neither.
pub(crate) unsafe fn segments(store: *mut StoreRecord, end: usize, visit: impl FnMut(Segment<'_>) -> ControlFlow<()>) {
    // SAFETY: the caller's promise: both chains are those of frames that are still there.
    unsafe {
        let stack = &raw const (*(*store).stack).ctx;
        let _ = segments_from(stack, Links::of(&*stack), end, visit);
    }
}

/// Calls `visit` with the segments of all stacks of `store`, innermost first, until it breaks.
///
/// # Safety
/// As for [`segments`].
pub(crate) unsafe fn all_segments(store: *mut StoreRecord, mut visit: impl FnMut(Segment<'_>) -> ControlFlow<()>) {
    // SAFETY: the caller's promise: the links outside a fiber are those of frames that are still there.
    unsafe {
        let stack = &raw const (*(*store).stack).ctx;
        let (mut links, mut fiber) = (Links::of(&*stack), (*store).fiber);
        while segments_from(stack, links, ALL_FRAMES, &mut visit).is_continue() && !fiber.is_null() {
            let outer = &(*fiber).outer;
            (links, fiber) = (outer.links, outer.fiber);
        }
    }
}

/// Calls `visit` with the segments of one native stack, whose innermost links these are, as [`segments`] does.
///
/// # Safety
/// The links are those of frames that are still there, of the store with this stack record.
pub(crate) unsafe fn segments_from(
    stack: *const StackCtx,
    links: Links,
    end: usize,
    mut visit: impl FnMut(Segment<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    // SAFETY: the caller's promise.
    unsafe {
        let Links { activation, mut boundary, mut exit_fp } = links;
        let mut activation = activation.cast::<Activation>();
        loop {
            if !activation.is_null() && (boundary == 0 || activation.addr() < boundary) {
                if activation.addr() >= end {
                    return ControlFlow::Continue(());
                }
                let innermost = &*activation;
                activation = innermost.prev.cast();
                // An activation that has called nothing yet has no position and no frame to show.
                if let Some(position) = innermost.position.get().as_ref() {
                    visit(Segment::Activation { activation: ptr::from_ref(innermost).cast(), position })?;
                }
            } else if boundary != 0 && boundary < end {
                visit(Segment::Native { exit_fp, boundary })?;
                let at = ptr::with_exposed_provenance::<Boundary>(boundary);
                let of: *const StackCtx;
                Boundary { prev: boundary, stack: of, exit_fp } = ptr::read(at);
                if !ptr::eq(of, stack) {
                    visit(Segment::Immediate { position: &*at.add(1).cast::<Position>(), exit_fp })?;
                }
            } else {
                return ControlFlow::Continue(());
            }
        }
    }
}

/// Calls `visit` with the frames of the guest of `store`, innermost first, until it breaks.
///
/// # Safety
/// As for [`segments`].
pub(crate) unsafe fn walk(store: *mut StoreRecord, mut visit: impl FnMut(Frame<'_>) -> ControlFlow<()>) {
    // SAFETY: the caller's promise.
    unsafe {
        all_segments(store, |segment| match segment {
            Segment::Native { exit_fp, .. } => {
                let mut flow = ControlFlow::Continue(());
                (*store).engine.record().engines.native_frames(exit_fp, &mut |NativeSite { module, func, pc, tier, .. }| {
                    // Modules live while their code is on a stack.
                    let module = Module::from_running(module as *const ModuleRecord);
                    flow = visit(Frame { module: &module, func, pc: Pc::At(pc), tier });
                    flow
                });
                flow
            }
            Segment::Activation { position, .. } | Segment::Immediate { position, .. } => {
                // The evaluator has no frame on the value stack.
                let tier = if position.fp.is_null() { FrameTier::Evaluator } else { FrameTier::Interpreter };
                walk_activation(position, |InterpFrame { body, scope, pc, .. }| {
                    visit(Frame { module: &instance_of((*scope).ctx).module, func: (*body).func, pc, tier })
                })
                .map_continue(|_| ())
            }
        });
    }
}

/// Visits the frames of one activation, innermost first, until `visit` breaks. Returns local 0 of the base frame.
///
/// # Safety
/// `position` is the recorded position of that activation.
#[inline]
pub(crate) unsafe fn walk_activation(
    position: &Position,
    mut visit: impl FnMut(InterpFrame) -> ControlFlow<()>,
) -> ControlFlow<(), *mut u64> {
    // SAFETY: the caller's promise: the frames down to the base are intact, and their instances and functions live.
    unsafe {
        let Position { body, scope, mut fp, .. } = *position;
        let at = position.pc.offset_from_unsigned((*scope).bytes) as u32;
        let pc = if position.sp.is_null() { Pc::Before(at) } else { Pc::At(at) };
        visit(InterpFrame { pc, fp, body, scope })?;
        if fp.is_null() {
            return ControlFlow::Continue(fp);
        }
        let mut caller: Header = *header(fp, body, (*body).words());
        while !caller.is_base() {
            fp = caller.fp();
            visit(InterpFrame { pc: Pc::Before(caller.pc), fp, body: caller.body, scope: caller.scope })?;
            caller = *header(fp, caller.body, (*caller.body).words());
        }
        ControlFlow::Continue(fp)
    }
}

impl WasmBacktrace {
    /// Adds the frames of the guest of `store`.
    ///
    /// # Safety
    /// As for [`segments`].
    pub(crate) unsafe fn extend(&mut self, store: *mut StoreRecord, limit: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            walk(store, |Frame { module, func, pc, .. }| {
                self.push(module, func, limit, pc);
                ControlFlow::Continue(())
            });
        }
    }
}
