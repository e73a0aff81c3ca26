//! Snapshots: what a module is after its initialiser has run, and what is refused.

use crate::common::{default_engine, each_engine};
use weir::{
    Caller, Engine, Error, Extern, ExternRef, ExternType, Func, Global, GlobalType, Instance, Linker, Memory, MemoryType, Module,
    Mutability, Ref, RefType, Result, Rooted, Snapshot, SnapshotError, Store, Table, TableType, ThrownException, Trap,
    UnknownImportError, Val, ValType,
};
use weir_bytecode::module::{ElemMode, ExternIndex};

/// The snapshot of a module without imports after its function `init`.
fn snapshot(wat: &str) -> Result<Vec<u8>> {
    linked(wat, |_, _| ())
}

/// The same with imports.
fn linked(wat: &str, define: impl Fn(&mut Linker<()>, &mut Store<()>)) -> Result<Vec<u8>> {
    let engine = default_engine();
    let (mut linker, mut store) = (Linker::new(&engine), Store::new(&engine, ()));
    define(&mut linker, &mut store);
    Snapshot::new().init("init").run(&mut store, &linker, &Module::new(&engine, wat)?)
}

/// The message of the refusal of a module.
fn refusal(result: Result<Vec<u8>>) -> String {
    let error = result.unwrap_err();
    assert!(error.is::<SnapshotError>(), "{error:?}");
    error.root_cause().to_string()
}

/// Calls functions of a new module without parameters, in every tier, and expects these results; a trap is named by its text.
fn expect(bytes: &[u8], calls: &[(&str, &str)]) {
    each_engine(
        |_| (),
        |engine| {
            let module = Module::from_binary(engine, bytes).unwrap();
            let mut store = Store::new(engine, ());
            store.set_epoch_deadline(u64::MAX);
            let instance = Linker::new(engine).instantiate(&mut store, &module).unwrap();
            for (name, expected) in calls {
                assert_eq!(call(&mut store, instance, name), *expected, "{name}");
            }
        },
    );
}

fn call(store: &mut Store<()>, instance: Instance, name: &str) -> String {
    let func = instance.get_func(&mut *store, name).unwrap_or_else(|| panic!("no function {name}"));
    let mut results = vec![Val::I32(0); func.ty(&*store).results().len()];
    match func.call(&mut *store, &[], &mut results) {
        Ok(()) => results.iter().map(show).collect::<Vec<_>>().join(" "),
        Err(error) => error.downcast_ref::<Trap>().unwrap_or_else(|| panic!("{error:?}")).to_string(),
    }
}

fn show(value: &Val) -> String {
    match value {
        Val::I32(x) => x.to_string(),
        Val::I64(x) => x.to_string(),
        Val::F32(bits) => format!("{bits:#x}"),
        Val::F64(bits) => format!("{bits:#x}"),
        Val::V128(bits) => bits.to_string(),
        other => format!("{other:?}"),
    }
}

fn exports(engine: &Engine, bytes: &[u8]) -> Vec<String> {
    Module::new(engine, bytes).unwrap().exports().map(|export| export.name().to_owned()).collect()
}

