//! A typical host program for wasmtime: it uses only wasmtime's documented API, and names the crate `wasmtime`
//! throughout. The assertions state its behaviour there (version 48, with the features in `programs/bench/embed/Cargo.toml`).

#[path = "hosts.rs"]
mod hosts;
#[path = "kernels.rs"]
mod kernels;
#[path = "settings.rs"]
mod settings;
#[path = "values.rs"]
mod values;
#[path = "waiting.rs"]
mod waiting;

use crate::wasmtime;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use wasmtime::*;

/// A part of [`run`], with the setting that it needs.
pub type Part = (&'static str, fn(&mut Config), fn(&Engine) -> Result<()>);

pub const PARTS: &[Part] = &[
    ("typed and dynamic calls", |_| (), typed_and_dynamic_calls),
    ("host functions", |_| (), host_functions),
    ("callers", |_| (), callers),
    ("memories", |_| (), memories),
    ("tables and references", |_| (), tables_and_references),
    ("globals", |_| (), globals),
    ("modules and types", |_| (), modules_and_types),
    ("linkers", |_| (), linkers),
    ("instances share", |_| (), instances_share),
    ("failures", |_| (), failures),
    ("backtraces", |_| (), backtraces),
    ("panics", |_| (), panics),
    ("limits", |_| (), limits),
    ("a custom limiter", |_| (), custom_limiter),
    ("threads", |_| (), threads),
    ("fuel", |config| _ = config.consume_fuel(true), fuel),
    ("costs of instructions", |config| _ = config.consume_fuel(true).operator_cost(COSTS), costs_of_instructions),
    ("errors of anyhow", |_| (), settings::errors_of_anyhow),
    ("proposals", |_| (), settings::proposals),
    ("settings", settings::settings, settings::settings_have_effect),
    ("small reservations", settings::small_reservations, settings::memories_outgrow_reservations),
    ("limits of an engine", settings::pooling, settings::limits_of_an_engine),
    ("raw values", |_| (), settings::raw_values),
    ("hooks", |_| (), values::hooks),
    ("types and defaults", |_| (), values::types_and_defaults),
    ("typed references", |_| (), values::typed_references),
    ("commands", |_| (), values::commands),
    ("errors", |_| (), values::errors),
    ("plug-ins", |_| (), hosts::plug_ins),
    ("a plug-in with a kernel", kernels::plug_in_settings, kernels::plug_in_with_a_kernel),
    ("rules", kernels::rule_settings, hosts::rules),
    ("contracts on large stacks", kernels::contract_settings, kernels::contracts_on_large_stacks),
    ("formatters", |_| (), hosts::formatters),
    ("contracts", |config| _ = config.consume_fuel(true), hosts::contracts),
    ("epochs", |config| _ = config.epoch_interruption(true), epochs),
    ("deep recursion", |config| _ = config.max_wasm_stack(256 << 10), deep_recursion),
];

/// Runs every part with its own engine; `configure` is called last, and may choose the tiers.
pub fn run(configure: &dyn Fn(&mut Config)) -> Result<()> {
    use wasmtime::error::Context;
    for (name, change, part) in PARTS {
        let mut config = Config::new();
        change(&mut config);
        configure(&mut config);
        part(&Engine::new(&config)?).context(*name)?;
    }
    Ok(())
}

fn instance<T: 'static>(engine: &Engine, data: T, wat: &str) -> Result<(Store<T>, Instance)> {
    let module = Module::new(engine, wat)?;
    let mut store = Store::new(engine, data);
    let instance = Instance::new(&mut store, &module, &[])?;
    Ok((store, instance))
}

fn typed_and_dynamic_calls(engine: &Engine) -> Result<()> {
    let (mut store, instance) = instance(
        engine,
        (),
        r#"(module
            (func (export "mix") (param i32 i64 f32 f64) (result f64 f32 i64 i32)
                local.get 3 local.get 2 local.get 1 local.get 0)
            (func (export "sum") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
            (func (export "nothing")))"#,
    )?;
    type Mix = TypedFunc<(i32, i64, f32, f64), (f64, f32, i64, i32)>;
    let mix: Mix = instance.get_typed_func(&mut store, "mix")?;
    assert_eq!(mix.call(&mut store, (1, 2, 3.5, 4.5))?, (4.5, 3.5, 2, 1));
    let sum = instance.get_func(&mut store, "sum").unwrap();
    assert_eq!(sum.typed::<(u32, u32), u32>(&store)?.call(&mut store, (u32::MAX, 2))?, 1);
    let mut results = [Val::I32(0)];
    sum.call(&mut store, &[Val::I32(20), 22.into()], &mut results)?;
    assert_eq!(results[0].i32(), Some(42));
    assert_eq!((results[0].unwrap_i32(), results[0].i64()), (42, None));
    let nothing = instance.get_typed_func::<(), ()>(&mut store, "nothing")?;
    nothing.call(&mut store, ())?;
    assert!(instance.get_typed_func::<i64, ()>(&mut store, "nothing").is_err());
    assert!(instance.get_typed_func::<(), ()>(&mut store, "missing").is_err());
    assert!(sum.call(&mut store, &[Val::I32(1)], &mut results).is_err(), "too few arguments");
    assert!(sum.call(&mut store, &[Val::I32(1), Val::I64(2)], &mut results).is_err(), "of another type");
    assert!(instance.get_func(&mut store, "missing").is_none());

    let ty = sum.ty(&store);
    assert_eq!((ty.params().len(), ty.results().len()), (2, 1));
    assert!(ty.params().all(|ty| matches!(ty, ValType::I32)) && ty.result(0).unwrap().is_i32());
    Ok(())
}

