//! A process forks while engines are in use. In the child, what uses an engine of the parent returns one error and waits for no lock, and a
//! new engine works. The parent notices nothing.

#![cfg(target_os = "linux")]

mod common;
#[cfg(feature = "async")]
#[path = "common/executor.rs"]
mod executor;

use common::is_built;
use common::process::{forked, is_alone};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use weir::{
    Caller, Config, Engine, Error, ForkedEngine, Func, Global, GlobalType, Instance, InstancePre, Linker, Memory, MemoryType,
    Module, Mutability, Ref, RefType, Result, Store, Table, TableType, Tier, Trap, Val, ValType,
};

const PROGRAM: &str = r#"(module
    (import "host" "id" (func $id (param i32) (result i32)))
    (memory (export "memory") 1 4)
    (table (export "table") 1 4 funcref)
    (func $fib (export "fib") (param i32) (result i32)
        (if (result i32) (i32.lt_s (local.get 0) (i32.const 2))
            (then (local.get 0))
            (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1)))
                           (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
    (func (export "byte") (param i32) (result i32) (i32.load8_u (local.get 0)))
    (func (export "id") (param i32) (result i32) (call $id (local.get 0))))"#;

/// A linker with the program's host function.
fn linker<T: 'static>(engine: &Engine) -> Linker<T> {
    let mut linker = Linker::new(engine);
    linker.func_wrap("host", "id", |x: i32| x).unwrap();
    linker
}

/// Uses everything of an engine that works, with native code if there is some.
fn works(engine: &Engine) {
    let module = Module::new(engine, PROGRAM).unwrap();
    let mut store = Store::new(engine, ());
    let instance = linker(engine).instantiate(&mut store, &module).unwrap();
    for _ in 0..3 {
        let fib = instance.get_typed_func::<i32, i32>(&mut store, "fib").unwrap();
        assert_eq!(fib.call(&mut store, 17).unwrap(), 1597);
        let id = instance.get_typed_func::<i32, i32>(&mut store, "id").unwrap();
        assert_eq!(id.call(&mut store, 5).unwrap(), 5);
        let byte = instance.get_typed_func::<i32, i32>(&mut store, "byte").unwrap();
        assert_eq!(byte.call(&mut store, -1).unwrap_err().downcast_ref(), Some(&Trap::MemoryOutOfBounds));
    }
    assert_eq!(module.stats().functions.total, 3);
}

/// Checks that an operation on an engine of the parent is refused.
#[track_caller]
fn is_refused<T>(result: Result<T>) {
    let error = result.map(drop).expect_err("the engine is the parent's");
    assert_eq!(error.downcast_ref(), Some(&ForkedEngine), "{error:?}");
}

/// An engine of the parent, and a store of it with an instance.
struct Parent {
    engine: Engine,
    module: Module,
    linker: Linker<Data>,
    pre: InstancePre<Data>,
    store: Store<Data>,
    instance: Instance,
    /// With a backtrace.
    trap: Error,
}

/// Counts in the child that the store's data is dropped there.
struct Data;

static DROPPED: AtomicBool = AtomicBool::new(false);

impl Drop for Data {
    fn drop(&mut self) {
        DROPPED.store(true, Ordering::Relaxed);
    }
}

impl Parent {
    fn new(engine: &Engine) -> Parent {
        let module = Module::new(engine, PROGRAM).unwrap();
        let linker = linker(engine);
        let mut store = Store::new(engine, Data);
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let pre = linker.instantiate_pre(&module).unwrap();
        let byte = instance.get_typed_func::<i32, i32>(&mut store, "byte").unwrap();
        let trap = byte.call(&mut store, -1).unwrap_err();
        Parent { engine: engine.clone(), module, linker, pre, store, instance, trap }
    }

    /// Calls the guest, as only the parent can.
    fn call(&mut self) {
        let fib = self.instance.get_typed_func::<i32, i32>(&mut self.store, "fib").unwrap();
        assert_eq!(fib.call(&mut self.store, 15).unwrap(), 610);
    }

