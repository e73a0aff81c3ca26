//! Exceptions: the legacy instructions, throws through frames of every engine and of the host, and what no handler catches.

use crate::common::{self, each_engine, instance, linked};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use weir::{
    AsContextMut, Caller, Config, Engine, Error, ExnRef, ExnRefPre, ExnType, Func, FuncType, Instance, Linker, Module, Result,
    Rooted, Store, StoreLimits, StoreLimitsBuilder, Tag, TagType, ThrownException, Trap, UpdateDeadline, Val, ValType,
};

/// Runs a test under all settings, with the legacy instructions.
fn each(change: impl Fn(&mut Config), test: impl FnMut(&Engine)) {
    each_engine(
        |config| {
            config.wasm_legacy_exceptions(true);
            change(config);
        },
        test,
    );
}

fn call<T: 'static>(store: &mut Store<T>, instance: Instance, name: &str, arg: i32) -> Result<i32> {
    instance.get_typed_func::<i32, i32>(&mut *store, name)?.call(store, arg)
}

/// Functions of the legacy instructions. `$throw` throws `$a` with its argument if that is odd, `$b` if it is a multiple of 4, and
/// else returns.
const LEGACY: &str = r#"(module
    (tag $a (param i32)) (tag $b) (tag $c (param i64 v128 f32))
    (func $throw (param i32)
        (if (i32.and (local.get 0) (i32.const 1)) (then (throw $a (local.get 0))))
        (if (i32.eqz (i32.and (local.get 0) (i32.const 3))) (then (throw $b))))
    (func (export "catch") (param i32) (result i32)
        try (result i32) (call $throw (local.get 0)) (i32.const -1) catch $a (i32.add (i32.const 100)) catch $b (i32.const 4) end)
    (func (export "catch_all") (param i32) (result i32)
        try (result i32) (call $throw (local.get 0)) (i32.const -1) catch $b (i32.const 4) catch_all (i32.const 5) end)
    (func (export "nested") (param i32) (result i32)
        (i32.const 1000)
        try (result i32) try (result i32) (call $throw (local.get 0)) (i32.const -1) catch $b (call $throw (i32.const 7)) (i32.const -2) end catch $a (i32.mul (i32.const 10)) end
        (i32.add))
    (func (export "rethrow") (param i32) (result i32)
        try (result i32) try (result i32) (call $throw (local.get 0)) (i32.const -1) catch_all
                    try (call $throw (i32.const 9)) catch $a (drop) (local.set 0 (i32.const 0)) (rethrow 1) end
                    (i32.const -2) end catch $a (i32.add (local.get 0)) catch $b (i32.sub (local.get 0) (i32.const 3)) end)
    (func (export "rethrow_inner") (param i32) (result i32)
        try (result i32) try (result i32) (call $throw (local.get 0)) (i32.const -1) catch_all
                    try (call $throw (i32.const 9)) catch $a (drop) (rethrow 0) end
                    (i32.const -2) end catch_all (i32.const 1) end)
    (func (export "delegate") (param i32) (result i32)
        try $outer (result i32) try (result i32) try (result i32) (call $throw (local.get 0)) (i32.const -1) delegate $outer catch_all (i32.const -2) end catch $a catch $b (i32.const 40) end)
    (func $out (param i32) (result i32)
        try (result i32) try (result i32) (call $throw (local.get 0)) (i32.const -1) delegate 1 catch_all (i32.const -2) end)
    (func (export "delegate_out") (param i32) (result i32)
        try (result i32) (call $out (local.get 0)) catch $a (i32.add (i32.const 1)) catch $b (i32.const 0) end)
    (func $wide (param i32)
        (throw $c (i64.extend_i32_s (local.get 0)) (i32x4.splat (local.get 0)) (f32.const 0.5)))
    (func (export "payload") (param i32) (result i32) (local f32 v128)
        try (result i64) (call $wide (local.get 0)) (i64.const 0) catch $c (local.set 1) (local.set 2) end
        (i32.wrap_i64)
        (i32.add (i32x4.extract_lane 3 (local.get 2)))
        (i32.add (i32.trunc_f32_s (f32.mul (local.get 1) (f32.const 200)))))
    (func (export "loop") (param i32) (result i32) (local i32)
        (loop $again
            try (call $throw (local.get 0)) (local.set 1 (i32.add (local.get 1) (i32.const 1))) catch $a (local.set 1 (i32.add (local.get 1))) catch_all (local.set 1 (i32.add (local.get 1) (i32.const 1000))) end
            (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (local.get 1)))"#;

#[test]
fn legacy_instructions() {
    each(
        |_| (),
        |engine| {
            let (mut store, instance) = instance(engine, LEGACY);
            let mut check = |name: &str, cases: &[(i32, i32)]| {
                for _ in 0..3 {
                    for &(arg, expected) in cases {
                        assert_eq!(call(&mut store, instance, name, arg).unwrap(), expected, "{name}({arg})");
                    }
                }
            };
            check("catch", &[(1, 101), (3, 103), (4, 4), (2, -1)]);
            check("catch_all", &[(1, 5), (4, 4), (2, -1)]);
            check("nested", &[(1, 1010), (4, 1070), (2, 999)]);
            check("rethrow", &[(1, 1), (4, -3), (2, -1)]);
            check("rethrow_inner", &[(1, 1), (4, 1), (2, -1)]);
            check("delegate", &[(3, 3), (4, 40), (2, -1)]);
            check("delegate_out", &[(3, 4), (4, 0), (2, -1)]);
            check("payload", &[(3, 106), (-1, 98)]);
            // 1 + 3 + 5 + 7 for `$a`, 2 × 1,000 for 4 and 8, 1 for 2 and 6.
            check("loop", &[(8, 2018)]);
            assert!(!store.has_pending_exception());
        },
    );
}

/// Frames of several functions, of which some have handlers. In tiers that compile, those without are native.
const DEEP: &str = r#"(module
    (import "host" "id" (func $id (param i32) (result i32)))
    (tag $a (param i32)) (tag $other (param i32))
    (type $t (func (param i32 i32) (result i32)))
    (table funcref (elem $plain $handles $plain $host))
    (func $plain (type $t)
        (if (i32.eqz (local.get 0)) (then (call $throw (local.get 1))))
        (i32.add (i32.const 1)
            (call_indirect (type $t) (i32.sub (local.get 0) (i32.const 1)) (local.get 1) (i32.and (local.get 0) (i32.const 3)))))
    (func $handles (type $t)
        (block $caught (result i32)
            (try_table (result i32) (catch $other $caught)
                (call $plain (local.get 0) (local.get 1)))))
    (func $host (type $t)
        (call $plain (call $id (local.get 0)) (local.get 1)))
    (func $throw (param i32) (throw $a (local.get 0)))
    (func (export "run") (param i32) (result i32)
        (block $caught (result i32)
            (try_table (result i32) (catch $a $caught)
                (call $plain (local.get 0) (i32.const 42)))))
    (func (export "uncaught") (param i32) (result i32)
        (call $plain (local.get 0) (local.get 0))))"#;

