//! Checks the machine code of every compiler: of the programs, of the specification suite, and of random modules.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::Path;
use weir::Config;
use weir_bytecode::Module;
use weir_bytecode::types::{FuncType, ValType};
use weir_bytecode::validate::{self, Options, Proposals, parse_with};
use weir_check::{Kind, check_stub};
use weir_contract::code::Backend;
use weir_tests::engines::{default_engine, engine};
use weir_tests::generate::{generate, throwing};
use weir_tests::machine_check::{Configuration, Refused, Report, check_module, configurations, random_module};
use weir_tests::rng::Rng;
use weir_tests::smith;
use weir_tests::stub_check::{Damaged, StubReport, check_stubs, damaged, random_type};

/// Checks modules in every way to compile, and returns one report of code that is proved.
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
            for Refused { func, entry, fault } in &report.refused {
                let place = format!("{name} [{}], function {func}, {entry:?}: {fault}", configuration.name);
                reasons.entry(fault.what.clone()).or_insert(place);
            }
            of_all.add(report);
        }
        let Report { statistics, uncompiled, inlining, refused, time } = &of_all;
        println!(
            "{}: {} functions, {} refused, {} instructions, {} bytes in {:.1} s; {uncompiled} not compiled, {inlining} with inlined calls",
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

/// The modules of the specification suite.
fn suite() -> Vec<(String, Module)> {
    let options = || Options { proposals: Proposals::all(), ..Options::default() };
    let module = |(name, bytes): (String, Vec<u8>)| Some((name, parse_with(bytes.into(), options()).ok()?));
    weir_spec::modules().into_iter().filter_map(module).collect()
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
    let report = prove(&programs(|name| name != "real"), 5);
    let kinds = &report.statistics.accesses;
    for kind in [Kind::Guarded, Kind::Checked, Kind::NativeFrame, Kind::ValueFrame, Kind::Field, Kind::Element, Kind::Counter] {
        assert!(kinds.keys().any(|key| key.0 == kind), "{kind:?}");
    }
    let relative: u64 = [false, true].iter().filter_map(|&store| kinds.get(&(Kind::Relative, store))).sum();
    assert!(relative > 1_000, "{relative}");
    assert!(report.statistics.functions > 7_000, "{:?}", report.statistics);
    assert!(report.inlining > 500, "{}", report.inlining);
}

#[test]
fn the_specification_suite_is_proved() {
    let modules = suite();
    let report = prove(&modules, 5);
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
    prove_where(&modules, 5, |name, module, configuration| {
        configuration.backend != Backend::Cranelift || !name.starts_with("generated") || !is_wide(module)
    });
}

/// Signatures of the specification suite, random ones, and the longest.
fn signatures() -> Vec<FuncType> {
    let mut rng = Rng::new(1);
    let mut types: Vec<FuncType> = suite().into_iter().flat_map(|(_, module)| module.types.to_vec()).collect();
    types.extend((0..200).map(|_| random_type(&mut rng, 12)));
    types.extend((0..50).map(|_| random_type(&mut rng, 60)));
    for ty in [ValType::I64, ValType::F32, ValType::V128] {
        types.push(FuncType { params: vec![ty; 1000].into(), results: vec![ty; 1000].into() });
    }
    let mut seen = HashSet::new();
    types.retain(|ty| seen.insert(format!("{ty:?}")));
    types
}

#[test]
fn stubs_are_proved() {
    let types = signatures();
    let mut report = StubReport::default();
    for config in
        [Config::new().clone(), Config::new().consume_fuel(true).clone(), Config::new().epoch_interruption(true).clone()]
    {
        let engine = engine(&config).unwrap();
        check_stubs(&engine, None, &mut report);
        types.iter().for_each(|ty| check_stubs(&engine, Some(ty), &mut report));
    }
    println!("{} signatures: {:#?}", types.len(), report.proved);
    let first: BTreeMap<&str, String> =
        report.refused.iter().map(|refused| (&*refused.fault.what, refused.to_string())).collect();
    assert!(first.is_empty(), "{} refused: {:#?}", report.refused.len(), first.values());
    assert!(types.len() > 400, "{}", types.len());
    assert_eq!(report.proved.len(), 21, "{:?}", report.proved);
}

/// Signatures of which every word has a meaning, each with values in registers and in the overflow area.
fn full_signatures() -> [FuncType; 4] {
    use ValType::{F64, I64, V128};
    let of = |params: &[(ValType, usize)], results: &[(ValType, usize)]| {
        let list = |runs: &[(ValType, usize)]| runs.iter().flat_map(|&(ty, count)| vec![ty; count]).collect();
        FuncType { params: list(params), results: list(results) }
    };
    [
        of(&[(I64, 8), (F64, 3)], &[(I64, 10), (F64, 3)]),
        of(&[(F64, 10), (I64, 3)], &[(F64, 10), (I64, 3)]),
        of(&[(I64, 30), (F64, 1)], &[(I64, 30), (F64, 1)]),
        of(&[(V128, 12), (I64, 2)], &[(V128, 12), (I64, 2)]),
    ]
}

/// Every instruction of the stubs is needed: without it, or with another displacement, they are refused.
#[test]
fn stubs_with_a_fault_are_refused() {
    let engine = default_engine();
    let (mut proved, mut count) = (BTreeSet::new(), 0);
    let types = full_signatures();
    for ty in [None].into_iter().chain(types.iter().map(Some)) {
        let code = engine.stub_code(ty).expect("the engine has native code");
        let ty = ty.cloned().unwrap_or(FuncType { params: [].into(), results: [].into() });
        for Damaged { code, stub, offset, what } in damaged(&code, &ty) {
            count += 1;
            if check_stub(&code, stub, offset, &ty).is_ok() {
                proved.insert(what);
            }
        }
    }
    println!("{count} faults");
    assert!(count > 2_000, "{count}");
    // It makes other code faster.
    proved.retain(|text| !text.ends_with("vzeroupper"));
    // The helper takes less than the code passes that two stubs share.
    assert_eq!(
        proved.into_iter().collect::<Vec<_>>(),
        ["Poll: other place in mov rdx,[rbp]", "Poll: without mov rdx,[rbp]", "Poll: without mov rsi,r11"]
    );
}

/// After `programs/fetch.py`.
#[test]
#[ignore = "needs files from the network"]
fn real_programs_are_proved() {
    let modules = programs(|name| name == "real");
    assert!(!modules.is_empty(), "programs/fetch.py fetches them");
    prove(&modules, 1);
}
