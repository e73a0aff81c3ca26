//! Compares the public API of wasmtime, and that of wasmtime-wasi, with Weir's: items, signatures, bounds, implementations of traits,
//! `Send`, `Sync` and `#[non_exhaustive]`. Fails if a difference is not in the lists, `differences.txt` and `wasi-differences.txt`, or is
//! there and no longer exists.
//!
//! ```text
//! cargo run --locked              compare
//! cargo run --locked -- print     print all differences
//! ```

use std::path::Path;
use std::process::ExitCode;
use weir_api::api::Api;
use weir_api::compare::{check, differences, parse};
use weir_api::docs::{Docs, Result, document};

/// Two libraries that are compared.
struct Pair {
    /// The packages whose items a user of the library sees, with their libraries; the first is the library itself.
    theirs: &'static [(&'static str, &'static str)],
    /// The same for Weir.
    ours: &'static [(&'static str, &'static str)],
    /// The file with the known differences.
    list: &'static str,
}

const PAIRS: [Pair; 2] = [
    Pair {
        theirs: &[
            ("wasmtime", "wasmtime"),
            ("wasmtime-environ", "wasmtime_environ"),
            ("wasmtime-internal-core", "wasmtime_internal_core"),
            ("wasmtime-internal-cache", "wasmtime_internal_cache"),
        ],
        ours: &[("weir-vm", "weir"), ("weir-contract", "weir_contract"), ("weir-bytecode", "weir_bytecode")],
        list: "differences.txt",
    },
    Pair {
        theirs: &[("wasmtime-wasi", "wasmtime_wasi"), ("wasmtime-wasi-io", "wasmtime_wasi_io"), ("rand_core", "rand_core")],
        ours: &[("weir-wasi", "weir_wasi"), ("rand_core", "rand_core")],
        list: "wasi-differences.txt",
    },
];

fn main() -> ExitCode {
    let print = std::env::args().nth(1).is_some_and(|argument| argument == "print");
    match run(print) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("weir-api: {message}");
            ExitCode::from(2)
        }
    }
}

/// Compares, and returns whether the lists are exact.
fn run(print: bool) -> Result<bool> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut exact = true;
    for Pair { theirs, ours, list } in &PAIRS {
        let differences = differences(&api(here, theirs)?, &api(here, ours)?);
        if print {
            println!("{list}:");
            differences.iter().for_each(|line| println!("{line}"));
            continue;
        }
        let path = here.join(list);
        let groups = parse(&std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?)?;
        let (unknown, gone) = check(&differences, &groups);
        unknown.iter().for_each(|line| println!("not listed in {list}: {line}"));
        gone.iter().for_each(|line| println!("no longer a difference, but in {list}: {line}"));
        println!("{list}: {} differences, for {} reasons", differences.len(), groups.len());
        exact &= unknown.is_empty() && gone.is_empty();
    }
    Ok(exact)
}

fn api(here: &Path, packages: &[(&str, &str)]) -> Result<Api> {
    let mut docs = Docs::default();
    for (package, library) in packages {
        document(&mut docs, &here.join("Cargo.toml"), &here.join("target"), package, library)?;
    }
    Ok(Api::of(&docs, packages[0].1))
}