#[test]
fn a_throw_leaves_deep_mixed_frames() {
    each(
        |config| {
            config.value_stack_size(64 << 20).max_wasm_stack(1 << 20);
        },
        |engine| {
            let mut linker = Linker::new(engine);
            linker.func_wrap("host", "id", |n: i32| n).unwrap();
            let (mut store, instance) = linked(&linker, DEEP, ());
            for depth in [0, 1, 2, 3, 50, 200] {
                assert_eq!(call(&mut store, instance, "run", depth).unwrap(), 42);
                let error = call(&mut store, instance, "uncaught", depth).unwrap_err();
                assert!(error.is::<ThrownException>(), "{error:#}");
                let details = error.details().expect("the tag and the place");
                assert!(details.contains("uncaught exception a(") && details.contains("throw"), "{details}");
                let frames = error.wasm_backtrace().unwrap().frames();
                assert_eq!(frames[0].func_name(), Some("throw"));
                assert_eq!(frames[1].func_name(), Some("plain"));
                let exception = store.take_pending_exception().unwrap();
                assert_eq!(exception.field(&mut store, 0).unwrap().i32(), Some(depth));
            }
        },
    );
}

#[test]
fn a_throw_leaves_a_hundred_thousand_interpreted_frames() {
    let mut config = Config::new();
    config.tier(weir::Tier::Interpreter).value_stack_size(64 << 20);
    let engine = common::engine(&config).unwrap();
    let mut linker = Linker::new(&engine);
    linker.func_wrap("host", "id", |n: i32| n).unwrap();
    let (mut store, instance) = linked(&linker, DEEP, ());
    assert_eq!(call(&mut store, instance, "run", 100_000).unwrap(), 42);
}

