//! Compares the public API of wasmtime with Weir's: items, signatures, bounds, implementations of traits, `Send`, `Sync` and
//! `#[non_exhaustive]`. Fails if a difference is not in the list `differences.txt`, or is there and no longer exists.
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

/// The packages whose items a user of wasmtime sees, and their libraries; the first is wasmtime itself.
const THEIRS: [(&str, &str); 3] =
    [("wasmtime", "wasmtime"), ("wasmtime-environ", "wasmtime_environ"), ("wasmtime-internal-core", "wasmtime_internal_core")];
/// The same for Weir.
const OURS: [(&str, &str); 3] = [("weir-vm", "weir"), ("weir-contract", "weir_contract"), ("weir-bytecode", "weir_bytecode")];

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

/// Compares, and returns whether the list is exact.
fn run(print: bool) -> Result<bool> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let differences = differences(&api(here, &THEIRS)?, &api(here, &OURS)?);
    if print {
        differences.iter().for_each(|line| println!("{line}"));
        return Ok(true);
    }
    let list = here.join("differences.txt");
    let groups = parse(&std::fs::read_to_string(&list).map_err(|error| format!("{}: {error}", list.display()))?)?;
    let (unknown, gone) = check(&differences, &groups);
    unknown.iter().for_each(|line| println!("not listed: {line}"));
    gone.iter().for_each(|line| println!("no longer a difference: {line}"));
    println!("{} differences, for {} reasons", differences.len(), groups.len());
    Ok(unknown.is_empty() && gone.is_empty())
}

fn api(here: &Path, packages: &[(&str, &str)]) -> Result<Api> {
    let mut docs = Docs::default();
    for (package, library) in packages {
        document(&mut docs, &here.join("Cargo.toml"), &here.join("target"), package, library)?;
    }
    Ok(Api::of(&docs, packages[0].1))
}
