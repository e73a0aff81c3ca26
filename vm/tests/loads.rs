//! What modules cost their engine is given back when they are dropped.

mod common;

use std::fmt::Write;
use weir::{Config, Instance, Module, Store, Tier};

/// A module with 160 types of its own, half of them the types of its functions.
fn of_types(seed: usize) -> String {
    const TYPES: usize = 160;
    let mut text = String::from("(module ");
    for i in seed * TYPES..(seed + 1) * TYPES {
        let params: Vec<&str> = (0..18).map(|bit| if i >> bit & 1 == 0 { "i64" } else { "f64" }).collect();
        let what = if i % 2 == 0 { "(func (param" } else { "(type (func (param" };
        let end = if i % 2 == 0 { "" } else { ")" };
        write!(text, "{what} {}){end})", params.join(" ")).expect("memory");
    }
    text + r#"(func (export "run") (result i32) i32.const 7))"#
}

/// Each of 1,000 modules has types and shapes of signatures that no other has, and the engine has room for three.
#[test]
fn any_number_of_modules_takes_the_memory_of_a_few() {
    let size = Module::new(&common::default_engine(), of_types(0)).expect("a valid module").host_memory();
    let is_native = common::is_built(Tier::Native);
    let mut config = Config::new();
    config.tier(if is_native { Tier::Native } else { Tier::Interpreter }).max_code_size(4 << 20).max_engine_memory(3 * size);
    let engine = common::engine(&config).expect("valid settings");
    let load = |seed: usize| {
        let module = Module::new(&engine, of_types(seed)).unwrap_or_else(|error| panic!("{seed}: {error:?}"));
        let mut store = Store::new(&engine, ());
        let instance = Instance::new(&mut store, &module, &[]).expect("no imports");
        let run = instance.get_typed_func::<(), i32>(&mut store, "run").expect("it is exported");
        assert_eq!(run.call(&mut store, ()).expect("no trap"), 7);
        assert_eq!(module.stats().functions.native, u64::from(is_native), "there is room for its code: {seed}");
        drop((store, module));
        assert_eq!(engine.host_memory(), 0, "{seed}");
    };
    (0..100).for_each(load);
    let before = common::resident();
    (100..1000).for_each(load);
    let grown = common::resident().saturating_sub(before);
    assert!(grown < 4 << 20, "{grown} bytes more");
}

/// A table whose labels have many results takes wasmparser many times as many steps as it has bytes, and is refused before that.
#[test]
fn the_steps_of_validation_are_bounded() {
    const LABELS: usize = 20_000;
    let results = "i32 ".repeat(1000);
    let text = |labels: usize| {
        let labels = "0 ".repeat(labels);
        format!("(module (func (result {results}) (block (result {results}) (unreachable) (br_table {labels}))))")
    };
    let load = |text: &str, lazy: bool, steps: u64| {
        let mut config = Config::new();
        // Then wasmparser validates all bodies.
        config.wasm_wide_arithmetic(false).max_validation_steps(steps).lazy_validation(lazy);
        let engine = common::engine(&config).expect("the engine is made");
        Module::new(&engine, text).map(drop).map_err(|error| format!("{error:?}"))
    };
    let steps = LABELS as u64 * 1000;
    assert!(load(&text(1), false, 20_000).is_ok());
    let error = load(&text(LABELS), false, steps / 2).expect_err("it takes more");
    assert!(error.contains("validating the module takes more than the 10000000 steps that are allowed"), "{error}");
    assert!(load(&text(LABELS), false, steps * 2).is_ok());
    assert!(load(&text(LABELS), true, steps / 2).is_ok(), "nothing is validated yet");
    // The functions of a module together.
    let many = format!("(module {})", "(func (drop (i32.add (i32.const 1) (i32.const 2))))".repeat(1000));
    assert!(load(&many, false, 5_000).is_err());
    assert!(load(&many, false, 20_000).is_ok());
    // Each when it is first called.
    let engine = common::engine(Config::new().max_validation_steps(5_000).lazy_validation(true)).expect("the engine is made");
    let calls = (0..1000).map(|i| format!("(call {i})")).collect::<String>();
    let all = format!(r#"{} (func (export "all") {calls}))"#, &many[..many.len() - 1]);
    let mut store = Store::new(&engine, ());
    let instance =
        Instance::new(&mut store, &Module::new(&engine, all).expect("nothing is validated yet"), &[]).expect("no imports");
    let error = instance.get_typed_func::<(), ()>(&mut store, "all").expect("it is exported").call(&mut store, ());
    let error = format!("{:?}", error.expect_err("the functions together take more"));
    assert!(error.contains("more than the 5000 steps"), "{error}");
    // Weir's own validation leaves to wasmparser what reads the types of many values.
    let wide = "(br_if 0 (i32.const 0))".repeat(20_000);
    let wide = format!("(module (func (result {results}) (block (result {results}) (unreachable) {wide})))");
    let engine = common::engine(Config::new().max_validation_steps(1_000_000)).expect("the engine is made");
    assert!(Module::new(&engine, wide).map(drop).is_err());
    // Its size.
    let engine = common::engine(Config::new().max_module_size(100)).expect("the engine is made");
    assert!(Module::new(&engine, "(module (func))").is_ok());
    let error = Module::new(&engine, &many).map(drop).expect_err("it has more bytes").to_string();
    assert!(error.starts_with("a module of ") && error.ends_with("is larger than the 100 bytes that are allowed"), "{error}");
}

/// A file of a gigabyte, nearly all of which is a hole, would be as much memory if it were read.
#[test]
fn a_file_that_is_too_large_is_not_read() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("large");
    std::fs::create_dir_all(&folder).expect("a writable folder");
    let path = folder.join("large.wasm");
    // A custom section that reaches to the end.
    let hole: u32 = 1 << 30;
    let size = [0, 7, 14, 21, 28].map(|shift| (hole >> shift & 0x7F) as u8 | if shift < 28 { 0x80 } else { 0 });
    std::fs::write(&path, [b"\0asm\x01\0\0\0\0".as_slice(), &size].concat()).expect("a writable folder");
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("it was made");
    file.set_len(14 + u64::from(hole)).expect("the file system has holes");
    let mut settings = weir::CacheConfig::new();
    settings.with_directory(std::path::absolute(folder.join("cache")).expect("there is a working directory"));
    for cache in [None, Some(weir::Cache::new(settings).expect("valid settings"))] {
        let engine = common::engine(Config::new().max_module_size(100).cache(cache)).expect("the engine is made");
        let before = peak();
        let error = Module::from_file(&engine, &path).map(drop).expect_err("it has more bytes").to_string();
        assert_eq!(error, "a module of 1073741838 bytes is larger than the 100 bytes that are allowed");
        assert!(peak() < before + (512 << 20), "it was read");
    }
    std::fs::remove_dir_all(&folder).expect("it was made");
}

