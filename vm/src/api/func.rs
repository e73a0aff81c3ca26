//! Functions, of the guest or of the host.

use crate::api::externs::Extern;
use crate::api::store::{AsContext, AsContextMut, StoreContext, StoreContextMut};
use crate::api::typed::{IntoFunc, TypedFunc, WasmParams, WasmResults};
use crate::exec::entry;
use crate::exec::host::{self, EngineFunc, host_func};
use crate::records::host::HostFunc;
use crate::records::instance::{InstanceRecord, Owner, owner_of};
use crate::records::stack::{read_slot, write_slot};
use crate::records::store::StoreRecord;
use crate::{Engine, Error, FuncType, Result, Val, ValType};
use smallvec::SmallVec;
use std::ptr::NonNull;
use std::sync::Arc;
use weir_bytecode::FuncType as PlainType;
use weir_contract::{FuncRef, InstanceCtx, call_words, slot_words};

/// A function of a store: exported by an instance, or the host's. A handle, valid as long as the store.
///
/// ```
/// use weir::{Engine, Func, Store};
///
/// let mut store = Store::new(&Engine::default(), ());
/// let add = Func::wrap(&mut store, |a: i32, b: i32| a + b);
/// let add = add.typed::<(i32, i32), i32>(&store)?;
/// assert_eq!(add.call(&mut store, (2, 3))?, 5);
/// # Ok::<(), weir::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Func {
    store: u64,
    func: NonNull<FuncRef>,
}

// SAFETY: the reference is only dereferenced through a borrow of its store.
unsafe impl Send for Func {}
// SAFETY: as above.
unsafe impl Sync for Func {}

impl Func {
    /// A host function of any type, which gets its arguments and gives its results as [`Val`]s. The results are zero
    /// or null at first.
    ///
    /// ```
    /// use weir::{Engine, Func, FuncType, Store, Val, ValType};
    ///
    /// let engine = Engine::default();
    /// let mut store = Store::new(&engine, ());
    /// let ty = FuncType::new(&engine, [ValType::I32, ValType::I32], [ValType::I64]);
    /// let product = Func::new(&mut store, ty, |_, params, results| {
    ///     results[0] = Val::I64(i64::from(params[0].unwrap_i32()) * i64::from(params[1].unwrap_i32()));
    ///     Ok(())
    /// });
    /// let mut results = [Val::I64(0)];
    /// product.call(&mut store, &[Val::I32(1 << 20), Val::I32(1 << 20)], &mut results)?;
    /// assert_eq!(results[0].i64(), Some(1 << 40));
    /// # Ok::<(), weir::Error>(())
    /// ```
    pub fn new<T: 'static>(
        mut store: impl AsContextMut<Data = T>,
        ty: FuncType,
        func: impl Fn(Caller<'_, T>, &[Val], &mut [Val]) -> Result<()> + Send + Sync + 'static,
    ) -> Func {
        Func::from_host(store.as_context_mut(), dynamic(ty.0, func))
    }

