//! How the cost of a hostile module grows with its size: the instructions that callgrind counts in a process that does one thing with it, less
//! those for a module that is nearly empty. No loop of the engine is left out, whether or not it counts its own steps.

use super::attack::Attack;
use super::callgrind;
use super::ends::{ends, metered};
use super::wasm;
use crate::engines::engine;
use crate::scratch::Scratch;
use clap::ValueEnum;
use std::fmt;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use weir::{Config, Tier};

/// The growth for twice the size that a linear algorithm with a logarithmic factor may have.
pub const MOST: f64 = 2.3;
/// Modules that may grow by as much as [`MOST_ONCE`] at one doubling. From some size on, a function of theirs has more open blocks or more operands
/// than the 4,096 that the acceptor takes. wasmparser then validates the function again, from its beginning.
pub const DEEP: &[&str] = &[
    "nested blocks",
    "nested loops",
    "nested ifs",
    "nested regions",
    "br_table, an arm for each label",
    "jumps in a chain",
    "a chain in a hot loop's function",
    "a deep expression",
    "recursion with many operands",
    "locals in nested loops",
    "frames at many calls",
    "tables of far labels",
    "fifty thousand locals in loops",
    "a function that keeps changing",
    "every local in every loop",
];
/// The growth of [`DEEP`] modules at that doubling. At the others it is at most [`MOST`].
pub const MOST_ONCE: f64 = 4.25;
/// Modules that may grow by as much as [`MOST_READ_AGAIN`] at one doubling. A section of more than 64 KiB is read once more before its
/// validation, because the memory for its longest expression is charged.
const READ_AGAIN: &[&str] = &["active segments", "elements by expressions"];
/// The growth of [`READ_AGAIN`] modules at that doubling. At the others it is at most [`MOST`].
const MOST_READ_AGAIN: f64 = 2.5;
/// The number of sizes.
const SIZES: usize = 4;
/// What differs between two runs of the same process: addresses, and so the probes of hash tables.
const NOISE: u64 = 300_000;
/// The task of `weir-fuzz` that is the process.
pub const PROCESS: &str = "growth-process";

/// What to measure.
#[derive(clap::Args)]
pub struct Options {
    /// About the size of the smallest module, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 16 << 10)]
    size: usize,
    /// Only modules whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Only this use of them
    #[arg(long)]
    work: Option<Work>,
}

/// What a process does with a module.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Work {
    /// Loads it and calls its first exports in the interpreter, with little fuel.
    Interp,
    /// The same in baseline code.
    Baseline,
    /// The same in optimised code.
    Native,
    /// Compiles every function with the optimiser, and serialises the module.
    Compile,
}

impl Work {
    const ALL: [Work; 4] = [Work::Interp, Work::Baseline, Work::Native, Work::Compile];

    /// Does it with a module. Returns whether a budget ended a compilation.
    fn of(self, wasm: &[u8]) -> Result<bool, String> {
        let tier = match self {
            Work::Interp => Tier::Interpreter,
            Work::Baseline => Tier::Baseline,
            Work::Native | Work::Compile => Tier::Native,
        };
        let mut config = Config::new();
        config.tier(tier).synchronous_compilation(true);
        let engine = match self {
            Work::Compile => engine(&config),
            _ => metered(&config),
        }
        .map_err(|error| error.to_string())?;
        match self {
            // A module that is refused costs its refusal.
            Work::Compile => _ = engine.precompile_module(wasm),
            _ => _ = ends(&engine, wasm)?,
        }
        // SSA construction has a budget of its own.
        Ok(engine.stats().functions.fallbacks.iter().any(|fallback| fallback.reason.contains("the budget of")))
    }
}

/// Does this with the module in a file, in this process, and prints whether a budget ended a compilation.
///
/// # Errors
/// The file cannot be read, or the module has an error that it must not have.
pub fn process(work: Work, file: &Path) -> Result<ExitCode, String> {
    let wasm = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    println!("{}", work.of(&wasm)?);
    Ok(ExitCode::SUCCESS)
}

/// The instructions of a process, and whether a budget ended a compilation in it.
#[derive(Clone, Copy)]
struct Count {
    instructions: u64,
    refused: bool,
}

