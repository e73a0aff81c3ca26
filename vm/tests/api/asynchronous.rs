//! Asynchronous calls, in every tier: guests that are suspended and resumed, also on other threads, and that are dropped.

use crate::common;
use crate::executor::{Counter, Gate, Pause, block_on, each_engine, on_many_threads, poll};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use weir::{
    AsContextMut, Caller, Engine, Error, Func, FuncType, Instance, Linker, Memory, MemoryType, Module, Store, Trap, Val, ValType,
    WasmBacktrace,
};

/// Functions that call each other, the innermost the host. Each has a handler for everything, and locals of all types.
fn deep() -> String {
    let guarded = |name: &str, call: &str, after: &str| {
        format!(
            r#"(func ${name} {} (param i32) (result i32)
                (block $handler
                    (return {after} (try_table (result i32) (catch_all $handler) {call})))
                (global.set $caught (i32.add (global.get $caught) (i32.const 1)))
                (i32.const -1))"#,
            if name == "a" { r#"(export "run")"# } else { "" }
        )
    };
    let functions = [
        guarded("a", "(call $b (local.get 0))", ""),
        guarded("b", "(call $c (local.get 0))", ""),
        guarded("c", "(call_indirect (type $t) (local.get 0) (i32.const 3))", ""),
        guarded("d", "(call $loop (local.get 0))", ""),
        guarded("e", "(call $f (local.get 0))", ""),
        guarded("f", "(call $wait (local.get 0))", ""),
    ];
    format!(
        r#"(module
            (import "host" "wait" (func $wait (param i32) (result i32)))
            (table funcref (elem $a $b $c $d $e $f))
            (type $t (func (param i32) (result i32)))
            (global $caught (export "caught") (mut i32) (i32.const 0))
            {}
            (func $loop (param i32) (result i32) (local i32 v128 f64)
                (local.set 2 (i32x4.splat (i32.const 100))) (local.set 3 (f64.const 2.5))
                (loop $l
                    (local.set 1 (i32.add (local.get 1) (call $e (local.get 0))))
                    (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
                (i32.add (local.get 1)
                    (i32.add (i32x4.extract_lane 2 (local.get 2)) (i32.trunc_f64_s (f64.mul (local.get 3) (f64.const 2)))))))"#,
        functions.join("\n")
    )
}

/// A store with an instance of [`deep`], whose host function is pending for the number of polls in the store's data.
async fn deep_instance(engine: &Engine, pauses: usize) -> (Store<usize>, Instance) {
    let module = Module::new(engine, deep()).unwrap();
    let mut linker = Linker::new(engine);
    linker
        .func_wrap_async("host", "wait", |caller: Caller<'_, usize>, (n,): (i32,)| {
            Box::new(async move {
                Pause(*caller.data()).await;
                2 * n
            })
        })
        .unwrap();
    let mut store = Store::new(engine, pauses);
    store.set_epoch_deadline(1 << 60);
    let instance = linker.instantiate_async(&mut store, &module).await.unwrap();
    (store, instance)
}

/// The result of `run(n)` in [`deep`].
fn expected(n: i32) -> i32 {
    (1..=n).map(|i| 2 * i).sum::<i32>() + 105
}

#[test]
fn guests_are_suspended_and_resumed() {
    each_engine(
        |_| (),
        |engine| {
            for pauses in [0, 1, 3] {
                let (mut store, instance) = block_on(deep_instance(engine, pauses));
                let run = instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap();
                for n in [1, 5, 1] {
                    assert_eq!(block_on(run.call_async(&mut store, n)).unwrap(), expected(n));
                }
                let mut results = [Val::I32(0)];
                block_on(run.func().call_async(&mut store, &[Val::I32(4)], &mut results)).unwrap();
                assert_eq!(results[0].unwrap_i32(), expected(4));
            }
        },
    );
}

