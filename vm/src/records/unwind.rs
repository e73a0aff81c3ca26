//! Search for the handler of an exception.
//!
//! The search walks the stack and changes nothing. It ends at a handler, or at the Rust code that called the guest: the embedder, or
//! a host function. Then the frames inside the handler's are left as a trap leaves them, by a [`Failure`] that every engine passes
//! on, and the frame's engine continues at the handler when it receives its own [`Landing`]. Without a handler the exception is an
//! error like any other.
//!
//! Only [`Failure::Throw`] is searched for: no handler sees a trap, or another error of the host.

use crate::records::backtrace::WasmBacktrace;
use crate::records::catches::Catch;
use crate::records::collect::collect_before_throw;
use crate::records::config::Config;
use crate::records::deadline::deadline_reached_in_search;
use crate::records::engines::NativeSite;
use crate::records::error::Error;
use crate::records::exceptions::{CatchingFrame, Clause, ExnRecord, InFlight, Landing, Place, Site, TagRecord};
use crate::records::failure::Failure;
use crate::records::instance::{InstanceRecord, instance_of};
use crate::records::module::ModuleRecord;
use crate::records::native_search::{NativeSearch, Unwound};
use crate::records::pc::Pc;
use crate::records::stack::{read_slot, write_slot};
use crate::records::store::{StoreRecord, charge};
use crate::records::symbols::FrameSymbol;
use crate::records::thrown::ThrownException;
use crate::records::walk::{InterpFrame, Segment, segments, walk_activation};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::ptr;
use std::sync::atomic::Ordering;
use weir_bytecode::names::{Demangled, Plain};
use weir_bytecode::sidetable::{BranchEntry, Handler, TryRegion, region_at};
use weir_bytecode::types::ValType;
use weir_bytecode::{FuncBody, Opcode};
use weir_contract::{FRAME_HEADER, InstanceCtx, code};

/// The deadline is checked after this many steps, each of which takes some nanoseconds: a frame that is left, a clause that is tested, or
/// a region without a clause that catches.
const STEPS_PER_POLL: u64 = 1024;

/// Returns the number of steps after which the deadline is checked first.
#[inline]
pub(crate) fn poll_after(config: &Config) -> u64 {
    if config.polls() { STEPS_PER_POLL } else { u64::MAX }
}

/// Returns the least cost that the fuel of a live store does not cover.
///
/// # Safety
/// The store is live.
#[inline]
pub(crate) unsafe fn uncovered(store: *const StoreRecord) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        match (*store).engine.config().consume_fuel {
            true => u64::try_from((*store).ctx.fuel.saturating_add(1)).unwrap_or(0),
            false => u64::MAX,
        }
    }
}

impl Failure {
    /// Takes the backtrace, unless the failure already has one: the error of a host function that called the guest does. Decides
    /// what becomes of an exception that has just been thrown.
    ///
    /// # Safety
    /// As for [`segments`].
    #[cold]
    pub unsafe fn capture(&mut self, store: *mut StoreRecord) {
        // SAFETY: the caller's promise.
        unsafe {
            if let Failure::Throw(error) = self {
                *self = match find(store) {
                    Ok(true) => Failure::Thrown,
                    Ok(false) => uncaught(store, error.take()),
                    Err(other) => other,
                };
            }
            let limit = (*store).engine.config().max_backtrace;
            if let Some(frames) = self.missing_backtrace(limit) {
                frames.extend(store, limit);
            }
        }
    }
}

/// Finds the handler of the exception that is being thrown, stores its landing, and returns whether there is one.
///
/// # Errors
/// As for [`Search::end`].
///
/// # Safety
/// As for [`segments`].
pub(crate) unsafe fn find(store: *mut StoreRecord) -> Result<bool, Failure> {
    // SAFETY: the caller's promise.
    unsafe {
        let (mut search, mut progress) = Search::begin(store);
        search.in_segments(&mut progress);
        search.end(&progress)
    }
}

/// A search for the handler of the exception that is being thrown.
pub(crate) struct Search {
    store: *mut StoreRecord,
    tag: *const TagRecord,
    /// The cost at which the deadline is checked next.
    poll_at: u64,
    /// The handler; null if there is none.
    handler: *const Handler,
    /// Why the guest ends instead.
    stopped: Option<Failure>,
}

