//! Names of functions in what the command prints.

use weir_bytecode::Module;
use weir_bytecode::names::Demangled;

/// Returns the name of a function as its source has it, from the name section or, if that has none, from the exports.
pub(crate) fn of(module: &Module, func: u32) -> Option<String> {
    let name = module.func_name(func).or_else(|| module.export_of(func))?;
    Some(format!("{:#}", Demangled(name)))
}

/// Returns `function 3`, with the name if there is one.
pub(crate) fn with_index(module: &Module, func: u32) -> String {
    of(module, func).map_or_else(|| format!("function {func}"), |name| format!("function {func} `{name}`"))
}
