//! Whole modules: read, their functions, all of them compiled.

use weir_bytecode::{Module, validate};
use weir_jit::compile::{Compiled, Context, Refusal, compile};
use weir_jit::ir::Entry;
use weir_jit::{Backend, Options, Request};

/// Runs of which the median is taken.
pub const RUNS: usize = 5;

/// Reads and validates the module in a file.
pub fn load(file: &str) -> Result<Module, String> {
    let bytes = std::fs::read(file).map_err(|error| error.to_string())?;
    validate::parse(bytes.into()).map_err(|error| error.to_string())
}

/// Indices of the functions defined in `module`.
pub fn defined(module: &Module) -> std::ops::Range<u32> {
    module.imported_funcs..module.imported_funcs + module.bodies.len() as u32
}

/// Compiles every function with the native back end; `seen` gets each result.
pub fn compile_all(module: &Module, options: &Options, mut seen: impl FnMut(u32, Result<Compiled, Refusal>)) {
    let sig_ids: Vec<u32> = (0..module.types.len() as u32).collect();
    let mut cx = Context::default();
    for func in defined(module) {
        let entry = Entry::Call;
        let request =
            Request { module, func, entry, sig_ids: &sig_ids, backend: Backend::Native, profile: None, callees: None, options };
        seen(func, compile(&mut cx, &request));
    }
}
