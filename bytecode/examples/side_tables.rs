//! Verifies the side tables of whole modules against those that TABLE 1 gives.
//!
//! ```text
//! cargo run --release -p weir-bytecode --example side_tables -- FILE.wasm…
//! ```
//!
//! Prints, for each file, its numbers of functions and branch entries. The exit code is 1 if a table is wrong.

use std::process::ExitCode;
use weir_bytecode::{validate, verify};

fn main() -> ExitCode {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        eprintln!("side_tables: no files");
        return ExitCode::from(2);
    }
    for file in &files {
        match check(file) {
            Ok((functions, entries)) => println!("{file}: {functions} functions with {entries} entries"),
            Err(error) => {
                eprintln!("side_tables: {file}: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// Returns the numbers of functions and branch entries of a module, all of which are verified.
fn check(file: &str) -> Result<(usize, usize), String> {
    let bytes = std::fs::read(file).map_err(|error| error.to_string())?;
    let module = validate::parse(bytes.into()).map_err(|error| error.to_string())?;
    for (func, body) in (module.imported_funcs..).zip(&module.bodies) {
        verify::side_table(&module, func, body, None).map_err(|fault| format!("function {func}, {fault}"))?;
    }
    Ok((module.bodies.len(), module.bodies.iter().map(|body| body.branches.len()).sum()))
}