impl Search {
    /// Begins a search. May collect before.
    ///
    /// # Safety
    /// The store is live, and an exception is in flight.
    #[inline]
    pub unsafe fn begin(store: *mut StoreRecord) -> (Search, NativeSearch) {
        // SAFETY: the caller's promise.
        unsafe { collect_before_throw(store) };
        // SAFETY: as above.
        let (tag, poll_at) = unsafe { ((*store).in_flight.tag, poll_after((*store).engine.config())) };
        let mut progress = NativeSearch { cost: 0, check_at: 0, freed: 0, unwound: Unwound::default() };
        let mut search = Search { store, tag, poll_at, handler: ptr::null(), stopped: None };
        // SAFETY: as above.
        unsafe {
            progress.check_at = search.next_check();
            if (*store).engine.config().backtrace_on_throw && (*store).in_flight.object.is_null() {
                search.stopped = add_backtrace(store).err();
            }
        }
        (search, progress)
    }

    /// Looks for a handler in the segments of the stack.
    ///
    /// # Safety
    /// As for [`segments`]. The callback at the deadline may use the store: its walk and this one read links of frames that are still
    /// there.
    pub unsafe fn in_segments(&mut self, progress: &mut NativeSearch) {
        // SAFETY: the caller's promise.
        unsafe {
            let store = self.store;
            segments(store, (*store).outer_frames, |segment| self.in_segment(segment, progress));
        }
    }

    unsafe fn in_segment(&mut self, segment: Segment<'_>, progress: &mut NativeSearch) -> ControlFlow<()> {
        // SAFETY: as for `in_segments`.
        unsafe {
            match segment {
                Segment::Native { exit_fp, boundary } => {
                    let engines = &*(*self.store).engine.record().engines;
                    let mut visit = |site, progress: &mut NativeSearch| self.in_native_code(boundary, site, progress);
                    let flow = engines.search_native(exit_fp, progress, &mut visit);
                    progress.unwound.leave_segment();
                    flow
                }
                Segment::Activation { activation, position } => {
                    walk_activation(position, |frame| self.in_interpreter(activation, frame, progress)).map_continue(|_| ())
                }
                Segment::Immediate { position, exit_fp } => {
                    // No frame there has a handler, so none needs an activation.
                    let base = walk_activation(position, |frame| self.in_interpreter(ptr::null(), frame, progress))?;
                    progress.unwound.leave_immediate(exit_fp, base);
                    ControlFlow::Continue(())
                }
            }
        }
    }