#[test]
fn guests_are_resumed_on_other_threads() {
    each_engine(
        |_| (),
        |engine| {
            let (mut store, instance) = on_many_threads(deep_instance(engine, 2));
            let run = instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap();
            for n in [1, 6] {
                assert_eq!(on_many_threads(run.call_async(&mut store, n)).unwrap(), expected(n));
            }
        },
    );
}

#[test]
fn dropping_a_future_ends_its_guest_at_every_suspension() {
    each_engine(
        |_| (),
        |engine| {
            let (mut store, instance) = block_on(deep_instance(engine, 1));
            let run = instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap();
            for polls in 0..4 {
                let mut call = Box::pin(run.call_async(&mut store, 3));
                for _ in 0..polls {
                    let polled = poll(call.as_mut());
                    assert!(polled.is_pending(), "{polled:?}");
                }
                drop(call);
                let caught = instance.get_global(&mut store, "caught").unwrap().get(&mut store);
                assert_eq!(caught.unwrap_i32(), 0, "no handler catches it");
                assert_eq!(block_on(run.call_async(&mut store, 3)).unwrap(), expected(3), "the store can be used");
            }
        },
    );
}

#[test]
fn a_dropped_future_drops_that_of_the_host_first() {
    let engine = common::default_engine();
    let module = Module::new(&engine, deep()).unwrap();
    let counter = Counter::default();
    let mut linker: Linker<()> = Linker::new(&engine);
    let counted = counter.clone();
    linker
        .func_wrap_async("host", "wait", move |_: Caller<'_, ()>, (n,): (i32,)| {
            let held = counted.one();
            Box::new(async move {
                Pause(usize::MAX).await;
                drop(held);
                n
            })
        })
        .unwrap();
    let mut store = Store::new(&engine, ());
    let instance = block_on(linker.instantiate_async(&mut store, &module)).unwrap();
    let run = instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap();
    let mut call = Box::pin(run.call_async(&mut store, 1));
    assert!(poll(call.as_mut()).is_pending());
    assert_eq!(counter.get(), 1);
    std::thread::scope(|scope| {
        scope.spawn(move || drop(call));
    });
    assert_eq!(counter.get(), 0);
    // During a panic, too.
    let panic = catch_unwind(AssertUnwindSafe(|| {
        let mut call = Box::pin(run.call_async(&mut store, 1));
        assert!(poll(call.as_mut()).is_pending());
        panic!("while it is suspended");
    }));
    assert!(panic.is_err());
    assert_eq!(counter.get(), 0);
    let caught = instance.get_global(&mut store, "caught").unwrap().get(&mut store);
    assert_eq!(caught.unwrap_i32(), 0);
}

#[test]
fn a_leaked_future_leaves_a_usable_store() {
    each_engine(
        |_| (),
        |engine| {
            let (mut store, instance) = block_on(deep_instance(engine, 1));
            let run = instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap();
            for _ in 0..3 {
                let mut call = Box::pin(run.call_async(&mut store, 3));
                assert!(poll(call.as_mut()).is_pending());
                std::mem::forget(call);
                assert_eq!(block_on(run.call_async(&mut store, 3)).unwrap(), expected(3));
            }
        },
    );
}

#[test]
fn panics_of_futures_are_resumed_in_the_caller_of_poll() {
    each_engine(
        |_| (),
        |engine| {
            let module = Module::new(engine, deep()).unwrap();
            let mut linker: Linker<()> = Linker::new(engine);
            linker
                .func_wrap_async("host", "wait", |_: Caller<'_, ()>, (n,): (i32,)| {
                    if n == 9 {
                        std::panic::panic_any(8u8);
                    }
                    Box::new(async move {
                        Pause(1).await;
                        if n == 2 {
                            std::panic::panic_any(7u8);
                        }
                        n
                    })
                })
                .unwrap();
            let mut store = Store::new(engine, ());
            store.set_epoch_deadline(1 << 60);
            let instance = block_on(linker.instantiate_async(&mut store, &module)).unwrap();
            let run = instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap();
            for (n, value) in [(2, 7), (9, 8)] {
                let panic = catch_unwind(AssertUnwindSafe(|| on_many_threads(run.call_async(&mut store, n)))).unwrap_err();
                assert_eq!(panic.downcast_ref::<u8>(), Some(&value));
            }
            assert_eq!(block_on(run.call_async(&mut store, 1)).unwrap(), 1 + 105);
            let caught = instance.get_global(&mut store, "caught").unwrap().get(&mut store);
            assert_eq!(caught.unwrap_i32(), 0);
        },
    );
}

