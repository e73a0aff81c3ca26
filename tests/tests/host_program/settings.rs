//! The parts of the host program that concern settings, errors of anyhow, and raw values.

use super::instance;
use super::waiting::{Once, block_on, poll};
use crate::wasmtime;
use wasmtime::*;

pub fn errors_of_anyhow(engine: &Engine) -> Result<()> {
    use wasmtime::anyhow;
    fn trapped(engine: &Engine) -> anyhow::Result<()> {
        let (mut store, instance) = instance(engine, (), r#"(module (func (export "f") unreachable))"#)?;
        let f = instance.get_typed_func::<(), ()>(&mut store, "f")?;
        Ok(f.call(&mut store, ()).map_err(|error| error.context("calling f"))?)
    }
    let error: anyhow::Error = trapped(engine).unwrap_err();
    assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::UnreachableCodeReached));
    assert!(error.is::<WasmBacktrace>());
    assert!(error.chain().any(|link| link.to_string() == "calling f"));

    #[derive(Debug, PartialEq)]
    struct Custom;
    impl std::fmt::Display for Custom {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("custom")
        }
    }
    impl std::error::Error for Custom {}
    let host = |fails: bool| -> anyhow::Result<i32> {
        anyhow::ensure!(!fails, anyhow::Error::new(Custom).context("in the host"));
        Ok(1)
    };
    assert_eq!(host(false).to_wasmtime_result()?, 1);
    let error: Error = host(true).to_wasmtime_result().unwrap_err();
    // The links of a cause are shown only after context.
    assert_eq!(format!("{error:#}"), "in the host");
    assert_eq!(format!("{error:?}"), "in the host");
    assert_eq!(error.chain().map(|link| link.to_string()).collect::<Vec<_>>(), ["in the host", "custom"]);
    let within = host(true).to_wasmtime_result().unwrap_err().context("outside");
    assert_eq!(format!("{within:#}"), "outside: in the host: custom");
    assert_eq!(format!("{within:?}"), "outside\n\nCaused by:\n    0: in the host\n    1: custom\n");
    let one = Error::msg("one").context("two");
    assert_eq!(format!("{one:?}"), "two\n\nCaused by:\n    one\n");
    assert!(error.is::<anyhow::Error>() && error.is::<Custom>() && !error.is::<Trap>());
    assert_eq!(error.downcast::<Custom>().unwrap(), Custom);
    let boxed: Box<dyn std::error::Error + Send + Sync> = Box::new(Custom);
    assert_eq!(Error::from_boxed(boxed).to_string(), "custom");
    Ok(())
}

/// Each proposal that is off is refused.
pub fn proposals(_: &Engine) -> Result<()> {
    type Setting = fn(&mut Config, bool) -> &mut Config;
    let cases: &[(Setting, &str)] = &[
        (Config::wasm_tail_call, "(module (func $f (return_call $f)))"),
        (Config::wasm_reference_types, "(module (func (param externref)))"),
        (Config::wasm_function_references, "(module (type $t (func)) (func (param (ref $t))))"),
        (Config::wasm_wide_arithmetic, "(module (func i64.const 1 i64.const 2 i64.mul_wide_u drop drop))"),
        (Config::wasm_simd, "(module (func (result v128) (v128.const i64x2 0 0)))"),
        (Config::wasm_bulk_memory, "(module (memory 1) (func (memory.fill (i32.const 0) (i32.const 0) (i32.const 0))))"),
        (Config::wasm_multi_value, "(module (func (result i32 i32) i32.const 1 i32.const 2))"),
        (Config::wasm_multi_memory, "(module (memory 1) (memory 1))"),
        (Config::wasm_memory64, "(module (memory i64 1))"),
        (Config::wasm_extended_const, "(module (global i32 (i32.add (i32.const 1) (i32.const 2))))"),
        (Config::wasm_custom_page_sizes, "(module (memory 1 (pagesize 1)))"),
    ];
    for (set, wat) in cases {
        for enable in [true, false] {
            let mut config = Config::new();
            // It needs the proposal of vectors, and garbage collection that of typed function references.
            config.wasm_relaxed_simd(false).wasm_gc(false);
            set(&mut config, enable);
            let module = Module::new(&Engine::new(&config)?, wat);
            assert_eq!(module.is_ok(), enable, "{wat}: {:?}", module.err());
        }
    }
    let relaxed = "(module (func (param v128) (result v128) (i8x16.relaxed_swizzle (local.get 0) (local.get 0))))";
    for enable in [true, false] {
        assert_eq!(Module::new(&Engine::new(Config::new().wasm_relaxed_simd(enable))?, relaxed).is_ok(), enable);
    }
    assert!(Engine::new(Config::new().wasm_simd(false).wasm_relaxed_simd(true)).is_err());
    assert!(Engine::new(Config::new().max_wasm_stack(0)).is_err());
    Ok(())
}

