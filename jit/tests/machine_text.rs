//! The text of machine code holds all of it: `parse(print(code)) == code` after lowering, allocation and layout, and the copy ends
//! as the same bytes, relocations, traps and calls. Over every function of all programs, entered by call and at each loop, and
//! over functions made of hard shapes. `cargo run --release -p weir-jit --example machine -- roundtrip FILE…` does the same
//! for other modules.

#![cfg(target_arch = "x86_64")]

#[path = "../examples/machine/requests.rs"]
mod requests;
#[path = "../examples/machine/roundtrip.rs"]
mod roundtrip;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use weir_bytecode::validate;

/// Every module below `folder`.
fn modules(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.extension() {
            // The command checks fetched modules.
            _ if path.is_dir() && path.file_name().is_some_and(|name| name != "real" && name != "target") => {
                modules(&path, found)
            }
            Some(extension) if extension == "wasm" => found.push(path),
            _ => {}
        }
    }
}

/// Checks the functions of one module, each under one of the configurations. Returns the number of compiled functions.
fn check(path: &Path) -> usize {
    let module = validate::parse(std::fs::read(path).unwrap().into()).unwrap();
    let configurations = requests::configurations(true);
    let mut compiled = 0;
    for (i, configuration) in configurations.iter().enumerate() {
        let funcs = (module.imported_funcs..module.funcs.len() as u32).filter(|func| *func as usize % configurations.len() == i);
        requests::each(&module, funcs, configuration, |request| {
            let what = |error| {
                panic!("{}, function {}, {:?}, {}: {error}", path.display(), request.func, request.entry, configuration.name)
            };
            compiled += usize::from(roundtrip::check(request).unwrap_or_else(what));
        });
    }
    compiled
}

#[test]
fn machine_code_of_all_programs_is_read_back() {
    let mut paths = Vec::new();
    modules(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs"), &mut paths);
    assert!(paths.len() >= 40, "{} programs", paths.len());
    let (next, compiled) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(path) = paths.get(next.fetch_add(1, Relaxed)) {
                    compiled.fetch_add(check(path), Relaxed);
                }
            });
        }
    });
    assert!(compiled.into_inner() > 2000, "few functions were compiled");
}
