//! Instantiation: matching imports, sharing between instances, initial values, segments, the start function, limits.

use crate::common::{self, each_engine, instance, linked};
use weir::{
    Engine, Error, Extern, ExternRef, ExternType, Func, FuncType, Global, GlobalType, Instance, InvalidModule, LinkError, Linker,
    Memory, MemoryType, Module, Mutability, Ref, RefType, Result, Store, StoreLimits, StoreLimitsBuilder, Table, TableType, Tag,
    TagType, Trap, UnknownImportError, Val, ValType,
};

fn module(engine: &Engine, wat: &str) -> Module {
    Module::new(engine, wat).unwrap()
}

#[test]
fn malformed_and_invalid_modules_are_refused() {
    let engine = common::default_engine();
    let error = Module::new(&engine, "(module (func (result i32)))").unwrap_err();
    assert!(error.is::<InvalidModule>(), "{error:?}");
    assert!(Module::new(&engine, b"\0asm\x01\0\0").unwrap_err().is::<InvalidModule>());
    assert!(Module::new(&engine, "(module (func").is_err());
    assert!(Module::validate(&engine, b"\0asm\x01\0\0\0").is_ok());
    let error = Module::from_file(&engine, "no/such/file.wasm").unwrap_err();
    assert!(error.to_string().contains("no/such/file.wasm") && error.is::<std::io::Error>());
}

