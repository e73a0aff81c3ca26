//! Resumable calls, in every tier: guests that stop after an error of a host function or without fuel, and are resumed in any order, on
//! other threads too, or given up.

use crate::common;
use crate::executor::{self, Counter, each_engine};
use std::panic::{AssertUnwindSafe, catch_unwind};
use weir::{
    AsContextMut, CallHook, Caller, Config, Engine, Error, ExternRef, Func, Instance, Linker, Module, OwnedRooted, ResumableCall,
    Rooted, Store, Trap, TypedFunc, TypedResumableCall, TypedResumableCallHostTrap, TypedResumableCallOutOfFuel, UpdateDeadline,
    Val,
};

/// Functions that call each other, the innermost the host, with handlers for everything, locals of several types and memory.
const DEEP: &str = r#"(module
    (import "host" "ask" (func $ask (param i32) (result i32)))
    (memory (export "memory") 1)
    (table funcref (elem $d))
    (type $t (func (param i32) (result i32)))
    (global $caught (export "caught") (mut i32) (i32.const 0))
    (func $a (export "run") (param i32) (result i32)
        (block $handler
            (return (try_table (result i32) (catch_all $handler) (call $b (local.get 0)))))
        (global.set $caught (i32.add (global.get $caught) (i32.const 1)))
        (i32.const -1))
    (func $b (param i32) (result i32) (call_indirect (type $t) (local.get 0) (i32.const 0)))
    (func $d (param i32) (result i32) (local i32 v128 f64)
        (local.set 2 (i32x4.splat (i32.const 100))) (local.set 3 (f64.const 2.5))
        (loop $l
            (local.set 1 (i32.add (local.get 1) (call $e (local.get 0))))
            (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
        (i32.add (local.get 1)
            (i32.add (i32x4.extract_lane 2 (local.get 2)) (i32.trunc_f64_s (f64.mul (local.get 3) (f64.const 2))))))
    (func $e (param i32) (result i32)
        (i32.store (i32.const 8) (i32.add (i32.load (i32.const 8)) (i32.const 1)))
        (call $f (local.get 0)))
    (func $f (param i32) (result i32) (return_call $ask (local.get 0))))"#;

/// The error of the host function of [`DEEP`].
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("asked for {0}")]
struct Asked(i32);

/// A store with an instance of [`DEEP`], whose host function always fails.
fn deep(engine: &Engine) -> (Store<()>, TypedFunc<i32, i32>, Instance) {
    let module = Module::new(engine, DEEP).unwrap();
    let mut linker = Linker::new(engine);
    linker.func_wrap("host", "ask", |n: i32| -> Result<i32, Error> { Err(Asked(n).into()) }).unwrap();
    let mut store = Store::new(engine, ());
    store.set_epoch_deadline(1 << 60);
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let run = instance.get_typed_func(&mut store, "run").unwrap();
    (store, run, instance)
}

fn host_trap<R>(call: TypedResumableCall<R>) -> TypedResumableCallHostTrap<R> {
    match call {
        TypedResumableCall::HostTrap(call) => call,
        TypedResumableCall::Finished(_) => panic!("it has finished"),
        TypedResumableCall::OutOfFuel(_) => panic!("it has no fuel"),
    }
}

fn out_of_fuel<R>(call: TypedResumableCall<R>) -> TypedResumableCallOutOfFuel<R> {
    match call {
        TypedResumableCall::OutOfFuel(call) => call,
        TypedResumableCall::Finished(_) => panic!("it has finished"),
        TypedResumableCall::HostTrap(_) => panic!("a host function has failed"),
    }
}

fn finished<R>(call: TypedResumableCall<R>) -> R {
    match call {
        TypedResumableCall::Finished(results) => results,
        TypedResumableCall::HostTrap(call) => panic!("{call:?}"),
        TypedResumableCall::OutOfFuel(call) => panic!("{call:?}"),
    }
}

