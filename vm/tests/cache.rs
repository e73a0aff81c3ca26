//! The settings of the cache, and its limits.

#![cfg(all(target_os = "linux", target_arch = "x86_64", feature = "jit", feature = "wat"))]

mod common;

use common::engine;
use std::fs::{self, File, Permissions};
use std::ops::Range;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use weir::{
    Cache, CacheConfig, Caller, Config, Engine, ExternRef, Func, Instance, Module, Store, Tier, Trap, WasmBacktrace,
    WasmBacktraceDetails, WasmCoreDump,
};

/// The path of a directory that does not exist.
fn absent(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    directory
}

/// An engine with a cache in this directory, with these settings.
fn cached(directory: &Path, configure: impl FnOnce(&mut CacheConfig)) -> (Cache, Engine) {
    let mut settings = CacheConfig::new();
    configure(settings.with_directory(directory));
    let cache = Cache::new(settings).unwrap();
    let engine = engine(Config::new().cache(Some(cache.clone()))).unwrap();
    (cache, engine)
}

/// Loads and drops `count` modules that differ, one after another, in a cache with these settings. Returns how many are left, and which: whether
/// a module is found afterwards.
fn fill(name: &str, count: usize, configure: impl Fn(&mut CacheConfig)) -> (usize, Vec<bool>) {
    let (cache, engine) = cached(&absent(name), configure);
    let load = |i: usize| {
        let text = format!("(module (func (export \"f\") (result i32) (i32.const {i})))");
        Module::new(&engine, text).unwrap();
    };
    for i in 0..count {
        load(i);
        // Times of files that are changed at once may be equal.
        thread::sleep(Duration::from_millis(15));
    }
    let left = cache.entries().unwrap().len();
    let found = (0..count).rev().map(|i| {
        let before = cache.cache_hits();
        load(i);
        cache.cache_hits() > before
    });
    (left, found.collect())
}

#[test]
fn the_modules_that_were_used_last_stay() {
    let (left, found) = fill("cache-of-four", 6, |config| {
        config.with_file_count_soft_limit(4).with_file_count_limit_percent_if_deleting(50);
    });
    // The fifth leaves two, the sixth is the third.
    assert_eq!((left, &found[..3]), (3, &[true; 3][..]), "{found:?}");
    let (left, found) = fill("cache-of-bytes", 3, |config| {
        config.with_files_total_size_soft_limit(1).with_files_total_size_limit_percent_if_deleting(0);
    });
    assert_eq!((left, found[0]), (1, true), "{found:?}");
    assert_eq!(fill("cache-of-all", 5, |_| ()), (5, vec![true; 5]));
}

/// The first update finds the directory locked, as by another process.
#[test]
fn what_could_not_be_written_is_written_the_next_time() {
    let directory = absent("cache-locked");
    let (cache, engine) = cached(&directory, |_| ());
    drop(Module::new(&engine, "(module)").unwrap());
    let lock = File::options().write(true).open(directory.join("lock")).unwrap();
    lock.lock().unwrap();
    let module = Module::new(&engine, "(module (func))").unwrap();
    module.update_cache();
    assert_eq!(cache.entries().unwrap_or_default().len(), 0, "the directory is locked");
    lock.unlock().unwrap();
    assert_eq!(cache.entries().unwrap().len(), 1);
    module.update_cache();
    assert_eq!(cache.entries().unwrap().len(), 2);
}

