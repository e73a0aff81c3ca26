//! Search for the handler of an exception.
//!
//! The search walks the stack and changes nothing. It ends at a handler, or at the Rust code that called the guest: the embedder, or
//! a host function. Then the frames inside the handler's are left as a trap leaves them, by a [`Failure`] that every engine passes
//! on, and the frame's engine continues at the handler when it receives its own [`Landing`]. Without a handler the exception is an
//! error like any other.
//!
//! Only [`Failure::Throw`] is searched for: no handler sees a trap, or another error of the host.

use crate::records::deadline::deadline_reached;
use crate::records::error::Error;
use crate::records::exceptions::{ExnRecord, InFlight, Landing, Place, Site, TagRecord};
use crate::records::failure::Failure;
use crate::records::instance::{InstanceRecord, instance_of};
use crate::records::stack::{read_slot, write_slot};
use crate::records::store::{StoreRecord, charge};
use crate::records::walk::{Frame, InterpFrame, NativeFrame, Pc, walk};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::ptr;
use std::sync::atomic::Ordering;
use weir_bytecode::sidetable::{BranchEntry, Handler, TryRegion, region_at};
use weir_bytecode::types::ValType;
use weir_bytecode::{FuncBody, Opcode};
use weir_contract::{FRAME_HEADER, InstanceCtx, LANDING_FP, code};

/// The deadline is checked after this many frames. A frame takes some tens of nanoseconds.
const FRAMES_PER_POLL: u64 = 1024;

