//! Compares the side tables of whole modules with those that TABLE 1 gives.

use crate::costs;
use std::ops::AddAssign;
use std::sync::Arc;
use weir_bytecode::cost::Costs;
use weir_bytecode::validate::Proposals;
use weir_bytecode::{Module, validate, verify};

/// The numbers of verified items.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Verified {
    /// The number of functions defined in the modules.
    pub functions: usize,
    /// The number of branch entries.
    pub entries: usize,
}

impl AddAssign for Verified {
    fn add_assign(&mut self, other: Verified) {
        self.functions += other.functions;
        self.entries += other.entries;
    }
}

/// Verifies every function of a module, which was validated with these costs.
///
/// # Errors
/// The first function with an error, and the part of its side table that is wrong.
pub fn verify(module: &Module, costs: Option<&Costs>) -> Result<Verified, String> {
    for (func, body) in (module.imported_funcs..).zip(&module.bodies) {
        verify::side_table(module, func, body, costs).map_err(|fault| format!("function {func}, side table {fault}"))?;
    }
    let entries = module.bodies.iter().map(|body| body.branches.len()).sum();
    Ok(Verified { functions: module.bodies.len(), entries })
}

/// Verifies every function of a module in the binary format, without a table of costs and with a random one.
///
/// # Errors
/// The module is invalid, or the error of [`verify()`].
pub fn verify_binary(wasm: &[u8]) -> Result<Verified, String> {
    let with_costs = |costs: Option<Arc<Costs>>| {
        let options = validate::Options { proposals: Proposals::all(), costs: costs.clone(), ..validate::Options::default() };
        verify(&validate::parse_with(wasm.into(), options).map_err(|error| error.to_string())?, costs.as_deref())
    };
    with_costs(Some(Arc::new(Costs::from(&costs::random(wasm.len() as u64)))))?;
    with_costs(None)
}