#[test]
fn modules_come_from_files_too() {
    let engine = common::default_engine();
    let dir = std::env::temp_dir();
    let path = dir.join(format!("weir-linking-{}.wat", std::process::id()));
    std::fs::write(&path, r#"(module $m (func (export "f") (param i32)))"#).unwrap();
    let from_text = Module::from_file(&engine, &path).unwrap();
    assert_eq!(from_text.name(), Some("m"));
    std::fs::write(&path, &from_text.bytecode().bytes).unwrap();
    let from_binary = Module::from_file(&engine, &path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let export = from_binary.exports().next().unwrap();
    assert_eq!((export.name(), export.ty().to_string()), ("f", "function [i32] -> []".into()));
}

#[test]
fn link_errors_say_what_was_expected_and_found() {
    let engine = common::default_engine();
    let mut store = Store::new(&engine, ());
    let mut linker = Linker::new(&engine);
    let memory = Memory::new(&mut store, MemoryType::new(1, Some(4))).unwrap();
    let table = Table::new(&mut store, TableType::new(RefType::FUNCREF, 10, None), Ref::Func(None)).unwrap();
    let global = Global::new(&mut store, GlobalType::new(ValType::I32, Mutability::Var), Val::I32(0)).unwrap();
    linker.define(&store, "a", "memory", memory).unwrap();
    linker.define(&store, "a", "table", table).unwrap();
    linker.define(&store, "a", "global", global).unwrap();
    linker.func_wrap("a", "func", |_: i32| 0i64).unwrap();
    assert!(linker.define(&store, "a", "memory", memory).is_err(), "already defined");

    let fits = r#"(module
        (import "a" "memory" (memory 1 5)) (import "a" "memory" (memory 1)) (import "a" "table" (table 10 funcref))
        (import "a" "global" (global (mut i32))) (import "a" "func" (func (param i32) (result i64))))"#;
    linker.instantiate(&mut store, &module(&engine, fits)).unwrap();

    let misfits = [
        ("(import \"a\" \"memory\" (memory 2))", "memory 2", "memory 1 4"),
        ("(import \"a\" \"memory\" (memory 1 3))", "memory 1 3", "memory 1 4"),
        ("(import \"a\" \"memory\" (memory i64 1))", "memory i64 1", "memory 1 4"),
        ("(import \"a\" \"table\" (table 11 funcref))", "table 11 funcref", "table 10 funcref"),
        ("(import \"a\" \"table\" (table 10 20 funcref))", "table 10 20 funcref", "table 10 funcref"),
        ("(import \"a\" \"table\" (table 10 externref))", "table 10 externref", "table 10 funcref"),
        ("(import \"a\" \"global\" (global i32))", "global i32", "global (mut i32)"),
        ("(import \"a\" \"global\" (global (mut i64)))", "global (mut i64)", "global (mut i32)"),
        ("(import \"a\" \"func\" (func))", "function [] -> []", "function [i32] -> [i64]"),
        ("(import \"a\" \"func\" (memory 1))", "memory 1", "function [i32] -> [i64]"),
    ];
    for (import, expected, found) in misfits {
        let error = linker.instantiate(&mut store, &module(&engine, &format!("(module {import})"))).unwrap_err();
        match error.downcast_ref::<LinkError>() {
            Some(LinkError::Incompatible { module, expected: e, found: f, .. }) => {
                assert_eq!((&**module, &**e, &**f), ("a", expected, found), "{import}");
            }
            _ => panic!("{import}: {error:?}"),
        }
    }
    let unknown = module(&engine, r#"(module (import "a" "nothing" (func (param f32))))"#);
    let error = linker.instantiate(&mut store, &unknown).unwrap_err();
    assert_eq!(error.to_string(), "unknown import: `a::nothing` has not been defined");
    let error = Instance::new(&mut store, &unknown, &[]).unwrap_err();
    assert_eq!(error.to_string(), "expected 1 imports, found 0");
    let other = common::default_engine();
    assert!(Instance::new(&mut Store::new(&other, ()), &module(&engine, "(module)"), &[]).is_err());
}

#[test]
fn imports_are_looked_up_once_for_many_instances() {
    each_engine(
        |_| (),
        |engine| {
            let mut linker: Linker<u32> = Linker::new(engine);
            linker
                .func_wrap("host", "next", |mut caller: weir::Caller<'_, u32>| {
                    *caller.data_mut() += 1;
                    *caller.data()
                })
                .unwrap();
            let wat = r#"(module
                (import "host" "next" (func $next (result i32)))
                (global (export "id") (mut i32) (i32.const 0))
                (func $start (global.set 0 (call $next)))
                (start $start))"#;
            let template = linker.instantiate_pre(&module(engine, wat)).unwrap();
            let run = |first: u32| {
                let mut store = Store::new(engine, first);
                let ids = [(); 3].map(|()| {
                    let instance = template.instantiate(&mut store).unwrap();
                    instance.get_global(&store, "id").unwrap().get(&mut store).unwrap_i32()
                });
                assert_eq!(ids, [1, 2, 3].map(|n| n + first as i32));
            };
            std::thread::scope(|scope| {
                scope.spawn(|| run(10));
                run(0);
            });
            assert!(linker.instantiate_pre(&module(engine, r#"(module (import "a" "b" (func)))"#)).is_err());
        },
    );
}

#[test]
fn unknown_imports_can_be_left_to_fail_when_called() {
    each_engine(
        |_| (),
        |engine| {
            let mut linker: Linker<()> = Linker::new(engine);
            let wat = r#"(module
                (import "a" "b" (func $b (param i32)))
                (func (export "call") (call $b (i32.const 0)))
                (func (export "fine")))"#;
            linker.define_unknown_imports_as_traps(&module(engine, wat)).unwrap();
            let (mut store, instance) = linked(&linker, wat, ());
            instance.get_typed_func::<(), ()>(&mut store, "fine").unwrap().call(&mut store, ()).unwrap();
            let call = instance.get_typed_func::<(), ()>(&mut store, "call").unwrap();
            let error = call.call(&mut store, ()).unwrap_err();
            assert_eq!(error.downcast_ref::<UnknownImportError>().map(|import| import.name()), Some("b"));
        },
    );
}

#[test]
fn instances_share_what_they_import() {
    each_engine(
        |_| (),
        |engine| {
            let mut store = Store::new(engine, ());
            let mut linker = Linker::new(engine);
            let exporter = module(
                engine,
                r#"(module
                    (memory (export "memory") 1)
                    (global $g (export "global") (mut i32) (i32.const 5))
                    (table (export "table") 2 funcref)
                    (func (export "get") (result i32) (global.get $g))
                    (func (export "call") (param i32) (result i32) (call_indirect (result i32) (local.get 0)))
                    (func (export "peek") (param i32) (result i32) (i32.load (local.get 0))))"#,
            );
            let exporter = linker.instantiate(&mut store, &exporter).unwrap();
            linker.instance(&mut store, "e", exporter).unwrap();
            let importer = module(
                engine,
                r#"(module
                    (import "e" "memory" (memory 1))
                    (import "e" "global" (global $g (mut i32)))
                    (import "e" "table" (table 2 funcref))
                    (import "e" "get" (func $get (result i32)))
                    (global $own i32 (i32.const 100))
                    (elem (i32.const 1) $own_func)
                    (func $own_func (result i32) (global.get $own))
                    (export "get" (func $get))
                    (func (export "run") (result i32)
                        (i32.store (i32.const 8) (i32.const 77))
                        (drop (memory.grow (i32.const 1)))
                        (global.set $g (i32.const 6))
                        (call $get)))"#,
            );
            let importer = linker.instantiate(&mut store, &importer).unwrap();
            let run = importer.get_typed_func::<(), i32>(&mut store, "run").unwrap();
            assert_eq!(run.call(&mut store, ()).unwrap(), 6);
            let peek = exporter.get_typed_func::<u32, u32>(&mut store, "peek").unwrap();
            assert_eq!(peek.call(&mut store, 8).unwrap(), 77);
            assert_eq!(peek.call(&mut store, 131_068).unwrap(), 0, "the exporter sees the grown memory");
            let call = exporter.get_typed_func::<u32, i32>(&mut store, "call").unwrap();
            assert_eq!(call.call(&mut store, 1).unwrap(), 100, "the function runs in its own instance");
            assert_eq!(exporter.get_memory(&mut store, "memory").unwrap().size(&store), 2);
            let (a, b) = (exporter.get_func(&mut store, "get"), importer.get_func(&mut store, "get"));
            assert!(weir::Func::same(a.unwrap(), b.unwrap()), "a re-export is the same function");
        },
    );
}

