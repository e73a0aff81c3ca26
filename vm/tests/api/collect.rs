//! The collector: what the guest and the embedder can reach stays and is found, and everything else is dropped once.

use crate::common::{self, each_engine, instance, linked};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use weir::{
    AsContextMut, Caller, Config, Engine, ExnRef, ExnRefPre, ExnType, ExternRef, Func, FuncType, GcHeapOutOfMemory, Global,
    GlobalType, Linker, Module, Mutability, OwnedRooted, Ref, RefType, Result, RootScope, Rooted, Store, StoreLimits,
    StoreLimitsBuilder, Table, TableType, Tag, TagType, UpdateDeadline, Val, ValRaw, ValType,
};

/// The number of values that exist.
#[derive(Clone, Default)]
struct Census(Arc<AtomicUsize>);

/// A host value with a number.
struct Value(i32, Census);

impl Census {
    fn value(&self, number: i32) -> Value {
        self.0.fetch_add(1, Ordering::Relaxed);
        Value(number, self.clone())
    }

    fn alive(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        let before = self.1.0.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "a value is dropped twice");
    }
}

fn number(store: impl AsContextMut, reference: &Rooted<ExternRef>) -> i32 {
    let value = reference.data(&store).unwrap().unwrap();
    value.downcast_ref::<Value>().unwrap().0
}

/// Host functions that make values, read them, and collect.
fn linker(engine: &Engine) -> Linker<Census> {
    let mut linker = Linker::new(engine);
    let make = |mut caller: Caller<'_, Census>, n: i32| -> Result<Option<Rooted<ExternRef>>> {
        let value = caller.data().value(n);
        Ok(Some(ExternRef::new(&mut caller, value)?))
    };
    let read = |mut caller: Caller<'_, Census>, value: Option<Rooted<ExternRef>>| -> i32 {
        value.map_or(-1, |value| number(&mut caller, &value))
    };
    linker.func_wrap("host", "make", make).unwrap();
    linker.func_wrap("host", "read", read).unwrap();
    linker.func_wrap("host", "gc", |mut caller: Caller<'_, Census>| caller.gc(None)).unwrap();
    linker
}

/// Runs a test under all settings, with and without moving everything at every safepoint.
fn each(change: impl Fn(&mut Config), mut test: impl FnMut(&Engine)) {
    for stress in [false, true] {
        each_engine(
            |config| {
                config.gc_stress(stress).wasm_legacy_exceptions(true);
                change(config);
            },
            &mut test,
        );
    }
}

const IMPORTS: &str = r#"
    (import "host" "make" (func $make (param i32) (result externref)))
    (import "host" "read" (func $read (param externref) (result i32)))
    (import "host" "gc" (func $gc))"#;

