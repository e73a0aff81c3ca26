//! Bytes as a module: validated with and without the acceptor, and executed by three tiers with limits on all resources.

use super::target::{Target, files};
use crate::damaged::{ModuleOutcome, attempt, engine};
use crate::{acceptance, damaged, side_tables};
use std::cell::RefCell;
use weir::{Engine, Tier};

/// The target.
pub const TARGET: Target = Target { name: "bytes", run, seeds };

/// The uses of an engine before another is made: types of host functions, which unknown imports become, stay in an engine for ever.
const USES: u32 = 50_000;

thread_local! {
    static ENGINES: RefCell<(u32, Vec<Engine>)> = const { RefCell::new((0, Vec::new())) };
}

/// Calls `attempt` with each engine for bad modules, the interpreter first, until the module is refused. Returns whether all accept it.
///
/// # Panics
/// An attempt fails.
pub(super) fn all_accept(attempt: impl Fn(&Engine) -> Result<ModuleOutcome, String>) -> bool {
    ENGINES.with_borrow_mut(|(uses, engines)| {
        *uses += 1;
        if engines.is_empty() || *uses % USES == 0 {
            *engines = [Tier::Interpreter, Tier::Native, Tier::Baseline].map(engine).into();
        }
        engines.iter().all(|engine| match attempt(engine) {
            Ok(outcome) => outcome != ModuleOutcome::Refused,
            Err(fault) => panic!("{fault}"),
        })
    })
}

/// Verifies the side tables of a valid module.
///
/// # Panics
/// One is wrong.
pub(super) fn verify(wasm: &[u8]) {
    if let Err(fault) = side_tables::verify_binary(wasm) {
        panic!("{fault}");
    }
}

fn run(data: &[u8]) {
    // Validation is compared for invalid modules, too.
    if let Err(difference) = acceptance::compare(data) {
        panic!("with and without the acceptor: {difference}");
    }
    if all_accept(|engine| attempt(engine, data)) {
        verify(data);
    }
}

/// Small modules: those of earlier finds, hostile ones, and those of the filetests.
fn seeds() -> Vec<Vec<u8>> {
    let texts = [files("found", &["wat"]), files("filetests", &["wat"])].concat();
    let texts = texts.iter().filter_map(|text| wat::parse_bytes(text).ok()).map(|wasm| wasm.into_owned());
    let hostile = damaged::hostile().into_iter().map(|(_, wasm)| wasm);
    let mut seeds: Vec<Vec<u8>> = files("found", &["wasm"]).into_iter().chain(texts).chain(hostile).collect();
    seeds.retain(|wasm| wasm.len() <= 2048);
    seeds
}
