//! Every program in `programs/`, on every tier, prints what it is expected to print.

use std::fs;
use std::path::{Path, PathBuf};
use weir::{Config, Engine, Linker, Module, Store, Tier};
use weir_wasi::{OutputBuffer, WasiCtx};

/// The folders with a program.
fn folders() -> Vec<PathBuf> {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs");
    let mut folders: Vec<PathBuf> = fs::read_dir(programs)
        .expect("the folder programs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.join("args.txt").exists())
        .collect();
    folders.sort();
    folders
}

fn name(folder: &Path) -> &str {
    folder.file_name().and_then(|name| name.to_str()).expect("a name")
}

/// What the program prints with its small arguments.
fn run(folder: &Path, config: &Config) -> weir::Result<String> {
    let arguments = fs::read_to_string(folder.join("args.txt"))?;
    let small = arguments.lines().find_map(|line| line.strip_prefix("small")).expect("a line `small`");
    let output = OutputBuffer::new(1 << 20);
    let ctx = WasiCtx::builder().arg(name(folder))?.args(small.split_whitespace())?.stdout(output.clone()).build();

    let engine = Engine::new(config)?;
    let module = Module::from_file(&engine, folder.join(format!("{}.wasm", name(folder))))?;
    let mut store = Store::new(&engine, ctx);
    let mut linker = Linker::new(&engine);
    weir_wasi::add_to_linker(&mut linker, |ctx| ctx)?;
    let instance = linker.instantiate(&mut store, &module)?;
    instance.get_typed_func::<(), ()>(&mut store, "_start")?.call(&mut store, ())?;
    Ok(String::from_utf8_lossy(&output.contents()).into_owned())
}

fn all_programs_on(tier: Tier) {
    let folders = folders();
    assert!(folders.len() >= 14, "only {} programs found", folders.len());
    for folder in folders {
        let expected = fs::read_to_string(folder.join("expected.txt")).expect("expected.txt");
        let output = run(&folder, Config::new().tier(tier)).unwrap_or_else(|error| panic!("{}: {error:?}", name(&folder)));
        assert_eq!(output, expected, "{} on {tier:?}", name(&folder));
    }
}

#[test]
fn interpreter() {
    all_programs_on(Tier::Interpreter);
}

#[test]
fn auto() {
    all_programs_on(Tier::Auto);
}

#[test]
fn native() {
    all_programs_on(Tier::Native);
}

#[test]
fn cranelift() {
    all_programs_on(Tier::Cranelift);
}

/// A program written in the text format is committed in the binary format too, for runtimes that read nothing else.
#[test]
fn text_programs() {
    for folder in folders() {
        let text = folder.join(format!("{}.wat", name(&folder)));
        if !text.exists() {
            continue;
        }
        let binary = wat::parse_file(&text).expect("valid text");
        let committed = text.with_extension("wasm");
        if std::env::var_os("WEIR_BLESS").is_some() {
            fs::write(&committed, &binary).expect("writable");
        }
        let same = fs::read(&committed).is_ok_and(|bytes| bytes == binary);
        assert!(same, "{} is out of date: run build.sh beside it", committed.display());
    }
}
