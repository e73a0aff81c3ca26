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

/// Calls `use_them` with the engines for bad modules: the interpreter first.
pub(super) fn with_engines(use_them: impl FnOnce(&[Engine])) {
    ENGINES.with_borrow_mut(|(uses, engines)| {
        *uses += 1;
        if engines.is_empty() || *uses % USES == 0 {
            *engines = [Tier::Interpreter, Tier::Native, Tier::Baseline].map(engine).into();
        }
        use_them(engines);
    });
}

fn run(data: &[u8]) {
    // Validation is compared for invalid modules, too.
    if let Err(difference) = acceptance::compare(data) {
        panic!("with and without the acceptor: {difference}");
    }
    with_engines(|engines| {
        for engine in engines {
            match attempt(engine, data) {
                Ok(ModuleOutcome::Refused) => return,
                Ok(_) => {}
                Err(fault) => panic!("{fault}"),
            }
        }
        if let Err(fault) = side_tables::verify_binary(data) {
            panic!("{fault}");
        }
    });
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
