//! Checks the machine code of every function of modules.
//!
//! ```text
//! cargo run --release -p weir-tests --bin weir-check -- [--only NAME] [--list] FILE.wasm…
//! ```
//!
//! For each module and each way to compile it (`--list` prints their names; `--only` selects one, or those whose name contains this), one line
//! with counts, and then the refusals by reason, each with its first place. The exit code is 1 if code was refused.

use clap::Parser;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use weir_bytecode::validate;
use weir_tests::machine_check::{Report, check_module, configurations};

/// Checks the machine code of every function of modules.
#[derive(Parser, Debug)]
struct Args {
    /// Only the way to compile with this name, or those whose name contains it.
    #[arg(long, default_value = "")]
    only: String,
    /// Print the names of the ways to compile.
    #[arg(long)]
    list: bool,
    /// Print the counts of accesses and branches by kind.
    #[arg(long)]
    kinds: bool,
    /// The modules.
    files: Vec<PathBuf>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let configurations = configurations();
    if args.list {
        configurations.iter().for_each(|configuration| println!("{}", configuration.name));
    }
    let mut refused = false;
    for file in &args.files {
        let module = std::fs::read(file)
            .map_err(|error| error.to_string())
            .and_then(|bytes| validate::parse(bytes.into()).map_err(|error| error.to_string()));
        let module = match module {
            Ok(module) => module,
            Err(error) => {
                eprintln!("weir-check: {}: {error}", file.display());
                return ExitCode::from(2);
            }
        };
        let is_name = configurations.iter().any(|configuration| configuration.name == args.only);
        let is_wanted = |name: &str| if is_name { name == args.only } else { name.contains(&args.only) };
        for configuration in configurations.iter().filter(|configuration| is_wanted(configuration.name)) {
            let report = check_module(&module, configuration);
            refused |= !report.refused.is_empty();
            print(&file.display().to_string(), configuration.name, &report, args.kinds);
        }
    }
    if refused { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn print(file: &str, configuration: &str, report: &Report, kinds: bool) {
    let Report { statistics, uncompiled, inlining, refused, time } = report;
    println!(
        "{file} [{configuration}]: {} proved, {} refused, {uncompiled} not compiled, {inlining} with inlined calls; {} instructions, {} bytes, {:.2} s",
        statistics.functions,
        refused.len(),
        statistics.instructions,
        statistics.bytes,
        time.as_secs_f64(),
    );
    if kinds {
        println!("    {:?}\n    {:?}", statistics.accesses, statistics.branches);
    }
    let mut reasons: BTreeMap<&str, (usize, String)> = BTreeMap::new();
    for refusal in refused {
        let (count, _) = reasons
            .entry(&refusal.fault.what)
            .or_insert_with(|| (0, format!("function {}, {:?}, {}", refusal.func, refusal.entry, refusal.fault)));
        *count += 1;
    }
    for (count, first) in reasons.values() {
        println!("    {count}: {first}");
    }
}
