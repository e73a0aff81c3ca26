//! Compares random programs on all tiers and on wasmi, for as long as it is asked to.
//!
//! `weir-fuzz [--count N] [--seed S] [--smith] [--stress] [--tier NAME]… [--save DIR] [--trace]`: N programs with the seeds
//! S, S + 1, …; `--smith` takes modules of wasm-smith, vectors included, in place of programs that always run; `--stress`
//! adds a tier that switches at random, with random passes; `--tier` compares only tiers whose name contains NAME; `--save` writes programs on
//! which engines differ; `--trace` prints each seed first, for runs that end in a crash.
//!
//! `weir-fuzz damage [--count N] [--seed S] [--tier NAME]… [--save DIR] [--trace]`: as many damaged modules, and the hostile
//! ones; each must end in a result or in one clear error. `--trace` is for aborts, which nothing can catch.
//!
//! Exit code 1 if there were differences or failures.

use std::path::PathBuf;
use std::process::ExitCode;
use weir_tests::coverage::Coverage;
use weir_tests::damaged::{self, Fate};
use weir_tests::differential::{self, Agreement, Setup, Subject};
use weir_tests::generate::generate;
use weir_tests::rng::Rng;
use weir_tests::smith;

struct Options {
    /// Instead of comparing: bad input.
    damage: bool,
    count: u64,
    seed: u64,
    smith: bool,
    stress: bool,
    tiers: Vec<String>,
    save: Option<PathBuf>,
    trace: bool,
}

fn options() -> Result<Options, String> {
    let (tiers, save) = (Vec::new(), None);
    let mut options = Options { damage: false, count: 1000, seed: 0, smith: false, stress: false, tiers, save, trace: false };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        let number = |text: String| text.parse::<u64>().map_err(|error| format!("{text}: {error}"));
        match arg.as_str() {
            "damage" => options.damage = true,
            "--count" => options.count = number(value()?)?,
            "--seed" => options.seed = number(value()?)?,
            "--smith" => options.smith = true,
            "--stress" => options.stress = true,
            "--tier" => options.tiers.push(value()?),
            "--save" => options.save = Some(value()?.into()),
            "--trace" => options.trace = true,
            _ => return Err(format!("unknown option {arg}")),
        }
    }
    Ok(options)
}

fn subjects(options: &Options, seed: u64) -> Vec<Subject> {
    let mut tiers = differential::tiers(options.stress.then_some(seed));
    if !options.tiers.is_empty() {
        tiers.retain(|tier| options.tiers.iter().any(|name| tier.name.contains(name.as_str())));
    }
    tiers
}

fn save(options: &Options, seed: u64, wasm: &[u8]) {
    if let Some(dir) = &options.save {
        let path = dir.join(format!("{seed}.wasm"));
        match std::fs::create_dir_all(dir).and_then(|()| std::fs::write(&path, wasm)) {
            Ok(()) => println!("  saved as {}", path.display()),
            Err(error) => eprintln!("{}: {error}", path.display()),
        }
    }
}

/// Compares modules of wasm-smith.
fn fuzz_smith(options: &Options) -> ExitCode {
    let (mut modules, mut differences, mut total) = (0u64, 0u64, smith::Agreement::default());
    let mut coverage = Coverage::default();
    for seed in options.seed..options.seed.saturating_add(options.count) {
        if options.trace {
            eprintln!("seed {seed}");
        }
        let Some(wasm) = smith::module(seed) else { continue };
        modules += 1;
        // If it is invalid, the comparison says so.
        let _ = coverage.add(&wasm);
        let configs: Vec<weir::Config> = (subjects(options, seed).into_iter())
            .filter_map(|subject| match subject.setup {
                Setup::Weir(config) => Some(*config),
                Setup::Wasmi => None,
            })
            .collect();
        match smith::compare(&wasm, seed, &configs) {
            Ok(agreement) => total += agreement,
            Err(difference) => {
                differences += 1;
                println!("seed {seed}: {difference}");
                save(options, seed, &wasm);
            }
        }
    }
    println!("{modules} modules, {differences} differences; {} of {} calls returned", total.returned, total.calls);
    println!("compiled {} functions", total.compiled);
    println!("{coverage}");
    if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Damaged and hostile modules, on each tier in turn.
fn damage(options: &Options) -> ExitCode {
    let named = [("interpreter", weir::Tier::Interpreter), ("native", weir::Tier::Native), ("cranelift", weir::Tier::Cranelift)];
    let asked = |name: &str| options.tiers.is_empty() || options.tiers.iter().any(|tier| name.contains(tier.as_str()));
    let engines: Vec<_> =
        named.into_iter().filter(|(name, _)| asked(name)).map(|(name, tier)| (name, damaged::engine(tier))).collect();
    let (mut failures, mut fates) = (0u64, [0u64; 3]);
    let mut check = |what: &str, seed: u64, wasm: &[u8], engine: &(&str, weir::Engine)| match damaged::attempt(&engine.1, wasm) {
        Ok(fate) => fates[fate as usize] += 1,
        Err(message) => {
            failures += 1;
            println!("{what}, {}: {message}", engine.0);
            save(options, seed, wasm);
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
    for seed in options.seed..options.seed.saturating_add(options.count) {
        if options.trace {
            eprintln!("seed {seed}");
        }
        // Several from each program, which costs more to make than to damage.
        let wasm = damaged::damage(&generate(seed / 16).wasm, &mut Rng::new(seed));
        check(&format!("seed {seed}"), seed, &wasm, &engines[seed as usize % engines.len()]);
    }
    let [refused, unlinked, ran] = [Fate::Refused, Fate::Unlinked, Fate::Ran].map(|fate| fates[fate as usize]);
    println!("{failures} failures; {refused} modules refused, {unlinked} not instantiated, {ran} run");
    println!("{} MiB of memory at most", damaged::peak_memory().unwrap_or_default() >> 20);
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) if options.damage => return damage(&options),
        Ok(options) => options,
        Err(message) => {
            eprintln!("weir-fuzz: {message}");
            return ExitCode::from(2);
        }
    };
    if options.smith {
        return fuzz_smith(&options);
    }
    let (mut differences, mut long, mut total) = (0u64, 0u64, Agreement::default());
    let mut coverage = Coverage::default();
    for seed in options.seed..options.seed.saturating_add(options.count) {
        if options.trace {
            eprintln!("seed {seed}");
        }
        let program = generate(seed);
        let _ = coverage.add(&program.wasm);
        match differential::compare(&program, &subjects(&options, seed), seed.wrapping_mul(37) as u8) {
            Ok(agreement) => {
                total += agreement;
                long += u64::from(agreement.executed >= 1000);
            }
            Err(mismatch) => {
                differences += 1;
                println!("seed {seed}: {mismatch}");
                save(&options, seed, &program.wasm);
            }
        }
    }
    let Agreement { executed, calls, trapped, reached } = total;
    println!("{} programs, {differences} differences; {trapped} of {calls} calls trapped", options.count);
    println!("{long} programs executed 1,000 instructions or more, all together {executed}");
    println!(
        "compiled {} functions native, {} with Cranelift; {} loops continued in compiled code",
        reached.native, reached.cranelift, reached.osr_entries
    );
    println!(
        "retired code {} times, freed {} bytes of it; compiled {} times again",
        reached.retired, reached.freed_bytes, reached.recompiled
    );
    println!("{coverage}");
    if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
