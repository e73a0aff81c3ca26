//! Every function of the operating-system layer fails, at its first call, its second and so on, and then always, while
//! modules are loaded, compiled, run and freed. The result is the right value or an error that contains the system's:
//! never a panic, never the end of the process. Afterwards everything works.

mod common;

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use weir::fault_injection::{FaultInjection, Function, functions, remove_signal_stack};
use weir::{
    Cache, CacheConfig, Config, Engine, Instance, Module, ProfilingStrategy, RefusedBy, Result, Store, Tier, TierEvent,
    TierEventKind, Trap,
};

/// The environment variable that names the failing function in a child process.
const FUNCTION: &str = "WEIR_TEST_FAILING";
/// The error "operation not permitted".
const EPERM: i32 = 1;

/// Functions of the program besides the named ones, each of about a hundred bytes of code.
const SMALL: i32 = 40;
/// Bytes of code that the engines may have: for stubs and some of the functions.
const BUDGET: usize = 12 << 10;
/// Bytes of data, enough for a module's memory to be mapped from a file.
const DATA: usize = 40 << 10;

fn program() -> Vec<u8> {
    let work: String =
        (1..12).map(|k| format!("(local.set 0 (i32.xor (i32.mul (local.get 0) (i32.const 7)) (i32.const {k})))")).collect();
    let small: String = (0..SMALL)
        .map(|i| format!("(func (export \"{i}\") (param i32) (result i32) {work} (i32.add (local.get 0) (i32.const {i})))"))
        .collect();
    let data = "x".repeat(DATA);
    let text = format!(
        r#"(module
            (memory (export "memory") 1 8)
            (memory $unguarded i64 1 8)
            (data (i32.const 0) "{data}")
            (func (export "sum") (param i32) (result i32) (local i32)
                (loop $again
                    (local.set 1 (i32.add (local.get 1) (local.get 0)))
                    (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
                (local.get 1))
            (func $fib (export "fib") (param i32) (result i32)
                (if (result i32) (i32.lt_s (local.get 0) (i32.const 2))
                    (then (local.get 0))
                    (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1)))
                                   (call $fib (i32.sub (local.get 0) (i32.const 2)))))))
            (func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))
            (func (export "grow_unguarded") (param i32) (result i32)
                (i32.wrap_i64 (memory.grow $unguarded (i64.extend_i32_u (local.get 0)))))
            (func (export "byte") (param i32) (result i32) (i32.load8_u (local.get 0)))
            (func (export "set") (param i32) (result i32)
                (i32.store8 (local.get 0) (i32.const 9)) (i32.load8_u (local.get 0)))
            (func $deep (export "deep") (param i32) (result i32) (i32.add (call $deep (local.get 0)) (i32.const 1)))
            (func (export "divide") (param i32) (result i32) (i32.div_s (i32.const 7) (local.get 0)))
            {small})"#
    );
    wat::parse_str(text).expect("a module")
}

fn small(i: i32, x: i32) -> i32 {
    (1..12).fold(x, |x, k| x.wrapping_mul(7) ^ k).wrapping_add(i)
}

/// The errors of the steps of a run.
#[derive(Default)]
struct Run {
    errors: Vec<String>,
}

impl Run {
    /// A step that succeeds with this value, or fails.
    fn step<T: PartialEq + Debug>(&mut self, what: &str, result: Result<T>, expected: T) {
        match result {
            Ok(value) => assert_eq!(value, expected, "{what}"),
            Err(error) => self.fails(what, &error),
        }
    }

    /// A step that grows a memory from this many pages, or does not.
    fn grows(&mut self, what: &str, result: Result<i32>, from: i32) -> bool {
        match result {
            Ok(-1) => self.errors.push(format!("{what}: the memory does not grow: os error")),
            result => {
                let grown = result.is_ok();
                self.step(what, result, from);
                return grown;
            }
        }
        false
    }

    /// A step that ends with this trap, or fails otherwise.
    fn traps(&mut self, what: &str, result: Result<i32>, expected: Trap) {
        let error = result.expect_err(what);
        match error.downcast_ref::<Trap>() {
            Some(trap) => assert_eq!(*trap, expected, "{what}"),
            None => self.fails(what, &error),
        }
    }

