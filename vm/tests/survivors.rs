//! An engine, its stores and its instances outlive failures of the system: functions of the operating-system layer fail while they
//! are in use, and then the next call in the same engine and store is right, and the process has what it had before.

mod common;

use common::{process, resident, until};
use std::fmt::Debug;
use std::fs;
use std::path::PathBuf;
use weir::fault_injection::{FaultInjection, Function, functions, remove_signal_stack};
use weir::{Cache, CacheConfig, Config, Engine, Instance, Module, Result, Store, Tier, Trap};

/// The error "operation not permitted".
const EPERM: i32 = 1;
/// The error of a limit on a process's memory.
const ENOMEM: i32 = 12;

/// Functions of the program besides the named ones, each of some dozens of bytes of code.
const SMALL: i32 = 20;
/// Bytes of code that the engines may have: for stubs and some of the functions, so that code is freed and compiled again.
const BUDGET: usize = 8 << 10;
/// Bytes of data, enough for a module's memory to be mapped from a file.
const DATA: usize = 40 << 10;

fn program() -> Vec<u8> {
    let work: String =
        (1..5).map(|k| format!("(local.set 0 (i32.xor (i32.mul (local.get 0) (i32.const 7)) (i32.const {k})))")).collect();
    let small: String = (0..SMALL)
        .map(|i| format!("(func (export \"{i}\") (param i32) (result i32) {work} (i32.add (local.get 0) (i32.const {i})))"))
        .collect();
    let data = "x".repeat(DATA);
    let text = format!(
        r#"(module
            (memory (export "memory") 1 4096)
            (data (i32.const 0) "{data}")
            (func (export "count") (param i32) (result i32)
                (i32.store (i32.const 65532) (i32.add (i32.load (i32.const 65532)) (local.get 0)))
                (i32.load (i32.const 65532)))
            (func (export "sum") (param i32) (result i32) (local i32)
                (loop $again
                    (local.set 1 (i32.add (local.get 1) (local.get 0)))
                    (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
                (local.get 1))
            (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
            (func (export "byte") (param i32) (result i32) (i32.load8_u (local.get 0)))
            (func $deep (export "deep") (param i32) (result i32) (i32.add (call $deep (local.get 0)) (i32.const 1)))
            (func (export "divide") (param i32) (result i32) (i32.div_s (i32.const 7) (local.get 0)))
            {small})"#
    );
    wat::parse_str(text).expect("a module")
}

fn small(i: i32, x: i32) -> i32 {
    (1..5).fold(x, |x, k| x.wrapping_mul(7) ^ k).wrapping_add(i)
}

fn find(name: &str) -> &'static Function {
    functions().iter().find(|function| function.name() == name).expect("there is such a function")
}

/// The results of steps, which are right or, while functions fail, errors of the host.
struct Steps {
    failing: Option<&'static Function>,
}

impl Steps {
    fn gives<T: PartialEq + Debug>(&self, what: &str, result: Result<T>, expected: T) -> bool {
        match result {
            Ok(value) => assert_eq!(value, expected, "{what}, {self:?}"),
            Err(error) => {
                self.fails(what, &error);
                return false;
            }
        }
        true
    }

    fn traps(&self, what: &str, result: Result<i32>, expected: Trap) {
        let error = result.expect_err(what);
        match error.downcast_ref::<Trap>() {
            Some(trap) => assert_eq!(*trap, expected, "{what}, {self:?}"),
            None => self.fails(what, &error),
        }
    }

    fn fails(&self, what: &str, error: &weir::Error) {
        let has_failed = self.failing.is_some_and(|function| function.failed() > 0);
        assert!(has_failed && !error.is::<Trap>(), "{what}, {self:?}: {error:?}");
    }
}

impl Debug for Steps {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.failing {
            Some(function) => write!(f, "while {} fails", function.name()),
            None => f.write_str("while nothing fails"),
        }
    }
}

/// An instance of the program in a store of its own.
struct Guest {
    store: Store<()>,
    instance: Instance,
    /// What `count` has counted.
    count: i32,
    pages: i32,
    /// The small function that is called next.
    next: i32,
}

impl Guest {
    fn new(engine: &Engine, module: &Module) -> Result<Guest> {
        let mut store = Store::try_new(engine, ())?;
        let instance = Instance::new(&mut store, module, &[])?;
        Ok(Guest { store, instance, count: 0, pages: 1, next: 0 })
    }

    fn call(&mut self, name: &str, x: i32) -> Result<i32> {
        self.instance.get_typed_func::<i32, i32>(&mut self.store, name)?.call(&mut self.store, x)
    }