/// The file that is locked counts the entries. If it is damaged, or a writer was killed, the next writer counts them; whether a module is found
/// does not depend on it for longer.
#[test]
fn a_damaged_count_is_made_anew() {
    let directory = absent("cache-count");
    let (cache, engine) = cached(&directory, |config| _ = config.with_file_count_soft_limit(4));
    let load = |i: usize| {
        let before = cache.cache_hits();
        Module::new(&engine, format!("(module (func (export \"f\") (result i32) (i32.const {i})))")).unwrap();
        cache.cache_hits() > before
    };
    assert!((0..3).all(|i| !load(i)) && (0..3).all(load));
    let lock = directory.join("lock");
    let intact = fs::read(&lock).unwrap();
    let mut damages = vec![vec![], intact[..7].to_vec(), intact[..40].to_vec(), vec![0; 40_000], vec![0xFF; 40_000]];
    damages.extend((0..32).map(|at| {
        let mut damaged = intact.clone();
        damaged[at] ^= 1;
        damaged
    }));
    for damaged in damages {
        fs::write(&lock, &damaged).unwrap();
        // It is hashed, or else written, and then found.
        let _ = load(0);
        assert!(load(0), "{:?}", &damaged[..damaged.len().min(32)]);
        load(3);
        assert!(load(3));
        let name = format!("{}-7.weir", "0".repeat(64));
        // An entry of another process that the count does not have, and a file that a killed writer has left.
        fs::write(directory.join("new-1-x"), "x").unwrap();
        fs::write(directory.join(name), "x").unwrap();
        fs::write(&lock, "").unwrap();
        load(4);
        assert!(load(4) && !directory.join("new-1-x").exists());
        assert!(cache.entries().unwrap().len() <= 4, "the limit holds for what was not counted");
        cache.clear().unwrap();
        assert!((0..3).all(|i| !load(i)));
    }
}

/// A directory with the set-group-ID bit passes the bit on to its new subdirectories.
#[test]
fn the_parent_may_give_its_group_to_what_is_in_it() {
    let parent = absent("cache-parent");
    fs::create_dir(&parent).unwrap();
    fs::set_permissions(&parent, Permissions::from_mode(0o2755)).unwrap();
    let directory = parent.join("weir");
    let (cache, engine) = cached(&directory, |_| ());
    drop(Module::new(&engine, "(module)").unwrap());
    assert_eq!(fs::metadata(&directory).unwrap().permissions().mode() & 0o7777, 0o2700);
    assert_eq!(cache.entries().unwrap().len(), 1);
}

#[test]
fn settings_are_returned() {
    let mut config = CacheConfig::new();
    assert_eq!((config.files_total_size_soft_limit(), config.file_count_soft_limit()), (512 << 20, 0x10000));
    config.with_directory("/nowhere").with_baseline_compression_level(5).with_cleanup_interval(Duration::from_secs(9));
    let cache = Cache::new(config.clone()).unwrap();
    assert_eq!((cache.baseline_compression_level(), cache.cleanup_interval()), (5, Duration::from_secs(9)));
    assert_eq!((cache.file_count_limit_percent_if_deleting(), cache.directory().to_str()), (70, Some("/nowhere")));
    let error = Cache::new(config.with_files_total_size_limit_percent_if_deleting(101).clone()).unwrap_err();
    assert!(error.to_string().contains("101 percent"), "{error}");
    assert!(CacheConfig::from_file(Some(Path::new("x"))).is_err() && CacheConfig::from_file(None).is_ok());
}

/// The error of a file that cannot be read is the same with a cache, in which the file is looked for first.
#[test]
fn files_that_cannot_be_read_have_one_error() {
    let cache = Cache::new(CacheConfig::new().with_directory("/nowhere").clone()).unwrap();
    for cache in [Some(cache), None] {
        let engine = engine(Config::new().cache(cache)).unwrap();
        let error = Module::from_file(&engine, "/nowhere/app.wasm").unwrap_err();
        assert_eq!(error.to_string(), "failed to read from `/nowhere/app.wasm`");
        assert_eq!(error.downcast_ref().map(std::io::Error::kind), Some(std::io::ErrorKind::NotFound));
    }
}

/// Damages the bytes of a module in the cache, and its file.
fn damage(directory: &Path, file: &Path) {
    let is_bytes = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "module");
    let mut files = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    let in_cache = files.find(is_bytes).unwrap();
    let len = fs::metadata(file).unwrap().len() as usize;
    // Everything but the header and the index.
    let mut damaged = fs::read(&in_cache).unwrap();
    damaged[1000..len].fill(0);
    fs::write(in_cache, damaged).unwrap();
    fs::write(file, vec![0; len]).unwrap();
}

