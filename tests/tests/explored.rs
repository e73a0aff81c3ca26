//! `explore` with the saved profile and the options of a run shows the code that the run installed. A profile never
//! changes the behaviour of a program.
//!
//! `cargo test -p weir-tests --test explored -- --ignored --nocapture` checks this for QuickJS, which
//! `programs/fetch.py qjs-wasi` fetches, and lists its hottest functions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use weir::{Allocator, CompiledBy, Config, Engine, Linker, Module, Store, Tier, TierEventKind};
use weir_tests::engines::{engine, engine_with_events};
use weir_tests::profiles::{same_code, shown_bytes, use_random};
use weir_tests::rng::Rng;
use weir_wasi::p2::pipe::MemoryOutputPipe;
use weir_wasi::{FsPerms, I32Exit, WasiCtx};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A program with its arguments.
struct Program {
    name: String,
    path: PathBuf,
    args: Vec<String>,
    /// The folder that is opened for it as `/data`, if any.
    folder: Option<PathBuf>,
}

impl Program {
    /// A program in `programs/` with its small arguments.
    fn small(name: &str) -> Program {
        let folder = root().join("programs").join(name);
        let arguments = fs::read_to_string(folder.join("args.txt")).expect("args.txt");
        let small = arguments.lines().find_map(|line| line.strip_prefix("small")).expect("a line `small`");
        let args = small.split_whitespace().map(String::from).collect();
        Program { name: name.into(), path: folder.join(format!("{name}.wasm")), args, folder: None }
    }

    /// Loads the program, prepares its module with `before`, and runs it. Returns the module and the output.
    fn run(&self, engine: &Engine, before: impl FnOnce(&Module)) -> (Module, String) {
        let output = MemoryOutputPipe::new(1 << 20);
        let mut ctx = WasiCtx::builder();
        ctx.arg(&*self.name).args(&self.args).stdout(output.clone());
        if let Some(folder) = &self.folder {
            ctx.preopened_dir(folder, "/data", FsPerms::ReadOnly).expect("a folder");
        }
        let module = Module::from_file(engine, &self.path).expect("a module");
        before(&module);
        let mut store = Store::new(engine, ctx.build());
        let _ = store.set_fuel(1 << 40);
        store.set_epoch_deadline(1);
        let mut linker = Linker::new(engine);
        weir_wasi::p1::add_to_linker_sync(&mut linker, |ctx| ctx).expect("WASI");
        let instance = linker.instantiate(&mut store, &module).expect("an instance");
        let start = instance.get_typed_func::<(), ()>(&mut store, "_start").expect("a program");
        if let Err(error) = start.call(&mut store, ()) {
            assert_eq!(error.downcast_ref::<I32Exit>().map(|exit| exit.0), Some(0), "{}: {error:?}", self.name);
        }
        (module, String::from_utf8_lossy(&output.contents()).into_owned())
    }

    fn expected(&self) -> String {
        fs::read_to_string(self.path.with_file_name("expected.txt")).expect("expected.txt")
    }
}

/// Installed code by function, loop, and whether it is baseline code; if code was installed more than once, the last.
type Installed = BTreeMap<(u32, Option<u32>, bool), Vec<u8>>;

/// Runs the program. Returns the installed code and the saved profile.
fn record(program: &Program, config: &Config) -> (Installed, String) {
    let installed: Arc<Mutex<Installed>> = Arc::default();
    let (seen, mut config) = (installed.clone(), config.clone());
    let engine = engine_with_events(config.keep_profiles(true), move |event| {
        if let (TierEventKind::Compiled { code, by, .. }, Some(func)) = (&event.kind, event.func) {
            seen.lock().unwrap().insert((func, event.osr, *by == CompiledBy::Baseline), code.to_vec());
        }
    });
    let (module, _) = program.run(&engine.expect("an engine"), |_| ());
    // The compiler thread may install more code meanwhile, so the installed code is copied before the counts.
    let installed = installed.lock().unwrap().clone();
    (installed, module.saved_profile().expect("profiles are kept").to_string())
}

/// A module that uses the profile, in an engine with the settings of the run.
fn explored(program: &Program, config: &Config, profile: &str) -> Module {
    let engine = engine(config.clone().keep_profiles(true)).expect("an engine");
    let module = Module::from_file(&engine, &program.path).expect("a module");
    module.use_profile(profile).expect("the module's profile");
    module
}

