//! Machine code of whole modules.
//!
//! ```text
//! cargo run --release -p weir-jit --no-default-features --example machine -- COMMAND FILE.wasm…
//!
//! hash       one line for each function, entry and configuration: a hash of bytes, relocations, traps, calls and source pcs.
//!            Two commits generate the same code if these lines are equal
//! roundtrip  after lowering, allocation and layout of every function, under every configuration: the text is read back to the
//!            same code, which ends as the same bytes and tables
//! ```

mod requests;
mod roundtrip;

use requests::Configuration;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::process::ExitCode;
use weir_bytecode::{Module, validate};
use weir_jit::compile::{Compiled, Context, compile};
use weir_jit::{Backend, Options};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, files)) = args.split_first() else {
        eprintln!("machine: hash or roundtrip?");
        return ExitCode::from(2);
    };
    for file in files {
        let done = match command.as_str() {
            "hash" => load(file).and_then(|module| hashes(file.rsplit('/').next().unwrap_or(file), &module)),
            "roundtrip" => load(file).and_then(|module| roundtrip(file, &module)),
            _ => Err(format!("no command {command}")),
        };
        if let Err(error) = done {
            eprintln!("machine: {file}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn load(file: &str) -> Result<Module, String> {
    let bytes = std::fs::read(file).map_err(|error| error.to_string())?;
    validate::parse(bytes.into()).map_err(|error| error.to_string())
}

fn hashes(name: &str, module: &Module) -> Result<(), String> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let mut cx = Context::default();
    for configuration in requests::configurations(false).into_iter().chain(of_baseline()) {
        let funcs = module.imported_funcs..module.imported_funcs + module.bodies.len() as u32;
        let mut written = Ok(());
        requests::each(module, funcs, &configuration, |request| {
            let result = match compile(&mut cx, request) {
                Ok(compiled) => format!("{:016x} {} bytes", hash(&compiled), compiled.code.len()),
                Err(refusal) => refusal.to_string(),
            };
            let line = writeln!(out, "{name} {} {:?} {}: {result}", request.func, request.entry, configuration.name);
            written = std::mem::replace(&mut written, Ok(())).and(line);
        });
        written.map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Configurations that give different machine code of the baseline compiler.
fn of_baseline() -> Vec<Configuration> {
    let configuration = |name, options| Configuration { name, backend: Backend::Baseline, options, profiled: false };
    let options = Options::default;
    vec![
        configuration("baseline", options()),
        configuration("baseline metered", Options { fuel: true, poll: true, canonical_nans: true, ..options() }),
        configuration("baseline no-signals", Options { signals: false, guard_regions: false, ..options() }),
    ]
}

fn roundtrip(file: &str, module: &Module) -> Result<(), String> {
    let (mut compiled, mut refused) = (0u32, 0u32);
    for configuration in requests::configurations(true) {
        let funcs = module.imported_funcs..module.imported_funcs + module.bodies.len() as u32;
        let mut result = Ok(());
        requests::each(module, funcs, &configuration, |request| match roundtrip::check(request) {
            Ok(true) => compiled += 1,
            Ok(false) => refused += 1,
            Err(error) => {
                let place = format!("function {}, {:?}, {}", request.func, request.entry, configuration.name);
                result = Err(format!("{place}: {error}"));
            }
        });
        result?;
    }
    println!("{file}: {compiled} compilations read back, {refused} refused");
    Ok(())
}

fn hash(compiled: &Compiled) -> u64 {
    let mut hasher = DefaultHasher::new();
    compiled.code.hash(&mut hasher);
    for reloc in &compiled.relocs {
        (reloc.offset, reloc.index, reloc.addend).hash(&mut hasher);
    }
    for trap in &compiled.traps {
        (trap.offset, format!("{:?}", trap.site), trap.pc).hash(&mut hasher);
    }
    (&compiled.calls, &compiled.lines).hash(&mut hasher);
    hasher.finish()
}