#[derive(Default)]
struct Log {
    lines: Vec<String>,
    calls: usize,
}

fn host_functions(engine: &Engine) -> Result<()> {
    let module = Module::new(
        engine,
        r#"(module
            (import "host" "log" (func $log (param i32 i32)))
            (import "host" "half" (func $half (param i32) (result i32)))
            (import "host" "pair" (func $pair (result i32 f64)))
            (import "host" "raw" (func $raw (param i64 f32) (result f32)))
            (memory (export "memory") 1)
            (data (i32.const 16) "first line")
            (data (i32.const 32) "second line")
            (func (export "run") (param i32) (result i32)
                (call $log (i32.const 16) (i32.const 10))
                (call $log (i32.const 32) (i32.const 11))
                (drop (call $pair)) (drop)
                (drop (call $raw (i64.const 3) (f32.const 0.5)))
                (call $half (local.get 0))))"#,
    )?;
    let mut linker: Linker<Log> = Linker::new(engine);
    linker.func_wrap("host", "log", |mut caller: Caller<'_, Log>, offset: u32, len: u32| -> Result<()> {
        let Some(Extern::Memory(memory)) = caller.get_export("memory") else { bail!("no memory") };
        let (data, log) = memory.data_and_store_mut(&mut caller);
        let bytes = data.get(offset as usize..).and_then(|rest| rest.get(..len as usize));
        let bytes = bytes.ok_or_else(|| Error::msg("out of the memory"))?;
        log.lines.push(String::from_utf8_lossy(bytes).into_owned());
        Ok(())
    })?;
    linker.func_wrap("host", "half", |n: i32| -> Result<i32> {
        ensure!(n % 2 == 0, "{n} is odd");
        Ok(n / 2)
    })?;
    linker.func_wrap("host", "pair", |mut caller: Caller<'_, Log>| {
        caller.data_mut().calls += 1;
        (7i32, 0.25f64)
    })?;
    let ty = FuncType::new(engine, [ValType::I64, ValType::F32], [ValType::F32]);
    linker.func_new("host", "raw", ty, |caller, params, results| {
        assert!(caller.data().lines.len() == 2);
        results[0] = Val::F32((params[0].unwrap_i64() as f32 + params[1].unwrap_f32()).to_bits());
        Ok(())
    })?;
    let mut store = Store::new(engine, Log::default());
    let instance = linker.instantiate(&mut store, &module)?;
    let run = instance.get_typed_func::<i32, i32>(&mut store, "run")?;
    assert_eq!(run.call(&mut store, 84)?, 42);
    assert_eq!(store.data().lines, ["first line", "second line"]);
    store.data_mut().lines.clear();
    let error = run.call(&mut store, 3).unwrap_err();
    assert_eq!(error.root_cause().to_string(), "3 is odd");
    assert_eq!(store.into_data().calls, 2);
    Ok(())
}

/// Host functions of many types, called by the host and by the guest.
fn callers(engine: &Engine) -> Result<()> {
    let mut store = Store::new(engine, 10u64);
    let add = Func::wrap(&mut store, |a: i32, b: i32| a.wrapping_add(b));
    let count = Func::wrap(&mut store, |mut caller: Caller<'_, u64>, by: u64| -> u64 {
        assert!(caller.get_export("anything").is_none(), "the host calls it");
        *caller.data_mut() += by;
        *caller.data()
    });
    let twice = Func::wrap(&mut store, |mut caller: Caller<'_, u64>, func: Option<Func>| -> Result<i32> {
        let func = func.ok_or_else(|| format_err!("null"))?.typed::<i32, i32>(&caller)?;
        let once = func.call(&mut caller, 1)?;
        func.call(&mut caller, once)
    });
    assert_eq!(add.typed::<(i32, i32), i32>(&store)?.call(&mut store, (40, 2))?, 42);
    assert_eq!(count.typed::<u64, u64>(&store)?.call(&mut store, 5)?, 15);
    let module = Module::new(
        engine,
        r#"(module
            (import "" "twice" (func $twice (param funcref) (result i32)))
            (import "" "add" (func $add (param i32 i32) (result i32)))
            (func $triple (param i32) (result i32) (call $add (local.get 0) (call $add (local.get 0) (local.get 0))))
            (elem declare func $triple)
            (func (export "nine") (result i32) (call $twice (ref.func $triple)))
            (func (export "null") (result i32) (call $twice (ref.null func))))"#,
    )?;
    let instance = Instance::new(&mut store, &module, &[twice.into(), Extern::Func(add)])?;
    assert_eq!(instance.get_typed_func::<(), i32>(&mut store, "nine")?.call(&mut store, ())?, 9);
    assert!(instance.get_typed_func::<(), i32>(&mut store, "null")?.call(&mut store, ()).is_err());

    fn generic(mut store: impl AsContextMut<Data = u64>) -> u64 {
        *store.as_context_mut().data_mut() += 1;
        *store.as_context().data()
    }
    assert_eq!((generic(&mut store), generic(store.as_context_mut()), *store.data()), (16, 17, 17));
    Ok(())
}

