//! Hosts with the settings, and the rarer calls, of known ones: a plug-in host with a kernel module, and contracts on large stacks.

use super::waiting::block_on;
use crate::wasmtime;
use std::any::Any;
use wasmtime::error::Context;
use wasmtime::*;

/// The settings of a plug-in host: epochs, fuel and core dumps are on, and some of wasmtime's defaults are set again.
pub fn plug_in_settings(config: &mut Config) {
    config.epoch_interruption(true).debug_info(true).coredump_on_trap(true).profiler(ProfilingStrategy::None);
    config.wasm_tail_call(true).wasm_function_references(true).wasm_gc(true).wasm_threads(true).consume_fuel(true);
}

/// The data of the `externref` that a plug-in gets as its context: a value of the host's own type.
type Inner = Box<dyn Any + Send + Sync>;

/// The state of a plug-in: the memory that it may still have, and how often it was too slow.
struct Plugin {
    left: usize,
    timeouts: u32,
}

impl ResourceLimiter for Plugin {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        let more = desired - current;
        if more > self.left {
            return Err(Error::msg("the plug-in has no memory left"));
        }
        self.left -= more;
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, desired: usize, maximum: Option<usize>) -> Result<bool> {
        Ok(maximum.is_none_or(|maximum| desired <= maximum))
    }
}

const KERNEL: &str = r#"(module $kernel
    (memory (export "memory") 1)
    (global $free (mut i64) (i64.const 8))
    (func (export "alloc") (param i64) (result i64)
        (global.get $free)
        (global.set $free (i64.add (global.get $free) (local.get 0))))
    (func (export "length") (param i64) (result i64) (i64.sub (global.get $free) (local.get 0))))"#;

const PLUG_IN: &str = r#"(module $plug-in
    (import "env" "alloc" (func $alloc (param i64) (result i64)))
    (import "env" "config" (func $config (param i64) (result i64)))
    (import "user" "seen" (func $seen (param externref) (result i32)))
    (func (export "run") (result i64) (call $config (i64.add (call $alloc (i64.const 16)) (call $alloc (i64.const 1)))))
    (func (export "context") (param externref) (result i32) (call $seen (local.get 0)))
    (func (export "spin") (loop br 0))
    (func (export "crash") unreachable)
    (memory (export "memory") 1)
    (func (export "grow") (result i32) (memory.grow (i32.const 1000))))"#;

/// A kernel in the store is linked under its name, functions of the user are dynamic, and every end of a call is told apart.
pub fn plug_in_with_a_kernel(engine: &Engine) -> Result<()> {
    let (kernel, module) = (Module::new(engine, KERNEL)?, Module::new(engine, PLUG_IN)?);
    let mut store = Store::new(engine, Plugin { left: 1 << 20, timeouts: 0 });
    store.set_epoch_deadline(1);
    store.set_fuel(1_000_000)?;
    store.limiter(|plugin| plugin);
    store.epoch_deadline_callback(|mut store| {
        store.data_mut().timeouts += 1;
        Err(Error::msg("timeout"))
    });
    let mut linker: Linker<Plugin> = Linker::new(engine);
    linker.allow_shadowing(true);
    let number = || [ValType::I64];
    linker.func_new("env", "config", FuncType::new(engine, number(), number()), |mut caller, params, results| {
        let length = caller.get_export("memory").and_then(Extern::into_memory).map_or(0, |memory| memory.data_size(&caller));
        results[0] = Val::I64(params[0].unwrap_i64() + length as i64);
        caller.data_mut().left -= 1;
        Ok(())
    })?;
    linker.module(&mut store, "env", &kernel)?;
    let seen = FuncType::new(engine, [ValType::EXTERNREF], [ValType::I32]);
    linker.func_new("user", "seen", seen, |caller, params, results| {
        let Val::ExternRef(Some(context)) = params[0] else { bail!("no context") };
        let context = context.data(&caller)?.and_then(|data| data.downcast_ref::<Inner>()).context("another type")?;
        results[0] = Val::I32(context.downcast_ref::<i32>().copied().unwrap_or(-1));
        Ok(())
    })?;
    let empty: Inner = Box::new(());
    let context = ExternRef::new(&mut store, empty)?;
    let instance = linker.instantiate_pre(&module)?.instantiate(&mut store)?;
    let call = |store: &mut Store<Plugin>, name: &str, args: &[Val]| -> Result<Option<Val>> {
        let function = instance.get_func(&mut *store, name).context("no function")?;
        let mut results = vec![Val::null_func_ref(); function.ty(&*store).results().len()];
        function.call(&mut *store, args, &mut results)?;
        Ok(results.pop())
    };
    assert_eq!(call(&mut store, "run", &[])?.unwrap().unwrap_i64(), 8 + 24 + (1 << 16));
    let length = linker.get(&mut store, "env", "length")?.into_func().context("no function")?;
    assert_eq!(length.typed::<i64, i64>(&store)?.call(&mut store, 8)?, 17);

    let seen = |store: &mut Store<Plugin>| call(store, "context", &[Val::ExternRef(Some(context))]);
    assert_eq!(seen(&mut store)?.unwrap().unwrap_i32(), -1);
    *context.data_mut(&mut store)?.unwrap().downcast_mut::<Inner>().unwrap() = Box::new(77i32);
    assert_eq!(seen(&mut store)?.unwrap().unwrap_i32(), 77);
    let error = call(&mut store, "context", &[Val::ExternRef(None)]).unwrap_err();
    assert_eq!((error.root_cause().to_string(), error.is::<WasmBacktrace>()), ("no context".into(), true));

    let error = call(&mut store, "crash", &[]).unwrap_err();
    assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::UnreachableCodeReached));
    let dump = error.downcast_ref::<WasmCoreDump>().context("no core dump")?;
    assert_eq!((dump.modules().len(), dump.frames().len()), (2, 1));
    assert!(dump.serialize(&mut store, "plug-in").starts_with(b"\0asm"));
    assert_eq!(call(&mut store, "grow", &[]).unwrap_err().root_cause().to_string(), "the plug-in has no memory left");

    engine.increment_epoch();
    let error = call(&mut store, "spin", &[]).unwrap_err();
    assert_eq!((error.root_cause().to_string(), store.data().timeouts), ("timeout".into(), 1));
    store.set_epoch_deadline(100);
    store.set_fuel(1000)?;
    let error = call(&mut store, "spin", &[]).unwrap_err();
    assert_eq!((error.downcast_ref::<Trap>(), store.get_fuel()?), (Some(&Trap::OutOfFuel), 0));
    Ok(())
}

