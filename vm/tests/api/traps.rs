//! Everything that ends execution abnormally; the store can be used afterwards.

use crate::common::{self, each_engine, instance, linked};
use std::panic::{AssertUnwindSafe, catch_unwind};
use weir::{Caller, Error, Extern, Func, Instance, Linker, Module, Result, Store, Trap, UpdateDeadline};

const TRAPS: &str = r#"(module
    (memory 1 1)
    (table 3 funcref)
    (elem (i32.const 0) $none)
    (type $none (func))
    (type $other (func (result i32)))
    (func $none)
    (func (export "unreachable") (unreachable))
    (func (export "load") (drop (i32.load (i32.const 65533))))
    (func (export "store") (i64.store offset=4294967295 (i32.const -1) (i64.const 0)))
    (func (export "undefined") (call_indirect (type $none) (i32.const 3)))
    (func (export "null") (call_indirect (type $none) (i32.const 1)))
    (func (export "mismatch") (drop (call_indirect (type $other) (i32.const 0))))
    (func (export "overflow") (drop (i32.div_s (i32.const 0x80000000) (i32.const -1))))
    (func (export "divide") (drop (i64.rem_u (i64.const 1) (i64.const 0))))
    (func (export "convert") (drop (i32.trunc_f32_s (f32.const nan))))
    (func (export "table") (drop (table.get 0 (i32.const 3))))
    (func $deep (export "deep") (param i64) (result i64)
        (i64.add (local.get 0) (call $deep (i64.add (local.get 0) (i64.const 1)))))
    (func (export "fine") (result i32) (i32.const 7)))"#;

#[test]
fn every_trap_is_reported_and_leaves_the_store_usable() {
    let expected = [
        ("unreachable", Trap::UnreachableCodeReached),
        ("load", Trap::MemoryOutOfBounds),
        ("store", Trap::MemoryOutOfBounds),
        ("undefined", Trap::TableOutOfBounds),
        ("null", Trap::IndirectCallToNull),
        ("mismatch", Trap::BadSignature),
        ("overflow", Trap::IntegerOverflow),
        ("divide", Trap::IntegerDivisionByZero),
        ("convert", Trap::BadConversionToInteger),
        ("table", Trap::TableOutOfBounds),
    ];
    each_engine(
        |_| (),
        |engine| {
            let (mut store, instance) = instance(engine, TRAPS);
            let fine = instance.get_typed_func::<(), i32>(&mut store, "fine").unwrap();
            for (name, trap) in expected {
                let func = instance.get_typed_func::<(), ()>(&mut store, name).unwrap();
                let error = func.call(&mut store, ()).unwrap_err();
                assert_eq!(error.downcast_ref::<Trap>(), Some(&trap), "{name}");
                assert_eq!(error.root_cause().to_string(), trap.to_string());
                let frames = error.wasm_backtrace().unwrap().frames();
                assert_eq!(frames.len(), 1, "{name}");
                assert_eq!(fine.call(&mut store, ()).unwrap(), 7);
            }
        },
    );
}

#[test]
fn endless_recursion_is_a_clean_trap() {
    each_engine(
        |_| (),
        |engine| {
            let (mut store, instance) = instance(engine, TRAPS);
            let deep = instance.get_typed_func::<i64, i64>(&mut store, "deep").unwrap();
            for _ in 0..3 {
                let error = deep.call(&mut store, 0).unwrap_err();
                assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::StackOverflow));
                let trace = error.wasm_backtrace().unwrap();
                assert!(!trace.frames().is_empty() && trace.omitted() > 100, "{trace}");
            }
        },
    );
}

/// A thread with less native stack than the guest may use.
#[test]
fn endless_recursion_is_a_clean_trap_on_a_small_stack_too() {
    each_engine(
        |_| (),
        |engine| {
            for kib in [192, 320] {
                let run = || {
                    let (mut store, instance) = instance(engine, TRAPS);
                    let deep = instance.get_typed_func::<i64, i64>(&mut store, "deep").unwrap();
                    let error = deep.call(&mut store, 0).unwrap_err();
                    assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::StackOverflow));
                };
                std::thread::scope(|scope| {
                    std::thread::Builder::new().stack_size(kib << 10).spawn_scoped(scope, run).unwrap();
                });
            }
        },
    );
}

