//! Hosts of the shape of known ones, each small: what they do with the library, and in which order.

use super::waiting::{Once, block_on};
use crate::wasmtime;
use std::collections::HashMap;
use wasmtime::*;

/// A host for plug-ins that keep their state in their memory, and exchange blocks of bytes with the host through functions of the host.
mod plugins {
    use super::*;

    pub struct Plugin {
        store: Store<Host>,
        instance: Instance,
        pre: InstancePre<Host>,
    }

    #[derive(Default)]
    pub struct Host {
        input: Vec<u8>,
        output: Vec<u8>,
        error: Option<String>,
        vars: HashMap<String, Vec<u8>>,
        limits: StoreLimits,
    }

    fn bytes(caller: &mut Caller<'_, Host>, at: u32, len: u32) -> Result<Vec<u8>> {
        let memory = caller.get_export("memory").and_then(Extern::into_memory);
        let memory = memory.ok_or_else(|| Error::msg("the plug-in has no memory"))?;
        let data = memory.data(&caller).get(at as usize..).and_then(|data| data.get(..len as usize));
        Ok(data.ok_or_else(|| format_err!("{len} bytes at {at} are outside"))?.to_vec())
    }

    impl Plugin {
        pub fn new(engine: &Engine, text: &str) -> Result<Plugin> {
            let mut linker: Linker<Host> = Linker::new(engine);
            linker.func_wrap("host", "input_length", |caller: Caller<'_, Host>| caller.data().input.len() as u64)?;
            linker.func_wrap("host", "input_load", |caller: Caller<'_, Host>, at: u64| -> Result<u32> {
                let byte = caller.data().input.get(at as usize);
                Ok(u32::from(*byte.ok_or_else(|| format_err!("no byte {at} of the input"))?))
            })?;
            linker.func_wrap("host", "output_set", |mut caller: Caller<'_, Host>, at: u32, len: u32| -> Result<()> {
                caller.data_mut().output = bytes(&mut caller, at, len)?;
                Ok(())
            })?;
            linker.func_wrap("host", "error_set", |mut caller: Caller<'_, Host>, at: u32, len: u32| -> Result<()> {
                let text = bytes(&mut caller, at, len)?;
                caller.data_mut().error = Some(String::from_utf8(text)?);
                Ok(())
            })?;
            linker.func_wrap("host", "var_set", |mut caller: Caller<'_, Host>, key: u32, value: u32| -> Result<()> {
                let name = String::from_utf8(bytes(&mut caller, key, 1)?)?;
                let value = bytes(&mut caller, value, 4)?;
                caller.data_mut().vars.insert(name, value);
                Ok(())
            })?;
            let module = Module::new(engine, text)?;
            let pre = linker.instantiate_pre(&module)?;
            let (store, instance) = Plugin::start(engine, &pre)?;
            Ok(Plugin { store, instance, pre })
        }

        fn start(engine: &Engine, pre: &InstancePre<Host>) -> Result<(Store<Host>, Instance)> {
            let limits = StoreLimitsBuilder::new().memory_size(2 << 16).instances(2).build();
            let mut store = Store::new(engine, Host { limits, ..Host::default() });
            store.limiter(|host| &mut host.limits);
            let instance = pre.instantiate(&mut store)?;
            Ok((store, instance))
        }

        /// Calls a function with an input. A plug-in that fails begins anew.
        pub fn call(&mut self, name: &str, input: &[u8]) -> Result<Vec<u8>> {
            let Some(func) = self.instance.get_func(&mut self.store, name) else { bail!("there is no function {name}") };
            self.store.data_mut().input = input.to_vec();
            self.store.data_mut().output.clear();
            let results = func.ty(&self.store).results().len();
            let mut values = vec![Val::I32(0); results];
            let called = func.call(&mut self.store, &[], &mut values);
            let status = values.first().map_or(0, Val::unwrap_i32);
            let error = self.store.data_mut().error.take();
            if called.is_err() {
                let engine = self.store.engine().clone();
                (self.store, self.instance) = Plugin::start(&engine, &self.pre)?;
            }
            called?;
            match error {
                Some(error) => Err(Error::msg(error)),
                None if status != 0 => bail!("{name} returned {status}"),
                None => Ok(std::mem::take(&mut self.store.data_mut().output)),
            }
        }

        pub fn var(&self, name: &str) -> Option<u32> {
            Some(u32::from_le_bytes(self.store.data().vars.get(name)?.as_slice().try_into().ok()?))
        }
    }
}

