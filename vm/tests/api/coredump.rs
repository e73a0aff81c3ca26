//! Core dumps: what they have, and that their serialised form says it, in every tier.

use crate::common::{default_engine, engine, is_built};
use std::collections::BTreeMap;
use wasmparser::{
    CoreDumpInstancesSection, CoreDumpModulesSection, CoreDumpSection, CoreDumpStackSection, DataKind, KnownCustom, Parser,
    Payload,
};
use weir::{
    Config, Engine, Error, Global, GlobalType, Instance, Linker, Memory, MemoryType, Module, Mutability, Result, Store, Tier,
    Trap, Val, ValType, WasmBacktrace, WasmCoreDump,
};

/// The tiers of this build.
fn tiers() -> impl Iterator<Item = Config> {
    let tiers = [Tier::Interpreter, Tier::Baseline, Tier::Native, Tier::Cranelift, Tier::Ssa];
    tiers.into_iter().filter(|&tier| is_built(tier)).map(|tier| {
        let mut config = dumping();
        config.tier(tier).synchronous_compilation(true);
        config
    })
}

/// A configuration with core dumps.
fn dumping() -> Config {
    let mut config = Config::new();
    config.coredump_on_trap(true);
    config
}

/// What a serialised dump says.
#[derive(Default, Debug)]
struct Read {
    name: String,
    modules: Vec<String>,
    /// Module, memories and globals of each instance.
    instances: Vec<(u32, Vec<u32>, Vec<u32>)>,
    /// The thread's name, and instance, function and offset of each frame.
    thread: String,
    frames: Vec<(u32, u32, u32)>,
    /// The pages of each memory.
    memories: Vec<u64>,
    /// Type, and the instruction that gives the value, of each global.
    globals: Vec<String>,
    /// The bytes of data segments by memory and address.
    data: BTreeMap<(u32, u64), Vec<u8>>,
}

fn read(bytes: &[u8]) -> Read {
    let mut read = Read::default();
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.expect("a well-formed module") {
            Payload::MemorySection(section) => {
                read.memories = section.into_iter().map(|memory| memory.unwrap().initial).collect()
            }
            Payload::GlobalSection(section) => {
                for global in section {
                    let global = global.unwrap();
                    let value = global.init_expr.get_operators_reader().read().unwrap();
                    read.globals.push(format!("{} {:?} {value:?}", global.ty.mutable, global.ty.content_type));
                }
            }
            Payload::DataSection(section) => {
                for segment in section {
                    let segment = segment.unwrap();
                    let DataKind::Active { memory_index, offset_expr } = segment.kind else { panic!("a passive segment") };
                    let at = match offset_expr.get_operators_reader().read().unwrap() {
                        wasmparser::Operator::I32Const { value } => u64::from(value as u32),
                        wasmparser::Operator::I64Const { value } => value as u64,
                        other => panic!("{other:?}"),
                    };
                    read.data.insert((memory_index, at), segment.data.to_vec());
                }
            }
            Payload::CustomSection(section) => match section.as_known() {
                KnownCustom::CoreDump(CoreDumpSection { name }) => read.name = name.into(),
                KnownCustom::CoreDumpModules(CoreDumpModulesSection { modules }) => {
                    read.modules = modules.into_iter().map(String::from).collect();
                }
                KnownCustom::CoreDumpInstances(CoreDumpInstancesSection { instances }) => {
                    read.instances = instances.into_iter().map(|of| (of.module_index, of.memories, of.globals)).collect();
                }
                KnownCustom::CoreDumpStack(CoreDumpStackSection { name, frames }) => {
                    read.thread = name.into();
                    read.frames = frames.iter().map(|frame| (frame.instanceidx, frame.funcidx, frame.codeoffset)).collect();
                }
                _ => panic!("another section"),
            },
            _ => {}
        }
    }
    read
}

fn dump(error: &Error) -> &WasmCoreDump {
    error.downcast_ref().unwrap_or_else(|| panic!("no dump: {error:?}"))
}

const LIBRARY: &str = r#"(module $library
    (import "host" "limit" (global $limit (mut i64)))
    (memory (export "memory") 1)
    (global $count (export "count") (mut i32) (i32.const 5))
    (func $fail unreachable)
    (func (export "work") (param i32) (local f64)
        (global.set $count (i32.add (global.get $count) (local.get 0)))
        (global.set $limit (i64.const -9))
        (i64.store (i32.const 65528) (i64.const -1))
        (i32.store (i32.const 40000) (i32.const 0x01020304))
        (call $fail)))"#;
const APP: &str = r#"(module $app
    (import "library" "work" (func $work (param i32)))
    (import "library" "memory" (memory $theirs 1))
    (import "library" "count" (global $count (mut i32)))
    (import "host" "shared" (memory $host 1))
    (memory $own i64 2 8)
    (global $f (mut f64) (f64.const 1.5))
    (global $v v128 (v128.const i64x2 1 2))
    (global $r funcref (ref.func $run))
    (global $e externref (ref.null extern))
    (func $run (export "run")
        (i64.store8 $own (i64.const 100000) (i64.const 7))
        (i32.store8 $host (i32.const 1) (i32.const 8))
        (global.set $f (f64.const -2.25))
        (call $work (i32.const 2))))"#;