/// References in locals, operands, globals, tables and parameters, across calls of the host and of the guest. With a vector, slots have
/// two words.
#[test]
fn references_are_found_in_frames_of_every_tier() {
    for local in ["", "(local v128)"] {
        let text = format!(
            r#"(module {IMPORTS}
                (table $t 4 externref) (global $g (mut externref) (ref.null extern))
                (func $pair (param externref i32 externref) (result i32) {local}
                    (i32.add (local.get 1) (i32.add (call $read (local.get 0)) (call $read (local.get 2)))))
                (func $deep (param $n i32) (param $outer externref) (result i32) (local $mine externref) {local}
                    (if (i32.eqz (local.get $n)) (then (call $gc) (return (call $read (local.get $outer)))))
                    (local.set $mine (call $make (local.get $n)))
                    (call $pair
                        (local.get $mine)
                        (call $deep (i32.sub (local.get $n) (i32.const 1)) (local.get $mine))
                        (local.get $outer)))
                (func (export "deep") (param i32) (result i32)
                    (call $deep (local.get 0) (call $make (i32.const 1000))))
                (func (export "loop") (param $n i32) (result i32)
                    (local $a externref) (local $b externref) (local $i i32) (local $sum i32) {local}
                    (local.set $a (call $make (i32.const 1)))
                    (loop $next
                        (local.set $b (call $make (local.get $i)))
                        (table.set $t (i32.and (local.get $i) (i32.const 3)) (local.get $b))
                        (global.set $g (local.get $a))
                        (local.set $sum
                            (i32.add
                                (i32.add (local.get $sum) (call $read (local.get $a)))
                                (i32.sub
                                    (call $read (local.get $b))
                                    (call $read (table.get $t (i32.and (local.get $i) (i32.const 3)))))))
                        (if (i32.and (local.get $i) (i32.const 1)) (then (local.set $a (global.get $g))))
                        (local.set $i (i32.add (local.get $i) (i32.const 1)))
                        (br_if $next (i32.lt_u (local.get $i) (local.get $n))))
                    (local.get $sum))
                (func (export "select") (param i32) (result i32) (local $x externref) (local $y externref)
                    (local.set $x (call $make (i32.const 5)))
                    (local.set $y (call $make (i32.const 6)))
                    (call $gc)
                    (call $read (select (result externref) (local.get $x) (local.get $y) (local.get 0)))))"#
        );
        each(
            |_| (),
            |engine| {
                let (mut store, instance) = linked(&linker(engine), &text, Census::default());
                for round in 0..3 {
                    let deep = instance.get_typed_func::<i32, i32>(&mut store, "deep").unwrap();
                    // The innermost reads 1; the level n adds its own number and that of the one outside.
                    let expected: i32 = 1 + (1..=40).map(|n| n + if n == 40 { 1000 } else { n + 1 }).sum::<i32>();
                    assert_eq!(deep.call(&mut store, 40).unwrap(), expected, "round {round}");
                    let turns = instance.get_typed_func::<i32, i32>(&mut store, "loop").unwrap();
                    assert_eq!(turns.call(&mut store, 60).unwrap(), 60);
                    let select = instance.get_typed_func::<i32, i32>(&mut store, "select").unwrap();
                    assert_eq!((select.call(&mut store, 1).unwrap(), select.call(&mut store, 0).unwrap()), (5, 6));
                }
                // Four in the table, and one in the global.
                store.gc(None).unwrap();
                assert_eq!(store.data().alive(), 5);
            },
        );
    }
}

/// References in payloads, in flight and in objects, and live into handlers.
#[test]
fn references_are_found_in_exceptions() {
    let text = format!(
        r#"(module {IMPORTS}
            (tag $t (param externref i32)) (global $e (mut exnref) (ref.null exn))
            (func $thrower (param $n i32) (param $x externref) (local $own externref)
                (local.set $own (call $make (i32.const 3)))
                (if (local.get $n) (then (call $thrower (i32.sub (local.get $n) (i32.const 1)) (local.get $x)) (return)))
                (throw $t (local.get $x) (call $read (local.get $own))))
            (func (export "payload") (param i32) (result i32) (local $live externref) (local $n i32)
                (local.set $live (call $make (i32.const 10)))
                (block $caught (result externref i32)
                    (try_table (catch $t $caught) (call $thrower (local.get 0) (call $make (i32.const 7))))
                    unreachable)
                (local.set $n)
                (i32.add (call $read) (i32.add (local.get $n) (call $read (local.get $live)))))
            (func (export "object") (param i32) (result i32) (local $live externref) (local $n i32)
                (local.set $live (call $make (i32.const 10)))
                (block $caught (result externref i32 exnref)
                    (try_table (catch_ref $t $caught) (call $thrower (local.get 0) (call $make (i32.const 7))))
                    unreachable)
                (global.set $e) (local.set $n) (drop) (call $gc)
                (block $again (result externref i32)
                    (try_table (catch $t $again) (throw_ref (global.get $e)))
                    unreachable)
                (drop)
                (i32.add (call $read) (i32.add (local.get $n) (call $read (local.get $live)))))
            (func (export "rethrow") (param i32) (result i32) (local $n i32)
                try (result externref i32)
                    try
                        (call $thrower (local.get 0) (call $make (i32.const 7)))
                    catch_all
                        (call $gc)
                        rethrow 0
                    end
                    unreachable
                catch $t
                end
                (local.set $n)
                (i32.add (call $read) (local.get $n))))"#
    );
    each(
        |_| (),
        |engine| {
            let (mut store, instance) = linked(&linker(engine), &text, Census::default());
            for depth in [0, 1, 5, 30] {
                for (name, expected) in [("payload", 20), ("object", 20), ("rethrow", 10)] {
                    let run = instance.get_typed_func::<i32, i32>(&mut store, name).unwrap();
                    assert_eq!(run.call(&mut store, depth).unwrap(), expected, "{name} at {depth}");
                }
            }
        },
    );
}