    /// Checks in the child that nothing of it can be used, and drops it.
    fn refuses(self) {
        let Parent { engine, module, mut linker, pre, mut store, instance, trap } = self;
        is_refused(Module::new(&engine, PROGRAM));
        is_refused(Module::validate(&engine, b"\0asm\x01\0\0\0"));
        is_refused(engine.precompile_module(&wat::parse_str(PROGRAM).unwrap()));
        is_refused(module.serialize());
        is_refused(module.saved_profile());
        #[cfg(feature = "snapshot")]
        is_refused(weir::Snapshot::new().take(&store, instance));
        assert!(format!("{trap:?}").contains("out of bounds memory access"), "{trap:?}");
        is_refused(module.use_profile(""));
        is_refused(Store::try_new(&engine, ()));
        is_refused(linker.instantiate(&mut store, &module));
        is_refused(linker.instantiate_pre(&module));
        is_refused(pre.instantiate(&mut store));
        is_refused(Instance::new(&mut store, &module, &[]));
        is_refused(linker.get(&mut store, "host", "id"));
        is_refused(linker.get_default(&mut store, ""));
        is_refused(linker.define_unknown_imports_as_traps(&module));
        is_refused(linker.define_unknown_imports_as_default_values(&mut store, &module));
        module.update_cache();
        assert!(format!("{engine:?}").contains("Engine"));

        let fib = instance.get_func(&mut store, "fib").unwrap();
        is_refused(fib.call(&mut store, &[Val::I32(5)], &mut [Val::I32(0)]));
        is_refused(instance.get_typed_func::<i32, i32>(&mut store, "fib"));
        let memory = instance.get_memory(&mut store, "memory").unwrap();
        is_refused(memory.grow(&mut store, 1));
        is_refused(Memory::new(&mut store, MemoryType::new(1, None)));
        let table = instance.get_table(&mut store, "table").unwrap();
        is_refused(table.grow(&mut store, 1, Ref::Func(None)));
        is_refused(Table::new(&mut store, TableType::new(RefType::FUNCREF, 1, None), Ref::Func(None)));
        is_refused(Global::new(&mut store, GlobalType::new(ValType::I32, Mutability::Const), Val::I32(1)));
        is_refused(store.gc(None));
        // The bytes of a memory are the child's own.
        memory.write(&mut store, 0, b"child").unwrap();
        assert_eq!((engine.stats().functions.total, module.stats().functions.total), (0, 0));
        engine.increment_epoch();

        DROPPED.store(false, Ordering::Relaxed);
        drop((store, pre, linker, module));
        assert!(DROPPED.load(Ordering::Relaxed), "the store's data is the child's own");
        drop(engine);
    }
}

/// Engines in which the tests run.
fn engines() -> impl Iterator<Item = Engine> {
    let tiers = [Tier::Auto, Tier::Interpreter, Tier::Ssa, Tier::Native, Tier::Baseline, Tier::Cranelift];
    tiers.into_iter().filter(|&tier| is_built(tier)).map(|tier| common::engine(Config::new().tier(tier)).unwrap())
}

/// Other threads load, compile and drop modules of the same engine, so that some lock is held at nearly all times.
#[test]
fn a_child_waits_for_no_lock_and_its_own_engines_work() {
    if !is_alone("a_child_waits_for_no_lock_and_its_own_engines_work") {
        return;
    }
    for engine in engines() {
        let (mut parent, ended) = (Parent::new(&engine), AtomicBool::new(false));
        parent.call();
        std::thread::scope(|scope| {
            let _end = End(&ended);
            for _ in 0..3 {
                scope.spawn(|| {
                    while !ended.load(Ordering::Relaxed) {
                        works_beside(&engine);
                    }
                });
            }
            for _ in 0..12 {
                let mut inherited = Some(Parent::new(&engine));
                inherited.as_mut().unwrap().call();
                forked(|| {
                    inherited.take().unwrap().refuses();
                    let config = engine.config().clone();
                    let own = common::engine(&config).unwrap();
                    works(&own);
                    let grandchild = Parent::new(&own);
                    forked(|| grandchild.refuses());
                    works(&own);
                });
                parent.call();
                inherited.unwrap().call();
            }
        });
        let memory = parent.instance.get_memory(&mut parent.store, "memory").unwrap();
        assert_eq!(memory.data(&parent.store)[..5], [0; 5], "the parent's memory is not the child's");
    }
}

/// Sets a flag when it is dropped, by a failure, too.
struct End<'f>(&'f AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Loads, runs and drops a module; makes stubs of a host function, and another engine.
fn works_beside(engine: &Engine) {
    let mut parent = Parent::new(engine);
    parent.call();
    let func = Func::wrap(&mut parent.store, |x: i64, y: f32| (y, x));
    assert_eq!(func.ty(&parent.store).params().len(), 2);
    drop(common::engine(engine.config()).unwrap());
}

