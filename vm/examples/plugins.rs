//! A host for untrusted plug-ins. Each has limits on memory, fuel and time, fails alone, and can be replaced while the
//! host runs: `cargo run -p weir-vm --example plugins`.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::Duration;
use weir::error::Context;
use weir::{Config, Engine, InstancePre, Linker, Module, Result, Store, StoreLimits, StoreLimitsBuilder, Trap};

/// The limits of a plug-in in one call.
const MEMORY: usize = 1 << 20;
const FUEL: u64 = 10_000_000;
/// In ticks of the host's clock: five seconds, which a plug-in may need on a busy machine. The fuel ends an endless one sooner.
const TIME: u64 = 50;
const TICK: Duration = Duration::from_millis(100);

/// The host's state for one call of a plug-in.
struct Sandbox {
    limits: StoreLimits,
    log: Vec<i64>,
}

struct Host {
    engine: Engine,
    linker: Linker<Sandbox>,
    plugins: BTreeMap<String, InstancePre<Sandbox>>,
}

impl Host {
    fn new() -> Result<Host> {
        let mut config = Config::new();
        config.consume_fuel(true).epoch_interruption(true).max_wasm_stack(256 << 10);
        let engine = Engine::new(&config)?;
        let mut linker = Linker::new(&engine);
        linker.func_wrap("host", "log", |mut caller: weir::Caller<'_, Sandbox>, n: i64| caller.data_mut().log.push(n))?;
        Ok(Host { engine, linker, plugins: BTreeMap::new() })
    }

    /// Loads a plug-in, in the place of an earlier one with the same name. Running calls finish with the old one.
    fn load(&mut self, name: &str, code: &str) -> Result<()> {
        let module = Module::new(&self.engine, code).with_context(|| format!("loading {name}"))?;
        let plugin = self.linker.instantiate_pre(&module).with_context(|| format!("linking {name}"))?;
        self.plugins.insert(name.to_owned(), plugin);
        Ok(())
    }

    /// Calls a plug-in in a new store, which is dropped with everything that the plug-in made in it.
    fn call(&self, name: &str, argument: i64) -> Result<(i64, Vec<i64>)> {
        let plugin = self.plugins.get(name).with_context(|| format!("no plug-in {name}"))?;
        let limits = StoreLimitsBuilder::new().memory_size(MEMORY).table_elements(1000).instances(1).build();
        let mut store = Store::new(&self.engine, Sandbox { limits, log: Vec::new() });
        store.limiter(|sandbox| &mut sandbox.limits);
        store.set_fuel(FUEL)?;
        store.set_epoch_deadline(TIME);
        let instance = plugin.instantiate(&mut store)?;
        let run = instance.get_typed_func::<i64, i64>(&mut store, "run")?;
        let result = run.call(&mut store, argument)?;
        Ok((result, store.into_data().log))
    }
}

const DOUBLE: &str = r#"(module
    (import "host" "log" (func $log (param i64)))
    (func (export "run") (param i64) (result i64)
        (call $log (local.get 0)) (i64.mul (local.get 0) (i64.const 2))))"#;
const TRIPLE: &str = r#"(module (func (export "run") (param i64) (result i64) (i64.mul (local.get 0) (i64.const 3))))"#;
const GREEDY: &str = r#"(module (memory 1)
    (func (export "run") (param i64) (result i64) (i64.extend_i32_s (memory.grow (i32.const 16)))))"#;
const ENDLESS: &str = r#"(module (func (export "run") (param i64) (result i64) (loop (br 0)) (unreachable)))"#;
const DEEP: &str =
    r#"(module (func $f (export "run") (param i64) (result i64) (i64.add (i64.const 1) (call $f (local.get 0)))))"#;

fn main() -> Result<()> {
    let mut host = Host::new()?;
    // The clock by which plug-ins are stopped.
    let (stop, stopped) = mpsc::channel::<()>();
    let engine = host.engine.clone();
    let clock = std::thread::spawn(move || {
        while stopped.recv_timeout(TICK) == Err(mpsc::RecvTimeoutError::Timeout) {
            engine.increment_epoch();
        }
    });

    for (name, code) in [("scale", DOUBLE), ("greedy", GREEDY), ("endless", ENDLESS), ("deep", DEEP)] {
        host.load(name, code)?;
    }
    assert_eq!(host.call("scale", 21)?, (42, vec![21]));
    assert_eq!(host.call("greedy", 0)?.0, -1, "it is told that there is no more memory");
    let trap = |name| host.call(name, 0).unwrap_err().downcast_ref::<Trap>().copied();
    let endless = trap("endless");
    assert!(matches!(endless, Some(Trap::OutOfFuel | Trap::Interrupt)), "{endless:?}");
    assert!(matches!(trap("deep"), Some(Trap::StackOverflow | Trap::OutOfFuel | Trap::Interrupt)));

    // A better version arrives; a broken one is refused and changes nothing.
    host.load("scale", TRIPLE)?;
    assert_eq!(host.call("scale", 21)?.0, 63);
    let error = host.load("scale", r#"(module (import "host" "format_disk" (func)))"#).unwrap_err();
    println!("{error:#}");
    assert_eq!(host.call("scale", 21)?.0, 63);

    drop(stop);
    clock.join().expect("the clock does not panic");
    println!("all plug-ins did as they should, or were stopped");
    Ok(())
}

#[test]
fn runs() -> Result<()> {
    main()
}