/// A future whose destructor panics.
struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        std::panic::panic_any(5u8);
    }
}

#[test]
fn a_panic_while_a_host_future_is_dropped_is_resumed() {
    let engine = common::default_engine();
    let module = Module::new(&engine, deep()).unwrap();
    let mut linker: Linker<()> = Linker::new(&engine);
    linker
        .func_wrap_async("host", "wait", |_: Caller<'_, ()>, (n,): (i32,)| {
            Box::new(async move {
                let _held = PanicsInDrop;
                Pause(usize::MAX).await;
                n
            })
        })
        .unwrap();
    let mut store = Store::new(&engine, ());
    let instance = block_on(linker.instantiate_async(&mut store, &module)).unwrap();
    let run = instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap();
    let mut call = Box::pin(run.call_async(&mut store, 1));
    assert!(poll(call.as_mut()).is_pending());
    let panic = catch_unwind(AssertUnwindSafe(move || drop(call))).unwrap_err();
    assert_eq!(panic.downcast_ref::<u8>(), Some(&5));
    let mut call = Box::pin(run.call_async(&mut store, 1));
    assert!(poll(call.as_mut()).is_pending());
    let panic = catch_unwind(AssertUnwindSafe(move || {
        let _call = call;
        std::panic::panic_any(4u8);
    }));
    assert_eq!(panic.unwrap_err().downcast_ref::<u8>(), Some(&4), "the second panic does not end the process");
}

/// A guest that calls itself through an asynchronous host function, `n` levels deep.
const NESTED: &str = r#"(module
    (import "host" "again" (func $again (param i32) (result i32)))
    (import "host" "trace" (func $trace))
    (func $a (export "run") (param i32) (result i32)
        (if (i32.eqz (local.get 0)) (then (call $trace) (return (i32.const 0))))
        (call $b (local.get 0)))
    (func $b (param i32) (result i32) (i32.add (call $again (i32.sub (local.get 0) (i32.const 1))) (local.get 0))))"#;

fn nested_linker(engine: &Engine) -> Linker<Vec<Vec<u32>>> {
    let mut linker = Linker::new(engine);
    linker
        .func_wrap_async("host", "again", |mut caller: Caller<'_, Vec<Vec<u32>>>, (n,): (i32,)| {
            Box::new(async move {
                Pause(1).await;
                let run = caller.instance().unwrap().get_typed_func::<i32, i32>(&mut caller, "run")?;
                let frames = |caller: &Caller<'_, _>| WasmBacktrace::force_capture(caller).frames().len();
                let before = frames(&caller);
                let result = run.call_async(&mut caller, n).await?;
                assert_eq!(frames(&caller), before);
                Pause(1).await;
                Ok(result)
            })
        })
        .unwrap();
    linker
        .func_wrap_async("host", "trace", |mut caller: Caller<'_, Vec<Vec<u32>>>, (): ()| {
            Box::new(async move {
                for _ in 0..2 {
                    let trace = WasmBacktrace::force_capture(&caller);
                    caller.data_mut().push(trace.frames().iter().map(|frame| frame.func_index()).collect());
                    Pause(1).await;
                }
            })
        })
        .unwrap();
    linker
}