/// A child that is forked in a host function cannot call the guest, and does not return to it.
#[test]
fn a_host_function_may_fork() {
    if !is_alone("a_host_function_may_fork") {
        return;
    }
    for engine in engines() {
        let module = Module::new(&engine, PROGRAM).unwrap();
        let mut linker = Linker::new(&engine);
        let fork = |mut caller: Caller<'_, ()>, x: i32| {
            let fib = caller.get_export("fib").and_then(|item| item.into_func()).unwrap();
            forked(|| {
                is_refused(fib.call(&mut caller, &[Val::I32(5)], &mut [Val::I32(0)]));
                works(&common::engine(caller.engine().config()).unwrap());
            });
            let mut results = [Val::I32(0)];
            fib.call(&mut caller, &[Val::I32(x)], &mut results).unwrap();
            results[0].unwrap_i32()
        };
        linker.func_wrap("host", "id", fork).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let id = instance.get_typed_func::<i32, i32>(&mut store, "id").unwrap();
        assert_eq!(id.call(&mut store, 10).unwrap(), 55);
    }
}

/// What cannot return an error panics, and waits for no lock either.
#[test]
fn what_returns_no_error_panics() {
    if !is_alone("what_returns_no_error_panics") {
        return;
    }
    let engine = common::default_engine();
    let Parent { mut store, instance, .. } = Parent::new(&engine);
    let fib = instance.get_func(&mut store, "fib").unwrap();
    forked(|| {
        let panics = |what: &mut dyn FnMut()| {
            let payload = catch_unwind(AssertUnwindSafe(what)).expect_err("the engine is the parent's");
            let text = payload.downcast_ref::<String>().expect("a message with an error");
            assert!(text.contains("made before this process was forked"), "{text}");
        };
        std::panic::set_hook(Box::new(|_| ()));
        panics(&mut || drop(Store::new(&engine, ())));
        panics(&mut || _ = Func::wrap(&mut store, || ()));
        panics(&mut || _ = fib.ty(&store));
    });
}

/// Guests that are suspended when the process forks stay so in the child, and end in the parent.
#[cfg(feature = "async")]
#[test]
fn suspended_guests_end_in_the_parent_only() {
    if !is_alone("suspended_guests_end_in_the_parent_only") {
        return;
    }
    use executor::{Pause, block_on, poll};
    use weir::{ResumableCall, TypedResumableCall};

    for engine in engines() {
        let module = Module::new(&engine, PROGRAM).unwrap();
        let mut linker = Linker::new(&engine);
        linker
            .func_wrap_async("host", "id", |_: Caller<'_, ()>, (x,): (i32,)| {
                Box::new(async move {
                    Pause(1).await;
                    x
                })
            })
            .unwrap();
        let mut store = Store::new(&engine, ());
        let instance = block_on(linker.instantiate_async(&mut store, &module)).unwrap();
        let id = instance.get_typed_func::<i32, i32>(&mut store, "id").unwrap();
        for drops in [true, false] {
            let mut call = Some(Box::pin(id.call_async(&mut store, 7)));
            assert!(poll(call.as_mut().unwrap().as_mut()).is_pending());
            forked(|| {
                let mut call = call.take().unwrap();
                if !drops {
                    is_refused(block_on(call.as_mut()));
                }
            });
            assert_eq!(block_on(call.unwrap()).unwrap(), 7);
        }
        forked(|| is_refused(block_on(id.call_async(&mut store, 7))));

        let mut linker = Linker::new(&engine);
        linker.func_wrap("host", "id", |_: i32| -> Result<i32> { Err(Error::msg("asked")) }).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = linker.instantiate(&mut store, &module).unwrap();
        let id = instance.get_typed_func::<i32, i32>(&mut store, "id").unwrap();
        for drops in [true, false] {
            let TypedResumableCall::HostTrap(call) = id.call_resumable(&mut store, 7).unwrap() else {
                panic!("the host function fails");
            };
            let mut call = Some(call);
            forked(|| {
                let call = call.take().unwrap();
                if !drops {
                    is_refused(call.resume(&mut store, &[Val::I32(8)]));
                }
                is_refused(id.call_resumable(&mut store, 7));
            });
            let ended = call.unwrap().resume(&mut store, &[Val::I32(8)]).unwrap();
            assert!(matches!(ended, TypedResumableCall::Finished(8)));
        }
        let untyped = instance.get_func(&mut store, "fib").unwrap();
        let ended = untyped.call_resumable(&mut store, &[Val::I32(9)], &mut [Val::I32(0)]).unwrap();
        assert!(matches!(ended, ResumableCall::Finished));
    }
}