#[test]
fn tags_are_the_same_if_they_have_one_definition() {
    let exporter = r#"(module
        (tag $a (export "a") (param i32)) (tag $b (export "b") (param i32))
        (func (export "a!") (param i32) (throw $a (local.get 0)))
        (func (export "b!") (param i32) (throw $b (local.get 0))))"#;
    let importer = r#"(module
        (import "m" "a" (tag $a (param i32))) (import "m" "a" (tag $also (param i32))) (import "m" "b" (tag $b (param i32)))
        (import "m" "a!" (func $a! (param i32))) (import "m" "b!" (func $b! (param i32)))
        (tag $own (param i32))
        (func (export "run") (param i32) (result i32)
            (block $else (result i32)
                (block $caught (result i32)
                    (block $own (result i32)
                        (try_table (catch $own $own) (catch $also $caught) (catch $a $own) (catch $b $else)
                            (if (i32.and (local.get 0) (i32.const 1))
                                (then (call $a! (local.get 0))) (else (call $b! (local.get 0)))))
                        (i32.const -1))
                    (return (i32.mul (i32.const -100))))
                (return (i32.add (i32.const 100))))
            (i32.add (i32.const 200))))"#;
    each(
        |_| (),
        |engine| {
            let mut store = Store::new(engine, ());
            store.set_epoch_deadline(u64::MAX);
            let mut linker = Linker::new(engine);
            let instances = [(); 2].map(|()| {
                let instance = Instance::new(&mut store, &Module::new(engine, exporter).unwrap(), &[]).unwrap();
                linker.allow_shadowing(true).instance(&store, "m", instance).unwrap();
                let importer = linker.instantiate(&mut store, &Module::new(engine, importer).unwrap()).unwrap();
                (instance, importer)
            });
            for (_, importer) in instances {
                assert_eq!(call(&mut store, importer, "run", 1).unwrap(), 101);
                assert_eq!(call(&mut store, importer, "run", 2).unwrap(), 202);
            }
            let tags = instances.map(|(instance, _)| instance.get_tag(&mut store, "a").unwrap());
            assert!(Tag::eq(&tags[0], &tags[0], &store) && !Tag::eq(&tags[0], &tags[1], &store));
            assert_eq!(tags[0].ty(&store).ty().to_string(), "[i32] -> []");
        },
    );
}

#[test]
fn tags_of_another_type_do_not_link() {
    let engine = common::default_engine();
    let mut store = Store::new(&engine, ());
    store.set_epoch_deadline(u64::MAX);
    let tag = Tag::new(&mut store, &TagType::new(FuncType::new(&engine, [ValType::I64], []))).unwrap();
    let module = Module::new(&engine, r#"(module (import "m" "t" (tag (param i32))))"#).unwrap();
    let error = Instance::new(&mut store, &module, &[tag.into()]).unwrap_err();
    let Some(weir::LinkError::Incompatible { found, .. }) = error.downcast_ref() else { panic!("{error:?}") };
    assert_eq!(found, "tag [i64] -> []");
    assert!(format!("{error:#}").contains("incompatible tag types"), "{error:#}");
    assert!(Tag::new(&mut store, &TagType::new(FuncType::new(&engine, [], [ValType::I32]))).is_err());
}

/// A tag of the host, and an exception with it.
fn exception(mut store: impl AsContextMut, tag: &Tag, value: i32) -> Rooted<ExnRef> {
    let ty = ExnType::from_tag_type(&tag.ty(&store)).unwrap();
    let pre = ExnRefPre::new(&mut store, ty);
    ExnRef::new(&mut store, &pre, tag, &[Val::I32(value)]).unwrap()
}

/// `run` calls `host`, which may call `inner`, and catches `$t`, or all with 2.
const HOSTED: &str = r#"(module
    (import "host" "t" (tag $t (param i32)))
    (import "host" "call" (func $host (param i32) (result i32)))
    (func $between (param i32) (result i32) (i32.add (call $host (local.get 0)) (i32.const 0)))
    (func (export "run") (param i32) (result i32)
        (block $all
            (block $caught (result i32)
                (try_table (result i32) (catch $t $caught) (catch_all $all)
                    (call $between (local.get 0)))
                (return))
            (return (i32.add (i32.const 1000))))
        (i32.const -2))
    (func (export "direct") (param i32) (result i32)
        (block $caught (result i32)
            (try_table (result i32) (catch $t $caught) (call $host (local.get 0)))))
    (func (export "tail") (param i32) (result i32)
        (block $caught (result i32)
            (try_table (result i32) (catch $t $caught) (return_call $host (local.get 0)))))
    (func (export "around") (param i32) (result i32)
        (block $caught (result i32)
            (try_table (result i32) (catch $t $caught) (call $tail (local.get 0)))
            (return))
        (i32.add (i32.const 5000)))
    (func $tail (export "tail2") (param i32) (result i32)
        (block $caught (result i32)
            (try_table (result i32) (catch $t $caught) (return_call $between (local.get 0)))))
    (func (export "inner") (param i32) (result i32)
        (throw $t (local.get 0))))"#;