pub fn plug_ins(engine: &Engine) -> Result<()> {
    let mut plugin = plugins::Plugin::new(
        engine,
        r#"(module
            (import "host" "input_length" (func $length (result i64)))
            (import "host" "input_load" (func $load (param i64) (result i32)))
            (import "host" "output_set" (func $output (param i32 i32)))
            (import "host" "error_set" (func $error (param i32 i32)))
            (import "host" "var_set" (func $var (param i32 i32)))
            (memory (export "memory") 1)
            (data (i32.const 0) "odd n")
            (global $calls (mut i32) (i32.const 0))
            (func (export "upper") (result i32) (local $i i64)
                (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
                (i32.store (i32.const 8) (global.get $calls))
                (call $var (i32.const 4) (i32.const 8))
                (block $done (loop $next
                    (br_if $done (i64.ge_u (local.get $i) (call $length)))
                    (i32.store8 (i32.add (i32.const 1024) (i32.wrap_i64 (local.get $i)))
                        (i32.and (call $load (local.get $i)) (i32.const 0xdf)))
                    (local.set $i (i64.add (local.get $i) (i64.const 1)))
                    (br $next)))
                (if (i64.ne (i64.and (local.get $i) (i64.const 1)) (i64.const 0))
                    (then (call $error (i32.const 0) (i32.const 3))))
                (call $output (i32.const 1024) (i32.wrap_i64 (local.get $i)))
                (i32.const 0))
            (func (export "status") (result i32) (i32.const 3))
            (func (export "beyond") (call $output (i32.const 65530) (i32.const 7)))
            (func (export "missing") (drop (call $load (i64.const 99))))
            (func (export "grow") (result i32)
                (i32.add (memory.grow (i32.const 1)) (i32.mul (memory.grow (i32.const 1)) (i32.const 100))))
            (func (export "divide") (result i32) (i32.div_u (i32.const 1) (global.get $calls)))
            (func (export "crash") (global.set $calls (i32.const 0)) unreachable))"#,
    )?;
    assert_eq!(plugin.call("upper", b"abcd")?, b"ABCD");
    assert_eq!((plugin.call("upper", b"ab")?, plugin.var("n")), (b"AB".to_vec(), Some(2)));
    assert_eq!(plugin.call("upper", b"abc").unwrap_err().to_string(), "odd");
    assert_eq!(plugin.call("status", b"").unwrap_err().to_string(), "status returned 3");
    assert_eq!(plugin.call("nothing", b"").unwrap_err().to_string(), "there is no function nothing");
    // One page more, and then none: 1 - 100.
    assert_eq!(plugin.call("grow", b"").unwrap_err().to_string(), "grow returned -99");
    let outside = plugin.call("beyond", b"").map(drop);
    assert!(outside.is_ok(), "the memory has grown");
    let error = plugin.call("missing", b"").unwrap_err();
    assert_eq!(error.root_cause().to_string(), "no byte 99 of the input");
    // It began anew.
    assert_eq!(plugin.call("beyond", b"").unwrap_err().root_cause().to_string(), "7 bytes at 65530 are outside");
    assert_eq!(plugin.call("divide", b"").unwrap_err().downcast_ref(), Some(&Trap::IntegerDivisionByZero));
    assert_eq!(plugin.call("upper", b"xy")?, b"XY");
    let error = plugin.call("crash", b"").unwrap_err();
    assert_eq!(error.downcast_ref(), Some(&Trap::UnreachableCodeReached));
    let frames = error.downcast_ref::<WasmBacktrace>().unwrap().frames();
    assert_eq!((frames.len(), frames[0].func_index()), (1, 11));
    assert_eq!(plugin.var("n"), None);
    Ok(())
}