    /// Uses the program.
    fn run(&mut self, steps: &Steps) {
        self.run_briefly(steps);
        steps.traps("deep recursion", self.call("deep", 0), Trap::StackOverflow);
        for _ in 0..2 {
            for x in 0..3 {
                let i = self.next % SMALL;
                steps.gives("small function", self.call(&i.to_string(), x), small(i, x));
            }
            self.next += 1;
        }
    }

    /// Uses the memory, a loop and two traps.
    fn run_briefly(&mut self, steps: &Steps) {
        steps.gives("data", self.call("byte", DATA as i32 - 1), i32::from(b'x'));
        let counted = self.call("count", 1);
        self.count += i32::from(steps.gives("the state of the instance", counted, self.count + 1));
        steps.gives("loop", self.call("sum", 3000), 4501500);
        steps.traps("out of bounds", self.call("byte", self.pages * 65536), Trap::MemoryOutOfBounds);
        steps.traps("division", self.call("divide", 0), Trap::IntegerDivisionByZero);
        match self.call("grow", 1) {
            Ok(-1) => assert!(steps.failing.is_some_and(|function| function.failed() > 0), "no growth"),
            result => self.pages += i32::from(steps.gives("growth", result, self.pages)),
        }
        steps.gives("the last byte", self.call("byte", self.pages * 65536 - 1), 0);
    }
}

/// An engine with an instance that stays.
struct World {
    engine: Engine,
    module: Module,
    guest: Guest,
    bytes: Vec<u8>,
    modules: i32,
}

impl World {
    fn new(config: &Config) -> World {
        let engine = common::engine(config).expect("valid settings");
        let bytes = program();
        let module = Module::new(&engine, &bytes).expect("it is valid");
        let guest = Guest::new(&engine, &module).expect("no imports");
        World { engine, module, guest, bytes, modules: 0 }
    }

    /// Uses what there was, and makes new stores, instances and modules in the engine. The thread has no stack for signals, as if a C
    /// program had made it.
    fn run(&mut self, steps: &Steps) {
        std::thread::scope(|scope| {
            let bare = || {
                remove_signal_stack();
                self.guest.run(steps);
                match Guest::new(&self.engine, &self.module) {
                    Ok(mut guest) => guest.run_briefly(steps),
                    Err(error) => steps.fails("another instance", &error),
                }
                match Module::new(&self.engine, &self.bytes).and_then(|module| Guest::new(&self.engine, &module)) {
                    Ok(mut guest) => _ = steps.gives("another module", guest.call("sum", 10), 55),
                    Err(error) => steps.fails("another module", &error),
                }
                // No cache has this module.
                self.modules += 1;
                let text = format!(r#"(module (func (export "f") (param i32) (result i32) (i32.const {})))"#, self.modules);
                match Module::new(&self.engine, text).and_then(|module| Guest::new(&self.engine, &module)) {
                    Ok(mut guest) => _ = steps.gives("a new module", guest.call("f", 0), self.modules),
                    Err(error) => steps.fails("a new module", &error),
                }
            };
            std::thread::Builder::new().stack_size(1 << 20).spawn_scoped(scope, bare).unwrap().join().unwrap();
        });
    }

    /// The functions that running calls.
    fn called(&mut self) -> Vec<&'static Function> {
        let mut faults = FaultInjection::begin();
        for function in functions() {
            faults.fail(function, 0..0, EPERM);
        }
        let steps = Steps { failing: None };
        (0..2).for_each(|_| self.run(&steps));
        functions().iter().filter(|function| function.calls() > 0).collect()
    }

    /// For each of these functions, runs while these of its calls fail, and then while none fails.
    fn outlives(&mut self, which: &[&'static Function], calls: (u64, u64), errno: i32) {
        for function in which {
            let mut faults = FaultInjection::begin();
            faults.fail(function, calls.0..=calls.1, errno);
            self.run(&Steps { failing: Some(function) });
            drop(faults);
            self.run(&Steps { failing: None });
        }
    }
}

/// Settings that use different functions of the system.
fn configs() -> Vec<(&'static str, Config)> {
    let with = |tier: Tier, change: &dyn Fn(&mut Config)| {
        let mut config = Config::new();
        config.tier(tier).tier_up_threshold(Some(2)).max_code_size(BUDGET).compiler_threads(1);
        change(&mut config);
        config
    };
    vec![
        ("interpreter", with(Tier::Interpreter, &|_| ())),
        ("baseline", with(Tier::Baseline, &|_| ())),
        (
            "cached",
            with(Tier::Auto, &|config| {
                let mut settings = CacheConfig::new();
                settings.with_directory(cache_directory());
                config.cache(Some(Cache::new(settings).expect("valid settings")));
            }),
        ),
    ]
}

/// The directory of this process's cache.
fn cache_directory() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("cache-of-survivors-{}", std::process::id()))
}

fn entries(path: &str) -> usize {
    fs::read_dir(path).expect("Linux has it").count()
}

