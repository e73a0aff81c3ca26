//! The command line.

use crate::document::Metric;
use crate::programs::Size;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

const HELP: &str = "\
Peers: weir-auto, weir-native, weir-unmasked (the same without masks against speculation), weir-regalloc2, weir-cranelift,
weir-baseline, weir-interp (the weir binary beside this one), wasmtime, wasmtime-precompiled, wasmtime-cached, wasmtime-winch,
wasmtime-pulley, wasmi, wasm3, wasmer, wasmedge, node, node-no-liftoff, and native (the source compiled by cc, rustc or Zig). A peer's
binary is looked for on the PATH, unless an environment variable names it: WEIR_PEER_WASMTIME, WEIR_PEER_CC and so on.

Examples:
  weir-bench sha256 --peers weir-auto,wasmtime,node   one program, three runtimes
  weir-bench full --minutes 60                        everything, in about an hour, into BENCHMARKS.md
  weir-bench curve json --peers weir-auto,wasmtime    time against amount of work
  weir-bench ratios --peers weir-auto,weir-native     two tiers on every program, with intervals
  weir-bench compare old.json new.json                differences that exceed noise
  weir-bench counts fib --against before.json         instructions by callgrind, compared with earlier ones
  weir-bench calls host                               instructions, loads and stores of calls to and from the host";

/// The folder of the programs, by default.
const PROGRAMS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The folder of the documents, by default.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Runs the benchmark programs on Weir and on other runtimes, and compares.
#[derive(Debug, Parser)]
#[command(name = "weir-bench", version, after_help = HELP, args_conflicts_with_subcommands = true)]
pub struct Options {
    #[command(subcommand)]
    pub command: Option<Task>,
    #[command(flatten)]
    pub bench: Bench,
}

/// All commands except measuring one table.
#[derive(Debug, Subcommand)]
pub enum Task {
    Full(Full),
    Curve(CurveOptions),
    Ratios(Ratios),
    Fit(Fit),
    Liftoff(Liftoff),
    Starts(Starts),
    Stores(Stores),
    Seeds(Seeds),
    Compare(Compare),
    Counts(Counts),
    Calls(Calls),
    Throws(Throws),
    Figures(Figures),
    Report(Report),
    Mean(Mean),
    Compiler(Compiler),
    Compile(Compile),
}

/// The programs, and the peers that run them.
#[derive(Debug, Args)]
pub struct Selection {
    /// Only programs whose name contains this
    pub filter: Option<String>,
    /// The runtimes, separated by commas [default: all that are found]
    #[arg(long, value_name = "PEER,…", value_delimiter = ',')]
    pub peers: Vec<String>,
    /// Give up on a run after this long
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    pub timeout: u64,
    /// The folder of the programs
    #[arg(long, value_name = "DIR", default_value = PROGRAMS)]
    pub programs: PathBuf,
    /// The programs of a list that `programs/twins/build.py` wrote, instead of those in the folder; the filter may be a kind
    #[arg(long, value_name = "FILE", conflicts_with = "programs")]
    pub list: Option<PathBuf>,
}

/// One table.
#[derive(Debug, Args)]
pub struct Bench {
    #[command(flatten)]
    pub selection: Selection,
    /// The peer that the others are compared with [default: the first one]
    #[arg(long, value_name = "PEER")]
    pub base: Option<String>,
    /// Rounds, after one with the small arguments that is not counted
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// The choice among each program's arguments
    #[arg(long, default_value = "large")]
    pub size: Size,
    /// Also measure steady state, first output, compile speed and code size
    #[arg(long)]
    pub metrics: bool,
    /// Write everything measured to this file
    #[arg(long, value_name = "OUT")]
    pub json: Option<PathBuf>,
    /// Write a page with charts to this file
    #[arg(long, value_name = "OUT")]
    pub html: Option<PathBuf>,
}

/// Measures everything and writes BENCHMARKS.md, its charts and results.json
#[derive(Debug, Args)]
pub struct Full {
    #[command(flatten)]
    pub selection: Selection,
    /// Begin no round that would end after this long
    #[arg(long, value_name = "N", default_value_t = 14)]
    pub minutes: u64,
    /// Rounds of the large table at most
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Programs of which the time is drawn against the work, separated by commas
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "json")]
    pub curves: Vec<String>,
    /// The folder for BENCHMARKS.md; the charts and results.json go to programs/bench in it
    #[arg(long, value_name = "DIR", default_value = ROOT)]
    pub out: PathBuf,
}

/// Total time against amount of work
#[derive(Debug, Args)]
pub struct CurveOptions {
    #[command(flatten)]
    pub selection: Selection,
    /// Up to this much work, in seconds on the first peer
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    pub to: f64,
    /// Write everything measured to this file
    #[arg(long, value_name = "OUT")]
    pub json: Option<PathBuf>,
    /// Write the chart to this file, that of the last program if there are several
    #[arg(long, value_name = "OUT")]
    pub svg: Option<PathBuf>,
}

