//! Compares modules of wasm-smith that throw and catch, on the crate wasmtime and on each tier of Weir: results, traps, exceptions that
//! nothing catches with their tags and payloads, and the final globals, tables and memories.
//!
//! With `--fuel` they also compare the fuel of each call, with a random table of costs for each module.
//!
//! Modules have everything that both support, and wasm-smith makes: tail calls, reference types, several results, vectors, 64-bit
//! memories and tables, several memories, wide arithmetic. The output counts the modules that threw and caught, and the program
//! fails if these are too few for a comparison of exceptions.

use clap::Parser;
use outcome::{CallEnd, Outcome};
use std::path::PathBuf;
use std::process::ExitCode;
use weir::Tier;

mod costs;
#[path = "../../src/engines.rs"]
#[allow(dead_code, reason = "the tests of the workspace use all of it")]
mod engines;
mod guards;
mod module;
mod outcome;
#[path = "../../src/rng.rs"]
#[allow(dead_code, reason = "the tests of the workspace use all of it")]
mod rng;

#[path = "."]
mod ours {
    pub use weir as vm;
    #[path = "run.rs"]
    pub mod run;
}

#[path = "."]
#[allow(clippy::duplicate_mod, reason = "the same text for the other crate")]
mod theirs {
    pub use wasmtime as vm;
    #[path = "run.rs"]
    pub mod run;
}

/// The stack of both engines in bytes: more than the nested calls of any module need, so that a stack overflow on one is a difference.
const STACK: usize = 256 << 20;
/// The stack of the thread: [`STACK`] and room for the host's frames.
const THREAD_STACK: usize = STACK + (8 << 20);
/// The number of modules from which on the shares are checked.
const ENOUGH: u64 = 200;
/// The least share of modules, in percent, in which something is thrown, and in which something is caught.
const LEAST: [u64; 2] = [50, 25];