#[test]
fn guests_are_resumed_after_errors_of_host_functions() {
    each_engine(
        |_| (),
        |engine| {
            let (mut store, run, instance) = deep(engine);
            let mut call = run.call_resumable(&mut store, 3).unwrap();
            for n in [3, 2, 1] {
                let stopped = host_trap(call);
                assert_eq!(stopped.host_error().downcast_ref(), Some(&Asked(n)));
                assert_eq!(stopped.host_func().ty(&store).results().len(), 1);
                call = stopped.resume(&mut store, &[Val::I32(10 * n)]).unwrap();
            }
            assert_eq!(finished(call), 60 + 105);
            let memory = instance.get_memory(&mut store, "memory").unwrap();
            assert_eq!(memory.data(&store)[8], 3);
            // The same, untyped.
            let mut results = [Val::I32(0)];
            let call = run.func().call_resumable(&mut store, &[Val::I32(1)], &mut results).unwrap();
            let ResumableCall::HostTrap(stopped) = call else { panic!("{call:?}") };
            let call = stopped.resume(&mut store, &[Val::I32(7)], &mut results).unwrap();
            assert!(matches!(call, ResumableCall::Finished));
            assert_eq!(results[0].unwrap_i32(), 112);
            // Without resumption an error is an error.
            let error = run.call(&mut store, 1).unwrap_err();
            assert_eq!(error.downcast_ref(), Some(&Asked(1)));
        },
    );
}

#[test]
fn calls_of_one_store_end_in_any_order_and_on_any_thread() {
    each_engine(
        |_| (),
        |engine| {
            let (mut store, run, _) = deep(engine);
            for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
                let mut calls: Vec<_> = (0..3).map(|_| Some(host_trap(run.call_resumable(&mut store, 2).unwrap()))).collect();
                for n in [2, 1] {
                    for i in order {
                        let call = calls[i].take().unwrap();
                        assert_eq!(call.host_error().downcast_ref(), Some(&Asked(n)));
                        let input = [Val::I32(n + 10 * i as i32)];
                        let resumed = std::thread::scope(|scope| {
                            let store = &mut store;
                            scope.spawn(move || call.resume(store, &input)).join().unwrap()
                        });
                        match n {
                            1 => assert_eq!(finished(resumed.unwrap()), 3 + 20 * i as i32 + 105),
                            _ => calls[i] = Some(host_trap(resumed.unwrap())),
                        }
                    }
                }
            }
        },
    );
}

#[test]
fn guests_that_are_given_up_leave_their_frames() {
    each_engine(
        |_| (),
        |engine| {
            let (mut store, run, instance) = deep(engine);
            for _ in 0..5 {
                let call = host_trap(run.call_resumable(&mut store, 2).unwrap());
                let call = host_trap(call.resume(&mut store, &[Val::I32(1)]).unwrap());
                assert_eq!(call.into_host_error().downcast_ref(), Some(&Asked(1)));
                // One that is refused its results is given up, too.
                let call = host_trap(run.call_resumable(&mut store, 1).unwrap());
                assert!(call.resume(&mut store, &[Val::I64(1)]).is_err());
                let call = host_trap(run.call_resumable(&mut store, 1).unwrap());
                assert!(call.resume(&mut store, &[]).is_err());
            }
            let caught = instance.get_global(&mut store, "caught").unwrap().get(&mut store);
            assert_eq!(caught.unwrap_i32(), 0, "no handler catches it");
            let call = host_trap(run.call_resumable(&mut store, 1).unwrap());
            assert_eq!(finished(call.resume(&mut store, &[Val::I32(1)]).unwrap()), 106);
            // The store's end is that of its guests, and a handle may outlive it.
            let left = host_trap(run.call_resumable(&mut store, 1).unwrap());
            drop(store);
            let (mut other, ..) = deep(engine);
            let used = catch_unwind(AssertUnwindSafe(|| left.resume(&mut other, &[Val::I32(1)]).map(drop)));
            assert!(used.is_err(), "it belongs to another store");
        },
    );
}

