//! Calls in both directions: typed and dynamic, host functions with and without their caller, nesting.

use crate::common::{self, each_engine, instance, linked};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use weir::{
    AsContext, AsContextMut, Caller, Error, Extern, ExternRef, Func, FuncType, Linker, Module, Result, Rooted, Store, Tier, Val,
    ValType,
};

#[test]
fn typed_calls_carry_every_type() {
    each_engine(
        |_| (),
        |engine| {
            let (mut store, instance) = instance(
                engine,
                r#"(module
                    (func (export "i32") (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
                    (func (export "i64") (param i64) (result i64) (i64.add (local.get 0) (i64.const 1)))
                    (func (export "f32") (param f32) (result f32) (f32.add (local.get 0) (f32.const 0.5)))
                    (func (export "f64") (param f64) (result f64) (f64.add (local.get 0) (f64.const 0.5)))
                    (func (export "swap") (param i32 f64) (result f64 i32) (local.get 1) (local.get 0)))"#,
            );
            macro_rules! check {
                ($name:literal, $ty:ty, $($arg:expr => $result:expr),+) => {
                    let func = instance.get_typed_func::<$ty, $ty>(&mut store, $name).unwrap();
                    $(assert_eq!(func.call(&mut store, $arg).unwrap(), $result);)+
                };
            }
            check!("i32", i32, i32::MAX => i32::MIN, -1 => 0);
            check!("i32", u32, u32::MAX => 0);
            check!("i64", i64, i64::MAX => i64::MIN);
            check!("i64", u64, u64::MAX => 0);
            check!("f32", f32, -1.0 => -0.5);
            check!("f64", f64, 1e300 => 1e300);
            let swap = instance.get_typed_func::<(i32, f64), (f64, i32)>(&mut store, "swap").unwrap();
            assert_eq!(swap.call(&mut store, (-3, 2.5)).unwrap(), (2.5, -3));
        },
    );
}

#[test]
fn calls_of_the_wrong_type_are_refused() {
    each_engine(
        |_| (),
        |engine| {
            let (mut store, instance) =
                instance(engine, r#"(module (func (export "f") (param i32) (result i64) (i64.const 0)))"#);
            let error = instance.get_typed_func::<i64, i64>(&mut store, "f").unwrap_err();
            assert!(
                format!("{error:#}").contains("type mismatch with parameters: type mismatch: expected i32, found i64"),
                "{error:#}"
            );
            assert!(instance.get_typed_func::<(), ()>(&mut store, "g").is_err());

            let func = instance.get_func(&mut store, "f").unwrap();
            let mut results = [Val::I32(0)];
            assert!(func.call(&mut store, &[], &mut results).is_err());
            assert!(func.call(&mut store, &[Val::F32(0)], &mut results).is_err());
            assert!(func.call(&mut store, &[Val::I32(0)], &mut []).is_err());
            func.call(&mut store, &[Val::I32(0)], &mut results).unwrap();
            assert_eq!(results[0].i64(), Some(0));
        },
    );
}

#[test]
fn host_functions_see_their_state_and_their_caller() {
    each_engine(
        |_| (),
        |engine| {
            let mut linker = Linker::new(engine);
            linker
                .func_wrap("host", "print", |mut caller: Caller<'_, Vec<String>>, at: u32, len: u32| -> Result<u32> {
                    let memory = caller.get_export("memory").and_then(Extern::into_memory).ok_or_else(|| Error::msg("none"))?;
                    let (data, lines) = memory.data_and_store_mut(&mut caller);
                    let text = data.get(at as usize..(at + len) as usize).ok_or_else(|| Error::msg("out of bounds"))?;
                    lines.push(String::from_utf8_lossy(text).into_owned());
                    Ok(lines.len() as u32)
                })
                .unwrap();
            let (mut store, instance) = linked(
                &linker,
                r#"(module
                    (import "host" "print" (func $print (param i32 i32) (result i32)))
                    (memory (export "memory") 1)
                    (data (i32.const 16) "hello weir")
                    (func (export "run") (result i32)
                        (drop (call $print (i32.const 16) (i32.const 5)))
                        (call $print (i32.const 22) (i32.const 4)))
                    (func (export "bad") (drop (call $print (i32.const 65535) (i32.const 2)))))"#,
                Vec::new(),
            );
            let run = instance.get_typed_func::<(), u32>(&mut store, "run").unwrap();
            assert_eq!(run.call(&mut store, ()).unwrap(), 2);
            assert_eq!(store.data(), &["hello", "weir"]);
            let error = instance.get_typed_func::<(), ()>(&mut store, "bad").unwrap().call(&mut store, ()).unwrap_err();
            assert_eq!(error.root_cause().to_string(), "out of bounds");
            assert_eq!(error.wasm_backtrace().unwrap().frames().len(), 1);
        },
    );
}

