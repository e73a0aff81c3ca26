//! Modules that are compiled ahead of time: they run as if they had been loaded and compiled here, whatever happens to their bytes.

use crate::common;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use weir::{
    Cache, CacheConfig, Caller, Config, Engine, ExternRef, Inlining, Linker, Module, ModuleVersionStrategy, OperatorCost,
    OptLevel, Precompiled, Rooted, Store, StoredStats, Tier, Trap, Unavailable,
};

/// A module whose code has an entry in every table, which `tests/tests/every_table.rs` asserts: cells, signatures, traps, calls, landings, handlers,
/// roots, loops, vectors, data, elements. The calls of `$keep` have different roots.
const TEXT: &str = include_str!("../every_table.wat");

/// The results of calls of all functions but one. The functions for host values collect, so that each root is used.
fn outcome(module: &Module) -> Vec<String> {
    let mut linker = Linker::new(module.engine());
    linker.func_wrap("host", "add", |_: Caller<'_, ()>, a: i32, b: i32| a.wrapping_add(b)).unwrap();
    let make = |mut caller: Caller<'_, ()>, number: i32| -> weir::Result<Option<Rooted<ExternRef>>> {
        caller.gc(None)?;
        ExternRef::new(&mut caller, number).map(Some)
    };
    let number = |mut caller: Caller<'_, ()>, value: Option<Rooted<ExternRef>>| -> weir::Result<i32> {
        caller.gc(None)?;
        Ok(*value.unwrap().data(&caller)?.unwrap().downcast_ref::<i32>().unwrap())
    };
    linker.func_wrap("host", "make", make).unwrap().func_wrap("host", "number", number).unwrap();
    let mut store = Store::new(module.engine(), ());
    let instance = linker.instantiate(&mut store, module).unwrap();
    let mut seen = Vec::new();
    let all = instance.get_typed_func::<i32, i32>(&mut store, "all").unwrap();
    seen.extend((0..4).map(|x| format!("{:?}", all.call(&mut store, x).unwrap())));
    let wrong = instance.get_typed_func::<(), i32>(&mut store, "wrong").unwrap();
    seen.push(format!("{:?}", wrong.call(&mut store, ()).unwrap_err()));
    let divide = instance.get_typed_func::<i32, i32>(&mut store, "divide").unwrap();
    let error = divide.call(&mut store, 0).unwrap_err();
    assert_eq!(error.downcast_ref(), Some(&Trap::IntegerDivisionByZero));
    seen.push(format!("{error:?} {:?}", divide.call(&mut store, 2).unwrap()));
    seen
}

fn engine() -> Engine {
    common::engine(&Config::new()).unwrap()
}

/// An engine that gives the types of the module other identities than another one.
fn other_engine() -> Engine {
    let engine = engine();
    Module::new(
        &engine,
        "(module (func (param f32 f32 f32)) (func (param f64) (result i32) unreachable) (func (result v128) unreachable))",
    )
    .unwrap();
    engine
}

fn deserialize(engine: &Engine, bytes: &[u8]) -> weir::Result<Module> {
    // SAFETY: they are of `serialize`, or damaged by accident.
    unsafe { Module::deserialize(engine, bytes) }
}

fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_deserialised_module_runs_in_its_code_and_compiles_nothing() {
    let module = Module::new(&engine(), TEXT).unwrap();
    let expected = outcome(&module);
    let bytes = module.serialize().unwrap();
    assert_eq!(Engine::detect_precompiled(&bytes), Some(Precompiled::Module));
    for engine in [engine(), other_engine()] {
        let module = deserialize(&engine, &bytes).unwrap();
        assert_eq!(outcome(&module), expected);
        let stats = module.stats();
        assert_eq!((stats.functions.native, stats.functions.baseline, stats.stored.damaged), (0, 0, 0), "{stats:?}");
        assert_eq!(stats.stored.optimised, stats.functions.called, "{stats:?}");
        // Two functions were not called.
        assert_eq!(stats.functions.called, stats.functions.total - 2);
        assert_eq!(module.name(), Some("all"));
        // What was deserialised can be serialised: all is compiled again.
        let again = deserialize(&engine, &module.serialize().unwrap()).unwrap();
        assert_eq!((outcome(&again), again.stats().accepted_bytes), (expected.clone(), stats.accepted_bytes));
    }
}

