//! Implements [`World`], the evaluator's view of an instance, on the records of the store.

use crate::exec::entry::dispatch;
use crate::records::bulk;
use crate::records::deadline::deadline_reached;
use crate::records::exceptions::{InFlight, Place, Site};
use crate::records::failure::Failure;
use crate::records::fault::Access;
use crate::records::instance::{InstanceRecord, instance_of};
use crate::records::stack::{read_slot, write_slot};
use crate::records::store::{charge, store_of, take_failure};
use crate::records::unwind::{throw_object, write_overflow};
use crate::records::walk::{EvaluatorActivation, Position};
use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering;
use weir_bytecode::{FuncType, Trap};
use weir_contract::{FuncRef, InstanceCtx, Status, call_words, slot_words};
use weir_jit::ir::{Callee, Caught, World};

/// A running instance.
///
/// While it exists, these conditions of all `unsafe` blocks here hold: the instance belongs to a live store whose guest
/// runs on this thread and that no other code uses; no reference is held into memories, tables or globals between two
/// calls of these functions; and the words from `value_sp` are free. Indices are those of validated code.
pub(super) struct Guest<'i> {
    instance: *mut InstanceCtx,
    record: &'i InstanceRecord,
    position: &'i Cell<Position>,
}

impl Guest<'_> {
    /// # Safety
    /// See the conditions of the type.
    pub unsafe fn new<'i>(instance: *mut InstanceCtx, position: &'i Cell<Position>) -> Guest<'i> {
        // SAFETY: the caller's promise.
        Guest { instance, record: unsafe { instance_of(instance) }, position }
    }

    /// Returns the function that a call refers to.
    pub fn find(&self, callee: Callee) -> Result<*const FuncRef, Trap> {
        match callee {
            Callee::Direct(func) => Ok(self.record.func_ref(func)),
            // SAFETY: see the type.
            Callee::Indirect { ty, table, index } => unsafe { self.record.scope.element(ty, table, index) },
            Callee::Reference { reference, .. } => Ok(reference as *const FuncRef),
        }
    }

    /// Returns the type of the callee.
    pub fn callee_type(&self, callee: Callee) -> &FuncType {
        let bytecode = self.record.module.bytecode();
        match callee {
            Callee::Direct(func) => bytecode.func_type(func),
            Callee::Indirect { ty, .. } | Callee::Reference { ty, .. } => &bytecode.types[ty as usize],
        }
    }

    /// Returns the result of growing. If a limiter refused with an error, the reason is in the store.
    fn grown(&self, old: Option<u64>) -> Result<Option<u64>, Failure> {
        match old {
            // SAFETY: see the type.
            None => Err(unsafe { take_failure(store_of(self.instance)) }),
            Some(old) => Ok((old != bulk::GROW_FAILED).then_some(old)),
        }
    }

    /// Returns the address of `len` bytes of a memory, all of which exist.
    fn bytes(&self, memory: u32, address: u64, offset: u64, len: u32) -> Result<*mut u8, Trap> {
        let access = Access { memory, offset, width: len.into() };
        let bytes = match address.checked_add(offset) {
            // SAFETY: see the type.
            Some(at) => unsafe { bulk::bytes(self.record.memory(memory), at, len.into()) },
            None => Err(Trap::MemoryOutOfBounds),
        };
        // SAFETY: see the type.
        bytes.inspect_err(|_| unsafe { access.record(self.record, address.wrapping_add(offset)) })
    }
}