#[test]
fn initial_values_are_computed() {
    each_engine(
        |_| (),
        |engine| {
            let mut store = Store::new(engine, ());
            let base = Global::new(&mut store, GlobalType::new(ValType::I32, Mutability::Const), Val::I32(40)).unwrap();
            let module = module(
                engine,
                r#"(module
                    (import "" "base" (global $base i32))
                    (global (export "sum") i32 (i32.add (global.get $base) (i32.mul (i32.const 2) (i32.const -1))))
                    (global (export "wide") i64 (i64.sub (i64.const 1) (i64.const 2)))
                    (global (export "float") f32 (f32.const -0.5))
                    (global (export "double") (mut f64) (f64.const 2.5))
                    (global (export "null") externref (ref.null extern))
                    (global $f (export "func") funcref (ref.func $seven))
                    (table (export "table") 3 funcref)
                    (elem (table 0) (i32.const 2) funcref (ref.func $seven))
                    (memory (export "memory") 1)
                    (data (offset (i32.add (global.get $base) (i32.const 2))) "x")
                    (func $seven (result i32) (i32.const 7)))"#,
            );
            let instance = Instance::new(&mut store, &module, &[base.into()]).unwrap();
            let mut global = |name: &str| instance.get_global(&store, name).unwrap().get(&mut store);
            assert_eq!(global("sum").i32(), Some(38));
            assert_eq!(global("wide").i64(), Some(-1));
            assert_eq!(global("float").f32(), Some(-0.5));
            assert_eq!(global("double").f64(), Some(2.5));
            assert!(matches!(global("null"), Val::ExternRef(None)));
            let func = global("func").unwrap_funcref().copied().unwrap();
            let table = instance.get_table(&store, "table").unwrap();
            assert!(matches!(table.get(&mut store, 2), Some(Ref::Func(Some(f))) if weir::Func::same(f, func)));
            assert_eq!(instance.get_memory(&store, "memory").unwrap().data(&store)[42], b'x');
            assert_eq!(func.typed::<(), i32>(&store).unwrap().call(&mut store, ()).unwrap(), 7);

            let double = instance.get_global(&store, "double").unwrap();
            double.set(&mut store, Val::from(0.25)).unwrap();
            assert_eq!(double.get(&mut store).f64(), Some(0.25));
            assert!(double.set(&mut store, Val::I32(1)).is_err());
            assert!(instance.get_global(&store, "sum").unwrap().set(&mut store, Val::I32(1)).is_err());
        },
    );
}

#[test]
fn segments_before_a_failing_one_stay_written() {
    each_engine(
        |_| (),
        |engine| {
            let mut store = Store::new(engine, ());
            let memory = Memory::new(&mut store, MemoryType::new(1, None)).unwrap();
            let table = Table::new(&mut store, TableType::new(RefType::FUNCREF, 2, None), Ref::Func(None)).unwrap();
            let data = module(
                engine,
                r#"(module (import "" "m" (memory 1))
                    (data (i32.const 0) "kept") (data (i32.const 65535) "xy") (data (i32.const 8) "not reached"))"#,
            );
            let error = Instance::new(&mut store, &data, &[memory.into()]).unwrap_err();
            assert_eq!(error.downcast_ref(), Some(&Trap::MemoryOutOfBounds));
            assert_eq!(&memory.data(&store)[..4], b"kept");
            assert_eq!(memory.data(&store)[65535], 0, "a failing segment writes nothing");
            assert_eq!(memory.data(&store)[8], 0);

            let last = r#"(module (memory i64 1) (data (i64.const -1) "xy"))"#;
            let error = Instance::new(&mut store, &module(engine, last), &[]).unwrap_err();
            assert_eq!(error.downcast_ref(), Some(&Trap::MemoryOutOfBounds), "it would end after the last address");

            let elems = module(
                engine,
                r#"(module (import "" "t" (table 2 funcref))
                    (elem (i32.const 0) $f) (elem (i32.const 1) $f $f)
                    (func $f (result i32) (i32.const 3)))"#,
            );
            let error = Instance::new(&mut store, &elems, &[table.into()]).unwrap_err();
            assert_eq!(error.downcast_ref(), Some(&Trap::TableOutOfBounds));
            let Some(Ref::Func(Some(func))) = table.get(&mut store, 0) else { panic!("the first segment is written") };
            assert!(table.get(&mut store, 1).unwrap().is_null());
            assert_eq!(func.typed::<(), i32>(&store).unwrap().call(&mut store, ()).unwrap(), 3, "its instance lives on");
        },
    );
}