fn app(engine: &Engine) -> Result<(Store<()>, Instance)> {
    let mut store = Store::new(engine, ());
    let mut linker: Linker<()> = Linker::new(engine);
    let limit = Global::new(&mut store, GlobalType::new(ValType::I64, Mutability::Var), Val::I64(1))?;
    let shared = Memory::new(&mut store, MemoryType::new(1, None))?;
    linker.define(&store, "host", "limit", limit)?.define(&store, "host", "shared", shared)?;
    let library = linker.instantiate(&mut store, &Module::new(engine, LIBRARY)?)?;
    linker.instance(&mut store, "library", library)?;
    let instance = linker.instantiate(&mut store, &Module::new(engine, APP)?)?;
    Ok((store, instance))
}

#[test]
fn a_dump_has_the_state_at_the_trap_in_every_tier() -> Result<()> {
    for config in tiers() {
        let (mut store, instance) = app(&engine(&config)?)?;
        let error = instance.get_typed_func::<(), ()>(&mut store, "run")?.call(&mut store, ()).unwrap_err();
        assert_eq!(error.downcast_ref(), Some(&Trap::UnreachableCodeReached), "{config:?}");
        let dump = dump(&error);
        let functions: Vec<u32> = dump.frames().iter().map(|frame| frame.func_index()).collect();
        assert_eq!(functions, [0, 1, 1], "{config:?}");
        assert_eq!(dump.modules().iter().map(|module| module.name()).collect::<Vec<_>>(), [Some("library"), Some("app")]);
        assert_eq!((dump.instances().len(), dump.memories().len(), dump.globals().len()), (2, 3, 6));
        assert!(Instance::same(dump.instances()[1], instance));

        let read = read(&dump.serialize(&mut store, "the name"));
        assert_eq!((&*read.name, &*read.thread), ("the name", "main"));
        assert_eq!(read.modules, ["library", "app"]);
        assert_eq!(read.memories, [1, 1, 2], "that of the host is the first");
        assert_eq!(read.instances, [(0, vec![1], vec![0, 1]), (1, vec![1, 0, 2], vec![1, 2, 3, 4, 5])]);
        let offsets: Vec<u32> = dump.frames().iter().map(|frame| frame.func_offset().unwrap() as u32).collect();
        assert_eq!(read.frames, [(0, 0, offsets[0]), (0, 1, offsets[1]), (1, 1, offsets[2])], "{config:?}");
        assert_eq!(offsets[0], 0, "the first instruction");
        assert_eq!(
            read.globals,
            [
                "true I64 I64Const { value: -9 }",
                "true I32 I32Const { value: 7 }",
                "true F64 F64Const { value: Ieee64(13835621005235585024) }",
                "false V128 V128Const { value: V128([1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0]) }",
                "false Ref(funcref) RefNull { hty: Abstract { shared: false, ty: Func } }",
                "false Ref(externref) RefNull { hty: Abstract { shared: false, ty: Extern } }",
            ],
            "{config:?}"
        );
        let segments = [((0, 1), vec![8]), ((1, 40000), vec![4, 3, 2, 1]), ((1, 65528), vec![0xFF; 8]), ((2, 100_000), vec![7])];
        assert_eq!(read.data, BTreeMap::from(segments), "{config:?}");
    }
    Ok(())
}

#[test]
fn blocks_beside_each_other_are_one_segment() -> Result<()> {
    let engine = engine(&dumping())?;
    let module = Module::new(
        &engine,
        r#"(module (memory 1) (func (export "run")
            (memory.fill (i32.const 5000) (i32.const 1) (i32.const 10000))
            (i32.store8 (i32.const 60000) (i32.const 2))
            unreachable))"#,
    )?;
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[])?;
    let error = instance.get_typed_func::<(), ()>(&mut store, "run")?.call(&mut store, ()).unwrap_err();
    let read = read(&dump(&error).serialize(&mut store, ""));
    assert_eq!(read.data, BTreeMap::from([((0, 5000), vec![1; 10000]), ((0, 60000), vec![2])]));
    assert_eq!(read.modules, ["<anonymous-module-0>"]);
    Ok(())
}

#[test]
fn the_inner_guest_makes_the_dump() -> Result<()> {
    let engine = engine(&dumping())?;
    let module = Module::new(
        &engine,
        r#"(module (import "host" "again" (func $again (param i32)))
            (func $run (export "run") (param i32) (call $again (local.get 0))))"#,
    )?;
    let mut linker: Linker<()> = Linker::new(&engine);
    linker.func_wrap("host", "again", |mut caller: weir::Caller<'_, ()>, n: i32| -> Result<()> {
        weir::ensure!(n > 0, "enough");
        let run = caller.get_export("run").and_then(weir::Extern::into_func).expect("it is exported");
        run.typed::<i32, ()>(&caller)?.call(&mut caller, n - 1)
    })?;
    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &module)?;
    let error = instance.get_typed_func::<i32, ()>(&mut store, "run")?.call(&mut store, 2).unwrap_err();
    assert_eq!(error.root_cause().to_string(), "enough");
    assert_eq!(dump(&error).frames().len(), 3);
    let links: Vec<bool> = error.chain().map(|link| link.is::<WasmCoreDump>()).collect();
    assert_eq!(links, [true, false, false], "outermost, and one only");
    assert!(dump(&error).to_string().starts_with("wasm coredump generated while executing store_name:\nmodules:\n  <module>\n"));
    Ok(())
}

#[test]
fn there_is_none_unless_it_is_asked_for() -> Result<()> {
    let (mut store, instance) = app(&default_engine())?;
    let error = instance.get_typed_func::<(), ()>(&mut store, "run")?.call(&mut store, ()).unwrap_err();
    assert!(error.is::<WasmBacktrace>() && !error.is::<WasmCoreDump>());
    Ok(())
}