    /// A host function out of a closure over Rust types: see [`IntoFunc`].
    pub fn wrap<T: 'static, P, R>(mut store: impl AsContextMut<Data = T>, func: impl IntoFunc<T, P, R>) -> Func {
        Func::from_host(store.as_context_mut(), func.into_func().0)
    }

    /// Gives a host function to a store.
    pub(crate) fn from_host<T>(store: StoreContextMut<'_, T>, func: Arc<HostFunc>) -> Func {
        let func = EngineFunc::new(store.engine(), func);
        // SAFETY: the store is borrowed, and no reference into it is held.
        let func = unsafe { host::add(store.record(), func, std::ptr::null_mut()) };
        Func { store: store.id(), func }
    }

    /// Its type.
    pub fn ty(&self, store: impl AsContext) -> FuncType {
        FuncType(self.plain_type(&store.as_context()).as_ref().clone())
    }

    fn plain_type<T>(&self, store: &StoreContext<'_, T>) -> Arc<PlainType> {
        store.engine().record().signatures.get(self.sig(store.id()))
    }

    /// Calls it with arguments of any types.
    ///
    /// # Errors
    /// The arguments do not match the function's type, or `results` its number of results; a [`Trap`](crate::Trap),
    /// with a backtrace; the error of a host function that was called on the way.
    ///
    /// # Panics
    /// With the panic of a host function; or if it, or an argument, belongs to another store.
    pub fn call(&self, mut store: impl AsContextMut, params: &[Val], results: &mut [Val]) -> Result<()> {
        let store = store.as_context_mut();
        let id = store.id();
        let ty = self.plain_type(&store.as_context());
        check_count("arguments", ty.params.len(), params.len())?;
        check_count("results", ty.results.len(), results.len())?;
        let bits = |(param, &ty): (&Val, &ValType)| param.to_bits(id, ty);
        params.iter().zip(&ty.params).try_for_each(|param| bits(param).map(drop))?;
        let (param_words, result_words) = (slot_words(&ty.params), slot_words(&ty.results));
        let write = |args: *mut u64| {
            for (i, param) in params.iter().zip(&ty.params).enumerate() {
                let param = bits(param).expect("it was so above");
                // SAFETY: there are as many slots as parameters.
                unsafe { write_slot(args.add(i * param_words), param_words, param) };
            }
        };
        let read = |args: *mut u64| {
            for (i, (result, &ty)) in results.iter_mut().zip(&ty.results).enumerate() {
                // SAFETY: the function has left a result of this type in each of the first slots.
                *result = unsafe { Val::from_bits(read_slot(args.add(i * result_words), result_words), id, ty) };
            }
        };
        // SAFETY: the store is borrowed and the function belongs to it.
        unsafe { entry::invoke(store.record(), self.in_store(id), call_words(&ty), write, read) }
    }

    /// The function with a type known to Rust, which makes calls cheap.
    ///
    /// # Errors
    /// It has another type.
    pub fn typed<P: WasmParams, R: WasmResults>(&self, store: impl AsContext) -> Result<TypedFunc<P, R>> {
        let ty = self.plain_type(&store.as_context());
        let asked = PlainType { params: P::types().into(), results: R::types().into() };
        match *ty == asked {
            true => Ok(TypedFunc::new(*self)),
            false => Err(Error::msg(format!("type mismatch: the function is {ty}, it was asked for as {asked}"))),
        }
    }

    /// Whether both are one function.
    pub fn same(a: Func, b: Func) -> bool {
        a.store == b.store && a.func == b.func
    }

    /// # Safety
    /// `func` belongs to the store with identity `store`.
    pub(crate) unsafe fn from_raw(store: u64, func: NonNull<FuncRef>) -> Func {
        Func { store, func }
    }

    /// The reference, which exists because the store with this identity does.
    #[inline]
    pub(crate) fn in_store(&self, id: u64) -> *mut FuncRef {
        assert_eq!(self.store, id, "a function was used with a store that is not its own");
        self.func.as_ptr()
    }

    /// Engine-wide identity of its type.
    pub(crate) fn sig(&self, id: u64) -> u32 {
        // SAFETY: the store exists, and a reference's fields never change.
        unsafe { (*self.in_store(id)).sig }
    }

    /// The host function, if it is one.
    pub(crate) fn host(&self, id: u64) -> Option<EngineFunc> {
        // SAFETY: the store exists.
        match unsafe { owner_of((*self.in_store(id)).instance) } {
            Owner::Host(host) => Some(EngineFunc::of(host)),
            Owner::Instance(_) => None,
        }
    }
}

fn check_count(what: &str, expected: usize, found: usize) -> Result<()> {
    match expected == found {
        true => Ok(()),
        false => Err(Error::msg(format!("expected {expected} {what}, found {found}"))),
    }
}

/// So many parameters and results of a host function need no allocations, which took a third of the time of a call.
const FEW_VALUES: usize = 8;

/// A host function whose type is known only when it is made.
pub(crate) fn dynamic<T: 'static>(
    ty: PlainType,
    func: impl Fn(Caller<'_, T>, &[Val], &mut [Val]) -> Result<()> + Send + Sync + 'static,
) -> Arc<HostFunc> {
    let signature = ty.clone();
    let (param_words, result_words) = (slot_words(&ty.params), slot_words(&ty.results));
    let call = move |store: *mut StoreRecord, importer: *mut InstanceCtx, slots: *mut u64| -> Result<()> {
        // SAFETY: `entry::host_call` gives a live store whose data is a `T`, and slots with the parameters.
        let (caller, id) = unsafe { (Caller::new(store, importer), (*store).id) };
        let params = (signature.params.iter().enumerate())
            // SAFETY: as above.
            .map(|(i, &ty)| unsafe { Val::from_bits(read_slot(slots.add(i * param_words), param_words), id, ty) });
        let default = |ty: &ValType| Val::default_for_ty(ty).unwrap_or(Val::FuncRef(None));
        let mut values: SmallVec<[Val; FEW_VALUES]> = params.chain(signature.results.iter().map(default)).collect();
        let (params, results) = values.split_at_mut(signature.params.len());
        func(caller, params, results)?;
        for (i, (result, &ty)) in results.iter().zip(&signature.results).enumerate() {
            let bits = result.to_bits(id, ty).map_err(|error| error.context("the result of a host function"))?;
            // SAFETY: as above, and there are as many slots as results.
            unsafe { write_slot(slots.add(i * result_words), result_words, bits) };
        }
        Ok(())
    };
    Arc::new(host_func(ty, call))
}