#[derive(Parser)]
#[command(about = "Compares modules of wasm-smith that throw and catch on wasmtime and on Weir's tiers")]
struct Options {
    /// The number of modules
    #[arg(long, value_name = "N", default_value_t = 2000)]
    count: u64,
    /// The seed of the first module; the next ones follow
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Compare fuel, with a random table of costs for each module
    #[arg(long)]
    fuel: bool,
    /// Only tiers whose name contains this
    #[arg(long = "tier", value_name = "NAME", default_value = "")]
    tier: String,
    /// Write modules on which the engines differ to this folder
    #[arg(long, value_name = "DIR")]
    save: Option<PathBuf>,
    /// Print each seed first, for runs that end in a crash
    #[arg(long)]
    trace: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let thread = std::thread::Builder::new().stack_size(THREAD_STACK).spawn(move || compare(&options));
    match thread.expect("a thread").join() {
        Ok(code) => code,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// An engine, which counts fuel with the costs of this seed if there is one.
fn wasmtime_engine(costs: Option<u64>) -> wasmtime::Engine {
    let mut config = wasmtime::Config::new();
    config.wasm_wide_arithmetic(true).wasm_custom_page_sizes(true).max_wasm_stack(STACK).async_stack_size(THREAD_STACK);
    if let Some(seed) = costs {
        config.consume_fuel(true).operator_cost(costs::wasmtimes(seed));
    }
    wasmtime::Engine::new(&config).expect("a valid configuration")
}

/// Each tier by its name. All but the first move every object at every safepoint for every second seed.
fn tiers(asked: &str, seed: u64, costs: Option<u64>) -> Vec<(&'static str, weir::Engine)> {
    let tiers = [
        ("interpreter", Tier::Interpreter),
        ("native", Tier::Native),
        ("cranelift", Tier::Cranelift),
        ("baseline", Tier::Baseline),
        ("ssa", Tier::Ssa),
        ("auto", Tier::Auto),
    ];
    let asked = tiers.into_iter().filter(|(name, _)| name.contains(asked));
    asked.map(|(name, tier)| (name, weir_engine(tier, tier != Tier::Interpreter && seed % 2 == 1, costs))).collect()
}

fn weir_engine(tier: Tier, gc_stress: bool, costs: Option<u64>) -> weir::Engine {
    let mut config = weir::Config::new();
    config.wasm_wide_arithmetic(true).wasm_custom_page_sizes(true).max_wasm_stack(STACK).value_stack_size(STACK);
    config.tier(tier).synchronous_compilation(true).gc_stress(gc_stress);
    if let Some(seed) = costs {
        config.consume_fuel(true).operator_cost(costs::weirs(seed));
    }
    if tier == Tier::Auto {
        config.tier_up_threshold(Some(3));
    }
    engines::engine(&config).expect("a valid configuration")
}

/// The sums over all modules.
#[derive(Default)]
struct Totals {
    modules: u64,
    differences: u64,
    /// The modules in which something was thrown.
    threw: u64,
    /// The modules in which something was caught.
    caught: u64,
    /// The exceptions that were thrown, and those that were caught.
    throws: [u64; 2],
    /// The calls that returned, trapped, threw, and failed otherwise.
    ends: [u64; 4],
    compared: u64,
    /// The calls whose fuel was compared.
    fuel: u64,
    /// The accesses out of bounds, and those of them whose error has the address.
    faults: [u64; 2],
}

impl Totals {
    fn add(&mut self, counted: &Outcome) {
        let (throws, caught) = (counted.throws.by_guest + counted.throws.by_host, counted.caught());
        self.modules += 1;
        self.threw += u64::from(throws > 0);
        self.caught += u64::from(caught > 0);
        self.throws[0] += throws;
        self.throws[1] += caught;
        for end in &counted.calls {
            if let CallEnd::Trap(text) = end
                && text.starts_with("MemoryOutOfBounds")
            {
                self.faults[0] += 1;
                self.faults[1] += u64::from(text.contains(','));
            }
            self.ends[match end {
                CallEnd::Values(_) => 0,
                CallEnd::Trap(_) => 1,
                CallEnd::Threw(_) => 2,
                CallEnd::Failed => 3,
            }] += 1;
        }
    }

    /// Whether no engine differed, and enough modules threw and caught.
    fn pass(&self) -> bool {
        let enough = |modules: u64, least: u64| self.modules < ENOUGH || modules * 100 >= self.modules * least;
        self.differences == 0 && enough(self.threw, LEAST[0]) && enough(self.caught, LEAST[1])
    }
}

fn compare(options: &Options) -> ExitCode {
    let mut wasmtime = wasmtime_engine(None);
    let interpreter = weir_engine(Tier::Interpreter, false, None);
    let mut totals = Totals::default();
    for seed in options.seed..options.seed + options.count {
        if options.trace {
            eprintln!("seed {seed}");
        }
        let Some(wasm) = module::module(seed) else { continue };
        if options.fuel {
            wasmtime = wasmtime_engine(Some(seed));
        }
        let found = compare_one(options, seed, &wasm, &wasmtime, &interpreter, &mut totals);
        if let Err(difference) = found {
            totals.differences += 1;
            println!("seed {seed}: {difference}");
            if let Some(folder) = &options.save {
                let path = folder.join(format!("{seed}.wasm"));
                match std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, &wasm)) {
                    Ok(()) => println!("  saved as {}", path.display()),
                    Err(error) => eprintln!("{}: {error}", path.display()),
                }
            }
        }
    }
    let Totals { modules, differences, threw, caught, throws, ends, compared, fuel, faults } = totals;
    let percent = |part: u64| part as f64 * 100.0 / modules.max(1) as f64;
    println!("{modules} modules, {compared} runs on Weir compared with wasmtime, {differences} differences");
    println!("{threw} modules threw ({:.1} %), {caught} caught ({:.1} %)", percent(threw), percent(caught));
    println!("{} exceptions thrown, at least {} of them caught", throws[0], throws[1]);
    println!("calls: {} returned, {} trapped, {} threw, {} failed otherwise", ends[0], ends[1], ends[2], ends[3]);
    println!("{} accesses out of bounds, {} of them with an address", faults[0], faults[1]);
    if options.fuel {
        println!("the fuel of {fuel} calls was compared, on each tier");
    }
    if totals.pass() {
        return ExitCode::SUCCESS;
    }
    if differences == 0 {
        println!("fewer than {} % threw or fewer than {} % caught", LEAST[0], LEAST[1]);
    }
    ExitCode::FAILURE
}

fn compare_one(
    options: &Options,
    seed: u64,
    wasm: &[u8],
    wasmtime: &wasmtime::Engine,
    interpreter: &weir::Engine,
    totals: &mut Totals,
) -> Result<(), String> {
    let counting = module::counting(wasm)?;
    // Only where throws are counted is it known in which calls nothing was thrown.
    let wasm = if options.fuel { &counting } else { wasm };
    let expected = theirs::run::run(wasmtime, wasm, seed).map_err(|error| format!("wasmtime: {error:?}"))?;
    totals.fuel += expected.fuel.iter().flatten().count() as u64;
    for (name, engine) in tiers(&options.tier, seed, options.fuel.then_some(seed)) {
        let found = ours::run::run(&engine, wasm, seed).map_err(|error| format!("{name}: {error:?}"))?;
        if let Some(difference) = expected.difference(&found) {
            return Err(format!("{name} (second): {difference}"));
        }
        totals.compared += 1;
    }
    let counted = ours::run::run(interpreter, &counting, seed).map_err(|error| format!("the module that counts: {error:?}"))?;
    totals.add(&counted);
    // Without fuel, growth that costs more than any call has succeeds.
    if !options.fuel && counted.calls != expected.calls {
        return Err("the module that counts ends calls in other ways".into());
    }
    Ok(())
}
