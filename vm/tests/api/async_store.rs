//! Stores of guests that are suspended, in every tier: limiters, yields at deadlines and after fuel, references, and the refusal of
//! synchronous calls.

use crate::common::{self, engine};
use crate::executor::{Pause, block_on, each_engine, on_many_threads, poll};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use weir::{
    AsContextMut, Caller, Config, Engine, Error, ExternRef, Func, Instance, Linker, Memory, MemoryType, Module, Ref, RefType,
    ResourceLimiterAsync, Result, Rooted, Store, StoreLimits, Table, TableType, Trap, UpdateDeadline, WasmBacktrace,
};

/// A limiter that pauses before each answer.
#[derive(Default)]
struct Answers {
    pauses: usize,
    asked: Vec<(usize, usize)>,
    fails: bool,
}

type Answer<'f> = Pin<Box<dyn Future<Output = Result<bool>> + Send + 'f>>;

impl Answers {
    fn answer(&mut self, current: usize, desired: usize, allowed: bool) -> Answer<'_> {
        Box::pin(async move {
            Pause(self.pauses).await;
            self.asked.push((current, desired));
            if self.fails { Err(Error::msg("no answer")) } else { Ok(allowed) }
        })
    }
}

impl ResourceLimiterAsync for Answers {
    fn memory_growing<'l, 'f>(&'l mut self, current: usize, desired: usize, _maximum: Option<usize>) -> Answer<'f>
    where
        'l: 'f,
        Self: 'f,
    {
        self.answer(current, desired, desired <= 3 << 16)
    }

    fn table_growing<'l, 'f>(&'l mut self, current: usize, desired: usize, _maximum: Option<usize>) -> Answer<'f>
    where
        'l: 'f,
        Self: 'f,
    {
        self.answer(current, desired, desired <= 10)
    }
}

#[test]
fn a_store_that_needs_asynchronous_calls_refuses_others() {
    let mut config = Config::new();
    config.consume_fuel(true).epoch_interruption(true);
    let engine = engine(&config).unwrap();
    let module = Module::new(&engine, r#"(module (memory 1) (func (export "f")) (func $s) (start $s))"#).unwrap();
    let require: [fn(&mut Store<Answers>); 4] = [
        |store| {
            Func::wrap_async(store, |_, (): ()| Box::new(Pause(0)));
        },
        |store| store.limiter_async(|answers| answers),
        |store| store.epoch_deadline_async_yield_and_update(1),
        |store| store.fuel_async_yield_interval(Some(100)).unwrap(),
    ];
    for require in require {
        let mut store = Store::new(&engine, Answers::default());
        store.set_epoch_deadline(1 << 60);
        store.set_fuel(1000).unwrap();
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let f = instance.get_typed_func::<(), ()>(&mut store, "f").unwrap();
        f.call(&mut store, ()).unwrap();
        require(&mut store);
        for _ in 0..2 {
            let refused = [
                f.call(&mut store, ()).unwrap_err(),
                f.func().call(&mut store, &[], &mut []).unwrap_err(),
                Instance::new(&mut store, &module, &[]).unwrap_err(),
            ];
            assert!(refused.iter().all(|error| error.to_string().contains("_async")), "{refused:?}");
            block_on(f.call_async(&mut store, ())).unwrap();
            block_on(f.func().call_async(&mut store, &[], &mut [])).unwrap();
        }
        block_on(Instance::new_async(&mut store, &module, &[])).unwrap();
    }
    // A store without any of them can be called in both ways, but not synchronously within an asynchronous call.
    let module =
        Module::new(&engine, r#"(module (import "" "" (func $h)) (func (export "run") (call $h)) (func (export "other")))"#)
            .unwrap();
    let mut store = Store::new(&engine, ());
    store.set_epoch_deadline(1 << 60);
    store.set_fuel(1000).unwrap();
    let refused = Func::wrap(&mut store, |mut caller: Caller<'_, ()>| {
        let other = caller.get_export("other").unwrap().into_func().unwrap();
        other.call(&mut caller, &[], &mut []).map_err(|error| error.context("within"))
    });
    let instance = Instance::new(&mut store, &module, &[refused.into()]).unwrap();
    let run = instance.get_typed_func::<(), ()>(&mut store, "run").unwrap();
    run.call(&mut store, ()).unwrap();
    let error = block_on(run.call_async(&mut store, ())).unwrap_err();
    assert!(format!("{error:#}").contains("within: cannot do blocking `call` from an async context"), "{error:#}");
    run.call(&mut store, ()).unwrap();
}

#[test]
fn limiters_suspend_guests_that_grow_memories_and_tables() {
    const GUEST: &str = r#"(module
        (memory (export "memory") 1)
        (table (export "table") 2 funcref)
        (func $a (export "memory_grow") (param i32) (result i32) (call $b (local.get 0)))
        (func $b (param i32) (result i32) (i32.add (memory.grow (local.get 0)) (i32.const 100)))
        (func $c (export "table_grow") (param i32) (result i32)
            (i32.add (table.grow (ref.null func) (local.get 0)) (i32.const 100))))"#;
    each_engine(
        |_| (),
        |engine| {
            let module = Module::new(engine, GUEST).unwrap();
            let mut store = Store::new(engine, Answers { pauses: 2, ..Answers::default() });
            store.set_epoch_deadline(1 << 60);
            store.limiter_async(|answers| answers);
            let error = Instance::new(&mut store, &module, &[]).unwrap_err();
            assert!(error.to_string().contains("_async"), "{error}");
            let instance = on_many_threads(Instance::new_async(&mut store, &module, &[])).unwrap();
            let (memory, table) =
                (instance.get_memory(&mut store, "memory").unwrap(), instance.get_table(&mut store, "table").unwrap());
            let grow = ["memory_grow", "table_grow"].map(|name| instance.get_typed_func::<i32, i32>(&mut store, name).unwrap());
            for (func, delta, result) in [(0, 2, 101), (0, 1, 99), (1, 8, 102), (1, 1, 99)] {
                assert_eq!(on_many_threads(grow[func].call_async(&mut store, delta)).unwrap(), result);
            }
            let asked = [(0, 1 << 16), (0, 2), (1 << 16, 3 << 16), (3 << 16, 4 << 16), (2, 10), (10, 11)];
            assert_eq!(store.data().asked, asked);
            for func in grow {
                let mut call = Box::pin(func.call_async(&mut store, 1));
                assert!(poll(call.as_mut()).is_pending());
                drop(call);
            }
            assert_eq!(store.data().asked, asked);
            // By the embedder.
            assert!(memory.grow(&mut store, 0).unwrap_err().to_string().contains("_async"));
            assert!(table.grow(&mut store, 0, Ref::Func(None)).unwrap_err().to_string().contains("_async"));
            assert_eq!(on_many_threads(memory.grow_async(&mut store, 0)).unwrap(), 3);
            assert_eq!(on_many_threads(table.grow_async(&mut store, 0, Ref::Func(None))).unwrap(), 10);
            assert!(on_many_threads(memory.grow_async(&mut store, 1)).is_err());
            on_many_threads(Memory::new_async(&mut store, MemoryType::new(2, None))).unwrap();
            let ty = TableType::new(RefType::FUNCREF, 11, None);
            assert!(on_many_threads(Table::new_async(&mut store, ty, Ref::Func(None))).is_err());
            // Its errors end the guest.
            store.data_mut().fails = true;
            for func in grow {
                let error = on_many_threads(func.call_async(&mut store, 1)).unwrap_err();
                assert_eq!(error.root_cause().to_string(), "no answer");
                assert!(error.downcast_ref::<WasmBacktrace>().is_some_and(|trace| !trace.frames().is_empty()));
            }
        },
    );
}

#[test]
fn guests_yield_at_deadlines() {
    const GUEST: &str = r#"(module
        (func $a (export "run") (param i32) (result i32)
            (loop $l (result i32)
                (drop (call $b (local.get 0)))
                (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))
                (i32.const 7)))
        (func $b (param i32) (result i32) (i32.popcnt (local.get 0))))"#;
    each_engine(
        |config| _ = config.epoch_interruption(true),
        |engine| {
            let module = Module::new(engine, GUEST).unwrap();
            let mut store = Store::new(engine, 0);
            store.epoch_deadline_async_yield_and_update(1);
            store.set_epoch_deadline(1);
            let instance = block_on(Instance::new_async(&mut store, &module, &[])).unwrap();
            let run = instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap();
            for _ in 0..3 {
                engine.increment_epoch();
                let mut call = Box::pin(run.call_async(&mut store, 1000));
                assert!(poll(call.as_mut()).is_pending());
                engine.increment_epoch();
                assert!(matches!(poll(call.as_mut()), Poll::Ready(Ok(7))), "nothing suspends it without another tick");
            }
            // At every function and every round of a loop.
            store.epoch_deadline_async_yield_and_update(0);
            store.set_epoch_deadline(0);
            let mut call = Box::pin(run.call_async(&mut store, 50));
            (0..101).for_each(|_| assert!(poll(call.as_mut()).is_pending()));
            // A frame that continues in other code at a loop's header polls there once more.
            let again = (0..5).find_map(|_| match poll(call.as_mut()) {
                Poll::Ready(result) => Some(result.unwrap()),
                Poll::Pending => None,
            });
            assert_eq!(again, Some(7));
            drop(call);
            // A callback decides, and its future is waited for.
            let polls = Arc::new(AtomicUsize::new(0));
            let counted = polls.clone();
            store.epoch_deadline_callback(move |mut store| {
                *store.data_mut() += 1;
                match *store.data() {
                    1 => Ok(UpdateDeadline::Continue(0)),
                    2 => Ok(UpdateDeadline::Yield(0)),
                    3 => {
                        let (mut pause, counted) = (Pause(3), counted.clone());
                        let future = std::future::poll_fn(move |cx| {
                            counted.fetch_add(1, Ordering::Relaxed);
                            Pin::new(&mut pause).poll(cx)
                        });
                        Ok(UpdateDeadline::YieldCustom(0, Box::pin(future)))
                    }
                    4 => Ok(UpdateDeadline::YieldCustom(0, Box::pin(async { std::panic::panic_any(3u8) }))),
                    _ => Ok(UpdateDeadline::Interrupt),
                }
            });
            store.set_epoch_deadline(0);
            let panic = catch_unwind(AssertUnwindSafe(|| on_many_threads(run.call_async(&mut store, 1000)))).unwrap_err();
            assert_eq!((*store.data(), polls.load(Ordering::Relaxed), panic.downcast_ref()), (4, 4, Some(&3u8)));
            let error = on_many_threads(run.call_async(&mut store, 1000)).unwrap_err();
            assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::Interrupt));
            // While it yields, it can be dropped.
            *store.data_mut() = 1;
            let mut call = Box::pin(run.call_async(&mut store, 1000));
            assert!(poll(call.as_mut()).is_pending());
            drop(call);
        },
    );
}