    fn fails(&mut self, what: &str, error: &weir::Error) {
        assert_eq!(error.downcast_ref::<Trap>(), None, "{what}: a failure of the host is no trap");
        self.errors.push(format!("{what}: {error:?}"));
    }

    /// Uses everything that needs the system, with these settings.
    fn all(&mut self, file: &Path, config: &Config) {
        let engine = match common::engine(config) {
            Ok(engine) => engine,
            Err(error) => return self.fails("engine", &error),
        };
        // The second instance maps the module's data, and the third gets the stack and the memory of the first.
        for round in 0..2 {
            let module = match Module::from_file(&engine, file) {
                Ok(module) => module,
                Err(error) => return self.fails("module", &error),
            };
            for _ in 0..3 {
                self.instance(&engine, &module);
            }
            if round == 1 {
                // Three stores at a time return more stacks than are kept whole.
                let stores: Vec<_> = (0..3).map(|_| Store::try_new(&engine, ())).collect();
                for store in &stores {
                    if let Err(error) = store {
                        self.fails("store among others", error);
                    }
                }
                for mut store in stores.into_iter().flatten() {
                    if let Err(error) = Instance::new(&mut store, &module, &[]) {
                        self.fails("instance among others", &error);
                    }
                }
            }
        }
    }

    fn instance(&mut self, engine: &Engine, module: &Module) {
        let mut store = match Store::try_new(engine, ()) {
            Ok(store) => store,
            Err(error) => return self.fails("store", &error),
        };
        let instance = match Instance::new(&mut store, module, &[]) {
            Ok(instance) => instance,
            Err(error) => return self.fails("instance", &error),
        };
        let store = &mut store;
        let mut call = |name: &str, x: i32| instance.get_typed_func::<i32, i32>(&mut *store, name)?.call(&mut *store, x);
        self.step("data", call("byte", DATA as i32 - 1), i32::from(b'x'));
        self.step("no data", call("byte", DATA as i32), 0);
        self.step("store", call("set", 5), 9);
        for _ in 0..3 {
            self.step("loop", call("sum", 3000), 4501500);
            self.step("recursion", call("fib", 12), 144);
        }
        self.traps("out of bounds", call("byte", 65536), Trap::MemoryOutOfBounds);
        if self.grows("memory.grow", call("grow", 2), 1) {
            self.step("new page", call("byte", 3 * 65536 - 1), 0);
            self.step("store to a new page", call("set", 2 * 65536), 9);
        }
        self.grows("memory.grow without guard", call("grow_unguarded", 2), 1);
        self.traps("division", call("divide", 0), Trap::IntegerDivisionByZero);
        self.traps("deep recursion", call("deep", 0), Trap::StackOverflow);
        for round in 0..2 {
            for i in 0..SMALL {
                for x in 0..4 {
                    self.step("small function", call(&i.to_string(), x + round), small(i, x + round));
                }
            }
        }
        if let Some(memory) = instance.get_memory(&mut *store, "memory") {
            let before = memory.size(&*store);
            match memory.grow(&mut *store, 1) {
                Ok(pages) => assert_eq!(pages, before),
                Err(_) => self.errors.push("growing by the host: os error".into()),
            }
        }
    }
}

/// Settings that use different functions of the system.
fn configs() -> Vec<(&'static str, Config)> {
    let with = |tier: Tier, change: &dyn Fn(&mut Config)| {
        let mut config = Config::new();
        config.tier(tier).tier_up_threshold(Some(2)).max_code_size(BUDGET);
        change(&mut config);
        config
    };
    let mut configs = vec![
        ("interpreter", with(Tier::Interpreter, &|_| ())),
        ("baseline", with(Tier::Baseline, &|_| ())),
        (
            "native",
            with(Tier::Native, &|config| {
                config.synchronous_compilation(true).profiler(ProfilingStrategy::JitDump);
            }),
        ),
        (
            "auto",
            with(Tier::Auto, &|config| {
                config.profiler(ProfilingStrategy::PerfMap).compiler_threads(2);
            }),
        ),
        (
            "without guard regions",
            with(Tier::Native, &|config| {
                config.guard_regions(false).signals_based_traps(false);
            }),
        ),
    ];
    configs.push((
        "cached",
        with(Tier::Auto, &|config| {
            let mut settings = CacheConfig::new();
            settings.with_directory(cache_directory());
            config.cache(Some(Cache::new(settings).unwrap()));
        }),
    ));
    if cfg!(feature = "cranelift") {
        configs.push(("cranelift", with(Tier::Cranelift, &|_| ())));
    }
    configs
}

