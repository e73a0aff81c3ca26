//! Errors of asynchronous calls, and of stores that need them.

use super::report::Report;
use super::waiting::{self, Once};
use crate::wasmtime;
use std::pin::Pin;
use wasmtime::*;

const MODULE: &str = r#"(module $guest
    (import "host" "wait" (func $wait (param i32) (result i32)))
    (memory (export "memory") 1 3)
    (table (export "table") 1 3 funcref)
    (func $inner (param i32) (result i32) (i32.add (i32.const 1) (call $wait (local.get 0))))
    (func $outer (export "run") (param i32) (result i32) (call $inner (local.get 0)))
    (func $grow (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
    (func $spin (export "spin") (loop (br 0)))
    (func (export "nothing")))"#;

/// Polls a future until it has completed.
fn block_on<F: Future>(future: F) -> F::Output {
    waiting::block_on(future).0
}

/// A linker whose host function waits, and then does what its argument says: fails, traps, or calls the guest.
fn linker(engine: &Engine) -> Result<Linker<()>> {
    let mut linker = Linker::new(engine);
    linker.func_wrap_async("host", "wait", |mut caller: Caller<'_, ()>, (what,): (i32,)| {
        Box::new(async move {
            Once::default().await;
            let mut run = |name: &str| caller.get_export(name).and_then(Extern::into_func).expect("it is exported");
            let (nothing, run) = (run("nothing"), run("run"));
            match what {
                0 => Ok(7),
                1 => Err(format_err!("after waiting").context("in the host")),
                2 => Err(Trap::IntegerOverflow.into()),
                3 => nothing.call(&mut caller, &[], &mut []).map(|()| 0),
                4 => {
                    let mut results = [Val::I32(0)];
                    run.call_async(&mut caller, &[Val::I32(1)], &mut results).await.map(|()| 0)
                }
                _ => unreachable!("the cases are these"),
            }
        })
    })?;
    Ok(linker)
}

pub fn calls(engine: &Engine, report: &mut Report) -> Result<()> {
    let module = Module::new(engine, MODULE)?;
    let linker = linker(engine)?;
    let mut store = Store::new(engine, ());
    let instance = block_on(linker.instantiate_async(&mut store, &module))?;
    let run = instance.get_typed_func::<i32, i32>(&mut store, "run")?;
    for (what, name) in
        ["a result", "an error", "a trap", "a blocking call by the host", "an error of a guest in the guest"].iter().enumerate()
    {
        report.result(name, block_on(run.call_async(&mut store, what as i32)));
    }
    report.result("a blocking call", run.call(&mut store, 0));
    report.result("a blocking call with values", run.func().call(&mut store, &[Val::I32(0)], &mut [Val::I32(0)]));
    report.result("blocking instantiation", linker.instantiate(&mut store, &module).map(drop));
    report.result("blocking instantiation in a new store", linker.instantiate(Store::new(engine, ()), &module).map(drop));

    // No store needs asynchronous calls, and one is within such a call.
    let mut linker: Linker<()> = Linker::new(engine);
    linker.func_wrap("host", "wait", |mut caller: Caller<'_, ()>, _: i32| -> Result<i32> {
        let nothing = caller.get_export("nothing").and_then(Extern::into_func).expect("it is exported");
        nothing.call(&mut caller, &[], &mut [])?;
        Ok(1)
    })?;
    let mut store = Store::new(engine, ());
    let instance = linker.instantiate(&mut store, &module)?;
    let run = instance.get_typed_func::<i32, i32>(&mut store, "run")?;
    report.result("a blocking host function", run.call(&mut store, 0));
    report.result("a blocking host function, asynchronously", block_on(run.call_async(&mut store, 0)));
    Ok(())
}

/// A limiter that waits, and allows one page.
struct Limiter;

/// Whether something may grow, later.
type Answer<'a> = Pin<Box<dyn Future<Output = Result<bool>> + Send + 'a>>;

/// Implements the trait, as hosts do it with the crate `async-trait`.
impl ResourceLimiterAsync for Limiter {
    fn memory_growing<'life0, 'async_trait>(&'life0 mut self, _: usize, desired: usize, _: Option<usize>) -> Answer<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move {
            Once::default().await;
            if desired > 2 << 16 { bail!("{desired} bytes are too many") } else { Ok(desired <= 1 << 16) }
        })
    }

    fn table_growing<'life0, 'async_trait>(&'life0 mut self, _: usize, desired: usize, _: Option<usize>) -> Answer<'async_trait>
    where
        'life0: 'async_trait,
        Self: 'async_trait,
    {
        Box::pin(async move { Ok(desired <= 1) })
    }
}