fn memories(engine: &Engine) -> Result<()> {
    let mut store = Store::new(engine, ());
    let memory = Memory::new(&mut store, MemoryType::new(1, Some(3)))?;
    assert_eq!((memory.size(&store), memory.data_size(&store), memory.page_size(&store)), (1, 65536, 65536));
    memory.write(&mut store, 65534, b"ab")?;
    let mut read = [0; 2];
    memory.read(&store, 65534, &mut read)?;
    assert_eq!(&read, b"ab");
    assert!(memory.write(&mut store, 65535, b"cd").is_err());
    assert!(memory.read(&store, usize::MAX, &mut read).is_err());
    memory.data_mut(&mut store)[0] = 7;
    assert_eq!((memory.data(&store)[0], memory.data(&store)[65535]), (7, b'b'));
    assert_eq!(memory.grow(&mut store, 2)?, 1);
    assert!(memory.grow(&mut store, 1).is_err());
    assert_eq!((memory.size(&store), memory.data(&store).len()), (3, 3 << 16));
    let ty = memory.ty(&store);
    assert_eq!((ty.minimum(), ty.maximum(), ty.is_64(), ty.is_shared()), (1, Some(3), false, false));
    assert!(MemoryType::new64(1, None).is_64());

    let module = Module::new(
        engine,
        r#"(module
            (import "host" "memory" (memory 1))
            (func (export "peek") (param i32) (result i32) (i32.load8_u (local.get 0)))
            (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0))))"#,
    )?;
    let instance = Instance::new(&mut store, &module, &[memory.into()])?;
    let peek = instance.get_typed_func::<i32, i32>(&mut store, "peek")?;
    assert_eq!(peek.call(&mut store, 65535)?, i32::from(b'b'));
    let error = peek.call(&mut store, -1).unwrap_err();
    assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::MemoryOutOfBounds));
    assert_eq!(instance.get_typed_func::<i32, i32>(&mut store, "grow")?.call(&mut store, 1)?, -1);
    Ok(())
}

fn tables_and_references(engine: &Engine) -> Result<()> {
    let mut store = Store::new(engine, ());
    let one = Func::wrap(&mut store, || 1i32);
    let table = Table::new(&mut store, TableType::new(RefType::FUNCREF, 2, Some(4)), Ref::Func(None))?;
    assert!(table.get(&mut store, 0).unwrap().is_null() && table.get(&mut store, 2).is_none());
    table.set(&mut store, 1, Ref::Func(Some(one)))?;
    assert_eq!(table.grow(&mut store, 2, Ref::Func(Some(one)))?, 2);
    assert!(table.grow(&mut store, 1, Ref::Func(None)).is_err());
    assert!(table.set(&mut store, 4, Ref::Func(None)).is_err());
    table.fill(&mut store, 2, Ref::null(&HeapType::Func), 1)?;
    Table::copy(&mut store, &table, 0, &table, 3, 1)?;
    let filled: Vec<bool> = (0..4).map(|i| table.get(&mut store, i).unwrap().unwrap_func().is_some()).collect();
    assert_eq!(filled, [true, true, false, true]);
    let ty = table.ty(&store);
    assert_eq!((ty.minimum(), ty.maximum(), table.size(&store)), (2, Some(4), 4));
    assert!(ty.element().is_nullable());

    let module = Module::new(
        engine,
        r#"(module
            (import "host" "table" (table 2 funcref))
            (type $answer (func (result i32)))
            (type $other (func (param i64)))
            (func (export "call") (param i32) (result i32) (call_indirect (type $answer) (local.get 0)))
            (func (export "wrong") (param i32) (call_indirect (type $other) (i64.const 0) (local.get 0)))
            (func (export "id") (param funcref) (result funcref) (local.get 0)))"#,
    )?;
    let instance = Instance::new(&mut store, &module, &[table.into()])?;
    let call = instance.get_typed_func::<i32, i32>(&mut store, "call")?;
    assert_eq!(call.call(&mut store, 3)?, 1);
    assert_eq!(call.call(&mut store, 2).unwrap_err().downcast_ref::<Trap>(), Some(&Trap::IndirectCallToNull));
    assert!(call.call(&mut store, 4).unwrap_err().is::<Trap>());
    let wrong = instance.get_typed_func::<i32, ()>(&mut store, "wrong")?;
    assert_eq!(wrong.call(&mut store, 3).unwrap_err().downcast_ref::<Trap>(), Some(&Trap::BadSignature));
    let id = instance.get_typed_func::<Option<Func>, Option<Func>>(&mut store, "id")?;
    assert!(id.call(&mut store, None)?.is_none());
    let back = id.call(&mut store, Some(call.func().to_owned()))?.unwrap();
    assert_eq!(back.typed::<i32, i32>(&store)?.call(&mut store, 0)?, 1);
    assert!(Val::null_func_ref().unwrap_funcref().is_none() && Val::from(one).funcref().unwrap().is_some());
    Ok(())
}

