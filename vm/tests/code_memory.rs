//! Code memory: never writable and executable, and what is installed there does not change.

#![cfg(all(target_os = "linux", feature = "jit", feature = "wat"))]

mod common;

use std::sync::{Arc, Mutex, PoisonError};
use weir::{Cache, CacheConfig, Config, Engine, Instance, Linker, Module, Store, TierEvent, TierEventKind};

const FUNCTIONS: i32 = 40;

/// The tests count mappings of the process: one runs at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Functions that call the host, the one before them, and themselves.
fn program() -> String {
    let function = |i: i32| {
        let before = (i - 1).max(0);
        format!(
            r#"(func $f{i} (export "{i}") (param i32) (result i32)
                (if (i32.eqz (local.get 0)) (then (call $look) (return (i32.const {i}))))
                (i32.add (call $f{before} (i32.const 0)) (call $f{i} (i32.sub (local.get 0) (i32.const 1)))))"#
        )
    };
    let functions: String = (0..FUNCTIONS).map(function).collect();
    format!(r#"(module (import "host" "look" (func $look)) {functions})"#)
}

fn expected(i: i32, x: i32) -> i32 {
    (i - 1).max(0) * x + i
}

/// Calls every function `rounds` times, and the host function `look` from all of them.
fn run(engine: &Engine, rounds: i32, look: impl Fn() + Clone + Send + Sync + 'static) -> weir::Stats {
    let mut linker = Linker::new(engine);
    linker.func_wrap("host", "look", look.clone()).unwrap();
    let (mut store, instance) = common::linked(&linker, &program(), ());
    for x in 0..rounds {
        for i in 0..FUNCTIONS {
            let func = instance.get_typed_func::<i32, i32>(&mut store, &i.to_string()).unwrap();
            assert_eq!(func.call(&mut store, x).unwrap(), expected(i, x));
        }
    }
    look();
    engine.stats()
}

/// How many mappings of this process are executable.
fn executable() -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let with = |wanted: &[char]| -> Vec<&str> {
        let has = |line: &&str| line.split_whitespace().nth(1).is_some_and(|access| wanted.iter().all(|&c| access.contains(c)));
        maps.lines().filter(has).collect()
    };
    assert_eq!(with(&['w', 'x']), Vec::<&str>::new(), "writable and executable");
    with(&['x']).len()
}

/// Whether code is in private memory without a file.
fn has_window() -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().any(|line| line.contains(" r-xp ") && line.split_whitespace().count() == 5)
}

/// Many functions with much code, and one that calls them all.
fn large_program(functions: u32) -> String {
    let steps: String = (0..60)
        .map(|i| format!("(local.set 0 (i32.xor (i32.mul (local.get 0) (i32.const {})) (local.get 1)))", 2 * i + 3))
        .collect();
    let function = |i: u32| {
        format!(
            "(func $f{i} (param i32 i32) (result i32) (local.set 0 (i32.add (local.get 0) (i32.const {i}))) {steps} (local.get 0))"
        )
    };
    let call = |i: u32| format!("(local.set 0 (call $f{i} (local.get 0) (i32.const {i})))");
    let (all, calls): (String, String) = ((0..functions).map(function).collect(), (0..functions).map(call).collect());
    format!("(module {all} (func (export \"all\") (param i32) (result i32) {calls} (local.get 0)))")
}