    /// Ends the search, and returns whether there is a handler. A throw costs one unit of fuel for each clause that is tested, and for
    /// each frame that is left.
    ///
    /// # Errors
    /// The fuel is used up; or the deadline is reached, and the embedder ends the guest.
    ///
    /// # Safety
    /// As for [`segments`].
    #[inline]
    pub unsafe fn end(self, progress: &NativeSearch) -> Result<bool, Failure> {
        let Search { store, handler, stopped, .. } = self;
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(failure) = stopped {
                (*store).in_flight = InFlight::NONE;
                return Err(failure);
            }
            if (*store).engine.config().consume_fuel
                && let Err(trap) = charge(&mut (*store).ctx.fuel, progress.fuel())
            {
                (*store).in_flight = InFlight::NONE;
                return Err(trap.into());
            }
        }
        Ok(!handler.is_null())
    }

    /// Returns the cost at which the fuel is exceeded or the deadline is checked, whichever is first.
    ///
    /// # Safety
    /// The store is live.
    #[inline]
    unsafe fn next_check(&self) -> u64 {
        // SAFETY: the caller's promise.
        self.poll_at.min(unsafe { uncovered(self.store) })
    }

    /// Checks the fuel and the deadline, if it is time.
    ///
    /// # Safety
    /// As for [`segments`].
    #[inline]
    unsafe fn check(&mut self, progress: &mut NativeSearch) -> ControlFlow<()> {
        if progress.cost < progress.check_at {
            return ControlFlow::Continue(());
        }
        // SAFETY: the caller's promise.
        unsafe {
            self.stopped = self.checked(progress).err();
            // The callback at the deadline may have changed the fuel.
            progress.check_at = self.next_check();
        }
        if self.stopped.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Checks the fuel, and the deadline if enough steps have been taken.
    ///
    /// # Errors
    /// As for [`Search::end`].
    ///
    /// # Safety
    /// As for [`segments`].
    #[cold]
    unsafe fn checked(&mut self, progress: &NativeSearch) -> Result<(), Failure> {
        // SAFETY: the caller's promise.
        unsafe {
            if progress.cost >= uncovered(self.store) {
                charge(&mut (*self.store).ctx.fuel, progress.fuel())?;
            }
            if progress.cost >= self.poll_at {
                self.poll_at = progress.cost + STEPS_PER_POLL;
                poll(self.store)?;
            }
        }
        Ok(())
    }

    /// Returns the handler at `pc` for the exception, with its region. Counts the clauses tested. Breaks if the search is stopped.
    ///
    /// # Safety
    /// As for [`segments`]. The function is of the instance's module, and the instance is live.
    #[inline]
    unsafe fn handler<'s>(
        &mut self,
        source: &'s FuncBody,
        pc: u32,
        instance: &InstanceRecord,
        progress: &mut NativeSearch,
    ) -> ControlFlow<(), Option<(&'s TryRegion, &'s Handler)>> {
        let mut next = region_at(&source.regions, pc);
        while let Some(region) = next {
            for handler in &source.handlers[region.first as usize..][..region.count as usize] {
                progress.cost += 1;
                if handler.tag.is_none_or(|index| instance.tag(index) == self.tag) {
                    return ControlFlow::Continue(Some((region, handler)));
                }
                // SAFETY: the caller's promise.
                unsafe { self.check(progress)? };
            }
            // A region costs no fuel, and may have no clause.
            self.poll_at -= 1;
            progress.check_at = progress.check_at.saturating_sub(1);
            // SAFETY: as above.
            unsafe { self.check(progress)? };
            next = source.regions.get(region.next as usize);
        }
        ControlFlow::Continue(None)
    }

    /// Looks for a handler in a frame of the interpreter. Otherwise the frame is left.
    ///
    /// # Safety
    /// There is such a frame in the activation, and it is that of a live instance.
    #[inline]
    unsafe fn in_interpreter(
        &mut self,
        activation: *const (),
        frame: InterpFrame,
        progress: &mut NativeSearch,
    ) -> ControlFlow<()> {
        let InterpFrame { pc, fp, body, scope } = frame;
        // SAFETY: the caller's promise.
        unsafe {
            self.check(progress)?;
            let instance = || instance_of((*scope).ctx);
            if let Pc::At(pc) = pc
                && is_tail_call(instance().module.bytecode().bytes.part(pc as usize..pc as usize + 1)[0])
            {
                // The callee, which is a host function, takes the frame's place.
                return ControlFlow::Continue(());
            }
            // The evaluator has no body of its own.
            let source = (*body).source.as_ref().or_else(|| instance().module.bytecode().body((*body).func));
            let at = match pc {
                Pc::At(pc) => pc,
                // In the last byte of the call.
                Pc::Before(pc) => pc - 1,
            };
            let found = match source.filter(|source| !source.regions.is_empty()) {
                Some(source) => self.handler(source, at, instance(), progress)?.map(|found| (source, found)),
                None => None,
            };
            let Some((source, (region, handler))) = found else {
                progress.cost += 1;
                return ControlFlow::Continue(());
            };
            debug_assert!(!activation.is_null(), "immediate activations have left the assembly before a frame has a handler");
            let place = Place::Interp { activation, body, scope };
            (*self.store).landing = Some(Landing { place, fp, clause: Clause { source, region, handler } });
            self.handler = handler;
            ControlFlow::Break(())
        }
    }

    /// Looks for a handler in a frame of native code inside this boundary. The caller leaves the frame if there is none.
    ///
    /// # Safety
    /// There is such a frame on this thread's stack.
    #[inline]
    pub unsafe fn in_native_code(&mut self, boundary: usize, site: NativeSite, progress: &mut NativeSearch) -> ControlFlow<()> {
        // SAFETY: the caller's promise: the code is there while its frame is, and so is its module. If the code has landings, the frame
        // is as the contract says.
        unsafe {
            self.check(progress)?;
            let landings = &*site.landings;
            let module = &*(site.module as *const ModuleRecord);
            let Some(source) = (!landings.is_empty()).then(|| module.body(site.func)).flatten() else {
                return ControlFlow::Continue(());
            };
            let instance = site.word(site.layout.instance).cast::<*mut InstanceCtx>().read();
            let before = progress.cost;
            let found = self.handler(source, site.pc, instance_of(instance), progress)?;
            let return_address = site.code + site.call as usize;
            let tested = progress.cost - before;
            let mut catch = Catch { return_address, instance, tag: self.tag, layout: site.layout, tested, landing: None };
            let remember = |catch| {
                if !site.is_inlined {
                    (*self.store).catches.insert(progress.freed, catch);
                }
            };
            let Some((region, handler)) = found else {
                remember(catch);
                return ControlFlow::Continue(());
            };
            let Some(offset) = code::Landing::find(landings, handler.entry, site.call) else {
                return ControlFlow::Continue(());
            };
            let (target, clause) = (site.code + offset as usize, Clause { source, region, handler });
            catch.landing = Some((target, clause));
            remember(catch);
            let (frame, fp) = CatchingFrame::new(site.fp, &site.layout, target, progress.unwound);
            (*self.store).landing = Some(Landing { place: Place::Native { boundary, frame }, fp, clause });
            self.handler = handler;
            ControlFlow::Break(())
        }
    }
}

