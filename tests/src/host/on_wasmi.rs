//! The imports of generated programs on wasmi: the same as [`instantiate`](super::instantiate) gives them on Weir.

use super::action::{Guest, HostFailure, act, at_once};
use super::uses::Uses;
use crate::generate::{Action, Value};
use std::future::ready;
use std::sync::{Arc, OnceLock};
use wasmi::{
    AsContextMut, Caller, Error, Extern, ExternType, Func, FuncType, Global, Instance, Linker, Memory, Module, Store, Table, Val,
};
use weir_bytecode::types::ValType;

impl wasmi::errors::HostError for HostFailure {}

/// The instance that imports a host function, which is known when it has been made.
type Importer = Arc<OnceLock<Instance>>;

/// Makes an instance of a generated program, and the other one from which it imports, if it does.
///
/// # Errors
/// An import is unknown, or instantiation traps.
pub fn instantiate(store: &mut Store<()>, module: &Module, uses: &Uses) -> Result<(Instance, Option<Instance>), Error> {
    let first = Importer::default();
    let mut linker = Linker::new(store.engine());
    for import in module.imports().filter(|import| import.module() == "h" && import.ty().func().is_none()) {
        let item = made(store, import.name(), import.ty())?;
        linker.define("h", import.name(), item)?;
    }
    let mut of_other = linker.clone();
    define_actions(&mut linker, store, module, &first, uses)?;
    let mut other = None;
    if module.imports().any(|import| import.module() == "o") {
        let importer = Importer::default();
        define_actions(&mut of_other, store, module, &importer, uses)?;
        for import in module.imports().filter(|import| import.module() == "o") {
            let item = match import.ty() {
                ExternType::Func(ty) => Extern::Func(call_of(store, ty, import.name(), &first, uses)),
                ty => made(store, import.name(), ty)?,
            };
            of_other.define("o", import.name(), item)?;
        }
        let instance = of_other.instantiate_and_start(&mut *store, module)?;
        linker.instance(&mut *store, "o", instance)?;
        other = Some(*importer.get_or_init(|| instance));
    }
    let instance = linker.instantiate_and_start(store, module)?;
    Ok((*first.get_or_init(|| instance), other))
}

/// A memory, table or global that the host owns.
fn made(store: &mut Store<()>, name: &str, ty: &ExternType) -> Result<Extern, Error> {
    Ok(match ty {
        ExternType::Memory(ty) => Extern::Memory(Memory::new(store, *ty)?),
        ExternType::Table(ty) => Extern::Table(Table::new(store, *ty, Val::default(ty.element()))?),
        ExternType::Global(ty) => {
            let value = Value::of_global(name, val_type(ty.content()), ty.mutability().is_mut());
            Extern::Global(Global::new(store, to_wasmi(value), ty.mutability()))
        }
        ExternType::Func(_) => return Err(Error::new("a function without an action")),
    })
}

fn define_actions(
    linker: &mut Linker<()>,
    store: &mut Store<()>,
    module: &Module,
    importer: &Importer,
    uses: &Uses,
) -> Result<(), Error> {
    for import in module.imports() {
        let (Some(action), ExternType::Func(ty)) = (Action::named(import.name()), import.ty()) else { continue };
        let results: Vec<ValType> = ty.results().iter().map(|&ty| val_type(ty)).collect();
        let (importer, uses) = (importer.clone(), uses.clone());
        let func = Func::new(&mut *store, ty.clone(), move |caller, args, out| {
            let args: Vec<Value> = args.iter().map(from_wasmi).collect();
            let mut guest = InWasmi { caller, importer: importer.get().copied() };
            let values = at_once(act(&mut guest, action, &args, &results, &uses))?;
            out.iter_mut().zip(values).for_each(|(out, value)| *out = to_wasmi(value));
            Ok(())
        });
        linker.define("h", import.name(), func)?;
    }
    Ok(())
}

/// A function of the host that calls an export of the first instance, when that exists.
fn call_of(store: &mut Store<()>, ty: &FuncType, name: &str, first: &Importer, uses: &Uses) -> Func {
    let (name, first, uses) = (name.to_owned(), first.clone(), uses.clone());
    Func::new(store, ty.clone(), move |mut caller, args, results| {
        results.iter_mut().for_each(|result| *result = Val::default(result.ty()));
        let (Some(instance), Some(_open)) = (first.get(), uses.enter()) else { return Ok(()) };
        let func = instance.get_func(&caller, &name).expect("each function is exported");
        func.call(caller.as_context_mut(), args, results).inspect_err(|_| uses.passed())
    })
}