#[test]
fn endless_recursion_through_the_host_is_a_clean_trap() {
    each_engine(
        |_| (),
        |engine| {
            let mut linker: Linker<u32> = Linker::new(engine);
            linker
                .func_wrap("host", "again", |mut caller: Caller<'_, u32>| -> Result<()> {
                    *caller.data_mut() += 1;
                    let run = caller.get_export("run").and_then(Extern::into_func).unwrap();
                    run.typed::<(), ()>(&caller)?.call(&mut caller, ())
                })
                .unwrap();
            let wat = r#"(module
                (import "host" "again" (func $again))
                (func (export "run") (call $again)))"#;
            let (mut store, instance) = linked(&linker, wat, 0);
            let run = instance.get_typed_func::<(), ()>(&mut store, "run").unwrap();
            let error = run.call(&mut store, ()).unwrap_err();
            assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::StackOverflow));
            assert!(*store.data() > 10);
        },
    );
}

#[test]
fn backtraces_name_functions_and_cross_instances_and_hosts() {
    each_engine(
        |_| (),
        |engine| {
            let mut linker: Linker<()> = Linker::new(engine);
            linker
                .func_wrap("host", "call", |mut caller: Caller<'_, ()>, func: Option<Func>| -> Result<()> {
                    func.unwrap().call(&mut caller, &[], &mut [])
                })
                .unwrap();
            let mut store = Store::new(engine, ());
            store.set_epoch_deadline(u64::MAX);
            let inner = r#"(module $inner
                (func $boom (export "boom") (nop) (unreachable)))"#;
            let inner = linker.instantiate(&mut store, &Module::new(engine, inner).unwrap()).unwrap();
            linker.instance(&mut store, "inner", inner).unwrap();
            let outer = r#"(module $outer
                (import "inner" "boom" (func $boom))
                (import "host" "call" (func $call (param funcref)))
                (elem declare func $boom)
                (func $direct (call $boom))
                (func (export "direct") (call $direct))
                (func (export "host") (call $call (ref.func $boom))))"#;
            let outer = linker.instantiate(&mut store, &Module::new(engine, outer).unwrap()).unwrap();
            let names = |error: &Error| -> Vec<String> {
                let frames = error.wasm_backtrace().unwrap().frames().iter();
                let name = |frame: &weir::FrameInfo| {
                    let module = frame.module().name().unwrap();
                    format!("{module}.{}", frame.func_name().map_or(frame.func_index().to_string(), String::from))
                };
                frames.map(name).collect()
            };
            for (export, expected) in
                [("direct", &["inner.boom", "outer.direct", "outer.3"][..]), ("host", &["inner.boom", "outer.4"])]
            {
                let func = outer.get_typed_func::<(), ()>(&mut store, export).unwrap();
                let error = func.call(&mut store, ()).unwrap_err();
                assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::UnreachableCodeReached));
                assert_eq!(names(&error), expected);
                let innermost = &error.wasm_backtrace().unwrap().frames()[0];
                assert_eq!(innermost.func_offset(), Some(1), "the unreachable is after a nop");
                assert!(format!("{error:?}").contains("inner!boom"), "{error:?}");
            }
        },
    );
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("exit with {0}")]
struct Exit(i32);

const HOST_FAILS: &str = r#"(module
    (import "host" "fail" (func $fail (param i32)))
    (memory (export "memory") 1)
    (func $inner (call $fail (i32.const 3)))
    (func (export "run") (i32.store (i32.const 0) (i32.const 1)) (call $inner) (i32.store (i32.const 0) (i32.const 2))))"#;