/// Makes the object of the exception that is being thrown, with a backtrace of the throw.
///
/// # Errors
/// The store's limiter refuses it.
///
/// # Safety
/// As for [`segments`].
#[cold]
unsafe fn add_backtrace(store: *mut StoreRecord) -> Result<(), Failure> {
    // SAFETY: the caller's promise. Nothing is collected meanwhile.
    unsafe {
        let object = object(store)?;
        let mut backtrace = WasmBacktrace::default();
        backtrace.extend(store, (*store).engine.config().max_backtrace);
        let reference = (*store).heap.add_value(Box::new(backtrace)).map_err(|(error, _)| Failure::Host(error))?;
        (*object).set_backtrace(reference);
        Ok(())
    }
}

/// Calls the embedder if the deadline is reached.
///
/// # Errors
/// The embedder ends the guest.
///
/// # Safety
/// The store is live, and its guest throws an exception.
unsafe fn poll(store: *mut StoreRecord) -> Result<(), Failure> {
    // SAFETY: the caller's promise, and the epoch lives as long as its engine.
    unsafe {
        if (*(*store).ctx.epoch).load(Ordering::Relaxed) < (*store).ctx.deadline {
            return Ok(());
        }
        // The callback may call the guest, which uses the overflow slots.
        object(store)?;
        let in_flight = (*store).in_flight;
        let polled = deadline_reached_in_search(store);
        (*store).in_flight = in_flight;
        polled
    }
}

fn is_tail_call(op: u8) -> bool {
    [Opcode::ReturnCall, Opcode::ReturnCallIndirect, Opcode::ReturnCallRef]
        .contains(&Opcode::from_code(op.into()).unwrap_or(Opcode::Nop))
}