/// References in globals, tables and segments, those of the embedder included.
#[test]
fn references_are_found_in_items() {
    each(
        |_| (),
        |engine| {
            let census = Census::default();
            let mut store = Store::new(engine, census.clone());
            store.set_epoch_deadline(u64::MAX);
            let [first, second, third] = [1, 2, 3].map(|n| ExternRef::new(&mut store, census.value(n)).unwrap());
            let constant = GlobalType::new(ValType::EXTERNREF, Mutability::Const);
            let global = Global::new(&mut store, constant, first.into()).unwrap();
            let table = Table::new(&mut store, TableType::new(RefType::EXTERNREF, 2, None), Ref::Extern(Some(second))).unwrap();
            let module = Module::new(
                engine,
                r#"(module
                    (import "" "global" (global $g externref)) (import "" "table" (table $t 2 externref))
                    (global $copy (mut externref) (global.get $g))
                    (table $own 3 externref (global.get $g))
                    (elem $passive externref (global.get $g) (ref.null extern))
                    (func (export "init") (table.init $own $passive (i32.const 1) (i32.const 0) (i32.const 2)))
                    (func (export "own") (param i32) (result externref) (table.get $own (local.get 0)))
                    (func (export "copy") (result externref) (global.get $copy)))"#,
            );
            let mut linker = Linker::new(engine);
            linker.define(&store, "", "global", global).unwrap();
            linker.define(&store, "", "table", table).unwrap();
            let instance = linker.instantiate(&mut store, &module.unwrap()).unwrap();
            table.set(&mut store, 1, Ref::Extern(Some(third))).unwrap();
            for _ in 0..3 {
                store.gc(None).unwrap();
                let mut scope = RootScope::new(&mut store);
                assert_eq!(number(&mut scope, &first), 1);
                let [zero, one] = [0, 1].map(|i| *table.get(&mut scope, i).unwrap().unwrap_extern().unwrap());
                assert_eq!((number(&mut scope, &zero), number(&mut scope, &one)), (2, 3));
                let own = instance.get_typed_func::<i32, Option<Rooted<ExternRef>>>(&mut scope, "own").unwrap();
                instance.get_typed_func::<(), ()>(&mut scope, "init").unwrap().call(&mut scope, ()).unwrap();
                let elements = [0, 1, 2].map(|i| own.call(&mut scope, i).unwrap());
                let numbers = elements.map(|element| element.map(|element| number(&mut scope, &element)));
                assert_eq!(numbers, [Some(1), Some(1), None]);
                let copy = instance.get_typed_func::<(), Option<Rooted<ExternRef>>>(&mut scope, "copy").unwrap();
                let copy = copy.call(&mut scope, ()).unwrap().unwrap();
                assert!(Rooted::ref_eq(&scope, &copy, &first).unwrap() && !Rooted::rooted_eq(copy, first));
            }
            drop(store);
            assert_eq!(census.alive(), 0, "the store drops what it still has");
        },
    );
}

#[test]
fn scopes_end_and_owned_references_do_not() {
    each(
        |_| (),
        |engine| {
            let census = Census::default();
            let mut store = Store::new(engine, census.clone());
            let owned: OwnedRooted<ExternRef>;
            let short;
            {
                let mut scope = RootScope::new(&mut store);
                scope.reserve(8);
                short = ExternRef::new(&mut scope, census.value(1)).unwrap();
                let long = ExternRef::new(&mut scope, census.value(2)).unwrap();
                owned = long.to_owned_rooted(&mut scope).unwrap();
                assert!(OwnedRooted::ref_eq(&scope, &owned, &long).unwrap());
            }
            assert!(short.data(&store).is_err() && short.to_owned_rooted(&mut store).is_err());
            // Another root has its place.
            let other = ExternRef::new(&mut store, census.value(3)).unwrap();
            assert!(short.data(&store).is_err());
            store.gc(None).unwrap();
            assert_eq!((census.alive(), number(&mut store, &other)), (2, 3));
            let again = owned.clone();
            drop(owned);
            store.gc(None).unwrap();
            let rooted = again.to_rooted(&mut store);
            assert_eq!((census.alive(), number(&mut store, &rooted)), (2, 2));
            drop(again);
            store.gc(None).unwrap();
            assert_eq!(census.alive(), 2, "the scope of the store has it");
            // An argument and a result whose scope has ended are errors.
            let echo = Func::wrap(&mut store, |value: Option<Rooted<ExternRef>>| value);
            let typed = echo.typed::<Option<Rooted<ExternRef>>, Option<Rooted<ExternRef>>>(&store).unwrap();
            assert!(typed.call(&mut store, Some(short)).is_err());
            assert!(echo.call(&mut store, &[short.into()], &mut [Val::null_extern_ref()]).is_err());
            let stale = Func::wrap(&mut store, move || Some(short)).typed::<(), Option<Rooted<ExternRef>>>(&store).unwrap();
            assert!(stale.call(&mut store, ()).is_err());
            let echoed = typed.call(&mut store, Some(other)).unwrap().unwrap();
            assert_eq!(number(&mut store, &echoed), 3);
        },
    );
}

