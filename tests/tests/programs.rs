//! Every program in `programs/` prints its expected output on every tier.

use std::fs;
use std::path::{Path, PathBuf};
use weir::{Config, FunctionStats, Linker, Module, Profile, RoundTrip, Stats, Store, Tier};
use weir_tests::elsewhere::twice;
use weir_tests::engines::engine;
use weir_tests::pass_sets::PassSet;
use weir_wasi::WasiCtx;
use weir_wasi::p2::pipe::MemoryOutputPipe;

/// Folders of `programs/` without a program of their own: the benchmarks, inputs for real programs, sources of programs that throw,
/// fetched files, and the frozen list.
const OTHERS: [&str; 5] = ["bench", "cases", "exceptions", "real", "twins"];

/// The folders of programs: all that are not among [`OTHERS`]. A folder that lacks a file fails the test that runs it.
fn folders() -> Vec<PathBuf> {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../programs");
    let mut folders: Vec<PathBuf> = fs::read_dir(programs)
        .expect("the folder programs")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir() && !OTHERS.contains(&name(path)))
        .collect();
    folders.sort();
    folders
}

fn name(folder: &Path) -> &str {
    folder.file_name().and_then(|name| name.to_str()).expect("a name")
}

/// The result of a run.
struct Run {
    output: String,
    stats: Stats,
    fuel: Option<u64>,
    /// By function, its counts, if there are any.
    counts: Vec<Option<Profile>>,
}

/// Runs the program with its small arguments.
fn run(folder: &Path, config: &Config) -> weir::Result<Run> {
    let arguments = fs::read_to_string(folder.join("args.txt"))?;
    let small = arguments.lines().find_map(|line| line.strip_prefix("small")).expect("a line `small`");
    let output = MemoryOutputPipe::new(1 << 20);
    let small: Vec<&str> = small.split_whitespace().collect();
    let ctx = WasiCtx::builder().arg(name(folder)).args(&small).stdout(output.clone()).build();

    let engine = engine(config.clone().wasm_legacy_exceptions(true))?;
    let module = Module::from_file(&engine, folder.join(format!("{}.wasm", name(folder))))?;
    let mut store = Store::new(&engine, ctx);
    let _ = store.set_fuel(FUEL);
    let mut linker = Linker::new(&engine);
    weir_wasi::p1::add_to_linker_sync(&mut linker, |ctx| ctx)?;
    let instance = linker.instantiate(&mut store, &module)?;
    instance.get_typed_func::<(), ()>(&mut store, "_start")?.call(&mut store, ())?;
    let output = String::from_utf8_lossy(&output.contents()).into_owned();
    let stats = module.stats();
    let imports = module.imports().len();
    let counts = (0..imports + stats.functions.total as usize).map(|func| module.profile(func as u32)).collect();
    Ok(Run { output, stats, fuel: store.get_fuel().ok().map(|left| FUEL - left), counts })
}

/// Targets of indirect calls in the programs, at least.
const TARGETS: usize = 50;

/// More than any program needs.
const FUEL: u64 = 1 << 40;

/// Runs all programs and checks their output. Returns their names and runs.
fn all_programs_with(config: &Config) -> Vec<(String, Run)> {
    folders().iter().map(|folder| (name(folder).to_string(), checked(folder, config))).collect()
}

/// Runs one program and checks its output.
fn checked(folder: &Path, config: &Config) -> Run {
    let expected = fs::read_to_string(folder.join("expected.txt")).expect("expected.txt");
    let run = run(folder, config).unwrap_or_else(|error| panic!("{}: {error:?}", name(folder)));
    assert_eq!(run.output, expected, "{}", name(folder));
    run
}

/// Compiles early, but within running loops, and on the running thread, so that nothing depends on time.
fn eager() -> Config {
    let mut config = Config::new();
    config.synchronous_compilation(true).tier_up_threshold(Some(50));
    config
}

/// Whether everything ran in this tier's code.
fn all_compiled(functions: &FunctionStats) -> bool {
    functions.fallbacks.is_empty() && functions.interpreted == 0
}

