//! Construction and text of the SSA of whole modules: checked, counted, timed.
//!
//! ```text
//! cargo run --release -p weir-jit --no-default-features --example ssa -- COMMAND FILE.wasm…
//!
//! check    builds every function (--osr: also from every loop), verifies it, and reads its text back
//! counts   the numbers of phis and values that construction places, examines, folds and shares, with each refinement off and on
//! bench    nanoseconds and peak memory per byte of code, median of several runs
//! opt      the rewrites and time of each pass (--times: only these), the facts that gates prove, the machine code that
//!          the passes save (--each: also with each pass off, and with each pass alone)
//! phases   the time of each phase from bytecode to machine code
//! spills   the copies, reloads and spills that allocation inserts, weighted by block frequency; with feature `regalloc2`
//!          also those of this allocator
//! memory   the memory of each phase, for the functions that take the most; without files, for generated functions of a megabyte
//! growth   construction's time and memory over generated functions of growing size, the bad shapes included; takes no files
//! ```

mod measure;
mod memory;
mod opt;
mod phases;
mod shapes;
mod spills;
mod whole;

use bumpalo::Bump;
use measure::{median, peak_of};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use weir_bytecode::{Module, validate};
use weir_jit::Options;
use weir_jit::analysis::verify;
use weir_jit::construct::{BuildStats, build};
use weir_jit::ir::{Entry, parse, print};
use weir_jit::settings::{Refinements, Search};
use whole::{RUNS, defined, load};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some((command, rest)) = args.split_first() else {
        eprintln!("ssa: check, counts, bench, opt, phases, spills, memory or growth?");
        return ExitCode::from(2);
    };
    let (flags, files): (Vec<&String>, Vec<&String>) = rest.iter().partition(|arg| arg.starts_with("--"));
    let osr = flags.iter().any(|flag| *flag == "--osr");
    let mut modules = Vec::new();
    for file in files {
        match load(file) {
            Ok(module) => modules.push((file.rsplit('/').next().unwrap_or(file).to_string(), module)),
            Err(error) => {
                eprintln!("ssa: {file}: {error}");
                return ExitCode::from(2);
            }
        }
    }
    let done = match command.as_str() {
        "check" => modules.iter().try_for_each(|(name, module)| check(name, module, osr)),
        "counts" => {
            modules.iter().for_each(|(name, module)| counts(name, module));
            Ok(())
        }
        "bench" => {
            modules.iter().for_each(|(name, module)| bench(name, module));
            Ok(())
        }
        "opt" => {
            let extent = match flags.first().map(|flag| flag.as_str()) {
                Some("--times") => opt::Extent::Times,
                Some("--each") => opt::Extent::Each,
                _ => opt::Extent::Usual,
            };
            modules.iter().for_each(|(name, module)| opt::opt(name, module, extent));
            Ok(())
        }
        "phases" => {
            modules.iter().for_each(|(name, module)| phases::phases(name, module));
            Ok(())
        }
        "spills" => {
            modules.iter().for_each(|(name, module)| spills::spills(name, module));
            Ok(())
        }
        "memory" if modules.is_empty() => memory::of_shapes(),
        "memory" => {
            modules.iter().for_each(|(name, module)| memory::of_module(name, module));
            Ok(())
        }
        "growth" => growth(),
        _ => Err(format!("no command {command}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ssa: {error}");
            ExitCode::FAILURE
        }
    }
}

fn check(name: &str, module: &Module, osr: bool) -> Result<(), String> {
    let options = Options { fuel: true, poll: true, ..Options::default() };
    let (mut checked, mut bytes, mut refused) = (0u64, 0u64, BTreeMap::<String, u32>::new());
    let mut arena = Bump::new();
    let start = Instant::now();
    for func in defined(module) {
        let body = module.body(func).expect("it is defined");
        let loops = body.loops.iter().filter(|_| osr).map(|info| Entry::Osr(info.pc));
        for entry in std::iter::once(Entry::Call).chain(loops) {
            arena.reset();
            let ssa = match build(&arena, module, func, entry, &options, &mut BuildStats::default()) {
                Ok(ssa) => ssa,
                Err(refusal) => {
                    *refused.entry(refusal.to_string()).or_default() += 1;
                    continue;
                }
            };
            let wrong = |what: String| format!("{name}, function {func}, {entry:?}: {what}");
            verify(&ssa, Some(module)).map_err(|error| wrong(error.to_string()))?;
            let text = print(&ssa);
            let read = parse(&arena, &text).map_err(|error| wrong(error.to_string()))?;
            if read != ssa || print(&read) != text {
                return Err(wrong("its text is read as something else".to_string()));
            }
            checked += 1;
            bytes += u64::from(body.len());
        }
    }
    println!("{name}: {checked} built, verified and read back, {bytes} bytes of code, {:.1} s", start.elapsed().as_secs_f64());
    for (reason, count) in refused {
        println!("  {count} refused: {reason}");
    }
    Ok(())
}