/// Settings that change nothing that a program sees.
pub fn settings(config: &mut Config) {
    config
        .strategy(Strategy::Cranelift)
        .cranelift_opt_level(OptLevel::SpeedAndSize)
        .cranelift_nan_canonicalization(true)
        .profiler(ProfilingStrategy::None)
        .wasm_threads(false)
        .debug_info(false)
        .native_unwind_info(true)
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        .wasm_backtrace_max_frames(std::num::NonZeroUsize::new(5))
        .memory_reservation(16 << 20)
        .memory_reservation_for_growth(0)
        .memory_guard_size(64 << 10)
        .memory_init_cow(false)
        .memory_may_move(false)
        .guard_before_linear_memory(false)
        .table_lazy_init(true);
}

const GROWING: &str = r#"(module
    (memory $small (export "memory") 1)
    (memory $large 257)
    (memory $wide i64 1)
    (func (export "small") (param i32) (result i32) (memory.grow $small (local.get 0)))
    (func (export "large") (param i32) (result i32) (memory.grow $large (local.get 0)))
    (func (export "wide") (param i32) (result i32)
        (i32.wrap_i64 (memory.grow $wide (i64.extend_i32_s (local.get 0)))))
    (func (export "kept") (result i32)
        (i32.store (i32.const 65532) (i32.const 42))
        (drop (memory.grow $small (i32.const 1)))
        (i32.store (i32.const 131068) (i32.const 1))
        (i32.add (i32.load (i32.const 65532)) (i32.load (i32.const 131068))))
    (func (export "nan") (param f32) (result i32) (i32.reinterpret_f32 (f32.add (local.get 0) (local.get 0))))
    (func $deep (export "deep") (param i32) (result i32)
        (if (result i32) (local.get 0)
            (then (i32.add (i32.const 1) (call $deep (i32.sub (local.get 0) (i32.const 1)))))
            (else unreachable))))"#;

pub fn settings_have_effect(engine: &Engine) -> Result<()> {
    let (mut store, instance) = instance(engine, (), GROWING)?;
    let mut call = |name: &str, n: i32| instance.get_typed_func::<i32, i32>(&mut store, name)?.call(&mut store, n);
    assert_eq!((call("small", 255)?, call("small", 1)?), (1, -1), "as far as the reservation");
    assert_eq!((call("wide", 255)?, call("wide", 1)?), (1, -1));
    assert_eq!((call("large", 0)?, call("large", 1)?), (257, -1), "larger than the reservation, with nothing to grow");
    let error = call("deep", 10).unwrap_err();
    assert_eq!(error.downcast_ref::<WasmBacktrace>().map(|backtrace| backtrace.frames().len()), Some(5));
    let nan = instance.get_typed_func::<f32, i32>(&mut store, "nan")?.call(&mut store, f32::from_bits(0xffc0_1234))?;
    assert_eq!(nan, 0x7fc0_0000, "the canonical one");
    Ok(())
}

pub fn small_reservations(config: &mut Config) {
    config.memory_reservation(1 << 20).memory_reservation_for_growth(0).memory_guard_size(64 << 10);
}

pub fn memories_outgrow_reservations(engine: &Engine) -> Result<()> {
    let (mut store, instance) = instance(engine, (), GROWING)?;
    assert_eq!(instance.get_typed_func::<(), i32>(&mut store, "kept")?.call(&mut store, ())?, 43);
    let mut call = |name: &str, n: i32| instance.get_typed_func::<i32, i32>(&mut store, name)?.call(&mut store, n);
    assert_eq!((call("small", 500)?, call("small", 0)?), (2, 502));
    assert_eq!((call("large", 500)?, call("large", 0)?), (257, 757));
    assert_eq!((call("wide", 500)?, call("wide", 0)?), (1, 501));
    let small = instance.get_memory(&mut store, "memory").unwrap();
    assert_eq!(small.data(&store)[65532..65536], 42u32.to_le_bytes());
    assert_eq!((small.grow(&mut store, 10)?, small.data_size(&store)), (502, 512 << 16));
    Ok(())
}

pub fn pooling(config: &mut Config) {
    let mut limits = PoolingAllocationConfig::new();
    limits.total_core_instances(2).total_memories(1).max_memory_size(1 << 20).table_elements(10).max_tables_per_module(2);
    limits.total_stacks(2).total_gc_heaps(1).max_core_instance_size(4 << 10);
    config.allocation_strategy(limits);
}

