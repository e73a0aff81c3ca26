//! The parts of the host program that concern hooks, types and their default values, references in typed functions, and modules that
//! a linker runs.

use super::instance;
use crate::wasmtime;
use wasmtime::*;

/// Calls in both directions, and what the hook saw of them.
pub fn hooks(engine: &Engine) -> Result<()> {
    let module = Module::new(
        engine,
        r#"(module (import "host" "f" (func $f (param i32)))
            (func (export "run") (param i32) (call $f (local.get 0)) (call $f (i32.const 0)))
            (func (export "trap") unreachable))"#,
    )?;
    let mut store = Store::new(engine, Vec::<String>::new());
    store.call_hook(|mut store, passage| {
        assert_eq!(passage.entering_host(), !passage.exiting_host());
        store.data_mut().push(format!("{passage:?}"));
        if store.data().len() > 100 { bail!("too much") } else { Ok(()) }
    });
    let host = Func::wrap(&mut store, |mut caller: Caller<'_, Vec<String>>, again: i32| -> Result<()> {
        caller.data_mut().push(format!("host {again}"));
        if again == 1 {
            bail!("host failed");
        }
        if again == 2 {
            let nothing = Func::wrap(&mut caller, || ());
            nothing.call(&mut caller, &[], &mut [])?;
        }
        Ok(())
    });
    let instance = Instance::new(&mut store, &module, &[host.into()])?;
    assert!(store.data().is_empty(), "nothing was called");
    let run = instance.get_typed_func::<i32, ()>(&mut store, "run")?;
    let seen = |store: &mut Store<Vec<String>>| std::mem::take(store.data_mut()).join(" ");
    run.call(&mut store, 0)?;
    let call = "CallingHost host 0 ReturningFromHost";
    assert_eq!(seen(&mut store), format!("CallingWasm {call} {call} ReturningFromWasm"));
    run.call(&mut store, 2)?;
    let nested = "CallingWasm CallingHost ReturningFromHost ReturningFromWasm";
    assert_eq!(
        seen(&mut store),
        format!("CallingWasm CallingHost host 2 {nested} ReturningFromHost {call} ReturningFromWasm"),
        "a host function that the host calls is called like a guest's"
    );
    assert!(run.call(&mut store, 1).is_err());
    assert_eq!(seen(&mut store), "CallingWasm CallingHost host 1 ReturningFromHost ReturningFromWasm");
    let trap = instance.get_typed_func::<(), ()>(&mut store, "trap")?;
    assert!(trap.call(&mut store, ()).unwrap_err().is::<Trap>());
    assert_eq!(seen(&mut store), "CallingWasm ReturningFromWasm");

    // An error at each passage.
    for (at, expected) in [
        ("CallingWasm", "CallingWasm"),
        ("CallingHost", "CallingWasm CallingHost ReturningFromWasm"),
        ("ReturningFromHost", "CallingWasm CallingHost host 0 ReturningFromHost ReturningFromWasm"),
        (
            "ReturningFromWasm",
            "CallingWasm CallingHost host 0 ReturningFromHost CallingHost host 0 ReturningFromHost ReturningFromWasm",
        ),
    ] {
        store.call_hook(move |mut store, passage| {
            store.data_mut().push(format!("{passage:?}"));
            ensure!(format!("{passage:?}") != at, "refused at {at}");
            Ok(())
        });
        let error = run.call(&mut store, 0).unwrap_err();
        assert!(error.chain().any(|link| link.to_string() == format!("refused at {at}")), "{error:?}");
        assert_eq!(seen(&mut store), expected, "{at}");
    }
    // The error at the return replaces a trap, and what the hook calls is not reported.
    let nothing = Func::wrap(&mut store, || ());
    store.call_hook(move |mut store, passage| {
        store.data_mut().push(format!("{passage:?}"));
        nothing.call(&mut store, &[], &mut [])?;
        ensure!(!matches!(passage, CallHook::ReturningFromWasm), "refused");
        Ok(())
    });
    let error = trap.call(&mut store, ()).unwrap_err();
    assert!(!error.is::<Trap>() && error.to_string() == "refused", "{error:?}");
    assert_eq!(seen(&mut store), "CallingWasm ReturningFromWasm");

    fn data<'a, T>(caller: Caller<'a, T>) -> StoreContextMut<'a, T> {
        caller.into()
    }
    let count = Func::wrap(&mut store, |caller: Caller<'_, Vec<String>>| data(caller).data().len() as u32);
    store.call_hook(|_, _| Ok(()));
    store.data_mut().push("one".into());
    assert_eq!(count.typed::<(), u32>(&store)?.call(&mut store, ())?, 1);
    Ok(())
}

