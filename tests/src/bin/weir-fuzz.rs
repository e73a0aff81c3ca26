//! Compares random programs on all tiers and on wasmi, for the requested time or number. `--help` has the options.

use clap::{Parser, Subcommand};
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use weir::RoundTrip;
use weir_tests::acceptance::{self, Tally};
use weir_tests::coverage::{ByTier, Compiled, Coverage, Functions};
use weir_tests::crossings;
use weir_tests::damaged::{self, ModuleOutcome};
use weir_tests::differential::{self, Agreement, Setup, Subject};
use weir_tests::elsewhere::Elsewhere;
use weir_tests::generate::{brief, generate, switching, throwing};
use weir_tests::hostile::{bounds, growth, pauses};
use weir_tests::legacy;
use weir_tests::reduce::{Tiers, reduce};
use weir_tests::rng::Rng;
use weir_tests::smith;
use weir_tests::snapshots::{self, Calls};
use weir_tests::suspended;
use weir_tests::targets;

const HELP: &str = "\
Exit codes: 0 if there was no difference and no failure, 1 if there was one, 2 for wrong arguments.

Examples:
  weir-fuzz --count 1000 --stress            programs that always terminate, all tiers, switching at random
  weir-fuzz --count 1000 --smith --tier nat  modules of wasm-smith, native code only
  weir-fuzz damage --count 10000             malformed and hostile modules
  weir-fuzz hostile                          the time and memory that hostile modules cost the command and an embedder
  weir-fuzz growth                           the instructions that they cost at four sizes; needs valgrind
  weir-fuzz pauses                           the time of their compilations, and the longest part in which these cannot be stopped
  weir-fuzz validate --count 10000           bodies, valid and ill-typed
  weir-fuzz snapshot --count 4000            programs of each kind, before and after a snapshot
  weir-fuzz reduce --tier nat FILE           a minimal module on which the tiers differ as on this one
  weir-fuzz suspend --count 1000             programs that are suspended, stopped and dropped, and synchronous calls
  weir-fuzz legacy --count 500               legacy instructions of exceptions, and their translation; needs node 26 and wasm-opt";

/// Compares random programs on all tiers and on wasmi.
#[derive(Parser)]
#[command(name = "weir-fuzz", version, after_help = HELP, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(subcommand)]
    task: Option<Task>,
    #[command(flatten)]
    compare: Compare,
}

#[derive(Subcommand)]
enum Task {
    /// Run damaged and hostile modules instead, each of which must end in a result or in one clear error
    Damage(Options),
    /// Validate bodies, each as it is and with one edit, in both ways: with the acceptor and with wasmparser alone
    Validate(Options),
    /// Take a snapshot of each program between two calls, on one tier, and compare what follows with the same in the snapshot on another
    Snapshot(Options),
    /// Compare programs that are called asynchronously and resumably, with host functions that are pending, yields and stops after fuel, and
    /// dropped calls, with synchronous calls of the same, on all tiers and under stress
    Suspend(Options),
    /// Compare modules with the legacy instructions of exceptions, and what wasm-opt translates them to, with Node instead, on all tiers
    /// and under stress; needs node 26 and wasm-opt
    Legacy(Options),
    /// Write the inputs with which each target of coverage-guided fuzzing begins to folders in this one
    Seeds {
        /// The folder
        dir: PathBuf,
    },
    /// Run hostile modules of full size with the command, which must be built beside this one, and in an embedder, and print what each costs
    /// of time and memory, and which bounds it breaks
    Hostile(bounds::Options),
    /// Be the embedder that runs this module
    #[command(hide = true, name = bounds::EMBEDDER)]
    HostileEmbedder {
        /// The module
        file: PathBuf,
    },
    /// Count the instructions that each hostile module takes at four sizes, each twice the last, with callgrind. They grow by at most 2.3 from
    /// one to the next, or a budget ends the compilation, but for the modules that the program names. This takes about half an hour
    Growth(growth::Options),
    /// Be the process that does this with a module, and whose instructions are counted
    #[command(hide = true, name = growth::PROCESS)]
    GrowthProcess {
        /// What to do
        work: growth::Work,
        /// The module
        file: PathBuf,
    },
    /// Compile the longest function of each hostile module with each back end, and print the processor time, and the longest part of it in which
    /// nothing asks whether the compilation is still wanted
    Pauses(pauses::Options),
    /// Reduce a module, on which tiers differ or a tier panics or crashes, to a minimal one, and print it as text
    Reduce(Suspect),
    /// Say how tiers differ on a module: what `reduce` calls for each candidate, because the process may end in a crash
    #[command(hide = true)]
    Differ(Suspect),
}

