//! Resumable calls: guests that stop after an error of a host function or when fuel has run out, and can continue.

use crate::api::calls::check_count;
use crate::api::store::{AsContext, AsContextMut};
use crate::api::typed::{FOREIGN_ARGUMENT, StoreAddress, TypedFunc, WasmParams, WasmResults};
use crate::exec::resumable::{Handle, Step, begin, resume};
use crate::records::fiber::Stop;
use crate::records::host::HostRecord;
use crate::records::stack::{read_slot, write_slot};
use crate::records::store::StoreRecord;
use crate::{Error, Func, Result, Val, ValType};
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr::NonNull;
use weir_bytecode::FuncType as PlainType;
use weir_contract::{call_words, slot_words};

/// What became of a call by [`Func::call_resumable`].
#[derive(Debug)]
pub enum ResumableCall {
    /// The function has returned. Its results have been written.
    Finished,
    /// A host function has returned an error, and the guest waits for its results.
    HostTrap(ResumableCallHostTrap),
    /// The guest waits for fuel.
    OutOfFuel(ResumableCallOutOfFuel),
}

/// What became of a call by [`TypedFunc::call_resumable`].
#[derive(Debug)]
pub enum TypedResumableCall<T> {
    /// The function has returned.
    Finished(T),
    /// A host function has returned an error, and the guest waits for its results.
    HostTrap(TypedResumableCallHostTrap<T>),
    /// The guest waits for fuel.
    OutOfFuel(TypedResumableCallOutOfFuel<T>),
}

/// A guest that has called a host function which returned an error.
///
/// It keeps its stacks until it is resumed to its end. If this is dropped, the guest is given up: it leaves its frames, as after a trap
/// that nothing catches, when the store is next used for a resumable call, or is dropped.
pub struct ResumableCallHostTrap {
    call: Call,
    error: Error,
    host: Func,
    slots: Slots,
}

/// A guest whose fuel has run out. It has the properties of [`ResumableCallHostTrap`].
pub struct ResumableCallOutOfFuel {
    call: Call,
    required_fuel: u64,
}

/// [`ResumableCallHostTrap`] of a call by [`TypedFunc::call_resumable`].
pub struct TypedResumableCallHostTrap<R> {
    call: ResumableCallHostTrap,
    results: PhantomData<fn() -> R>,
}

/// [`ResumableCallOutOfFuel`] of a call by [`TypedFunc::call_resumable`].
pub struct TypedResumableCallOutOfFuel<R> {
    call: ResumableCallOutOfFuel,
    results: PhantomData<fn() -> R>,
}

/// What all stopped calls have.
struct Call {
    func: Func,
    handle: Handle,
}

/// Where the results of a host function belong.
struct Slots(*mut u64);

// SAFETY: the slots are used only by code that borrows the store of the guest.
unsafe impl Send for Slots {}
// SAFETY: as above.
unsafe impl Sync for Slots {}