pub fn types_and_defaults(engine: &Engine) -> Result<()> {
    let mut store = Store::new(engine, ());
    let func = |params: &[ValType], results: &[ValType]| FuncType::new(engine, params.to_vec(), results.to_vec());
    let non_null = || ValType::Ref(RefType::new(false, HeapType::Func));
    let general = func(&[non_null()], &[ValType::FUNCREF]);
    let special = func(&[ValType::FUNCREF], &[non_null()]);
    assert!(special.matches(&general) && !general.matches(&special) && special.matches(&special));
    assert!(!special.matches(&func(&[], &[])) && !func(&[ValType::I32], &[]).matches(&func(&[ValType::I64], &[])));
    let made = Func::new(&mut store, general.clone(), |_, _, _| Ok(()));
    assert!(made.matches_ty(&store, &general) && !made.matches_ty(&store, &special));

    assert!(Val::I32(1).matches_ty(&store, &ValType::I32)? && !Val::I32(1).matches_ty(&store, &ValType::I64)?);
    assert!(Val::FuncRef(Some(made)).matches_ty(&store, &non_null())? && !Val::FuncRef(None).matches_ty(&store, &non_null())?);
    assert!(Val::FuncRef(None).matches_ty(&store, &ValType::FUNCREF)?);
    assert!(!Val::FuncRef(None).matches_ty(&store, &ValType::EXTERNREF)? && !Val::I64(0).matches_ty(&store, &ValType::FUNCREF)?);
    let data = Val::from(ExternRef::new(&mut store, 5)?);
    assert!(data.matches_ty(&store, &ValType::EXTERNREF)? && !data.matches_ty(&store, &ValType::FUNCREF)?);
    assert!(
        Ref::Extern(None).matches_ty(&store, &RefType::EXTERNREF)? && !Ref::Func(None).matches_ty(&store, &RefType::EXTERNREF)?
    );
    assert!(data.extern_ref().is_some() && data.func_ref().is_none() && data.unwrap_extern_ref().is_some());

    // What a type begins with.
    let default = |store: &mut Store<()>, ty: ExternType| ty.default_value(store);
    let global = GlobalType::new(ValType::F32, Mutability::Var);
    assert_eq!(default(&mut store, global.into())?.into_global().unwrap().get(&mut store).f32(), Some(0.0));
    let table = TableType::new(RefType::FUNCREF, 3, None);
    let table = default(&mut store, table.into())?.into_table().unwrap();
    assert!(table.size(&store) == 3 && table.get(&mut store, 2).unwrap().is_null());
    let memory = default(&mut store, MemoryType::new(2, None).into())?.into_memory().unwrap();
    assert_eq!(memory.data_size(&store), 128 << 10);
    let zeros = func(&[ValType::I64], &[ValType::I32, ValType::EXTERNREF]);
    let zeros = default(&mut store, zeros.into())?.into_func().unwrap();
    let mut results = [Val::I32(7), Val::I32(7)];
    zeros.call(&mut store, &[Val::I64(1)], &mut results)?;
    assert!(results[0].i32() == Some(0) && results[1].externref().unwrap().is_none());
    let tag = TagType::new(func(&[ValType::I32], &[]));
    assert_eq!(default(&mut store, tag.into())?.into_tag().unwrap().ty(&store).ty().params().len(), 1);
    assert!(default(&mut store, func(&[], &[non_null()]).into()).is_err());
    assert!(default(&mut store, GlobalType::new(non_null(), Mutability::Const).into()).is_err());
    assert!(default(&mut store, TableType::new(RefType::new(false, HeapType::Func), 1, None).into()).is_err());

    // Memories.
    let ty = MemoryType::builder().min(1).max(Some(2)).build()?;
    assert!((ty.minimum(), ty.maximum(), ty.is_64(), ty.page_size()) == (1, Some(2), false, 65536));
    let ty = MemoryTypeBuilder::new().memory64(true).min(1 << 40).build()?;
    assert!(ty.is_64() && ty.minimum() == 1 << 40 && ty.maximum().is_none());
    assert_eq!(MemoryTypeBuilder::default().page_size_log2(0).min(300).build()?.page_size(), 1);
    for (wrong, why) in [
        (MemoryTypeBuilder::new().min(2).max(Some(1)), "less than the minimum"),
        (MemoryTypeBuilder::new().min(65537), "more than 4 GiB"),
        (MemoryTypeBuilder::new().max(Some(65537)), "more than 4 GiB"),
        (MemoryTypeBuilder::new().page_size_log2(3), "a page of eight bytes"),
        (MemoryTypeBuilder::new().memory64(true).min((1 << 48) + 1), "more than 2^64 bytes"),
        (MemoryTypeBuilder::new().shared(true), "shared, and of no maximum"),
    ] {
        assert!(wrong.build().is_err(), "{why}");
    }
    assert!(MemoryTypeBuilder::new().min(65536).max(Some(65536)).build().is_ok());

    let module = Module::new(engine, r#"(module (memory (export "m") 3 5) (memory 1) (table 7 funcref))"#)?;
    let needs = module.resources_required();
    assert_eq!((needs.num_memories, needs.max_initial_memory_size), (2, Some(3)));
    assert_eq!((needs.num_tables, needs.max_initial_table_size), (1, Some(7)));
    let export = module.get_export_index("m").unwrap();
    let copy = export;
    let one = Instance::new(&mut store, &module, &[])?;
    let two = Instance::new(&mut store, &module, &[])?;
    assert!(one.get_module_export(&mut store, &export).is_some() && two.get_module_export(&mut store, &copy).is_some());
    let again = one;
    assert!(one == again && one != two);
    assert!(V128::from(1) < V128::from(2));
    assert_eq!((DEFAULT_INSTANCE_LIMIT, DEFAULT_TABLE_LIMIT, DEFAULT_MEMORY_LIMIT), (10000, 10000, 10000));
    let store: Store<u8> = Store::default();
    assert_eq!(*store.data(), 0);
    assert!(EngineWeak::default().upgrade().is_none());
    assert_eq!(Inlining::Yes.to_string().parse::<Inlining>()?, Inlining::Yes);
    assert!("some".parse::<Inlining>().is_err());
    Ok(())
}

/// References in typed functions: owned or not, null or not.
pub fn typed_references(engine: &Engine) -> Result<()> {
    let (mut store, instance) = instance(
        engine,
        (),
        r#"(module
            (func (export "extern") (param externref) (result externref) (local.get 0))
            (func (export "func") (param (ref func)) (result funcref) (local.get 0))
            (func (export "sure") (param (ref func)) (result (ref func)) (local.get 0))
            (func (export "object") (param (ref extern)) (result (ref extern)) (local.get 0)))"#,
    )?;
    let identity =
        instance.get_typed_func::<Option<OwnedRooted<ExternRef>>, Option<OwnedRooted<ExternRef>>>(&mut store, "extern")?;
    let owned = {
        let mut scope = RootScope::new(&mut store);
        ExternRef::new(&mut scope, 7)?.to_owned_rooted(&mut scope)?
    };
    let back = identity.call(&mut store, Some(owned.clone()))?.unwrap();
    assert_eq!(back.data(&store)?.unwrap().downcast_ref::<i32>(), Some(&7));
    assert!(OwnedRooted::ref_eq(&store, &back, &owned)?);
    assert!(identity.call(&mut store, None)?.is_none());
    // A reference that is not null is one that may be.
    let rooted = owned.to_rooted(&mut store);
    let not_null = instance.get_typed_func::<Rooted<ExternRef>, Option<Rooted<ExternRef>>>(&mut store, "extern")?;
    let back = not_null.call(&mut store, rooted)?.unwrap();
    assert!(Rooted::ref_eq(&store, &back, &rooted)?);
    assert!(instance.get_typed_func::<Rooted<ExternRef>, Rooted<ExternRef>>(&mut store, "extern").is_err(), "it may return null");
    let object = instance.get_typed_func::<OwnedRooted<ExternRef>, Rooted<ExternRef>>(&mut store, "object")?;
    let back = object.call(&mut store, owned.clone())?;
    assert!(Rooted::ref_eq(&store, &back, &owned)?);
    assert!(instance.get_typed_func::<Option<Rooted<ExternRef>>, Rooted<ExternRef>>(&mut store, "object").is_err());

    let seven = Func::wrap(&mut store, || 7);
    let func = instance.get_typed_func::<Func, Option<Func>>(&mut store, "func")?;
    let same = func.call(&mut store, seven)?.unwrap();
    assert_eq!(same.typed::<(), i32>(&store)?.call(&mut store, ())?, 7);
    assert!(instance.get_typed_func::<Option<Func>, Option<Func>>(&mut store, "func").is_err(), "the argument may be null");
    assert!(instance.get_typed_func::<Func, Func>(&mut store, "func").is_err(), "it may return null");
    let sure = instance.get_typed_func::<Func, Func>(&mut store, "sure")?;
    assert_eq!(sure.call(&mut store, seven)?.typed::<(), i32>(&store)?.call(&mut store, ())?, 7);
    assert!(instance.get_typed_func::<Func, Option<Func>>(&mut store, "sure").is_ok());

    // In host functions, too.
    let host = Func::wrap(&mut store, |a: Rooted<ExternRef>, _: Func| a);
    assert!(!host.ty(&store).param(0).unwrap().unwrap_ref().is_nullable());
    let host = host.typed::<(Rooted<ExternRef>, Func), Rooted<ExternRef>>(&store)?;
    let back = host.call(&mut store, (rooted, seven))?;
    assert!(Rooted::ref_eq(&store, &back, &rooted)?);

    let hash = |of: &dyn Fn(&mut std::collections::hash_map::DefaultHasher)| {
        let mut state = std::collections::hash_map::DefaultHasher::new();
        of(&mut state);
        std::hash::Hasher::finish(&state)
    };
    let other = ExternRef::new(&mut store, 7)?;
    let rooted_hash = hash(&|state| rooted.ref_hash(&store, state).unwrap());
    assert_eq!(rooted_hash, hash(&|state| owned.ref_hash(&store, state)));
    assert_ne!(rooted_hash, hash(&|state| other.ref_hash(&store, state).unwrap()));
    Ok(())
}