#[test]
fn host_functions_of_many_shapes() {
    each_engine(
        |_| (),
        |engine| {
            let mut store = Store::new(engine, 10i32);
            let sum = Func::wrap(
                &mut store,
                |a: i32, b: u32, c: i64, d: u64, e: f32, f: f64, g: i32, h: i32, i: i32, j: i32, k: f64, l: f64| -> f64 {
                    f64::from(a) + f64::from(b) + c as f64 + d as f64 + f64::from(e) + f + f64::from(g + h + i + j) + k + l
                },
            );
            let many = Func::wrap(&mut store, |caller: Caller<'_, i32>| -> (i32, i64, f32, f64, i32, i64) {
                (*caller.data(), -1, 0.5, -0.5, 2, 3)
            });
            let module = Module::new(
                engine,
                r#"(module
                    (import "" "sum" (func $sum
                        (param i32 i32 i64 i64 f32 f64 i32 i32 i32 i32 f64 f64) (result f64)))
                    (import "" "many" (func $many (result i32 i64 f32 f64 i32 i64)))
                    (func (export "sum") (result f64)
                        (call $sum (i32.const -1) (i32.const -1) (i64.const 2) (i64.const 3) (f32.const 0.5) (f64.const 0.25)
                            (i32.const 1) (i32.const 2) (i32.const 3) (i32.const 4) (f64.const 5) (f64.const 6)))
                    (func (export "many") (result i32 i64 f32 f64 i32 i64) (call $many)))"#,
            )
            .unwrap();
            let instance = weir::Instance::new(&mut store, &module, &[sum.into(), many.into()]).unwrap();
            let sum = instance.get_typed_func::<(), f64>(&mut store, "sum").unwrap();
            assert_eq!(sum.call(&mut store, ()).unwrap(), f64::from(u32::MAX) - 1.0 + 26.75);
            let many = instance.get_typed_func::<(), (i32, i64, f32, f64, i32, i64)>(&mut store, "many").unwrap();
            assert_eq!(many.call(&mut store, ()).unwrap(), (10, -1, 0.5, -0.5, 2, 3));
        },
    );
}

#[test]
fn dynamic_host_functions_must_keep_their_promise() {
    each_engine(
        |_| (),
        |engine| {
            let mut linker: Linker<()> = Linker::new(engine);
            let ty = FuncType::new(engine, [ValType::I32, ValType::F64], [ValType::I64]);
            linker
                .func_new("host", "good", ty.clone(), |_, params, results| {
                    results[0] = Val::I64(i64::from(params[0].unwrap_i32()) + params[1].unwrap_f64() as i64);
                    Ok(())
                })
                .unwrap();
            linker
                .func_new("host", "bad", ty, |_, _, results| {
                    results[0] = Val::I32(1);
                    Ok(())
                })
                .unwrap();
            let (mut store, instance) = linked(
                &linker,
                r#"(module
                    (import "host" "good" (func $good (param i32 f64) (result i64)))
                    (import "host" "bad" (func $bad (param i32 f64) (result i64)))
                    (func (export "good") (result i64) (call $good (i32.const 40) (f64.const 2)))
                    (func (export "bad") (result i64) (call $bad (i32.const 40) (f64.const 2))))"#,
                (),
            );
            let good = instance.get_typed_func::<(), i64>(&mut store, "good").unwrap();
            assert_eq!(good.call(&mut store, ()).unwrap(), 42);
            let bad = instance.get_typed_func::<(), i64>(&mut store, "bad").unwrap();
            let error = bad.call(&mut store, ()).unwrap_err();
            assert!(format!("{error:#}").contains("expected i64, found i32"), "{error:#}");
        },
    );
}

/// fib by turns in the guest and in the host, so that activations nest.
#[test]
fn host_and_guest_call_each_other() {
    each_engine(
        |_| (),
        |engine| {
            let mut linker: Linker<u32> = Linker::new(engine);
            linker
                .func_wrap("host", "fib", |mut caller: Caller<'_, u32>, n: u32| -> Result<u64> {
                    *caller.data_mut() += 1;
                    let fib = caller.get_export("fib").and_then(Extern::into_func).unwrap().typed::<u32, u64>(&caller)?;
                    Ok(fib.call(&mut caller, n - 1)? + fib.call(&mut caller, n - 2)?)
                })
                .unwrap();
            let (mut store, instance) = linked(
                &linker,
                r#"(module
                    (import "host" "fib" (func $host (param i32) (result i64)))
                    (func $fib (export "fib") (param i32) (result i64)
                        (if (result i64) (i32.lt_u (local.get 0) (i32.const 2))
                            (then (i64.extend_i32_u (local.get 0)))
                            (else (call $host (local.get 0))))))"#,
                0,
            );
            let fib = instance.get_typed_func::<u32, u64>(&mut store, "fib").unwrap();
            assert_eq!(fib.call(&mut store, 15).unwrap(), 610);
            assert_eq!(*store.data(), 986);
        },
    );
}