#[test]
fn host_functions_throw_and_catch() {
    each(
        |_| (),
        |engine| {
            let mut store = Store::new(engine, ());
            store.set_epoch_deadline(u64::MAX);
            let tag = Tag::new(&mut store, &TagType::new(FuncType::new(engine, [ValType::I32], []))).unwrap();
            let mut linker = Linker::new(engine);
            linker.define(&store, "host", "t", tag).unwrap();
            linker
                .func_wrap("host", "call", move |mut caller: Caller<'_, ()>, n: i32| -> Result<i32> {
                    let inner = |caller: &mut Caller<'_, ()>| {
                        let inner = caller.get_export("inner").unwrap().into_func().unwrap();
                        inner.typed::<i32, i32>(&*caller).unwrap().call(caller, n)
                    };
                    match n {
                        0 => Ok(7),
                        1 => {
                            let exception = exception(&mut caller, &tag, 11);
                            caller.as_context_mut().throw(exception)
                        }
                        // The guest's exception goes on.
                        2 => inner(&mut caller),
                        3 => inner(&mut caller).map_err(|error| error.context("with context")),
                        // It is caught here.
                        4 => {
                            let error = inner(&mut caller).unwrap_err();
                            assert!(error.is::<ThrownException>());
                            let exception = caller.as_context_mut().take_pending_exception().unwrap();
                            assert!(Tag::eq(&exception.tag(&mut caller).unwrap(), &tag, &caller));
                            Ok(exception.field(&mut caller, 0)?.unwrap_i32() * 10)
                        }
                        // Without the exception the error is like any other.
                        5 => {
                            let error = inner(&mut caller).unwrap_err();
                            caller.as_context_mut().take_pending_exception().unwrap();
                            Err(error)
                        }
                        _ => Err(Error::msg("an error of the host")),
                    }
                })
                .unwrap();
            let module = Module::new(engine, HOSTED).unwrap();
            let instance = linker.instantiate(&mut store, &module).unwrap();
            for _ in 0..3 {
                for (arg, expected) in [(0, 7), (1, 1011), (2, 1002), (3, 1003), (4, 40)] {
                    assert_eq!(call(&mut store, instance, "run", arg).unwrap(), expected, "run({arg})");
                }
                assert!(call(&mut store, instance, "run", 5).unwrap_err().is::<ThrownException>());
                assert!(!store.has_pending_exception());
                assert_eq!(call(&mut store, instance, "run", 6).unwrap_err().root_cause().to_string(), "an error of the host");
                assert_eq!(call(&mut store, instance, "direct", 1).unwrap(), 11);
                // A tail call leaves the function with the handler.
                assert_eq!(call(&mut store, instance, "around", 0).unwrap(), 7);
                assert_eq!(call(&mut store, instance, "around", 2).unwrap(), 5002);
                for name in ["tail", "tail2"] {
                    let error = call(&mut store, instance, name, 2).unwrap_err();
                    assert!(error.is::<ThrownException>(), "{name}: {error:#}");
                    assert!(store.take_pending_exception().is_some());
                }
            }
            // The host function alone.
            let host = linker.get(&mut store, "host", "call").unwrap().into_func().unwrap();
            let mut results = [Val::I32(0)];
            let error = host.call(&mut store, &[Val::I32(1)], &mut results).unwrap_err();
            assert!(error.is::<ThrownException>() && store.take_pending_exception().is_some());
        },
    );
}

