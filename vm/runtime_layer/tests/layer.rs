//! The layer's own tests, its documented example and the rest of its interface, on Weir.

#[path = "../../../tests/src/engines.rs"]
#[allow(dead_code, reason = "not every test uses everything")]
mod engines;

use anyhow::{Result, bail};
use std::collections::BTreeMap;
use std::sync::Arc;
use wasm_runtime_layer::{
    AsContext, Engine as Layer, Extern, ExternRef, ExternType, Func, FuncType, Global, GlobalType, Imports, Instance, Memory,
    MemoryType, Module, Ref, RefType, Store, Table, TableType, Val, ValType,
};
use weir::{Config, Tier, Trap};

type Backend = weir_runtime_layer::Engine;

/// The default engine, and one that interprets only.
fn engines() -> [Layer<Backend>; 2] {
    let mut config = Config::new();
    config.tier(Tier::Interpreter);
    [Config::new(), config].map(|config| Layer::new(Backend::from(engines::engine(&config).unwrap())))
}

fn instance<T: 'static>(store: &mut Store<T, Backend>, wat: &str, imports: &Imports) -> Result<Instance> {
    let module = Module::new(store.engine(), wat.as_bytes())?;
    Instance::new(store, &module, imports)
}

fn func<T: 'static>(store: &Store<T, Backend>, instance: &Instance, name: &str) -> Func {
    instance.get_export(store, name).and_then(Extern::into_func).unwrap()
}

#[test]
fn one_is_added() {
    for engine in engines() {
        let mut store = Store::new(&engine, ());
        let wat = r#"(module (func (export "add_one") (param i32) (result i32) (i32.add (local.get 0) (i32.const 1))))"#;
        let instance = instance(&mut store, wat, &Imports::default()).unwrap();
        let mut result = [Val::I32(0)];
        func(&store, &instance, "add_one").call(&mut store, &[Val::I32(42)], &mut result).unwrap();
        assert_eq!(result[0], Val::I32(43));
    }
}

#[test]
fn functions_have_several_results() {
    for engine in engines() {
        let mut store = Store::new(&engine, ());
        let ty = FuncType::new([], [ValType::I32, ValType::I32]);
        let get = Func::new(&mut store, ty, |_, _, results| {
            (results[0], results[1]) = (Val::I32(5), Val::I32(4));
            Ok(())
        });
        let mut imports = Imports::new();
        imports.define("host", "get", Extern::Func(get));
        let wat = r#"(module
            (import "host" "get" (func $get (result i32 i32)))
            (func (export "add-sub") (param i32 i32) (result i32 i32) (local $difference i32)
                (local.set $difference (i32.sub (call $get)))
                (i32.add (local.get 0) (local.get 1))
                (local.get $difference)))"#;
        let instance = instance(&mut store, wat, &imports).unwrap();
        let exports: BTreeMap<_, _> = instance.exports(&store).map(|export| (export.name, export.value)).collect();
        let Some(Extern::Func(add_sub)) = exports.get("add-sub") else { panic!("{exports:?}") };
        let mut results = [Val::I32(0), Val::I32(0)];
        add_sub.call(&mut store, &[Val::I32(5), Val::I32(7)], &mut results).unwrap();
        assert_eq!(results, [Val::I32(12), Val::I32(1)]);
    }
}

#[test]
fn host_functions_use_the_store_and_fail() {
    for engine in engines() {
        let mut store = Store::new(&engine, vec![1]);
        let push = Func::new(&mut store, FuncType::new([ValType::I64], []), |mut store, params, _| match params {
            [Val::I64(0)] => bail!("there is no nothing"),
            [Val::I64(number)] => {
                store.data_mut().push(*number);
                Ok(())
            }
            params => panic!("{params:?}"),
        });
        let mut imports = Imports::new();
        imports.define("host", "push", Extern::Func(push));
        let wat = r#"(module
            (import "host" "push" (func $push (param i64)))
            (func (export "run") (param i64) (call $push (local.get 0)) (call $push (i64.const 7)))
            (func (export "trap") unreachable))"#;
        let instance = instance(&mut store, wat, &imports).unwrap();
        let run = func(&store, &instance, "run");
        run.call(&mut store, &[Val::I64(6)], &mut []).unwrap();
        let error = run.call(&mut store, &[Val::I64(0)], &mut []).unwrap_err();
        assert!(error.chain().any(|cause| cause.to_string() == "there is no nothing"), "{error:?}");
        let error = func(&store, &instance, "trap").call(&mut store, &[], &mut []).unwrap_err();
        assert_eq!(error.downcast_ref(), Some(&Trap::UnreachableCodeReached));
        assert!(run.call(&mut store, &[], &mut []).is_err() && run.call(&mut store, &[Val::I32(1)], &mut []).is_err());
        assert_eq!(run.ty(&store), FuncType::new([ValType::I64], []));
        assert_eq!(store.into_data(), [1, 6, 7]);
    }
}

