//! A guest of one runtime, which calls the host. This text is compiled for both crates, each of which is `vm`.

use super::super::Other;
use super::vm::{Caller, Engine, Error, Linker, Module, Result, Store, Trap, TypedFunc};

const TEXT: &str = r#"(module
    (import "host" "other" (func $other (param i32) (result i32)))
    (memory 1)
    (func (export "sum") (param i32) (result i32) (local $i i32)
        (loop $again
            (i32.store (i32.and (local.get $i) (i32.const 0xfffc)) (i32.add (local.get $i) (i32.const 1)))
            (local.set $i (i32.add (local.get $i) (local.get 0)))
            (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (local.get $i))
    (func (export "load") (param i32) (result i32) (i32.load (i32.mul (local.get 0) (i32.const 65536))))
    (func (export "divide") (param i32) (result i32) (i32.div_s (local.get 0) (i32.sub (local.get 0) (local.get 0))))
    (func (export "unreachable") (param i32) (result i32) (unreachable))
    (func $deep (export "deep") (param i32) (result i32) (i32.add (call $deep (local.get 0)) (i32.const 1)))
    (func (export "calls") (param i32) (result i32)
        (i32.add (call $other (local.get 0)) (i32.load (i32.and (local.get 0) (i32.const 0xfffc))))))"#;

/// An instance, and its functions.
pub struct Guest {
    store: Store<Other>,
    funcs: Vec<(&'static str, TypedFunc<i32, i32>)>,
}

impl Guest {
    /// Makes an instance whose host function calls `other`.
    pub fn new(engine: &Engine, other: Other) -> Guest {
        let module = Module::new(engine, wat::parse_str(TEXT).unwrap()).unwrap();
        let mut linker = Linker::new(engine);
        let call = |mut caller: Caller<'_, Other>, arg: i32| -> Result<i32> { (caller.data_mut())(arg).map_err(Error::msg) };
        linker.func_wrap("host", "other", call).unwrap();
        let mut store = Store::new(engine, other);
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let names = ["sum", "load", "divide", "unreachable", "deep", "calls"];
        let funcs = names.map(|name| (name, instance.get_typed_func(&mut store, name).unwrap()));
        Guest { store, funcs: funcs.to_vec() }
    }

    /// Calls a function. An error is the name of the trap, or what the host function returned.
    pub fn call(&mut self, name: &str, arg: i32) -> Result<i32, String> {
        let (_, func) = self.funcs.iter().find(|func| func.0 == name).unwrap();
        func.clone().call(&mut self.store, arg).map_err(|error| match error.downcast_ref::<Trap>() {
            Some(trap) => format!("{trap:?}"),
            None => error.root_cause().to_string(),
        })
    }
}
