//! How fast compilers are and how much code they make, as far as they tell.
//!
//! Weir says it itself, of the functions that it compiled. wasmtime compiles whole modules: its time is that of
//! `wasmtime compile` on one thread less that for an empty module, its code the text section of what comes out.

use crate::document::{Compiler, summarize};
use crate::measure::{Refusal, Scratch};
use crate::peers::Peer;
use crate::programs::Program;
use crate::run::{milliseconds, progress};
use object::{Object, ObjectSection};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Runs of which the median is taken.
const RUNS: usize = 3;

/// What the program's module costs the compilers among the peers.
pub fn measure(program: &Program, peers: &[Peer], scratch: &Scratch) -> Vec<Compiler> {
    let measured = peers.iter().filter_map(|peer| {
        progress(&format!("compiling {} with {}", program.name, peer.name));
        let cost = match peer.name {
            "weir-native" => weir(peer, "native", program),
            "weir-cranelift" => weir(peer, "cranelift", program),
            "wasmtime" => wasmtime(peer, "cranelift", program, scratch),
            "wasmtime-winch" => wasmtime(peer, "winch", program, scratch),
            _ => return None,
        };
        let Cost { bytecode_bytes, code_bytes, milliseconds } = cost.ok()?;
        Some(Compiler { program: program.name.clone(), name: peer.name.into(), bytecode_bytes, code_bytes, milliseconds })
    });
    let measured = measured.collect();
    progress("");
    measured
}

struct Cost {
    bytecode_bytes: u64,
    code_bytes: u64,
    milliseconds: f64,
}

/// The run with the median time.
fn median(cost: impl Fn() -> Result<Cost, Refusal>) -> Result<Cost, Refusal> {
    let mut runs = (0..RUNS).map(|_| cost()).collect::<Result<Vec<Cost>, Refusal>>()?;
    runs.sort_by(|a, b| a.milliseconds.total_cmp(&b.milliseconds));
    Ok(runs.swap_remove(RUNS / 2))
}

fn output(mut command: Command) -> Result<(Vec<u8>, Duration), Refusal> {
    let start = Instant::now();
    let output = command.stdin(Stdio::null()).stdout(Stdio::null()).output()?;
    let wall = start.elapsed();
    if output.status.success() { Ok((output.stderr, wall)) } else { Err(Refusal::failed(output.status, &output.stderr)) }
}

/// From the statistics that `weir` prints on the last line of its standard error.
fn weir(peer: &Peer, tier: &str, program: &Program) -> Result<Cost, Refusal> {
    median(|| {
        let mut command = Command::new(&peer.binary);
        command.args(["run", "--stats=json"]).arg(format!("--tier={tier}")).arg(&program.wasm).args(&program.small.args);
        let (stderr, _) = output(command)?;
        statistics(&stderr).ok_or_else(|| Refusal::Failed("no statistics".into()))
    })
}

fn statistics(stderr: &[u8]) -> Option<Cost> {
    let text = String::from_utf8_lossy(stderr);
    let json: serde_json::Value = serde_json::from_str(text.lines().last()?).ok()?;
    let phases = json["compile_ms"].as_object()?;
    Some(Cost {
        bytecode_bytes: json["bytecode_bytes_compiled"].as_u64()?,
        code_bytes: json["code_bytes"].as_u64()?,
        milliseconds: phases.values().filter_map(serde_json::Value::as_f64).sum(),
    })
}

fn wasmtime(peer: &Peer, compiler: &str, program: &Program, scratch: &Scratch) -> Result<Cost, Refusal> {
    let empty = scratch.path("empty.wasm");
    fs::write(&empty, b"\0asm\x01\0\0\0")?;
    let compiled = scratch.path(&format!("{}-{compiler}.cwasm", program.name));
    let compile = |module: &Path| {
        let mut command = Command::new(&peer.binary);
        command.args(["compile", "-Cparallel-compilation=n"]).arg(format!("-Ccompiler={compiler}"));
        command.arg("-o").arg(&compiled).arg(module);
        output(command).map(|(_, wall)| milliseconds(wall))
    };
    let idle = (0..RUNS).map(|_| compile(&empty)).collect::<Result<Vec<f64>, Refusal>>()?;
    let idle = summarize(&idle).map_or(0.0, |summary| summary.median);
    let bytecode_bytes = code_section(&fs::read(&program.wasm)?);
    median(|| {
        // Never less than the clock can tell from the empty module's.
        let milliseconds = (compile(&program.wasm)? - idle).max(0.1);
        Ok(Cost { bytecode_bytes, code_bytes: text_section(&fs::read(&compiled)?), milliseconds })
    })
}

/// Bytes of the function bodies.
fn code_section(module: &[u8]) -> u64 {
    let payloads = wasmparser::Parser::new(0).parse_all(module);
    let bodies = payloads.filter_map(|payload| match payload {
        Ok(wasmparser::Payload::CodeSectionEntry(body)) => Some(body.as_bytes().len() as u64),
        _ => None,
    });
    bodies.sum()
}

fn text_section(elf: &[u8]) -> u64 {
    let file = object::File::parse(elf).ok();
    file.and_then(|file| file.section_by_name(".text").map(|section| section.size())).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_sections() {
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let module = fs::read(programs.join("tailcalls/tailcalls.wasm")).unwrap();
        let code = code_section(&module);
        assert!(code > 300 && code < module.len() as u64, "{code}");
        assert_eq!(text_section(b"no object"), 0);
        let this = fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(text_section(&this) > 10_000);
    }

    #[test]
    fn statistics_are_the_last_line() {
        let stderr = br#"a warning
{"compile_ms": {"build": 1.5, "emit": 0.5}, "bytecode_bytes_compiled": 100, "code_bytes": 300}"#;
        let cost = statistics(stderr).unwrap();
        assert_eq!((cost.bytecode_bytes, cost.code_bytes, cost.milliseconds), (100, 300, 2.0));
        assert!(statistics(b"").is_none() && statistics(b"{}").is_none());
    }
}