/// The directory of this process's cache.
fn cache_directory() -> PathBuf {
    format!("cache-{}", std::process::id()).into()
}

/// Runs it on a thread as a C program may have: with a small stack, and none for signals.
fn on_a_bare_thread<R: Send>(run: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let bare = || {
            remove_signal_stack();
            run()
        };
        std::thread::Builder::new().stack_size(1 << 20).spawn_scoped(scope, bare).unwrap().join().unwrap()
    })
}

fn run(file: &Path, config: &Config) -> Vec<String> {
    on_a_bare_thread(|| {
        let mut run = Run::default();
        run.all(file, config);
        run.errors
    })
}

/// In a process of its own: `function` fails, and after that everything works.
fn failing(function: &'static Function, folder: &Path) {
    // A panic must not happen even if it is caught.
    std::panic::set_hook(Box::new(|info| {
        eprintln!("{info}\n{}", std::backtrace::Backtrace::force_capture());
        std::process::abort();
    }));
    let file = folder.join("program.wasm");
    let mut fired = 0;
    for (name, config) in configs() {
        let views: &[bool] = if OF_CODE_FILES.contains(&function.name()) { &[true, false] } else { &[true] };
        for &with_views in views {
            for calls in CALLS {
                eprintln!("{}, calls {calls:?}, {name}, second views of anonymous memory: {with_views}", function.name());
                let failed = while_failing(function, calls, with_views, &file, &config);
                fired += failed;
                // It is called less often.
                if failed == 0 {
                    break;
                }
            }
            let errors = run(&file, &config);
            assert!(errors.is_empty(), "afterwards: {errors:?}");
        }
    }
    let _ = std::fs::remove_file(format!("/tmp/perf-{}.map", std::process::id()));
    let _ = std::fs::remove_dir_all(cache_directory());
    println!("fired: {fired}");
}

/// The calls of a function that fail, as pairs of the first and the last. The first pair is all calls.
const CALLS: [(u64, u64); 7] = [(1, u64::MAX), (1, 1), (2, 2), (3, 3), (5, 5), (10, 10), (30, 30)];

/// Functions that are only called if code memory is a file.
const OF_CODE_FILES: [&str; 4] =
    ["weir::mapping::shared_file", "weir::mapping::keep_from_forks", "weir::file::in_memory", "weir::file::set_len"];

/// Runs the program while these calls of `function` fail. Without `with_views`, all calls that map a second view of anonymous memory
/// fail too, so that code memory is a file. Returns the number of failed calls of `function`.
fn while_failing(function: &'static Function, calls: (u64, u64), with_views: bool, file: &Path, config: &Config) -> u64 {
    let mut faults = FaultInjection::begin();
    if !with_views {
        let views = functions().iter().find(|function| function.name() == "weir::mapping::alias").unwrap();
        faults.fail(views, .., EPERM);
    }
    faults.fail(function, calls.0..=calls.1, EPERM);
    let errors = run(file, config);
    let failed = function.failed();
    for error in errors {
        assert!(error.contains("os error") || error.contains("the system refuses"), "an error without a cause: {error}");
        assert!(failed > 0, "nothing has failed: {error}");
    }
    failed
}

/// A folder with the program.
fn prepare(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("program.wasm"), program()).unwrap();
    folder
}