#[test]
fn memories_and_globals_begin_where_the_initialiser_ended() {
    let bytes = snapshot(
        r#"(module
            (memory (export "memory") 1 9)
            (global $i32 (mut i32) (i32.const 1)) (global $i64 (mut i64) (i64.const 1))
            (global $f32 (mut f32) (f32.const 1)) (global $f64 (mut f64) (f64.const 1))
            (global $constant i32 (i32.const 5)) (global $derived i32 (i32.add (i32.const 5) (i32.const 1)))
            (data (i32.const 10) "before")
            (func (export "init")
                (global.set $i32 (i32.const -2)) (global.set $i64 (i64.const -3))
                (global.set $f32 (f32.reinterpret_i32 (i32.const 0x7fa12345))) (global.set $f64 (f64.const nan:0x4000000000001))
                (drop (memory.grow (i32.const 2)))
                (i32.store8 (i32.const 10) (i32.const 66))
                (i64.store (i32.const 196600) (i64.const 0x0102030405060708)))
            (func (export "numbers") (result i32 i64 f32 f64 i32 i32)
                (global.get $i32) (global.get $i64) (global.get $f32) (global.get $f64) (global.get $constant) (global.get $derived))
            (func (export "memory?") (result i32 i64 i64 i64)
                (memory.size) (i64.load (i32.const 196600)) (i64.load (i32.const 10)) (i64.load (i32.const 100000))))"#,
    )
    .unwrap();
    expect(
        &bytes,
        &[
            ("numbers", "-2 -3 0x7fa12345 0x7ff4000000000001 5 6"),
            ("memory?", &format!("3 {} {} 0", 0x0102030405060708u64, i64::from_le_bytes(*b"Before\0\0"))),
        ],
    );
    let module = Module::new(&default_engine(), &bytes).unwrap();
    assert_eq!((module.bytecode().memories[0].limits.min, module.bytecode().memories[0].limits.max), (3, Some(9)));
    assert_eq!(module.bytecode().data.len(), 2, "nothing refers to the first segment, so it is not kept");
}

#[test]
fn vectors_and_several_memories_of_either_width_and_of_any_page_size() {
    let bytes = snapshot(
        r#"(module
            (memory $a 1) (memory $b i64 0 4) (memory $c 7 (pagesize 1)) (memory $empty 0)
            (global $v (mut v128) (v128.const i64x2 1 2))
            (func (export "init")
                (global.set $v (v128.const i64x2 0x7ff4000000000001 -1))
                (drop (memory.grow $b (i64.const 2))) (drop (memory.grow $c (i32.const 5)))
                (i32.store $a (i32.const 65532) (i32.const 1))
                (i32.store $b (i64.const 131068) (i32.const 2))
                (i32.store8 $c (i32.const 11) (i32.const 3)))
            (func (export "v") (result v128) (global.get $v))
            (func (export "memories") (result i32 i32 i32 i32 i64 i32 i32)
                (i32.load $a (i32.const 65532)) (i32.load $b (i64.const 131068)) (i32.load8_u $c (i32.const 11))
                (memory.size $a) (memory.size $b) (memory.size $c) (memory.size $empty)))"#,
    )
    .unwrap();
    expect(&bytes, &[("v", "0xffffffffffffffff7ff4000000000001"), ("memories", "1 2 3 1 2 12 0")]);
}

