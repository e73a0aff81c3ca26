//! The measured operations, written once: the two crates have the same API, and `vm` is one of them.

use super::vm::{Caller, Engine, Extern, Linker, Module, Result, Store, Val};
use std::hint::black_box;
use std::path::{Path, PathBuf};

/// An operation, repeated in a round, and its result checked.
pub struct Work {
    pub name: &'static str,
    pub run: Box<dyn FnMut(u32)>,
}

/// `deserialize_file` of a module that this engine compiles beforehand, and dropping the module. Nothing of it is called.
pub fn deserialize_file(engine: &Engine, module: &Path, compiled: PathBuf) -> Result<Work> {
    std::fs::write(&compiled, engine.precompile_module(&std::fs::read(module)?)?)?;
    let engine = engine.clone();
    let run = move |n| {
        for _ in 0..n {
            // SAFETY: the file was just written by this engine, and nothing else writes it.
            #[allow(unsafe_code, reason = "precompiled files are trusted")]
            let module = unsafe { Module::deserialize_file(&engine, &compiled) };
            black_box(module.expect("compiled by this engine"));
        }
    };
    Ok(Work { name: "deserialize_file", run: Box::new(run) })
}

/// Calls in both directions. Each loop calls one import N times.
const CALLS: &str = r#"(module
    (import "host" "nothing" (func $nothing))
    (import "host" "add" (func $add (param i32 i32) (result i32)))
    (import "host" "count" (func $count (param i32)))
    (import "host" "mixed" (func $mixed (param i32 i64 f32 f64 i32 i64) (result i64)))
    (import "host" "byte" (func $byte (param i32) (result i32)))
    (import "host" "dynamic" (func $dynamic (param i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "\01")
    (func (export "empty"))
    (func (export "sum") (param i32 i32) (result i32) (i32.add (local.get 0) (local.get 1)))
    (func (export "nothing") (param $n i32) (result i32)
        (local $i i32)
        (loop $again
            (call $nothing)
            (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
        (local.get $i))
    (func (export "add") (param $n i32) (result i32)
        (local $sum i32)
        (loop $again
            (br_if $again (i32.lt_u (local.tee $sum (call $add (local.get $sum) (i32.const 1))) (local.get $n))))
        (local.get $sum))
    (func (export "count") (param $n i32) (result i32)
        (local $i i32)
        (loop $again
            (call $count (i32.const 1))
            (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $n))))
        (local.get $i))
    (func (export "mixed") (param $n i32) (result i32)
        (local $sum i64)
        (loop $again
            (local.set $sum (call $mixed
                (i32.const 0) (i64.const 0) (f32.const 0) (f64.const 0) (i32.const 1) (local.get $sum)))
            (br_if $again (i64.lt_u (local.get $sum) (i64.extend_i32_u (local.get $n)))))
        (i32.wrap_i64 (local.get $sum)))
    (func (export "byte") (param $n i32) (result i32)
        (local $sum i32)
        (loop $again
            (br_if $again (i32.lt_u
                (local.tee $sum (i32.add (local.get $sum) (call $byte (i32.const 0)))) (local.get $n))))
        (local.get $sum))
    (func (export "dynamic") (param $n i32) (result i32)
        (local $sum i32)
        (loop $again
            (br_if $again (i32.lt_u (local.tee $sum (call $dynamic (local.get $sum) (i32.const 1))) (local.get $n))))
        (local.get $sum)))"#;

const TINY: &str = r#"(module (func (export "answer") (result i32) (i32.const 1)))"#;

const FUNCS: usize = 100;
const ELEMENTS: usize = 1000;
const DATA: usize = 64 << 10;

/// A memory full of data, a table full of functions, and a function that uses a little of both.
fn plugin() -> String {
    let funcs: String = (0..FUNCS).map(|i| format!("(func $f{i} (result i32) (i32.const {i}))")).collect();
    let elements: String = (0..ELEMENTS).map(|i| format!(" $f{}", i % FUNCS)).collect();
    let data = "\\01".repeat(DATA);
    format!(
        r#"(module
            (type $f (func (result i32)))
            (import "host" "add" (func $add (param i32 i32) (result i32)))
            (memory (export "memory") 2)
            (table {ELEMENTS} funcref)
            (global $g (mut i32) (i32.const 0))
            (elem (i32.const 0) {elements})
            (data (i32.const 0) "{data}")
            {funcs}
            (func (export "answer") (result i32)
                (i32.store (i32.const 70000) (call_indirect (type $f) (i32.const 999)))
                (i32.sub
                    (i32.add (i32.load (i32.const 70000)) (i32.load8_u (i32.const 65535)))
                    (i32.const 99))))"#
    )
}

