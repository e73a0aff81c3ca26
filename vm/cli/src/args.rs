//! The command line.

use clap::builder::styling::Styles;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  weir app.wasm --verbose input        run a WASI program with two arguments
  weir --stats app.wasm                say afterwards what interpreter and compilers did
  weir --invoke add lib.wat 2 3        call an exported function and print its results
  weir --tier interp --fuel 1000000 app.wasm
  weir explore lib.wat --func add      print what every stage of the compiler makes of a function

Exit status: the program's own; 1 if the module cannot be read, is malformed, invalid or cannot be linked; 2 for wrong usage;
134 if the program trapped or ran out of fuel.";

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
    /// Print what every stage of the compiler makes of a module's functions
    Explore(Explore),
    /// Run scripts in the specification's .wast format and report the directives that fail
    Wast(Wast),
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Call this exported function, with the arguments parsed according to its type, and print its results
    #[arg(long, value_name = "FUNC")]
    pub invoke: Option<String>,
    #[command(flatten)]
    pub engine: EngineFlags,
    /// Set an environment variable of the program; without a value, to what it is here
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,
    /// Afterwards say on standard error what happened, in a few lines or as one JSON object
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    pub stats: Option<StatsFormat>,
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
    /// Trap after about this many instructions
    #[arg(long, value_name = "N")]
    pub fuel: Option<u64>,
    /// Force tier switches, small stacks and failing compilations, chosen by this seed: for testing Weir
    #[arg(long, value_name = "SEED")]
    pub stress: Option<u64>,
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
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum StatsFormat {
    Text,
    Json,
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
pub(crate) struct Explore {
    /// The module (.wasm or .wat)
    pub module: PathBuf,
    /// Only this function: its index, its export or its name
    #[arg(long, value_name = "FUNC")]
    pub func: Option<String>,
    /// Only this stage: bytecode, sidetable, build, a pass, lower, regalloc, asm
    #[arg(long, value_name = "STAGE")]
    pub stage: Option<String>,
    /// As entered at the loop with this number instead of by a call
    #[arg(long, value_name = "LOOP", requires = "func")]
    pub osr: Option<u32>,
    /// With Cranelift as the back end
    #[arg(long)]
    pub cranelift: bool,
}

impl EngineFlags {
    /// The engine's settings that the flags ask for.
    pub fn config(&self) -> weir::Config {
        let mut config = weir::Config::new();
        config.consume_fuel(self.fuel.is_some()).stress(self.stress);
        config.tier(match self.tier {
            _ if self.no_jit => weir::Tier::Interpreter,
            Tier::Auto => weir::Tier::Auto,
            Tier::Interp => weir::Tier::Interpreter,
            Tier::Native => weir::Tier::Native,
            Tier::Cranelift => weir::Tier::Cranelift,
        });
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
        for line in
            ["weir", "weir run", "weir --tier fast a", "weir --fuel -1 a", "weir --no-jit --tier native a", "weir validate"]
        {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
    }
}