/// Configurations by name: none, each of the refinements alone taken away, all.
fn configurations() -> Vec<(&'static str, Refinements)> {
    let all = Refinements::ALL;
    vec![
        ("none", Refinements::NONE),
        ("only marker", Refinements { search: Search::Marker, ..Refinements::NONE }),
        ("only components", Refinements { search: Search::Components, ..Refinements::NONE }),
        ("only witnesses", Refinements { witnesses: true, ..Refinements::NONE }),
        ("only regions", Refinements { regions: true, ..Refinements::NONE }),
        ("no search", Refinements { search: Search::Plain, ..all }),
        ("no witnesses", Refinements { witnesses: false, ..all }),
        ("no regions", Refinements { regions: false, ..all }),
        ("no regions, comp.", Refinements { regions: false, search: Search::Components, ..all }),
        ("no folding", Refinements { fold: false, ..all }),
        ("no identities", Refinements { identities: false, ..all }),
        ("no strength", Refinements { strength: false, ..all }),
        ("no numbering", Refinements { number: false, ..all }),
        ("no pruning", Refinements { prune: false, ..all }),
        ("all", all),
        ("all, components", Refinements { search: Search::Components, ..all }),
    ]
}

fn counts(name: &str, module: &Module) {
    println!("{name}");
    println!(
        "{:18} {:>8} {:>9} {:>9} {:>9} {:>9} {:>7} {:>7} {:>7} {:>8} {:>7} {:>6}",
        "refinements",
        "phis",
        "temporary",
        "checks",
        "operands",
        "values",
        "folded",
        "simpler",
        "reduced",
        "shared",
        "pruned",
        "ms"
    );
    for (label, refinements) in configurations() {
        let options = Options { refinements, ..Options::default() };
        let mut sum = [0u64; 10];
        let (time, _) = build_all(module, &options, |stats| {
            let counts = [
                stats.counters.phis,
                stats.counters.trivial_phis,
                stats.checks,
                stats.operands_checked,
                u64::from(stats.values),
                stats.counters.folded,
                stats.counters.simplified,
                stats.counters.reduced,
                stats.counters.shared,
                stats.counters.pruned,
            ];
            sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        });
        let [phis, temporary, checks, operands, values, folded, simplified, reduced, shared, pruned] = sum;
        println!(
            "{label:18} {phis:>8} {temporary:>9} {checks:>9} {operands:>9} {values:>9} {folded:>7} {simplified:>7} \
             {reduced:>7} {shared:>8} {pruned:>7} {:>6}",
            time.as_millis()
        );
    }
}

/// Builds every function in one arena. Returns the time, and the bytes of code of those that were built.
fn build_all(module: &Module, options: &Options, mut seen: impl FnMut(&BuildStats)) -> (Duration, u64) {
    let (mut arena, mut bytes) = (Bump::new(), 0);
    let start = Instant::now();
    for func in defined(module) {
        arena.reset();
        let mut stats = BuildStats::default();
        if build(&arena, module, func, Entry::Call, options, &mut stats).is_ok() {
            bytes += u64::from(module.body(func).expect("it is defined").len());
            seen(&stats);
        }
    }
    (start.elapsed(), bytes)
}

fn bench(name: &str, module: &Module) {
    let options = Options::default();
    let mut built = 0;
    let times = (0..RUNS).map(|_| {
        let (time, bytes) = build_all(module, &options, |_| {});
        built = bytes;
        time.as_nanos() as f64 / bytes as f64
    });
    let time = median(times.collect());
    // Memory of each function on its own, its arena included.
    let (mut worst, mut total, mut largest) = (0f64, 0usize, 0usize);
    for func in defined(module) {
        let len = module.body(func).expect("it is defined").len() as usize;
        let peak = peak_of(module, func, &options).1;
        total += peak;
        largest = largest.max(peak);
        if len >= 4096 {
            worst = worst.max(peak as f64 / len as f64);
        }
    }
    println!(
        "{name}: {built} bytes of code, {time:.1} ns/B; peak memory {:.1} B/B on average, {worst:.1} B/B at most in functions \
         of 4 KiB or more, {:.1} MiB for the largest",
        total as f64 / built as f64,
        largest as f64 / f64::from(1 << 20)
    );
}

fn growth() -> Result<(), String> {
    let options = Options::default();
    println!("{:14} {:>9} {:>8} {:>8} {:>9} {:>9}", "shape", "bytes", "ns/B", "B/B", "phis", "steps/B");
    for (name, shape) in shapes::ALL {
        for size in shapes::SIZES {
            let module = validate::parse(shapes::module(*shape, size).into()).map_err(|error| format!("{name}: {error}"))?;
            let func = module.imported_funcs + module.bodies.len() as u32 - 1;
            let bytes = module.body(func).expect("it is defined").len();
            let runs = if bytes < 1 << 20 { RUNS } else { 3 };
            let arena = &mut Bump::new();
            let times = (0..runs).map(|_| {
                arena.reset();
                let start = Instant::now();
                let _ = build(arena, &module, func, Entry::Call, &options, &mut BuildStats::default());
                start.elapsed().as_nanos() as f64 / f64::from(bytes)
            });
            let time = median(times.collect());
            let (result, peak) = peak_of(&module, func, &options);
            let peak = peak as f64 / f64::from(bytes);
            match result {
                Ok(stats) => {
                    let steps = stats.work as f64 / f64::from(bytes);
                    println!("{name:14} {bytes:>9} {time:>8.1} {peak:>8.1} {:>9} {steps:>9.2}", stats.counters.phis);
                }
                Err(refusal) => println!("{name:14} {bytes:>9} {time:>8.1} {peak:>8.1} refused: {refusal}"),
            }
        }
    }
    Ok(())
}