#[test]
fn every_function_may_fail() {
    if let Ok(name) = std::env::var(FUNCTION) {
        let function = functions().iter().find(|function| function.name() == name).unwrap();
        return failing(function, Path::new("."));
    }
    let folder = prepare("faults");
    let next = AtomicU64::new(0);
    let work = || {
        let mut wrong = Vec::new();
        while let Some(function) = functions().get(next.fetch_add(1, Ordering::Relaxed) as usize) {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", "every_function_may_fail", "--nocapture"]).env(FUNCTION, function.name());
            let started = Instant::now();
            let output = child.current_dir(&folder).output().unwrap();
            let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            println!("{}: {:?}", function.name(), started.elapsed());
            if !output.status.success() {
                let tail: Vec<&str> = errors.lines().rev().take(60).collect();
                let tail: Vec<&str> = tail.into_iter().rev().collect();
                wrong.push(format!("{}: {}\n{}", function.name(), output.status, tail.join("\n")));
            } else if text.contains("fired: 0\n") || !text.contains("fired: ") {
                wrong.push(format!("{} was never called", function.name()));
            }
        }
        wrong
    };
    let wrong: Vec<String> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn names_are_unique_and_a_guard_resets() {
    let mut names: Vec<&str> = functions().iter().map(Function::name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), functions().len());

    let read = functions().iter().find(|function| function.name() == "weir::file::read").unwrap();
    let engine = common::default_engine();
    let folder = prepare("faults-of-reading");
    let load = || Module::from_file(&engine, folder.join("program.wasm"));
    let mut faults = FaultInjection::begin();
    faults.fail(read, 2..3, 5);
    assert!(load().is_ok());
    let error = load().unwrap_err();
    assert!(format!("{error:?}").contains("os error 5"), "{error:?}");
    assert!(load().is_ok());
    assert_eq!((read.calls(), read.failed()), (3, 1));
    faults.fail(read, .., 5);
    assert!(load().is_err());
    drop(faults);
    assert!(load().is_ok());
    assert_eq!((read.calls(), read.failed()), (1, 1), "no calls are counted any more");
}

/// Calls of the small functions of the program on a thread with this little stack, until each was compiled or refused a thread:
/// how many were compiled, and how many were refused because there was too little stack.
fn on_little_stack(stack: usize, config: &Config, events: impl Fn(&TierEvent<'_>) + Send + Sync + 'static) -> (u32, u32) {
    let work = || {
        let engine = common::engine_with_events(config, events).unwrap();
        let module = Module::new(&engine, program()).unwrap();
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        for x in 0..8 {
            for i in 0..SMALL {
                let func = instance.get_typed_func::<i32, i32>(&mut store, &i.to_string()).unwrap();
                assert_eq!(func.call(&mut store, x).unwrap(), small(i, x));
            }
        }
        let functions = module.stats().functions;
        assert!(functions.fallbacks.iter().all(|fallback| fallback.by == RefusedBy::Stack), "{functions:?}");
        (functions.native as u32, functions.fallbacks.len() as u32)
    };
    std::thread::scope(|scope| std::thread::Builder::new().stack_size(stack).spawn_scoped(scope, work).unwrap().join().unwrap())
}

/// Without compiler threads the guest's thread compiles, but never with less stack than the compiler needs.
#[test]
fn without_compiler_threads_code_is_compiled_where_there_is_stack() {
    let find = |name: &str| functions().iter().find(|function| function.name() == name).unwrap();
    let (spawn, scoped) = (find("weir::thread::spawn"), find("weir::thread::run_on_stack"));
    let mut config = Config::new();
    config.tier_up_threshold(Some(2)).compiler_threads(1).baseline(false);
    let events = Arc::new(Mutex::new(0));
    let counted = events.clone();
    let count = move |event: &TierEvent<'_>| {
        if let TierEventKind::Refused { by: RefusedBy::Stack, interpreted: true, .. } = event.kind {
            *counted.lock().unwrap() += 1;
        }
    };
    let mut faults = FaultInjection::begin();
    faults.fail(spawn, .., EPERM);
    // Counted, while none fails.
    faults.fail(scoped, 0..0, EPERM);
    assert_eq!(on_little_stack(8 << 20, &config, count.clone()), (SMALL as u32, 0), "on the guest's thread");
    assert_eq!(scoped.calls(), 0);
    assert_eq!(on_little_stack(224 << 10, &config, count.clone()), (SMALL as u32, 0), "on a thread for each");
    assert_eq!((scoped.calls(), scoped.failed()), (SMALL as u64, 0));
    faults.fail(scoped, .., EPERM);
    assert_eq!(on_little_stack(224 << 10, &config, count), (0, SMALL as u32), "nowhere, and each is refused once");
    assert_eq!(*events.lock().unwrap(), SMALL as u32);
    assert!(scoped.failed() >= SMALL as u64);
}