#[test]
fn bulk_operations_and_dropped_segments() {
    each_engine(
        |_| (),
        |engine| {
            let (mut store, instance) = instance(
                engine,
                r#"(module
                    (memory (export "memory") 1)
                    (table (export "table") 4 externref)
                    (data $passive "abcdef")
                    (data $active (i32.const 100) "gone")
                    (func (export "init") (param i32 i32 i32)
                        (memory.init $passive (local.get 0) (local.get 1) (local.get 2)))
                    (func (export "init_active") (param i32 i32 i32)
                        (memory.init $active (local.get 0) (local.get 1) (local.get 2)))
                    (func (export "drop") (data.drop $passive))
                    (func (export "copy") (param i32 i32 i32)
                        (memory.copy (local.get 0) (local.get 1) (local.get 2)))
                    (func (export "fill") (param i32 i32 i32)
                        (memory.fill (local.get 0) (local.get 1) (local.get 2)))
                    (func (export "grow") (param externref i32) (result i32)
                        (table.grow 0 (local.get 0) (local.get 1)))
                    (func (export "table_copy") (param i32 i32 i32)
                        (table.copy (local.get 0) (local.get 1) (local.get 2)))
                    (func (export "size") (result i32) (table.size 0)))"#,
            );
            let memory = instance.get_memory(&store, "memory").unwrap();
            let mut call = |name: &str, args: (u32, u32, u32)| {
                let func = instance.get_typed_func::<(u32, u32, u32), ()>(&mut store, name).unwrap();
                let trap = func.call(&mut store, args).err();
                (trap.map(|error| *error.downcast_ref::<Trap>().unwrap()), memory.data(&store)[..8].to_vec())
            };
            let out_of_bounds = Some(Trap::MemoryOutOfBounds);
            assert_eq!(call("init", (0, 1, 4)), (None, b"bcde\0\0\0\0".to_vec()));
            assert_eq!(call("copy", (1, 0, 4)), (None, b"bbcde\0\0\0".to_vec()), "overlapping");
            assert_eq!(call("fill", (6, 0x1FF, 2)), (None, b"bbcde\0\xFF\xFF".to_vec()));
            assert_eq!(call("init", (0, 3, 4)).0, out_of_bounds);
            assert_eq!(call("init", (65535, 0, 2)).0, out_of_bounds);
            assert_eq!(call("copy", (0, 65535, 2)).0, out_of_bounds);
            assert_eq!(call("fill", (u32::MAX, 1, u32::MAX)), (out_of_bounds, b"bbcde\0\xFF\xFF".to_vec()));
            assert_eq!(call("fill", (65536, 1, 0)).0, None);
            assert_eq!(call("init_active", (0, 0, 0)).0, None);
            assert_eq!(call("init_active", (0, 0, 1)).0, out_of_bounds, "active segments are dropped");
            instance.get_typed_func::<(), ()>(&mut store, "drop").unwrap().call(&mut store, ()).unwrap();
            let init = instance.get_typed_func::<(u32, u32, u32), ()>(&mut store, "init").unwrap();
            init.call(&mut store, (0, 0, 0)).unwrap();
            assert!(init.call(&mut store, (0, 0, 1)).is_err());

            let table = instance.get_table(&store, "table").unwrap();
            let value = weir::ExternRef::new(&mut store, "v").unwrap();
            let grow = instance.get_typed_func::<(Option<weir::Rooted<weir::ExternRef>>, u32), i32>(&mut store, "grow").unwrap();
            assert_eq!(grow.call(&mut store, (Some(value), 2)).unwrap(), 4);
            assert_eq!(grow.call(&mut store, (None, u32::MAX)).unwrap(), -1);
            let copy = instance.get_typed_func::<(u32, u32, u32), ()>(&mut store, "table_copy").unwrap();
            copy.call(&mut store, (0, 5, 1)).unwrap();
            let error = copy.call(&mut store, (5, 0, 2)).unwrap_err();
            assert_eq!(error.downcast_ref(), Some(&Trap::TableOutOfBounds));
            assert!(
                matches!(table.get(&mut store, 0), Some(Ref::Extern(Some(v))) if weir::Rooted::ref_eq(&store, &v, &value).unwrap())
            );
            assert!(table.get(&mut store, 1).unwrap().is_null());
            let size = instance.get_typed_func::<(), u32>(&mut store, "size").unwrap();
            assert_eq!(size.call(&mut store, ()).unwrap(), 6);
            assert_eq!(table.grow(&mut store, 1, Ref::Extern(None)).unwrap(), 6);
            assert!(table.set(&mut store, 0, Ref::Func(None)).is_err() && table.set(&mut store, 7, value.into()).is_err());
        },
    );
}