#[test]
fn segments_that_were_dropped_are_empty_and_keep_their_indices() {
    let bytes = snapshot(
        r#"(module
            (type $f (func (result i32))) (memory 1) (table $t 8 funcref) (table $o 2 externref)
            (data $active (i32.const 0) "a") (data $dropped "bb") (data $live "ccc")
            (elem $active (i32.const 0) $one) (elem $dropped func $two) (elem $live func $one $two) (elem $declared declare func $three)
            (elem $outside externref (ref.null extern)) (elem $gone externref (ref.null extern))
            (func $one (result i32) (i32.const 1)) (func $two (result i32) (i32.const 2)) (func $three (result i32) (i32.const 3))
            (func (export "init") (data.drop $dropped) (elem.drop $dropped) (elem.drop $gone))
            (func (export "data active") (memory.init $active (i32.const 50) (i32.const 0) (i32.const 1)))
            (func (export "data dropped") (memory.init $dropped (i32.const 50) (i32.const 0) (i32.const 1)))
            (func (export "data live") (result i32)
                (memory.init $live (i32.const 50) (i32.const 0) (i32.const 3)) (i32.load (i32.const 50)))
            (func (export "elem active") (table.init $t $active (i32.const 0) (i32.const 0) (i32.const 1)))
            (func (export "elem dropped") (table.init $t $dropped (i32.const 0) (i32.const 0) (i32.const 1)))
            (func (export "elem declared") (table.init $t $declared (i32.const 0) (i32.const 0) (i32.const 1)))
            (func (export "elem live") (result i32)
                (table.init $t $live (i32.const 4) (i32.const 0) (i32.const 2)) (call_indirect $t (type $f) (i32.const 5)))
            (func (export "elem outside") (table.init $o $outside (i32.const 0) (i32.const 0) (i32.const 1)))
            (func (export "elem gone") (table.init $o $gone (i32.const 0) (i32.const 0) (i32.const 1)))
            (func (export "nothing")
                (memory.init $dropped (i32.const 0) (i32.const 0) (i32.const 0))
                (table.init $t $dropped (i32.const 0) (i32.const 0) (i32.const 0)))
            (func (export "drop again") (data.drop $dropped) (data.drop $active) (elem.drop $dropped) (data.drop $live))
            (func (export "three") (result i32) (table.set $t (i32.const 7) (ref.func $three)) (call_indirect $t (type $f) (i32.const 7))))"#,
    )
    .unwrap();
    let (memory, table) = (Trap::MemoryOutOfBounds.to_string(), Trap::TableOutOfBounds.to_string());
    expect(
        &bytes,
        &[
            ("data active", &memory),
            ("data dropped", &memory),
            ("data live", &u32::from_le_bytes(*b"ccc\0").to_string()),
            ("elem active", &table),
            ("elem dropped", &table),
            ("elem declared", &table),
            ("elem live", "2"),
            ("elem outside", ""),
            ("elem gone", &table),
            ("nothing", ""),
            ("drop again", ""),
            ("data live", &memory),
            ("three", "3"),
        ],
    );
    let module = Module::new(&default_engine(), &bytes).unwrap();
    assert_eq!(
        module.bytecode().data.iter().map(|data| data.range.len()).collect::<Vec<_>>(),
        [1, 0, 3],
        "the memory's contents take the place of a segment that was dropped"
    );
}

#[test]
fn tables_have_the_functions_that_they_had() {
    let bytes = snapshot(
        r#"(module
            (type $f (func (result i32)))
            (table $t (export "t") 4 20 funcref) (table $typed 2 (ref null $f)) (table $full 2 (ref $f) (ref.func $one))
            (table $wide i64 1 funcref) (table $null 3 externref) (table $empty 0 funcref)
            (elem $first (table $t) (i32.const 0) func $one $one) (elem (table $t) (i32.const 2) funcref (ref.func $one) (ref.null func))
            (func $one (type $f) (i32.const 1)) (func $two (type $f) (i32.const 2))
            (elem declare func $two)
            (func (export "init")
                (table.set $t (i32.const 1) (ref.func $two)) (table.set $t (i32.const 2) (ref.null func))
                (drop (table.grow $t (ref.func $two) (i32.const 9))) (table.set $t (i32.const 8) (ref.null func))
                (drop (table.grow $typed (ref.null $f) (i32.const 2))) (table.set $typed (i32.const 3) (ref.func $two))
                (table.set $full (i32.const 1) (ref.func $two))
                (drop (table.grow $wide (ref.func $one) (i64.const 1))) (drop (table.grow $null (ref.null extern) (i32.const 1))))
            (func (export "sizes") (result i32 i32 i32 i64 i32)
                (table.size $t) (table.size $typed) (table.size $full) (table.size $wide) (table.size $null))
            (func (export "calls") (result i32 i32 i32 i32 i32 i32 i32 i32)
                (call_indirect $t (type $f) (i32.const 0)) (call_indirect $t (type $f) (i32.const 1))
                (call_indirect $t (type $f) (i32.const 4)) (call_indirect $t (type $f) (i32.const 12))
                (call_indirect $typed (type $f) (i32.const 3))
                (call_indirect $full (type $f) (i32.const 0)) (call_indirect $full (type $f) (i32.const 1))
                (call_indirect $wide (type $f) (i64.const 1)))
            (func (export "nulls") (result i32 i32 i32 i32 i32)
                (ref.is_null (table.get $t (i32.const 2))) (ref.is_null (table.get $t (i32.const 3)))
                (ref.is_null (table.get $t (i32.const 8))) (ref.is_null (table.get $wide (i64.const 0)))
                (ref.is_null (table.get $null (i32.const 3)))))"#,
    )
    .unwrap();
    expect(&bytes, &[("sizes", "13 4 2 2 4"), ("calls", "1 2 2 2 2 1 2 1"), ("nulls", "1 1 1 1 1")]);
    let module = Module::new(&default_engine(), &bytes).unwrap();
    assert_eq!(module.bytecode().tables[0].ty.limits.max, Some(20));
}

