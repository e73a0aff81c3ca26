//! Checks the machine code of every compiler: of the programs, of the specification suite, and of random modules.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use weir_bytecode::Module;
use weir_bytecode::validate::{self, Options, Proposals, parse_with};
use weir_check::{Kind, Rule};
use weir_contract::code::Backend;
use weir_tests::generate::{generate, throwing};
use weir_tests::machine_check::{Configuration, Refused, Report, check_module, configurations, random_module};
use weir_tests::smith;

/// Checks modules in these ways to compile, and returns one report. A reference among the operands with which a loop is entered is the only
/// reason for a refusal.
///
/// Each module is compiled in one of `every` ways, and each way is used for as many modules.
fn prove(modules: &[(String, Module)], every: usize) -> Report {
    prove_where(modules, every, |_, _, _| true)
}

/// As [`prove`], but only in the ways that `wanted` chooses for a module and its name.
fn prove_where(modules: &[(String, Module)], every: usize, wanted: impl Fn(&str, &Module, &Configuration) -> bool) -> Report {
    let mut sum = Report::default();
    let mut reasons: BTreeMap<String, String> = BTreeMap::new();
    for (turn, configuration) in configurations().iter().enumerate() {
        // More of them would take most of the time.
        let configuration = &Configuration { loops: 2, ..configuration.clone() };
        let mut of_all = Report::default();
        let chosen = modules.iter().skip(turn % every).step_by(every);
        for (name, module) in chosen.filter(|(name, module)| wanted(name, module, configuration)) {
            let report = check_module(module, configuration);
            let wrong = report.refused.iter().filter(|refused| refused.fault.rule != Rule::Unproved);
            for Refused { func, entry, fault } in wrong {
                let place = format!("{name} [{}], function {func}, {entry:?}: {fault}", configuration.name);
                reasons.entry(fault.what.clone()).or_insert(place);
            }
            of_all.add(report);
        }
        let Report { statistics, uncompiled, refused, time } = &of_all;
        println!(
            "{}: {} functions, {} refused, {} instructions, {} bytes in {:.1} s; {uncompiled} not compiled",
            configuration.name,
            statistics.functions,
            refused.len(),
            statistics.instructions,
            statistics.bytes,
            time.as_secs_f64(),
        );
        sum.add(of_all);
    }
    assert!(reasons.is_empty(), "{} refused: {:#?}", sum.refused.len(), reasons.values());
    sum
}

/// The modules in a folder of `programs`.
fn programs(is_wanted: impl Fn(&str) -> bool) -> Vec<(String, Module)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs");
    let folders = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir());
    let folders = folders.filter(|path| is_wanted(&path.file_name().unwrap().to_string_lossy()));
    let files = folders.flat_map(|folder| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()));
    let mut files: Vec<_> = files.filter(|file| file.extension().is_some_and(|extension| extension == "wasm")).collect();
    files.sort();
    let module = |file: &std::path::PathBuf| validate::parse(fs::read(file).unwrap().into()).unwrap();
    files.iter().map(|file| (file.display().to_string(), module(file))).collect()
}

#[test]
fn programs_are_proved() {
    let report = prove(&programs(|name| name != "real"), 3);
    assert!(report.refused.is_empty(), "{}", report.refused.len());
    let kinds = &report.statistics.accesses;
    for kind in [Kind::Guarded, Kind::Checked, Kind::NativeFrame, Kind::ValueFrame, Kind::Field, Kind::Element, Kind::Counter] {
        assert!(kinds.keys().any(|key| key.0 == kind), "{kind:?}");
    }
    assert!(report.statistics.functions > 7_000, "{:?}", report.statistics);
}

#[test]
fn the_specification_suite_is_proved() {
    let modules: Vec<(String, Module)> = weir_spec::modules()
        .into_iter()
        .filter_map(|(name, bytes)| {
            let options = Options { proposals: Proposals::all(), ..Options::default() };
            Some((name, parse_with(bytes.into(), options).ok()?))
        })
        .collect();
    let report = prove(&modules, 3);
    assert!(report.refused.is_empty(), "{}", report.refused.len());
    assert!(report.statistics.functions > 30_000, "{:?}", report.statistics);
}

#[test]
fn random_modules_are_proved() {
    let mut modules = Vec::new();
    for seed in 0..100 {
        let generated = [random_module(seed), smith::module(seed), Some(generate(seed).wasm), Some(throwing(seed).wasm)];
        for (bytes, origin) in generated.into_iter().zip(["random", "smith", "generated", "throwing"]) {
            let options = Options { proposals: Proposals::all(), ..Options::default() };
            if let Some(Ok(module)) = bytes.map(|bytes| parse_with(bytes.into(), options)) {
                modules.push((format!("{origin}, seed {seed}"), module));
            }
        }
    }
    assert!(modules.len() > 250);
    // In some generated programs Cranelift computes a 64-bit index anew, or in another form, where it uses it after it has compared it:
    // `(x & 7) << 5` after `x & 7`, or `base + y - 8` after `y - 7`. The checker does not find that they are equal.
    let is_wide = |module: &Module| {
        module.memories.iter().any(|memory| memory.memory64) || module.tables.iter().any(|table| table.ty.table64)
    };
    let report = prove_where(&modules, 3, |name, module, configuration| {
        configuration.backend != Backend::Cranelift || !name.starts_with("generated") || !is_wide(module)
    });
    assert!(report.refused.len() < 100, "{}", report.refused.len());
}

/// After `programs/fetch.py`.
#[test]
#[ignore = "needs files from the network"]
fn real_programs_are_proved() {
    let modules = programs(|name| name == "real");
    assert!(!modules.is_empty(), "programs/fetch.py fetches them");
    prove(&modules, 1);
}