/// Whether everything ran in Cranelift's code but the functions with handlers of exceptions.
fn all_compiled_without_handlers(functions: &FunctionStats) -> bool {
    let handlers = |reason: &str| reason.contains("handlers of exceptions");
    functions.fallbacks.iter().all(|fallback| handlers(&fallback.reason))
        && functions.interpreted <= functions.fallbacks.len() as u64
}

/// The programs that throw, whose exceptions move at every safepoint if anything refers to them. The others have nothing that could.
#[test]
fn everything_moves() {
    let folders: Vec<PathBuf> =
        folders().into_iter().filter(|path| name(path).contains("throw") || name(path).contains("unwind")).collect();
    assert_eq!(folders.len(), 4, "{folders:?}");
    for folder in folders {
        assert!(checked(&folder, eager().gc_stress(true)).stats.functions.native > 0, "{folder:?}");
        checked(&folder, Config::new().tier(Tier::Baseline).gc_stress(true));
    }
}

#[test]
fn interpreter() {
    for (name, run) in all_programs_with(Config::new().tier(Tier::Interpreter)) {
        let functions = run.stats.functions;
        assert_eq!((functions.native, functions.cranelift), (0, 0), "{name}");
        assert_eq!(functions.interpreted, functions.called, "{name}");
    }
}

#[test]
fn native() {
    for (name, run) in all_programs_with(Config::new().tier(Tier::Native)) {
        let functions = run.stats.functions;
        assert!(functions.native > 0 && functions.cranelift == 0 && all_compiled(&functions), "{name}: {functions:?}");
    }
}

/// Each program, compiled and stored by another process.
#[test]
fn native_from_stored_code() {
    twice("native_from_stored_code", |way| {
        let is_read = matches!(way, RoundTrip::From(_));
        for (name, run) in all_programs_with(Config::new().tier(Tier::Native).round_trip(Some(way))) {
            let (functions, stored) = (run.stats.functions, run.stats.stored);
            if is_read {
                assert!(functions.native == 0 && all_compiled(&functions) && stored.damaged == 0, "{name}: {functions:?}");
                assert!(stored.optimised > 0, "{name}");
            }
        }
    });
}

#[test]
fn cranelift() {
    for (name, run) in all_programs_with(Config::new().tier(Tier::Cranelift)) {
        let functions = run.stats.functions;
        let all = all_compiled_without_handlers(&functions);
        assert!(functions.cranelift > 0 && functions.native == 0 && all, "{name}: {functions:?}");
    }
}

/// Baseline code counts the same directions of branches and targets of indirect calls as the interpreter.
#[test]
fn baseline() {
    let run = |tier| all_programs_with(Config::new().tier(tier).profile(true));
    let (mut counted, mut targets) = (0, 0);
    for ((name, run), (_, interpreted)) in run(Tier::Baseline).into_iter().zip(run(Tier::Interpreter)) {
        let functions = run.stats.functions;
        assert!(functions.baseline > 0 && functions.native == 0 && functions.interpreted == 0, "{name}: {functions:?}");
        for (func, counts) in run.counts.iter().enumerate() {
            assert_eq!(*counts, interpreted.counts[func], "{name}: function {func}");
            let branches = counts.iter().flat_map(|counts| &counts.branches);
            counted += branches.flat_map(|branch| &branch.counts).filter(|&&count| count > 0).count();
            targets += counts.iter().flat_map(|counts| &counts.calls).map(|call| call.targets.len()).sum::<usize>();
        }
    }
    assert!(targets > TARGETS, "{targets} targets were called");
    assert!(counted > 5000, "{counted} directions were taken");
}

#[test]
fn ssa_as_optimised() {
    for (name, run) in all_programs_with(Config::new().tier(Tier::Ssa)) {
        let functions = run.stats.functions;
        let all = functions.evaluated + functions.interpreted == functions.called && all_compiled(&functions);
        assert!(functions.evaluated > 0 && all, "{name}: {functions:?}");
        assert_eq!((functions.native, functions.cranelift), (0, 0), "{name}");
    }
}

#[test]
fn in_the_background() {
    let runs = all_programs_with(&Config::new());
    let compiled = runs.iter().filter(|(_, run)| run.stats.functions.native > 0 || run.stats.osr_entries > 0).count();
    println!("{compiled} of {} programs", runs.len());
    assert!(compiled > 0, "the compiler thread made code for no program");
}

