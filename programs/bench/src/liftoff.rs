//! `weir-bench liftoff`: the baseline compiler against V8's Liftoff, over every function of a module.
//!
//! Both are processes that read a file, validate the module, and compile all functions on one thread. The time is that of
//! the process minus that for an empty module, both in the same round. Code that counts, as in tier `auto`, has a row of its own.

use crate::compile::Summary;
use crate::compilers::code_section;
use crate::document::summarize;
use crate::measure::Scratch;
use crate::options::Liftoff;
use crate::peers;
use crate::ratio::Ratio;
use crate::run::{milliseconds, progress};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Makes V8 compile all functions at once, on one thread.
const FLAGS: [&str; 3] = ["--liftoff-only", "--no-wasm-lazy-compilation", "--wasm-num-compilation-tasks=1"];
/// The baseline compiler's options and their label, one row each.
const ROWS: [(&[&str], &str); 2] = [(&[], ""), (&["--counts"], ", counting")];
const SCRIPT: &str = "new WebAssembly.Module(require('node:fs').readFileSync(process.argv[1]))";

/// Measures each module, and prints speeds, their ratio and the size of Weir's code.
///
/// # Errors
/// Node is missing, or a module cannot be read or compiled.
pub fn liftoff(options: &Liftoff) -> Result<bool, String> {
    let node = &peers::find(&["node".into()])?[0].binary;
    let scratch = Scratch::new()?;
    let empty = scratch.path("empty.wasm");
    fs::write(&empty, b"\0asm\x01\0\0\0").map_err(|error| format!("{}: {error}", empty.display()))?;
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let weir = |module: &Path, options: &[&str]| {
        let mut command = Command::new(&this);
        command.args(["compile", "--baseline"]).args(options).arg(module);
        command
    };
    let v8 = |module: &Path| {
        let mut command = Command::new(node);
        command.args(FLAGS).args(["-e", SCRIPT]).arg(module);
        command
    };
    for module in &options.modules {
        let name = module.display();
        let bytes = code_section(&fs::read(module).map_err(|error| format!("{name}: {error}"))?) as f64;
        let (mut ours, mut theirs, mut summaries) = (ROWS.map(|_| Vec::new()), Vec::new(), [Summary::default(); ROWS.len()]);
        for round in 0..=options.rounds {
            progress(&format!("{name}, round {round} of {}", options.rounds));
            let (without, _) = time(weir(&empty, &[]))?;
            let (v8_without, _) = time(v8(&empty))?;
            let (v8_with, _) = time(v8(module))?;
            for ((options, _), (ours, summary)) in ROWS.iter().zip(ours.iter_mut().zip(&mut summaries)) {
                let (with, output) = time(weir(module, options))?;
                *summary = serde_json::from_slice(&output).map_err(|error| format!("{name}: {error}"))?;
                // The first round warms caches.
                if round > 0 {
                    ours.push(with - without);
                }
            }
            if round > 0 {
                theirs.push(v8_with - v8_without);
            }
        }
        progress("");
        let speed = |ms: &[f64]| summarize(ms).map_or(f64::NAN, |summary| bytes / summary.median / 1e3);
        for ((_, label), (ours, summary)) in ROWS.iter().zip(ours.iter().zip(summaries)) {
            let Some(Ratio { median, low, high }) = Ratio::of(&theirs, ours) else { return Err("too few rounds".into()) };
            println!(
                "{name}{label}: {:.1} MB/s, Liftoff {:.1} MB/s: {median:.3} [{low:.3}, {high:.3}] times as fast; {:.2} bytes of code \
                 per byte; {} of {} functions refused",
                speed(ours),
                speed(&theirs),
                summary.code_bytes as f64 / (bytes - summary.refused_bytes as f64),
                summary.refused,
                summary.functions
            );
        }
    }
    Ok(true)
}

/// Runs a command; returns its time in milliseconds and its output.
fn time(mut command: Command) -> Result<(f64, Vec<u8>), String> {
    let start = Instant::now();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    let ms = milliseconds(start.elapsed());
    if output.status.success() {
        Ok((ms, output.stdout))
    } else {
        Err(format!("{command:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
    }
}