#[test]
fn errors_of_host_functions_come_out_as_they_are() {
    each_engine(
        |_| (),
        |engine| {
            let mut linker: Linker<()> = Linker::new(engine);
            linker.func_wrap("host", "fail", |code: i32| -> Result<()> { Err(Exit(code).into()) }).unwrap();
            let (mut store, instance) = linked(&linker, HOST_FAILS, ());
            let run = instance.get_typed_func::<(), ()>(&mut store, "run").unwrap();
            let error = run.call(&mut store, ()).unwrap_err();
            assert_eq!(error.downcast_ref::<Exit>(), Some(&Exit(3)));
            assert_eq!(error.wasm_backtrace().unwrap().frames().len(), 2);
            assert_eq!(error.downcast::<Exit>().unwrap(), Exit(3));
            let memory = instance.get_memory(&mut store, "memory").unwrap();
            assert_eq!(memory.data(&store)[0], 1, "nothing ran after the failure");
        },
    );
}

#[test]
fn panics_of_host_functions_come_out_above_the_guest() {
    each_engine(
        |_| (),
        |engine| {
            let mut linker: Linker<()> = Linker::new(engine);
            linker.func_wrap("host", "fail", |code: i32| -> () { std::panic::panic_any(Exit(code)) }).unwrap();
            let (mut store, instance) = linked(&linker, HOST_FAILS, ());
            let run = instance.get_typed_func::<(), ()>(&mut store, "run").unwrap();
            for _ in 0..2 {
                let panic = catch_unwind(AssertUnwindSafe(|| run.call(&mut store, ()))).unwrap_err();
                assert_eq!(panic.downcast_ref::<Exit>(), Some(&Exit(3)));
                let memory = instance.get_memory(&mut store, "memory").unwrap();
                assert_eq!(memory.data(&store)[0], 1, "nothing ran after the panic");
            }
        },
    );
}

#[test]
fn epochs_interrupt_endless_loops() {
    each_engine(
        |config| {
            config.epoch_interruption(true);
        },
        |engine| {
            let (mut store, instance) = instance(
                engine,
                r#"(module
                    (func (export "spin") (loop (br 0)))
                    (func (export "once") (result i32) (i32.const 1)))"#,
            );
            let once = instance.get_typed_func::<(), i32>(&mut store, "once").unwrap();
            assert_eq!(once.call(&mut store, ()).unwrap(), 1, "a new store has no deadline");
            store.set_epoch_deadline(1);
            assert_eq!(once.call(&mut store, ()).unwrap(), 1);
            let spin = instance.get_typed_func::<(), ()>(&mut store, "spin").unwrap();
            let error = std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                    engine.increment_epoch();
                });
                spin.call(&mut store, ()).unwrap_err()
            });
            assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::Interrupt));
            assert!(once.call(&mut store, ()).is_err(), "the deadline stays reached");
            store.set_epoch_deadline(1);
            assert_eq!(once.call(&mut store, ()).unwrap(), 1);
        },
    );
}

#[test]
fn fuel_is_exact() {
    each_engine(
        |config| {
            config.consume_fuel(true);
        },
        |engine| {
            let (mut store, instance) = instance(
                engine,
                r#"(module
                    (memory 1)
                    (func (export "sum") (param i32) (result i32) (local i32)
                        (loop $again
                            (local.set 1 (i32.add (local.get 1) (local.get 0)))
                            (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
                        (local.get 1))
                    (func (export "fill") (memory.fill (i32.const 0) (i32.const 1) (i32.const 640))))"#,
            );
            // Nine instructions an iteration, and the last `local.get`.
            let sum = instance.get_typed_func::<i32, i32>(&mut store, "sum").unwrap();
            store.set_fuel(91).unwrap();
            assert_eq!(sum.call(&mut store, 10).unwrap(), 55);
            assert_eq!(store.get_fuel().unwrap(), 0);
            store.set_fuel(90).unwrap();
            let error = sum.call(&mut store, 10).unwrap_err();
            assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::OutOfFuel));
            assert_eq!(store.get_fuel().unwrap(), 0);

            let fill = instance.get_typed_func::<(), ()>(&mut store, "fill").unwrap();
            store.set_fuel(100).unwrap();
            fill.call(&mut store, ()).unwrap();
            assert_eq!(store.get_fuel().unwrap(), 100 - 4 - 10, "four instructions, and 640 / 64");
        },
    );
    let mut store = Store::new(&common::default_engine(), ());
    store.set_epoch_deadline(u64::MAX);
    assert!(store.set_fuel(1).is_err() && store.get_fuel().is_err());
}