#[test]
fn a_table_that_did_not_change_keeps_its_segment() {
    let wat = r#"(module
        (table 3 funcref) (elem (i32.const 1) $f $init) (func $f) (func $init (export "init")))"#;
    let bytes = snapshot(wat).unwrap();
    let module = Module::new(&default_engine(), &bytes).unwrap();
    assert!(matches!(&*module.bytecode().elems, [segment] if matches!(segment.mode, ElemMode::Active { .. })));
}

#[test]
fn functions_that_are_imported_are_named_by_their_import() {
    let wat = r#"(module
        (type $f (func (result i32)))
        (import "env" "seven" (func $seven (type $f))) (import "env" "eight" (func $eight (type $f)))
        (table 4 funcref) (global $g (mut funcref) (ref.null func)) (elem declare func $seven $eight)
        (func (export "init") (table.set (i32.const 2) (ref.func $eight)) (global.set $g (ref.func $seven)))
        (func (export "calls") (result i32 i32)
            (call_indirect (type $f) (i32.const 2)) (table.set (i32.const 0) (global.get $g)) (call_indirect (type $f) (i32.const 0))))"#;
    let define = |linker: &mut Linker<()>, _: &mut Store<()>| {
        linker.func_wrap("env", "seven", || 7).unwrap().func_wrap("env", "eight", || 8).unwrap();
    };
    let bytes = linked(wat, define).unwrap();
    let engine = default_engine();
    let (mut linker, mut store) = (Linker::new(&engine), Store::new(&engine, ()));
    define(&mut linker, &mut store);
    let instance = linker.instantiate(&mut store, &Module::new(&engine, bytes).unwrap()).unwrap();
    assert_eq!(call(&mut store, instance, "calls"), "8 7");
}

#[test]
fn nothing_runs_twice_and_code_is_the_same_byte_for_byte() {
    let wat = r#"(module $named
        (global $count (mut i32) (i32.const 0)) (memory 1)
        (func $start (global.set $count (i32.add (global.get $count) (i32.const 1))))
        (func $reactor (export "_initialize") (global.set $count (i32.add (global.get $count) (i32.const 10))))
        (func $init (export "init") (global.set $count (i32.add (global.get $count) (i32.const 100))))
        (start $start)
        (@custom "mine" (after code) "contents")
        (func (export "count") (result i32) (global.get $count)))"#;
    let bytes = snapshot(wat).unwrap();
    expect(&bytes, &[("count", "111")]);
    let engine = default_engine();
    // The initialiser may be the one that runs anyway.
    let module = Module::new(&engine, wat).unwrap();
    let bare = Snapshot::new().init("_initialize").run(&mut Store::new(&engine, ()), &Linker::new(&engine), &module).unwrap();
    expect(&bare, &[("count", "11")]);
    assert_eq!(exports(&engine, &bytes), ["count"]);
    let (old, new) = (Module::new(&engine, wat).unwrap(), Module::new(&engine, bytes).unwrap());
    assert_eq!(new.bytecode().start, None);
    let code = |module: &Module| {
        let (first, last) = (module.bytecode().bodies.first().unwrap().range(), module.bytecode().bodies.last().unwrap().range());
        module.bytecode().bytes[first.start as usize..last.end as usize].to_vec()
    };
    assert_eq!(code(&old), code(&new));
    assert_eq!(old.custom_sections().collect::<Vec<_>>(), new.custom_sections().collect::<Vec<_>>());
    assert_eq!((new.name(), new.bytecode().func_name(2)), (Some("named"), Some("init")));
}