#[test]
fn calls_within_a_resumable_one_are_no_part_of_it() {
    each_engine(
        |_| (),
        |engine| {
            let module = Module::new(
                engine,
                r#"(module
                    (import "host" "outer" (func $outer (result i32)))
                    (import "host" "inner" (func $inner (result i32)))
                    (func (export "outer") (result i32) (i32.add (call $outer) (i32.const 1)))
                    (func (export "inner") (result i32) (i32.add (call $inner) (i32.const 2))))"#,
            )
            .unwrap();
            let mut linker: Linker<bool> = Linker::new(engine);
            let inner = |caller: &mut Caller<'_, bool>| caller.get_export("inner").and_then(|e| e.into_func()).unwrap();
            linker
                .func_wrap("host", "outer", move |mut caller: Caller<'_, bool>| -> Result<i32, Error> {
                    let inner = inner(&mut caller).typed::<(), i32>(&caller)?;
                    if *caller.data() {
                        // One that is resumable itself stops alone, and is resumed here.
                        let call = host_trap(inner.call_resumable(&mut caller, ())?);
                        assert_eq!(call.host_error().downcast_ref(), Some(&Asked(5)));
                        return Ok(finished(call.resume(&mut caller, &[Val::I32(40)])?));
                    }
                    let error = inner.call(&mut caller, ()).unwrap_err();
                    assert_eq!(error.downcast_ref(), Some(&Asked(5)), "it is not stopped here");
                    Err(Asked(6).into())
                })
                .unwrap();
            linker.func_wrap("host", "inner", || -> Result<i32, Error> { Err(Asked(5).into()) }).unwrap();
            let mut store = Store::new(engine, false);
            store.set_epoch_deadline(1 << 60);
            let instance = linker.instantiate(&mut store, &module).unwrap();
            let outer = instance.get_typed_func::<(), i32>(&mut store, "outer").unwrap();
            let call = host_trap(outer.call_resumable(&mut store, ()).unwrap());
            assert_eq!(call.host_error().downcast_ref(), Some(&Asked(6)));
            assert_eq!(finished(call.resume(&mut store, &[Val::I32(8)]).unwrap()), 9);
            *store.data_mut() = true;
            assert_eq!(finished(outer.call_resumable(&mut store, ()).unwrap()), 43);
            assert_eq!(outer.call(&mut store, ()).unwrap(), 43);
        },
    );
}

#[test]
fn endless_nesting_is_a_trap() {
    let engine = common::default_engine();
    let module =
        Module::new(&engine, r#"(module (import "host" "again" (func $again)) (func (export "run") (call $again)))"#).unwrap();
    let mut linker: Linker<u32> = Linker::new(&engine);
    linker
        .func_wrap("host", "again", |mut caller: Caller<'_, u32>| -> Result<(), Error> {
            *caller.data_mut() += 1;
            let run = caller.get_export("run").and_then(|e| e.into_func()).unwrap();
            run.call_resumable(&mut caller, &[], &mut []).map(drop)
        })
        .unwrap();
    let mut store = Store::new(&engine, 0);
    let instance = linker.instantiate(&mut store, &module).unwrap();
    let run = instance.get_func(&mut store, "run").unwrap();
    // The innermost error stops the guest around it, whose call the host function gives up, and so on.
    assert!(matches!(run.call_resumable(&mut store, &[], &mut []).unwrap(), ResumableCall::Finished));
    let depth = *store.data();
    assert!((50..200).contains(&depth), "{depth}");
}

#[test]
fn traps_and_panics_end_a_resumable_call() {
    each_engine(
        |_| (),
        |engine| {
            let module = Module::new(
                engine,
                r#"(module
                    (import "host" "ask" (func $ask (param i32)))
                    (func (export "run") (param i32)
                        (call $ask (local.get 0)) (call $ask (i32.const 9)) (unreachable)))"#,
            )
            .unwrap();
            let mut linker: Linker<()> = Linker::new(engine);
            linker
                .func_wrap("host", "ask", |n: i32| match n {
                    0 => Err(Error::from(Asked(n))),
                    1 => std::panic::panic_any(7u8),
                    _ => Ok(()),
                })
                .unwrap();
            let mut store = Store::new(engine, ());
            store.set_epoch_deadline(1 << 60);
            let instance = linker.instantiate(&mut store, &module).unwrap();
            let run = instance.get_typed_func::<i32, ()>(&mut store, "run").unwrap();
            let call = host_trap(run.call_resumable(&mut store, 0).unwrap());
            let error = call.resume(&mut store, &[]).unwrap_err();
            assert_eq!(error.downcast_ref(), Some(&Trap::UnreachableCodeReached));
            let panic = catch_unwind(AssertUnwindSafe(|| run.call_resumable(&mut store, 1).map(drop)));
            assert_eq!(panic.unwrap_err().downcast_ref(), Some(&7u8));
            let error = run.call_resumable(&mut store, 2).unwrap_err();
            assert_eq!(error.downcast_ref(), Some(&Trap::UnreachableCodeReached));
        },
    );
}

/// A loop that calls, with a fill in the end.
const COUNTING: &str = r#"(module
    (memory 1)
    (global $sum (export "sum") (mut i64) (i64.const 0))
    (func $add (param i64) (global.set $sum (i64.add (global.get $sum) (local.get 0))))
    (func (export "run") (param i64) (result i64)
        (loop $l
            (call $add (local.get 0))
            (br_if $l (i64.ne (local.tee 0 (i64.sub (local.get 0) (i64.const 1))) (i64.const 0))))
        (memory.fill (i32.const 0) (i32.const 1) (i32.const 6400))
        (global.get $sum)))"#;