/// Writes the operands of a handler's label, in a frame with local 0 at `fp`: the payload, and the reference if the handler passes it on,
/// which it also stores for `rethrow`. Returns the address after them. The exception is then no longer in flight.
///
/// # Errors
/// The handler needs an object, and the store's limiter refuses it.
///
/// # Safety
/// The exception of the live store is thrown to this handler, whose frame is there; the frames inside are gone or can be.
pub(crate) unsafe fn write_operands(store: *mut StoreRecord, fp: *mut u64, clause: Clause) -> Result<*mut u64, Failure> {
    // SAFETY: the caller's promise. The label has the payload and the reference for its operands, so they fit in the frame.
    unsafe {
        let (source, region, handler) = (&*clause.source, &*clause.region, &*clause.handler);
        let words = source.words();
        let needs_object = handler.needs_object();
        let reference = if needs_object { reference(store)? } else { 0 };
        let InFlight { tag, object, .. } = (*store).in_flight;
        let BranchEntry { keep, drop, .. } = source.branches[handler.entry as usize];
        let operands = fp.add(source.locals.len() * words + FRAME_HEADER as usize);
        // Taking the branch would move the operands that are written here down.
        let first = operands.add((region.height - drop) as usize * words);
        let mut sp = first;
        if handler.tag.is_some() {
            let (count, from) = ((*tag).fields(), (*tag).words());
            let payload = if object.is_null() { (*(*store).stack).ctx.overflow } else { ExnRecord::payload(object) };
            for i in 0..count {
                write_slot(first.add(i * words), words, read_slot(payload.add(i * from), from));
            }
            sp = first.add(count * words);
        }
        if handler.reference {
            write_slot(sp, words, reference.into());
            sp = sp.add(words);
        }
        if let Some(local) = handler.saved {
            write_slot(fp.add(local as usize * words), words, reference.into());
        }
        debug_assert_eq!(sp, first.add(keep as usize * words), "a label takes what its clause passes");
        (*store).in_flight = InFlight::NONE;
        Ok(sp)
    }
}

/// Writes the payload, and the reference if the handler needs it, to the overflow slots, from which optimised code reads them. The
/// exception is then no longer in flight.
///
/// # Errors
/// The handler needs an object, and the store's limiter refuses it.
///
/// # Safety
/// As for [`write_operands`].
#[inline]
pub(crate) unsafe fn write_overflow(store: *mut StoreRecord, handler: &Handler) -> Result<(), Failure> {
    // SAFETY: the caller's promise. The slots have room for the parameters of any function, and more.
    unsafe {
        let needs_object = handler.needs_object();
        let reference = if needs_object { reference(store)? } else { 0 };
        // Without an object the payload is there.
        let InFlight { tag, object, .. } = (*store).in_flight;
        let overflow = (*(*store).stack).ctx.overflow;
        if needs_object || !object.is_null() {
            let mut words = 0;
            if handler.tag.is_some() {
                words = (*tag).fields() * (*tag).words();
                ptr::copy_nonoverlapping(ExnRecord::payload(object), overflow, words);
            }
            if needs_object {
                overflow.add(words).write(reference);
            }
        }
        (*store).in_flight = InFlight::NONE;
        Ok(())
    }
}

/// Returns the object of the exception that is being thrown; makes it if there is none.
///
/// # Errors
/// The store's limiter refuses it.
///
/// # Safety
/// The store is live, and its guest throws an exception.
#[inline]
pub(crate) unsafe fn object(store: *mut StoreRecord) -> Result<*mut ExnRecord, Failure> {
    // SAFETY: the caller's promise: without an object the payload is in the overflow slots.
    unsafe {
        let InFlight { tag, object, site } = (*store).in_flight;
        if !object.is_null() {
            return Ok(object);
        }
        make_object(store, tag, site)
    }
}

/// Makes the object of the exception that is being thrown.
///
/// # Errors
/// # Safety
/// As for [`object`].
#[inline(never)]
unsafe fn make_object(store: *mut StoreRecord, tag: *const TagRecord, site: Site) -> Result<*mut ExnRecord, Failure> {
    // SAFETY: the caller's promise.
    unsafe {
        match (*store).add_exception(tag, site, (*(*store).stack).ctx.overflow) {
            Ok(object) => {
                (*store).in_flight.object = object;
                Ok(object)
            }
            Err(error) => {
                // The payload is not one any more.
                (*store).in_flight = InFlight::NONE;
                Err(Failure::Host(error))
            }
        }
    }
}

/// Returns a reference to [`object`].
///
/// # Errors
/// # Safety
/// As there.
#[inline]
unsafe fn reference(store: *mut StoreRecord) -> Result<u64, Failure> {
    // SAFETY: the caller's promise.
    unsafe { object(store).map(|object| (*store).heap.reference(object).into()) }
}