#[test]
fn exports_are_left_out_kept_and_renamed() {
    let engine = default_engine();
    let wat = r#"(module
        (memory (export "memory") 1) (global (export "g") i32 (i32.const 0))
        (func (export "_initialize")) (func (export "wizer-initialize")) (func (export "wizer.initialize"))
        (func (export "_start") unreachable) (func (export "resume") nop) (func (export "other")))"#;
    let module = Module::new(&engine, wat).unwrap();
    let run = |snapshot: &Snapshot| {
        let bytes = snapshot.run(Store::new(&engine, ()), &Linker::new(&engine), &module)?;
        Ok::<_, Error>(exports(&engine, &bytes))
    };
    assert_eq!(run(&Snapshot::new()).unwrap(), ["memory", "g", "_start", "resume", "other"]);
    assert_eq!(
        run(Snapshot::new().init("wizer.initialize")).unwrap(),
        ["memory", "g", "wizer-initialize", "_start", "resume", "other"]
    );
    assert_eq!(
        run(Snapshot::new().keep_init(true)).unwrap(),
        ["memory", "g", "wizer-initialize", "wizer.initialize", "_start", "resume", "other"]
    );
    assert_eq!(run(Snapshot::new().rename("_start", "resume").rename("m", "memory")).unwrap(), ["m", "g", "_start", "other"]);
    assert_eq!(
        run(Snapshot::new().rename("_start", "other").rename("other", "_start").rename("again", "other")).unwrap(),
        ["memory", "g", "other", "resume", "_start", "again"]
    );
    assert_eq!(
        run(Snapshot::new().rename("reset", "wizer-initialize").rename("x", "_initialize")).unwrap(),
        ["memory", "g", "x", "reset", "_start", "resume", "other"]
    );
    for (snapshot, message) in [
        (Snapshot::new().rename("a", "nothing"), "exports no `nothing`, which `a` is to be"),
        (Snapshot::new().rename("a", "other").rename("a", "resume"), "two exports are to be `a`"),
        (Snapshot::new().init("nothing"), "exports no function `nothing`"),
        (
            Snapshot::new().init("memory"),
            "`memory` is no initialiser: expected a function without parameters and results, found memory",
        ),
    ] {
        let error = run(snapshot).unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(SnapshotError::Export(_))) && error.to_string().contains(message), "{error}");
    }
    let refused = |wat: &str| {
        let module = Module::new(&engine, wat).unwrap();
        refusal(Snapshot::new().run(Store::new(&engine, ()), &Linker::new(&engine), &module))
    };
    assert!(refused("(module)").contains("no initialiser: neither `wizer-initialize` nor `wizer.initialize`"));
    let wrong = refused(r#"(module (func (export "wizer-initialize")) (func (export "_initialize") (param i32)))"#);
    assert!(wrong.contains("`_initialize` is no initialiser"), "{wrong}");
}