fn globals(engine: &Engine) -> Result<()> {
    let mut store = Store::new(engine, ());
    let counter = Global::new(&mut store, GlobalType::new(ValType::I64, Mutability::Var), Val::I64(1))?;
    let fixed = Global::new(&mut store, GlobalType::new(ValType::F64, Mutability::Const), 2.5f64.into())?;
    assert!(fixed.set(&mut store, Val::F64(0)).is_err(), "constant");
    assert!(counter.set(&mut store, Val::I32(0)).is_err(), "of another type");
    assert!(Global::new(&mut store, GlobalType::new(ValType::I32, Mutability::Var), Val::I64(1)).is_err());
    let module = Module::new(
        engine,
        r#"(module
            (import "g" "counter" (global $counter (mut i64)))
            (import "g" "fixed" (global $fixed f64))
            (global (export "own") (mut i32) (i32.const 5))
            (func (export "add") (global.set $counter (i64.add (global.get $counter) (i64.trunc_f64_s (global.get $fixed))))))"#,
    )?;
    let mut linker = Linker::new(engine);
    linker.define(&store, "g", "counter", counter)?.define(&store, "g", "fixed", fixed)?;
    let instance = linker.instantiate(&mut store, &module)?;
    instance.get_typed_func::<(), ()>(&mut store, "add")?.call(&mut store, ())?;
    assert_eq!(counter.get(&mut store).unwrap_i64(), 3);
    counter.set(&mut store, Val::I64(i64::MAX - 1))?;
    instance.get_typed_func::<(), ()>(&mut store, "add")?.call(&mut store, ())?;
    assert_eq!(counter.get(&mut store).i64(), Some(i64::MIN));
    let own = instance.get_global(&mut store, "own").unwrap();
    own.set(&mut store, Val::I32(6))?;
    assert_eq!(own.get(&mut store).i32(), Some(6));
    assert!(own.ty(&store).mutability().is_var() && own.ty(&store).content().is_i32());
    Ok(())
}

fn modules_and_types(engine: &Engine) -> Result<()> {
    let module = Module::new(
        engine,
        r#"(module $named
            (import "env" "f" (func (param i32 f64) (result i64)))
            (import "env" "memory" (memory 1 2))
            (import "env" "table" (table 3 funcref))
            (import "env" "global" (global (mut i32)))
            (func (export "run")) (global (export "limit") i32 (i32.const 4)))"#,
    )?;
    assert_eq!(module.name(), Some("named"));
    let imports: Vec<(String, String)> = module.imports().map(|i| (i.module().into(), i.name().into())).collect();
    assert_eq!(imports[3], ("env".into(), "global".into()));
    let types: Vec<ExternType> = module.imports().map(|import| import.ty()).collect();
    let func = types[0].unwrap_func();
    assert_eq!((func.params().len(), func.result(0).is_some_and(|ty| ty.is_i64())), (2, true));
    assert_eq!(types[1].memory().map(|ty| (ty.minimum(), ty.maximum())), Some((1, Some(2))));
    assert_eq!(types[2].table().map(|ty| ty.minimum()), Some(3));
    assert!(types[3].global().is_some_and(|ty| ty.mutability().is_var()) && types[3].func().is_none());
    let exports: Vec<&str> = module.exports().map(|export| export.name()).collect();
    assert_eq!(exports, ["run", "limit"]);
    assert!(matches!(module.get_export("run"), Some(ExternType::Func(_))) && module.get_export("f").is_none());

    assert!(Module::validate(engine, b"\0asm\x01\0\0\0").is_ok() && Module::validate(engine, b"\0asm").is_err());
    assert!(Module::new(engine, "(module (func (result i32)))").is_err());
    assert!(Module::new(engine, "(module").is_err());
    assert!(Module::from_binary(engine, b"(module)").is_err());
    assert!(Module::from_file(engine, "/nowhere/at/all.wasm").is_err());
    let index = module.get_export_index("limit").unwrap();
    let small = Module::new(engine, r#"(module (func (export "f") (result i32) (i32.const 8)))"#)?;
    let f = small.get_export_index("f").unwrap();
    let mut store = Store::new(engine, ());
    let instance = Instance::new(&mut store, &small, &[])?;
    let func = instance.get_module_export(&mut store, &f).and_then(Extern::into_func).unwrap();
    assert_eq!(func.typed::<(), i32>(&store)?.call(&mut store, ())?, 8);
    assert!(instance.get_module_export(&mut store, &index).is_none(), "of another module");
    assert!(engine.weak().upgrade().is_some());
    let clone = module.clone();
    assert!(Module::same(&module, &clone) && Engine::same(engine, module.engine()));
    Ok(())
}