fn linker(engine: &Engine) -> Result<Linker<u64>> {
    let mut linker = Linker::new(engine);
    linker.func_wrap("host", "nothing", || ())?;
    linker.func_wrap("host", "add", |a: i32, b: i32| a.wrapping_add(b))?;
    linker.func_wrap("host", "count", |mut caller: Caller<'_, u64>, n: u32| *caller.data_mut() += u64::from(n))?;
    linker.func_wrap("host", "mixed", |a: i32, b: i64, c: f32, d: f64, e: i32, f: i64| {
        i64::from(a) + b + (f64::from(c) + d) as i64 + i64::from(e) + f
    })?;
    linker.func_wrap("host", "byte", |mut caller: Caller<'_, u64>, at: u32| {
        let Some(Extern::Memory(memory)) = caller.get_export("memory") else { return 0 };
        memory.data(&caller).get(at as usize).map_or(0, |&byte| u32::from(byte))
    })?;
    let ty = Module::new(engine, CALLS)?.get_export("sum").and_then(|export| export.func().cloned()).expect("a function");
    linker.func_new("host", "dynamic", ty, |_, params, results| {
        results[0] = Val::I32(params[0].unwrap_i32().wrapping_add(params[1].unwrap_i32()));
        Ok(())
    })?;
    Ok(linker)
}

/// All operations, in this engine.
pub fn works(engine: &Engine) -> Result<Vec<Work>> {
    let mut works = vec![typed_empty(engine)?, typed_sum(engine)?, dynamic_sum(engine)?];
    let loops = [
        ("host call ()", "nothing"),
        ("host call (i32, i32) -> i32", "add"),
        ("host call with Caller, counting", "count"),
        ("host call of six arguments", "mixed"),
        ("host call that reads memory", "byte"),
        ("host call, dynamic", "dynamic"),
    ];
    for (name, export) in loops {
        works.push(host_calls(engine, name, export)?);
    }
    works.push(instances(engine, "instance of a tiny module", TINY, false)?);
    works.push(instances(engine, "the same and a call", TINY, true)?);
    works.push(instances(engine, "instance, 64 KiB, 1,000 elements", &plugin(), false)?);
    works.push(instances(engine, "the same and a call that uses it", &plugin(), true)?);
    Ok(works)
}

fn typed_empty(engine: &Engine) -> Result<Work> {
    let mut store = Store::new(engine, 0);
    let instance = linker(engine)?.instantiate(&mut store, &Module::new(engine, CALLS)?)?;
    let func = instance.get_typed_func::<(), ()>(&mut store, "empty")?;
    let run = move |n| (0..n).for_each(|_| func.call(&mut store, ()).expect("no trap"));
    Ok(Work { name: "typed call ()", run: Box::new(run) })
}

fn typed_sum(engine: &Engine) -> Result<Work> {
    let mut store = Store::new(engine, 0);
    let instance = linker(engine)?.instantiate(&mut store, &Module::new(engine, CALLS)?)?;
    let func = instance.get_typed_func::<(u32, u32), u32>(&mut store, "sum")?;
    let run = move |n| {
        let sum = (0..n).fold(0, |sum, _| func.call(&mut store, (sum, black_box(1))).expect("no trap"));
        assert_eq!(sum, n);
    };
    Ok(Work { name: "typed call (i32, i32) -> i32", run: Box::new(run) })
}

fn dynamic_sum(engine: &Engine) -> Result<Work> {
    let mut store = Store::new(engine, 0);
    let instance = linker(engine)?.instantiate(&mut store, &Module::new(engine, CALLS)?)?;
    let func = instance.get_func(&mut store, "sum").expect("a function");
    let run = move |n| {
        let mut results = [Val::I32(0)];
        for _ in 0..n {
            let params = [results[0], black_box(Val::I32(1))];
            func.call(&mut store, &params, &mut results).expect("no trap");
        }
        assert_eq!(results[0].unwrap_i32() as u32, n);
    };
    Ok(Work { name: "dynamic call (i32, i32) -> i32", run: Box::new(run) })
}

fn host_calls(engine: &Engine, name: &'static str, export: &str) -> Result<Work> {
    let mut store = Store::new(engine, 0);
    let instance = linker(engine)?.instantiate(&mut store, &Module::new(engine, CALLS)?)?;
    let func = instance.get_typed_func::<u32, u32>(&mut store, export)?;
    let run = move |n| {
        *store.data_mut() = 0;
        assert_eq!(func.call(&mut store, n).expect("no trap"), n);
        assert!([0, u64::from(n)].contains(store.data()));
    };
    Ok(Work { name, run: Box::new(run) })
}

/// Creates and drops a store and an instance of a module that has run before.
fn instances(engine: &Engine, name: &'static str, wat: &str, call: bool) -> Result<Work> {
    let pre = linker(engine)?.instantiate_pre(&Module::new(engine, wat)?)?;
    let engine = engine.clone();
    let run = move |n, call| {
        for _ in 0..n {
            let mut store = Store::new(&engine, 0);
            let instance = pre.instantiate(&mut store).expect("it fits");
            if call {
                let answer = instance.get_typed_func::<(), u32>(&mut store, "answer").expect("its type");
                assert_eq!(answer.call(&mut store, ()).expect("no trap"), 1);
            }
        }
    };
    run(2, true);
    Ok(Work { name, run: Box::new(move |n| run(n, call)) })
}