impl Func {
    /// Calls the function as [`Func::call`] does, on a stack of its own, such that the guest can be resumed:
    /// - after an error of a host function that the guest has called, with results that the embedder chooses;
    /// - when its fuel has run out, after the embedder has [set](crate::Store::set_fuel) more.
    ///
    /// While the guest is stopped, the store can be used for anything, also for other resumable calls, which may end in any order. Another
    /// thread may resume the guest. Calls of the guest by a host function, within a resumable call, are no part of that: their errors
    /// are returned to the host function.
    ///
    /// A guest is stopped for fuel at the first entry of a function or head of a loop, or at its end, when it has consumed more than there
    /// is. What it has consumed beyond is [`ResumableCallOutOfFuel::required_fuel`], and is charged when it is resumed. So the sum is exact unless the guest traps in between,
    /// and the places are the same in every tier. A bulk operation of memories or tables after which more than 2²⁰ units (64 MiB) would be
    /// required traps with [`Trap::OutOfFuel`](crate::Trap::OutOfFuel).
    ///
    /// Objects of the store are not collected while a guest is stopped for fuel.
    ///
    /// ```
    /// use weir::{Engine, Error, Func, Instance, Module, ResumableCall, Store, Val};
    ///
    /// let engine = Engine::default();
    /// let module = Module::new(&engine, r#"
    ///     (module
    ///         (import "host" "ask" (func $ask (param i32) (result i32)))
    ///         (func (export "run") (result i32) (i32.add (call $ask (i32.const 20)) (i32.const 2))))
    /// "#)?;
    /// let mut store = Store::new(&engine, ());
    /// let ask = Func::wrap(&mut store, |_: i32| -> Result<i32, Error> { Err(Error::msg("not now")) });
    /// let instance = Instance::new(&mut store, &module, &[ask.into()])?;
    /// let run = instance.get_func(&mut store, "run").expect("it exports `run`");
    ///
    /// let mut results = [Val::I32(0)];
    /// let ResumableCall::HostTrap(call) = run.call_resumable(&mut store, &[], &mut results)? else { panic!("it asks") };
    /// assert_eq!(call.host_error().to_string(), "not now");
    /// let call = call.resume(&mut store, &[Val::I32(40)], &mut results)?;
    /// assert!(matches!(call, ResumableCall::Finished));
    /// assert_eq!(results[0].i32(), Some(42));
    /// # Ok::<(), weir::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Func::call`], but for errors of host functions; there is no memory for a stack; or the engine consumes fuel, and
    /// [`Config::async_support`](crate::Config::async_support) is off, without which code does not ask for fuel.
    ///
    /// # Panics
    /// As [`Func::call`].
    pub fn call_resumable(&self, mut store: impl AsContextMut, params: &[Val], results: &mut [Val]) -> Result<ResumableCall> {
        let store = store.as_context_mut();
        let ty = self.checked_type(&store.as_context(), params, results)?;
        let record = store.record();
        // SAFETY: the store is borrowed, and the function belongs to it.
        unsafe {
            let bits = |(param, &ty): (&Val, &ValType)| param.to_bits(record, ty);
            params.iter().zip(&ty.params).try_for_each(|param| bits(param).map(drop))?;
            let words = slot_words(&ty.params);
            let write = |slots: *mut u64| {
                for (i, param) in params.iter().zip(&ty.params).enumerate() {
                    write_slot(slots.add(i * words), words, bits(param).expect("it was converted above"));
                }
            };
            let mut read = |slots: *mut u64| read_results(record, &ty, slots, results);
            let step = begin(record, self.in_store((*record).id), call_words(&ty), write, &mut read)?;
            Ok(ResumableCall::new(*self, step))
        }
    }
}

impl<P: WasmParams, R: WasmResults> TypedFunc<P, R> {
    /// Calls the function as [`Func::call_resumable`] does.
    ///
    /// # Errors
    /// # Panics
    /// As there.
    pub fn call_resumable(&self, mut store: impl AsContextMut, params: P) -> Result<TypedResumableCall<R>> {
        let store = store.as_context_mut();
        let (func, record) = (*self.func(), store.record());
        let (address, mut results) = (StoreAddress(record), None);
        // SAFETY: the store is borrowed, and the function belongs to it; its type was checked when this handle was made.
        unsafe {
            params.check(address, FOREIGN_ARGUMENT)?;
            let mut read = |slots: *mut u64| results = Some(R::read(slots, address));
            let write = |slots: *mut u64| params.write(slots, address);
            let step = begin(record, func.in_store((*record).id), Self::WORDS, write, &mut read)?;
            Ok(TypedResumableCall::new(ResumableCall::new(func, step), results))
        }
    }
}

impl ResumableCall {
    /// # Safety
    /// The step is one of a call of this function.
    unsafe fn new(func: Func, step: Step) -> ResumableCall {
        match step {
            Step::Finished => ResumableCall::Finished,
            Step::Stopped(Stop::Host { error, host, slots }, handle) => {
                // SAFETY: the guest has called this host function of the store.
                let host = unsafe { Func::from_ref(handle.store, NonNull::from(&(*host).func_ref)) };
                ResumableCall::HostTrap(ResumableCallHostTrap { call: Call { func, handle }, error, host, slots: Slots(slots) })
            }
            Step::Stopped(Stop::Fuel { overdrawn }, handle) => {
                ResumableCall::OutOfFuel(ResumableCallOutOfFuel { call: Call { func, handle }, required_fuel: overdrawn })
            }
        }
    }
}