#[test]
fn values_of_every_type_cross() {
    for engine in engines() {
        let mut store = Store::new(&engine, ());
        let wat = r#"(module
            (func (export "all") (param i32 i64 f32 f64 v128 funcref externref) (result externref funcref v128 f64 f32 i64 i32)
                (local.get 6) (local.get 5) (local.get 4) (local.get 3) (local.get 2) (local.get 1) (local.get 0)))"#;
        let instance = instance(&mut store, wat, &Imports::default()).unwrap();
        let all = func(&store, &instance, "all");
        let value = ExternRef::new(&mut store, String::from("mine"));
        let params = [
            Val::I32(-1),
            Val::I64(i64::MIN),
            Val::F32(1.5),
            Val::F64(-2.5),
            Val::V128(u128::MAX - 3),
            Val::FuncRef(Some(all.clone())),
            Val::ExternRef(Some(value)),
        ];
        let mut results: Vec<Val> = (0..7).map(|_| Val::I32(0)).collect();
        all.call(&mut store, &params, &mut results).unwrap();
        let [Val::ExternRef(Some(value)), Val::FuncRef(Some(again)), numbers @ ..] = &results[..] else { panic!("{results:?}") };
        assert_eq!(value.downcast::<String, _, _>(store.as_context()).unwrap(), "mine");
        assert!(value.downcast::<u8, _, _>(store.as_context()).is_err());
        assert_eq!(again.ty(&store), all.ty(&store));
        assert_eq!(numbers, [Val::V128(u128::MAX - 3), Val::F64(-2.5), Val::F32(1.5), Val::I64(i64::MIN), Val::I32(-1)]);
        let nulls = [Val::FuncRef(None), Val::ExternRef(None)];
        let params: Vec<Val> = params[..5].iter().cloned().chain(nulls).collect();
        all.call(&mut store, &params, &mut results).unwrap();
        assert!(matches!(&results[..2], [Val::ExternRef(None), Val::FuncRef(None)]), "{results:?}");
    }
}

#[test]
fn items_are_made_read_and_changed() {
    for engine in engines() {
        let mut store = Store::new(&engine, ());
        let memory = Memory::new(&mut store, MemoryType::new(1, Some(3))).unwrap();
        let table = Table::new(&mut store, TableType::new(RefType::FuncRef, 2, Some(5)), Ref::FuncRef(None)).unwrap();
        let global = Global::new(&mut store, Val::I64(3), true);
        let constant = Global::new(&mut store, Val::F32(0.5), false);
        let mut imports = Imports::new();
        imports.define("host", "memory", Extern::Memory(memory.clone()));
        imports.define("host", "table", Extern::Table(table.clone()));
        imports.define("host", "global", Extern::Global(global.clone()));
        let wat = r#"(module
            (import "host" "memory" (memory 1 3)) (import "host" "table" (table 2 5 funcref))
            (import "host" "global" (global $g (mut i64)))
            (data (i32.const 4) "data") (elem (i32.const 1) $f)
            (func $f (export "f") (global.set $g (i64.add (global.get $g) (i64.const 1))))
            (export "again" (memory 0)))"#;
        let instance = instance(&mut store, wat, &imports).unwrap();

        let mut bytes = [0; 4];
        memory.read(&store, 4, &mut bytes).unwrap();
        assert_eq!(&bytes, b"data");
        memory.write(&mut store, 5, b"i").unwrap();
        let again = instance.get_export(&store, "again").and_then(Extern::into_memory).unwrap();
        again.read(&store, 4, &mut bytes).unwrap();
        assert_eq!(&bytes, b"dita");
        assert!(memory.read(&store, 65_534, &mut bytes).is_err() && memory.write(&mut store, 65_534, &bytes).is_err());
        assert_eq!((memory.grow(&mut store, 2).unwrap(), memory.current_pages(&store)), (1, 3));
        assert!(memory.grow(&mut store, 1).is_err());
        assert_eq!(memory.ty(&store).maximum_pages(), Some(3));

        let Some(Ref::FuncRef(Some(f))) = table.get(&mut store, 1) else { panic!("the segment was written") };
        f.call(&mut store, &[], &mut []).unwrap();
        assert_eq!(global.get(&mut store), Val::I64(4));
        assert!(matches!(table.get(&mut store, 0), Some(Ref::FuncRef(None))) && table.get(&mut store, 2).is_none());
        assert_eq!((table.grow(&mut store, 3, Ref::FuncRef(Some(f.clone()))).unwrap(), table.size(&store)), (2, 5));
        assert!(table.grow(&mut store, 1, Ref::FuncRef(None)).is_err());
        table.set(&mut store, 0, Ref::FuncRef(Some(f))).unwrap();
        assert!(table.set(&mut store, 5, Ref::FuncRef(None)).is_err());
        assert_eq!(table.ty(&store), TableType::new(RefType::FuncRef, 2, Some(5)));

        global.set(&mut store, Val::I64(9)).unwrap();
        assert_eq!((global.get(&mut store), global.ty(&store)), (Val::I64(9), GlobalType::new(ValType::I64, true)));
        assert!(global.set(&mut store, Val::I32(9)).is_err() && constant.set(&mut store, Val::F32(1.0)).is_err());
    }
}

