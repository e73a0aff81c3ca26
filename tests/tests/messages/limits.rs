//! Limits of stores and engines.

use super::report::Report;
use crate::wasmtime;
use wasmtime::*;

const GROWING: &str = r#"(module $growing
    (memory (export "memory") 1 10)
    (table (export "table") 1 10 funcref)
    (func $memory (export "grow memory") (param i32) (result i32) (memory.grow (local.get 0)))
    (func $table (export "grow table") (param i32) (result i32) (table.grow (ref.null func) (local.get 0))))"#;

pub fn stores(engine: &Engine, report: &mut Report) -> Result<()> {
    let module = Module::new(engine, GROWING)?;
    for trapping in [false, true] {
        let limits = StoreLimitsBuilder::new().memory_size(2 << 16).table_elements(2).trap_on_grow_failure(trapping).build();
        let mut store = Store::new(engine, limits);
        store.limiter(|limits| limits);
        let instance = Instance::new(&mut store, &module, &[])?;
        let how = if trapping { "that traps" } else { "that returns -1" };
        for name in ["grow memory", "grow table"] {
            let grow = instance.get_typed_func::<i32, i32>(&mut store, name)?;
            for by in [1, 1, 100, -1] {
                report.result(&format!("{name} {how}, by {by}"), grow.call(&mut store, by));
            }
        }
        let memory = instance.get_memory(&mut store, "memory").expect("it is exported");
        report.result(&format!("memory, by the host, {how}"), memory.grow(&mut store, 1));
        let table = instance.get_table(&mut store, "table").expect("it is exported");
        report.result(&format!("table, by the host, {how}"), table.grow(&mut store, 1, Ref::Func(None)));
        report.result(&format!("a memory, {how}"), Memory::new(&mut store, MemoryType::new(3, None)).map(drop));
        let ty = TableType::new(RefType::FUNCREF, 3, None);
        report.result(&format!("a table, {how}"), Table::new(&mut store, ty, Ref::Func(None)).map(drop));
        let large = Module::new(engine, "(module $large (memory 3))")?;
        report.result(&format!("a module with a memory, {how}"), Instance::new(&mut store, &large, &[]).map(drop));
    }
    let limits: [(&str, StoreLimits); 3] = [
        ("instances", StoreLimitsBuilder::new().instances(1).build()),
        ("memories", StoreLimitsBuilder::new().memories(1).build()),
        ("tables", StoreLimitsBuilder::new().tables(1).build()),
    ];
    for (name, limits) in limits {
        let mut store = Store::new(engine, limits);
        store.limiter(|limits| limits);
        Instance::new(&mut store, &module, &[])?;
        report.result(&format!("too many {name}"), Instance::new(&mut store, &module, &[]).map(drop));
    }
    Ok(())
}

/// A limiter that refuses everything beyond the first pages and elements with errors of its own.
struct Refusing;

impl ResourceLimiter for Refusing {
    fn memory_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        ensure!(desired <= 2 << 16, "{current} bytes should be {desired} of {maximum:?}");
        Ok(true)
    }

    fn table_growing(&mut self, current: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        match desired {
            0..=2 => Ok(true),
            _ => {
                Err(Error::from(Trap::AllocationTooLarge)
                    .context(format!("{current} elements should be {desired} of {maximum:?}")))
            }
        }
    }

    fn memory_grow_failed(&mut self, error: Error) -> Result<()> {
        Err(error.context("the memory has failed"))
    }

    fn table_grow_failed(&mut self, error: Error) -> Result<()> {
        Err(error.context("the table has failed"))
    }
}

pub fn limiters(engine: &Engine, report: &mut Report) -> Result<()> {
    let module = Module::new(engine, GROWING)?;
    let mut store = Store::new(engine, Refusing);
    store.limiter(|limiter| limiter);
    let instance = Instance::new(&mut store, &module, &[])?;
    for name in ["grow memory", "grow table"] {
        let grow = instance.get_typed_func::<i32, i32>(&mut store, name)?;
        for by in [1, 2, 100, -1] {
            report.result(&format!("{name}, by {by}"), grow.call(&mut store, by));
        }
    }
    let memory = instance.get_memory(&mut store, "memory").expect("it is exported");
    report.result("a memory, by the host", memory.grow(&mut store, 1));
    report.result("a memory beyond its maximum, by the host", memory.grow(&mut store, 100));
    report.result("a memory", Memory::new(&mut store, MemoryType::new(3, None)).map(drop));
    let ty = TableType::new(RefType::FUNCREF, 3, None);
    report.result("a table", Table::new(&mut store, ty, Ref::Func(None)).map(drop));
    let large = Module::new(engine, "(module $large (memory 3))")?;
    report.result("a module with a memory", Instance::new(&mut store, &large, &[]).map(drop));
    Ok(())
}

pub fn pooling(config: &mut Config) {
    let mut pooling = PoolingAllocationConfig::new();
    pooling.total_core_instances(2).total_memories(2).total_tables(2);
    pooling.max_memories_per_module(1).max_tables_per_module(1).table_elements(10).max_memory_size(4 << 16);
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pooling));
}

pub fn engines(engine: &Engine, report: &mut Report) -> Result<()> {
    for (name, text) in [
        ("two memories", "(module (memory 1) (memory 1))"),
        ("two tables", "(module (table 1 funcref) (table 1 funcref))"),
        ("a large memory", "(module (memory 5))"),
        ("a large table", "(module (table 11 funcref))"),
    ] {
        report.result(name, Module::new(engine, text).map(drop));
    }
    let module = Module::new(engine, "(module)")?;
    let mut store = Store::new(engine, ());
    for _ in 0..2 {
        Instance::new(&mut store, &module, &[])?;
    }
    report.result("three instances", Instance::new(&mut store, &module, &[]).map(drop));
    drop(store);
    for (name, text) in [("a third memory", "(module (memory 1))"), ("a third table", "(module (table 1 funcref))")] {
        let (empty, module) = (Module::new(engine, "(module)")?, Module::new(engine, text)?);
        let mut stores: Vec<Store<()>> = (0..2).map(|_| Store::new(engine, ())).collect();
        Instance::new(&mut stores[0], &module, &[])?;
        Instance::new(&mut stores[1], &module, &[])?;
        // The host's own are not of the pool.
        report.result(name, Memory::new(&mut stores[0], MemoryType::new(9, None)).map(drop));
        report.result(&format!("{name}, instance"), Instance::new(&mut stores[0], &empty, &[]).map(drop));
    }
    let module = Module::new(engine, GROWING)?;
    let mut store = Store::new(engine, ());
    let instance = Instance::new(&mut store, &module, &[])?;
    for name in ["grow memory", "grow table"] {
        let grow = instance.get_typed_func::<i32, i32>(&mut store, name)?;
        report.result(&format!("{name} beyond the slot"), grow.call(&mut store, 9));
    }
    Ok(())
}