/// Every frame catches all.
const CATCHES_ALL: &str = r#"(module
    (import "host" "fail" (func $fail (param i32)))
    (memory 1)
    (func $deep (param i32) (result i32)
        (block $caught
            (return (try_table (result i32) (catch_all $caught)
                (i32.add (i32.const 1) (call $deep (local.get 0))))))
        (i32.const -1))
    (func $spin (param i32) (result i32)
        (block $caught
            (try_table (catch_all $caught) (loop $again (br $again))))
        (i32.const -1))
    (func $fails (param i32) (result i32)
        (block $caught
            (try_table (catch_all $caught)
                (block $host (block $divide (block $load (block $unreachable
                    (br_table $unreachable $load $divide $host (local.get 0)))
                    unreachable)
                    (drop (i32.load (i32.const 0x7fffffff))) (return (i32.const -1)))
                    (drop (i32.div_u (i32.const 1) (i32.sub (local.get 0) (i32.const 2)))) (return (i32.const -1)))
                (call $fail (local.get 0)))
            (return (i32.const -1)))
        (i32.const -1))
    (func (export "deep") (param i32) (result i32) (block $c (return (try_table (result i32) (catch_all $c) (call $deep (i32.const 0))))) (i32.const -1))
    (func (export "spin") (param i32) (result i32) (block $c (return (try_table (result i32) (catch_all $c) (call $spin (i32.const 0))))) (i32.const -1))
    (func (export "legacy") (param i32) (result i32) try (result i32) (call $fails (local.get 0)) catch_all (i32.const -1) end)
    (func (export "null") (param i32) (result i32)
        (block $c (try_table (catch_all $c) (throw_ref (ref.null exn)))) (i32.const -1))
    (func (export "fails") (param i32) (result i32) (block $c (return (try_table (result i32) (catch_all $c) (call $fails (local.get 0))))) (i32.const -1)))"#;

#[test]
fn no_handler_catches_a_trap_or_another_error() {
    let failing = |engine: &Engine| {
        let mut linker: Linker<()> = Linker::new(engine);
        linker.func_wrap("host", "fail", |_: i32| -> Result<()> { Err(Error::msg("an exit")) }).unwrap();
        linked(&linker, CATCHES_ALL, ())
    };
    let trap = |error: &Error| error.downcast_ref::<Trap>().copied();
    each(
        |_| (),
        |engine| {
            let (mut store, instance) = failing(engine);
            for name in ["fails", "legacy"] {
                for (arg, expected) in
                    [(0, Trap::UnreachableCodeReached), (1, Trap::MemoryOutOfBounds), (2, Trap::IntegerDivisionByZero)]
                {
                    let error = call(&mut store, instance, name, arg).unwrap_err();
                    assert_eq!(trap(&error), Some(expected), "{name}({arg})");
                }
                assert_eq!(call(&mut store, instance, name, 3).unwrap_err().root_cause().to_string(), "an exit");
            }
            assert_eq!(trap(&call(&mut store, instance, "deep", 0).unwrap_err()), Some(Trap::StackOverflow));
            assert_eq!(trap(&call(&mut store, instance, "null", 0).unwrap_err()), Some(Trap::NullReference));
        },
    );
    each(
        |config| {
            config.consume_fuel(true);
        },
        |engine| {
            let (mut store, instance) = failing(engine);
            store.set_fuel(10_000).unwrap();
            assert_eq!(trap(&call(&mut store, instance, "spin", 0).unwrap_err()), Some(Trap::OutOfFuel));
        },
    );
    each(
        |config| {
            config.epoch_interruption(true);
        },
        |engine| {
            let (mut store, instance) = failing(engine);
            store.set_epoch_deadline(1);
            engine.increment_epoch();
            assert_eq!(trap(&call(&mut store, instance, "spin", 0).unwrap_err()), Some(Trap::Interrupt));
        },
    );
}

