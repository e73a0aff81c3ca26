//! Throws through frames whose code is retired, through many frames of two instances and of the host, past a deadline, and what no
//! handler catches.

use std::sync::{Arc, Mutex};
use weir::{
    AsContextMut, Caller, Config, Engine, Error, ExnRef, ExnRefPre, ExnType, FuncType, Linker, Module, Result, Rooted, Store,
    Tag, TagType, Tier, TierEventKind, Trap, TypedFunc, UpdateDeadline, Val, ValType,
};
use weir_tests::engines::{engine, engine_with_events};
use weir_wasi::{I32Exit, WasiCtx};

const TIERS: [Tier; 5] = [Tier::Interpreter, Tier::Native, Tier::Cranelift, Tier::Baseline, Tier::Auto];

/// Functions that take up code memory: `fill` calls one of them.
const FUNCTIONS: i32 = 120;

fn fillers() -> String {
    let function = |i: i32| {
        let work: String =
            (1..20).map(|k| format!("(local.set 0 (i32.xor (i32.mul (local.get 0) (i32.const {i})) (i32.const {k})))")).collect();
        format!("(func $f{i} (param i32) (result i32) {work} (local.get 0))")
    };
    let functions: String = (0..FUNCTIONS).map(function).collect();
    let names: String = (0..FUNCTIONS).map(|i| format!(" $f{i}")).collect();
    format!(
        "{functions} (type $f (func (param i32) (result i32))) (table funcref (elem{names}))
        (func (export \"fill\") (param i32) (result i32) (call_indirect (type $f) (local.get 0) (local.get 0)))"
    )
}

fn tag(store: &mut impl AsContextMut, engine: &Engine) -> Tag {
    Tag::new(store, &TagType::new(FuncType::new(engine, [ValType::I32], []))).unwrap()
}

fn exception(mut store: impl AsContextMut, tag: &Tag, value: i32) -> Rooted<ExnRef> {
    let ty = ExnType::from_tag_type(&tag.ty(&store)).unwrap();
    let pre = ExnRefPre::new(&mut store, ty);
    ExnRef::new(&mut store, &pre, tag, &[Val::I32(value)]).unwrap()
}

/// The host calls so many functions that the code of the suspended frames is retired, and throws through `middle` to `outer`.
#[test]
fn an_exception_lands_in_retired_code() {
    for tier in [Tier::Native, Tier::Baseline] {
        let retired = Arc::new(Mutex::new(Vec::new()));
        let log = retired.clone();
        let mut config = Config::new();
        config.passes_off(&["inline"]);
        config.tier(tier).tier_up_threshold(Some(3)).max_code_size(10 << 10);
        let engine = engine_with_events(&config, move |event| {
            if let TierEventKind::Retired { .. } = event.kind {
                log.lock().unwrap().push(event.name());
            }
        })
        .unwrap();
        let mut store = Store::new(&engine, 0u64);
        let mut linker = Linker::new(&engine);
        let tag = tag(&mut store, &engine);
        linker.define(&store, "host", "t", tag).unwrap();
        linker
            .func_wrap("host", "call", move |mut caller: Caller<'_, u64>, n: i32| -> Result<i32> {
                let export = |caller: &mut Caller<'_, u64>, name: &str| -> Result<TypedFunc<i32, i32>> {
                    caller.get_export(name).unwrap().into_func().unwrap().typed(&*caller)
                };
                let fill = export(&mut caller, "fill")?;
                for i in 0..8 * FUNCTIONS {
                    fill.call(&mut caller, i % FUNCTIONS)?;
                }
                if n > 0 {
                    let outer = export(&mut caller, "outer")?;
                    assert_eq!(outer.call(&mut caller, n - 1)?, 100 + 4 * (n - 1));
                }
                let freed = caller.engine().stats().freed_bytes;
                assert!(freed <= *caller.data(), "what was retired since the store is in the guest stays");
                let exception = exception(&mut caller, &tag, 100 + n);
                caller.as_context_mut().throw(exception)
            })
            .unwrap();
        let text = format!(
            r#"(module (import "host" "t" (tag $t (param i32))) (import "host" "call" (func $host (param i32) (result i32)))
                (func $middle (param i32) (result i32)
                    (i32.add (call $host (local.get 0)) (local.get 0)))
                (func $outer (export "outer") (param i32) (result i32) (local i32)
                    (local.set 1 (i32.mul (local.get 0) (i32.const 3)))
                    (i32.add (local.get 1)
                        (block $caught (result i32)
                            (try_table (catch $t $caught) (return (call $middle (local.get 0))))
                            (unreachable))))
                {})"#,
            fillers()
        );
        let instance = linker.instantiate(&mut store, &Module::new(&engine, text).unwrap()).unwrap();
        let outer = instance.get_typed_func::<i32, i32>(&mut store, "outer").unwrap();
        for depth in [0, 0, 0, 0, 1, 3, 0, 2] {
            *store.data_mut() = engine.stats().retired_bytes;
            assert_eq!(outer.call(&mut store, depth).unwrap(), 100 + 4 * depth, "{tier:?}");
        }
        let names = retired.lock().unwrap();
        assert!(["outer", "middle"].iter().all(|name| names.iter().any(|retired| retired == name)), "{tier:?}: {names:?}");
        assert!(engine.stats().freed_bytes > 0, "later calls freed what the ones before them retired");
    }
}