/// Prints the first peer's time over each other's: the median of the rounds' ratios, and its 95 % interval
#[derive(Debug, Args)]
pub struct Ratios {
    #[command(flatten)]
    pub selection: Selection,
    /// Which of each program's arguments
    #[arg(long, default_value = "large")]
    pub size: Size,
    /// Amounts of work instead, in milliseconds on the first peer without its start, separated by commas
    #[arg(long, value_name = "MS,…", value_delimiter = ',')]
    pub work: Vec<f64>,
    /// The quantity to compare
    #[arg(long, value_enum, default_value = "wall")]
    pub quantity: Quantity,
    /// Rounds at least
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(6..))]
    pub rounds: u32,
    /// Rounds at most: the ratio is then undecided
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub most: u32,
    /// Begin no further round after this long, once there are enough
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub seconds: u64,
    /// The interval at which a ratio is decided, in percent of it
    #[arg(long, value_name = "PERCENT", default_value_t = 4.0)]
    pub within: f64,
}

/// Prints the constants from which the policy computes when to compile: nanoseconds per byte of each tier and compiler
#[derive(Debug, Args)]
pub struct Fit {
    #[command(flatten)]
    pub selection: Selection,
    /// The work of each program, as a share of the large work
    #[arg(long, value_name = "SHARE", default_value_t = 0.05)]
    pub share: f64,
    /// Runs of which the median is taken
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub rounds: u32,
}

/// Compares the baseline compiler with V8's Liftoff, from the bytes of a module to callable code, on one thread
#[derive(Debug, Args)]
pub struct Liftoff {
    /// Modules
    #[arg(required = true)]
    pub modules: Vec<PathBuf>,
    /// Rounds
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(6..))]
    pub rounds: u32,
}

/// Prints the time of each program while another store executes the same module on another thread, as a multiple of its time alone
#[derive(Debug, Args)]
pub struct Stores {
    #[command(flatten)]
    pub selection: Selection,
    /// The work of each program, as a share of the large work
    #[arg(long, value_name = "SHARE", default_value_t = 0.2)]
    pub share: f64,
    /// Rounds
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(6..))]
    pub rounds: u32,
    /// In tier auto instead of tier baseline
    #[arg(long)]
    pub auto: bool,
}

/// Prints the time of one work of each program from an empty cache on, run by run, and that from a full one, beside other peers
#[derive(Debug, Args)]
pub struct Starts {
    #[command(flatten)]
    pub selection: Selection,
    /// Series, each from an empty cache
    #[arg(long, value_name = "N", default_value_t = 11, value_parser = clap::value_parser!(u32).range(6..))]
    pub series: u32,
    /// Runs of a series
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: u32,
    /// Runs after the last series, until the cache has everything
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub more: u32,
    /// Rounds with the full cache
    #[arg(long, value_name = "N", default_value_t = 25, value_parser = clap::value_parser!(u32).range(6..))]
    pub rounds: u32,
    /// The choice among each program's arguments
    #[arg(long, default_value = "small")]
    pub size: Size,
    /// Arguments instead of the program's own; all peers must print the same
    #[arg(last = true, value_name = "ARGS", conflicts_with = "size")]
    pub args: Vec<String>,
}

/// Prints the time of each program under the slowest of several layouts over that under the fastest, and how many addresses modulo 64
/// its switches' arms have
#[derive(Debug, Args)]
pub struct Seeds {
    #[command(flatten)]
    pub selection: Selection,
    /// The number of layouts
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// Rounds, of which the best counts
    #[arg(long, value_name = "N", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// The work of each program, as a share of the large work; real programs do their small work
    #[arg(long, value_name = "SHARE", default_value_t = 0.1)]
    pub share: f64,
    /// Use all tiers instead of the native one
    #[arg(long)]
    pub auto: bool,
}

/// A quantity of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Quantity {
    /// Time from start to exit
    Wall,
    /// Time of the processors
    Cpu,
    /// Time from start to the first byte of output
    FirstOutput,
}

/// Lists the differences between two JSON files that exceed noise
#[derive(Debug, Args)]
pub struct Compare {
    pub old: PathBuf,
    pub new: PathBuf,
}

/// Instructions executed, counted by valgrind's callgrind
#[derive(Debug, Args)]
pub struct Counts {
    #[command(flatten)]
    pub selection: Selection,
    /// Compare with these earlier counts
    #[arg(long, value_name = "OLD")]
    pub against: Option<PathBuf>,
    /// Write the counts to this file
    #[arg(long, value_name = "OUT")]
    pub json: Option<PathBuf>,
}