#[test]
fn it_is_refused_with_a_reason() {
    let bytes = engine().precompile_module(TEXT.as_bytes()).unwrap();
    let refusal = |engine: &Engine, bytes: &[u8]| deserialize(engine, bytes).unwrap_err().to_string();
    let metered = common::engine(Config::new().consume_fuel(true)).unwrap();
    assert!(refusal(&metered, &bytes).contains("other settings"));
    assert!(refusal(&engine(), b"\0asm\x01\0\0\0").contains("no precompiled module"));
    // The version, the build and the settings are at these offsets.
    for (at, reason) in [(8, "another version"), (12, "damaged"), (44, "damaged")] {
        let mut other = bytes.clone();
        other[at] ^= 1;
        assert!(refusal(&engine(), &other).contains(reason), "{at}: {}", refusal(&engine(), &other));
    }
    let interpreter = common::engine(Config::new().tier(Tier::Interpreter)).unwrap();
    assert!(interpreter.precompile_module(TEXT.as_bytes()).unwrap_err().is::<Unavailable>());
    assert!(deserialize(&interpreter, &bytes).unwrap_err().is::<Unavailable>());
    assert!(Engine::detect_precompiled(&bytes[..7]).is_none());
    assert_eq!(Engine::detect_precompiled_file(file("short.cwasm", &bytes[..7])).unwrap(), None);
    assert_eq!(Engine::detect_precompiled_file(file("detected.cwasm", &bytes)).unwrap(), Some(Precompiled::Module));
}

/// Every byte is flipped, and every prefix is tried: the module is refused, or runs with the right results.
#[test]
fn no_damage_changes_a_result() {
    let engine = engine();
    let module = Module::new(&engine, TEXT).unwrap();
    let (expected, bytes) = (outcome(&module), module.serialize().unwrap());
    let check = |damaged: &[u8], what: &dyn std::fmt::Display| match deserialize(&engine, damaged) {
        Ok(module) => {
            assert_eq!(outcome(&module), expected, "{what}");
            1
        }
        Err(_) => 0,
    };
    let mut accepted = 0;
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        accepted += check(&damaged, &format_args!("flip at {at}"));
    }
    // Damage of code and side tables is found when they are first used.
    assert!(accepted > bytes.len() / 4, "{accepted} of {}", bytes.len());
    for len in 0..bytes.len() {
        assert_eq!(check(&bytes[..len], &format_args!("{len} bytes")), 0);
    }
}

#[test]
fn damage_of_an_entry_changes_no_result() {
    check_entry("damaged-entry", 7);
}

#[test]
#[ignore = "takes a minute"]
fn no_damage_of_an_entry_changes_a_result() {
    check_entry("damaged-entry-everywhere", 1);
}