impl World for Guest<'_> {
    type Failure = Failure;

    fn load(&mut self, memory: u32, address: u64, offset: u64, width: u32) -> Result<u128, Trap> {
        let from = self.bytes(memory, address, offset, width)?;
        let mut raw = [0; 16];
        // SAFETY: both have `width` bytes.
        unsafe { ptr::copy_nonoverlapping(from, raw.as_mut_ptr(), width as usize) };
        Ok(u128::from_le_bytes(raw))
    }

    fn store(&mut self, memory: u32, address: u64, offset: u64, width: u32, value: u128) -> Result<(), Trap> {
        let to = self.bytes(memory, address, offset, width)?;
        // SAFETY: both have `width` bytes.
        unsafe { ptr::copy_nonoverlapping(value.to_le_bytes().as_ptr(), to, width as usize) };
        Ok(())
    }

    fn memory_size(&mut self, memory: u32) -> u64 {
        // SAFETY: see the type.
        unsafe { (*self.record.memory(memory)).pages() }
    }

    fn memory_grow(&mut self, memory: u32, delta: u64) -> Result<Option<u64>, Failure> {
        // SAFETY: see the type.
        self.grown(unsafe { bulk::memory_grow(self.record, memory, delta) })
    }

    fn memory_fill(&mut self, memory: u32, to: u64, byte: u8, len: u64) -> Result<(), Trap> {
        // SAFETY: see the type.
        unsafe { bulk::memory_fill(self.record, memory, to, byte, len) }
    }

    fn memory_copy(&mut self, (dst, src): (u32, u32), to: u64, from: u64, len: u64) -> Result<(), Trap> {
        // SAFETY: see the type.
        unsafe { bulk::memory_copy(self.record, dst, src, to, from, len) }
    }

    fn memory_init(&mut self, memory: u32, segment: u32, to: u64, from: u32, len: u32) -> Result<(), Trap> {
        // SAFETY: see the type.
        unsafe { bulk::memory_init(self.record, memory, segment, to, from, len) }
    }

    fn data_drop(&mut self, segment: u32) {
        bulk::data_drop(self.record, segment);
    }

    fn ref_func(&mut self, func: u32) -> u64 {
        bulk::ref_func(self.record, func)
    }

    fn table_get(&mut self, table: u32, index: u64) -> Result<u64, Trap> {
        // SAFETY: see the type.
        unsafe { bulk::table_get(self.record, table, index) }
    }

    fn table_set(&mut self, table: u32, index: u64, reference: u64) -> Result<(), Trap> {
        // SAFETY: see the type.
        unsafe { bulk::table_set(self.record, table, index, reference) }
    }

    fn table_size(&mut self, table: u32) -> u64 {
        // SAFETY: see the type.
        unsafe { (*self.record.table(table)).ctx.len }
    }

    fn table_grow(&mut self, table: u32, reference: u64, delta: u64) -> Result<Option<u64>, Failure> {
        // SAFETY: see the type.
        self.grown(unsafe { bulk::table_grow(self.record, table, reference, delta) })
    }

    fn roots(&mut self, values: &[Cell<u128>], roots: &[u32]) {
        // SAFETY: see the type; the activation of this function is the innermost one.
        unsafe { (*(*(*self.instance).stack).activation.cast::<EvaluatorActivation>()).set_roots(values, roots) };
    }

    fn at(&mut self, pc: u32) {
        let position = self.position.get();
        // SAFETY: the scope is that of the instance.
        let pc = unsafe { (*position.scope).bytes.add(pc as usize) };
        self.position.set(Position { pc, ..position });
    }

    fn table_fill(&mut self, table: u32, index: u64, reference: u64, len: u64) -> Result<(), Trap> {
        // SAFETY: see the type.
        unsafe { bulk::table_fill(self.record, table, index, reference, len) }
    }

    fn table_copy(&mut self, (dst, src): (u32, u32), to: u64, from: u64, len: u64) -> Result<(), Trap> {
        // SAFETY: see the type.
        unsafe { bulk::table_copy(self.record, dst, src, to, from, len) }
    }

    fn table_init(&mut self, table: u32, segment: u32, to: u64, from: u32, len: u32) -> Result<(), Trap> {
        // SAFETY: see the type.
        unsafe { bulk::table_init(self.record, table, segment, to, from, len) }
    }

    fn elem_drop(&mut self, segment: u32) {
        bulk::elem_drop(self.record, segment);
    }

    fn global(&mut self, global: u32) -> u128 {
        // SAFETY: see the type. The slot of every global has two words.
        unsafe { read_slot(self.record.global(global), 2) }
    }

    fn set_global(&mut self, global: u32, value: u128) {
        // SAFETY: as above.
        unsafe { write_slot(self.record.global(global), 2, value) }
    }

    fn call(&mut self, callee: Callee, args: &[u128]) -> Result<Vec<u128>, Failure> {
        let func = self.find(callee)?;
        let ty = self.callee_type(callee);
        let (param_words, result_words) = (slot_words(&ty.params), slot_words(&ty.results));
        // SAFETY: see the type; from `value_sp` there is room for the arguments and results of any function.
        unsafe {
            let stack = (*self.instance).stack;
            let at = (*stack).value_sp;
            for (i, &arg) in args.iter().enumerate() {
                write_slot(at.add(i * param_words), param_words, arg);
            }
            let status = dispatch(func, at, call_words(ty));
            (*stack).value_sp = at;
            match status {
                Status::Return => Ok((0..ty.results.len()).map(|i| read_slot(at.add(i * result_words), result_words)).collect()),
                _ => Err(take_failure(store_of(self.instance))),
            }
        }
    }

    fn throw(&mut self, tag: u32, payload: &[u128]) -> Failure {
        // SAFETY: see the type; the overflow slots have room for the parameters of any function.
        unsafe {
            let tag = self.record.tag(tag);
            let (words, slots) = ((*tag).words(), (*(*self.instance).stack).overflow);
            for (i, &value) in payload.iter().enumerate() {
                write_slot(slots.add(i * words), words, value);
            }
            let position = self.position.get();
            let pc = position.pc.offset_from_unsigned((*position.scope).bytes) as u32;
            let site = Site { instance: self.instance, pc };
            (*store_of(self.instance)).in_flight = InFlight { tag, object: ptr::null_mut(), site };
        }
        Failure::Throw(None)
    }

    fn throw_ref(&mut self, reference: u64) -> Failure {
        // SAFETY: see the type; the reference is one to an exception.
        unsafe { throw_object(store_of(self.instance), reference) };
        Failure::Throw(None)
    }

    fn catch(&mut self, mut failure: Failure, handlers: &[Caught]) -> Result<(usize, Vec<u128>), Failure> {
        // SAFETY: see the type; the position is that of the call or throw.
        unsafe {
            let store = store_of(self.instance);
            failure.capture(store);
            let (Failure::Thrown, Some(landing)) = (&failure, (*store).landing) else { return Err(failure) };
            let own = (*(*self.instance).stack).activation;
            let found = handlers.iter().position(|handler| handler.entry == (*landing.clause.handler).entry);
            match (landing.place, found) {
                (Place::Interp { activation, .. }, Some(found)) if activation == own => {
                    let (tag, handler) = ((*store).in_flight.tag, &*landing.clause.handler);
                    write_overflow(store, handler)?;
                    let payload = if handler.tag.is_some() { (*tag).fields() } else { 0 };
                    let words = if handler.tag.is_some() { (*tag).words() } else { 1 };
                    let refers = usize::from(handler.reference || handler.saved.is_some());
                    let slots = (*(*self.instance).stack).overflow;
                    let value = |i: usize| read_slot(slots.add(i * words), if i < payload { words } else { 1 });
                    Ok((found, (0..payload + refers).map(value).collect()))
                }
                _ => Err(failure),
            }
        }
    }

    fn fuel(&mut self, cost: u64) -> Result<(), Trap> {
        // SAFETY: see the type.
        unsafe { charge(&mut (*(*self.instance).store).fuel, cost as i64) }
    }

    fn fuel_left(&mut self) -> i64 {
        // SAFETY: see the type.
        unsafe { (*(*self.instance).store).fuel }
    }

    fn epoch(&mut self) -> u64 {
        // SAFETY: see the type; the epoch lives as long as the store's engine.
        unsafe { (*(*(*self.instance).store).epoch).load(Ordering::Relaxed) }
    }

    fn deadline(&mut self) -> u64 {
        // SAFETY: see the type.
        unsafe { (*(*self.instance).store).deadline }
    }

    fn poll(&mut self) -> Result<(), Failure> {
        // SAFETY: see the type; the epoch lives as long as the store's engine.
        unsafe {
            let store = (*self.instance).store;
            let due = (*(*store).epoch).load(Ordering::Relaxed) >= (*store).deadline;
            if due { deadline_reached(store_of(self.instance)) } else { Ok(()) }
        }
    }
}