/// Functions of 48 KiB, `$f0` and so on.
fn large_funcs(funcs: Range<usize>) -> String {
    let drops = |i: usize| format!("(i32.const {i}) drop ").repeat(16_000);
    funcs.map(|i| format!("(func $f{i} (result i32) {} (i32.const {i}))", drops(i))).collect()
}

/// A host function damages the module's bytes in the cache and overwrites the module's file. Functions that ran before still run. A function or a
/// data segment whose bytes were not read yet ends the program with a trap.
#[test]
fn a_module_that_is_damaged_everywhere_ends_its_program() {
    let folder = absent("cache-damaged-everywhere");
    fs::create_dir(&folder).unwrap();
    let path = folder.join("module.wasm");
    let (funcs, data) = (large_funcs(0..20), "data".repeat(50_000));
    let text = format!(
        r#"(module
            (import "" "damage" (func $damage))
            (memory 1)
            (data $passive "{data}")
            {funcs}
            (func (export "read") (result i32) (call $f9))
            (func (export "init") (result i32)
                (call $damage) (memory.init $passive (i32.const 0) (i32.const 100000) (i32.const 4)) (i32.const 9))
            (func (export "call") (result i32) (call $damage) (call $f15)))"#
    );
    let bytes = wat::parse_str(text).unwrap();
    for (tier, func) in [Tier::Auto, Tier::Native].into_iter().flat_map(|tier| ["init", "call"].map(|func| (tier, func))) {
        if !common::is_built(tier) {
            continue;
        }
        fs::write(&path, &bytes).unwrap();
        let directory = folder.join("cache");
        let cache = Cache::new(CacheConfig::new().with_directory(&directory).clone()).unwrap();
        let engine = engine(Config::new().tier(tier).cache(Some(cache))).unwrap();
        let in_parts = || {
            let read = || engine.stats().stored.module_read;
            let before = read();
            let module = Module::from_file(&engine, &path).unwrap();
            (read() > before).then_some(module)
        };
        let module = (0..1000).find_map(|_| in_parts()).expect("the module's bytes are in the cache after some runs");
        let (files, file) = (directory.clone(), path.clone());
        let mut store = Store::new(&engine, ());
        let damage = Func::wrap(&mut store, move || damage(&files, &file));
        let instance = Instance::new(&mut store, &module, &[damage.into()]).unwrap();
        let mut call = |name| instance.get_typed_func::<(), i32>(&mut store, name).unwrap().call(&mut store, ());
        assert_eq!(call("read").unwrap(), 9);
        let error = call(func).unwrap_err();
        assert_eq!(error.downcast_ref(), Some(&Trap::ModuleUnreadable), "{tier:?} {func}: {error:?}");
        assert_eq!(call("read").unwrap(), 9);
        assert!(call(func).is_err());
        drop((store, module, engine));
        fs::remove_dir_all(&directory).unwrap();
    }
}