pub fn commands(engine: &Engine) -> Result<()> {
    let command = |export: &str| {
        Module::new(
            engine,
            format!(r#"(module (func (export "_start")) (func (export "f") (result i32) (i32.const 4)) {export})"#),
        )
    };
    let mut store = Store::new(engine, ());
    for usual in [
        r#"(memory (export "memory") 1)"#,
        r#"(table (export "table") 1 funcref)"#,
        r#"(table (export "__indirect_function_table") 1 funcref)"#,
        r#"(global (export "__heap_base") i32 (i32.const 1))"#,
        r#"(global (export "__rtti_base") i32 (i32.const 1))"#,
    ] {
        let mut linker = Linker::new(engine);
        linker.module(&mut store, "m", &command(usual)?)?;
        assert!(format!("{linker:?}").starts_with("Linker"));
        let f = linker.get(&mut store, "m", "f")?.into_func().unwrap();
        assert_eq!(f.typed::<(), i32>(&store)?.call(&mut store, ())?, 4);
    }
    for (unusual, name) in [
        (r#"(memory (export "heap") 1)"#, "heap"),
        (r#"(global (export "memory") i32 (i32.const 1))"#, "memory"),
        (r#"(table (export "memory") 1 funcref)"#, "memory"),
    ] {
        let unusual = command(unusual)?;
        let error = Linker::new(engine).module(&mut store, "m", &unusual).unwrap_err();
        assert_eq!(error.to_string(), format!("command export '{name}' is not a function"));
        let mut linker = Linker::new(engine);
        linker.allow_unknown_exports(true).module(&mut store, "m", &unusual)?;
        assert!(linker.get(&mut store, "m", name).is_err());
    }

    // Everything that is missing, by its type.
    let needy = Module::new(
        engine,
        r#"(module (import "a" "f" (func $f (result i64))) (import "a" "g" (global $g (mut i32)))
            (import "a" "m" (memory 2)) (import "a" "t" (table 1 funcref))
            (func (export "run") (result i64 i32 i32 i32)
                (call $f) (global.get $g) (memory.size) (table.size 0)))"#,
    )?;
    let mut linker = Linker::new(engine);
    linker.define_unknown_imports_as_default_values(&mut store, &needy)?;
    let run = linker.instantiate(&mut store, &needy)?.get_typed_func::<(), (i64, i32, i32, i32)>(&mut store, "run")?;
    assert_eq!(run.call(&mut store, ())?, (0, 0, 2, 1));
    let import = needy.imports().next().unwrap();
    assert!(linker.try_get_by_import(&mut store, &import)?.is_some());
    assert!(Linker::new(engine).try_get_by_import(&mut store, &import)?.is_none());
    let impossible = Module::new(engine, r#"(module (import "a" "f" (func (result (ref func)))))"#)?;
    assert!(Linker::new(engine).define_unknown_imports_as_default_values(&mut store, &impossible).is_err());
    Ok(())
}

/// A host that is generic over data of any lifetime can hold a linker.
struct Holder<T> {
    linker: Linker<T>,
    pre: Option<InstancePre<T>>,
}

impl<T> Holder<T> {
    fn new(engine: &Engine) -> Holder<T> {
        Holder { linker: Linker::new(engine), pre: None }
    }
}

pub fn errors(engine: &Engine) -> Result<()> {
    let local = 5;
    fn of<T>(_: &T, engine: &Engine) -> Holder<T> {
        Holder::new(engine)
    }
    let holder = of(&&local, engine);
    assert!(holder.pre.is_none() && Engine::same(holder.linker.clone().engine(), engine));
    use wasmtime::error::{Context, bail, ensure, format_err};
    fn odd(n: u32) -> Result<u32> {
        ensure!(n < 10, "{n} is large");
        if n.is_multiple_of(2) {
            bail!("{n} is even");
        }
        Ok(n)
    }
    assert_eq!(odd(3)?, 3);
    assert_eq!(odd(12).unwrap_err().to_string(), "12 is large");
    let error = odd(4).with_context(|| "checking").context("outside").unwrap_err();
    let links: Vec<String> = error.chain().map(|link| link.to_string()).collect();
    assert_eq!(links, ["outside", "checking", "4 is even"]);
    let mut chain = error.chain();
    assert_eq!(chain.by_ref().count(), 3);
    assert!(chain.next().is_none());
    assert_eq!(None::<u8>.context("nothing").unwrap_err().to_string(), "nothing");
    assert_eq!(format_err!("{}", 5).to_string(), "5");
    let generic = |n: u8| wasmtime::error::Ok(n);
    assert_eq!(generic(5)?, 5);
    assert_eq!(Trap::from_u8(Trap::IntegerOverflow as u8), Some(Trap::IntegerOverflow));
    assert_eq!(Trap::from_u8(255), None);
    Ok(())
}