fn linkers(engine: &Engine) -> Result<()> {
    let mut store = Store::new(engine, 0usize);
    let mut linker: Linker<usize> = Linker::new(engine);
    linker.func_wrap("a", "one", || 1i32)?;
    assert!(linker.func_wrap("a", "one", || 2i32).is_err(), "defined already");
    linker.allow_shadowing(true);
    linker.func_wrap("a", "one", |mut caller: Caller<'_, usize>| -> i32 {
        *caller.data_mut() += 1;
        1
    })?;
    linker.allow_shadowing(false).alias("a", "one", "b", "uno")?;
    linker.alias_module("b", "c")?;
    let module = Module::new(
        engine,
        r#"(module
            (import "a" "one" (func $one (result i32)))
            (import "c" "uno" (func $uno (result i32)))
            (func (export "two") (result i32) (i32.add (call $one) (call $uno))))"#,
    )?;
    let pre = linker.instantiate_pre(&module)?;
    for count in [2, 4] {
        let instance = pre.instantiate(&mut store)?;
        assert_eq!(instance.get_typed_func::<(), i32>(&mut store, "two")?.call(&mut store, ())?, 2);
        assert_eq!(*store.data(), count);
    }
    let needy =
        Module::new(engine, r#"(module (import "a" "none" (func $f (result i32))) (func (export "f") (drop (call $f))))"#)?;
    let error = linker.instantiate(&mut store, &needy).err().unwrap();
    assert!(error.to_string().starts_with("unknown import"), "{error}");
    assert!(error.is::<UnknownImportError>());
    let wrong = Module::new(engine, r#"(module (import "a" "one" (func (param i32))))"#)?;
    let error = linker.instantiate(&mut store, &wrong).err().unwrap();
    assert!(error.to_string().starts_with("incompatible import type for `a::one`"), "{error}");
    linker.define_unknown_imports_as_traps(&needy)?;
    let instance = linker.instantiate(&mut store, &needy)?;
    assert!(instance.get_typed_func::<(), ()>(&mut store, "f")?.call(&mut store, ()).is_err());
    assert!(linker.get(&mut store, "a", "one")?.into_func().is_some() && linker.get(&mut store, "z", "one").is_err());
    assert_eq!(linker.iter(&mut store).filter(|(module, ..)| *module == "a").count(), 2);
    assert!(Instance::new(&mut store, &needy, &[]).is_err(), "too few imports");

    let mut defaults = Linker::new(engine);
    defaults.define_unknown_imports_as_default_values(&mut store, &needy)?;
    let instance = defaults.instantiate(&mut store, &needy)?;
    instance.get_typed_func::<(), ()>(&mut store, "f")?.call(&mut store, ())?;

    let mut modules: Linker<usize> = Linker::new(engine);
    let reactor = Module::new(
        engine,
        r#"(module
            (global $ready (mut i32) (i32.const 0))
            (func (export "_initialize") (global.set $ready (i32.const 1)))
            (func (export "ready") (result i32) (global.get $ready)))"#,
    )?;
    let command = Module::new(
        engine,
        r#"(module
            (global $calls (mut i32) (i32.const 0))
            (func (export "_start"))
            (func (export "calls") (result i32)
                (global.set $calls (i32.add (global.get $calls) (i32.const 1))) (global.get $calls)))"#,
    )?;
    modules.module(&mut store, "reactor", &reactor)?.module(&mut store, "command", &command)?;
    for (module, name) in [("reactor", "ready"), ("command", "calls"), ("command", "calls")] {
        let func = modules.get(&mut store, module, name)?.into_func().unwrap();
        assert_eq!(func.typed::<(), i32>(&store)?.call(&mut store, ())?, 1, "{module}");
    }
    modules.get_default(&mut store, "command")?.typed::<(), ()>(&store)?.call(&mut store, ())
}

fn instances_share(engine: &Engine) -> Result<()> {
    let library = Module::new(
        engine,
        r#"(module $library
            (memory (export "memory") 1)
            (table (export "table") 1 funcref)
            (global (export "count") (mut i32) (i32.const 0))
            (func $store (export "store") (param i32) (i32.store (i32.const 0) (local.get 0)))
            (elem (i32.const 0) $store))"#,
    )?;
    let user = Module::new(
        engine,
        r#"(module $user
            (import "library" "memory" (memory 1))
            (import "library" "table" (table 1 funcref))
            (import "library" "count" (global $count (mut i32)))
            (import "library" "store" (func $store (param i32)))
            (func (export "run") (result i32)
                (call $store (i32.const 40))
                (global.set $count (i32.const 2))
                (call_indirect (param i32) (i32.add (i32.load (i32.const 0)) (global.get $count)) (i32.const 0))
                (i32.load (i32.const 0))))"#,
    )?;
    let mut store = Store::new(engine, ());
    let mut linker = Linker::new(engine);
    let instance = linker.instantiate(&mut store, &library)?;
    linker.instance(&mut store, "library", instance)?;
    let user = linker.instantiate(&mut store, &user)?;
    assert_eq!(user.get_typed_func::<(), i32>(&mut store, "run")?.call(&mut store, ())?, 42);
    assert_eq!(instance.get_global(&mut store, "count").unwrap().get(&mut store).i32(), Some(2));
    let names: Vec<String> = instance.exports(&mut store).map(|export| export.name().to_string()).collect();
    assert_eq!(names, ["memory", "table", "count", "store"]);
    assert_eq!(instance.exports(&mut store).filter_map(|export| export.into_func()).count(), 1);
    assert_eq!(instance.module(&store).name(), Some("library"));
    assert!(instance.get_memory(&mut store, "memory").is_some() && instance.get_table(&mut store, "memory").is_none());
    Ok(())
}