#[test]
fn functions_that_code_refers_to_stay_declared() {
    let bytes = snapshot(
        r#"(module
            (type $f (func (result i32))) (table 2 funcref)
            (global $g (mut funcref) (ref.func $declared_by_global))
            (func $declared_by_global (type $f) (i32.const 1))
            (func $init (export "init") (global.set $g (ref.null func)))
            (func (export "_initialize") (table.set (i32.const 0) (ref.null func)))
            (elem $e (i32.const 0) funcref (ref.func $declared_by_segment))
            (func $declared_by_segment (type $f) (i32.const 2))
            (func (export "calls") (result i32 i32)
                (table.set (i32.const 0) (ref.func $declared_by_global)) (call_indirect (type $f) (i32.const 0))
                (table.set (i32.const 1) (ref.func $declared_by_segment)) (call_indirect (type $f) (i32.const 1))
                (table.set (i32.const 1) (ref.func $init))))"#,
    )
    .unwrap();
    expect(&bytes, &[("calls", "1 2")]);
    let module = Module::new(&default_engine(), &bytes).unwrap();
    assert!(module.bytecode().exports.iter().all(|export| export.item != ExternIndex::Func(1)));
}

#[test]
fn immutable_imports_stay_and_decide_where_segments_went() {
    let wat = r#"(module
        (import "env" "at" (global $at i32)) (import "env" "host" (global $host externref)) (import "env" "tag" (tag))
        (memory 1) (table 9 funcref) (global $again externref (global.get $host))
        (global $mutable (mut i32) (global.get $at))
        (data (global.get $at) "x") (elem (global.get $at) $f) (func $f)
        (func (export "init") (global.set $mutable (i32.add (global.get $at) (i32.const 1))))
        (func (export "state") (result i32 i32 i32 i32)
            (global.get $at) (global.get $mutable) (i32.load8_u (i32.const 5)) (ref.is_null (table.get (i32.const 5)))))"#;
    let at = |value: i32| {
        move |linker: &mut Linker<()>, store: &mut Store<()>| {
            let global = Global::new(&mut *store, GlobalType::new(ValType::I32, Mutability::Const), Val::I32(value)).unwrap();
            let host = ExternRef::new(&mut *store, 1).unwrap();
            let ty = GlobalType::new(ValType::EXTERNREF, Mutability::Const);
            let host = Global::new(&mut *store, ty, Val::ExternRef(Some(host))).unwrap();
            let ty = weir::TagType::new(weir::FuncType::new(&store.engine().clone(), [], []));
            let tag = weir::Tag::new(&mut *store, &ty).unwrap();
            linker.define(&*store, "env", "at", global).unwrap();
            linker.define(&*store, "env", "host", host).unwrap();
            linker.define(&*store, "env", "tag", tag).unwrap();
        }
    };
    let bytes = linked(wat, at(5)).unwrap();
    let engine = default_engine();
    let (mut linker, mut store) = (Linker::new(&engine), Store::new(&engine, ()));
    at(7)(&mut linker, &mut store);
    let instance = linker.instantiate(&mut store, &Module::new(&engine, bytes).unwrap()).unwrap();
    assert_eq!(call(&mut store, instance, "state"), "7 6 120 0", "what was written with the value at that time stays");

    let error = linked(wat, |_, _| ()).unwrap_err();
    assert_eq!(error.downcast_ref::<UnknownImportError>().map(UnknownImportError::name), Some("at"));
}

#[test]
fn imports_with_state_are_refused_by_name() {
    let memory = r#"(module (import "env" "m" (memory 1)) (func (export "init")))"#;
    let table = r#"(module (import "env" "t" (table 1 funcref)) (func (export "init")))"#;
    let global = r#"(module (import "env" "g" (global (mut i32))) (func (export "init")))"#;
    let define = |linker: &mut Linker<()>, store: &mut Store<()>| {
        let memory: Extern = Memory::new(&mut *store, MemoryType::new(1, None)).unwrap().into();
        let table = Table::new(&mut *store, TableType::new(RefType::FUNCREF, 1, None), Ref::Func(None)).unwrap();
        let global = Global::new(&mut *store, GlobalType::new(ValType::I32, Mutability::Var), Val::I32(0)).unwrap();
        linker.define(&*store, "env", "m", memory).unwrap().define(&*store, "env", "t", table).unwrap();
        linker.define(&*store, "env", "g", global).unwrap();
    };
    for (wat, name) in [(memory, "the memory `env.m`"), (table, "the table `env.t`"), (global, "the mutable global `env.g`")] {
        for message in [refusal(linked(wat, define)), refusal(snapshot(wat))] {
            assert!(message.contains(name), "{message}");
        }
    }
}