#[test]
fn guests_yield_after_fuel_and_consume_the_same() {
    const GUEST: &str = r#"(module
        (memory 1)
        (func $a (export "run") (param i32)
            (loop $l
                (call $b (local.get 0))
                (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
        (func $b (param i32)
            (if (i32.eq (i32.and (local.get 0) (i32.const 63)) (i32.const 7))
                (then (memory.fill (i32.const 0) (i32.const 0) (i32.const 6400))))))"#;
    let mut all = Vec::new();
    for epochs in [false, true] {
        each_engine(
            |config| _ = config.consume_fuel(true).epoch_interruption(epochs),
            |engine| {
                let module = Module::new(engine, GUEST).unwrap();
                let consumed = |interval: Option<u64>, fuel: u64| {
                    let mut store = Store::new(engine, ());
                    store.set_epoch_deadline(1 << 60);
                    store.set_fuel(fuel).unwrap();
                    store.fuel_async_yield_interval(interval).unwrap();
                    let instance = block_on(Instance::new_async(&mut store, &module, &[])).unwrap();
                    let run = instance.get_typed_func::<i32, ()>(&mut store, "run").unwrap();
                    let mut call = Box::pin(run.call_async(&mut store, 500));
                    let mut yields = 0u64;
                    let result = loop {
                        match poll(call.as_mut()) {
                            Poll::Pending => yields += 1,
                            Poll::Ready(result) => break result,
                        }
                    };
                    drop(call);
                    (result.is_ok(), fuel - store.get_fuel().unwrap(), yields)
                };
                let (_, total, _) = consumed(None, 1 << 40);
                for interval in [1, 100, 1000, total / 2, total, total + 1] {
                    let (finished, fuel, yields) = consumed(Some(interval), 1 << 40);
                    assert!(finished && fuel == total, "{fuel} of {total}");
                    // A segment, or a fill, may cost more than an interval.
                    assert!(
                        yields <= total / interval && (interval < 500 || yields + 1 >= total / interval),
                        "{yields} of {interval}"
                    );
                    all.push((interval, yields));
                }
                // It runs out at the same place.
                for fuel in [total / 3, total - 1, total] {
                    assert_eq!(consumed(Some(50), fuel).0, fuel == total);
                    assert_eq!(consumed(Some(50), fuel).1, consumed(None, fuel).1);
                }
            },
        );
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 6, "the number of yields is the same in every tier: {all:?}");
    let mut store = Store::new(&common::default_engine(), ());
    assert!(store.fuel_async_yield_interval(Some(1)).is_err(), "the engine consumes no fuel");
    let mut config = Config::new();
    let mut store = Store::new(&engine(config.consume_fuel(true).async_support(false)).unwrap(), ());
    let error = store.fuel_async_yield_interval(Some(1)).unwrap_err();
    assert!(error.to_string().contains("async_support"), "{error}");
    store.fuel_async_yield_interval(None).unwrap();
}

#[test]
fn references_survive_collections_while_guests_are_suspended() {
    const GUEST: &str = r#"(module
        (import "host" "make" (func $make (param i32) (result externref)))
        (import "host" "wait" (func $wait (param externref)))
        (import "host" "sum" (func $sum (param externref externref) (result i32)))
        (func $a (export "run") (param i32) (result i32) (local externref)
            (local.set 1 (call $make (local.get 0)))
            (call $sum (call $b (i32.add (local.get 0) (i32.const 1))) (local.get 1)))
        (func $b (param i32) (result externref) (local externref)
            (local.set 1 (call $make (local.get 0)))
            (call $wait (local.get 1))
            (local.get 1)))"#;
    for stress in [false, true] {
        each_engine(
            |config| _ = config.gc_stress(stress),
            |engine| {
                let module = Module::new(engine, GUEST).unwrap();
                let mut linker = Linker::new(engine);
                let make = |mut caller: Caller<'_, u32>, n: i32| -> Result<Option<Rooted<ExternRef>>> {
                    Ok(Some(ExternRef::new(&mut caller, n)?))
                };
                linker.func_wrap("host", "make", make).unwrap();
                linker
                    .func_wrap_async("host", "wait", |mut caller: Caller<'_, u32>, (given,): (Option<Rooted<ExternRef>>,)| {
                        Box::new(async move {
                            let number = |caller: &Caller<'_, u32>| -> i32 {
                                *given.unwrap().data(caller).unwrap().unwrap().downcast_ref::<i32>().unwrap()
                            };
                            let before = number(&caller);
                            for _ in 0..3 {
                                for i in 0..100 {
                                    ExternRef::new(&mut caller, i).unwrap();
                                }
                                caller.gc_async(None).await.unwrap();
                                Pause(1).await;
                            }
                            assert_eq!(number(&caller), before);
                            if *caller.data() > 0 {
                                *caller.data_mut() -= 1;
                                let run = caller.instance().unwrap().get_typed_func::<i32, i32>(&mut caller, "run").unwrap();
                                assert_eq!(run.call_async(&mut caller, 1000).await.unwrap(), 2001);
                                caller.gc_async(None).await.unwrap();
                            }
                        })
                    })
                    .unwrap();
                linker
                    .func_wrap(
                        "host",
                        "sum",
                        |caller: Caller<'_, u32>, a: Option<Rooted<ExternRef>>, b: Option<Rooted<ExternRef>>| {
                            let number = |r: Option<Rooted<ExternRef>>| {
                                *r.unwrap().data(&caller).unwrap().unwrap().downcast_ref::<i32>().unwrap()
                            };
                            number(a) + number(b)
                        },
                    )
                    .unwrap();
                let mut store = Store::new(engine, 2);
                store.set_epoch_deadline(1 << 60);
                let instance = block_on(linker.instantiate_async(&mut store, &module)).unwrap();
                let run = instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap();
                assert_eq!(on_many_threads(run.call_async(&mut store, 20)).unwrap(), 41);
                block_on(store.gc_async(None)).unwrap();
            },
        );
    }
}