#[test]
fn start_functions_run_and_may_fail() {
    each_engine(
        |_| (),
        |engine| {
            let mut linker: Linker<Vec<i32>> = Linker::new(engine);
            linker
                .func_wrap("host", "log", |mut caller: weir::Caller<'_, Vec<i32>>, n: i32| -> Result<()> {
                    let memory = caller.get_export("memory").and_then(Extern::into_memory).unwrap();
                    let byte = memory.data(&caller)[0];
                    caller.data_mut().push(n + i32::from(byte));
                    if n == 1 { Err(Error::msg("no")) } else { Ok(()) }
                })
                .unwrap();
            let wat = |n: i32| {
                format!(
                    r#"(module
                        (import "host" "log" (func $log (param i32)))
                        (memory (export "memory") 1)
                        (data (i32.const 0) "\64")
                        (func $start (call $log (i32.const {n})))
                        (start $start))"#
                )
            };
            let (mut store, _) = linked(&linker, &wat(7), vec![]);
            assert_eq!(*store.data(), [107], "after the segments were written");
            let error = linker.instantiate(&mut store, &module(engine, &wat(1))).unwrap_err();
            assert_eq!(error.root_cause().to_string(), "no");
            let host_start = module(engine, r#"(module (import "host" "log" (func $l (param i32))) (func $s) (start $s))"#);
            linker.instantiate(&mut store, &host_start).unwrap();
        },
    );
}

#[test]
fn memories_grow_within_their_limits() {
    for guard_regions in [true, false] {
        each_engine(
            |config| {
                config.guard_regions(guard_regions);
            },
            |engine| {
                let (mut store, instance) = instance(
                    engine,
                    r#"(module
                        (memory (export "memory") 1 3)
                        (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
                        (func (export "store") (param i32) (i32.store8 (local.get 0) (i32.const 9)))
                        (func (export "size") (result i32) (memory.size)))"#,
                );
                let memory = instance.get_memory(&store, "memory").unwrap();
                let grow = instance.get_typed_func::<i32, i32>(&mut store, "grow").unwrap();
                let write = instance.get_typed_func::<u32, ()>(&mut store, "store").unwrap();
                let error = write.call(&mut store, 65536).unwrap_err();
                assert_eq!(error.downcast_ref(), Some(&Trap::MemoryOutOfBounds));
                assert_eq!(grow.call(&mut store, 1).unwrap(), 1);
                write.call(&mut store, 65536).unwrap();
                assert_eq!(memory.data(&store)[65536], 9);
                assert_eq!(memory.grow(&mut store, 1).unwrap(), 2);
                assert_eq!(instance.get_typed_func::<(), i32>(&mut store, "size").unwrap().call(&mut store, ()).unwrap(), 3);
                assert_eq!(grow.call(&mut store, 1).unwrap(), -1);
                assert_eq!(grow.call(&mut store, -1).unwrap(), -1);
                assert!(memory.grow(&mut store, 1).is_err());
                let ExternType::Memory(ty) = Extern::from(memory).ty(&store) else { panic!("it is a memory") };
                assert_eq!((ty.minimum(), ty.maximum(), memory.size(&store)), (1, Some(3), 3));

                memory.write(&mut store, 3 * 65536 - 2, &[1, 2]).unwrap();
                let mut two = [0; 2];
                memory.read(&store, 3 * 65536 - 2, &mut two).unwrap();
                assert_eq!(two, [1, 2]);
                assert!(memory.write(&mut store, 3 * 65536 - 1, &[1, 2]).is_err());
                assert!(memory.read(&store, usize::MAX, &mut two).is_err());
            },
        );
    }
}