#[test]
fn eagerly() {
    let runs = all_programs_with(&eager());
    let entered: Vec<&str> = runs.iter().filter(|(_, run)| run.stats.osr_entries > 0).map(|(name, _)| name.as_str()).collect();
    assert!(entered.len() >= 10, "only {entered:?} went on in compiled code within a loop");
}

/// Each program after two choices of passes, so that each choice is used with several programs.
#[test]
fn native_after_some_passes() {
    let sets = PassSet::every();
    for (i, folder) in folders().iter().enumerate() {
        for passes in [&sets[i % sets.len()], &sets[(i + sets.len() / 2) % sets.len()]] {
            assert!(checked(folder, &passes.native()).stats.functions.native > 0, "{}", passes.name);
        }
    }
}

/// Each program after every choice of passes; this takes minutes: `cargo test --workspace --locked --test programs --
/// --ignored native_after_every_choice_of_passes`
#[test]
#[ignore = "takes minutes"]
fn native_after_every_choice_of_passes() {
    for passes in PassSet::every() {
        let runs = all_programs_with(&passes.native());
        println!("{}: {} programs", passes.name, runs.len());
    }
}

#[test]
fn every_tier_uses_the_same_fuel_and_calls_the_same_functions() {
    let folders = folders();
    let counts = |config: &mut Config| -> Vec<(&str, Option<u64>, u64)> {
        config.consume_fuel(true);
        let runs = folders.iter().map(|folder| (name(folder), checked(folder, config)));
        runs.map(|(name, run)| (name, run.fuel, run.stats.functions.called)).collect()
    };
    let interpreted = counts(Config::new().tier(Tier::Interpreter));
    let counted = |fuel: Option<u64>, called| fuel.is_some_and(|fuel| fuel > 1000) && called > 0;
    assert!(interpreted.iter().all(|&(_, fuel, called)| counted(fuel, called)), "{interpreted:?}");
    // A function whose calls are all inlined is not called.
    let fuel =
        |counts: &[(&str, Option<u64>, u64)]| counts.iter().map(|count| (count.0.to_string(), count.1)).collect::<Vec<_>>();
    let inlined = counts(Config::new().tier(Tier::Native));
    assert_eq!(fuel(&inlined), fuel(&interpreted));
    assert!(inlined.iter().zip(&interpreted).all(|(inlined, called)| inlined.2 <= called.2), "{inlined:?} {interpreted:?}");
    assert_eq!(counts(Config::new().tier(Tier::Native).passes_off(&["inline"])), interpreted);
    assert_eq!(counts(Config::new().tier(Tier::Cranelift)), interpreted);
    assert_eq!(counts(Config::new().tier(Tier::Baseline)), interpreted);
    assert_eq!(counts(Config::new().tier(Tier::Ssa).rewrite_fuel(Some(0))), interpreted, "SSA as built");
    assert_eq!(fuel(&counts(&mut eager())), fuel(&interpreted));
    assert_eq!(fuel(&counts(Config::new().stress(Some(1)))), fuel(&interpreted), "under stress");
}

/// A program written in the text format is also committed in the binary format, for runtimes that read only that.
#[test]
fn text_programs() {
    for folder in folders() {
        let text = folder.join(format!("{}.wat", name(&folder)));
        if !text.exists() {
            continue;
        }
        let binary = wat::parse_file(&text).expect("valid text");
        let committed = text.with_extension("wasm");
        if weir_tests::blessing() {
            fs::write(&committed, &binary).expect("writable");
        }
        let same = fs::read(&committed).is_ok_and(|bytes| bytes == binary);
        assert!(same, "{} is out of date: run build.sh beside it", committed.display());
    }
}

/// Native code with padding everywhere, by function and within bodies that are entered at loops.
#[test]
fn native_with_padding() {
    use weir::{PadAt, Padding};
    let places = [PadAt::Function, PadAt::Head, PadAt::Arms, PadAt::Jump];
    for (seed, place) in (1..).zip(places) {
        let padding = Padding { after: Some((place, 13)), seed: Some(seed) };
        for config in [Config::new().tier(Tier::Native), &mut eager()] {
            all_programs_with(config.padding(padding));
        }
    }
}