impl Failure {
    /// Takes the backtrace, unless the failure already has one: the error of a host function that called the guest does. Decides
    /// what becomes of an exception that has just been thrown.
    ///
    /// # Safety
    /// As for [`walk`].
    #[cold]
    pub unsafe fn capture(&mut self, store: *mut StoreRecord) {
        // SAFETY: the caller's promise.
        unsafe {
            if let Failure::Throw(error) = self {
                *self = match find(store) {
                    Ok(Some(landing)) => {
                        (*store).landing = Some(landing);
                        Failure::Thrown
                    }
                    Ok(None) => uncaught(store, error.take()),
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

/// Finds the handler of the exception that is being thrown. A throw costs one unit of fuel for each clause that is tested, and for
/// each frame that is left.
///
/// # Errors
/// The fuel is used up; or the deadline is reached, and the embedder ends the guest.
///
/// # Safety
/// As for [`walk`].
unsafe fn find(store: *mut StoreRecord) -> Result<Option<Landing>, Failure> {
    // SAFETY: the caller's promise. The callback at the deadline may use the store: its walk and this one read links of frames that
    // are still there.
    unsafe {
        let tag = (*store).in_flight.tag;
        let polls = (*store).engine.config().epoch_interruption;
        let (mut cost, mut frames, mut found, mut stopped) = (0u64, 0u64, None, None);
        walk(store, (*store).outer_frames, |frame| {
            frames += 1;
            if let Frame::Native(frame) = &frame
                && (*store).in_flight.site.pc == Site::UNKNOWN
            {
                (*store).in_flight.site.pc = frame.pc;
            }
            if polls && frames % FRAMES_PER_POLL == 0 && is_due(store) {
                // The callback may call the guest, which uses the overflow slots.
                let polled = object(store).map(drop).and_then(|()| {
                    let in_flight = (*store).in_flight;
                    let polled = deadline_reached(store);
                    (*store).in_flight = in_flight;
                    polled
                });
                if let Err(failure) = polled {
                    stopped = Some(failure);
                    return ControlFlow::Break(());
                }
            }
            found = match frame {
                Frame::Interp(frame) if frame.is_replaced() => return ControlFlow::Continue(()),
                Frame::Interp(frame) => in_interpreter(&frame, tag, &mut cost),
                Frame::Native(frame) => in_native_code(&frame, tag, &mut cost),
            };
            if found.is_some() {
                return ControlFlow::Break(());
            }
            cost += 1;
            ControlFlow::Continue(())
        });
        if let Some(failure) = stopped {
            return Err(failure);
        }
        if (*store).engine.config().consume_fuel {
            charge(&mut (*store).ctx.fuel, i64::try_from(cost).unwrap_or(i64::MAX))?;
        }
        Ok(found)
    }
}

unsafe fn is_due(store: *mut StoreRecord) -> bool {
    // SAFETY: the caller's store is live, and the epoch lives as long as its engine.
    unsafe { (*(*store).ctx.epoch).load(Ordering::Relaxed) >= (*store).ctx.deadline }
}

/// Returns the handler of exceptions with this tag in a frame of the interpreter.
///
/// # Safety
/// The frame is that of a live instance.
unsafe fn in_interpreter(frame: &InterpFrame<'_>, tag: *const TagRecord, cost: &mut u64) -> Option<Landing> {
    let InterpFrame { module, func, activation, fp, body, scope, .. } = *frame;
    let source = module.bytecode().body(func)?;
    let at = match frame.pc {
        Pc::At(pc) => pc,
        // In the last byte of the call.
        Pc::Before(pc) => pc - 1,
    };
    // SAFETY: the caller's promise.
    let (region, handler) = unsafe { handler(source, at, instance_of((*scope).ctx), tag, cost)? };
    debug_assert!(!activation.is_null(), "immediate activations have left the assembly before a frame has a handler");
    Some(Landing { place: Place::Interp { activation, body, scope }, fp, source, region, handler })
}

/// Returns the handler of exceptions with this tag in a frame of native code.
///
/// # Safety
/// There is such a frame on this thread's stack.
unsafe fn in_native_code(frame: &NativeFrame<'_>, tag: *const TagRecord, cost: &mut u64) -> Option<Landing> {
    let NativeFrame { module, func, pc, boundary, site, unwound } = *frame;
    // SAFETY: the caller's promise: the code is there while its frame is.
    let landings = unsafe { &*site.landings };
    if landings.is_empty() {
        return None;
    }
    let source = module.bytecode().body(func)?;
    // SAFETY: the caller's promise. The code has landings, so the frame is as the contract says.
    unsafe {
        let instance = site.word(site.layout.instance).cast::<*mut InstanceCtx>().read();
        let (region, handler) = handler(source, pc, instance_of(instance), tag, cost)?;
        let offset = code::Landing::find(landings, handler.entry, site.call)?;
        let (mut fp, mut value_sp) = (ptr::null_mut(), None);
        if site.layout.value_sp != 0 {
            fp = site.word((-LANDING_FP / 8) as u16).cast::<*mut u64>().read();
            value_sp = Some(site.word(site.layout.value_sp).cast::<*mut u64>().read());
        }
        let (target, end) = (site.code + offset as usize, site.fp - site.layout.bytes as usize);
        let place = Place::Native { boundary, frame: site.fp, end, target, instance, value_sp, unwound };
        Some(Landing { place, fp, source, region, handler })
    }
}

/// Returns the handler of exceptions with this tag at `pc`, with its region. Adds the number of clauses tested to `cost`.
///
/// # Safety
/// The function is of the instance's module, and the instance is live.
unsafe fn handler(
    source: &FuncBody,
    pc: u32,
    instance: &InstanceRecord,
    tag: *const TagRecord,
    cost: &mut u64,
) -> Option<(TryRegion, Handler)> {
    let mut region = region_at(&source.regions, pc)?;
    loop {
        for &handler in &source.handlers[region.first as usize..][..region.count as usize] {
            *cost += 1;
            if handler.tag.is_none_or(|index| instance.tag(index) == tag) {
                return Some((*region, handler));
            }
        }
        region = source.regions.get(region.next as usize)?;
    }
}

/// Writes the operands of a handler's label: the payload, and the reference if the handler passes it on, which it also stores for
/// `rethrow`. Returns the address after them. The exception is then no longer in flight.
///
/// # Errors
/// The handler needs an object, and the store's limiter refuses it.
///
/// # Safety
/// The exception of the live store is thrown to this handler, whose frame is there; the frames inside are gone or can be.
pub(crate) unsafe fn write_operands(store: *mut StoreRecord, landing: &Landing) -> Result<*mut u64, Failure> {
    // SAFETY: the caller's promise. The label has the payload and the reference for its operands, so they fit in the frame.
    unsafe {
        let Landing { fp, source, region, handler, .. } = *landing;
        let source: &FuncBody = &*source;
        let words = source.words();
        let needs_object = handler.reference || handler.saved.is_some();
        let reference = if needs_object { object(store)? as u64 } else { 0 };
        let InFlight { tag, object, .. } = (*store).in_flight;
        let BranchEntry { keep, drop, .. } = source.branches[handler.entry as usize];
        let operands = fp.add(source.locals.len() * words + FRAME_HEADER as usize);
        // Taking the branch would move the operands that are written here down.
        let first = operands.add((region.height - drop) as usize * words);
        let mut sp = first;
        if handler.tag.is_some() {
            let (count, from) = ((*tag).fields(), (*tag).words());
            let payload = if object.is_null() { (*(*store).stack).ctx.overflow } else { (*object).payload().as_ptr().cast_mut() };
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
pub(crate) unsafe fn write_overflow(store: *mut StoreRecord, handler: Handler) -> Result<(), Failure> {
    // SAFETY: the caller's promise. The slots have room for the parameters of any function, and more.
    unsafe {
        let needs_object = handler.reference || handler.saved.is_some();
        let reference = if needs_object { object(store)? as u64 } else { 0 };
        let InFlight { tag, object, .. } = (*store).in_flight;
        let overflow = (*(*store).stack).ctx.overflow;
        let words = if handler.tag.is_some() { (*tag).fields() * (*tag).words() } else { 0 };
        if !object.is_null() {
            ptr::copy_nonoverlapping((*object).payload().as_ptr(), overflow, words);
        }
        if needs_object {
            overflow.add(words).write(reference);
        }
        (*store).in_flight = InFlight::NONE;
        Ok(())
    }
}

impl InterpFrame<'_> {
    /// Returns whether the frame is at a tail call, whose callee takes its place. Only host functions are called before it is gone.
    fn is_replaced(&self) -> bool {
        let Pc::At(pc) = self.pc else { return false };
        let op = self.module.bytecode().bytes[pc as usize];
        [Opcode::ReturnCall, Opcode::ReturnCallIndirect, Opcode::ReturnCallRef]
            .contains(&Opcode::from_code(op.into()).unwrap_or(Opcode::Nop))
    }
}

/// Returns the object of the exception that is being thrown; makes it if there is none.
///
/// # Errors
/// The store's limiter refuses it.
///
/// # Safety
/// The store is live, and its guest throws an exception.
pub(crate) unsafe fn object(store: *mut StoreRecord) -> Result<*mut ExnRecord, Failure> {
    // SAFETY: the caller's promise: without an object the payload is in the overflow slots.
    unsafe {
        let InFlight { tag, object, site } = (*store).in_flight;
        if !object.is_null() {
            return Ok(object);
        }
        let record = ExnRecord::new(tag, site, (*(*store).stack).ctx.overflow);
        let object = (*store).add_exception(record).map_err(Failure::Host)?;
        (*store).in_flight.object = object;
        Ok(object)
    }
}

/// Makes the exception that is being thrown the pending one. Returns the failure for `error`, the host function's with which it was
/// thrown, or for a new one.
///
/// # Safety
/// As for [`object`].
unsafe fn uncaught(store: *mut StoreRecord, error: Option<Error>) -> Failure {
    // SAFETY: the caller's promise.
    unsafe {
        match object(store) {
            Ok(object) => {
                (*store).pending = object;
                Failure::Host(error.unwrap_or_else(|| Error::thrown(describe(&*object))))
            }
            Err(failure) => failure,
        }
    }
}

/// Describes an exception: its tag, its payload, and the place at which it was thrown.
///
/// # Safety
/// The object is one of a live store.
unsafe fn describe(object: &ExnRecord) -> Box<str> {
    // SAFETY: the caller's promise: instances and tags live as long as the store.
    unsafe {
        let (site, tag) = (object.site(), &*object.tag());
        let mut text = String::from("uncaught exception");
        let thrower = (!site.instance.is_null()).then(|| instance_of(site.instance));
        let name = thrower.and_then(|instance| {
            let bytecode = instance.module.bytecode();
            let index = (0..bytecode.tags.len() as u32).find(|&index| instance.tag(index) == object.tag())?;
            Some(bytecode.tag_name(index))
        });
        if let Some(name) = name {
            let _ = write!(text, " {name}");
        }
        text.push('(');
        for (i, ty) in tag.ty.params.iter().enumerate() {
            let bits = read_slot(object.payload()[i * tag.words()..].as_ptr(), tag.words());
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
                let entry = bytecode.body(func).map_or(0, |body| body.entry);
                let _ = match bytecode.func_name(func) {
                    Some(name) => write!(text, " thrown by {name}"),
                    None => write!(text, " thrown by function {func}"),
                };
                let _ = write!(text, " at offset {:#x}, in the module {:#x}", site.pc.saturating_sub(entry), site.pc);
            }
            None => text.push_str(" thrown by the host"),
        }
        text.into()
    }
}

/// Makes an exception object of the store the one that is being thrown, from this place if it has none.
///
/// # Safety
/// The object is one of the live store.
pub(crate) unsafe fn throw_object(store: *mut StoreRecord, object: *mut ExnRecord) {
    // SAFETY: the caller's promise.
    unsafe {
        let site: Site = (*object).site();
        (*store).in_flight = InFlight { tag: (*object).tag(), object, site };
    }
}