#[test]
fn a_panic_of_the_host_is_not_caught() {
    each(
        |_| (),
        |engine| {
            let mut linker: Linker<()> = Linker::new(engine);
            linker.func_wrap("host", "fail", |_: i32| -> () { std::panic::panic_any(5u8) }).unwrap();
            let (mut store, instance) = linked(&linker, CATCHES_ALL, ());
            let run = std::panic::AssertUnwindSafe(|| call(&mut store, instance, "fails", 3));
            assert_eq!(std::panic::catch_unwind(run).unwrap_err().downcast_ref(), Some(&5u8));
        },
    );
}

#[test]
fn a_throw_costs_the_same_in_every_tier() {
    let mut costs = Vec::new();
    each(
        |config| {
            config.consume_fuel(true).max_wasm_stack(1 << 20);
        },
        |engine| {
            let mut linker = Linker::new(engine);
            linker.func_wrap("host", "id", |n: i32| n).unwrap();
            let (mut store, instance) = linked(&linker, DEEP, ());
            let mut cost = |name: &str, depth: i32| {
                store.set_fuel(1_000_000).unwrap();
                let result = call(&mut store, instance, name, depth);
                assert!(result.is_ok() || name == "uncaught", "{result:?}");
                1_000_000 - store.get_fuel().unwrap()
            };
            let own = [cost("run", 0), cost("run", 10), cost("run", 101), cost("uncaught", 10)];
            costs.push(own);
            // Out of fuel is found at the throw.
            for fuel in 0..own[1] {
                store.set_fuel(fuel).unwrap();
                let error = call(&mut store, instance, "run", 10).unwrap_err();
                assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::OutOfFuel), "{fuel} of {own:?}");
            }
            store.set_fuel(own[1]).unwrap();
            assert_eq!(call(&mut store, instance, "run", 10).unwrap(), 42);
        },
    );
    assert!(costs.windows(2).all(|pair| pair[0] == pair[1]), "{costs:?}");
}

#[test]
fn live_exception_objects_count_as_memory() {
    let text = r#"(module
        (tag $t (param i32))
        (table $kept 10001 exnref)
        (func (export "run") (param i32) (result i32)
            (loop $again
                (table.set $kept
                    (local.get 0)
                    (block $caught (result exnref)
                        (try_table (catch_all_ref $caught) (throw $t (local.get 0)))
                        unreachable))
                (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
            (i32.const 3)))"#;
    each(
        |_| (),
        |engine| {
            let module = Module::new(engine, text).unwrap();
            let limits = StoreLimitsBuilder::new().memory_size(64 << 10).build();
            let mut store: Store<StoreLimits> = Store::new(engine, limits);
            store.set_epoch_deadline(u64::MAX);
            store.limiter(|limits| limits);
            let instance = Instance::new(&mut store, &module, &[]).unwrap();
            assert_eq!(call(&mut store, instance, "run", 100).unwrap(), 3);
            let error = call(&mut store, instance, "run", 10_000).unwrap_err();
            assert!(error.root_cause().to_string().contains("limit"), "{error:#}");
            assert!(error.wasm_backtrace().is_some());
        },
    );
}

#[test]
fn a_deadline_is_noticed_during_a_throw() {
    let mut config = Config::new();
    config.tier(weir::Tier::Interpreter).value_stack_size(64 << 20).epoch_interruption(true);
    let engine = common::engine(&config).unwrap();
    let expire = Arc::new(AtomicBool::new(false));
    let mut linker: Linker<u32> = Linker::new(&engine);
    // The last frame before the throw lets the deadline pass.
    let (clock, armed) = (engine.clone(), expire.clone());
    linker
        .func_wrap("host", "id", move |n: i32| {
            if armed.load(Ordering::Relaxed) && n < 8 {
                clock.increment_epoch();
            }
            n
        })
        .unwrap();
    let text = DEEP.replace("(func $throw (param i32) (throw", "(func $throw (param i32) (drop (call $id (i32.const 0))) (throw");
    let (mut store, instance) = linked(&linker, &text, 0);
    store.epoch_deadline_callback(|mut store| {
        *store.data_mut() += 1;
        Ok(UpdateDeadline::Continue(1))
    });
    store.set_epoch_deadline(1);
    expire.store(true, Ordering::Relaxed);
    assert_eq!(call(&mut store, instance, "run", 100_000).unwrap(), 42);
    assert!(*store.data() > 0, "the callback ran");
    store.epoch_deadline_trap();
    store.set_epoch_deadline(1);
    let error = call(&mut store, instance, "run", 100_000).unwrap_err();
    assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::Interrupt));
}