/// Counts the instructions of a process that does this with a module.
fn count(work: Work, wasm: &[u8], file: &Path) -> Result<Count, String> {
    fs::write(file, wasm).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut command = Command::new(std::env::current_exe().map_err(|error| error.to_string())?);
    let name = work.to_possible_value().expect("no work is hidden");
    command.arg(PROCESS).arg(name.get_name()).arg(file);
    let (output, counts) = callgrind::run(&command, false)?;
    match String::from_utf8_lossy(&output.stdout).trim().parse() {
        Ok(refused) => Ok(Count { instructions: counts[0], refused }),
        Err(_) => Err(format!("{work:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr))),
    }
}

/// The counts of an attack, without those of a module that is nearly empty.
struct Growth {
    name: &'static str,
    work: Work,
    counts: [Count; SIZES],
}

impl Growth {
    /// Counts for each size.
    fn of(attack: &Attack, work: Work, size: usize, file: &Path) -> Result<Growth, String> {
        let empty = count(work, &wasm::text(r#"(module (func (export "_start")))"#), file)?.instructions;
        let mut counts = [Count { instructions: 0, refused: false }; SIZES];
        for (i, counted) in counts.iter_mut().enumerate() {
            *counted = count(work, &attack.module(size << i), file).map_err(|error| format!("{}: {error}", attack.name))?;
            counted.instructions = counted.instructions.saturating_sub(empty);
        }
        Ok(Growth { name: attack.name, work, counts })
    }

    /// The counts for each size in relation to those for half of it.
    fn ratios(&self) -> impl Iterator<Item = f64> {
        self.counts.windows(2).map(|pair| pair[1].instructions as f64 / pair[0].instructions.max(1) as f64)
    }

    /// Whether the cost grows by more than [`MOST`] from a size to the next, at which no budget ends the compilation. [`DEEP`] and [`READ_AGAIN`]
    /// are the exceptions.
    fn is_over(&self) -> bool {
        let grows_by = |pair: &[Count], most: f64| {
            pair[1].instructions > (most * pair[0].instructions as f64) as u64 + NOISE && !pair[1].refused
        };
        let steps = |most: f64| self.counts.windows(2).filter(|pair| grows_by(pair, most)).count();
        let once = match &self.name {
            name if DEEP.contains(name) => Some(MOST_ONCE),
            name if READ_AGAIN.contains(name) => Some(MOST_READ_AGAIN),
            _ => None,
        };
        match once {
            Some(most) => steps(MOST) > 1 || steps(most) > 0,
            None => steps(MOST) > 0,
        }
    }
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<40} {:<9}", self.name, format!("{:?}", self.work).to_lowercase())?;
        self.counts.iter().try_for_each(|count| write!(f, " {:>9.2}", count.instructions as f64 / 1e6))?;
        self.ratios().try_for_each(|ratio| write!(f, " {ratio:>5.2}"))?;
        let verdict = match (self.is_over(), self.counts.iter().any(|count| count.refused)) {
            (true, _) => "grows",
            (false, true) => "budget",
            (false, false) => "",
        };
        write!(f, "  {verdict}")
    }
}

impl Options {
    /// Measures the attacks, on all processors, and prints how each grows.
    ///
    /// # Errors
    /// No attack has such a name, or a process or a file cannot be made.
    pub fn run(&self) -> Result<ExitCode, String> {
        let attacks = super::named(self.only.as_deref())?;
        let works: Vec<Work> = Work::ALL.into_iter().filter(|work| self.work.is_none_or(|only| only == *work)).collect();
        let scratch = Scratch::new("weir-growth").map_err(|error| error.to_string())?;
        println!("Millions of instructions for {SIZES} sizes from {} bytes on, and the growth from each to the next", self.size);
        let (next, over) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let measure = &|thread: usize| -> Result<(), String> {
            let file = scratch.path().join(format!("{thread}.wasm"));
            while let Some(attack) = attacks.get(next.fetch_add(1, Ordering::Relaxed)) {
                for &work in &works {
                    let growth = Growth::of(attack, work, self.size, &file)?;
                    over.fetch_add(growth.is_over().into(), Ordering::Relaxed);
                    println!("{growth}");
                }
            }
            Ok(())
        };
        let threads = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || measure(thread))).collect();
            running.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?)
        })?;
        let over = over.into_inner();
        println!("{} modules, {over} rows of which grow by more than {MOST}", attacks.len());
        Ok(if over == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hostile::attacks;

    fn growth(name: &'static str, counts: [(u64, bool); SIZES]) -> Growth {
        let counts = counts.map(|(millions, refused)| Count { instructions: millions * 1_000_000, refused });
        Growth { name, work: Work::Native, counts }
    }

    #[test]
    fn each_doubling_is_within_the_bound_or_ends_at_a_budget() {
        let counts =
            |refused: [bool; SIZES], millions: [u64; SIZES]| growth("calls", [0, 1, 2, 3].map(|i| (millions[i], refused[i])));
        let never = [false; SIZES];
        assert!(!counts(never, [10, 20, 46, 100]).is_over());
        assert!(counts(never, [10, 24, 40, 80]).is_over(), "the first doubling");
        assert!(counts(never, [10, 20, 50, 100]).is_over(), "the second");
        assert!(counts(never, [10, 20, 40, 99]).is_over(), "the last");
        assert!(!counts([false, false, true, true], [10, 20, 80, 160]).is_over(), "the budget ends it");
        assert!(counts([true, false, false, false], [10, 40, 80, 160]).is_over(), "a smaller module's budget is no excuse");
    }

    #[test]
    fn deep_modules_have_one_larger_step() {
        let deep = |millions: [u64; SIZES]| growth(DEEP[0], millions.map(|count| (count, false)));
        assert!(!deep([10, 20, 78, 156]).is_over());
        assert!(deep([10, 20, 90, 180]).is_over(), "more than that");
        assert!(deep([10, 30, 90, 180]).is_over(), "two of them");
        for name in DEEP.iter().chain(READ_AGAIN) {
            assert!(attacks().iter().any(|attack| attack.name == *name), "{name}");
        }
    }
}