#[test]
fn guests_are_resumed_with_new_fuel_and_the_sum_is_exact() {
    let (mut stops, mut expected) = (Vec::new(), None);
    each_engine(
        |config| {
            config.consume_fuel(true);
        },
        |engine| {
            let whole = {
                let (mut store, instance) = common::instance(engine, COUNTING);
                store.set_fuel(1_000_000).unwrap();
                let run = instance.get_typed_func::<i64, i64>(&mut store, "run").unwrap();
                assert_eq!(run.call(&mut store, 100).unwrap(), 5050);
                1_000_000 - store.get_fuel().unwrap()
            };
            assert_eq!(*expected.get_or_insert(whole), whole);
            let (mut store, instance) = common::instance(engine, COUNTING);
            let run = instance.get_typed_func::<i64, i64>(&mut store, "run").unwrap();
            let sum = instance.get_global(&mut store, "sum").unwrap();
            let mut given = 50;
            store.set_fuel(given).unwrap();
            let mut call = run.call_resumable(&mut store, 100).unwrap();
            let mut seen = Vec::new();
            let result = loop {
                let stopped = match call {
                    TypedResumableCall::Finished(result) => break result,
                    call => out_of_fuel(call),
                };
                assert_eq!(store.get_fuel().unwrap(), 0);
                let required = stopped.required_fuel();
                seen.push((required, sum.get(&mut store).unwrap_i64()));
                assert!(required > 0 && required < 200, "{required}");
                // Less than is required is taken, and the rest is required still.
                store.set_fuel(required - 1).unwrap();
                let stopped = out_of_fuel(stopped.resume(&mut store).unwrap());
                assert_eq!((stopped.required_fuel(), store.get_fuel().unwrap()), (1, 0));
                store.set_fuel(201).unwrap();
                given += required - 1 + 201;
                call = stopped.resume(&mut store).unwrap();
            };
            assert_eq!(result, 5050);
            assert_eq!(given - store.get_fuel().unwrap(), whole);
            if stops.is_empty() {
                assert!(seen.len() > 3, "{seen:?}");
                stops.clone_from(&seen);
            }
            assert_eq!(seen, stops, "guests stop at the same places in every tier");
        },
    );
}

#[test]
fn guests_without_fuel_are_given_up_and_inner_ones_trap() {
    each_engine(
        |config| {
            config.consume_fuel(true);
        },
        |engine| {
            let (mut store, instance) = common::instance(engine, COUNTING);
            let run = instance.get_typed_func::<i64, i64>(&mut store, "run").unwrap();
            for _ in 0..3 {
                store.set_fuel(100).unwrap();
                drop(out_of_fuel(run.call_resumable(&mut store, 1000).unwrap()));
            }
            // A synchronous call inside a resumable one traps, and the host function sees its store's fuel.
            let inner = *run.func();
            let host = Func::wrap(&mut store, move |mut caller: Caller<'_, ()>| -> Result<(), Error> {
                assert!(caller.get_fuel()? < 1000, "what is lent is not seen");
                caller.set_fuel(40)?;
                assert_eq!(caller.get_fuel()?, 40);
                let error = inner.typed::<i64, i64>(&caller)?.call(&mut caller, 1000).unwrap_err();
                assert_eq!(error.downcast_ref(), Some(&Trap::OutOfFuel));
                assert_eq!(caller.get_fuel()?, 0);
                caller.set_fuel(7)
            });
            let module =
                Module::new(engine, r#"(module (import "" "" (func $host)) (func (export "run") (call $host) (call $host)))"#)
                    .unwrap();
            store.set_fuel(500).unwrap();
            let outer = Instance::new(&mut store, &module, &[host.into()]).unwrap();
            let outer = outer.get_typed_func::<(), ()>(&mut store, "run").unwrap();
            finished(outer.call_resumable(&mut store, ()).unwrap());
            assert!(store.get_fuel().unwrap() <= 7);
            // Fuel that no program consumes.
            store.set_fuel(u64::MAX).unwrap();
            assert_eq!(finished(run.call_resumable(&mut store, 3).unwrap()), run.call(&mut store, 3).unwrap() - 6);
            assert!(store.get_fuel().unwrap() > 1 << 60);
        },
    );
}