#[test]
fn live_references_are_refused_by_name() {
    let make = |linker: &mut Linker<()>, _: &mut Store<()>| {
        let make = |mut caller: Caller<'_, ()>| -> Result<Option<Rooted<ExternRef>>> { ExternRef::new(&mut caller, 1).map(Some) };
        linker.func_wrap("env", "make", make).unwrap();
    };
    let import = r#"(import "env" "make" (func $make (result externref)))"#;
    let global = format!(
        r#"(module {import} (global (export "kept") (mut externref) (ref.null extern)) (func (export "init") (global.set 0 (call $make))))"#
    );
    assert_eq!(refusal(linked(&global, make)), "global 0 (`kept`) holds a live externref, which a snapshot cannot hold");
    let table = format!(
        r#"(module {import} (table 1 funcref) (table $named 9 externref) (func (export "init") (table.set $named (i32.const 7) (call $make))))"#
    );
    assert_eq!(
        refusal(linked(&table, make)),
        "table 1 (`named`), element 7, holds a live externref, which a snapshot cannot hold"
    );

    let exception = |place: &str, set: &str| {
        refusal(snapshot(&format!(
            r#"(module (tag $t) {place}
                (func (export "init") (block $h (result exnref) (try_table (catch_all_ref $h) (throw $t)) unreachable) {set}))"#
        )))
    };
    let message = exception("(global $caught (mut exnref) (ref.null exn))", "(global.set $caught)");
    assert_eq!(message, "global 0 (`caught`) holds a live exnref, which a snapshot cannot hold");
    let message = exception(
        "(global $at (mut exnref) (ref.null exn)) (table 2 exnref)",
        "(global.set $at) (table.set (i32.const 1) (global.get $at)) (global.set $at (ref.null exn))",
    );
    assert_eq!(message, "table 0, element 1, holds a live exnref, which a snapshot cannot hold");

    let foreign = r#"(module (import "env" "get" (func $get (result funcref))) (global $f (mut funcref) (ref.null func))
        (func (export "init") (global.set $f (call $get))))"#;
    let define = |linker: &mut Linker<()>, store: &mut Store<()>| {
        let func = Func::wrap(&mut *store, || ());
        linker.func_wrap("env", "get", move || Some(func)).unwrap();
    };
    let message = refusal(linked(foreign, define));
    assert!(message.starts_with("global 0 (`f`) holds a function that the module neither defines nor imports"), "{message}");
}

#[test]
fn null_references_are_kept() {
    let bytes = snapshot(
        r#"(module (global $e (mut externref) (ref.null extern)) (global $x (mut exnref) (ref.null exn)) (global $f (mut funcref) (ref.func $init))
            (type $t (func)) (global $c (mut (ref null $t)) (ref.null $t)) (table 3 exnref)
            (func $init (export "init") (global.set $f (ref.null func)) (global.set $c (ref.func $init)))
            (func (export "nulls") (result i32 i32 i32 i32)
                (ref.is_null (global.get $e)) (ref.is_null (global.get $x)) (ref.is_null (global.get $f)) (ref.is_null (global.get $c))))"#,
    )
    .unwrap();
    expect(&bytes, &[("nulls", "1 1 1 0")]);
}