struct InWasmi<'a> {
    caller: Caller<'a, ()>,
    /// `None` until the instance has been made. Then the caller is the one that is being made, because no other has its functions.
    importer: Option<Instance>,
}

impl InWasmi<'_> {
    /// What the importing instance exports. wasmi's [`Caller`] is the instance that calls, which may be another one if it has the host
    /// function from a table.
    fn export(&self, kind: char, index: u32) -> Option<Extern> {
        let name = format!("{kind}{index}");
        match self.importer {
            Some(importer) => importer.get_export(&self.caller, &name),
            None => self.caller.get_export(&name),
        }
    }

    fn func(&self, index: u32) -> Option<Func> {
        self.export('f', index).and_then(Extern::into_func)
    }

    fn called(&mut self, func: u32, args: &[Value]) -> Result<Vec<Value>, Error> {
        let func = self.func(func).expect("a function that is there");
        let args: Vec<Val> = args.iter().map(|&arg| to_wasmi(arg)).collect();
        let mut results = vec![Val::I32(0); func.ty(&self.caller).results().len()];
        func.call(self.caller.as_context_mut(), &args, &mut results)?;
        Ok(results.iter().map(from_wasmi).collect())
    }
}

impl Guest for InWasmi<'_> {
    type Error = Error;

    fn memory(&mut self, index: u32) -> Option<&mut [u8]> {
        let memory = self.export('m', index).and_then(Extern::into_memory)?;
        Some(memory.data_mut(&mut self.caller))
    }

    fn grow(&mut self, index: u32, pages: u64) -> Option<u64> {
        let memory = self.export('m', index).and_then(Extern::into_memory)?;
        memory.grow(&mut self.caller, pages).ok()
    }

    fn global(&mut self, index: u32) -> Option<Value> {
        let global = self.export('g', index).and_then(Extern::into_global)?;
        Some(from_wasmi(&global.get(&self.caller)))
    }

    fn set_global(&mut self, index: u32, value: Value) -> bool {
        let global = self.export('g', index).and_then(Extern::into_global);
        global.is_some_and(|global| global.set(&mut self.caller, to_wasmi(value)).is_ok())
    }

    fn params(&mut self, func: u32) -> Option<Vec<ValType>> {
        Some(self.func(func)?.ty(&self.caller).params().iter().map(|&ty| val_type(ty)).collect())
    }

    fn call(&mut self, func: u32, args: &[Value]) -> impl Future<Output = Result<Vec<Value>, Error>> + Send {
        ready(self.called(func, args))
    }

    fn failure(&self, failure: HostFailure) -> Error {
        Error::host(failure)
    }
}

/// The value on wasmi.
pub fn to_wasmi(value: Value) -> Val {
    match value {
        Value::I32(x) => Val::I32(x),
        Value::I64(x) => Val::I64(x),
        Value::F32(x) => Val::F32(wasmi::F32::from_bits(x)),
        Value::F64(x) => Val::F64(wasmi::F64::from_bits(x)),
        Value::V128(x) => Val::V128(x.into()),
    }
}

/// The value of a number or a vector.
///
/// # Panics
/// It is a reference.
pub fn from_wasmi(val: &Val) -> Value {
    match val {
        Val::I32(x) => Value::I32(*x),
        Val::I64(x) => Value::I64(*x),
        Val::F32(x) => Value::F32(x.to_bits()),
        Val::F64(x) => Value::F64(x.to_bits()),
        Val::V128(x) => Value::V128(x.as_u128()),
        _ => unreachable!("generated programs hold numbers and vectors only"),
    }
}

/// The type of Weir that corresponds to this one.
pub fn val_type(ty: wasmi::ValType) -> ValType {
    match ty {
        wasmi::ValType::I32 => ValType::I32,
        wasmi::ValType::I64 => ValType::I64,
        wasmi::ValType::F32 => ValType::F32,
        wasmi::ValType::F64 => ValType::F64,
        wasmi::ValType::V128 => ValType::V128,
        wasmi::ValType::FuncRef => ValType::FUNCREF,
        wasmi::ValType::ExternRef => ValType::EXTERNREF,
    }
}