#[test]
fn host_futures_call_guests() {
    each_engine(
        |_| (),
        |engine| {
            let module = Module::new(engine, NESTED).unwrap();
            let linker = nested_linker(engine);
            let mut store = Store::new(engine, Vec::new());
            store.set_epoch_deadline(1 << 60);
            let instance = block_on(linker.instantiate_async(&mut store, &module)).unwrap();
            let run = instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap();
            assert_eq!(on_many_threads(run.call_async(&mut store, 4)).unwrap(), 10);
            let expected = vec![2, 3, 2, 3, 2, 3, 2, 3, 2];
            assert_eq!(*store.data(), [expected.clone(), expected.clone()], "the frames of all stacks, innermost first");
            for polls in 1..11 {
                let mut call = Box::pin(run.call_async(&mut store, 4));
                (0..polls).for_each(|_| assert!(poll(call.as_mut()).is_pending()));
                drop(call);
                assert_eq!(block_on(run.call_async(&mut store, 2)).unwrap(), 3);
            }
        },
    );
}

#[test]
fn a_host_future_may_drop_the_call_that_it_made() {
    each_engine(
        |_| (),
        |engine| {
            let module = Module::new(
                engine,
                r#"(module
                    (import "host" "wait" (func $wait))
                    (import "host" "race" (func $race (result i32)))
                    (func $a (export "slow") (loop (call $wait) (br 0)))
                    (func $b (export "run") (result i32) (i32.add (call $race) (call $race))))"#,
            )
            .unwrap();
            let mut linker: Linker<()> = Linker::new(engine);
            linker.func_wrap_async("host", "wait", |_, (): ()| Box::new(Pause(2))).unwrap();
            linker
                .func_wrap_async("host", "race", |mut caller: Caller<'_, ()>, (): ()| {
                    Box::new(async move {
                        let slow = caller.instance().unwrap().get_typed_func::<(), ()>(&mut caller, "slow")?;
                        for _ in 0..3 {
                            let mut call = Box::pin(slow.call_async(&mut caller, ()));
                            for _ in 0..5 {
                                let is_pending =
                                    std::future::poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_pending())).await;
                                assert!(is_pending);
                                Pause(1).await;
                            }
                        }
                        Ok(20)
                    })
                })
                .unwrap();
            let mut store = Store::new(engine, ());
            store.set_epoch_deadline(1 << 60);
            let instance = block_on(linker.instantiate_async(&mut store, &module)).unwrap();
            let run = instance.get_typed_func::<(), i32>(&mut store, "run").unwrap();
            assert_eq!(on_many_threads(run.call_async(&mut store, ())).unwrap(), 40);
        },
    );
}