#[test]
fn a_large_bulk_operation_on_credit_is_a_trap() {
    each_engine(
        |config| {
            config.consume_fuel(true);
        },
        |engine| {
            let (mut store, instance) = common::instance(
                engine,
                r#"(module (memory 2000) (func (export "run") (param i32)
                    (memory.fill (i32.const 0) (i32.const 0) (i32.const 6400))
                    (memory.fill (i32.const 0) (i32.const 0) (local.get 0))))"#,
            );
            let run = instance.get_typed_func::<i32, ()>(&mut store, "run").unwrap();
            store.set_fuel(50).unwrap();
            // There is no entry and no loop after it, so the guest stops at its end.
            let stopped = out_of_fuel(run.call_resumable(&mut store, 640).unwrap());
            store.set_fuel(stopped.required_fuel() + 3).unwrap();
            finished(stopped.resume(&mut store).unwrap());
            assert_eq!(store.get_fuel().unwrap(), 3);
            store.set_fuel(50).unwrap();
            drop(out_of_fuel(run.call_resumable(&mut store, 640).unwrap()));
            store.set_fuel(50).unwrap();
            let error = run.call_resumable(&mut store, 70 << 20).unwrap_err();
            assert_eq!(error.downcast_ref(), Some(&Trap::OutOfFuel));
            assert_eq!(store.get_fuel().unwrap(), 0);
        },
    );
}