#[test]
fn references_go_through_the_guest() {
    each_engine(
        |_| (),
        |engine| {
            let (mut store, instance) = instance(
                engine,
                r#"(module
                    (table (export "funcs") 2 funcref)
                    (func (export "id") (param externref) (result externref) (local.get 0))
                    (func (export "is_null") (param externref) (result i32) (ref.is_null (local.get 0)))
                    (func (export "put") (param i32 funcref) (table.set 0 (local.get 0) (local.get 1)))
                    (func (export "call") (param i32) (result i32) (call_indirect (result i32) (local.get 0))))"#,
            );
            let value = ExternRef::new(&mut store, 7u8).unwrap();
            let id = instance.get_typed_func::<Option<Rooted<ExternRef>>, Option<Rooted<ExternRef>>>(&mut store, "id").unwrap();
            let back = id.call(&mut store, Some(value)).unwrap().unwrap();
            assert_eq!(back.data(&store).unwrap().unwrap().downcast_ref(), Some(&7u8));
            assert!(id.call(&mut store, None).unwrap().is_none());
            let is_null = instance.get_typed_func::<Option<Rooted<ExternRef>>, i32>(&mut store, "is_null").unwrap();
            assert_eq!(is_null.call(&mut store, None).unwrap(), 1);
            assert_eq!(is_null.call(&mut store, Some(value)).unwrap(), 0);

            let put = instance.get_typed_func::<(u32, Option<Func>), ()>(&mut store, "put").unwrap();
            let answer = Func::wrap(&mut store, || 42);
            put.call(&mut store, (1, Some(answer))).unwrap();
            let call = instance.get_typed_func::<u32, i32>(&mut store, "call").unwrap();
            assert_eq!(call.call(&mut store, 1).unwrap(), 42);
            let in_table = instance.get_table(&mut store, "funcs").unwrap().get(&mut store, 1).unwrap();
            let weir::Ref::Func(Some(func)) = in_table else { panic!("the element is the function") };
            assert!(Func::same(func, answer));
        },
    );
}

#[test]
fn a_host_function_knows_which_instance_imports_it() {
    each_engine(
        |_| (),
        |engine| {
            let mut linker: Linker<()> = Linker::new(engine);
            linker
                .func_wrap("host", "name", |mut caller: Caller<'_, ()>| -> i32 {
                    let global = caller.get_export("name").and_then(Extern::into_global).unwrap();
                    global.get(&mut caller).unwrap_i32()
                })
                .unwrap();
            let module = |name: i32| {
                let wat = format!(
                    r#"(module
                        (import "host" "name" (func $name (result i32)))
                        (global (export "name") i32 (i32.const {name}))
                        (table 1 funcref)
                        (elem (i32.const 0) $name)
                        (func (export "direct") (result i32) (call $name))
                        (func (export "indirect") (result i32) (call_indirect (result i32) (i32.const 0))))"#
                );
                Module::new(engine, wat).unwrap()
            };
            let mut store = Store::new(engine, ());
            let instances = [1, 2].map(|name| (name, linker.instantiate(&mut store, &module(name)).unwrap()));
            for (name, instance) in instances {
                for export in ["direct", "indirect"] {
                    let func = instance.get_typed_func::<(), i32>(&mut store, export).unwrap();
                    assert_eq!(func.call(&mut store, ()).unwrap(), name, "{export}");
                }
            }
            let orphan = linker.get(&mut store, "host", "name").unwrap().into_func().unwrap();
            let orphan = orphan.typed::<(), i32>(&store).unwrap();
            let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| orphan.call(&mut store, ())));
            assert!(panic.is_err(), "no instance imports it, so it finds no export");
        },
    );
}