/// Deep recursion on stacks of its own, with reservations that are small because there are many contracts.
pub fn contract_settings(config: &mut Config) {
    config.async_stack_size(9 << 20).max_wasm_stack(8 << 20).consume_fuel(true).native_unwind_info(false);
    config.memory_reservation(64 << 20).memory_reservation_for_growth(0).memory_guard_size(64 << 10);
}

const CONTRACT: &str = r#"(module
    (import "delegate" "get" (func $get (param i64) (result i64)))
    (memory (export "memory") 1)
    (func (export "validate") (param i64 i64) (result i64) (i64.add (call $get (local.get 0)) (local.get 1)))
    (func (export "spin") (loop br 0))
    (func $deep (export "deep") (param i32) (result i32)
        (if (result i32) (local.get 0)
            (then (i32.add (i32.const 1) (call $deep (i32.sub (local.get 0) (i32.const 1)))))
            (else (i32.const 0)))))"#;

/// A contract's limits.
struct Limits(usize);

impl ResourceLimiter for Limits {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        Ok(desired <= self.0)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> Result<bool> {
        Ok(desired <= 10_000)
    }
}

/// Contracts that wait, grow, recurse, run out of fuel on another thread, and go on.
pub fn contracts_on_large_stacks(engine: &Engine) -> Result<()> {
    let module = Module::new(engine, CONTRACT)?;
    let mut linker: Linker<Limits> = Linker::new(engine);
    linker.func_wrap_async("delegate", "get", |_, (key,): (i64,)| Box::new(async move { key * 2 }))?;
    let mut store = Store::new(engine, Limits(256 << 16));
    store.limiter(|limits| limits);
    store.set_fuel(10_000_000)?;
    let instance = block_on(linker.instantiate_async(&mut store, &module)).0?;
    let validate = instance.get_typed_func::<(i64, i64), i64>(&mut store, "validate")?;
    assert_eq!(block_on(validate.call_async(&mut store, (20, 2))).0?, 42);
    let memory = instance.get_memory(&mut store, "memory").context("no memory")?;
    assert_eq!(memory.grow(&mut store, 100)?, 1);
    assert!(memory.grow(&mut store, 1000).is_err());

    let spin = instance.get_typed_func::<(), ()>(&mut store, "spin")?;
    let elsewhere = std::thread::spawn(move || (block_on(spin.call_async(&mut store, ())).0, store));
    let (ended, mut store) = elsewhere.join().expect("it does not panic");
    assert_eq!((ended.unwrap_err().downcast_ref::<Trap>(), store.get_fuel()?), (Some(&Trap::OutOfFuel), 0));
    store.set_fuel(1_000_000_000)?;
    let deep = instance.get_typed_func::<i32, i32>(&mut store, "deep")?;
    assert_eq!(block_on(deep.call_async(&mut store, 500)).0?, 500);
    let error = block_on(deep.call_async(&mut store, 10_000_000)).0.unwrap_err();
    assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::StackOverflow));
    assert_eq!(block_on(validate.call_async(&mut store, (1, 1))).0?, 3);
    Ok(())
}

/// The settings of an engine of rules: code that is small, memories that stay, and scans that can be stopped.
pub fn rule_settings(config: &mut Config) {
    config.cranelift_opt_level(OptLevel::SpeedAndSize).epoch_interruption(true);
    config.memory_reservation(16 << 20).memory_reservation_for_growth(0).memory_may_move(false);
}