#[derive(Debug, PartialEq)]
struct Custom(u32);

impl std::fmt::Display for Custom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "custom {}", self.0)
    }
}

impl std::error::Error for Custom {}

fn failures(engine: &Engine) -> Result<()> {
    let mut linker: Linker<()> = Linker::new(engine);
    linker.func_wrap("host", "fail", |code: u32| -> Result<()> { Err(Custom(code).into()) })?;
    linker.func_wrap("host", "trap", || -> Result<()> { Err(Trap::Interrupt.into()) })?;
    let module = Module::new(
        engine,
        r#"(module
            (import "host" "fail" (func $fail (param i32)))
            (import "host" "trap" (func $trap))
            (memory 1)
            (func (export "fail") (call $fail (i32.const 3)))
            (func (export "trap") (call $trap))
            (func (export "unreachable") (unreachable))
            (func (export "divide") (drop (i32.div_s (i32.const 1) (i32.const 0))))
            (func (export "overflow") (drop (i32.div_s (i32.const 0x80000000) (i32.const -1))))
            (func (export "convert") (drop (i32.trunc_f32_s (f32.const nan))))
            (func (export "memory") (drop (i64.load (i32.const 65529)))))"#,
    )?;
    let mut store = Store::new(engine, ());
    let instance = linker.instantiate(&mut store, &module)?;
    let mut call = |name: &str| {
        let func = instance.get_typed_func::<(), ()>(&mut store, name).unwrap();
        func.call(&mut store, ()).unwrap_err()
    };
    for (name, trap) in [
        ("unreachable", Trap::UnreachableCodeReached),
        ("divide", Trap::IntegerDivisionByZero),
        ("overflow", Trap::IntegerOverflow),
        ("convert", Trap::BadConversionToInteger),
        ("memory", Trap::MemoryOutOfBounds),
        ("trap", Trap::Interrupt),
    ] {
        let error = call(name);
        assert_eq!(error.downcast_ref::<Trap>(), Some(&trap), "{name}");
        assert!(error.is::<WasmBacktrace>(), "{name}");
    }
    let error = call("fail");
    assert_eq!((error.downcast_ref::<Custom>(), error.is::<Trap>()), (Some(&Custom(3)), false));
    assert_eq!(error.downcast::<Custom>().unwrap(), Custom(3));

    let error = Error::msg("inner").context("outer");
    assert_eq!((error.to_string(), format!("{error:#}")), ("outer".into(), "outer: inner".into()));
    assert_eq!(error.chain().map(|error| error.to_string()).collect::<Vec<_>>(), ["outer", "inner"]);
    assert_eq!(Error::msg("text").downcast_ref::<&str>(), Some(&"text"));
    let error: Error = Custom(4).into();
    assert!(error.is::<Custom>() && error.downcast::<Trap>().is_err());
    let io = std::fs::read("/nowhere/at/all").map_err(Error::from).unwrap_err();
    assert_eq!(io.downcast_ref::<std::io::Error>().unwrap().kind(), std::io::ErrorKind::NotFound);
    use wasmtime::error::Context;
    let none: Result<u32> = None.context("nothing there");
    assert_eq!(none.unwrap_err().to_string(), "nothing there");
    match call("divide").downcast_ref::<Trap>() {
        Some(Trap::IntegerDivisionByZero) => Ok(()),
        other => bail!("{other:?}"),
    }
}

fn backtraces(engine: &Engine) -> Result<()> {
    let (mut store, instance) = instance(
        engine,
        (),
        r#"(module $traced
            (func $leaf (nop) (unreachable))
            (func $middle (call $leaf))
            (func (export "top") (call $middle)))"#,
    )?;
    let top = instance.get_typed_func::<(), ()>(&mut store, "top")?;
    let error = top.call(&mut store, ()).unwrap_err();
    let trace = error.downcast_ref::<WasmBacktrace>().unwrap();
    let frames: Vec<(u32, Option<&str>)> = trace.frames().iter().map(|f| (f.func_index(), f.func_name())).collect();
    assert_eq!(frames, [(0, Some("leaf")), (1, Some("middle")), (2, None)]);
    let leaf: &FrameInfo = &trace.frames()[0];
    assert_eq!(leaf.module().name(), Some("traced"));
    assert!(leaf.module_offset().unwrap() > 8 && leaf.func_offset().is_some());
    assert!(format!("{error:?}").contains("traced!leaf"), "{error:?}");
    Ok(())
}

