//! Throughput benchmarks: the programs beside this folder, run by Weir and by its peers, whole processes, interleaved.
//!
//! Every round runs every program once on every peer, so that a slow spell of the machine hits all of them. Every run's output
//! is compared with the expected one, and a peer that gets it wrong is left out for that program and reported. What is
//! measured is wall time from start to exit: starting, compiling and printing included.

mod measure;
mod peers;
mod programs;
mod report;

use clap::Parser;
use measure::{Refusal, Run};
use programs::Size;
use report::Results;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const HELP: &str = "\
Peers: weir-auto, weir-native, weir-cranelift, weir-interp (the weir binary beside this one), wasmtime, wasmtime-precompiled,
wasmtime-winch, wasmi, wasm3, wasmer, wasmedge, node, node-no-liftoff, and native (C compiled by cc). A peer's binary is looked
for on the PATH, unless an environment variable names it: WEIR_PEER_WASMTIME, WEIR_PEER_CC and so on.";

/// Runs the benchmark programs on Weir and on other runtimes, and compares.
#[derive(Debug, Parser)]
#[command(name = "weir-bench", version, after_help = HELP)]
struct Options {
    /// Only programs whose name contains this
    filter: Option<String>,
    /// Who runs them, separated by commas [default: all that are found]
    #[arg(long, value_name = "PEER,…", value_delimiter = ',')]
    peers: Vec<String>,
    /// Whom the others are compared with [default: the first peer]
    #[arg(long, value_name = "PEER")]
    base: Option<String>,
    /// How often everything is run, after one run that is not counted
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Which of each program's arguments: milliseconds or about a second of native work
    #[arg(long, default_value = "large")]
    size: Size,
    /// Give up on a run after this long
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
    /// Write everything measured to this file
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
    /// Where the programs are
    #[arg(long, value_name = "DIR", default_value = concat!(env!("CARGO_MANIFEST_DIR"), "/.."))]
    programs: PathBuf,
}

fn main() -> ExitCode {
    match bench(&Options::parse()) {
        Ok(results) if results.refused.iter().all(|(.., why)| *why == Refusal::Impossible) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("weir-bench: {message}");
            ExitCode::from(2)
        }
    }
}

fn bench(options: &Options) -> Result<Results, String> {
    let programs = programs::find(&options.programs, options.filter.as_deref(), options.size)?;
    let scratch = measure::Scratch::new()?;
    let peers = peers::find(&options.peers)?;
    let base = match &options.base {
        Some(base) => peers.iter().position(|peer| peer.name == base).ok_or(format!("the base {base} is none of the peers"))?,
        None => 0,
    };
    let mut results = Results::new(options, peers.iter().map(|peer| peer.name).collect(), base, &programs);
    let timeout = Duration::from_secs(options.timeout);
    let total = programs.len() * peers.len() * (options.rounds as usize + 1);
    let mut done = 0;
    for round in 0..=options.rounds {
        for (i, program) in programs.iter().enumerate() {
            for (j, peer) in peers.iter().enumerate() {
                done += 1;
                progress(&format!("{done}/{total}  {}  {}", program.name, peer.name));
                if results.refusal(i, j).is_some() {
                    continue;
                }
                let run = peer.command(program, &scratch).and_then(|command| match command {
                    Some(command) => measure::run(command, &program.expected, timeout),
                    None => Err(Refusal::Impossible),
                });
                match run {
                    // The first round warms caches, and checks.
                    Ok(Run { .. }) if round == 0 => {}
                    Ok(Run { wall }) => results.add(i, j, wall),
                    Err(refusal) => results.refuse(i, j, refusal),
                }
            }
        }
    }
    progress("");
    print!("{}", results.table());
    if let Some(path) = &options.json {
        let text = format!("{:#}\n", results.json(&peers));
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(results)
}

/// Overwrites the line on a terminal; nothing is left in a file.
fn progress(text: &str) {
    let mut out = std::io::stderr();
    if out.is_terminal() {
        let _ = write!(out, "\r\x1b[K{text}").and_then(|()| out.flush());
    }
}