/// What a host function gets to see of its caller: the store, and the exports of the instance that imports the
/// function.
///
/// ```
/// use weir::{Caller, Engine, Extern, Linker, Module, Store};
///
/// let engine = Engine::default();
/// let mut linker = Linker::new(&engine);
/// linker.func_wrap("host", "print", |mut caller: Caller<'_, String>, at: u32, len: u32| {
///     let Some(Extern::Memory(memory)) = caller.get_export("memory") else { weir::bail!("no memory") };
///     let mut text = vec![0; len as usize];
///     memory.read(&caller, at as usize, &mut text)?;
///     caller.data_mut().push_str(&String::from_utf8_lossy(&text));
///     Ok(())
/// })?;
/// let module = Module::new(&engine, r#"
///     (module
///         (import "host" "print" (func $print (param i32 i32)))
///         (memory (export "memory") 1)
///         (data (i32.const 8) "hello")
///         (func (export "run") (call $print (i32.const 8) (i32.const 5))))
/// "#)?;
/// let mut store = Store::new(&engine, String::new());
/// let instance = linker.instantiate(&mut store, &module)?;
/// instance.get_typed_func::<(), ()>(&mut store, "run")?.call(&mut store, ())?;
/// assert_eq!(store.data(), "hello");
/// # Ok::<(), weir::Error>(())
/// ```
pub struct Caller<'a, T: 'static> {
    store: StoreContextMut<'a, T>,
    /// Null if the function was not called as an import.
    importer: *mut InstanceCtx,
}

impl<'a, T: 'static> Caller<'a, T> {
    /// # Safety
    /// The store's data is a `T`, the store lives for `'a` and nobody else uses it meanwhile; `importer` is null or
    /// one of its instances.
    pub(crate) unsafe fn new(store: *mut StoreRecord, importer: *mut InstanceCtx) -> Caller<'a, T> {
        // SAFETY: the caller's promise.
        Caller { store: unsafe { StoreContextMut::from_raw(store) }, importer }
    }

    /// The embedder's data.
    pub fn data(&self) -> &T {
        self.as_context().into_data()
    }

    /// The embedder's data.
    pub fn data_mut(&mut self) -> &mut T {
        self.as_context_mut().into_data_mut()
    }

    /// The export `name` of the instance that imports this function. `None` as well if it was not called as an import.
    pub fn get_export(&mut self, name: &str) -> Option<Extern> {
        if self.importer.is_null() {
            return None;
        }
        // SAFETY: the importer is an instance of this store, which is borrowed.
        match unsafe { owner_of(self.importer) } {
            Owner::Instance(instance) => self.export_of(instance, name),
            Owner::Host(_) => None,
        }
    }

    fn export_of(&self, instance: &InstanceRecord, name: &str) -> Option<Extern> {
        let item = instance.module.record().export(name)?;
        // SAFETY: the instance belongs to this store.
        Some(unsafe { Extern::of_instance(instance, item, self.store.id()) })
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        self.store.engine()
    }

    /// How much fuel is left.
    ///
    /// # Errors
    /// The engine does not consume fuel.
    pub fn get_fuel(&self) -> Result<u64> {
        self.store.get_fuel()
    }

    /// Sets how much fuel is left.
    ///
    /// # Errors
    /// The engine does not consume fuel.
    pub fn set_fuel(&mut self, fuel: u64) -> Result<()> {
        self.store.set_fuel(fuel)
    }
}

impl<T: 'static> AsContext for Caller<'_, T> {
    type Data = T;

    fn as_context(&self) -> StoreContext<'_, T> {
        self.store.as_context()
    }
}

impl<T: 'static> AsContextMut for Caller<'_, T> {
    fn as_context_mut(&mut self) -> StoreContextMut<'_, T> {
        self.store.as_context_mut()
    }
}