/// Optimised code of an earlier process traps as it would, although no byte of the module can be read any more. Its backtrace and a core dump say what
/// is known.
#[test]
fn stored_code_of_a_damaged_module_traps() {
    const TRAPS: [(&str, Trap, &str); 7] = [
        ("unreachable", Trap::UnreachableCodeReached, "(if (local.get 0) (then unreachable)) (i32.const 1)"),
        ("bounds", Trap::MemoryOutOfBounds, "(i32.load (i32.mul (local.get 0) (i32.const 65536)))"),
        ("far", Trap::MemoryOutOfBounds, "(i32.store offset=65532 (local.get 0) (i32.const 1)) (i32.const 1)"),
        ("divide", Trap::IntegerDivisionByZero, "(i32.div_u (i32.const 5) (i32.eqz (local.get 0)))"),
        ("null", Trap::IndirectCallToNull, "(call_indirect (type $unary) (i32.const 0) (local.get 0))"),
        ("type", Trap::BadSignature, "(call_indirect (type $unary) (i32.const 0) (i32.shl (local.get 0) (i32.const 1)))"),
        ("deep", Trap::StackOverflow, "(call $down (i32.add (i32.mul (local.get 0) (i32.const 1000000000)) (i32.const 20)))"),
    ];
    let folder = absent("cache-damaged-traps");
    fs::create_dir(&folder).unwrap();
    let path = folder.join("module.wasm");
    let traps: String = TRAPS
        .iter()
        .map(|(name, _, body)| {
            format!(
                r#"(func ${name} (param i32) (result i32) {body})
                (func $call_{name} (export "{name}") (param i32) (result i32) (i32.add (call ${name} (local.get 0)) (i32.const 1)))"#
            )
        })
        .collect();
    let text = format!(
        r#"(module $app
            (type $unary (func (param i32) (result i32)))
            (memory 1)
            (table 3 funcref)
            (elem (i32.const 0) $one)
            (elem (i32.const 2) $f0)
            {}
            (func $one (type $unary) (i32.const 1))
            (func $down (param i32) (result i32)
                (if (i32.eqz (local.get 0)) (then (return (i32.const 1))))
                (i32.add (call $down (i32.sub (local.get 0) (i32.const 1))) (i32.const 1)))
            (func (export "never") (param i32) (result i32) (local.get 0))
            {traps}
            {})"#,
        large_funcs(0..12),
        // Sections that are read are in other pieces of the file than the functions that trap.
        large_funcs(12..24),
    );
    let bytes = wat::parse_str(text).unwrap();
    for (tier, dumps) in [(Tier::Auto, false), (Tier::Native, false), (Tier::Native, true)] {
        if !common::is_built(tier) {
            continue;
        }
        fs::write(&path, &bytes).unwrap();
        let directory = folder.join("cache");
        let cache = Cache::new(CacheConfig::new().with_directory(&directory).clone()).unwrap();
        let mut config = Config::new();
        config.tier(tier).cache(Some(cache)).synchronous_compilation(true).tier_up_threshold(Some(1));
        config.coredump_on_trap(dumps).wasm_backtrace_details(match dumps {
            true => WasmBacktraceDetails::Enable,
            false => WasmBacktraceDetails::Disable,
        });
        let engine = engine(&config).unwrap();
        let call = |store: &mut Store<()>, instance: &Instance, name: &str, arg: i32| {
            instance.get_typed_func::<i32, i32>(&mut *store, name).unwrap().call(&mut *store, arg)
        };
        let new = |module: &Module| {
            let mut store = Store::new(&engine, ());
            let instance = Instance::new(&mut store, module, &[]).unwrap();
            (store, instance)
        };
        let load = || {
            let read = engine.stats().stored.module_read;
            let module = Module::from_file(&engine, &path).unwrap();
            let is_in_parts = engine.stats().stored.module_read > read;
            (module, is_in_parts)
        };
        let took_all = |module: &Module| {
            let stats = module.stats();
            stats.stored.optimised >= TRAPS.len() as u64 && stats.functions.native == 0
        };
        // Each run compiles what earlier ones have not.
        let has_all = || {
            let (module, is_in_parts) = load();
            let (mut store, instance) = new(&module);
            for (name, ..) in TRAPS {
                (0..3).for_each(|_| assert!(call(&mut store, &instance, name, 0).is_ok(), "{name}"));
            }
            is_in_parts && took_all(&module)
        };
        assert!((0..1000).any(|_| has_all()), "the module's bytes and code are in the cache after some runs");
        let (module, is_in_parts) = load();
        assert!(is_in_parts);
        damage(&directory, &path);
        let (mut store, instance) = new(&module);
        for round in 0..2 {
            for (name, trap, _) in TRAPS {
                let what = format!("{tier:?} {dumps} {round} {name}");
                let error = call(&mut store, &instance, name, 1).unwrap_err();
                assert_eq!(error.downcast_ref(), Some(&trap), "{what}: {error:?}");
                let trace = error.downcast_ref::<WasmBacktrace>().expect(&what);
                let frame = trace.frames().last().unwrap();
                assert_eq!(frame.module().name(), Some("app"), "{what}");
                assert!(trace.frames().iter().all(|frame| frame.symbols().is_empty()), "{what}");
                assert!(format!("{error:?}").contains("wasm backtrace"), "{what}: {error:?}");
                let dump = error.downcast_ref::<WasmCoreDump>();
                assert_eq!(dump.is_some(), dumps, "{what}");
                let _ = dump.map(|dump| dump.serialize(&mut store, "app"));
            }
            // A call that does not trap still returns. A function that has never run ends the program.
            assert_eq!(call(&mut store, &instance, "divide", 0).unwrap(), 6);
            let error = call(&mut store, &instance, "never", 0).unwrap_err();
            assert_eq!(error.downcast_ref(), Some(&Trap::ModuleUnreadable), "{tier:?} {dumps} {round}: {error:?}");
        }
        assert!(took_all(&module), "{:?} {:?}", module.stats().stored, module.stats().functions);
        drop((store, module, engine));
        fs::remove_dir_all(&directory).unwrap();
    }
}