pub fn limiters(engine: &Engine, report: &mut Report) -> Result<()> {
    let module = Module::new(
        engine,
        r#"(module $limited
        (memory (export "memory") 1 3)
        (table (export "table") 1 3 funcref)
        (func $grow (export "grow") (param i32) (result i32) (memory.grow (local.get 0))))"#,
    )?;
    let mut store = Store::new(engine, Limiter);
    store.limiter_async(|limiter| limiter);
    report.result("blocking instantiation", Instance::new(&mut store, &module, &[]).map(drop));
    let instance = block_on(Instance::new_async(&mut store, &module, &[]))?;
    let grow = instance.get_typed_func::<i32, i32>(&mut store, "grow")?;
    report.result("a blocking call", grow.call(&mut store, 1));
    for (pages, name) in ["nothing more", "refused", "an error"].iter().enumerate() {
        report.result(name, block_on(grow.call_async(&mut store, pages as i32)));
    }
    let memory = instance.get_memory(&mut store, "memory").expect("it is exported");
    let table = instance.get_table(&mut store, "table").expect("it is exported");
    report.result("a memory grows", memory.grow(&mut store, 1));
    report.result("a memory grows, asynchronously", block_on(memory.grow_async(&mut store, 1)));
    report.result("a table grows", table.grow(&mut store, 1, Ref::Func(None)));
    report.result("a table grows, asynchronously", block_on(table.grow_async(&mut store, 1, Ref::Func(None))));
    report.result("a memory", Memory::new(&mut store, MemoryType::new(1, None)).map(drop));
    report.result("a memory that is refused", block_on(Memory::new_async(&mut store, MemoryType::new(2, None))).map(drop));
    let ty = TableType::new(RefType::FUNCREF, 1, None);
    report.result("a table", Table::new(&mut store, ty.clone(), Ref::Func(None)).map(drop));
    let ty = TableType::new(RefType::FUNCREF, 2, None);
    report.result("a table that is refused", block_on(Table::new_async(&mut store, ty, Ref::Func(None))).map(drop));
    Ok(())
}

pub fn fuel(engine: &Engine, report: &mut Report) -> Result<()> {
    report.without_positions = true;
    let module = Module::new(engine, MODULE)?;
    let linker = linker(engine)?;
    let mut store = Store::new(engine, ());
    report.result("no interval", store.fuel_async_yield_interval(Some(0)));
    store.set_fuel(10_000)?;
    store.fuel_async_yield_interval(Some(1_000))?;
    report.result("blocking instantiation", linker.instantiate(&mut store, &module).map(drop));
    let instance = block_on(linker.instantiate_async(&mut store, &module))?;
    let nothing = instance.get_typed_func::<(), ()>(&mut store, "nothing")?;
    report.result("a blocking call", nothing.call(&mut store, ()));
    let spin = instance.get_typed_func::<(), ()>(&mut store, "spin")?;
    report.result("no fuel", block_on(spin.call_async(&mut store, ())));
    Ok(())
}

pub fn epochs(engine: &Engine, report: &mut Report) -> Result<()> {
    report.without_positions = true;
    let module = Module::new(engine, MODULE)?;
    let linker = linker(engine)?;
    let mut store = Store::new(engine, ());
    store.set_epoch_deadline(1);
    store.epoch_deadline_async_yield_and_update(1);
    report.result("blocking instantiation", linker.instantiate(&mut store, &module).map(drop));
    let instance = block_on(linker.instantiate_async(&mut store, &module))?;
    let spin = instance.get_typed_func::<(), ()>(&mut store, "spin")?;
    report.result("a blocking call", spin.call(&mut store, ()));
    let mut ends = 2;
    store.epoch_deadline_callback(move |_| {
        ends -= 1;
        if ends == 0 { Err(format_err!("the time is over")) } else { Ok(UpdateDeadline::Yield(0)) }
    });
    engine.increment_epoch();
    report.result("an error after a yield", block_on(spin.call_async(&mut store, ())));
    // A store that has no asynchronous part can be called, until its callback wants to yield.
    let module = Module::new(engine, r#"(module (func (export "spin") (loop br 0)))"#)?;
    let mut store = Store::new(engine, ());
    store.set_epoch_deadline(1);
    let spin = Instance::new(&mut store, &module, &[])?.get_typed_func::<(), ()>(&mut store, "spin")?;
    store.epoch_deadline_callback(|_| Ok(UpdateDeadline::Yield(1)));
    engine.increment_epoch();
    report.result("a yield in a blocking call", spin.call(&mut store, ()));
    store.epoch_deadline_callback(|_| Ok(UpdateDeadline::YieldCustom(1, Box::pin(std::future::ready(())))));
    engine.increment_epoch();
    report.result("another yield in a blocking call", spin.call(&mut store, ()));
    Ok(())
}
