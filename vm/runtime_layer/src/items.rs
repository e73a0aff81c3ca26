//! Modules, instances and their items.
//!
//! Host values cross as [`OwnedRooted`](weir::OwnedRooted)s. The scoped roots that conversions add are removed at the end of each
//! operation, by a [`RootScope`], so a store that lives long does not collect them.

use crate::convert::{
    extern_from, extern_to, extern_type_from, func_type_from, func_type_to, global_type_from, global_type_to, memory_type_from,
    memory_type_to, ref_from, ref_to, table_type_from, table_type_to, val_from, val_to,
};
use crate::types::{Engine, ExternRef, Func, Global, Instance, Memory, Module, StoreContext, StoreContextMut, Table};
use anyhow::{Context, Result};
use wasm_runtime_layer::backend::{
    AsContext, AsContextMut, Export, Extern, Imports, Ref, Val, WasmExternRef, WasmFunc, WasmGlobal, WasmInstance, WasmMemory,
    WasmModule, WasmTable,
};
use wasm_runtime_layer::{ExportType, ExternType, FuncType, GlobalType, ImportType, MemoryType, TableType};
use weir::{AsContext as _, AsContextMut as _, RootScope};

/// What was checked when the item was made or found.
const CHECKED: &str = "the item has a type of the layer";

impl WasmExternRef<Engine> for ExternRef {
    /// # Panics
    /// The store has no memory for it. The layer's method has no error.
    fn new<T: 'static + Send + Sync>(mut ctx: impl AsContextMut<Engine>, object: T) -> ExternRef {
        let mut scope = RootScope::new(ctx.as_context_mut().0);
        let value = weir::ExternRef::new(&mut scope, object).and_then(|value| value.to_owned_rooted(&mut scope));
        ExternRef(value.expect("the store has memory for a host value"))
    }

    fn downcast<'a, 's: 'a, T: 'static, S: 'static>(&'a self, store: StoreContext<'s, S>) -> Result<&'a T> {
        let value = self.0.data(store.0)?.and_then(|value| value.downcast_ref());
        value.context("the host value has another type")
    }
}

impl WasmFunc<Engine> for Func {
    fn new<T: 'static>(
        mut ctx: impl AsContextMut<Engine, UserState = T>,
        ty: FuncType,
        func: impl 'static + Send + Sync + Fn(StoreContextMut<'_, T>, &[Val<Engine>], &mut [Val<Engine>]) -> Result<()>,
    ) -> Func {
        let store = ctx.as_context_mut().0;
        let ty = func_type_to(store.engine(), &ty);
        let call = move |caller: &mut weir::Caller<'_, T>, params: &[weir::Val], results: &mut [weir::Val]| -> Result<()> {
            let params = params.iter().map(|&value| val_from(value, &mut *caller)).collect::<Result<Vec<_>>>()?;
            let mut values = results.iter().map(|&value| val_from(value, &mut *caller)).collect::<Result<Vec<_>>>()?;
            func(StoreContextMut(caller.as_context_mut()), &params, &mut values)?;
            // The call that ends removes the roots.
            for (result, value) in results.iter_mut().zip(&values) {
                *result = val_to(value, &mut *caller);
            }
            Ok(())
        };
        Func(weir::Func::new(store, ty, move |mut caller: weir::Caller<'_, T>, params, results| {
            call(&mut caller, params, results).map_err(weir::Error::from_anyhow)
        }))
    }

    fn ty(&self, ctx: impl AsContext<Engine>) -> FuncType {
        func_type_from(&self.0.ty(ctx.as_context().0)).expect(CHECKED)
    }

    fn call<T>(&self, mut ctx: impl AsContextMut<Engine>, args: &[Val<Engine>], results: &mut [Val<Engine>]) -> Result<()> {
        let mut scope = RootScope::new(ctx.as_context_mut().0);
        let args: Vec<weir::Val> = args.iter().map(|value| val_to(value, &mut scope)).collect();
        let mut values = vec![weir::Val::I32(0); results.len()];
        self.0.call(&mut scope, &args, &mut values)?;
        for (result, value) in results.iter_mut().zip(values) {
            *result = val_from(value, &mut scope)?;
        }
        Ok(())
    }
}

impl WasmGlobal<Engine> for Global {
    /// # Panics
    /// The value is a reference of another store. The layer's method has no error.
    fn new(mut ctx: impl AsContextMut<Engine>, value: Val<Engine>, mutable: bool) -> Global {
        let mut scope = RootScope::new(ctx.as_context_mut().0);
        let ty = global_type_to(value.ty(), mutable);
        let value = val_to(&value, &mut scope);
        Global(weir::Global::new(&mut scope, ty, value).expect("the value has the global's type"))
    }

    fn ty(&self, ctx: impl AsContext<Engine>) -> GlobalType {
        global_type_from(self.0.ty(ctx.as_context().0)).expect(CHECKED)
    }

    fn set(&self, mut ctx: impl AsContextMut<Engine>, new_value: Val<Engine>) -> Result<()> {
        let mut scope = RootScope::new(ctx.as_context_mut().0);
        let value = val_to(&new_value, &mut scope);
        Ok(self.0.set(&mut scope, value)?)
    }

    fn get(&self, mut ctx: impl AsContextMut<Engine>) -> Val<Engine> {
        let mut scope = RootScope::new(ctx.as_context_mut().0);
        let value = self.0.get(&mut scope);
        val_from(value, &mut scope).expect(CHECKED)
    }
}