impl<R> TypedResumableCall<R> {
    /// Gives a call its type. The results have been read if it has finished.
    fn new(call: ResumableCall, read: Option<R>) -> TypedResumableCall<R> {
        let results = PhantomData;
        match call {
            ResumableCall::Finished => TypedResumableCall::Finished(read.expect("a call that has finished has results")),
            ResumableCall::HostTrap(call) => TypedResumableCall::HostTrap(TypedResumableCallHostTrap { call, results }),
            ResumableCall::OutOfFuel(call) => TypedResumableCall::OutOfFuel(TypedResumableCallOutOfFuel { call, results }),
        }
    }
}

impl ResumableCallHostTrap {
    /// Returns the host function that returned the error. Its results are those that [`ResumableCallHostTrap::resume`] expects.
    pub fn host_func(&self) -> Func {
        self.host
    }

    /// Returns the error of the host function.
    pub fn host_error(&self) -> &Error {
        &self.error
    }

    /// Gives the guest up, and returns the error of the host function.
    pub fn into_host_error(self) -> Error {
        self.error
    }

    /// Resumes the guest, whose call of the host function returns `inputs`.
    ///
    /// # Errors
    /// As [`Func::call_resumable`]; or `inputs` do not match the results of the host function, or `outputs` the number of those of the
    /// function that was called. After these errors the guest is given up.
    ///
    /// # Panics
    /// As [`Func::call_resumable`].
    pub fn resume(self, mut store: impl AsContextMut, inputs: &[Val], outputs: &mut [Val]) -> Result<ResumableCall> {
        let store = store.as_context_mut();
        let record = store.record();
        let ty = self.call.func.plain_type(&store.as_context())?;
        check_count("results", ty.results.len(), outputs.len())?;
        // SAFETY: the store is borrowed.
        let mut read = |slots: *mut u64| unsafe { read_results(record, &ty, slots, outputs) };
        self.resume_with(record, inputs, &mut read)
    }

    /// Resumes the guest of this live store, which nothing else uses.
    fn resume_with(self, record: *mut StoreRecord, inputs: &[Val], read: &mut dyn FnMut(*mut u64)) -> Result<ResumableCall> {
        let ResumableCallHostTrap { call: Call { func, handle }, host, slots: Slots(slots), error } = self;
        // SAFETY: the callers' borrow of the store, to which the host function and the call belong: this is checked here.
        unsafe {
            let host = host_record(host.in_store((*record).id));
            let host = &*host;
            let ty = &host.func.ty;
            check_count("results of the host function", ty.results.len(), inputs.len())?;
            let words = slot_words(&ty.results);
            let bits = |(input, &ty): (&Val, &ValType)| input.to_bits(record, ty);
            inputs.iter().zip(&ty.results).try_for_each(|input| bits(input).map(drop))?;
            // Where references are is known when they are written: the store's hook may collect before that.
            let write = |slots: *mut u64| {
                (0..).zip(inputs.iter().zip(&ty.results)).try_for_each(|(i, input)| {
                    write_slot(slots.add(i * words), words, bits(input)?);
                    Ok(())
                })
            };
            let step = resume(record, handle, &Stop::Host { error, host, slots }, write, read)?;
            Ok(ResumableCall::new(func, step))
        }
    }
}

/// Returns the record of a host function.
///
/// # Safety
/// The reference is that of a host function of a live store.
unsafe fn host_record(func: *mut weir_contract::FuncRef) -> *const HostRecord {
    // SAFETY: the caller's promise: a host function's context is the beginning of its record.
    unsafe { (*func).instance.cast() }
}

impl ResumableCallOutOfFuel {
    /// Returns how much fuel the store must have at least when the guest is resumed. It is what the guest has consumed beyond the fuel
    /// that there was.
    pub fn required_fuel(&self) -> u64 {
        self.required_fuel
    }