fn panics(engine: &Engine) -> Result<()> {
    let mut store = Store::new(engine, ());
    let boom = Func::wrap(&mut store, || -> () { std::panic::panic_any(17u8) });
    let module = Module::new(engine, r#"(module (import "" "" (func $f)) (func (export "f") (call $f)) (func (export "ok")))"#)?;
    let instance = Instance::new(&mut store, &module, &[boom.into()])?;
    let f = instance.get_typed_func::<(), ()>(&mut store, "f")?;
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f.call(&mut store, ())));
    assert_eq!(panicked.unwrap_err().downcast_ref::<u8>(), Some(&17));
    instance.get_typed_func::<(), ()>(&mut store, "ok")?.call(&mut store, ())
}

struct Limited {
    limits: StoreLimits,
}

fn limits(engine: &Engine) -> Result<()> {
    let limited = |builder: StoreLimitsBuilder| {
        let mut store = Store::new(engine, Limited { limits: builder.build() });
        store.limiter(|data| &mut data.limits);
        store
    };
    let module = Module::new(
        engine,
        r#"(module
            (memory (export "memory") 1) (table (export "table") 2 funcref)
            (func (export "memory_grow") (param i32) (result i32) (memory.grow (local.get 0)))
            (func (export "table_grow") (param i32) (result i32) (table.grow (ref.null func) (local.get 0))))"#,
    )?;
    let mut store = limited(StoreLimitsBuilder::new().memory_size(2 << 16).table_elements(5).instances(2));
    let instance = Instance::new(&mut store, &module, &[])?;
    let memory = instance.get_typed_func::<i32, i32>(&mut store, "memory_grow")?;
    let table = instance.get_typed_func::<i32, i32>(&mut store, "table_grow")?;
    let mut grow = |pages, elements| -> Result<_> { Ok((memory.call(&mut store, pages)?, table.call(&mut store, elements)?)) };
    assert_eq!((grow(2, 4)?, grow(1, 3)?, grow(1, 1)?, grow(0, 0)?), ((-1, -1), (1, 2), (-1, -1), (2, 5)));
    assert!(instance.get_memory(&mut store, "memory").unwrap().grow(&mut store, 1).is_err());
    Instance::new(&mut store, &module, &[])?;
    assert!(Instance::new(&mut store, &module, &[]).is_err(), "a third instance");
    assert!(Instance::new(limited(StoreLimitsBuilder::new().memory_size(100)), &module, &[]).is_err());
    assert!(Instance::new(limited(StoreLimitsBuilder::new().table_elements(1)), &module, &[]).is_err());
    assert!(Instance::new(limited(StoreLimitsBuilder::new().memories(0)), &module, &[]).is_err());
    assert!(Instance::new(limited(StoreLimitsBuilder::new().tables(0)), &module, &[]).is_err());

    let mut store = limited(StoreLimitsBuilder::new().memory_size(1 << 16).table_elements(2).trap_on_grow_failure(true));
    let instance = Instance::new(&mut store, &module, &[])?;
    for name in ["memory_grow", "table_grow"] {
        let grow = instance.get_typed_func::<i32, i32>(&mut store, name)?;
        let error = grow.call(&mut store, 1).unwrap_err();
        assert!(error.is::<WasmBacktrace>(), "{name}");
        assert!(grow.call(&mut store, 0)? > 0);
        assert!(grow.call(&mut store, -1).is_err());
    }
    Ok(())
}

struct Meter {
    asked: Vec<(usize, usize, Option<usize>)>,
    failed: usize,
}

impl ResourceLimiter for Meter {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        self.asked.push((current, desired, maximum));
        ensure!(desired != 3 << 16, "three are too many");
        Ok(desired < 5 << 16)
    }

    fn table_growing(&mut self, _current: usize, _desired: usize, _maximum: Option<usize>) -> Result<bool> {
        Ok(true)
    }

    fn memory_grow_failed(&mut self, _error: Error) -> Result<()> {
        self.failed += 1;
        Ok(())
    }
}

fn custom_limiter(engine: &Engine) -> Result<()> {
    let module = Module::new(
        engine,
        r#"(module (memory 1 9) (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0))))"#,
    )?;
    let mut store = Store::new(engine, Meter { asked: Vec::new(), failed: 0 });
    store.limiter(|meter| meter);
    let instance = Instance::new(&mut store, &module, &[])?;
    let grow = instance.get_typed_func::<i32, i32>(&mut store, "grow")?;
    assert_eq!(grow.call(&mut store, 1)?, 1);
    let error = grow.call(&mut store, 1).unwrap_err();
    assert_eq!(error.root_cause().to_string(), "three are too many");
    assert_eq!(grow.call(&mut store, 2)?, 2);
    assert_eq!(grow.call(&mut store, 1)?, -1);
    let max = Some(9 << 16);
    let page = |n: usize| n << 16;
    let asked: Vec<_> = [(0, 1), (1, 2), (2, 3), (2, 4), (4, 5)].map(|(a, b)| (page(a), page(b), max)).into();
    assert_eq!(store.data().asked, asked);
    Ok(())
}