pub fn limits_of_an_engine(engine: &Engine) -> Result<()> {
    for (refused, why) in [
        ("(module (memory 1) (memory 1))", "the number of memories"),
        ("(module (memory 17))", "the size of a memory"),
        ("(module (table 11 funcref))", "the size of a table"),
        ("(module (table 1 funcref) (table 1 funcref) (table 1 funcref))", "the number of tables"),
    ] {
        assert!(Module::new(engine, refused).is_err(), "{why}");
    }
    let globals = format!("(module {})", "(global i64 (i64.const 0))".repeat(1000));
    let error = Module::new(engine, globals).unwrap_err();
    assert!(format!("{error:#}").contains("which exceeds the configured maximum of 4096 bytes"), "{error:#}");
    let module = Module::new(
        engine,
        r#"(module (memory (export "memory") 1) (table (export "table") 1 funcref)
            (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
            (func (export "more") (param i32) (result i32) (table.grow (ref.null func) (local.get 0))))"#,
    )?;
    let mut store = Store::new(engine, ());
    let instance = Instance::new(&mut store, &module, &[])?;
    let mut grow =
        |name: &str, by: i32| -> Result<i32> { instance.get_typed_func::<i32, i32>(&mut store, name)?.call(&mut store, by) };
    assert_eq!((grow("grow", 15)?, grow("grow", 1)?), (1, -1));
    assert_eq!((grow("more", 9)?, grow("more", 1)?), (1, -1));
    let second = Instance::new(&mut store, &module, &[]).unwrap_err();
    assert!(second.is::<PoolConcurrencyLimitError>(), "{second:?}");
    let empty = Module::new(engine, "(module)")?;
    Instance::new(&mut store, &empty, &[])?;
    assert!(Instance::new(&mut store, &empty, &[]).unwrap_err().is::<PoolConcurrencyLimitError>());
    drop(store);
    Instance::new(&mut Store::new(engine, ()), &module, &[])?;
    stacks_of_an_engine(engine)
}

/// Of three guests that wait two have a stack, until one has ended with its store.
fn stacks_of_an_engine(engine: &Engine) -> Result<()> {
    let waits = |guest: &mut Store<()>| {
        Func::wrap_async(guest, |_, (polls,): (i32,)| {
            Box::new(async move {
                for _ in 0..polls {
                    Once::default().await;
                }
            })
        })
    };
    let [mut first, mut second, mut third] = [(); 3].map(|()| Store::new(engine, ()));
    let a = waits(&mut first).typed::<i32, ()>(&first)?;
    let b = waits(&mut second).typed::<i32, ()>(&second)?;
    let c = waits(&mut third).typed::<i32, ()>(&third)?;
    let mut waiting = Box::pin(a.call_async(&mut first, 1));
    let mut dropped = Box::pin(b.call_async(&mut second, 1));
    assert!(poll(waiting.as_mut()).is_pending() && poll(dropped.as_mut()).is_pending());
    let error = block_on(c.call_async(&mut third, 0)).0.unwrap_err();
    assert!(error.is::<PoolConcurrencyLimitError>(), "{error:?}");
    assert_eq!(error.to_string(), "maximum concurrent limit of 2 for fibers reached");
    drop(dropped);
    // A store of wasmtime keeps its stack.
    drop(second);
    block_on(c.call_async(&mut third, 2)).0?;
    block_on(waiting).0
}

pub fn raw_values(engine: &Engine) -> Result<()> {
    let ty = FuncType::new(engine, [ValType::I32, ValType::F64, ValType::V128, ValType::FUNCREF], [ValType::V128, ValType::I64]);
    let mut linker: Linker<u32> = Linker::new(engine);
    // SAFETY: arguments are read, and results written, as the type says.
    unsafe {
        linker.func_new_unchecked("host", "f", ty, |mut caller, values| {
            let (a, b) = (values[0].assume_init().get_i32(), f64::from_bits(values[1].assume_init().get_f64()));
            let (c, d) = (values[2].assume_init().get_v128(), values[3].assume_init().get_funcref());
            let called = Func::from_raw(&mut caller, d);
            *caller.data_mut() += u32::from(called.is_none());
            values[0].write(ValRaw::v128(c + 1));
            values[1].write(ValRaw::i64(i64::from(a) + b as i64));
            Ok(())
        })?;
    }
    let module = Module::new(
        engine,
        r#"(module (import "host" "f" (func $f (param i32 f64 v128 funcref) (result v128 i64)))
            (func (export "run") (param v128 i32) (result i64 v128) (local i64)
                (call $f (local.get 1) (f64.const 7.5) (local.get 0) (ref.null func))
                local.set 2 local.set 0 local.get 2 local.get 0))"#,
    )?;
    let mut store = Store::new(engine, 0);
    let run = linker.instantiate(&mut store, &module)?.get_func(&mut store, "run").unwrap();
    let mut values = [ValRaw::v128(u128::MAX >> 1), ValRaw::i32(-9)];
    // SAFETY: the arguments have the types of the parameters.
    unsafe { run.call_unchecked(&mut store, &raw mut values)? };
    assert_eq!((values[0].get_i64(), values[1].get_v128()), (-2, 1 << 127));
    assert_eq!(*store.data(), 1);
    let raw = run.to_raw(&mut store);
    // SAFETY: it is a function of this store.
    let same = unsafe { Func::from_raw(&mut store, raw) }.unwrap();
    assert_eq!(same.ty(&store).params().len(), 2);
    let many = Func::wrap(
        &mut store,
        |a: i32,
         _: i32,
         _: i32,
         _: i32,
         _: i32,
         _: i32,
         _: i32,
         _: i32,
         _: i32,
         _: i32,
         _: i32,
         _: i32,
         _: i32,
         _: i32,
         _: i32,
         _: i32,
         q: i32| a + q,
    );
    assert_eq!(many.ty(&store).params().len(), 17);
    Ok(())
}