#[test]
fn an_exception_stays_pending_until_it_is_taken_or_thrown() {
    each(
        |_| (),
        |engine| {
            let module = Module::new(
                engine,
                r#"(module
                    (import "host" "fail" (func $fail))
                    (tag $t (param i32))
                    (func (export "throw") (param i32) (result i32) (throw $t (local.get 0)))
                    (func (export "succeed") (param i32) (result i32) (local.get 0))
                    (func (export "fails") (param i32) (result i32)
                        (block $caught (result i32) (try_table (catch $t $caught) (call $fail)) (i32.const -1))))"#,
            )
            .unwrap();
            let mut linker: Linker<()> = Linker::new(engine);
            linker.func_wrap("host", "fail", || -> Result<()> { Err(ThrownException.into()) }).unwrap();
            let mut store = Store::new(engine, ());
            store.set_epoch_deadline(u64::MAX);
            let instance = linker.instantiate(&mut store, &module).unwrap();
            for (thrown, pending) in [(3, 3), (4, 4)] {
                assert!(call(&mut store, instance, "throw", thrown).unwrap_err().is::<ThrownException>());
                assert_eq!(call(&mut store, instance, "succeed", 1).unwrap(), 1);
                assert!(store.has_pending_exception());
                // The host function throws what is pending, which the guest catches.
                assert_eq!(call(&mut store, instance, "fails", 0).unwrap(), pending);
                assert!(!store.has_pending_exception());
            }
            // Without one its error is not an exception, and no handler sees it.
            assert!(call(&mut store, instance, "fails", 0).unwrap_err().is::<ThrownException>());
            assert!(!store.has_pending_exception());
            // Another takes the place of the first.
            for thrown in [5, 6] {
                call(&mut store, instance, "throw", thrown).unwrap_err();
            }
            let exception = store.take_pending_exception().unwrap();
            assert_eq!(exception.field(&mut store, 0).unwrap().i32(), Some(6));
            assert!(!store.has_pending_exception());
        },
    );
}

/// `run` throws through a function in which the search passes `clauses` clauses and, outside them, `regions` regions without a clause.
fn many_clauses(clauses: usize, regions: usize) -> String {
    format!(
        "(module (tag $thrown) (tag $other)
            (func $throw (throw $thrown))
            (func $passed block $label {} try_table {} call $throw end {} end)
            (func (export \"run\") (param i32) (result i32)
                (block $caught (try_table (catch $thrown $caught) (call $passed)) (return (i32.const 0)))
                (i32.const 42)))",
        "try_table ".repeat(regions),
        "(catch $other $label)".repeat(clauses),
        "end ".repeat(regions),
    )
}

#[test]
fn a_search_checks_the_deadline_and_the_fuel_among_the_clauses_of_a_frame() {
    each(
        |config| {
            config.epoch_interruption(true).consume_fuel(true);
        },
        |engine| {
            let run = |text: &str, fuel: u64| {
                let module = Module::new(engine, text).unwrap();
                let mut store = Store::new(engine, 0u64);
                // Every poll is counted.
                store.epoch_deadline_callback(|mut store| {
                    *store.data_mut() += 1;
                    Ok(UpdateDeadline::Continue(0))
                });
                store.set_epoch_deadline(0);
                store.set_fuel(fuel).unwrap();
                let instance = Instance::new(&mut store, &module, &[]).unwrap();
                let result = call(&mut store, instance, "run", 0);
                (*store.data(), result, store.get_fuel().unwrap())
            };
            let (few, many) = (many_clauses(1, 1), many_clauses(8000, 1));
            let (own_polls, result, left) = run(&few, 1 << 20);
            assert_eq!(result.unwrap(), 42);
            let (polls, result, left_of_many) = run(&many, 1 << 20);
            assert_eq!((result.unwrap(), left - left_of_many), (42, 7999));
            assert!(polls >= own_polls + 7, "{polls} polls, {own_polls} without the clauses");
            let (polls, result, left) = run(&many, 3000);
            assert_eq!((result.unwrap_err().downcast_ref::<Trap>(), left), (Some(&Trap::OutOfFuel), 0));
            assert!(polls <= own_polls + 2, "{polls} polls, {own_polls} without the clauses");
            // Regions cost no fuel when they are passed, only where they are entered.
            let (polls, result, _) = run(&many_clauses(1, 8000), 1 << 20);
            assert_eq!(result.unwrap(), 42);
            assert!(polls >= own_polls + 7, "{polls} polls, {own_polls} without the regions");
        },
    );
}