fn threads(engine: &Engine) -> Result<()> {
    fn send<T: Send>(_: &T) {}
    fn share<T: Send + Sync + Clone>(_: &T) {}
    let module =
        Module::new(engine, r#"(module (func (export "f") (param i32) (result i32) (i32.add (local.get 0) (i32.const 1))))"#)?;
    let linker: Linker<usize> = Linker::new(engine);
    let pre = linker.instantiate_pre(&module)?;
    share(engine);
    share(&module);
    share(&linker);
    share(&pre);
    let sum = Arc::new(AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for i in 0..4 {
            let (pre, module, sum) = (pre.clone(), module.clone(), sum.clone());
            let mut store = Store::new(engine, i);
            send(&store);
            scope.spawn(move || {
                let instance = pre.instantiate(&mut store).unwrap();
                let f = instance.get_typed_func::<i32, i32>(&mut store, "f").unwrap();
                share(&f);
                let own = *store.data() as i32;
                let result = f.call(&mut store, own).unwrap();
                assert!(Module::same(&module, instance.module(&store)));
                sum.fetch_add(result as usize, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(sum.load(Ordering::Relaxed), 10);
    Ok(())
}

const SPIN: &str = r#"(module
    (func (export "spin") (param i64)
        (loop (local.set 0 (i64.sub (local.get 0) (i64.const 1))) (br_if 0 (i64.ne (local.get 0) (i64.const 0))))))"#;

fn fuel(engine: &Engine) -> Result<()> {
    let (mut store, instance) = instance(engine, (), SPIN)?;
    let spin = instance.get_typed_func::<i64, ()>(&mut store, "spin")?;
    assert_eq!(store.get_fuel()?, 0, "a new store has none");
    assert_eq!(spin.call(&mut store, 1).unwrap_err().downcast_ref::<Trap>(), Some(&Trap::OutOfFuel));
    store.set_fuel(100_000)?;
    spin.call(&mut store, 1_000)?;
    let once = 100_000 - store.get_fuel()?;
    assert!((3_000..30_000).contains(&once), "{once}");
    store.set_fuel(100_000)?;
    spin.call(&mut store, 1_000)?;
    assert_eq!(100_000 - store.get_fuel()?, once, "the same again");
    store.set_fuel(1_000)?;
    let error = spin.call(&mut store, i64::MAX).unwrap_err();
    assert_eq!((error.downcast_ref::<Trap>(), store.get_fuel()?), (Some(&Trap::OutOfFuel), 0));
    Ok(())
}

const COSTS: OperatorCost = OperatorCost { I64Sub: 7, Loop: 5, End: 2, ..OperatorCost::new() };

fn costs_of_instructions(engine: &Engine) -> Result<()> {
    let (mut store, instance) = instance(engine, (), SPIN)?;
    let spin = instance.get_typed_func::<i64, ()>(&mut store, "spin")?;
    for rounds in [1, 10, 1_000] {
        store.set_fuel(100_000)?;
        spin.call(&mut store, rounds as i64)?;
        // A unit for the call, the loop and two ends; and in each round a subtraction and seven instructions of a unit.
        assert_eq!(100_000 - store.get_fuel()?, 1 + 5 + 2 * 2 + rounds * (7 + 7));
    }
    Ok(())
}

fn epochs(engine: &Engine) -> Result<()> {
    let (mut store, instance) = instance(engine, 0u32, SPIN)?;
    let spin = instance.get_typed_func::<i64, ()>(&mut store, "spin")?;
    // Without a deadline nothing runs.
    assert_eq!(spin.call(&mut store, 1).unwrap_err().downcast_ref::<Trap>(), Some(&Trap::Interrupt));
    // A timeout from another thread.
    store.set_epoch_deadline(1);
    let clock = {
        let engine = engine.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            engine.increment_epoch();
        })
    };
    let error = spin.call(&mut store, 0).unwrap_err();
    assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::Interrupt));
    clock.join().unwrap();
    store.set_epoch_deadline(1);
    spin.call(&mut store, 1_000)?;

    // The callback extends the deadline, or not.
    store.set_epoch_deadline(0);
    store.epoch_deadline_callback(|mut store| {
        *store.data_mut() += 1;
        match *store.data() {
            ..100 => Ok(UpdateDeadline::Continue(0)),
            100 => Ok(UpdateDeadline::Continue(1)),
            _ => bail!("enough"),
        }
    });
    spin.call(&mut store, 1_000)?;
    assert_eq!(*store.data(), 100);
    engine.increment_epoch();
    let error = spin.call(&mut store, 1_000).unwrap_err();
    assert_eq!(error.root_cause().to_string(), "enough");
    store.epoch_deadline_trap();
    let error = spin.call(&mut store, 1_000).unwrap_err();
    assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::Interrupt));
    Ok(())
}

fn deep_recursion(engine: &Engine) -> Result<()> {
    let (mut store, instance) = instance(
        engine,
        (),
        r#"(module (func $f (export "f") (param i32) (result i32)
            (if (result i32) (local.get 0)
                (then (i32.add (i32.const 1) (call $f (i32.sub (local.get 0) (i32.const 1)))))
                (else (i32.const 0)))))"#,
    )?;
    let f = instance.get_typed_func::<i32, i32>(&mut store, "f")?;
    assert_eq!(f.call(&mut store, 500)?, 500);
    let error = f.call(&mut store, 100_000_000).unwrap_err();
    assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::StackOverflow));
    assert_eq!(f.call(&mut store, 500)?, 500);
    Ok(())
}