/// Flips each `step`-th byte of an entry of the cache, and tries as many prefixes. It has baseline code and work of several processes, and later
/// modules add to it and repair it.
fn check_entry(name: &str, step: usize) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&directory);
    let mut settings = CacheConfig::new();
    settings.with_directory(&directory);
    let engine = common::engine(Config::new().cache(Some(Cache::new(settings).unwrap()))).unwrap();
    let expected = outcome(&Module::new(&engine, TEXT).unwrap());
    let mut stored = StoredStats::default();
    common::until(|| {
        let module = Module::new(&engine, TEXT).unwrap();
        assert_eq!(outcome(&module), expected);
        thread::sleep(Duration::from_millis(5));
        stored = module.stats().stored;
        stored.baseline > 0
    });
    let entries = || fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let entry = entries().find(|path| path.extension().is_some_and(|extension| extension == "weir")).unwrap();
    let bytes = fs::read(&entry).unwrap();
    let (mut hits, mut damaged) = (0, 0);
    let mut check = |changed: &[u8], what: &dyn std::fmt::Display| {
        fs::write(&entry, changed).unwrap();
        let module = Module::new(&engine, TEXT).unwrap();
        assert_eq!(outcome(&module), expected, "{what}");
        let stored = module.stats().stored;
        hits += u32::from(stored.cache.as_deref() == Some("hit"));
        damaged += stored.damaged;
    };
    for at in (0..bytes.len()).step_by(step) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        check(&flipped, &format_args!("flip at {at}"));
        check(&bytes[..at], &format_args!("{at} bytes"));
    }
    assert!(hits as usize > bytes.len() / step / 4, "{hits} hits, of {}", bytes.len() / step);
    assert!(damaged > 30, "{damaged} functions with damaged code, of {stored:?}");
}

/// What follows the mapped bytes of the module is damaged after it was loaded, before its functions are called.
#[test]
fn code_that_changes_while_it_is_used_changes_no_result() {
    let engine = engine();
    let module = Module::new(&engine, TEXT).unwrap();
    let (expected, bytes) = (outcome(&module), module.serialize().unwrap());
    let own = wat::parse_str(TEXT).unwrap();
    let parts = bytes.windows(own.len()).position(|part| part == own).unwrap() + own.len();
    // SAFETY: the file is of `serialize`, or damaged by accident.
    let load = |path: &Path| unsafe { Module::deserialize_file(&engine, path) }.unwrap();
    for at in (parts..bytes.len()).step_by(97) {
        let path = file("changing.cwasm", &bytes);
        let module = load(&path);
        let damage = vec![0x90; (bytes.len() - at).min(97)];
        File::options().write(true).open(&path).unwrap().write_all_at(&damage, at as u64).unwrap();
        assert_eq!(outcome(&module), expected, "at {at}");
    }
    for len in [parts, parts.midpoint(bytes.len()), bytes.len() - 1] {
        let path = file("shrinking.cwasm", &bytes);
        let module = load(&path);
        File::options().write(true).open(&path).unwrap().set_len(len as u64).unwrap();
        assert_eq!(outcome(&module), expected, "{len} bytes");
    }
}

/// The module has data, a gap of zeros, and data again, so that two ranges are mapped. Neither is charged to the module.
#[test]
fn the_bytes_of_a_module_in_a_file_are_mapped() {
    const DATA: usize = 1 << 20;
    let engine = engine();
    let string = |byte: u8| format!("\\{byte:02x}").repeat(DATA);
    let text = format!(
        r#"(module (memory (export "memory") 49) (data (i32.const 0) "{}{}{}")
            (func (export "at") (param i32) (result i32) (i32.load8_u (local.get 0))))"#,
        string(7),
        string(0),
        string(9)
    );
    let module = Module::new(&engine, text).unwrap();
    let path = file("mapped.cwasm", &module.serialize().unwrap());
    let mappings = || {
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter(|line| line.ends_with(path.to_str().unwrap())).count()
    };
    // SAFETY: the file is of `serialize`, and nobody changes it.
    let loaded = unsafe { Module::deserialize_file(&engine, &path) }.unwrap();
    assert_eq!(mappings(), 2);
    assert!(loaded.host_memory() < DATA && module.host_memory() > 3 * DATA);
    let mut store = Store::new(&engine, ());
    let instance = weir::Instance::new(&mut store, &loaded, &[]).unwrap();
    let at = instance.get_typed_func::<u32, u32>(&mut store, "at").unwrap();
    let bytes = [0, DATA - 1, DATA, 2 * DATA - 1, 2 * DATA, 3 * DATA - 1, 3 * DATA].map(|index| index as u32);
    assert_eq!(bytes.map(|index| at.call(&mut store, index).unwrap()), [7, 7, 0, 0, 9, 9, 0]);
    drop((store, loaded));
    assert_eq!(mappings(), 0);
}