#[test]
fn what_cannot_be_resumed_is_refused() {
    let mut config = Config::new();
    config.consume_fuel(true).async_support(false);
    let engine = common::engine(&config).unwrap();
    let (mut store, run, _) = deep(&engine);
    store.set_fuel(1000).unwrap();
    let error = run.call_resumable(&mut store, 1).unwrap_err();
    assert!(error.to_string().contains("async_support"), "{error}");
    // A store that needs asynchronous calls.
    let engine = common::default_engine();
    let (mut store, run, _) = deep(&engine);
    Func::wrap_async(&mut store, |_: Caller<'_, ()>, (): ()| Box::new(async {}));
    let error = run.call_resumable(&mut store, 1).unwrap_err();
    assert!(error.to_string().contains("_async"), "{error}");
    // An asynchronous function that is added meanwhile.
    let (mut store, ..) = deep(&engine);
    let wait = Func::wrap(&mut store, |mut caller: Caller<'_, ()>| -> Result<(), Error> {
        Func::wrap_async(&mut caller, |_: Caller<'_, ()>, (): ()| Box::new(async {}));
        Ok(())
    });
    let module = Module::new(&engine, r#"(module (import "" "" (func $w)) (func (export "run") (call $w)))"#).unwrap();
    let instance = Instance::new(&mut store, &module, &[wait.into()]).unwrap();
    let run = instance.get_typed_func::<(), ()>(&mut store, "run").unwrap();
    finished(run.call_resumable(&mut store, ()).unwrap());
    assert!(run.call_resumable(&mut store, ()).is_err());
}

#[test]
fn guests_that_yield_at_deadlines_need_asynchronous_calls() {
    each_engine(
        |config| {
            config.epoch_interruption(true);
        },
        |engine| {
            let (mut store, instance) = common::instance(engine, COUNTING);
            let run = instance.get_typed_func::<i64, i64>(&mut store, "run").unwrap();
            store.set_epoch_deadline(0);
            store.epoch_deadline_callback(|_| Ok(UpdateDeadline::Yield(1)));
            let error = run.call_resumable(&mut store, 3).unwrap_err();
            assert!(error.root_cause().to_string().contains("_async"), "{error}");
            store.set_epoch_deadline(0);
            store.epoch_deadline_callback(|_| Ok(UpdateDeadline::Continue(1)));
            assert_eq!(finished(run.call_resumable(&mut store, 3).unwrap()) % 6, 0);
        },
    );
}

#[test]
fn references_of_stopped_guests_are_kept() {
    each_engine(
        |_| (),
        |engine| {
            let module = Module::new(
                engine,
                r#"(module
                    (import "host" "ask" (func $ask (param externref) (result externref)))
                    (func (export "run") (param externref) (result externref externref)
                        (call $inner (local.get 0)) (local.get 0))
                    (func $inner (param externref) (result externref) (local externref)
                        (local.set 1 (call $ask (local.get 0)))
                        (if (ref.is_null (local.get 1)) (then (unreachable)))
                        (local.get 1)))"#,
            )
            .unwrap();
            let mut store = Store::new(engine, ());
            store.set_epoch_deadline(1 << 60);
            let failing = |_: Option<Rooted<ExternRef>>| -> Result<Option<Rooted<ExternRef>>, Error> { Err(Asked(0).into()) };
            let ask = Func::wrap(&mut store, failing);
            let instance = Instance::new(&mut store, &module, &[ask.into()]).unwrap();
            type Both = (Option<OwnedRooted<ExternRef>>, Option<OwnedRooted<ExternRef>>);
            let run = instance.get_typed_func::<Option<OwnedRooted<ExternRef>>, Both>(&mut store, "run").unwrap();
            let counter = Counter::default();
            let mut calls = Vec::new();
            for _ in 0..4 {
                let argument = ExternRef::new(&mut store, counter.one()).unwrap().to_owned_rooted(&mut store).unwrap();
                calls.push(host_trap(run.call_resumable(&mut store, Some(argument)).unwrap()));
                store.as_context_mut().gc(None).unwrap();
            }
            // What calls hold is alive although the embedder holds nothing of it.
            for _ in 0..3 {
                let garbage = ExternRef::new(&mut store, counter.one()).unwrap().to_owned_rooted(&mut store).unwrap();
                drop(garbage);
                store.as_context_mut().gc(None).unwrap();
            }
            assert!(counter.get() >= 4, "{}", counter.get());
            for call in calls.drain(..).rev() {
                let value = ExternRef::new(&mut store, 5i32).unwrap();
                let (first, second) = finished(call.resume(&mut store, &[Val::from(value)]).unwrap());
                store.as_context_mut().gc(None).unwrap();
                let first = first.unwrap();
                assert_eq!(first.data(&store).unwrap().unwrap().downcast_ref(), Some(&5i32));
                assert!(second.unwrap().data(&store).unwrap().unwrap().is::<executor::Counted>());
            }
        },
    );
}

#[test]
fn scoped_roots_of_calls_around_stay_valid() {
    each_engine(
        |_| (),
        |engine| {
            let (mut store, run, _) = deep(engine);
            let mut first = Some(host_trap(run.call_resumable(&mut store, 1).unwrap()));
            let host = Func::wrap(&mut store, move |mut caller: Caller<'_, ()>| -> Result<i32, Error> {
                let held = ExternRef::new(&mut caller, 3i32)?;
                let call = host_trap(run.call_resumable(&mut caller, 1)?);
                let result = finished(call.resume(&mut caller, &[Val::I32(1)])?);
                caller.gc(None)?;
                assert_eq!(held.data(&caller)?.unwrap().downcast_ref(), Some(&3i32));
                Ok(result)
            });
            let module = Module::new(
                engine,
                r#"(module (import "" "" (func $h (result i32))) (func (export "run") (result i32) (call $h)))"#,
            )
            .unwrap();
            let outer = Instance::new(&mut store, &module, &[host.into()]).unwrap();
            let outer = outer.get_typed_func::<(), i32>(&mut store, "run").unwrap();
            let held = ExternRef::new(&mut store, 4i32).unwrap();
            assert_eq!(outer.call(&mut store, ()).unwrap(), 106);
            assert_eq!(finished(outer.call_resumable(&mut store, ()).unwrap()), 106);
            assert_eq!(finished(first.take().unwrap().resume(&mut store, &[Val::I32(2)]).unwrap()), 107);
            assert_eq!(held.data(&store).unwrap().unwrap().downcast_ref(), Some(&4i32));
        },
    );
}

#[test]
fn hooks_see_stops_as_returns() {
    each_engine(
        |_| (),
        |engine| {
            let module = Module::new(engine, DEEP).unwrap();
            let mut linker: Linker<Vec<CallHook>> = Linker::new(engine);
            linker.func_wrap("host", "ask", |n: i32| -> Result<i32, Error> { Err(Asked(n).into()) }).unwrap();
            let mut store = Store::new(engine, Vec::new());
            store.set_epoch_deadline(1 << 60);
            let instance = linker.instantiate(&mut store, &module).unwrap();
            let run = instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap();
            store.call_hook(|mut store, passage| {
                store.data_mut().push(passage);
                Ok(())
            });
            let call = host_trap(run.call_resumable(&mut store, 1).unwrap());
            assert_eq!(finished(call.resume(&mut store, &[Val::I32(1)]).unwrap()), 106);
            use CallHook::{CallingHost, CallingWasm, ReturningFromHost, ReturningFromWasm};
            let expected = [CallingWasm, CallingHost, ReturningFromHost, ReturningFromWasm, CallingWasm, ReturningFromWasm];
            assert_eq!(format!("{:?}", store.data()), format!("{expected:?}"));
        },
    );
}
