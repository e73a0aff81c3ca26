//! The command line.

use clap::builder::PossibleValuesParser;
use clap::builder::styling::Styles;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  weir app.wasm --verbose input              run a WASI program with two arguments
  weir --stats app.wasm                      say afterwards what interpreter and compilers did
  weir --invoke add lib.wat 2 3              call an exported function and print its results
  weir --dir . --dir data::/input app.wasm   give it this folder, and `data` as /input
  weir --env HOME=/ --timeout 10 app.wasm    with a variable, for ten seconds at most
  weir --tier interp --fuel 1000000 app.wasm
  weir --preload lib=lib.wasm app.wasm       link it with another module
  weir dump lib.wasm                         print sections and instructions with their offsets
  weir explore lib.wat --func add            print what every stage of the compiler makes of a function
  weir explore lib.wat --func add --html add.html

Exit status: the program's own; 1 if the module cannot be read, is malformed, invalid or cannot be linked; 2 for wrong usage;
134 if the program trapped, ran out of fuel or time, or exceeded a limit; 130 after Ctrl-C, 141 if a pipe was closed.";

/// A WebAssembly virtual machine: interprets at once, compiles what is hot.
#[derive(Debug, Parser)]
#[command(name = "weir", version, after_help = EXAMPLES, args_conflicts_with_subcommands = true, styles = Styles::plain())]
pub(crate) struct Weir {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub run: Run,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a module: a WASI program, or with --invoke one of its functions. This is what happens without a subcommand
    Run(Run),
    /// Check that modules are well-formed and valid
    Validate(Validate),
    /// Print a module's sections and instructions with their offsets
    Dump(Dump),
    /// Print what every stage of the compiler makes of a module's functions
    Explore(Explore),
    /// Run scripts in the specification's .wast format and report the directives that fail
    Wast(Wast),
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Call this exported function, with the arguments parsed according to its type, and print its results. A vector is one number,
    /// as 0x10, lane 0 lowest, or its lanes, as i32x4:1,2,3,4 or f64x2:0.5,-1
    #[arg(long, value_name = "FUNC")]
    pub invoke: Option<String>,
    #[command(flatten)]
    pub engine: EngineFlags,
    /// Set an environment variable of the program; without a value, to what it is here
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,
    /// Give the program this folder, to which it sees nothing outside; under the name GUEST, if one is given
    #[arg(long = "dir", value_name = "HOST[::GUEST]")]
    pub dirs: Vec<OsString>,
    /// Give the program a socket that listens there; it is descriptor 3, the next one 4, before the folders
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub listen: Vec<String>,
    /// Instantiate this module first, so that its exports can be imported from NAME
    #[arg(long = "preload", value_name = "NAME=FILE")]
    pub preloads: Vec<OsString>,
    /// Stop the program after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Let the program's memories have so many bytes in all
    #[arg(long, value_name = "BYTES")]
    pub max_memory: Option<usize>,
    /// Afterwards say on standard error what happened, in a few lines or as one JSON object
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    pub stats: Option<StatsFormat>,
    /// Print on standard error, afterwards, which way branches went and what indirect calls called; or name compiled code for `perf`
    #[arg(long, value_name = "KIND")]
    pub profile: Option<ProfileKind>,
    /// The module (.wasm or .wat), then its arguments
    #[arg(value_name = "MODULE", required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = false)]
    pub module_and_args: Vec<OsString>,
}

/// How modules are executed.
#[derive(Debug, Args)]
pub(crate) struct EngineFlags {
    /// Who executes functions
    #[arg(long, value_name = "TIER", default_value = "auto")]
    pub tier: Tier,
    /// The interpreter alone, and no executable memory anywhere
    #[arg(long, conflicts_with = "tier")]
    pub no_jit: bool,
    /// Install no signal handlers for traps: check every memory access, divisor and conversion in the code
    #[arg(long)]
    pub no_signals: bool,
    /// Same output for same input: NaNs canonical, functions compiled at once, clocks that only the program moves, random numbers
    /// from a fixed seed
    #[arg(long)]
    pub deterministic: bool,
    /// Validate each function before its first execution, not the whole module at once
    #[arg(long)]
    pub lazy: bool,
    /// Trap after about this many instructions
    #[arg(long, value_name = "N")]
    pub fuel: Option<u64>,
    /// Force tier switches, small stacks and failing compilations, chosen by this seed: for testing Weir
    #[arg(long, value_name = "SEED")]
    pub stress: Option<u64>,
    /// Who allocates registers in Weir's own back end: for comparison
    #[arg(long, value_name = "ALLOCATOR")]
    pub allocator: Option<AllocatorName>,
    /// Leave a pass of the optimiser out; may be given several times: for finding bugs
    #[arg(long = "pass-off", value_name = "PASS", value_parser = passes())]
    pub passes_off: Vec<String>,
    /// Let the optimiser make so many rewrites in each function and no more: for finding bugs
    #[arg(long, value_name = "N")]
    pub rewrite_fuel: Option<u64>,
}