/// Code of earlier processes is installed in a window. It is used again when the module has been dropped, and several threads may need one.
#[test]
fn stored_code_in_windows() {
    const FUNCTIONS: u32 = 2_500;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("windows");
    let _ = std::fs::remove_dir_all(&directory);
    let cache = Cache::new(CacheConfig::new().with_directory(&directory).clone()).unwrap();
    let with_cache = || {
        let mut config = Config::new();
        config.synchronous_compilation(true).tier_up_threshold(Some(1)).cache(Some(cache.clone()));
        common::engine(&config).unwrap()
    };
    let bytes = wat::parse_str(large_program(FUNCTIONS)).unwrap();
    let run = |engine: &Engine| {
        let module = Module::new(engine, &bytes).unwrap();
        let mut store = Store::new(engine, ());
        let instance = Instance::new(&mut store, &module, &[]).unwrap();
        let all = instance.get_typed_func::<i32, i32>(&mut store, "all").unwrap();
        let results: Vec<i32> = (0..3).map(|x| all.call(&mut store, x).unwrap()).collect();
        executable();
        (results, module.stats().stored, has_window())
    };
    let (expected, _, window) = run(&with_cache());
    assert!(!window);
    let engine = with_cache();
    for _ in 0..3 {
        let (results, stored, window) = run(&engine);
        assert_eq!(results, expected);
        assert!(window && stored.baseline + stored.optimised >= FUNCTIONS.into(), "{window} {stored:?}");
    }
    std::thread::scope(|scope| {
        (0..4).for_each(|_| _ = scope.spawn(|| (0..4).for_each(|_| assert_eq!(run(&engine).0, expected))));
    });
    #[cfg(feature = "fault-injection")]
    for name in ["zero", "protect", "discard", "populate", "keep_from_forks"] {
        use weir::fault_injection::{FaultInjection, functions};
        let function = functions().iter().find(|function| function.name() == format!("weir::mapping::{name}")).unwrap();
        for calls in [1..2, 1..u64::MAX] {
            // Of what an engine maps, only windows are among these calls: the module has no memory.
            let engine = with_cache();
            let mut faults = FaultInjection::begin();
            faults.fail(function, calls, 12);
            assert_eq!(run(&engine).0, expected, "{name}");
            assert!(name == "zero" || function.failed() > 0, "{name}");
            drop(faults);
            assert_eq!(run(&engine).0, expected, "{name}");
        }
    }
    drop(engine);
    assert!(!has_window());
}

/// While code is installed, on this thread or by another, while it runs, and after some of it was freed.
#[test]
fn no_memory_is_writable_and_executable() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let before = executable();
    for synchronous in [true, false] {
        let mut config = Config::new();
        config.synchronous_compilation(synchronous).tier_up_threshold(Some(1)).max_code_size(5 << 10);
        let stats = run(&common::engine(&config).unwrap(), 4, move || assert!(executable() > before, "there is code memory"));
        assert!(!synchronous || stats.functions.native > 0 && stats.freed_bytes > 0, "{stats:?}");
    }
}

/// Code is published, withdrawn and published again, with callers that are compiled before and after their callees.
#[test]
fn installed_code_never_changes() {
    /// Addresses of code, and its bytes.
    type Installed = Vec<(usize, Vec<u8>)>;
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    for seed in [None, Some(1), Some(2)] {
        let installed = Arc::new(Mutex::new(Installed::new()));
        let listener = installed.clone();
        let mut config = Config::new();
        config.synchronous_compilation(true).tier_up_threshold(Some(2)).stress(seed);
        let events = move |event: &TierEvent<'_>| {
            let mut installed = listener.lock().unwrap();
            match &event.kind {
                TierEventKind::Compiled { code, .. } => installed.push((code.as_ptr().expose_provenance(), code.to_vec())),
                // Some of the code may be freed from now on.
                TierEventKind::Retired { .. } => installed.clear(),
                _ => (),
            }
        };
        let looks = Arc::new(Mutex::new(0));
        let look = {
            let (installed, looks) = (installed.clone(), looks.clone());
            move || {
                for (address, bytes) in installed.lock().unwrap().iter() {
                    // SAFETY: the module lives, and none of its code was retired since this was installed.
                    let now =
                        unsafe { std::slice::from_raw_parts(std::ptr::with_exposed_provenance::<u8>(*address), bytes.len()) };
                    assert_eq!(now, bytes, "code at {address:#x}");
                    *looks.lock().unwrap() += 1;
                }
            }
        };
        let stats = run(&common::engine_with_events(&config, events).unwrap(), 24, look);
        let looks = *looks.lock().unwrap();
        assert!(stats.functions.native > 0 && looks > 1000, "{looks} looks, {stats:?}");
    }
}