/// A module.
#[derive(clap::Args)]
struct Suspect {
    /// The module, or with `--target` an input of this target of coverage-guided fuzzing
    file: PathBuf,
    /// The target whose input the file is: bytes, differential, smith or text
    #[arg(long, value_name = "NAME")]
    target: Option<String>,
    /// Only tiers whose name contains this, beside the interpreter
    #[arg(long = "tier", value_name = "NAME")]
    tiers: Vec<String>,
    /// Count no fuel, which changes code. A module that does not end within two seconds has no difference then
    #[arg(long)]
    no_fuel: bool,
}

#[derive(clap::Args)]
struct Compare {
    #[command(flatten)]
    options: Options,
    /// Compare modules of wasm-smith, vectors included, instead of generated programs that always terminate
    #[arg(long)]
    smith: bool,
    /// Add a tier that switches at random, with random passes
    #[arg(long)]
    stress: bool,
    /// Compare programs of calls and loops, in which frames often change the engine under stress
    #[arg(long, conflicts_with = "smith")]
    switching: bool,
    /// Compare programs that throw and catch exceptions, in both forms of the proposal
    #[arg(long, conflicts_with_all = ["smith", "switching"])]
    throwing: bool,
    /// Compare programs of one or two short functions with loops, many more of them in the same time
    #[arg(long, conflicts_with_all = ["smith", "switching", "throwing"])]
    brief: bool,
    /// Run each module, in the tiers whose code can be stored, as made from the bytes that another process has serialised: this command
    /// starts itself for some seeds at a time
    #[arg(long)]
    stored: bool,
    /// Move every object of the collected heap at every safepoint
    #[arg(long)]
    gc_stress: bool,
    /// Give every function a vector, so that the interpreter's slots have two words
    #[arg(long)]
    wide: bool,
}

#[derive(clap::Args)]
struct Options {
    /// The number of programs
    #[arg(long, value_name = "N", default_value_t = 1000)]
    count: u64,
    /// The seed of the first program; the next ones follow
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Only tiers whose name contains this
    #[arg(long = "tier", value_name = "NAME")]
    tiers: Vec<String>,
    /// Write programs on which engines differ to this folder
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Print each seed first, for runs that end in a crash
    #[arg(long)]
    trace: bool,
}

impl Options {
    /// Whether the tier with this name should run.
    fn asks_for(&self, name: &str) -> bool {
        self.tiers.is_empty() || self.tiers.iter().any(|part| name.contains(part.as_str()))
    }

    /// The seeds; each is shown before it is used.
    fn seeds(&self) -> impl Iterator<Item = u64> {
        let end = self.seed.saturating_add(self.count);
        (self.seed..end).inspect(move |seed| match self.trace {
            true => eprintln!("seed {seed}"),
            false => progress(&format!("{} of {}", seed - self.seed, self.count)),
        })
    }
}

/// Shows the current progress in one line of a terminal.
fn progress(text: &str) {
    let mut stderr = std::io::stderr();
    if stderr.is_terminal() {
        // A failure to write to the terminal is no reason to stop.
        let _ = write!(stderr, "\r\x1b[K{text}");
        let _ = stderr.flush();
    }
}

/// The modules that another process stores with `--stored`.
struct Stored<'c> {
    compare: &'c Compare,
    /// `None` without `--stored`, and in that process.
    elsewhere: Option<Elsewhere>,
}

impl<'c> Stored<'c> {
    /// Programs that are stored at a time. Each takes less than a megabyte.
    const BATCH: u64 = 50;