    /// Resumes the guest, to which [`Store::set_fuel`](crate::Store::set_fuel) has given fuel. If that is less than is required, the
    /// guest stays stopped, and less is required from then on.
    ///
    /// # Errors
    /// As [`Func::call_resumable`]; or `outputs` do not match the number of the function's results. Then the guest is given up.
    ///
    /// # Panics
    /// As [`Func::call_resumable`].
    pub fn resume(self, mut store: impl AsContextMut, outputs: &mut [Val]) -> Result<ResumableCall> {
        let store = store.as_context_mut();
        let record = store.record();
        let ty = self.call.func.plain_type(&store.as_context())?;
        check_count("results", ty.results.len(), outputs.len())?;
        // SAFETY: the store is borrowed.
        let mut read = |slots: *mut u64| unsafe { read_results(record, &ty, slots, outputs) };
        self.resume_with(record, &mut read)
    }

    /// Resumes the guest of this live store, which nothing else uses.
    fn resume_with(self, record: *mut StoreRecord, read: &mut dyn FnMut(*mut u64)) -> Result<ResumableCall> {
        let ResumableCallOutOfFuel { call: Call { func, handle }, required_fuel: overdrawn } = self;
        // SAFETY: the callers' borrow of the store, to which the call belongs: this is checked here.
        unsafe {
            func.in_store((*record).id);
            let step = resume(record, handle, &Stop::Fuel { overdrawn }, |_| Ok(()), read)?;
            Ok(ResumableCall::new(func, step))
        }
    }
}

impl<R: WasmResults> TypedResumableCallHostTrap<R> {
    /// Resumes the guest as [`ResumableCallHostTrap::resume`] does.
    ///
    /// # Errors
    /// # Panics
    /// As there.
    pub fn resume(self, mut store: impl AsContextMut, inputs: &[Val]) -> Result<TypedResumableCall<R>> {
        let record = store.as_context_mut().record();
        let mut results = None;
        // SAFETY: the store is borrowed, and the function has results of this type.
        let mut read = |slots: *mut u64| results = Some(unsafe { R::read(slots, StoreAddress(record)) });
        let call = self.call.resume_with(record, inputs, &mut read)?;
        Ok(TypedResumableCall::new(call, results))
    }

    /// Gives the guest up, and returns the error of the host function.
    pub fn into_host_error(self) -> Error {
        self.call.error
    }
}

impl<R: WasmResults> TypedResumableCallOutOfFuel<R> {
    /// Resumes the guest as [`ResumableCallOutOfFuel::resume`] does.
    ///
    /// # Errors
    /// # Panics
    /// As there.
    pub fn resume(self, mut store: impl AsContextMut) -> Result<TypedResumableCall<R>> {
        let record = store.as_context_mut().record();
        let mut results = None;
        // SAFETY: the store is borrowed, and the function has results of this type.
        let mut read = |slots: *mut u64| results = Some(unsafe { R::read(slots, StoreAddress(record)) });
        let call = self.call.resume_with(record, &mut read)?;
        Ok(TypedResumableCall::new(call, results))
    }
}

/// Reads the results of a function of this type.
///
/// # Safety
/// They are in slots at `slots`, of this live store, which nothing else uses.
unsafe fn read_results(record: *mut StoreRecord, ty: &PlainType, slots: *mut u64, results: &mut [Val]) {
    let words = slot_words(&ty.results);
    for (i, (result, &ty)) in results.iter_mut().zip(&ty.results).enumerate() {
        // SAFETY: the caller's promise.
        *result = unsafe { Val::from_bits(read_slot(slots.add(i * words), words), record, ty) };
    }
}

impl<R> Deref for TypedResumableCallHostTrap<R> {
    type Target = ResumableCallHostTrap;

    fn deref(&self) -> &ResumableCallHostTrap {
        &self.call
    }
}

impl<R> Deref for TypedResumableCallOutOfFuel<R> {
    type Target = ResumableCallOutOfFuel;

    fn deref(&self) -> &ResumableCallOutOfFuel {
        &self.call
    }
}

impl fmt::Debug for ResumableCallHostTrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResumableCallHostTrap").field("host_error", &self.error).finish_non_exhaustive()
    }
}

impl fmt::Debug for ResumableCallOutOfFuel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResumableCallOutOfFuel").field("required_fuel", &self.required_fuel).finish_non_exhaustive()
    }
}

impl<R> fmt::Debug for TypedResumableCallHostTrap<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}

impl<R> fmt::Debug for TypedResumableCallOutOfFuel<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.call.fmt(f)
    }
}