#[test]
fn references_to_exceptions_are_values() {
    let text = r#"(module
        (tag $t (export "t") (param i32 f64))
        (table $table 2 exnref)
        (global $kept (mut exnref) (ref.null exn))
        (func (export "make") (result exnref)
            (block $caught (result exnref)
                (try_table (catch_all_ref $caught) (throw $t (i32.const 3) (f64.const 0.25)))
                unreachable))
        (func (export "keep") (param exnref)
            (global.set $kept (local.get 0)) (table.set $table (i32.const 1) (local.get 0)))
        (func (export "throw") (param i32) (result i32)
            (block $global (throw_ref (br_on_null $global (table.get $table (local.get 0)))))
            (throw_ref (global.get $kept)))
        (func (export "fields") (param exnref) (result i32 f64)
            (block $caught (result i32 f64)
                (try_table (catch $t $caught) (throw_ref (local.get 0)))
                unreachable)))"#;
    each(
        |_| (),
        |engine| {
            let (mut store, instance) = instance(engine, text);
            let make = instance.get_typed_func::<(), Option<Rooted<ExnRef>>>(&mut store, "make").unwrap();
            let exception = make.call(&mut store, ()).unwrap().unwrap();
            let fields: Vec<Val> = exception.fields(&mut store).unwrap().collect();
            assert_eq!((fields[0].i32(), fields[1].f64(), fields.len()), (Some(3), Some(0.25), 2));
            assert!(exception.field(&mut store, 2).is_err());
            let tag = instance.get_tag(&mut store, "t").unwrap();
            assert!(Tag::eq(&exception.tag(&mut store).unwrap(), &tag, &store));
            let read = instance.get_typed_func::<Option<Rooted<ExnRef>>, (i32, f64)>(&mut store, "fields").unwrap();
            assert_eq!(read.call(&mut store, Some(exception)).unwrap(), (3, 0.25));
            assert_eq!(read.call(&mut store, None).unwrap_err().downcast_ref::<Trap>(), Some(&Trap::NullReference));
            let error = call(&mut store, instance, "throw", 0).unwrap_err();
            assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::NullReference));
            let keep = instance.get_typed_func::<Option<Rooted<ExnRef>>, ()>(&mut store, "keep").unwrap();
            keep.call(&mut store, Some(exception)).unwrap();
            for index in 0..2 {
                assert!(call(&mut store, instance, "throw", index).unwrap_err().is::<ThrownException>());
                let again = store.take_pending_exception().unwrap();
                assert_eq!(again.field(&mut store, 1).unwrap().f64(), Some(0.25));
            }
            assert_eq!(exception.ty(&store).unwrap().fields().collect::<Vec<_>>(), [ValType::I32, ValType::F64]);
        },
    );
}

#[test]
fn host_references_pass_through_exceptions() {
    let engine = common::default_engine();
    let mut store = Store::new(&engine, ());
    store.set_epoch_deadline(u64::MAX);
    let echo = Func::wrap(&mut store, |exception: Option<Rooted<ExnRef>>| exception);
    let tag = Tag::new(&mut store, &TagType::new(FuncType::new(&engine, [ValType::I32], []))).unwrap();
    let exception = exception(&mut store, &tag, 5);
    let mut results = [Val::null_exn_ref()];
    echo.call(&mut store, &[exception.into()], &mut results).unwrap();
    assert_eq!(results[0].unwrap_exnref().unwrap().field(&mut store, 0).unwrap().i32(), Some(5));
    let wrong = Func::new(&mut store, FuncType::new(&engine, [], [ValType::EXNREF]), |_, _, results| {
        results[0] = Val::I32(1);
        Ok(())
    });
    assert!(wrong.call(&mut store, &[], &mut results).is_err());
}