#[test]
fn backtraces_are_those_of_synchronous_calls() {
    const GUEST: &str = r#"(module
        (import "host" "fail" (func $fail (param i32)))
        (func $a (export "run") (param i32) (call $b (local.get 0)))
        (func $b (param i32) (call $c (local.get 0)) (call $c (local.get 0)))
        (func $c (param i32) (if (i32.eq (local.get 0) (i32.const 1)) (then (unreachable))) (call $fail (local.get 0))))"#;
    #[derive(Debug)]
    struct Exit(i32);
    impl std::fmt::Display for Exit {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "exit {}", self.0)
        }
    }
    impl std::error::Error for Exit {}
    let result = |n: i32| if n == 2 { Err(Error::new(Exit(n))) } else { Ok(()) };
    let frames = |error: &Error| -> Vec<(u32, Option<usize>)> {
        let trace = error.downcast_ref::<WasmBacktrace>().unwrap();
        trace.frames().iter().map(|frame| (frame.func_index(), frame.module_offset())).collect()
    };
    each_engine(
        |_| (),
        |engine| {
            let module = Module::new(engine, GUEST).unwrap();
            let (mut linker, mut async_linker) = (Linker::new(engine), Linker::new(engine));
            linker.func_wrap("host", "fail", move |n: i32| result(n)).unwrap();
            async_linker
                .func_wrap_async("host", "fail", move |_, (n,): (i32,)| {
                    Box::new(async move {
                        Pause(1).await;
                        result(n)
                    })
                })
                .unwrap();
            for n in [0, 1, 2] {
                let mut store = Store::new(engine, ());
                store.set_epoch_deadline(1 << 60);
                let instance = linker.instantiate(&mut store, &module).unwrap();
                let run = instance.get_typed_func::<i32, ()>(&mut store, "run").unwrap();
                let expected = run.call(&mut store, n);
                let mut store = Store::new(engine, ());
                store.set_epoch_deadline(1 << 60);
                let instance = block_on(async_linker.instantiate_async(&mut store, &module)).unwrap();
                let run = instance.get_typed_func::<i32, ()>(&mut store, "run").unwrap();
                let found = on_many_threads(run.call_async(&mut store, n));
                match (expected, found) {
                    (Ok(()), Ok(())) => assert_eq!(n, 0),
                    (Err(expected), Err(found)) => {
                        assert_eq!(frames(&expected), frames(&found));
                        assert_eq!(found.downcast_ref::<Trap>(), expected.downcast_ref::<Trap>());
                        assert_eq!(found.downcast_ref::<Exit>().is_some(), n == 2);
                    }
                    (expected, found) => panic!("{expected:?} and {found:?}"),
                }
            }
        },
    );
}

#[test]
fn an_ended_call_calls_no_guest() {
    let engine = common::default_engine();
    let module =
        Module::new(&engine, r#"(module (import "" "" (func $h)) (func (export "run") (call $h)) (func (export "other")))"#)
            .unwrap();
    /// Calls a guest, and waits, when it is dropped.
    struct Calls<'a>(Caller<'a, Vec<String>>);
    impl Drop for Calls<'_> {
        fn drop(&mut self) {
            let other = self.0.get_export("other").unwrap().into_func().unwrap();
            let errors = [
                block_on(other.call_async(&mut self.0, &[], &mut [])).unwrap_err(),
                other.call(&mut self.0, &[], &mut []).unwrap_err(),
                block_on(Memory::new_async(&mut self.0, MemoryType::new(1, None))).unwrap_err(),
            ];
            self.0.data_mut().extend(errors.map(|error| error.to_string()));
        }
    }
    let mut store = Store::new(&engine, Vec::new());
    let h = Func::wrap_async(&mut store, |caller: Caller<'_, Vec<String>>, (): ()| {
        Box::new(async move {
            let _calls = Calls(caller);
            Pause(usize::MAX).await;
        })
    });
    let instance = block_on(Instance::new_async(&mut store, &module, &[h.into()])).unwrap();
    let run = instance.get_typed_func::<(), ()>(&mut store, "run").unwrap();
    let mut call = Box::pin(run.call_async(&mut store, ()));
    assert!(poll(call.as_mut()).is_pending());
    drop(call);
    assert_eq!(*store.data(), ["the future of the call was dropped"; 3]);
}