#[test]
fn stores_have_limits() {
    each_engine(
        |_| (),
        |engine| {
            let limits = StoreLimitsBuilder::new().memory_size(2 << 16).table_elements(4).instances(3).memories(2).build();
            let mut store = Store::new(engine, limits);
            store.limiter(|limits: &mut StoreLimits| limits);
            let growing = module(
                engine,
                r#"(module
                    (memory 1) (table 1 funcref)
                    (func (export "memory") (param i32) (result i32) (memory.grow (local.get 0)))
                    (func (export "table") (param i32) (result i32) (table.grow 0 (ref.null func) (local.get 0))))"#,
            );
            let instance = Instance::new(&mut store, &growing, &[]).unwrap();
            let memory = instance.get_typed_func::<i32, i32>(&mut store, "memory").unwrap();
            assert_eq!(memory.call(&mut store, 2).unwrap(), -1);
            assert_eq!(memory.call(&mut store, 1).unwrap(), 1);
            let table = instance.get_typed_func::<i32, i32>(&mut store, "table").unwrap();
            assert_eq!(table.call(&mut store, 4).unwrap(), -1);
            assert_eq!(table.call(&mut store, 3).unwrap(), 1);
            assert!(Instance::new(&mut store, &module(engine, "(module (memory 3))"), &[]).is_err());
            assert!(Instance::new(&mut store, &module(engine, "(module (table 5 funcref))"), &[]).is_err());
            Instance::new(&mut store, &module(engine, "(module (memory 0))"), &[]).unwrap_err();
            // The host's own are limited in size only.
            for _ in 0..3 {
                Memory::new(&mut store, MemoryType::new(0, None)).unwrap();
            }
            assert!(Memory::new(&mut store, MemoryType::new(3, None)).is_err());
        },
    );
}

/// From the second instance on, the data is mapped: each instance begins with the contents of the segments, in their
/// order, whatever other instances have written.
#[test]
fn every_instance_begins_with_the_module_s_data() {
    let (ones, tens) = ("\\01".repeat(20_000), "\\0a".repeat(100));
    let wat = format!(
        r#"(module
            (memory $small 1)
            (memory $large (export "memory") 1 4)
            (data $first (memory $large) (i32.const 5000) "{ones}")
            (data (memory $large) (i32.const 24950) "{tens}")
            (data (memory $large) (i32.const 65536) "")
            (data (memory $small) (i32.const 3) "\07")
            (data $passive "\05")
            (func (export "small") (result i32) (i32.load8_u $small (i32.const 3)))
            (func (export "again") (memory.init $large $first (i32.const 0) (i32.const 0) (i32.const 1)))
            (func (export "passive") (memory.init $large $passive (i32.const 0) (i32.const 0) (i32.const 1))))"#
    );
    let mut expected = vec![0; 65536];
    expected[5000..25000].fill(1);
    expected[24950..25050].fill(10);
    each_engine(
        |_| (),
        |engine| {
            let module = module(engine, &wat);
            for _ in 0..4 {
                let mut store = Store::new(engine, ());
                let instance = Instance::new(&mut store, &module, &[]).unwrap();
                let memory = instance.get_memory(&mut store, "memory").unwrap();
                assert!(memory.data(&store) == expected);
                let small = instance.get_typed_func::<(), i32>(&mut store, "small").unwrap();
                assert_eq!(small.call(&mut store, ()).unwrap(), 7);
                let again = instance.get_typed_func::<(), ()>(&mut store, "again").unwrap();
                let error = again.call(&mut store, ()).unwrap_err();
                assert_eq!(error.downcast_ref(), Some(&Trap::MemoryOutOfBounds), "an active segment was dropped");
                instance.get_typed_func::<(), ()>(&mut store, "passive").unwrap().call(&mut store, ()).unwrap();
                assert_eq!(memory.data(&store)[0], 5);
                memory.data_mut(&mut store).fill(9);
                assert_eq!(memory.grow(&mut store, 1).unwrap(), 1);
                assert!(memory.data(&store)[65536..].iter().all(|&byte| byte == 0));
            }
        },
    );
}

