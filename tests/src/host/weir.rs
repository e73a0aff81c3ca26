//! The instance that imports a host function, on Weir, and values on both sides.

use super::action::{Guest, HostFailure};
use crate::generate::Value;
use weir::{AsContextMut, Caller, Error, Extern, Func, Result, Val};
use weir_bytecode::types::ValType;

/// The value as an argument.
pub fn to_val(value: Value) -> Val {
    match value {
        Value::I32(x) => Val::I32(x),
        Value::I64(x) => Val::I64(x),
        Value::F32(x) => Val::F32(x),
        Value::F64(x) => Val::F64(x),
        Value::V128(x) => Val::from(x),
    }
}

/// The value of a number or a vector.
///
/// # Panics
/// It is a reference.
pub fn from_val(val: &Val) -> Value {
    match *val {
        Val::I32(x) => Value::I32(x),
        Val::I64(x) => Value::I64(x),
        Val::F32(x) => Value::F32(x),
        Val::F64(x) => Value::F64(x),
        Val::V128(x) => Value::V128(x.into()),
        _ => unreachable!("generated programs hold numbers and vectors only"),
    }
}

/// The caller of a host function, which is called in one of two ways.
pub(super) struct InWeir<'c, 'a, T: 'static> {
    pub caller: &'c mut Caller<'a, T>,
    /// Whether the host function is asynchronous.
    pub suspends: bool,
}

impl<T: 'static> InWeir<'_, '_, T> {
    fn func(&mut self, index: u32) -> Option<Func> {
        self.caller.get_export(&format!("f{index}"))?.into_func()
    }
}

impl<T: Send + 'static> Guest for InWeir<'_, '_, T> {
    type Error = Error;

    fn memory(&mut self, index: u32) -> Option<&mut [u8]> {
        let memory = self.caller.get_export(&format!("m{index}")).and_then(Extern::into_memory)?;
        Some(memory.data_mut(&mut *self.caller))
    }

    fn grow(&mut self, index: u32, pages: u64) -> Option<u64> {
        let memory = self.caller.get_export(&format!("m{index}")).and_then(Extern::into_memory)?;
        memory.grow(&mut *self.caller, pages).ok()
    }

    fn global(&mut self, index: u32) -> Option<Value> {
        let global = self.caller.get_export(&format!("g{index}")).and_then(Extern::into_global)?;
        Some(from_val(&global.get(&mut *self.caller)))
    }

    fn set_global(&mut self, index: u32, value: Value) -> bool {
        let global = self.caller.get_export(&format!("g{index}")).and_then(Extern::into_global);
        global.is_some_and(|global| global.set(&mut *self.caller, to_val(value)).is_ok())
    }

    fn params(&mut self, func: u32) -> Option<Vec<ValType>> {
        Some(self.func(func)?.ty(&*self.caller).params().collect())
    }

    async fn call(&mut self, func: u32, args: &[Value]) -> Result<Vec<Value>> {
        let func = self.func(func).expect("a function that is there");
        let args: Vec<Val> = args.iter().map(|&arg| to_val(arg)).collect();
        let mut results = vec![Val::I32(0); func.ty(&*self.caller).results().len()];
        match self.suspends {
            true => func.call_async(self.caller.as_context_mut(), &args, &mut results).await?,
            false => func.call(self.caller.as_context_mut(), &args, &mut results)?,
        }
        Ok(results.iter().map(from_val).collect())
    }

    fn failure(&self, failure: HostFailure) -> Error {
        failure.into()
    }
}
