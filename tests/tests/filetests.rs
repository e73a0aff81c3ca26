//! Every file below `filetests/` is a test named by its path, for example `gvn/loads.ssa`. A part of the name selects
//! it: `cargo test -p weir-tests --test filetests gvn`. [`weir_tests::filetest`] describes the format.

use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use weir_jit::opt::passes;
use weir_tests::blessing;
use weir_tests::filetest::{Filetest, head};

/// Stages that are neither passes nor sections of `weir explore`.
const OTHERS: [&str; 4] = ["build", "opt", "print", "verify"];

/// Every file below `folder`; an empty folder is an error.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!entries.is_empty(), "no filetest in {}", folder.display());
    entries.sort();
    for path in entries {
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// The test of the file at `path`, and the stages that it names.
fn trial(name: String, path: &Path, bless: bool) -> (Trial, Vec<String>) {
    let read = Filetest::read(path);
    let head = read.as_ref().ok().and_then(|test| test.head().ok());
    let stages = head.as_ref().map_or_else(Vec::new, |head| head.stages.iter().map(ToString::to_string).collect());
    let elsewhere = head.is_some_and(|head| head.needs_machine()) && !cfg!(target_arch = "x86_64");
    let test = move || read.and_then(|test| test.check(bless)).map_err(Failed::from);
    (Trial::test(name, test).with_ignored_flag(elsewhere), stages)
}

/// Every pass and every other stage has a filetest.
fn every_stage_has_a_file(named: &BTreeSet<String>) -> Result<(), Failed> {
    let passes = passes::ORDER.iter().map(|pass| pass.name);
    let without: Vec<&str> = passes.chain(head::SHOWN).chain(OTHERS).filter(|stage| !named.contains(*stage)).collect();
    if without.is_empty() { Ok(()) } else { Err(format!("no filetest names {without:?}").into()) }
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests");
    let mut paths = Vec::new();
    files(&root, &mut paths);
    let bless = blessing();
    let mut named = BTreeSet::new();
    let mut trials = Vec::new();
    for path in paths {
        let name = path.strip_prefix(&root).expect("it was found below the root").display().to_string();
        let (trial, stages) = trial(name, &path, bless);
        trials.push(trial);
        named.extend(stages);
    }
    trials.push(Trial::test("every_stage_has_a_file", move || every_stage_has_a_file(&named)));
    libtest_mimic::run(&arguments, trials).exit_code()
}