/// Each call of a host function has its own references, and those around it stay, whoever calls whom.
#[test]
fn references_belong_to_the_innermost_call() {
    let text = format!(
        r#"(module {IMPORTS}
            (import "host" "outer" (func $outer (param i32) (result i32)))
            (import "host" "add" (func $add (param i32 i32) (result i32)))
            (func (export "inner") (param i32) (result i32)
                (call $add (call $read (call $make (local.get 0))) (call $outer (i32.sub (local.get 0) (i32.const 1)))))
            (func (export "outer") (param i32) (result i32) (call $outer (local.get 0))))"#
    );
    each(
        |_| (),
        |engine| {
            let mut linker = linker(engine);
            let outer = |mut caller: Caller<'_, Census>, n: i32| -> Result<i32> {
                if n == 0 {
                    return Ok(0);
                }
                let value = caller.data().value(100 * n);
                let own = ExternRef::new(&mut caller, value)?;
                let inner = caller.get_export("inner").unwrap().into_func().unwrap().typed::<i32, i32>(&caller)?;
                let sum = inner.call(&mut caller, n)?;
                assert_eq!(number(&mut caller, &own), 100 * n);
                Ok(sum)
            };
            linker.func_wrap("host", "outer", outer).unwrap();
            // It cannot use the store, so nothing is done when it returns.
            linker.func_wrap("host", "add", |a: i32, b: i32| a + b).unwrap();
            let (mut store, instance) = linked(&linker, &text, Census::default());
            let census = store.data().clone();
            let run = instance.get_typed_func::<i32, i32>(&mut store, "outer").unwrap();
            assert_eq!(run.call(&mut store, 6).unwrap(), 21);
            let kept = ExternRef::new(&mut store, census.value(7)).unwrap();
            for _ in 0..3 {
                assert_eq!(run.call(&mut store, 6).unwrap(), 21);
            }
            assert_eq!(number(&mut store, &kept), 7);
            store.gc(None).unwrap();
            assert_eq!(census.alive(), 1, "what the embedder holds");
            {
                let mut scope = RootScope::new(&mut store);
                ExternRef::new(&mut scope, census.value(8)).unwrap();
                assert_eq!(run.call(&mut scope, 2).unwrap(), 3);
            }
            store.gc(None).unwrap();
            assert_eq!((census.alive(), number(&mut store, &kept)), (1, 7));
        },
    );
}

