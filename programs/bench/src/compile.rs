//! `weir-bench compile`: compiles every function of a module with Weir, as `wasmtime compile` does with wasmtime.
//!
//! One process reads the file, validates it, compiles all functions on one thread without a profile, and writes the
//! code. Its time, minus that for an empty module, can be compared with the same difference for `wasmtime compile`.
//!
//! Without a file for the code, each function's code is copied to memory, where its relocations are applied, and in the end all of
//! it is made executable. So it is in V8, with whose Liftoff the baseline compiler is compared.

use crate::code_memory::CodeMemory;
use crate::options::Compile;
use serde::{Deserialize, Serialize};
use std::fs;
use weir_jit::compile::{Context, compile};
use weir_jit::ir::Entry;
use weir_jit::{Backend, Options, Request};

/// The line that `weir-bench compile` prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Summary {
    pub functions: u64,
    pub code_bytes: u64,
    /// Functions that the back end refused.
    pub refused: u64,
    /// Bytes of their bodies.
    pub refused_bytes: u64,
}

/// Compiles the module and writes its code.
///
/// # Errors
/// The module cannot be read, is not valid, or the code cannot be written.
pub fn compile_module(options: &Compile) -> Result<Summary, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", options.module.display());
    let bytes = fs::read(&options.module).map_err(|error| failed(&error))?;
    let module = weir_bytecode::validate::parse(bytes.into()).map_err(|error| failed(&error))?;
    let sig_ids: Vec<u32> = (0..module.types.len() as u32).collect();
    let backend = match options {
        Compile { baseline: true, .. } => Backend::Baseline,
        Compile { cranelift: true, .. } => Backend::Cranelift,
        _ => Backend::Native,
    };
    let compiler_options = Options { verify: false, ticks: options.counts, counts: options.counts, ..Options::default() };
    let unplaced = |error: std::io::Error| format!("executable memory: {error}");
    let (mut cx, mut code, mut summary) = (Context::default(), Vec::new(), Summary::default());
    let mut memory = options.out.is_none().then(|| CodeMemory::new(&module)).transpose().map_err(unplaced)?;
    for (func, body) in (module.imported_funcs..).zip(&module.bodies) {
        let options = &compiler_options;
        let request = Request {
            module: &module,
            func,
            entry: Entry::Call,
            sig_ids: &sig_ids,
            backend,
            profile: None,
            callees: None,
            options,
        };
        summary.functions += 1;
        match compile(&mut cx, &request) {
            Ok(compiled) => {
                summary.code_bytes += compiled.code.len() as u64;
                match &mut memory {
                    Some(memory) => memory.place(func, &compiled).map_err(unplaced)?,
                    None => code.extend_from_slice(&compiled.code),
                }
            }
            Err(_) => {
                summary.refused += 1;
                summary.refused_bytes += u64::from(body.len());
            }
        }
    }
    if let Some(memory) = memory {
        memory.make_executable().map_err(unplaced)?;
    }
    if let Some(out) = &options.out {
        fs::write(out, code).map_err(|error| format!("{}: {error}", out.display()))?;
    }
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_function_of_a_module_is_compiled() {
        let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../huffman/huffman.wasm");
        let out = std::env::temp_dir().join(format!("weir-bench-compile-{}.bin", std::process::id()));
        let bodies = wasmparser::Parser::new(0).parse_all(&fs::read(&module).unwrap()).filter(is_body).count() as u64;
        for cranelift in [false, true] {
            let options = Compile { module: module.clone(), out: Some(out.clone()), cranelift, baseline: false, counts: false };
            let summary = compile_module(&options).unwrap();
            assert_eq!((summary.functions, summary.refused), (bodies, 0), "{summary:?}");
            assert_eq!(fs::metadata(&out).unwrap().len(), summary.code_bytes);
            assert!(summary.code_bytes > 1000, "{summary:?}");
        }
        fs::remove_file(&out).unwrap();
        let [plain, counting] = [false, true].map(|counts| {
            let options = Compile { module: module.clone(), out: None, cranelift: false, baseline: true, counts };
            let summary = compile_module(&options).unwrap();
            assert_eq!((summary.functions, summary.refused), (bodies, 0), "{summary:?}");
            summary.code_bytes
        });
        assert!(plain < counting, "{plain} bytes, {counting} with counts");
    }

    fn is_body(payload: &wasmparser::Result<wasmparser::Payload<'_>>) -> bool {
        matches!(payload, Ok(wasmparser::Payload::CodeSectionEntry(_)))
    }
}