/// The size of the comparison.
#[derive(Clone, Copy, Debug, Default)]
struct Compared {
    calls: usize,
    loops: usize,
    /// The number of functions whose baseline code ran.
    baseline: usize,
    /// The number of entries whose code differs without the profile.
    guided: usize,
    /// The number of inlined functions, for each entry, that have counts.
    inlined: usize,
}

fn check(program: &Program, config: &Config) -> Compared {
    let (installed, profile) = record(program, config);
    let with = explored(program, config, &profile);
    let without = Module::from_file(with.engine(), &program.path).expect("a module");
    let mut compared = Compared { inlined: profile.matches("\n  inlined f").count(), ..Compared::default() };
    for (&(func, osr, baseline), code) in &installed {
        if baseline {
            let shown = shown_bytes(&with.explore_baseline(func).expect("code"));
            assert!(same_code(&shown, code), "{}: function {func}: other baseline code is shown than ran", program.name);
            compared.baseline += 1;
            continue;
        }
        let shown = shown_bytes(&with.explore(func, osr).expect("code"));
        assert!(same_code(&shown, code), "{}: function {func}, loop {osr:x?}: other code is shown than ran", program.name);
        *if osr.is_some() { &mut compared.loops } else { &mut compared.calls } += 1;
        compared.guided += usize::from(!same_code(&shown_bytes(&without.explore(func, osr).expect("code")), code));
    }
    compared
}

/// Compiles early, but within running loops, and on the running thread.
fn eager() -> Config {
    let mut config = Config::new();
    config.synchronous_compilation(true).tier_up_threshold(Some(50));
    config
}

/// Programs in several languages, with calls, loops, tables, vectors and tail calls.
const PROGRAMS: [&str; 8] = ["json", "indirect", "switch", "regex", "lz", "tailcalls", "matmul-simd", "virtual"];

#[test]
fn the_code_shown_is_the_code_that_ran() {
    let mut total = Compared::default();
    for name in PROGRAMS {
        let Compared { calls, loops, baseline, guided, inlined } = check(&Program::small(name), &eager());
        assert!(calls + loops > 0, "{name}: nothing was compiled");
        (total.calls, total.loops) = (total.calls + calls, total.loops + loops);
        (total.baseline, total.guided) = (total.baseline + baseline, total.guided + guided);
        total.inlined += inlined;
    }
    assert!(total.calls > 20 && total.loops > 10 && total.baseline > 20 && total.guided > 5 && total.inlined > 2, "{total:?}");
}

#[test]
fn with_the_options_of_the_run() {
    let program = Program::small("json");
    let with = |change: fn(&mut Config) -> &mut Config| change(&mut eager()).clone();
    let settings = [
        Config::new(),
        with(|config| config.consume_fuel(true)),
        with(|config| config.epoch_interruption(true)),
        with(|config| config.signals_based_traps(false)),
        with(|config| config.guard_regions(false)),
        with(|config| config.deterministic(true)),
        with(|config| config.lazy_validation(true)),
        with(|config| config.register_allocator(Allocator::Regalloc2)),
        with(|config| config.passes_off(&["gvn", "simplify"])),
        with(|config| config.rewrite_fuel(Some(3))),
        with(|config| config.tier_up_threshold(Some(1))),
        with(|config| config.tier(Tier::Native)),
        with(|config| config.tier(Tier::Cranelift)),
    ];
    for (i, config) in settings.iter().enumerate() {
        let compared = check(&program, config);
        // How much the compiler's thread has done by the end of the program varies.
        assert!(i == 0 || compared.calls + compared.loops > 0, "settings {i}: nothing was compiled");
    }
}

#[test]
fn a_profile_that_was_used_is_saved_again() {
    let program = Program::small("json");
    let (_, first) = record(&program, &eager());
    let mut used = eager();
    used.keep_profiles(true);
    let (module, output) =
        program.run(&engine(&used).expect("an engine"), |module| module.use_profile(&first).expect("the module's profile"));
    assert_eq!(output, program.expected());
    let again = module.saved_profile().expect("profiles are kept");
    let first: weir::ModuleProfile = first.parse().expect("a profile");
    for (entry, counts) in &first.entries {
        if !counts.is_empty() {
            assert_eq!(again.entries.get(entry), Some(counts), "{entry:?}");
        }
    }
    let missing = first.inlined.iter().find(|&(key, counts)| again.inlined.get(key) != Some(counts));
    assert_eq!(missing, None);
    // A second profile is refused, and so is the profile of another module.
    assert!(module.use_profile(&again.to_string()).is_err());
    let other = Module::from_file(module.engine(), Program::small("fib").path).expect("a module");
    let error = other.use_profile(&again.to_string()).unwrap_err();
    assert_eq!(error.downcast_ref::<weir::ProfileError>().map(|error| error.line), Some(2), "{error}");
    // Without the setting there is no profile.
    let (module, _) = program.run(&engine(&eager()).expect("an engine"), |_| ());
    assert!(module.saved_profile().is_err() && module.use_profile(&again.to_string()).is_err());
}