/// A rule engine: conditions are functions of a module, facts are read by functions of the host with raw values.
pub fn rules(engine: &Engine) -> Result<()> {
    struct Scan {
        data: Vec<u8>,
        matching: Vec<i32>,
    }
    let mut linker: Linker<Scan> = Linker::new(engine);
    let i32s = |params: usize, results: usize| FuncType::new(engine, vec![ValType::I32; params], vec![ValType::I32; results]);
    let optional = FuncType::new(engine, [ValType::I64], [ValType::I64, ValType::I32]);
    // SAFETY: arguments are read, and results written, as the types say.
    unsafe {
        linker.func_new_unchecked("yr", "rule_match", i32s(1, 0), |mut caller, values| {
            let rule = values[0].assume_init().get_i32();
            caller.data_mut().matching.push(rule);
            Ok(())
        })?;
        linker.func_new_unchecked("yr", "uint8", optional, |caller, values| {
            let at = values[0].assume_init().get_i64();
            let byte = usize::try_from(at).ok().and_then(|at| caller.data().data.get(at).copied());
            values[0].write(ValRaw::i64(i64::from(byte.unwrap_or(0))));
            values[1].write(ValRaw::i32(i32::from(byte.is_none())));
            Ok(())
        })?;
        linker.func_new_unchecked("yr", "check", i32s(1, 1), |_, values| {
            let n = values[0].assume_init().get_i32();
            ensure!(n >= 0, "{n} is negative");
            values[0].write(ValRaw::i32(n + 1));
            Ok(())
        })?;
    }
    let mut store = Store::new(engine, Scan { data: Vec::new(), matching: Vec::new() });
    store.set_epoch_deadline(1);
    let size = Global::new(&mut store, GlobalType::new(ValType::I64, Mutability::Var), Val::I64(0))?;
    let memory = Memory::new(&mut store, MemoryType::new(1, None))?;
    linker.define(&store, "yr", "filesize", size)?.define(&store, "yr", "main_memory", memory)?;
    let module = Module::new(
        engine,
        r#"(module
            (import "yr" "rule_match" (func $match (param i32)))
            (import "yr" "uint8" (func $uint8 (param i64) (result i64 i32)))
            (import "yr" "check" (func $check (param i32) (result i32)))
            (import "yr" "filesize" (global $size (mut i64)))
            (import "yr" "main_memory" (memory 1))
            (func $byte (param i64) (result i64) (local i32)
                (call $uint8 (local.get 0)) (local.set 1) (drop)
                (select (i64.const -1) (i64.const 0) (local.get 1)))
            (func (export "main") (result i32)
                (if (i64.gt_u (global.get $size) (i64.const 3)) (then (call $match (i32.const 0))))
                (if (i64.eq (call $first) (i64.const 0x4d)) (then (call $match (i32.const 1))))
                (if (i64.eq (call $byte (i64.const 100)) (i64.const -1)) (then (call $match (i32.const 2))))
                (i32.store (i32.const 16) (i32.const 7))
                (call $check (i32.const 4)))
            (func $first (result i64) (local i32) (call $uint8 (i64.const 0)) (local.set 0))
            (func (export "fail") (param i32) (result i32) (call $check (local.get 0))))"#,
    )?;
    let instance = linker.instantiate(&mut store, &module)?;
    let main = instance.get_typed_func::<(), i32>(&mut store, "main")?;
    for (data, expected) in
        [(&b"MZ\x90\x00"[..], vec![0, 1, 2]), (b"MZ", vec![1, 2]), (b"PK\x03\x04", vec![0, 2]), (b"", vec![2])]
    {
        size.set(&mut store, Val::I64(data.len() as i64))?;
        *store.data_mut() = Scan { data: data.to_vec(), matching: Vec::new() };
        assert_eq!(main.call(&mut store, ())?, 5);
        assert_eq!(store.data().matching, expected);
        assert_eq!(memory.data(&store)[16..20], [7, 0, 0, 0]);
    }
    let fail = instance.get_typed_func::<i32, i32>(&mut store, "fail")?;
    assert_eq!(fail.call(&mut store, -4).unwrap_err().root_cause().to_string(), "-4 is negative");
    assert_eq!(fail.call(&mut store, 4)?, 5);
    Ok(())
}