#[test]
fn deep_recursion_is_a_trap_on_every_thread() {
    const GUEST: &str = r#"(module
        (import "host" "wait" (func $wait))
        (func $a (export "run") (param i64) (result i64)
            (i64.add (call $b (i64.add (local.get 0) (i64.const 1))) (i64.const 1)))
        (func $b (param i64) (result i64)
            (if (i64.eq (local.get 0) (i64.const 100)) (then (call $wait)))
            (i64.add (call $a (i64.add (local.get 0) (i64.const 1))) (i64.const 1)))
        (memory 1)
        (func (export "trap") (result i32) (call $wait) (i32.load (i32.const 0x7fffffff))))"#;
    each_engine(
        |config| _ = config.max_wasm_stack(128 << 10).async_stack_size(256 << 10).value_stack_size(128 << 10),
        |engine| {
            let module = Module::new(engine, GUEST).unwrap();
            let mut linker = Linker::new(engine);
            linker.func_wrap_async("host", "wait", |_, (): ()| Box::new(Pause(1))).unwrap();
            let mut store = Store::new(engine, ());
            store.set_epoch_deadline(1 << 60);
            let instance = on_many_threads(linker.instantiate_async(&mut store, &module)).unwrap();
            let run = instance.get_typed_func::<i64, i64>(&mut store, "run").unwrap();
            let trap = instance.get_typed_func::<(), i32>(&mut store, "trap").unwrap();
            for _ in 0..3 {
                let error = on_many_threads(run.call_async(&mut store, 0)).unwrap_err();
                assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::StackOverflow));
                let error = on_many_threads(trap.call_async(&mut store, ())).unwrap_err();
                assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::MemoryOutOfBounds));
            }
        },
    );
}

#[test]
fn exceptions_of_asynchronous_host_functions_are_caught() {
    const GUEST: &str = r#"(module
        (import "host" "throw" (func $throw (param i32)))
        (import "host" "tag" (tag $t (param i32)))
        (func $a (export "run") (param i32) (result i32)
            (block $caught (result i32)
                (try_table (catch $t $caught) (call $b (local.get 0)))
                (i32.const -1)))
        (func $b (param i32) (call $c (local.get 0)))
        (func $c (param i32) (call $throw (local.get 0))))"#;
    each_engine(
        |_| (),
        |engine| {
            let module = Module::new(engine, GUEST).unwrap();
            let mut store = Store::new(engine, None);
            store.set_epoch_deadline(1 << 60);
            let ty = weir::TagType::new(FuncType::new(engine, [ValType::I32], []));
            let tag = weir::Tag::new(&mut store, &ty).unwrap();
            *store.data_mut() = Some(tag);
            let mut linker = Linker::new(engine);
            linker.define(&store, "host", "tag", tag).unwrap();
            linker
                .func_wrap_async("host", "throw", |mut caller: Caller<'_, Option<weir::Tag>>, (n,): (i32,)| {
                    Box::new(async move {
                        Pause(1).await;
                        if n == 0 {
                            return Ok(());
                        }
                        let tag = caller.data().unwrap();
                        let ty = weir::ExnType::from_tag_type(&tag.ty(&caller)).unwrap();
                        let pre = weir::ExnRefPre::new(&mut caller, ty);
                        let exn = weir::ExnRef::new(&mut caller, &pre, &tag, &[Val::I32(n)])?;
                        caller.as_context_mut().throw::<()>(exn)?;
                        Ok(())
                    })
                })
                .unwrap();
            let instance = block_on(linker.instantiate_async(&mut store, &module)).unwrap();
            let run = instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap();
            for (n, result) in [(0, -1), (5, 5), (7, 7)] {
                assert_eq!(on_many_threads(run.call_async(&mut store, n)).unwrap(), result);
            }
        },
    );
}