/// Segments that may fail, or that write to another instance's memory, are written by every instance.
#[test]
fn data_that_cannot_be_mapped_is_written() {
    let engine = common::default_engine();
    let data = "\\01".repeat(20_000);
    let imported = module(&engine, &format!(r#"(module (memory (import "" "m") 1) (data (i32.const 0) "{data}"))"#));
    let outside = module(&engine, &format!(r#"(module (memory 1) (data (i32.const 50000) "{data}"))"#));
    let by_global = format!(r#"(module (global (import "" "g") i32) (memory (export "m") 1) (data (global.get 0) "{data}"))"#);
    let by_global = module(&engine, &by_global);
    for at in [0, 100, 7] {
        let mut store = Store::new(&engine, ());
        let memory = Memory::new(&mut store, MemoryType::new(1, None)).unwrap();
        Instance::new(&mut store, &imported, &[memory.into()]).unwrap();
        assert_eq!(memory.data(&store)[19_998..20_002], [1, 1, 0, 0]);
        let error = Instance::new(&mut store, &outside, &[]).unwrap_err();
        assert_eq!(error.downcast_ref(), Some(&Trap::MemoryOutOfBounds));
        let global = Global::new(&mut store, GlobalType::new(ValType::I32, Mutability::Const), Val::I32(at)).unwrap();
        let instance = Instance::new(&mut store, &by_global, &[global.into()]).unwrap();
        let end = at as usize + 20_000;
        let memory = instance.get_memory(&mut store, "m").unwrap();
        assert_eq!(memory.data(&store)[end - 1..end + 1], [1, 0]);
    }
}

/// Items of every kind, in imports by position, through a linker, and through a linker that knows the module.
#[test]
fn items_of_another_store_are_refused() {
    let engine = common::default_engine();
    let (mut one, mut other) = (Store::new(&engine, ()), Store::new(&engine, ()));
    let memory = Memory::new(&mut one, MemoryType::new(1, None)).unwrap();
    let table = Table::new(&mut one, TableType::new(RefType::FUNCREF, 1, None), Ref::Func(None)).unwrap();
    let global = Global::new(&mut one, GlobalType::new(ValType::I32, Mutability::Const), Val::I32(0)).unwrap();
    let exporting = module(&engine, r#"(module (func (export "f")))"#);
    let exporter = Instance::new(&mut one, &exporting, &[]).unwrap();
    let func = exporter.get_func(&mut one, "f").unwrap();
    let host = Func::wrap(&mut one, || ());
    let items: [(&str, Extern); 5] = [
        ("(memory 1)", memory.into()),
        ("(table 1 funcref)", table.into()),
        ("(global i32)", global.into()),
        ("(func)", func.into()),
        ("(func)", host.into()),
    ];
    for (ty, item) in items {
        let module = module(&engine, &format!(r#"(module (import "a" "b" {ty}))"#));
        let mut linker = Linker::new(&engine);
        linker.define(&one, "a", "b", item).unwrap();
        let pre = linker.instantiate_pre(&module).unwrap();
        for refused in
            [Instance::new(&mut other, &module, &[item]), linker.instantiate(&mut other, &module), pre.instantiate(&mut other)]
        {
            assert_eq!(refused.unwrap_err().to_string(), "cross-`Store` instantiation is not currently supported", "{ty}");
        }
        Instance::new(&mut one, &module, &[item]).unwrap();
    }
    // The store that was given the items works as before.
    assert!(Instance::new(&mut other, &exporting, &[]).is_ok());
}

#[test]
fn a_name_without_a_module_is_of_the_empty_one() {
    let engine = common::default_engine();
    let mut store = Store::new(&engine, ());
    let memory = Memory::new(&mut store, MemoryType::new(1, None)).unwrap();
    let mut linker = Linker::new(&engine);
    linker.define_name(&store, "memory", memory).unwrap();
    let wat = r#"(module (import "" "memory" (memory 1)) (func (export "write") (i32.store8 (i32.const 9) (i32.const 77))))"#;
    let instance = linker.instantiate(&mut store, &module(&engine, wat)).unwrap();
    instance.get_typed_func::<(), ()>(&mut store, "write").unwrap().call(&mut store, ()).unwrap();
    assert_eq!((memory.data(&store)[9], memory.data_ptr(&store).cast_const()), (77, memory.data(&store).as_ptr()));
}

#[test]
fn a_reference_is_of_one_kind_null_or_not() {
    let engine = common::default_engine();
    let mut store = Store::new(&engine, ());
    let func = Func::wrap(&mut store, || ());
    let number = ExternRef::new(&mut store, 7_u32).unwrap();
    for (reference, is_null) in [(Ref::Func(None), true), (func.into(), false)] {
        assert!(reference.is_func() && !reference.is_extern() && reference.as_extern().is_none());
        assert_eq!((reference.as_func().map(|func| func.is_none()), reference.is_null()), (Some(is_null), is_null));
    }
    for (reference, is_null) in [(Ref::Extern(None), true), (number.into(), false)] {
        assert!(reference.is_extern() && !reference.is_func() && reference.as_func().is_none());
        assert_eq!((reference.as_extern().map(|value| value.is_none()), reference.is_null()), (Some(is_null), is_null));
    }
}

#[test]
fn an_error_becomes_one_of_the_standard_library() {
    let error = Error::from(std::io::Error::other("the disk")).context("reading");
    let error = error.into_boxed_dyn_error();
    assert_eq!((error.to_string(), error.source().map(ToString::to_string)), ("reading".into(), Some("the disk".into())));
}

/// Instances of one module call each other, and call their own functions through private tables.
#[test]
fn functions_in_a_private_table_run_in_their_instance() {
    const TEXT: &str = r#"(module
        (type $unary (func (param i32) (result i32)))
        (import "" "next" (func $next (type $unary)))
        (memory (export "memory") 1)
        (global $sum (export "sum") (mut i32) (i32.const 0))
        (table 3 funcref) (elem (i32.const 0) $add $store $through)
        (func $add (type $unary)
            (global.set $sum (i32.add (global.get $sum) (local.get 0))) (global.get $sum))
        (func $store (type $unary) (i32.store (i32.const 8) (local.get 0)) (i32.load (i32.const 8)))
        (func $through (type $unary) (call $next (local.get 0)))
        (func (export "run") (type $unary) (local $i i32)
            (loop $again
                (drop (call_indirect (type $unary) (local.get 0) (i32.const 0)))
                (drop (call_indirect (type $unary) (local.get 0) (i32.const 2)))
                (drop (call_indirect (type $unary) (global.get $sum) (i32.const 1)))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br_if $again (i32.lt_u (local.get $i) (local.get 0))))
            (i32.load (i32.const 8))))"#;
    each_engine(
        |_| (),
        |engine| {
            let module = Module::new(engine, TEXT).unwrap();
            let mut store = Store::new(engine, ());
            store.set_epoch_deadline(u64::MAX);
            let mut next = Func::wrap(&mut store, |n: i32| n + 1);
            let instances: Vec<Instance> = (0..3)
                .map(|_| {
                    let instance = Instance::new(&mut store, &module, &[next.into()]).unwrap();
                    next = instance.get_func(&mut store, "run").unwrap();
                    instance
                })
                .collect();
            // Each calls the one before `n` times in a call.
            let n = 5;
            let run = instances[2].get_typed_func::<i32, i32>(&mut store, "run").unwrap();
            assert_eq!(run.call(&mut store, n).unwrap(), n * n);
            for (instance, calls) in instances.iter().zip([n * n, n, 1]) {
                let sum = instance.get_global(&mut store, "sum").unwrap().get(&mut store).unwrap_i32();
                let memory = instance.get_memory(&store, "memory").unwrap();
                let mut stored = [0; 4];
                memory.read(&store, 8, &mut stored).unwrap();
                assert_eq!((sum, i32::from_le_bytes(stored)), (calls * n * n, calls * n * n));
            }
        },
    );
}

/// Callees in a private table leave the instance: one tail-calls another instance, the other passes on its exception.
#[test]
fn callees_in_a_private_table_may_leave_the_instance() {
    const TEXT: &str = r#"(module
        (type $unary (func (param i32) (result i32)))
        (tag $tag (import "" "tag") (param i32))
        (import "" "next" (func $next (type $unary)))
        (import "" "throw" (func $throw (type $unary)))
        (global $number (import "" "number") i32)
        (table 2 funcref) (elem (i32.const 0) $leave $fail)
        (func $leave (type $unary) (return_call $next (local.get 0)))
        (func $fail (type $unary) (call $throw (local.get 0)))
        (func (export "next") (type $unary) (i32.add (local.get 0) (global.get $number)))
        (func (export "throw") (type $unary) (throw $tag (i32.add (local.get 0) (global.get $number))))
        (func (export "leave") (type $unary)
            (i32.mul (call_indirect (type $unary) (local.get 0) (i32.const 0)) (global.get $number)))
        (func (export "fail") (type $unary)
            (i32.mul
                (block $caught (result i32)
                    (try_table (result i32) (catch $tag $caught)
                        (call_indirect (type $unary) (local.get 0) (i32.const 1))))
                (global.get $number))))"#;
    each_engine(
        |config| {
            config.wasm_exceptions(true);
        },
        |engine| {
            let module = Module::new(engine, TEXT).unwrap();
            let mut store = Store::new(engine, ());
            store.set_epoch_deadline(u64::MAX);
            let mut linker = Linker::new(engine);
            let tag = Tag::new(&mut store, &TagType::new(FuncType::new(engine, [ValType::I32], []))).unwrap();
            linker.define(&store, "", "tag", tag).unwrap();
            linker.allow_shadowing(true);
            for name in ["next", "throw"] {
                linker.func_wrap("", name, |n: i32| n).unwrap();
            }
            let mut last = None;
            for number in [1000, 3] {
                let number = Global::new(&mut store, GlobalType::new(ValType::I32, Mutability::Const), number.into()).unwrap();
                linker.define(&store, "", "number", number).unwrap();
                let instance = linker.instantiate(&mut store, &module).unwrap();
                for name in ["next", "throw"] {
                    let func = instance.get_func(&mut store, name).unwrap();
                    linker.define(&store, "", name, func).unwrap();
                }
                last = Some(instance);
            }
            for name in ["leave", "fail"] {
                let func = last.unwrap().get_typed_func::<i32, i32>(&mut store, name).unwrap();
                for _ in 0..3 {
                    assert_eq!(func.call(&mut store, 5).unwrap(), (5 + 1000) * 3, "{name}");
                }
            }
        },
    );
}