/// The names of the passes.
fn passes() -> PossibleValuesParser {
    PossibleValuesParser::new(weir_jit::opt::passes::ORDER.iter().map(|pass| pass.name))
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum AllocatorName {
    /// Weir's linear scan
    Own,
    /// The crate regalloc2
    Regalloc2,
}

impl AllocatorName {
    pub fn allocator(self) -> weir::Allocator {
        match self {
            AllocatorName::Own => weir::Allocator::Own,
            AllocatorName::Regalloc2 => weir::Allocator::Regalloc2,
        }
    }
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Tier {
    /// Interpret; compile what is hot
    Auto,
    /// Interpret
    Interp,
    /// Compile every function at its first call by the own back end
    Native,
    /// Compile every function at its first call by Cranelift
    Cranelift,
    /// Evaluate the optimised SSA that the compilers start from: for finding bugs in them, and slow
    Ssa,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum StatsFormat {
    Text,
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ProfileKind {
    /// Branches and indirect calls, by function and offset
    Counts,
    /// Names of compiled code in /tmp/perf-PID.map, for `perf report`
    Perfmap,
    /// Compiled code in ./jit-PID.dump, for `perf record -k mono`, then `perf inject --jit`
    Jitdump,
}

#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// The modules (.wasm or .wat)
    #[arg(value_name = "MODULE", required = true)]
    pub modules: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Wast {
    #[command(flatten)]
    pub engine: EngineFlags,
    /// The scripts
    #[arg(value_name = "FILE", required = true)]
    pub scripts: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Dump {
    /// The module (.wasm or .wat)
    pub module: PathBuf,
    /// Only this function: its index, its export or its name
    #[arg(long, value_name = "FUNC")]
    pub func: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Explore {
    /// The module (.wasm or .wat)
    pub module: PathBuf,
    /// Only this function: its index, its export or its name
    #[arg(long, value_name = "FUNC")]
    pub func: Option<String>,
    /// Only this stage: bytecode, sidetable, build, gates, a pass, lower, regalloc, asm
    #[arg(long, value_name = "STAGE")]
    pub stage: Option<String>,
    /// Write the stages of one function to this file, as an HTML page that shows them side by side
    #[arg(long, value_name = "OUT", requires = "func", conflicts_with = "stage")]
    pub html: Option<PathBuf>,
    /// As entered at the loop with this number instead of by a call
    #[arg(long, value_name = "LOOP", requires = "func")]
    pub osr: Option<u32>,
    /// With Cranelift as the back end
    #[arg(long)]
    pub cranelift: bool,
    /// Who allocates registers in Weir's own back end
    #[arg(long, value_name = "ALLOCATOR")]
    pub allocator: Option<AllocatorName>,
}

/// More than none, and fractions are possible.
fn seconds(text: &str) -> Result<Duration, String> {
    let parsed = text.parse().map_err(|_| "not a number of seconds".to_string())?;
    match Duration::try_from_secs_f64(parsed) {
        Ok(Duration::ZERO) => Err("no time at all".into()),
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}

impl EngineFlags {
    /// The engine's settings that the flags ask for.
    pub fn config(&self) -> weir::Config {
        let mut config = weir::Config::new();
        config.consume_fuel(self.fuel.is_some()).stress(self.stress);
        config.signals_based_traps(!self.no_signals).lazy_validation(self.lazy).deterministic(self.deterministic);
        config.tier(match self.tier {
            _ if self.no_jit => weir::Tier::Interpreter,
            Tier::Auto => weir::Tier::Auto,
            Tier::Interp => weir::Tier::Interpreter,
            Tier::Native => weir::Tier::Native,
            Tier::Cranelift => weir::Tier::Cranelift,
            Tier::Ssa => weir::Tier::Ssa,
        });
        config.register_allocator(self.allocator.map_or_else(weir::Allocator::default, AllocatorName::allocator));
        let passes_off: Vec<&str> = self.passes_off.iter().map(String::as_str).collect();
        config.passes_off(&passes_off).rewrite_fuel(self.rewrite_fuel);
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn definitions_are_consistent() {
        Weir::command().debug_assert();
    }

    fn parse(line: &str) -> Result<Weir, clap::Error> {
        Weir::try_parse_from(line.split(' '))
    }

    #[test]
    fn run_is_the_default_and_its_arguments_are_the_programs() {
        let run = parse("weir --fuel 5 a.wasm --fuel x -- validate").unwrap().run;
        assert_eq!(run.engine.fuel, Some(5));
        assert_eq!(run.module_and_args, ["a.wasm", "--fuel", "x", "--", "validate"]);
        let Some(Command::Run(run)) = parse("weir run --stats=json a.wasm").unwrap().command else { panic!() };
        assert_eq!((run.stats, run.module_and_args.len()), (Some(StatsFormat::Json), 1));
        assert_eq!(parse("weir --stats a.wasm").unwrap().run.stats, Some(StatsFormat::Text));
        assert!(matches!(parse("weir validate a b").unwrap().command, Some(Command::Validate(v)) if v.modules.len() == 2));
    }

    #[test]
    fn wrong_usage_is_refused() {
        for line in [
            "weir",
            "weir run",
            "weir --tier fast a",
            "weir --fuel -1 a",
            "weir --no-jit --tier native a",
            "weir validate",
            "weir --timeout 0 a",
            "weir --timeout -1 a",
            "weir --timeout soon a",
            "weir --max-memory lots a",
            "weir dump",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
    }
}