/// Functions that each return a number, the same in all of them.
fn of_numbers(number: i32) -> Vec<u8> {
    let functions = (0..NUMBERS).map(|i| format!(r#"(func (export "{i}") (result i32) i32.const {number})"#)).collect::<String>();
    // The same length whatever the number.
    assert!((1000..8000).contains(&number));
    wat::parse_str(format!("(module {functions})")).expect("it is valid")
}

const NUMBERS: usize = 400;

/// The results of all functions of a module.
fn numbers(module: &Module) -> Vec<i32> {
    let mut store = Store::new(module.engine(), ());
    let instance = Instance::new(&mut store, module, &[]).expect("no imports");
    let mut call = |i: usize| {
        let number = instance.get_typed_func::<(), i32>(&mut store, &i.to_string()).expect("it is exported");
        number.call(&mut store, ()).expect("no trap")
    };
    (0..NUMBERS).map(&mut call).collect()
}

/// A module has its own copy of the bytes, however late they are used.
#[test]
fn a_file_that_changes_after_it_was_loaded_changes_no_result() {
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("changed");
    std::fs::create_dir_all(&folder).expect("a writable folder");
    let path = folder.join("changed.wasm");
    let (first, second) = (of_numbers(1234), of_numbers(4321));
    assert_eq!(first.len(), second.len());
    for lazy in [false, true] {
        let engine = common::engine(Config::new().lazy_validation(lazy)).expect("valid settings");
        type Change<'a> = &'a dyn Fn(&std::fs::File) -> std::io::Result<()>;
        let changes: [Change<'_>; 4] = [
            &|file| std::os::unix::fs::FileExt::write_all_at(file, &second, 0),
            &|file| file.set_len(first.len() as u64 / 2),
            &|file| file.set_len(0),
            &|file| file.set_len(1 << 20),
        ];
        for change in changes {
            std::fs::write(&path, &first).expect("a writable folder");
            let module = Module::from_file(&engine, &path).expect("it is valid");
            change(&std::fs::OpenOptions::new().write(true).open(&path).expect("it was made")).expect("it is writable");
            assert_eq!(numbers(&module), [1234; NUMBERS]);
        }
    }
    std::fs::remove_dir_all(&folder).expect("it was made");
}

/// Loading fails, or gives a module of bytes that the file had, which no longer change.
#[test]
fn a_file_that_changes_while_it_is_loaded_is_harmless() {
    use std::os::unix::fs::FileExt;
    use std::sync::atomic::{AtomicBool, Ordering};

    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("changing");
    std::fs::create_dir_all(&folder).expect("a writable folder");
    let path = folder.join("changing.wasm");
    let bytes = [of_numbers(1234), of_numbers(4321)];
    std::fs::write(&path, &bytes[0]).expect("a writable folder");
    let done = AtomicBool::new(false);
    let change = || {
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("it was made");
        for round in 0.. {
            let bytes = &bytes[round % 2];
            // In pieces, so that a file has some of both.
            for (i, piece) in bytes.chunks(512).enumerate() {
                file.write_all_at(piece, 512 * i as u64).expect("it is writable");
            }
            if round % 5 == 0 {
                file.set_len(bytes.len() as u64 / 3).expect("it is writable");
            }
            if done.load(Ordering::Relaxed) {
                break;
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(change);
        let _done = common::Done(&done);
        for round in 0..100 {
            let engine = common::engine(Config::new().lazy_validation(round % 2 == 0)).expect("valid settings");
            let Ok(module) = Module::from_file(&engine, &path) else { continue };
            // All bytes but the numbers are the same in both, unless the file was shorter, and then they are missing.
            let first = numbers(&module);
            assert!(first.iter().all(|number| bytes_of_both(*number)), "{first:?}");
            assert_eq!(numbers(&module), first, "the bytes have changed");
        }
    });
    std::fs::remove_dir_all(&folder).expect("it was made");
}

/// Whether each byte of a number of [`of_numbers`] is that of 1234 or of 4321, in LEB128.
fn bytes_of_both(number: i32) -> bool {
    let of = |number: i32| [number & 127, number >> 7];
    of(number).iter().zip(of(1234).iter().zip(of(4321))).all(|(byte, (a, b))| byte == a || *byte == b)
}

/// The most bytes of the process's memory that were resident.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its format");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") << 10
}
