//! Compile time and code size of whole modules, with Weir's compilers and wasmtime's.
//!
//! Each compiler is a process that reads one module, validates it, compiles every function on one thread and writes the
//! code. The result is its time minus that for an empty module. One difference remains: wasmtime writes an ELF file
//! with sections of its own, whose text section contains trampolines; Weir writes machine code only.

use crate::compile::Summary;
use crate::document::{Compiler, Scope, summarize};
use crate::measure::{Refusal, Scratch};
use crate::peers::Peer;
use crate::programs::Program;
use crate::run::{milliseconds, progress};
use object::{Object, ObjectSection};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

/// Runs of which the median is taken.
const RUNS: usize = 3;

/// Compiles the program's module with each compiler among the peers.
pub fn measure(program: &Program, peers: &[Peer], scratch: &Scratch) -> Vec<Compiler> {
    let measured = peers.iter().filter_map(|peer| {
        progress(&format!("compiling {} with {}", program.name, peer.name));
        let cost = match peer.name {
            "weir-native" => weir(&[], program, scratch),
            "weir-cranelift" => weir(&["--cranelift"], program, scratch),
            "wasmtime" => wasmtime(peer, "cranelift", program, scratch),
            "wasmtime-winch" => wasmtime(peer, "winch", program, scratch),
            _ => return None,
        };
        let row = Compiler { program: program.name.clone(), name: peer.name.into(), scope: Scope::Module, ..Compiler::default() };
        Some(match cost {
            Ok(Cost { bytecode_bytes, code_bytes, milliseconds, refused }) => {
                Compiler { bytecode_bytes, code_bytes, milliseconds, refused, ..row }
            }
            Err(refusal) => Compiler { left_out: Some(refusal.to_string()), ..row },
        })
    });
    let measured = measured.collect();
    progress("");
    measured
}

struct Cost {
    bytecode_bytes: u64,
    code_bytes: u64,
    milliseconds: f64,
    refused: u64,
}

/// The median time of a command for the module, minus that for an empty one, in milliseconds; and the output of its
/// last run.
fn time(
    program: &Program,
    scratch: &Scratch,
    command: impl Fn(&Path) -> Result<Command, Refusal>,
) -> Result<(f64, Vec<u8>), Refusal> {
    let empty = scratch.path("empty.wasm");
    fs::write(&empty, b"\0asm\x01\0\0\0")?;
    let mut last = Vec::new();
    let mut median = |module: &Path| {
        let mut runs = Vec::new();
        for _ in 0..RUNS {
            let start = Instant::now();
            let output = command(module)?.stdin(Stdio::null()).output()?;
            runs.push(milliseconds(start.elapsed()));
            if !output.status.success() {
                return Err(Refusal::failed(output.status, &output.stderr));
            }
            last = output.stdout;
        }
        Ok(summarize(&runs).map_or(0.0, |summary| summary.median))
    };
    let idle = median(&empty)?;
    // At least the clock's resolution.
    let taken = (median(&program.wasm)? - idle).max(0.1);
    Ok((taken, last))
}

/// Weir's compiler, in a process of this program.
fn weir(flags: &[&str], program: &Program, scratch: &Scratch) -> Result<Cost, Refusal> {
    let this = std::env::current_exe()?;
    let (milliseconds, stdout) = time(program, scratch, |module| {
        let mut command = Command::new(&this);
        command.arg("compile").args(flags).arg("-o").arg(scratch.path("code.bin")).arg(module);
        Ok(command)
    })?;
    let summary: Summary = serde_json::from_slice(&stdout).map_err(|error| Refusal::Failed(error.to_string()))?;
    let bytecode_bytes = code_section(&fs::read(&program.wasm)?) - summary.refused_bytes;
    Ok(Cost { bytecode_bytes, code_bytes: summary.code_bytes, milliseconds, refused: summary.refused })
}

fn wasmtime(peer: &Peer, compiler: &str, program: &Program, scratch: &Scratch) -> Result<Cost, Refusal> {
    let compiled = scratch.path(&format!("{}-{compiler}.cwasm", program.name));
    let (milliseconds, _) = time(program, scratch, |module| {
        let mut command = Command::new(&peer.binary);
        command.args(["compile", "-Cparallel-compilation=n"]).arg(format!("-Ccompiler={compiler}"));
        command.arg("-o").arg(&compiled).arg(module);
        Ok(command)
    })?;
    let bytecode_bytes = code_section(&fs::read(&program.wasm)?);
    Ok(Cost { bytecode_bytes, code_bytes: text_section(&fs::read(&compiled)?), milliseconds, refused: 0 })
}

/// Bytes of the function bodies.
pub fn code_section(module: &[u8]) -> u64 {
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
    fn a_compiler_that_fails_is_a_row_with_the_reason() {
        let scratch = Scratch::new().unwrap();
        let programs = crate::programs::find(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), Some("fib")).unwrap();
        let command = |script: &'static str| {
            move |_: &Path| {
                let mut command = Command::new("sh");
                command.args(["-c", script]);
                Ok(command)
            }
        };
        let (taken, output) = time(&programs[0], &scratch, command("echo done")).unwrap();
        assert!(taken >= 0.1 && output == b"done\n", "{taken}");
        let failed = time(&programs[0], &scratch, command("echo why >&2; exit 1"));
        assert!(matches!(failed, Err(Refusal::Failed(why)) if why.contains("why")));
        // This test program has no command `compile`.
        let peer = crate::peers::tests::peer("weir-native");
        let rows = measure(&programs[0], &[peer], &scratch);
        assert!(rows.len() == 1 && rows[0].left_out.is_some() && rows[0].scope == Scope::Module, "{rows:?}");
    }
}