    fn new(compare: &'c Compare) -> Stored<'c> {
        let reads = compare.stored && Elsewhere::role().is_none();
        Stored { compare, elsewhere: reads.then(|| Elsewhere::new().expect("a folder for temporary files")) }
    }

    /// Has the modules of this seed stored, with those of the next ones. Returns an error if the other process fails: it compares all that this
    /// one does.
    fn prepare(&self, seed: u64) -> Result<(), String> {
        let (Some(elsewhere), options) = (&self.elsewhere, &self.compare.options) else { return Ok(()) };
        let before = seed - options.seed;
        if !before.is_multiple_of(Stored::BATCH) {
            return Ok(());
        }
        let count = Stored::BATCH.min(options.count - before);
        let mut other = Command::new(std::env::current_exe().map_err(|error| error.to_string())?);
        match elsewhere.write(other.args(self.compare.arguments(seed, count))) {
            Ok(true) => Ok(()),
            Ok(false) => Err(format!("seed {seed}: the process that stores {count} modules from this one failed")),
            Err(error) => Err(format!("seed {seed}: no process to store modules: {error}")),
        }
    }

    /// How modules are made again.
    fn way(&self) -> Option<RoundTrip> {
        self.elsewhere.as_ref().map(Elsewhere::read).or_else(|| Elsewhere::role().filter(|_| self.compare.stored))
    }
}

impl Compare {
    /// The arguments for these seeds.
    fn arguments(&self, seed: u64, count: u64) -> Vec<String> {
        let Compare { options, smith, stress, switching, throwing, brief, stored, gc_stress, wide } = self;
        let flags = [
            (smith, "--smith"),
            (stress, "--stress"),
            (switching, "--switching"),
            (throwing, "--throwing"),
            (brief, "--brief"),
            (stored, "--stored"),
            (gc_stress, "--gc-stress"),
            (wide, "--wide"),
        ];
        let flags = flags.into_iter().filter(|(set, _)| **set).map(|(_, flag)| flag.to_owned());
        let tiers = options.tiers.iter().map(|tier| format!("--tier={tier}"));
        flags.chain(tiers).chain([format!("--seed={seed}"), format!("--count={count}")]).collect()
    }
}

fn subjects(compare: &Compare, seed: u64, stored: Option<&RoundTrip>) -> Vec<Subject> {
    let mut tiers = differential::tiers(compare.stress.then_some(seed));
    tiers.retain(|tier| !compare.throwing || tier.throws_exactly());
    if compare.switching {
        // Not all, because the code differs if crossings are counted.
        tiers.iter_mut().filter(|tier| tier.is_stressed()).for_each(|tier| tier.count_crossings(seed % 8 != 7));
    }
    if let Some(way) = stored {
        tiers.iter_mut().for_each(|tier| tier.round_trip(way));
    }
    tiers.iter_mut().for_each(|tier| tier.gc_stress(compare.gc_stress));
    tiers.retain(|tier| compare.options.asks_for(&tier.name));
    tiers
}

/// Prints a finding and saves the module.
fn report(options: &Options, seed: u64, wasm: &[u8], finding: &str) {
    progress("");
    println!("{finding}");
    if let Some(dir) = &options.save {
        let path = dir.join(format!("{seed}.wasm"));
        match std::fs::create_dir_all(dir).and_then(|()| std::fs::write(&path, wasm)) {
            Ok(()) => println!("  saved as {}", path.display()),
            Err(error) => eprintln!("{}: {error}", path.display()),
        }
    }
}

/// Prints how often frames of one engine followed those of another, where that was counted: under stress, for every second seed, and
/// with `--switching` for seven of eight.
fn print_crossings() {
    let sums = crossings::sums();
    if !sums.is_empty() {
        println!("crossings between engines, in the programs for which they are counted:");
    }
    sums.iter().for_each(|(name, count)| println!("{count:>14}  {name}"));
}

/// Compares modules of wasm-smith.
fn fuzz_smith(compare: &Compare) -> ExitCode {
    let options = &compare.options;
    let (mut modules, mut differences, mut total) = (0u64, 0u64, smith::Agreement::default());
    let (mut coverage, mut by_tier) = (Coverage::default(), ByTier::default());
    let stored = Stored::new(compare);
    for seed in options.seeds() {
        if let Err(failure) = stored.prepare(seed) {
            differences += 1;
            report(options, seed, &[], &failure);
        }
        let Some(wasm) = smith::module(seed) else { continue };
        let wasm = if compare.wide { weir_spec::widen(wasm) } else { wasm };
        modules += 1;
        let (names, configs): (Vec<String>, Vec<weir::Config>) = (subjects(compare, seed, stored.way().as_ref()).into_iter())
            // Profiles are not generated for these modules.
            .filter(|subject| subject.profile.is_none())
            .filter_map(|subject| match subject.setup {
                Setup::Weir(config) => Some((subject.name, *config)),
                Setup::Wasmi => None,
            })
            .unzip();
        let compiled: Vec<Compiled> = names.iter().map(|_| Compiled::default()).collect();
        match smith::compare_each(&wasm, seed, &configs, &|i, config| compiled[i].engine(config)) {
            Ok(agreement) => {
                total += agreement;
                let functions = Functions::of(&wasm).expect("a module that was compared is valid");
                coverage.add_where(&functions, |_| true);
                names.iter().zip(&compiled).for_each(|(name, compiled)| by_tier.add(name, &functions, compiled, None));
            }
            Err(difference) => {
                differences += 1;
                report(options, seed, &wasm, &format!("seed {seed}: {difference}"));
            }
        }
    }
    progress("");
    println!("{modules} modules, {differences} differences; {} of {} calls returned", total.returned, total.calls);
    println!("compared {} calls, {} of which returned on both engines", total.compared, total.both_returned);
    println!("compared {} values and {} bytes of memory", total.values, total.bytes);
    println!(
        "compiled {} functions native, {} with Cranelift, {} by the baseline compiler",
        total.native, total.cranelift, total.baseline
    );
    print_crossings();
    println!("{coverage}\n{by_tier}");
    if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The tiers on which damaged modules run.
const DAMAGED: [(&str, weir::Tier); 4] = [
    ("interpreter", weir::Tier::Interpreter),
    ("native", weir::Tier::Native),
    ("cranelift", weir::Tier::Cranelift),
    ("baseline", weir::Tier::Baseline),
];

/// Runs damaged and hostile modules on each tier in turn.
fn damage(options: &Options) -> ExitCode {
    let asked = DAMAGED.into_iter().filter(|(name, _)| options.asks_for(name));
    let engines: Vec<_> = asked.map(|(name, tier)| (name, damaged::engine(tier))).collect();
    let (mut failures, mut fates) = (0u64, [0u64; 3]);
    let mut check = |what: &str, seed: u64, wasm: &[u8], engine: &(&str, weir::Engine)| match damaged::attempt(&engine.1, wasm) {
        Ok(fate) => fates[fate as usize] += 1,
        Err(message) => {
            failures += 1;
            report(options, seed, wasm, &format!("{what}, {}: {message}", engine.0));
        }
    };
    for (name, wasm) in damaged::hostile() {
        for engine in &engines {
            if options.trace {
                eprintln!("{name}, {}", engine.0);
            }
            check(&name, u64::MAX, &wasm, engine);
        }
    }
    for seed in options.seeds() {
        // Several are made from each program, because generating a program costs more than damaging it.
        let wasm = damaged::damage(&generate(seed / 16).wasm, &mut Rng::new(seed));
        check(&format!("seed {seed}"), seed, &wasm, &engines[seed as usize % engines.len()]);
    }
    progress("");
    let [refused, unlinked, ran] =
        [ModuleOutcome::Refused, ModuleOutcome::Unlinked, ModuleOutcome::Ran].map(|fate| fates[fate as usize]);
    println!("{failures} failures; {refused} modules refused, {unlinked} not instantiated, {ran} run");
    match weir_cli::peak_memory() {
        Some(peak) => println!("{} MiB of memory at most", peak >> 20),
        None => println!("the system does not say how much memory was taken at most"),
    }
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Compares the two ways of validation.
fn validate(options: &Options) -> ExitCode {
    let (mut tally, mut differences) = (Tally::default(), 0u64);
    for seed in options.seeds() {
        let wasm = acceptance::program(seed).wasm;
        if let Err(difference) = tally.compare(&wasm, &mut Rng::new(seed)) {
            differences += 1;
            report(options, seed, &wasm, &format!("seed {seed}: {difference}"));
        }
    }
    progress("");
    println!("{tally}");
    println!("{differences} differences");
    if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Suspect {
    /// The module.
    fn read(&self) -> Result<Vec<u8>, String> {
        let bytes = std::fs::read(&self.file).map_err(|error| format!("{}: {error}", self.file.display()))?;
        match &self.target {
            None => wat::parse_bytes(&bytes).map(|wasm| wasm.into_owned()).map_err(|error| error.to_string()),
            Some(name) => targets::module(name, &bytes).ok_or_else(|| format!("no module is made of an input of {name}")),
        }
    }

    /// The status of the process that compares the tiers on a module, which is in this file meanwhile; `None` if it takes too long.
    fn status(&self, wasm: &[u8], file: &Path) -> Result<Option<ExitStatus>, String> {
        std::fs::write(file, wasm).map_err(|error| format!("{}: {error}", file.display()))?;
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let tiers = self.tiers.iter().map(|tier| format!("--tier={tier}"));
        let mut command = Command::new(program);
        command.arg("differ").arg(file).args(tiers).stdout(Stdio::null()).stderr(Stdio::null());
        command.args(self.no_fuel.then_some("--no-fuel"));
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let deadline = Instant::now() + Duration::from_secs(2);
        loop {
            match child.try_wait().map_err(|error| error.to_string())? {
                None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
                None => {
                    // It may have ended since.
                    let _ = child.kill();
                    let _ = child.wait();
                    return Ok(None);
                }
                status => return Ok(status),
            }
        }
    }

    /// Prints the module that remains of this one.
    fn reduce(&self) -> Result<(), String> {
        let wasm = self.read()?;
        let file = std::env::temp_dir().join(format!("weir-reduce-{}.wasm", std::process::id()));
        let wanted = self.status(&wasm, &file)?;
        if wanted.is_none_or(|status| status.success()) {
            return Err("the tiers agree on this module".into());
        }
        let reduced = reduce(&wasm, &mut |candidate| {
            progress(&format!("{} of {} bytes", candidate.len(), wasm.len()));
            self.status(candidate, &file) == Ok(wanted)
        });
        progress("");
        // What remains in the folder for temporary files does no harm.
        let _ = std::fs::remove_file(&file);
        println!("{}", wasmprinter::print_bytes(reduced).map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Prints the first difference; 0 if there is none, or the module cannot be run.
    fn differ(&self) -> Result<ExitCode, String> {
        let tiers =
            Tiers::new(!self.no_fuel, |name| self.tiers.is_empty() || self.tiers.iter().any(|part| name.contains(part.as_str())));
        let Ok(Some(difference)) = tiers.difference(&self.read()?) else { return Ok(ExitCode::SUCCESS) };
        println!("{difference}");
        Ok(ExitCode::FAILURE)
    }
}

/// The exit code of a task, whose error is printed.
fn code(done: Result<ExitCode, String>) -> ExitCode {
    done.unwrap_or_else(|error| {
        eprintln!("{error}");
        ExitCode::from(2)
    })
}

/// Writes the first inputs of each target.
fn seeds(dir: &Path) -> ExitCode {
    for target in targets::ALL {
        let folder = dir.join(target.name);
        let write = |(i, bytes): (usize, Vec<u8>)| std::fs::write(folder.join(format!("seed-{i:03}")), bytes);
        let seeds = (target.seeds)().into_iter().enumerate();
        let written = std::fs::create_dir_all(&folder).and_then(|()| { seeds }.try_for_each(write));
        if let Err(error) = written {
            eprintln!("{}: {error}", folder.display());
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// Compares programs with their snapshots.
fn fuzz_snapshots(options: &Options) -> ExitCode {
    let tiers = || differential::tiers(None).into_iter().filter(|tier| tier.profile.is_none() && options.asks_for(&tier.name));
    let of_weir = |tier: Subject| match tier.setup {
        Setup::Weir(config) => Some((tier.name, *config)),
        Setup::Wasmi => None,
    };
    let tiers: Vec<(String, weir::Config)> = tiers().filter_map(of_weir).collect();
    let (mut tally, mut differences) = (snapshots::Tally::default(), 0u64);
    for seed in options.seeds() {
        let Some(program) = Calls::random(seed) else { continue };
        let mut rng = Rng::new(seed);
        let [first, second] = [rng.pick(&tiers), rng.pick(&tiers)];
        match snapshots::compare(&program, [&first.1, &second.1], rng.one_in(2)) {
            Ok(found) => tally += found,
            Err(difference) => {
                differences += 1;
                report(options, seed, &program.wasm, &format!("seed {seed}, {}, then {}: {difference}", first.0, second.0));
            }
        }
    }
    progress("");
    println!("{tally}");
    println!("{differences} differences");
    if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Compares programs that are suspended with synchronous calls.
fn fuzz_suspended(options: &Options) -> ExitCode {
    let (mut tally, mut differences, mut programs) = (suspended::Tally::default(), 0u64, 0u64);
    for seed in options.seeds() {
        let program = suspended::program(seed);
        programs += 1;
        let tiers = differential::tiers(Some(seed)).into_iter().filter(|tier| options.asks_for(&tier.name));
        for tier in tiers {
            let Setup::Weir(config) = tier.setup else { continue };
            match suspended::compare(&program, &config, tier.profile, &mut Rng::new(seed)) {
                Ok(found) => tally += found,
                Err(difference) => {
                    differences += 1;
                    report(options, seed, &program.wasm, &format!("seed {seed}, {}: {difference}", tier.name));
                }
            }
        }
    }
    progress("");
    println!("{programs} programs\n{tally}");
    println!("{differences} differences");
    if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The modules for which Node is started once.
const BATCH: usize = 50;

/// Compares modules with the legacy instructions of exceptions.
fn fuzz_legacy(options: &Options) -> ExitCode {
    let folder = std::env::temp_dir().join(format!("weir-fuzz-{}", std::process::id()));
    let seeds: Vec<u64> = options.seeds().collect();
    let (mut differences, mut compared, mut ends) = (0u64, 0u64, [0; 3]);
    for seeds in seeds.chunks(BATCH) {
        let made = std::fs::create_dir_all(&folder).map_err(|error| error.to_string());
        let cases = match made.and_then(|()| legacy::cases(seeds, &folder)) {
            Ok(cases) => cases,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
        };
        for case in &cases {
            ends.iter_mut().zip(case.ends()).for_each(|(sum, count)| *sum += count);
            let tiers = differential::tiers(Some(case.seed)).into_iter();
            let tiers = tiers.filter(|tier| options.asks_for(&tier.name) && tier.throws_exactly());
            for tier in tiers.filter(|tier| tier.profile.is_none()) {
                let Setup::Weir(config) = tier.setup else { continue };
                compared += 2;
                if let Err(difference) = case.compare(&config) {
                    differences += 1;
                    report(options, case.seed, &case.forms[0], &format!("{}: {difference}", tier.name));
                }
            }
        }
    }
    progress("");
    // What remains in the folder for temporary files does no harm.
    let _ = std::fs::remove_dir_all(&folder);
    let [values, thrown, traps] = ends;
    println!("{} modules in two forms, {compared} runs compared with Node, {differences} differences", seeds.len());
    println!("their calls: {values} returned, {thrown} threw, {traps} trapped");
    if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Compares generated programs, which always terminate.
fn fuzz(compare: &Compare) -> ExitCode {
    let options = &compare.options;
    let (mut differences, mut long, mut total) = (0u64, 0u64, Agreement::default());
    let (mut coverage, mut by_tier) = (Coverage::default(), ByTier::default());
    let stored = Stored::new(compare);
    for seed in options.seeds() {
        if let Err(failure) = stored.prepare(seed) {
            differences += 1;
            report(options, seed, &[], &failure);
        }
        let program = match compare {
            Compare { switching: true, .. } => switching,
            Compare { throwing: true, .. } => throwing,
            Compare { brief: true, .. } => brief,
            Compare { .. } => generate,
        };
        let mut program = program(seed);
        if compare.wide {
            program.wasm = weir_spec::widen(program.wasm);
        }
        let subjects = subjects(compare, seed, stored.way().as_ref());
        let compiled: Vec<Compiled> = subjects.iter().map(|_| Compiled::default()).collect();
        let engine = |i: usize, config: &weir::Config| compiled[i].engine(config);
        match differential::compare_on(&program, &subjects, seed.wrapping_mul(37) as u8, &engine) {
            Ok(agreement) => {
                let functions = Functions::of(&program.wasm).expect("a program that was compared is valid");
                coverage.add_where(&functions, |_| true);
                for (subject, compiled) in subjects.iter().zip(&compiled) {
                    by_tier.add(&subject.name, &functions, compiled, Some(agreement.executed));
                }
                total += agreement;
                long += u64::from(agreement.executed >= 1000);
            }
            Err(mismatch) => {
                differences += 1;
                report(options, seed, &program.wasm, &format!("seed {seed}: {mismatch}"));
            }
        }
    }
    progress("");
    let Agreement { executed, calls, trapped, faulted, on_wasmi, compared, host, crossed, tiers_used } = total;
    println!(
        "{} programs, {differences} differences; {trapped} of {calls} calls trapped, {faulted} of them at an address",
        options.count
    );
    println!("{on_wasmi} calls were made on wasmi too; {compared} runs of programs were compared");
    println!("{long} programs executed 1,000 instructions or more, all together {executed}");
    println!("{host}; {crossed} calls of functions of other instances");
    println!(
        "compiled {} functions native, {} with Cranelift, {} by the baseline compiler; {} loops continued in compiled code",
        tiers_used.native, tiers_used.cranelift, tiers_used.baseline, tiers_used.osr_entries
    );
    println!(
        "retired code {} times, freed {} bytes of it; compiled {} times again",
        tiers_used.retired, tiers_used.freed_bytes, tiers_used.recompiled
    );
    print_crossings();
    println!("{coverage}\n{by_tier}");
    if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let (task, compare) = (&arguments.task, &arguments.compare);
    let (asked, any) = match task {
        Some(Task::Damage(options)) => (&options.tiers, DAMAGED.iter().any(|(name, _)| options.asks_for(name))),
        Some(Task::Legacy(options) | Task::Suspend(options)) => {
            (&options.tiers, differential::tiers(Some(0)).iter().any(|tier| options.asks_for(&tier.name)))
        }
        Some(Task::Snapshot(options)) => {
            (&options.tiers, differential::tiers(None).iter().any(|tier| options.asks_for(&tier.name)))
        }
        Some(Task::Seeds { dir }) => return seeds(dir),
        Some(Task::Hostile(options)) => return code(options.run()),
        Some(Task::HostileEmbedder { file }) => return code(bounds::embed(file)),
        Some(Task::Growth(options)) => return code(options.run()),
        Some(Task::GrowthProcess { work, file }) => return code(growth::process(*work, file)),
        Some(Task::Pauses(options)) => return code(options.run()),
        Some(Task::Reduce(suspect)) => return code(suspect.reduce().map(|()| ExitCode::SUCCESS)),
        Some(Task::Differ(suspect)) => return code(suspect.differ()),
        // No tier executes the bodies.
        Some(Task::Validate(options)) => (&options.tiers, options.tiers.is_empty()),
        None => (&compare.options.tiers, !subjects(compare, 0, None).is_empty()),
    };
    if !any {
        eprintln!("no tier's name contains {}", asked.join(" or "));
        return ExitCode::from(2);
    }
    match &arguments.task {
        Some(Task::Damage(options)) => damage(options),
        Some(Task::Validate(options)) => validate(options),
        Some(Task::Suspend(options)) => smith::with_stack(|| fuzz_suspended(options)),
        Some(Task::Snapshot(options)) => smith::with_stack(|| fuzz_snapshots(options)),
        Some(Task::Legacy(options)) => smith::with_stack(|| fuzz_legacy(options)),
        Some(
            Task::Seeds { .. }
            | Task::Hostile(_)
            | Task::HostileEmbedder { .. }
            | Task::Growth(_)
            | Task::GrowthProcess { .. }
            | Task::Pauses(_)
            | Task::Reduce(_)
            | Task::Differ(_),
        ) => unreachable!("these tasks are done"),
        None if arguments.compare.smith => smith::with_stack(|| fuzz_smith(&arguments.compare)),
        None => fuzz(&arguments.compare),
    }
}