#[test]
fn exceptions_that_leave_the_initialiser_and_are_pending_are_refused() {
    let wat = r#"(module (tag $t (export "t")) (func (export "init") (throw $t)))"#;
    assert!(snapshot(wat).unwrap_err().is::<ThrownException>());
    let engine = default_engine();
    let mut store = Store::new(&engine, ());
    let instance = Linker::new(&engine).instantiate(&mut store, &Module::new(&engine, wat).unwrap()).unwrap();
    let init = instance.get_typed_func::<(), ()>(&mut store, "init").unwrap();
    init.call(&mut store, ()).unwrap_err();
    assert_eq!(refusal(Snapshot::new().take(&store, instance)), "an exception is pending, which a snapshot cannot hold");
    store.take_pending_exception();
    Snapshot::new().take(&store, instance).unwrap();
}

#[test]
fn functions_that_are_not_defined_trap_with_their_name() {
    let wat = r#"(module (import "env" "log" (func $log)) (import "env" "unused" (func)) (func (export "init") (call $log)))"#;
    let error = snapshot(wat).unwrap_err();
    assert_eq!(error.downcast_ref(), Some(&SnapshotError::Call { module: "env".into(), name: "log".into() }));
    assert!(error.wasm_backtrace().is_some_and(|backtrace| !backtrace.frames().is_empty()));
    // The type names one of the module's own.
    let wat_of_types = r#"(module (type $t (func)) (import "env" "use" (func $use (param (ref null $t)) (result (ref null $t))))
        (func (export "init") (drop (call $use (ref.null $t)))))"#;
    assert!(snapshot(wat_of_types).unwrap_err().is::<SnapshotError>());
    let bytes = linked(wat, |linker, _| _ = linker.func_wrap("env", "log", || ()).unwrap()).unwrap();
    let module = Module::new(&default_engine(), bytes).unwrap();
    let imports: Vec<&str> = module.imports().map(|import| import.name()).collect();
    assert_eq!(imports, ["log", "unused"]);
    assert!(module.imports().all(|import| matches!(import.ty(), ExternType::Func(_))));
}

#[test]
fn an_initialiser_that_traps_gives_its_trap() {
    let error = snapshot(r#"(module (func (export "init") unreachable))"#).unwrap_err();
    assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::UnreachableCodeReached));
}

#[test]
fn many_bytes_far_apart_give_no_more_segments_than_engines_accept() {
    let bytes = snapshot(
        r#"(module (memory 256) (func (export "init") (local $at i32)
            (loop $again
                (i32.store8 (local.get $at) (i32.const 1))
                (br_if $again (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 100))) (i32.const 16700000)))))
            (func (export "sum") (result i32) (local $at i32) (local $sum i32)
                (loop $again
                    (local.set $sum (i32.add (local.get $sum) (i32.load8_u (local.get $at))))
                    (br_if $again (i32.lt_u (local.tee $at (i32.add (local.get $at) (i32.const 1))) (i32.const 16777216))))
                (local.get $sum)))"#,
    )
    .unwrap();
    let engine = default_engine();
    let module = Module::new(&engine, bytes).unwrap();
    assert!(module.bytecode().data.len() <= 100_000);
    let mut store = Store::new(&engine, ());
    let instance = Linker::new(&engine).instantiate(&mut store, &module).unwrap();
    assert_eq!(call(&mut store, instance, "sum"), "167000");
}

#[test]
fn a_snapshot_of_a_snapshot_is_the_same() {
    let wat = r#"(module (memory 2) (global $g (mut i64) (i64.const 0)) (table 4 funcref) (data $p "passive") (elem func $f)
        (func $f (export "init") (i32.store (i32.const 70000) (i32.const 9)) (global.set $g (i64.const 4)) (data.drop $p)))"#;
    let engine = default_engine();
    let take = |bytes: &[u8]| {
        let mut store = Store::new(&engine, ());
        let instance = Linker::new(&engine).instantiate(&mut store, &Module::new(&engine, bytes).unwrap()).unwrap();
        Snapshot::new().take(&store, instance).unwrap()
    };
    let first = snapshot(wat).unwrap();
    assert_eq!(take(&first), first);
}