#[test]
fn instantiation_waits_in_start_functions_and_in_modules_of_linkers() {
    let engine = common::default_engine();
    let start = Module::new(
        &engine,
        r#"(module (import "host" "wait" (func $wait (param i32) (result i32)))
            (global $g (export "g") (mut i32) (i32.const 0))
            (func $s (global.set $g (call $wait (i32.const 4)))) (start $s))"#,
    )
    .unwrap();
    let mut linker: Linker<()> = Linker::new(&engine);
    let ty = FuncType::new(&engine, [ValType::I32], [ValType::I32]);
    linker
        .func_new_async("host", "wait", ty, |_, params, results| {
            Box::new(async move {
                Pause(2).await;
                results[0] = Val::I32(2 * params[0].unwrap_i32());
                Ok(())
            })
        })
        .unwrap();
    let mut store = Store::new(&engine, ());
    let instance = on_many_threads(linker.instantiate_async(&mut store, &start)).unwrap();
    assert_eq!(instance.get_global(&mut store, "g").unwrap().get(&mut store).unwrap_i32(), 8);
    let pre = linker.instantiate_pre(&start).unwrap();
    let mut call = Box::pin(pre.instantiate_async(&mut store));
    assert!(poll(call.as_mut()).is_pending());
    drop(call);
    let error = pre.instantiate(&mut store).unwrap_err();
    assert!(error.to_string().contains("_async"), "{error}");

    let reactor = Module::new(
        &engine,
        r#"(module (import "host" "wait" (func $wait (param i32) (result i32)))
            (global $g (mut i32) (i32.const 0))
            (func (export "_initialize") (global.set $g (call $wait (i32.const 5))))
            (func (export "get") (result i32) (global.get $g)))"#,
    )
    .unwrap();
    on_many_threads(linker.module_async(&mut store, "reactor", &reactor)).unwrap();
    let command = Module::new(
        &engine,
        r#"(module (import "host" "wait" (func $wait (param i32) (result i32)))
            (global $g (mut i32) (i32.const 0))
            (func (export "_start"))
            (func (export "next") (result i32)
                (global.set $g (i32.add (global.get $g) (call $wait (i32.const 1))))
                (global.get $g)))"#,
    )
    .unwrap();
    on_many_threads(linker.module_async(&mut store, "command", &command)).unwrap();
    for (name, func, result) in [("reactor", "get", 10), ("command", "next", 2), ("command", "next", 2)] {
        let func = linker.get(&mut store, name, func).unwrap().into_func().unwrap().typed::<(), i32>(&store).unwrap();
        assert_eq!(on_many_threads(func.call_async(&mut store, ())).unwrap(), result);
    }
}

#[test]
fn a_task_sleeps_until_it_is_woken() {
    let engine = common::default_engine();
    let (gate, mut store) = (Gate::default(), Store::new(&engine, ()));
    let opened = gate.clone();
    let wait = Func::wrap_async(&mut store, move |_, (): ()| Box::new(opened.clone()));
    let wait = wait.typed::<(), ()>(&store).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            gate.open();
        });
        block_on(wait.call_async(&mut store, ())).unwrap();
    });
}

#[test]
fn synchronous_host_functions_may_wait_for_asynchronous_calls() {
    const GUEST: &str = r#"(module
        (import "host" "call" (func $call (param i32) (result i32)))
        (func $a (export "run") (param i32) (result i32) (i32.add (call $b (local.get 0)) (i32.const 1)))
        (func $b (param i32) (result i32)
            (if (result i32) (local.get 0) (then (call $call (i32.sub (local.get 0) (i32.const 1)))) (else (i32.const 0)))))"#;
    each_engine(
        |_| (),
        |engine| {
            let module = Module::new(engine, GUEST).unwrap();
            let mut linker = Linker::new(engine);
            linker
                .func_wrap("host", "call", |mut caller: Caller<'_, Vec<usize>>, n: i32| {
                    let run = caller.get_export("run").unwrap().into_func().unwrap().typed::<i32, i32>(&caller)?;
                    let result = on_many_threads(run.call_async(&mut caller, n))?;
                    let depth = WasmBacktrace::force_capture(&caller).frames().len();
                    caller.data_mut().push(depth);
                    Ok(result)
                })
                .unwrap();
            let mut store = Store::new(engine, Vec::new());
            store.set_epoch_deadline(1 << 60);
            let instance = linker.instantiate(&mut store, &module).unwrap();
            let run = instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap();
            assert_eq!(run.call(&mut store, 3).unwrap(), 4);
            assert_eq!(on_many_threads(run.call_async(&mut store, 3)).unwrap(), 4);
            assert_eq!(*store.data(), [6, 4, 2, 6, 4, 2]);
        },
    );
}