/// Frames with and without handlers. Every 500 frames `$down` calls the host, which calls the other instance.
const DOWN: &str = r#"(module
    (import "host" "t" (tag $t (param i32)))
    (import "host" "other" (func $other (param i32) (result i32)))
    (tag $own (param i32))
    (func $down (export "down") (param i32) (result i32)
        (if (i32.eqz (local.get 0)) (then (throw $t (i32.const 42))))
        (if (i32.eqz (i32.rem_u (local.get 0) (i32.const 500)))
            (then (return (i32.add (call $other (i32.sub (local.get 0) (i32.const 1))) (local.get 0)))))
        (i32.add (call $handles (i32.sub (local.get 0) (i32.const 1))) (local.get 0)))
    (func $handles (param i32) (result i32)
        (block $caught (result i32)
            (try_table (result i32) (catch $own $caught) (call $cleans (local.get 0)))))
    (func $cleans (param i32) (result i32)
        (if (i32.and (local.get 0) (i32.const 31)) (then (return (call $down (local.get 0)))))
        (block $clean (result exnref)
            (try_table (catch_all_ref $clean) (return (call $down (local.get 0))))
            (unreachable))
        (throw_ref))
    (func (export "run") (param i32) (result i32) (local i32)
        (local.set 1 (i32.mul (local.get 0) (i32.const 2)))
        (i32.add (local.get 1)
            (block $caught (result i32)
                (try_table (result i32) (catch $t $caught) (call $down (local.get 0)))))))"#;

fn with_much_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(600 << 20);
    thread.spawn(test).unwrap().join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

#[test]
fn an_exception_passes_frames_of_two_instances_and_the_host() {
    with_much_stack(|| {
        for tier in TIERS {
            for interpreted in [&[][..], &["handles"]] {
                let mut config = Config::new();
                config.tier(tier).max_wasm_stack(500 << 20).value_stack_size(64 << 20).interpret_calls(interpreted);
                pass_two_instances(&engine(&config).unwrap(), &format!("{tier:?}, {interpreted:?}"));
            }
        }
    });
}

fn pass_two_instances(engine: &Engine, name: &str) {
    // A third of the frames: each frame of `$down` has two more.
    const DOWNS: i32 = 34_000;
    let mut store: Store<Vec<TypedFunc<i32, i32>>> = Store::new(engine, Vec::new());
    store.set_epoch_deadline(u64::MAX);
    let mut linker = Linker::new(engine);
    let tag = tag(&mut store, engine);
    linker.define(&store, "host", "t", tag).unwrap();
    linker
        .func_wrap("host", "other", |mut caller: Caller<'_, Vec<TypedFunc<i32, i32>>>, n: i32| -> Result<i32> {
            let down = caller.data()[(n / 500 % 2) as usize];
            down.call(&mut caller, n)
        })
        .unwrap();
    let module = Module::new(engine, DOWN).unwrap();
    let instances = [(); 2].map(|()| linker.instantiate(&mut store, &module).unwrap());
    for instance in instances {
        let down = instance.get_typed_func(&mut store, "down").unwrap();
        store.data_mut().push(down);
    }
    let run = instances[0].get_typed_func::<i32, i32>(&mut store, "run").unwrap();
    for downs in [1, 600, DOWNS] {
        assert_eq!(run.call(&mut store, downs).unwrap(), 2 * downs + 42, "{name}");
    }
}