#[test]
fn settings_of_stacks_must_agree() {
    let mut config = Config::new();
    config.async_stack_size(100 << 10);
    assert!(engine(&config).unwrap_err().to_string().contains("async_stack_size"));
    config.max_wasm_stack(64 << 10);
    assert!(engine(&config).is_ok());
}

/// The futures are `Send` where those of wasmtime are. This is never run.
#[allow(dead_code, reason = "it is checked by the compiler")]
fn bounds(engine: &Engine, module: &Module, linker: &mut Linker<StoreLimits>, func: Func, memory: Memory, table: Table) {
    fn is_send<T: Send>(value: T) -> T {
        value
    }
    fn is_send_sync<T: Send + Sync>() {}
    is_send_sync::<Store<u8>>();
    is_send_sync::<weir::StoreContextMut<'_, u8>>();
    is_send_sync::<weir::StoreContext<'_, u8>>();
    is_send_sync::<Caller<'_, u8>>();
    is_send_sync::<weir::InstancePre<StoreLimits>>();
    let mut store = Store::new(engine, StoreLimits::default());
    drop(is_send(func.call_async(&mut store, &[], &mut [])));
    drop(is_send(func.typed::<(i32, f64), (i64, Option<Func>)>(&store).unwrap().call_async(&mut store, (1, 2.0))));
    drop(is_send(Instance::new_async(&mut store, module, &[])));
    drop(is_send(linker.instantiate_async(&mut store, module)));
    drop(is_send(linker.instantiate_pre(module).unwrap().instantiate_async(&mut store)));
    drop(is_send(linker.module_async(&mut store, "m", module)));
    drop(is_send(memory.grow_async(&mut store, 1)));
    drop(is_send(Memory::new_async(&mut store, MemoryType::new(1, None))));
    drop(is_send(table.grow_async(&mut store, 1, Ref::Func(None))));
    drop(is_send(store.gc_async(None)));
    // By value, in a task of its own.
    drop(is_send(Box::pin(async move {
        let mut store = store;
        func.call_async(store.as_context_mut(), &[], &mut []).await
    }) as Pin<Box<dyn Future<Output = Result<()>> + Send + 'static>>));
}