/// A hook is called for host functions that the store had before, too.
#[test]
fn a_hook_that_is_set_later_sees_calls_of_host_functions() {
    let text = format!(r#"(module {IMPORTS} (func (export "run") (drop (call $make (i32.const 1)))))"#);
    each(
        |_| (),
        |engine| {
            let (mut store, instance) = linked(&linker(engine), &text, Census::default());
            let run = instance.get_typed_func::<(), ()>(&mut store, "run").unwrap();
            run.call(&mut store, ()).unwrap();
            let seen = Arc::<AtomicUsize>::default();
            let counter = seen.clone();
            store.call_hook(move |_, _| {
                counter.fetch_add(1, Ordering::Relaxed);
                Ok(())
            });
            run.call(&mut store, ()).unwrap();
            assert_eq!(seen.load(Ordering::Relaxed), 4);
            let again = linker(engine).get(&mut store, "host", "gc").unwrap().into_func().unwrap();
            again.call(&mut store, &[], &mut []).unwrap();
            assert_eq!(seen.load(Ordering::Relaxed), 8);
        },
    );
}

/// A guest that asks for values without end, and an embedder that makes them in scopes, keep few of them alive.
#[test]
fn garbage_is_dropped_while_the_guest_runs() {
    let text = format!(
        r#"(module {IMPORTS}
            (func (export "run") (param $n i32) (result i32) (local $sum i32)
                (loop $next
                    (local.set $sum (i32.add (local.get $sum) (call $read (call $make (i32.const 2)))))
                    (br_if $next (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
                (local.get $sum)))"#
    );
    each_engine(
        |_| (),
        |engine| {
            let (mut store, instance) = linked(&linker(engine), &text, Census::default());
            let run = instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap();
            assert_eq!(run.call(&mut store, 20_000).unwrap(), 40_000);
            let census = store.data().clone();
            assert!(census.alive() < 10_000, "{} of 20000", census.alive());
            for _ in 0..20 {
                let mut scope = RootScope::new(&mut store);
                for n in 0..1000 {
                    ExternRef::new(&mut scope, census.value(n)).unwrap();
                }
            }
            assert!(census.alive() < 10_000, "{} of 40000", census.alive());
            store.gc(None).unwrap();
            assert_eq!(census.alive(), 0);
        },
    );
}

/// Exceptions with objects, which the guest makes without end, fit in a limit that holds few of them.
#[test]
fn exceptions_are_collected() {
    let text = r#"(module
        (tag $t (param i64 i64))
        (global $kept (mut exnref) (ref.null exn))
        (func $throw (param i64) (throw $t (local.get 0) (i64.const 1)))
        (func (export "run") (param $n i64) (result i64) (local $sum i64)
            (loop $next
                (block $caught (result i64 i64 exnref)
                    (try_table (catch_ref $t $caught) (call $throw (local.get $n)))
                    unreachable)
                (global.set $kept)
                (drop)
                (local.set $sum (i64.add (local.get $sum)))
                (br_if $next (i64.ne (local.tee $n (i64.sub (local.get $n) (i64.const 1))) (i64.const 0))))
            (local.get $sum)))"#;
    each_engine(
        |_| (),
        |engine| {
            let module = Module::new(engine, text).unwrap();
            let mut store: Store<StoreLimits> = Store::new(engine, StoreLimitsBuilder::new().memory_size(128 << 10).build());
            store.limiter(|limits| limits);
            store.set_epoch_deadline(u64::MAX);
            let instance = Linker::new(engine).instantiate(&mut store, &module).unwrap();
            let run = instance.get_typed_func::<i64, i64>(&mut store, "run").unwrap();
            assert_eq!(run.call(&mut store, 20_000).unwrap(), 20_000 * 20_001 / 2);
        },
    );
}

/// Live references count for the limiter, which then refuses more; the value is given back.
#[test]
fn live_references_are_limited() {
    let engine = common::default_engine();
    let mut store: Store<StoreLimits> = Store::new(&engine, StoreLimitsBuilder::new().memory_size(256 << 10).build());
    store.limiter(|limits| limits);
    let mut made = 0;
    let error = loop {
        match ExternRef::new(&mut store, made) {
            Ok(_) => made += 1,
            Err(error) => break error,
        }
    };
    assert!((4000..16_000).contains(&made), "{made}");
    let error = error.downcast::<GcHeapOutOfMemory<i32>>().unwrap();
    assert!(error.bytes_needed() >= 16 && error.into_inner() == made);
}

/// Each value is dropped once, though destructors panic, and the first panic reaches the caller.
#[test]
fn a_panicking_destructor_reaches_the_caller() {
    struct Panics(Value);
    impl Drop for Panics {
        fn drop(&mut self) {
            assert!(self.0.0 % 2 == 0, "the destructor of {}", self.0.0);
        }
    }
    let text = format!(r#"(module {IMPORTS} (func (export "run") (call $gc)))"#);
    each_engine(
        |_| (),
        |engine| {
            let census = Census::default();
            let mut store = Store::new(engine, census.clone());
            store.set_epoch_deadline(u64::MAX);
            let values = |store: &mut Store<Census>| {
                let mut scope = RootScope::new(store);
                for n in 0..10 {
                    ExternRef::new(&mut scope, Panics(census.value(n))).unwrap();
                }
            };
            let message = |result: std::thread::Result<()>| *result.unwrap_err().downcast::<String>().unwrap();
            values(&mut store);
            let result = catch_unwind(AssertUnwindSafe(|| store.gc(None).unwrap()));
            assert!(message(result).starts_with("the destructor of"));
            assert_eq!(census.alive(), 0);
            store.gc(None).unwrap();
            // Through the guest.
            let module = Module::new(engine, &text).unwrap();
            let instance = linker(engine).instantiate(&mut store, &module).unwrap();
            values(&mut store);
            let run = instance.get_typed_func::<(), ()>(&mut store, "run").unwrap();
            let result = catch_unwind(AssertUnwindSafe(|| run.call(&mut store, ()).unwrap()));
            assert!(message(result).starts_with("the destructor of"));
            assert_eq!(census.alive(), 0);
            run.call(&mut store, ()).unwrap();
        },
    );
}

/// At a deadline the guest is at no safepoint: what the callback makes and collects does not move what the guest has.
#[test]
fn a_deadline_is_no_safepoint() {
    let text = format!(
        r#"(module {IMPORTS}
            (func (export "run") (param $n i32) (result i32) (local $x externref) (local $y externref)
                (local.set $x (call $make (i32.const 8)))
                (local.set $y (call $make (i32.const 9)))
                (loop $next
                    (local.set $n (i32.sub (local.get $n) (i32.const 1)))
                    (br_if $next (local.get $n)))
                (i32.sub (call $read (local.get $y)) (call $read (local.get $x)))))"#
    );
    each(
        |config| {
            config.epoch_interruption(true);
        },
        |engine| {
            let (mut store, instance) = linked(&linker(engine), &text, Census::default());
            store.set_epoch_deadline(0);
            store.epoch_deadline_callback(|mut store| {
                for n in 0..5000 {
                    let value = store.data().value(n);
                    ExternRef::new(&mut store, value)?;
                }
                store.gc(None)?;
                Ok(UpdateDeadline::Continue(0))
            });
            let run = instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap();
            assert_eq!(run.call(&mut store, 10).unwrap(), 1);
            store.epoch_deadline_trap();
            store.gc(None).unwrap();
            assert_eq!(store.data().alive(), 0);
        },
    );
}

/// An exception that the host makes refers to a value, and to another exception.
#[test]
fn host_exceptions_are_traced() {
    each(
        |_| (),
        |engine| {
            let census = Census::default();
            let mut store = Store::new(engine, census.clone());
            let ty = TagType::new(FuncType::new(engine, [ValType::EXTERNREF, ValType::EXNREF], []));
            let tag = Tag::new(&mut store, &ty).unwrap();
            let mut kept: Option<OwnedRooted<ExnRef>> = None;
            for n in 0..20 {
                let mut scope = RootScope::new(&mut store);
                let pre = ExnRefPre::new(&mut scope, ExnType::from_tag_type(&ty).unwrap());
                let value = ExternRef::new(&mut scope, census.value(n)).unwrap();
                let cause = kept.take().map(|kept| kept.to_rooted(&mut scope));
                let exception = ExnRef::new(&mut scope, &pre, &tag, &[value.into(), cause.into()]).unwrap();
                kept = Some(exception.to_owned_rooted(&mut scope).unwrap());
            }
            store.gc(None).unwrap();
            assert_eq!(census.alive(), 20);
            let mut scope = RootScope::new(&mut store);
            let mut next = kept.as_ref().map(|kept| kept.to_rooted(&mut scope));
            let mut numbers = Vec::new();
            while let Some(exception) = next {
                let value = *exception.field(&mut scope, 0).unwrap().unwrap_externref().unwrap();
                numbers.push(number(&mut scope, &value));
                next = exception.field(&mut scope, 1).unwrap().unwrap_exnref().copied();
            }
            assert!(numbers.into_iter().eq((0..20).rev()));
            drop((scope, kept));
            store.gc(None).unwrap();
            assert_eq!(census.alive(), 0);
        },
    );
}

#[test]
fn raw_references_are_checked() {
    let engine = common::default_engine();
    let mut store = Store::new(&engine, ());
    let value = ExternRef::new(&mut store, 5i32).unwrap();
    let raw = ValRaw::externref(value.to_raw(&mut store).unwrap());
    let again = ExternRef::from_raw(&mut store, raw.get_externref()).unwrap();
    assert!(Rooted::ref_eq(&store, &value, &again).unwrap());
    assert!(ExternRef::from_raw(&mut store, 0).is_none());
    for wrong in [1, raw.get_externref() + 1_000_000, u32::MAX] {
        assert!(catch_unwind(AssertUnwindSafe(|| ExternRef::from_raw(&mut store, wrong))).is_err());
    }
    assert!(catch_unwind(AssertUnwindSafe(|| ExnRef::from_raw(&mut store, raw.get_exnref()))).is_err());
    let (mut other, _) = instance(&engine, "(module)");
    assert!(catch_unwind(AssertUnwindSafe(|| value.to_raw(&mut other))).is_err());
}