/// The file has no name any more, as for a process whose root has changed.
#[test]
fn an_open_file_is_loaded_wherever_it_was() {
    let engine = engine();
    let module = Module::new(&engine, TEXT).unwrap();
    let path = file("open.cwasm", &module.serialize().unwrap());
    let open = File::open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    // SAFETY: the file is of `serialize`.
    let loaded = unsafe { Module::deserialize_open_file(&engine, open) }.unwrap();
    assert_eq!(outcome(&loaded), outcome(&module));
    let other = File::open(std::env::current_exe().unwrap()).unwrap();
    // SAFETY: it is refused before anything of it is used.
    assert!(unsafe { Module::deserialize_open_file(&engine, other) }.is_err());
}

#[test]
fn the_settings_that_change_code_are_part_of_the_identity() {
    type Set = fn(&mut Config);
    let settings: [(&str, Set); 14] = [
        ("signals", |config| _ = config.signals_based_traps(false)),
        ("guards", |config| _ = config.memory_reservation(0)),
        ("masks", |config| _ = config.spectre_mitigation(false)),
        ("fuel", |config| _ = config.consume_fuel(true)),
        ("costs", |config| _ = config.consume_fuel(true).operator_cost(OperatorCost::new())),
        ("other costs", |config| _ = config.consume_fuel(true).operator_cost(OperatorCost { Nop: 1, ..OperatorCost::new() })),
        ("epochs", |config| _ = config.epoch_interruption(true)),
        ("NaNs", |config| _ = config.cranelift_nan_canonicalization(true)),
        ("passes", |config| _ = config.passes_off(&["gvn"])),
        ("rewrites", |config| _ = config.rewrite_fuel(Some(7))),
        ("proposals", |config| _ = config.wasm_tail_call(false)),
        ("level", |config| _ = config.cranelift_opt_level(OptLevel::None)),
        ("inlining", |config| _ = config.compiler_inlining(Inlining::No)),
        ("version", |config| _ = config.module_version(ModuleVersionStrategy::Custom("7".into())).unwrap()),
    ];
    let text = "(module (func (export \"f\") (result i32) (i32.const 3)))";
    let engines: Vec<Engine> = std::iter::once(engine())
        .chain(settings.iter().map(|(_, set)| {
            let mut config = Config::new();
            set(&mut config);
            common::engine(&config).unwrap()
        }))
        .collect();
    let files: Vec<Vec<u8>> = engines.iter().map(|engine| engine.precompile_module(text.as_bytes()).unwrap()).collect();
    for (i, engine) in engines.iter().enumerate() {
        for (j, bytes) in files.iter().enumerate() {
            assert_eq!(deserialize(engine, bytes).is_ok(), i == j, "engine {i} of file {j}");
        }
    }
}

/// An engine without a version accepts each, and its modules are accepted by such engines only.
#[test]
fn modules_have_versions() {
    let engine = |strategy: ModuleVersionStrategy| common::engine(Config::new().module_version(strategy).unwrap()).unwrap();
    let custom = |version: &str| ModuleVersionStrategy::Custom(version.into());
    let engines =
        [ModuleVersionStrategy::WasmtimeVersion, custom("a"), custom("b"), custom(""), ModuleVersionStrategy::None].map(engine);
    let files = engines.each_ref().map(|engine| engine.precompile_module(b"\0asm\x01\0\0\0").unwrap());
    for (i, engine) in engines.iter().enumerate() {
        for (j, bytes) in files.iter().enumerate() {
            let loaded = deserialize(engine, bytes);
            assert_eq!(loaded.is_ok(), i == j || i == 4, "engine {i} of file {j}");
            if let Err(error) = loaded {
                assert_eq!(error.to_string(), "it was compiled with another module version");
            }
        }
    }
}