/// Baseline code of an earlier process goes on, collections and requests of better code included, although no byte of the module can be read any more.
#[test]
fn stored_baseline_code_of_a_damaged_module_goes_on() {
    if !common::is_built(Tier::Auto) {
        return;
    }
    let folder = absent("cache-damaged-baseline");
    fs::create_dir(&folder).unwrap();
    let (path, directory) = (folder.join("module.wasm"), folder.join("cache"));
    let text = format!(
        r#"(module
            (import "" "touch" (func $touch))
            {}
            (func $work (export "work") (param $n i32) (result i32) (local $sum i32)
                (call $touch)
                (loop $again
                    (local.set $sum (i32.add (local.get $sum) (local.get $n)))
                    (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
                (call $touch)
                (local.get $sum))
            {})"#,
        large_funcs(0..12),
        large_funcs(12..24),
    );
    fs::write(&path, wat::parse_str(text).unwrap()).unwrap();
    let cache = Cache::new(CacheConfig::new().with_directory(&directory).clone()).unwrap();
    let engine = engine(Config::new().tier(Tier::Auto).cache(Some(cache))).unwrap();
    // Returns whether stored baseline code ran while the module was damaged.
    let run = || {
        let read = engine.stats().stored.module_read;
        let module = Module::from_file(&engine, &path).unwrap();
        let is_in_parts = engine.stats().stored.module_read > read;
        let mut store = Store::new(&engine, false);
        let (files, file) = (directory.clone(), path.clone());
        let touch = Func::wrap(&mut store, move |mut caller: Caller<'_, bool>| {
            if *caller.data() {
                damage(&files, &file);
                (0..10).for_each(|i| _ = ExternRef::new(&mut caller, i).unwrap());
                caller.gc(None).unwrap();
            }
        });
        let instance = Instance::new(&mut store, &module, &[touch.into()]).unwrap();
        let work = instance.get_typed_func::<i32, i32>(&mut store, "work").unwrap();
        if !is_in_parts || module.stats().stored.baseline == 0 {
            assert_eq!(work.call(&mut store, 300).unwrap(), 300 * 301 / 2);
            return false;
        }
        *store.data_mut() = true;
        // Long enough for better code to be requested, in the loop and at calls.
        let expected = (1..=1_000_000i32).fold(0, i32::wrapping_add);
        for _ in 0..10 {
            assert_eq!(work.call(&mut store, 1_000_000).unwrap(), expected);
        }
        true
    };
    assert!((0..1000).any(|_| run()), "the module's bytes and baseline code are in the cache after some runs");
    fs::remove_dir_all(folder).unwrap();
}