/// Instructions, loads and stores of a call between native code, interpreter and host, counted by valgrind's callgrind
#[derive(Debug, Args)]
pub struct Calls {
    /// Only directions whose name contains this, such as `host`
    pub filter: Option<String>,
    /// Execute a direction, given by number, with N calls, without callgrind; the child processes use this
    #[arg(long, num_args = 2, value_names = ["DIRECTION", "N"], hide = true, value_parser = clap::value_parser!(u32).range(..=1 << 30))]
    pub run: Vec<u32>,
}

/// Time of a throw: to a handler in the same function, through frames, with cleanup in each, and between engines
#[derive(Debug, Args)]
pub struct Throws {
    /// The runtimes, separated by commas [default: Weir's tiers, wasmtime-precompiled, node]
    #[arg(long, value_name = "PEER,…", value_delimiter = ',')]
    pub peers: Vec<String>,
    /// Rounds
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..))]
    pub rounds: u32,
    /// Throw N times from this depth, through frames of two engines; the child processes use this
    #[arg(long, num_args = 2, value_names = ["DEPTH", "N"], hide = true)]
    pub run: Vec<u32>,
}

/// Lists the figures that the documents claim: value, bar, command
#[derive(Debug, Args)]
pub struct Figures {
    /// Only claims that contain this
    pub filter: Option<String>,
    /// Measure them, and fail if one misses its bar
    #[arg(long)]
    pub run: bool,
    /// Measure them and store the values
    #[arg(long)]
    pub update: bool,
    /// The folder in which the commands run
    #[arg(long, value_name = "DIR", default_value = ROOT)]
    pub root: PathBuf,
}

/// Writes BENCHMARKS.md and its charts from JSON
#[derive(Debug, Args)]
pub struct Report {
    pub results: PathBuf,
    /// The folder for BENCHMARKS.md
    #[arg(long, value_name = "DIR", default_value = ROOT)]
    pub out: PathBuf,
    /// Also write a page with everything to this file
    #[arg(long, value_name = "OUT")]
    pub html: Option<PathBuf>,
}

/// Prints one number out of JSON: the geometric mean of a peer's ratios
#[derive(Debug, Args)]
pub struct Mean {
    pub results: PathBuf,
    pub peer: String,
    /// The peer that it is compared with [default: the table's base]
    #[arg(long, value_name = "PEER")]
    pub base: Option<String>,
    #[arg(long, value_enum, default_value = "total")]
    pub metric: MetricName,
}

/// Compiles every function of a module with Weir's compiler, as the table of compilers measures it
#[derive(Debug, Args)]
pub struct Compile {
    pub module: PathBuf,
    /// Write the machine code to this file [default: it is copied to executable memory]
    #[arg(short, long, value_name = "OUT")]
    pub out: Option<PathBuf>,
    /// Use Cranelift instead of Weir's native back end
    #[arg(long)]
    pub cranelift: bool,
    /// Use the baseline compiler instead
    #[arg(long, conflicts_with = "cranelift")]
    pub baseline: bool,
    /// Let baseline code count ticks and branches, as it does in tier auto
    #[arg(long, requires = "baseline")]
    pub counts: bool,
}

/// Prints one number out of JSON: megabytes of bytecode that a compiler compiles in a second, on one thread
#[derive(Debug, Args)]
pub struct Compiler {
    pub results: PathBuf,
    pub compiler: String,
    /// Print the ratio to this compiler
    #[arg(long, value_name = "COMPILER")]
    pub base: Option<String>,
    /// Bytes of code for one of bytecode instead
    #[arg(long)]
    pub size: bool,
}

/// A metric by its name on the command line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum MetricName {
    Total,
    Steady,
    FirstOutput,
    PeakMemory,
}

impl From<MetricName> for Metric {
    fn from(name: MetricName) -> Metric {
        match name {
            MetricName::Total => Metric::Total,
            MetricName::Steady => Metric::Steady,
            MetricName::FirstOutput => Metric::FirstOutput,
            MetricName::PeakMemory => Metric::PeakMemory,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_tasks_are_distinguished() {
        let parse = |line: &str| Options::try_parse_from(line.split(' ')).unwrap();
        let options = parse("weir-bench sha256 --peers weir-auto,node --rounds 1");
        assert!(options.command.is_none() && options.bench.rounds == 1);
        assert_eq!(options.bench.selection.filter.as_deref(), Some("sha256"));
        assert_eq!(options.bench.selection.peers, ["weir-auto", "node"]);
        let Some(Task::Full(full)) = parse("weir-bench full fib --minutes 1").command else { panic!() };
        assert_eq!((full.selection.filter.as_deref(), full.minutes), (Some("fib"), 1));
        let Some(Task::Mean(mean)) = parse("weir-bench mean a.json weir-auto --metric steady").command else { panic!() };
        assert_eq!(Metric::from(mean.metric), Metric::Steady);
        assert!(Options::try_parse_from(["weir-bench", "--rounds", "0"]).is_err());
    }
}