#[test]
fn types_are_listed_and_others_are_refused_or_left_out() {
    let [engine, _] = engines();
    let module = Module::new(
        &engine,
        br#"(module
            (import "a" "f" (func (param i32) (result f64))) (import "a" "m" (memory 1))
            (tag (export "tag")) (memory (export "wide") i64 1) (table (export "t") 1 externref)
            (global (export "g") (mut v128) (v128.const i64x2 1 2)) (func (export "exn") (param exnref)))"#,
    )
    .unwrap();
    let imports: Vec<_> = module.imports(&engine).map(|import| (import.module, import.name, import.ty)).collect();
    let [("a", "f", ExternType::Func(func)), ("a", "m", ExternType::Memory(memory))] = &imports[..] else {
        panic!("{imports:?}")
    };
    assert_eq!((func, memory), (&FuncType::new([ValType::I32], [ValType::F64]), &MemoryType::new(1, None)));
    let exports: Vec<_> = module.exports(&engine).map(|export| export.name.to_owned()).collect();
    assert_eq!(exports, ["t", "g"]);
    let Some(ExternType::Global(global)) = module.get_export(&engine, "g") else { panic!("it is exported") };
    assert_eq!(global, GlobalType::new(ValType::V128, true));
    assert!(module.get_export(&engine, "tag").is_none());
    for import in [r#"(tag)"#, r#"(memory i64 1)"#, r#"(func (param exnref))"#, r#"(table 1 (ref null exn))"#] {
        let error = Module::new(&engine, format!(r#"(module (import "a" "b" {import}))"#).as_bytes()).unwrap_err();
        assert!(error.to_string().contains("`a::b`"), "{error}");
    }
    let mut store = Store::new(&engine, ());
    let error = Instance::new(&mut store, &module, &Imports::default()).unwrap_err();
    assert_eq!(error.to_string(), "the import `a::f` is not defined");
    assert!(Module::new(&engine, b"nonsense").is_err());
}

#[test]
fn host_values_are_dropped_when_nothing_holds_them() {
    for engine in engines() {
        let mut store = Store::new(&engine, ());
        let wat = r#"(module (func (export "id") (param externref) (result externref) (local.get 0)))"#;
        let instance = instance(&mut store, wat, &Imports::default()).unwrap();
        let id = func(&store, &instance, "id");
        let alive = Arc::new(());
        for _ in 0..10_000 {
            let value = ExternRef::new(&mut store, alive.clone());
            let mut results = [Val::ExternRef(None)];
            id.call(&mut store, &[Val::ExternRef(Some(value))], &mut results).unwrap();
            assert!(matches!(results[0], Val::ExternRef(Some(_))));
        }
        assert!(Arc::strong_count(&alive) < 9_000, "{} are alive", Arc::strong_count(&alive));
        drop(store);
        assert_eq!(Arc::strong_count(&alive), 1);
    }
}