#[test]
fn a_profile_changes_no_result() {
    let with = |tier| eager().tier(tier).keep_profiles(true).clone();
    let mut default = Config::new();
    default.keep_profiles(true);
    for name in ["json", "switch", "indirect", "regex"] {
        let program = Program::small(name);
        for (seed, config) in (0..3).flat_map(|seed| {
            let tiers = [Tier::Interpreter, Tier::Auto, Tier::Native, Tier::Cranelift, Tier::Baseline, Tier::Ssa];
            tiers.map(with).into_iter().chain([default.clone()]).map(move |config| (seed, config))
        }) {
            let (_, output) = program.run(&engine(&config).expect("an engine"), |module| {
                use_random(module, &mut Rng::new(seed)).expect("a profile of the module");
            });
            assert_eq!(output, program.expected(), "{name}, seed {seed}, {config:?}");
        }
    }
}

/// The number of executions of each function's branches in the whole run, highest first.
fn hottest(program: &Program) -> Vec<(u32, u64)> {
    let mut config = Config::new();
    config.tier(Tier::Interpreter).profile(true).max_wasm_stack(STACK).value_stack_size(64 << 20);
    let (module, _) = program.run(&engine(&config).expect("an engine"), |_| ());
    let count = |func| {
        let profile = module.profile(func)?;
        let counts = profile.branches.iter().flat_map(|branch| branch.counts.iter().map(|&count| u64::from(count)));
        Some((func, counts.sum::<u64>()))
    };
    let mut counts: Vec<(u32, u64)> = (0..module.bytecode().funcs.len() as u32).filter_map(count).collect();
    counts.sort_by_key(|&(func, count)| (std::cmp::Reverse(count), func));
    counts
}

/// The guest's native stack, as large as the command line's.
const STACK: usize = 8 << 20;

#[test]
#[ignore = "needs programs/fetch.py qjs-wasi"]
fn quickjs() {
    let path = root().join("programs/real/qjs-wasi.wasm");
    assert!(path.exists(), "QuickJS is missing: run programs/fetch.py qjs-wasi");
    let args = ["-m", "/data/explored.js"].map(String::from).to_vec();
    let folder = Some(root().join("tests/real"));
    let program = Program { name: "qjs".into(), path, args, folder };
    let work = move || {
        let mut config = Config::new();
        config.max_wasm_stack(STACK).value_stack_size(64 << 20);
        let (installed, profile) = record(&program, &config);
        let module = explored(&program, &config, &profile);
        let same = |(&(func, osr, baseline), code): (&(u32, Option<u32>, bool), &Vec<u8>)| {
            let shown = if baseline { module.explore_baseline(func) } else { module.explore(func, osr) };
            same_code(&shown_bytes(&shown.expect("code")), code)
        };
        for (rank, (func, count)) in hottest(&program).into_iter().take(20).enumerate() {
            let entries: Vec<_> = installed.range((func, None, false)..=(func, Some(u32::MAX), true)).collect();
            let name = module.bytecode().func_name(func).unwrap_or_default();
            let bytes: Vec<String> = entries
                .iter()
                .map(|&((_, osr, baseline), code)| {
                    let entry =
                        osr.map_or(if *baseline { "baseline".into() } else { "call".into() }, |pc| format!("loop {pc:#x}"));
                    format!("{entry} {} bytes", code.len())
                })
                .collect();
            println!("{:2}. function {func} {name}, {count} branches: {}", rank + 1, bytes.join(", "));
            assert!(!entries.is_empty(), "function {func} was not compiled");
        }
        let wrong: Vec<_> = installed.iter().filter(|&entry| !same(entry)).map(|(entry, _)| entry).collect();
        let loops = installed.keys().filter(|(_, osr, _)| osr.is_some()).count();
        println!("of {} installed bodies, {loops} of them OSR bodies, {} differ", installed.len(), wrong.len());
        assert!(wrong.is_empty() && loops > 0, "{wrong:?}");
    };
    let guest = std::thread::Builder::new().stack_size(STACK + (4 << 20)).spawn(work).expect("a thread");
    guest.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}