/// The threads of this process, among them those that have ended and are not yet removed.
fn threads() -> usize {
    entries("/proc/self/task")
}

/// What a process has when all threads but these have ended: descriptors and entries in its map of memory.
fn possessions(remaining: usize) -> [usize; 2] {
    until(|| threads() == remaining);
    let maps = fs::read_to_string("/proc/self/maps").expect("Linux has it").lines().count();
    [entries("/proc/self/fd"), maps]
}

/// Functions whose failure leaves memory mapped: what the system does not unmap, and a signal stack that it does not remove.
const KEEPS_MEMORY: [&str; 2] = ["weir::mapping::unmap", "weir::signals::remove_stack"];

#[test]
fn the_next_call_in_the_same_store_works_and_nothing_is_left() {
    if !process::is_alone("the_next_call_in_the_same_store_works_and_nothing_is_left") {
        return;
    }
    let mut tried: Vec<&str> = Vec::new();
    let remaining = threads();
    for (name, config) in configs() {
        let mut world = World::new(&config);
        let mut called = world.called();
        called.retain(|function| !tried.contains(&function.name()));
        tried.extend(called.iter().map(|function| function.name()));
        let (keep, release): (Vec<_>, Vec<_>) = called.into_iter().partition(|function| KEEPS_MEMORY.contains(&function.name()));
        world.outlives(&release, (2, 2), ENOMEM);
        // The engine and the C library keep some stacks, tables and arenas, as many as threads have used at once. After a while there are
        // no more of them. What a failure leaves behind is left each time.
        let mut history = vec![possessions(remaining)];
        while !history.ends_with(&[history[history.len() - 1]; 2]) {
            assert!(history.len() < 6, "{name}: descriptors and mappings: {history:?}");
            world.outlives(&release, (1, u64::MAX), EPERM);
            history.push(possessions(remaining));
        }
        world.outlives(&keep, (1, u64::MAX), EPERM);
    }
    fs::remove_dir_all(cache_directory()).expect("the cache was used");
    for name in ["mapping::reserve", "mapping::protect", "mapping::zeroed", "thread::spawn", "private_dir::change"] {
        assert!(tried.contains(&&*format!("weir::{name}")), "{name}: {tried:?}");
    }
}

/// Ten thousand times no store, memory or instance is made, and a memory does not grow. A thousand times a function of a new module gets
/// no memory for its code.
#[test]
fn ten_thousand_failures_take_no_memory() {
    if !process::is_alone("ten_thousand_failures_take_no_memory") {
        return;
    }
    let mut config = Config::new();
    config.tier(Tier::Baseline).tier_up_threshold(Some(1));
    let remaining = threads();
    let mut world = World::new(&config);
    let text = r#"(module (memory 1) (func (export "f") (param i32) (result i32) (local.get 0)))"#;
    let without_memory = text.replace("(memory 1)", "");
    let module = Module::new(&world.engine, text).expect("it is valid");
    let mut before = (0, [0; 2]);
    let mut kept = Guest::new(&world.engine, &module).expect("no imports");
    // This thread has its signal stack from then on.
    assert_eq!(kept.call("f", 7).expect("there is memory"), 7);
    let mapping = functions().iter().filter(|function| function.name().starts_with("weir::mapping"));
    let mapping: Vec<_> = mapping.filter(|function| !KEEPS_MEMORY.contains(&function.name())).collect();
    for repetition in 0..10_000 {
        if repetition == 1000 {
            before = (resident(), possessions(remaining));
        }
        // A store keeps the instances that failed in it, so each has a store of its own.
        let mut store = Store::new(&world.engine, ());
        let mut faults = FaultInjection::begin();
        mapping.iter().for_each(|function| faults.fail(function, .., ENOMEM));
        assert!(Guest::new(&world.engine, &module).is_err());
        assert!(Instance::new(&mut store, &module, &[]).is_err());
        assert_eq!(kept.call("f", 7).expect("it needs no memory"), 7);
        assert_eq!(world.guest.call("grow", 1).expect("no trap"), -1);
        if repetition % 10 == 0 {
            let loaded = Module::new(&world.engine, &without_memory).and_then(|module| Instance::new(&mut store, &module, &[]));
            match loaded.and_then(|instance| instance.get_typed_func::<i32, i32>(&mut store, "f")?.call(&mut store, 7)) {
                Ok(result) => assert_eq!(result, 7),
                Err(error) => Steps { failing: Some(find("weir::mapping::protect")) }.fails("a new module", &error),
            }
        }
    }
    let grown = resident().saturating_sub(before.0);
    assert!(grown < 1 << 20, "{grown} bytes more");
    assert_eq!(possessions(remaining), before.1, "descriptors and mappings");
    world.run(&Steps { failing: None });
}
