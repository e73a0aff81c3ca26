//! `weir-bench fit`: the constants from which the policy computes when to compile.
//!
//! Each program runs in the interpreter, in baseline code and in the optimiser's code, with the interpreters' share of its
//! large work. Its start is taken off by the same run with the small work.

use crate::document::summarize;
use crate::options::Fit;
use crate::peers;
use crate::programs::{Program, Work};
use crate::run::{milliseconds, progress};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// One run: its time, and what `--stats=json` says.
#[derive(Clone, Copy, Debug)]
struct Sample {
    ms: f64,
    interpreted_bytes: f64,
    compile_ms: f64,
    compiled_bytes: f64,
}

/// The constants of one program.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// Nanoseconds for each byte that the interpreter executes.
    interpreter: f64,
    /// The same in baseline code and in the optimiser's.
    baseline: f64,
    native: f64,
    /// Nanoseconds of compilation for each byte of bytecode.
    compile_baseline: f64,
    compile_native: f64,
}

/// Measures all programs, and prints the constants, and after how many bytes executed compiling a byte has paid. The policy requests code
/// earlier, by factors that are fitted to total times.
///
/// # Errors
/// A run failed.
pub fn fit(options: &Fit) -> Result<bool, String> {
    let weir = &peers::find(&["weir-auto".into()])?[0].binary;
    let mut rows = Vec::new();
    println!("{:16} {:>8} {:>8} {:>8} {:>9} {:>9}", "ns per byte:", "interp", "baseline", "native", "compile b", "compile n");
    for program in &options.selection.programs()? {
        let Some(work) = program.scaled(options.share) else { continue };
        let of_tier = |tier| sample(options, program, &work, weir, tier);
        let (interpreter, baseline, native) = (of_tier("interp")?, of_tier("baseline")?, of_tier("native")?);
        let bytes = interpreter.interpreted_bytes;
        let per_byte = |sample: Sample| 1e6 * sample.ms / bytes;
        let compile = |sample: Sample| 1e6 * sample.compile_ms / sample.compiled_bytes;
        let row = Row {
            interpreter: per_byte(interpreter),
            baseline: per_byte(baseline),
            native: per_byte(native),
            compile_baseline: compile(baseline),
            compile_native: compile(native),
        };
        progress("");
        println!("{:16} {row}", program.name);
        rows.push(row);
    }
    let of = |field: fn(&Row) -> f64| summarize(&rows.iter().map(field).collect::<Vec<_>>()).map(|summary| summary.median);
    let row = (|| {
        Some(Row {
            interpreter: of(|row| row.interpreter)?,
            baseline: of(|row| row.baseline)?,
            native: of(|row| row.native)?,
            compile_baseline: of(|row| row.compile_baseline)?,
            compile_native: of(|row| row.compile_native)?,
        })
    })()
    .ok_or("no program's work can be scaled")?;
    println!("{:16} {row}", "median");
    let Row { interpreter, baseline, native, compile_baseline, compile_native } = row;
    println!("bytes executed for each byte compiled, after which compiling has paid:");
    println!("  interpreter to baseline code  {:8.0}", compile_baseline / (interpreter - baseline));
    println!("  interpreter to the optimiser  {:8.0}", compile_native / (interpreter - native));
    println!("  baseline to the optimiser     {:8.0}", compile_native / (baseline - native));
    Ok(true)
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Row { interpreter, baseline, native, compile_baseline, compile_native } = self;
        write!(f, "{interpreter:8.3} {baseline:8.3} {native:8.3} {compile_baseline:9.1} {compile_native:9.1}")
    }
}

/// The median of several runs, without the start.
fn sample(options: &Fit, program: &Program, work: &Work, weir: &Path, tier: &str) -> Result<Sample, String> {
    let runs = |work: &Work| (0..options.rounds).map(|_| run(program, work, weir, tier)).collect::<Result<Vec<_>, String>>();
    let (small, large) = (runs(&program.small)?, runs(work)?);
    let median = |runs: &[Sample], field: fn(&Sample) -> f64| {
        summarize(&runs.iter().map(field).collect::<Vec<_>>()).map_or(f64::NAN, |summary| summary.median)
    };
    Ok(Sample {
        ms: (median(&large, |run| run.ms) - median(&small, |run| run.ms)).max(0.0),
        interpreted_bytes: median(&large, |run| run.interpreted_bytes) - median(&small, |run| run.interpreted_bytes),
        compile_ms: median(&large, |run| run.compile_ms),
        compiled_bytes: median(&large, |run| run.compiled_bytes),
    })
}

/// Runs a program once.
fn run(program: &Program, work: &Work, weir: &Path, tier: &str) -> Result<Sample, String> {
    progress(&format!("{} {}  {tier}", program.name, work.args.join(" ")));
    let failed = |why: &dyn std::fmt::Display| format!("{}, --tier {tier}: {why}", program.name);
    let mut command = Command::new(weir);
    command.args(["run", "--no-cache", "--stats=json", "--tier", tier]).arg(&program.wasm).args(&work.args);
    let start = Instant::now();
    let output = command.stdin(Stdio::null()).output().map_err(|error| failed(&error))?;
    let ms = milliseconds(start.elapsed());
    if !output.status.success() {
        return Err(failed(&output.status));
    }
    let stats: serde_json::Value = serde_json::from_slice(&output.stderr).map_err(|error| failed(&error))?;
    let number = |name: &str| stats[name].as_f64().unwrap_or_default();
    let phases = stats["compile_ms"].as_object().into_iter().flatten();
    Ok(Sample {
        ms,
        interpreted_bytes: number("interpreted_bytes"),
        compile_ms: phases.filter_map(|(_, ms)| ms.as_f64()).sum(),
        compiled_bytes: number("bytecode_bytes_compiled").max(1.0),
    })
}