/// The callback runs after at most 1024 frames each time, of optimised code with handlers, too: these are tens of microseconds.
#[test]
fn the_deadline_is_checked_on_the_way() {
    with_much_stack(|| {
        for tier in [Tier::Native, Tier::Interpreter] {
            let mut config = Config::new();
            config.tier(tier).max_wasm_stack(500 << 20).value_stack_size(256 << 20).epoch_interruption(true);
            check_the_deadline(&engine(&config).unwrap());
        }
    });
}

fn check_the_deadline(engine: &Engine) {
    const FRAMES: i32 = 1_000_000;
    let mut store = Store::new(engine, 0);
    let mut linker = Linker::new(engine);
    linker.func_wrap("host", "tick", |caller: Caller<'_, i32>| caller.engine().increment_epoch()).unwrap();
    let text = r#"(module
        (import "host" "tick" (func $tick))
        (tag $t (param i32)) (tag $own)
        (func $down (param i32) (result i32)
            (if (i32.eqz (local.get 0)) (then (call $tick) (throw $t (i32.const 42))))
            (block $caught
                (try_table (catch $own $caught)
                    (return (i32.add (call $down (i32.sub (local.get 0) (i32.const 1))) (local.get 0)))))
            (i32.const 1))
        (func (export "run") (param i32) (result i32)
            (block $caught (result i32)
                (try_table (result i32) (catch $t $caught) (call $down (local.get 0))))))"#;
    let instance = linker.instantiate(&mut store, &Module::new(engine, text).unwrap()).unwrap();
    let run = instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap();
    store.epoch_deadline_callback(|mut store| {
        *store.data_mut() += 1;
        Ok(UpdateDeadline::Continue(0))
    });
    store.set_epoch_deadline(1);
    assert_eq!(run.call(&mut store, FRAMES).unwrap(), 42);
    assert!(*store.data() >= FRAMES / 1024 - 1, "{}", store.data());
    store.epoch_deadline_trap();
    store.set_epoch_deadline(1);
    let error = run.call(&mut store, FRAMES).unwrap_err();
    assert_eq!(error.downcast_ref::<Trap>(), Some(&Trap::Interrupt));
}

/// A handler of all exceptions in every frame.
#[test]
fn no_handler_catches_an_exit() -> Result<(), Error> {
    let text = r#"(module
        (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
        (memory (export "memory") 1)
        (func $down (param i32)
            (block $caught
                (try_table (catch_all $caught)
                    (if (local.get 0) (then (call $down (i32.sub (local.get 0) (i32.const 1)))) (else (call $exit (i32.const 3))))
                    (return)))
            (unreachable))
        (func $legacy (param i32)
            try (call $down (local.get 0)) catch_all (unreachable) end)
        (func (export "run") (param i32)
            (block $caught (try_table (catch_all $caught) (call $legacy (local.get 0))))))"#;
    for tier in TIERS.into_iter().chain([Tier::Ssa]) {
        let engine = engine(Config::new().tier(tier).wasm_legacy_exceptions(true))?;
        let mut store = Store::new(&engine, WasiCtx::builder().build());
        let mut linker = Linker::new(&engine);
        weir_wasi::p1::add_to_linker_sync(&mut linker, |ctx| ctx)?;
        let instance = linker.instantiate(&mut store, &Module::new(&engine, text)?)?;
        let run = instance.get_typed_func::<i32, ()>(&mut store, "run")?;
        for depth in [0, 1, 100] {
            let error = run.call(&mut store, depth).unwrap_err();
            assert_eq!(error.downcast_ref::<I32Exit>(), Some(&I32Exit(3)), "{tier:?}: {error:#}");
        }
    }
    Ok(())
}