/// A formatter whose plug-ins are compiled once and kept as bytes, and which copies text through a buffer of the plug-in.
pub fn formatters(engine: &Engine) -> Result<()> {
    let text = r#"(module
        (memory (export "memory") 1)
        (func (export "clear_shared_bytes") (param i32) (result i32) (i32.const 256))
        (func (export "version") (result i32) (i32.const 4))
        (func (export "format") (param $len i32) (result i32) (local $i i32) (local $out i32) (local $c i32)
            (if (i32.eqz (local.get $len)) (then (return (i32.const -1))))
            (loop $next
                (local.set $c (i32.load8_u (i32.add (i32.const 256) (local.get $i))))
                (if (i32.ne (local.get $c) (i32.const 32))
                    (then
                        (i32.store8 (i32.add (i32.const 4096) (local.get $out)) (local.get $c))
                        (local.set $out (i32.add (local.get $out) (i32.const 1)))))
                (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (local.get $len))))
            (local.get $out)))"#;
    let mut cache: HashMap<&str, Vec<u8>> = HashMap::new();
    let compiled = Module::new(engine, text)?;
    // An engine that compiles nothing has nothing to keep.
    if let Ok(bytes) = compiled.serialize() {
        assert!(Engine::detect_precompiled(&bytes).is_some() && Engine::detect_precompiled(b"\0asm\x01\0\0\0").is_none());
        // SAFETY: the bytes are no module.
        assert!(unsafe { Module::deserialize(engine, &bytes[..bytes.len() / 2]) }.is_err(), "cut");
        // SAFETY: as above.
        assert!(unsafe { Module::deserialize(engine, b"\0asm\x01\0\0\0") }.is_err(), "not compiled");
        cache.insert("plug-in", bytes);
    }
    for run in 0..2 {
        let module = match cache.get("plug-in") {
            // SAFETY: the bytes are of `serialize`.
            Some(bytes) => unsafe { Module::deserialize(engine, bytes)? },
            None => Module::new(engine, text)?,
        };
        assert_eq!((module.exports().len(), module.imports().len()), (4, 0));
        let mut store = Store::new(engine, run);
        let instance = Linker::new(engine).instantiate(&mut store, &module)?;
        assert_eq!(instance.get_typed_func::<(), u32>(&mut store, "version")?.call(&mut store, ())?, 4);
        let clear = instance.get_typed_func::<u32, u32>(&mut store, "clear_shared_bytes")?;
        let format = instance.get_typed_func::<u32, i32>(&mut store, "format")?;
        let memory = instance.get_memory(&mut store, "memory").unwrap();
        for (text, expected) in [("a = b", "a=b"), ("  x ", "x"), ("   ", "")] {
            let at = clear.call(&mut store, text.len() as u32)? as usize;
            memory.write(&mut store, at, text.as_bytes())?;
            let len = format.call(&mut store, text.len() as u32)? as usize;
            let mut formatted = vec![0; len];
            memory.read(&store, 4096, &mut formatted)?;
            assert_eq!(String::from_utf8(formatted)?, expected);
        }
        assert_eq!(format.call(&mut store, 0)?, -1);
        let trap = format.call(&mut store, 70_000).unwrap_err();
        assert_eq!(trap.downcast_ref(), Some(&Trap::MemoryOutOfBounds));
    }
    Ok(())
}