#[test]
fn stores_move_between_threads_and_free_what_they_own() {
    struct Counted(Arc<AtomicU32>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    each_engine(
        |_| (),
        |engine| {
            let dropped = Arc::new(AtomicU32::new(0));
            let counted = || Counted(dropped.clone());
            let mut store = Store::new(engine, counted());
            let captured = counted();
            let func = Func::wrap(&mut store, move |n: i32| n + i32::from(captured.0.load(Ordering::Relaxed) > 0));
            ExternRef::new(&mut store, counted()).unwrap();
            std::thread::spawn(move || {
                assert_eq!(func.typed::<i32, i32>(&store).unwrap().call(&mut store, 4).unwrap(), 4);
            })
            .join()
            .unwrap();
            assert_eq!(dropped.load(Ordering::Relaxed), 3);

            let data = Store::new(engine, counted()).into_data();
            assert_eq!(dropped.load(Ordering::Relaxed), 3);
            drop(data);
            assert_eq!(dropped.load(Ordering::Relaxed), 4);
        },
    );
}

#[test]
fn generic_code_works_with_any_context() {
    fn bump(mut store: impl AsContextMut<Data = u32>) {
        *store.as_context_mut().data_mut() += 1;
    }
    fn show(store: impl AsContext<Data = u32>) -> u32 {
        *store.as_context().data()
    }
    each_engine(
        |_| (),
        |engine| {
            let mut store = Store::new(engine, 0);
            let func = Func::wrap(&mut store, |mut caller: Caller<'_, u32>| {
                bump(&mut caller);
                bump(caller.as_context_mut());
                show(&caller)
            });
            assert_eq!(func.typed::<(), u32>(&store).unwrap().call(&mut store, ()).unwrap(), 2);
            bump(&mut store);
            assert_eq!(show(&store), 3);
        },
    );
}

#[test]
fn statistics_tell_what_ran() {
    let wat = r#"(module
        (func (export "hot") (result i32) (i32.const 1))
        (func (export "cold") (result i32) (i32.const 2)))"#;
    for tier in [Tier::Interpreter, Tier::Auto] {
        let mut config = weir::Config::new();
        let native = tier == Tier::Auto;
        let engine = &common::engine(config.tier(tier).synchronous_compilation(true).tier_up_threshold(Some(1))).unwrap();
        let (mut store, instance) = instance(engine, wat);
        let hot = instance.get_typed_func::<(), i32>(&mut store, "hot").unwrap();
        for _ in 0..100 {
            assert_eq!(hot.call(&mut store, ()).unwrap(), 1);
        }
        let stats = instance.module(&store).stats();
        assert_eq!(stats.functions.total, 2);
        let functions = &stats.functions;
        let compiled = functions.native + functions.cranelift;
        if native && cfg!(all(feature = "jit", target_arch = "x86_64", target_os = "linux")) {
            assert_eq!((functions.called, functions.interpreted, functions.native), (1, 0, 1), "{stats:?}");
            assert_eq!(functions.fallbacks, [], "{stats:?}");
            assert!(stats.code_bytes > 0, "{stats:?}");
            assert_eq!(engine.stats().code_bytes, stats.code_bytes);
        } else {
            assert_eq!((compiled, stats.code_bytes), (0, 0), "{stats:?}");
        }
    }
}

#[test]
fn types_that_threads_may_share() {
    fn shared<T: Send + Sync>() {}
    shared::<weir::Engine>();
    shared::<Module>();
    shared::<Linker<std::cell::Cell<u8>>>();
    shared::<weir::InstancePre<std::cell::Cell<u8>>>();
    shared::<Store<u8>>();
    shared::<Func>();
    shared::<weir::TypedFunc<i32, i32>>();
    shared::<weir::Instance>();
    shared::<Val>();
    shared::<Error>();
    fn sent<T: Send>() {}
    sent::<Store<std::cell::Cell<u8>>>();
}

#[test]
#[should_panic(expected = "a store that is not its own")]
fn handles_do_not_work_in_other_stores() {
    let engine = common::default_engine();
    let mut one = Store::new(&engine, ());
    let mut other = Store::new(&engine, ());
    let func = Func::wrap(&mut one, || ());
    let _ = func.call(&mut other, &[], &mut []);
}

/// A type costs code memory only if a function of the module has it.
#[cfg(feature = "jit")]
#[test]
fn types_without_functions_take_no_code_memory() {
    use weir::{Config, Instance};

    const TYPES: u32 = 2000;
    let params = |i: u32| (0..11).map(move |bit| if i >> bit & 1 == 0 { "i64 " } else { "f64 " });
    let types: String = (0..TYPES).map(|i| format!("(type (func (param {})))", params(i).collect::<String>())).collect();
    let mut config = Config::new();
    config.tier(Tier::Native).max_code_size(64 << 10);
    let engine = common::engine(&config).unwrap();
    let module = Module::new(&engine, format!(r#"(module {types} (func (export "seven") (result i32) i32.const 7))"#)).unwrap();
    let mut store = Store::new(&engine, ());
    let instance = Instance::new(&mut store, &module, &[]).unwrap();
    let seven = instance.get_typed_func::<(), i32>(&mut store, "seven").unwrap();
    assert_eq!(seven.call(&mut store, ()).unwrap(), 7);
    assert_eq!(module.stats().functions.native, 1);
}