#[test]
fn a_call_of_the_wrong_type_is_described() {
    each_engine(
        |_| (),
        |engine| {
            let wat = r#"(module
                (type $other (func (param i32) (result f64)))
                (table 1 funcref)
                (table $t (export "table") 4 funcref)
                (func $add (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
                (elem (table $t) (i32.const 2) func $add)
                (func (export "call") (param i32) (result f64)
                    (nop) (call_indirect $t (type $other) (i32.const 7) (local.get 0))))"#;
            let (mut store, instance) = instance(engine, wat);
            let call = instance.get_typed_func::<i32, f64>(&mut store, "call").unwrap();
            let error = call.call(&mut store, 2).unwrap_err();
            assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::BadSignature));
            assert_eq!(error.root_cause().to_string(), "wasm trap: indirect call type mismatch");
            let details = "expected [i32] -> [f64], found [i32 i32] -> [i32] at index 2 of table 1";
            assert_eq!(error.details(), Some(details));
            assert_eq!(error.wasm_backtrace().unwrap().frames().len(), 1);
            let error = call.call(&mut store, 3).unwrap_err();
            assert_eq!((error.downcast_ref(), error.details()), (Some(&Trap::IndirectCallToNull), None));
        },
    );
}

/// The host may do anything at a poll: call the guest, grow its memory, block.
#[test]
fn at_the_deadline_the_host_is_asked() {
    each_engine(
        |config| {
            config.epoch_interruption(true);
        },
        |engine| {
            let wat = r#"(module
                (memory (export "memory") 1 100)
                (func (export "triple") (param i32) (result i32) (i32.mul (local.get 0) (i32.const 3)))
                (func (export "run") (param $n i32) (result i64) (local $sum i64) (local $f f64)
                    (local.set $f (f64.const 0.5))
                    (loop $again
                        (local.set $f (f64.add (local.get $f) (f64.const 1)))
                        (local.set $sum (i64.add (local.get $sum) (i64.extend_i32_u (memory.size))))
                        (local.set $n (i32.sub (local.get $n) (i32.const 1)))
                        (br_if $again (local.get $n)))
                    (i64.add (local.get $sum) (i64.trunc_f64_s (local.get $f)))))"#;
            let module = Module::new(engine, wat).unwrap();
            let mut store = Store::new(engine, (0u32, None::<Instance>));
            store.set_epoch_deadline(u64::MAX);
            let instance = Instance::new(&mut store, &module, &[]).unwrap();
            store.data_mut().1 = Some(instance);
            store.set_epoch_deadline(0);
            store.epoch_deadline_callback(|mut store| {
                let instance = store.data().1.unwrap();
                store.data_mut().0 += 1;
                store.set_epoch_deadline(1);
                let triple = instance.get_typed_func::<i32, i32>(&mut store, "triple")?;
                assert_eq!(triple.call(&mut store, 5)?, 15);
                instance.get_memory(&mut store, "memory").unwrap().grow(&mut store, 1)?;
                Ok(UpdateDeadline::Continue(0))
            });
            // One poll at entry, and one in each of 10 iterations: the memory has 3 pages in the first, 12 in the last.
            let run = instance.get_typed_func::<i32, i64>(&mut store, "run").unwrap();
            assert_eq!(run.call(&mut store, 10).unwrap(), (3..=12).sum::<i64>() + 10);
            assert_eq!(store.data().0, 11);

            store.epoch_deadline_callback(|_| std::panic::panic_any("at the deadline"));
            let panic = catch_unwind(AssertUnwindSafe(|| run.call(&mut store, 1))).unwrap_err();
            assert_eq!(panic.downcast_ref(), Some(&"at the deadline"));
        },
    );
}