/// A host of contracts that wait for a network: fuel bounds their work, and a state that a failing one has changed is given up.
pub fn contracts(engine: &Engine) -> Result<()> {
    #[derive(Clone, Default)]
    struct State {
        balances: HashMap<i32, i64>,
        fetched: usize,
    }
    let mut linker: Linker<State> = Linker::new(engine);
    linker.func_wrap_async("chain", "balance", |mut caller: Caller<'_, State>, (account,): (i32,)| {
        Box::new(async move {
            Once::default().await;
            caller.data_mut().fetched += 1;
            let balance = caller.data().balances.get(&account).copied();
            balance.ok_or_else(|| format_err!("account {account} is unknown"))
        })
    })?;
    linker.func_wrap("chain", "set", |mut caller: Caller<'_, State>, account: i32, balance: i64| {
        caller.data_mut().balances.insert(account, balance);
    })?;
    let module = Module::new(
        engine,
        r#"(module
            (import "chain" "balance" (func $balance (param i32) (result i64)))
            (import "chain" "set" (func $set (param i32 i64)))
            (func (export "transfer") (param $from i32) (param $to i32) (param $amount i64)
                (call $set (local.get $from) (i64.sub (call $balance (local.get $from)) (local.get $amount)))
                (if (i64.lt_s (call $balance (local.get $from)) (i64.const 0)) (then unreachable))
                (call $set (local.get $to) (i64.add (call $balance (local.get $to)) (local.get $amount))))
            (func (export "work") (param i32)
                (loop $l (br_if $l (local.tee 0 (i32.sub (local.get 0) (i32.const 1))))))
            (func (export "spin") (loop $l (br $l))))"#,
    )?;
    let mut state = State { balances: HashMap::from([(1, 100), (2, 5)]), fetched: 0 };
    let run = |state: &mut State, from: i32, to: i32, amount: i64| -> (Result<()>, usize, u64) {
        let mut store = Store::new(engine, state.clone());
        store.set_fuel(10_000).unwrap();
        let (result, pending) = block_on(async {
            let instance = linker.instantiate_async(&mut store, &module).await?;
            let transfer = instance.get_typed_func::<(i32, i32, i64), ()>(&mut store, "transfer")?;
            transfer.call_async(&mut store, (from, to, amount)).await
        });
        let fuel = store.get_fuel().unwrap();
        if result.is_ok() {
            *state = store.into_data();
        }
        (result, pending, fuel)
    };
    let (result, pending, fuel) = run(&mut state, 1, 2, 30);
    result?;
    assert_eq!((pending, state.fetched, state.balances[&1], state.balances[&2]), (3, 3, 70, 35));
    assert!(fuel < 10_000 && fuel > 9_000, "{fuel}");
    let (result, pending, _) = run(&mut state, 1, 2, 71);
    assert_eq!(result.unwrap_err().downcast_ref(), Some(&Trap::UnreachableCodeReached));
    assert_eq!((pending, state.balances[&1], state.balances[&2]), (2, 70, 35));
    let (result, _, _) = run(&mut state, 1, 9, 1);
    assert_eq!(result.unwrap_err().root_cause().to_string(), "account 9 is unknown");
    assert_eq!(state.balances[&1], 70);

    // It yields while it works, and consumes the same.
    let consumed = |interval: Option<u64>| -> Result<(usize, u64)> {
        let mut store = Store::new(engine, state.clone());
        store.set_fuel(100_000)?;
        store.fuel_async_yield_interval(interval)?;
        let (called, pending) = block_on(async {
            let instance = linker.instantiate_async(&mut store, &module).await?;
            instance.get_typed_func::<i32, ()>(&mut store, "work")?.call_async(&mut store, 1_000).await
        });
        called?;
        Ok((pending, 100_000 - store.get_fuel()?))
    };
    let (pending, whole) = consumed(None)?;
    assert_eq!(pending, 0);
    let (pending, fuel) = consumed(Some(whole / 10))?;
    assert!((8..=10).contains(&pending) && fuel == whole, "{pending} {fuel} {whole}");

    // Work without end stops, and a synchronous call of such a store is an error.
    let mut store = Store::new(engine, state);
    store.set_fuel(1_000)?;
    let (spun, _) = block_on(async {
        let instance = linker.instantiate_async(&mut store, &module).await?;
        instance.get_typed_func::<(), ()>(&mut store, "spin")?.call_async(&mut store, ()).await
    });
    assert_eq!(spun.unwrap_err().downcast_ref(), Some(&Trap::OutOfFuel));
    assert_eq!(store.get_fuel()?, 0);
    let instance = block_on(linker.instantiate_async(&mut store, &module)).0?;
    let spin = instance.get_typed_func::<(), ()>(&mut store, "spin")?;
    assert!(!spin.call(&mut store, ()).unwrap_err().is::<Trap>());
    Ok(())
}