/// Makes the exception that is being thrown the pending one. Returns the failure for `error`, the host function's with which it was
/// thrown, or for a new one.
///
/// # Safety
/// As for [`object`].
pub(crate) unsafe fn uncaught(store: *mut StoreRecord, error: Option<Error>) -> Failure {
    // SAFETY: the caller's promise.
    unsafe {
        match object(store) {
            Ok(object) => {
                (*store).pending = object;
                (*store).in_flight = InFlight::NONE;
                Failure::Host(error.unwrap_or_else(|| {
                    let backtrace = match (*object).backtrace() {
                        0 => None,
                        reference => (*store).heap.value(reference).downcast_ref::<WasmBacktrace>(),
                    };
                    Error::detailed(ThrownException, Some(describe(object)))
                        .with_backtrace(backtrace.cloned().unwrap_or_default())
                }))
            }
            Err(failure) => failure,
        }
    }
}

/// Describes an exception: its tag, its payload, and the place at which it was thrown.
///
/// # Safety
/// The object is one of a live store.
unsafe fn describe(object: *const ExnRecord) -> Box<str> {
    // SAFETY: the caller's promise: instances and tags live as long as the store.
    unsafe {
        let (site, tag) = ((*object).site(), &*(*object).tag());
        let mut text = String::from("uncaught exception");
        let thrower = (!site.instance.is_null()).then(|| instance_of(site.instance));
        let name = thrower.and_then(|instance| {
            let bytecode = instance.module.bytecode();
            let index = (0..bytecode.tags.len() as u32).find(|&index| instance.tag(index) == (*object).tag())?;
            Some(bytecode.tag_name(index))
        });
        if let Some(name) = name {
            let _ = write!(text, " {name}");
        }
        text.push('(');
        for (i, ty) in tag.ty.params.iter().enumerate() {
            let bits = read_slot(ExnRecord::payload(object).add(i * tag.words()), tag.words());
            let separator = if i == 0 { "" } else { ", " };
            let _ = match ty {
                ValType::I32 => write!(text, "{separator}{}", bits as i32),
                ValType::I64 => write!(text, "{separator}{}", bits as i64),
                ValType::F32 => write!(text, "{separator}{}", f32::from_bits(bits as u32)),
                ValType::F64 => write!(text, "{separator}{}", f64::from_bits(bits as u64)),
                ValType::V128 => write!(text, "{separator}{bits:#x}"),
                ValType::Ref(_) if bits as u64 == 0 => write!(text, "{separator}null"),
                ValType::Ref(_) => write!(text, "{separator}{ty}"),
            };
        }
        text.push(')');
        match thrower {
            Some(instance) => {
                let bytecode = instance.module.bytecode();
                let func = bytecode.func_at(site.pc).unwrap_or_default();
                let entry = instance.module.record().body(func).map_or(0, |body| body.entry);
                let symbols = instance.module.record().symbols_at(func, site.pc);
                text.push_str(" thrown by ");
                // The place that follows is that of the innermost function.
                if let [symbol, _, ..] = &symbols[..]
                    && let Some(inlined) = symbol.name()
                {
                    let _ = write!(text, "{:#}, inlined in ", Demangled(inlined));
                }
                let _ = match bytecode.func_name(func) {
                    Some(name) => write!(text, "{:#}", Demangled(name)),
                    None => write!(text, "function {func}"),
                };
                let _ = write!(text, " at offset {:#x}, in the module {:#x}", site.pc.saturating_sub(entry), site.pc);
                if let Some(place) = symbols.iter().find_map(FrameSymbol::place) {
                    let _ = write!(text, ", {}", Plain(&place.to_string()));
                }
            }
            None => text.push_str(" thrown by the host"),
        }
        text.into()
    }
}

/// Makes an exception object of the store the one that is being thrown, from this place if it has none.
///
/// # Safety
/// The reference is one of the live store to an exception.
pub(crate) unsafe fn throw_object(store: *mut StoreRecord, reference: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        let object = (*store).heap.exception(reference as u32);
        let site: Site = (*object).site();
        (*store).in_flight = InFlight { tag: (*object).tag(), object, site };
    }
}