impl WasmMemory<Engine> for Memory {
    fn new(mut ctx: impl AsContextMut<Engine>, ty: MemoryType) -> Result<Memory> {
        Ok(Memory(weir::Memory::new(ctx.as_context_mut().0, memory_type_to(ty))?))
    }

    fn ty(&self, ctx: impl AsContext<Engine>) -> MemoryType {
        memory_type_from(self.0.ty(ctx.as_context().0)).expect(CHECKED)
    }

    fn grow(&self, mut ctx: impl AsContextMut<Engine>, additional: u32) -> Result<u32> {
        Ok(self.0.grow(ctx.as_context_mut().0, additional.into())?.try_into()?)
    }

    fn current_pages(&self, ctx: impl AsContext<Engine>) -> u32 {
        self.0.size(ctx.as_context().0).try_into().expect(CHECKED)
    }

    fn read(&self, ctx: impl AsContext<Engine>, offset: usize, buffer: &mut [u8]) -> Result<()> {
        Ok(self.0.read(ctx.as_context().0, offset, buffer)?)
    }

    fn write(&self, mut ctx: impl AsContextMut<Engine>, offset: usize, buffer: &[u8]) -> Result<()> {
        Ok(self.0.write(ctx.as_context_mut().0, offset, buffer)?)
    }
}

impl WasmTable<Engine> for Table {
    fn new(mut ctx: impl AsContextMut<Engine>, ty: TableType, init: Ref<Engine>) -> Result<Table> {
        let mut scope = RootScope::new(ctx.as_context_mut().0);
        let init = ref_to(&init, &mut scope);
        Ok(Table(weir::Table::new(&mut scope, table_type_to(ty), init)?))
    }

    fn ty(&self, ctx: impl AsContext<Engine>) -> TableType {
        table_type_from(self.0.ty(ctx.as_context().0)).expect(CHECKED)
    }

    fn size(&self, ctx: impl AsContext<Engine>) -> u32 {
        self.0.size(ctx.as_context().0).try_into().expect(CHECKED)
    }

    fn grow(&self, mut ctx: impl AsContextMut<Engine>, delta: u32, init: Ref<Engine>) -> Result<u32> {
        let mut scope = RootScope::new(ctx.as_context_mut().0);
        let init = ref_to(&init, &mut scope);
        Ok(self.0.grow(&mut scope, delta.into(), init)?.try_into()?)
    }

    fn get(&self, mut ctx: impl AsContextMut<Engine>, index: u32) -> Option<Ref<Engine>> {
        let mut scope = RootScope::new(ctx.as_context_mut().0);
        let reference = self.0.get(&mut scope, index.into())?;
        ref_from(reference, &mut scope)
    }

    fn set(&self, mut ctx: impl AsContextMut<Engine>, index: u32, elem: Ref<Engine>) -> Result<()> {
        let mut scope = RootScope::new(ctx.as_context_mut().0);
        let elem = ref_to(&elem, &mut scope);
        Ok(self.0.set(&mut scope, index.into(), elem)?)
    }
}

impl WasmModule<Engine> for Module {
    fn new(engine: &Engine, bytes: &[u8]) -> Result<Module> {
        let module = weir::Module::new(engine.inner(), bytes)?;
        for import in module.imports() {
            let (namespace, name) = (import.module(), import.name());
            extern_type_from(&import.ty())
                .with_context(|| format!("the import `{namespace}::{name}` has a type that wasm_runtime_layer lacks"))?;
        }
        Ok(Module(module))
    }

    fn exports(&self) -> Box<dyn '_ + Iterator<Item = ExportType<'_>>> {
        Box::new(
            self.0.exports().filter_map(|export| Some(ExportType { name: export.name(), ty: extern_type_from(&export.ty())? })),
        )
    }

    fn get_export(&self, name: &str) -> Option<ExternType> {
        extern_type_from(&self.0.get_export(name)?)
    }

    fn imports(&self) -> Box<dyn '_ + Iterator<Item = ImportType<'_>>> {
        let ty = |import: &weir::ImportType<'_>| extern_type_from(&import.ty()).expect(CHECKED);
        Box::new(self.0.imports().map(move |import| ImportType { module: import.module(), name: import.name(), ty: ty(&import) }))
    }
}

impl WasmInstance<Engine> for Instance {
    fn new(mut store: impl AsContextMut<Engine>, module: &Module, imports: &Imports<Engine>) -> Result<Instance> {
        let item = |import: weir::ImportType<'_>| {
            let (namespace, name) = (import.module(), import.name());
            let item = imports.get_export(namespace, name).map(extern_to);
            item.with_context(|| format!("the import `{namespace}::{name}` is not defined"))
        };
        let imports = module.0.imports().map(item).collect::<Result<Vec<_>>>()?;
        Ok(Instance(weir::Instance::new(store.as_context_mut().0, &module.0, &imports)?))
    }

    fn exports(&self, store: impl AsContext<Engine>) -> Box<dyn Iterator<Item = Export<Engine>>> {
        let store = store.as_context().0;
        let export = |export: weir::Export<'_>| {
            Some(Export { name: export.name().to_owned(), value: extern_from(export.into_extern(), store.as_context())? })
        };
        Box::new(self.0.exports(store).filter_map(export).collect::<Vec<_>>().into_iter())
    }

    fn get_export(&self, store: impl AsContext<Engine>, name: &str) -> Option<Extern<Engine>> {
        let store = store.as_context().0;
        extern_from(self.0.get_export(store, name)?, store)
    }
}
