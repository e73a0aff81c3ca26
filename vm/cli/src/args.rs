//! The command line.

use crate::deferred::Deferred;
use crate::profile_kind::{ProfileKind, ProfileParser};
use crate::units;
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;
use weir::{PadAt, Padding};

const EXAMPLES: &str = "\
Examples:
  weir app.wasm --verbose input              run a WASI program with two arguments
  weir --stats app.wasm                      print statistics of interpreter and compilers
  weir --invoke add lib.wat 2 3              call an exported function and print its results
  weir --dir . --dir data::/input app.wasm   open this directory, and directory `data` as /input
  weir --env HOME=/ --timeout 10s app.wasm   set a variable; stop after ten seconds
  weir --max-memory 512M --max-stack 1M app.wasm
  weir --tier interp --fuel 1000000 app.wasm
  weir --preload lib=lib.wasm app.wasm       link with another module
  generate | weir - input                    run a module from standard input
  weir dump lib.wasm                         print sections and instructions with offsets
  weir explore lib.wat --func add            print every compiler stage of a function
  weir explore lib.wat --func add --html add.html
  weir --profile guest app.wasm              print in which functions and tiers the time was spent
  weir --profile guest=app.html app.wasm     the same as a flame graph; app.json is for profiler.firefox.com
  weir explore app.wasm --html app.html --guest-profile app.json   a page of the whole module, with these samples
  weir --profile-save app.prof app.wasm      save the profile of the run
  weir --profile-use app.prof app.wasm       compile with a saved profile
  weir --no-cache app.wasm                   do not use what earlier runs have validated and compiled
  weir compile app.wasm -o app.cwasm         compile ahead of time, for this build and this processor
  weir --allow-precompiled app.cwasm         run what was compiled
  weir snapshot app.wasm --init init -o app.snap.wasm   run an initialiser, and write a module that begins after it
  weir explore app.wasm --profile-use app.prof --func main --stage asm   show the code that the saved run executed

Exit status: the program's own, or
  1    the module cannot be read, is malformed or invalid, or cannot be linked; or output cannot be written
  2    wrong usage, or a profile that cannot be read, is malformed, or belongs to another module or version
  130  Ctrl-C
  134  the program trapped, ran out of fuel or time, or exceeded a limit
  141  the reader of standard output closed the pipe";

/// A WebAssembly virtual machine that starts in an interpreter and compiles hot functions.
#[derive(Debug, Parser)]
#[command(name = "weir", version, after_long_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Weir {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub run: Run,
}

impl Weir {
    /// Parses this process's arguments; ends the process if they are wrong.
    pub fn of_process() -> Weir {
        let args: Vec<OsString> = std::env::args_os().skip(1).collect();
        Weir::of_module(&args).unwrap_or_else(Weir::parse)
    }

    /// The same as parsing, for arguments that begin with a module. Declaring all options takes a hundredth of the time in which SQLite
    /// answers.
    fn of_module(args: &[OsString]) -> Option<Weir> {
        let first = args.first()?.as_bytes();
        // What begins so is no option, and has what no subcommand has.
        let is_file = !first.starts_with(b"-") && first.iter().any(|byte| b"./".contains(byte));
        let run = || Run { module_and_args: args.to_vec(), ..Run::default() };
        is_file.then(|| Weir { command: None, run: run() })
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a WASI program, or with --invoke one function of a module. This is the default subcommand
    Run(Deferred<Run>),
    /// Check that modules are well-formed and valid
    Validate(Deferred<Validate>),
    /// Print a module's sections and instructions with their offsets
    Dump(Deferred<Dump>),
    /// Print every stage of the compilation of a module's functions
    Explore(Deferred<Explore>),
    /// Compile a module ahead of time, for `run --allow-precompiled`
    Compile(Deferred<Compile>),
    /// Run the initialiser of a module, and write the module that begins with its memories, tables and globals
    Snapshot(Deferred<Snapshot>),
    /// Write a profile into its module, which then travels with it
    Profile(Deferred<Profile>),
    /// Show or clear the cache of validated modules and their code
    Cache(Deferred<Cache>),
    /// Run scripts in the specification's .wast format and report failing directives
    Wast(Deferred<Wast>),
    /// Print completions of the command line for a shell, to be loaded by it
    Completion(Deferred<Completion>),
    /// Print a manual page, in the format of `man`
    Man(Deferred<Man>),
}

// The groups of options in the help text.
const PROGRAM: &str = "The program";
const LIMITS: &str = "Limits";
const ENGINE: &str = "The engine";
const REPORTS: &str = "Code, profiles and reports";
const DEBUGGING: &str = "Debugging Weir";

#[derive(Debug, Default, Args)]
pub(crate) struct Run {
    /// Whether no subcommand was given.
    #[arg(skip)]
    pub by_default: bool,
    /// Call this exported function and print its results. Arguments are parsed by parameter type; a vector is one number, such as
    /// 0x10 with lane 0 lowest, or a list of lanes, such as i32x4:1,2,3,4 or f64x2:0.5,-1; a reference is null
    #[arg(long, value_name = "FUNC", help_heading = PROGRAM)]
    pub invoke: Option<String>,
    /// Give the program this name, its first argument, instead of the module's
    #[arg(long, value_name = "NAME", help_heading = PROGRAM)]
    pub argv0: Option<OsString>,
    /// Set an environment variable of the program; without VALUE, copy it from this environment
    #[arg(long = "env", value_name = "NAME[=VALUE]", help_heading = PROGRAM)]
    pub env: Vec<OsString>,
    /// Copy all variables of this environment; those that --env sets take precedence
    #[arg(long, help_heading = PROGRAM)]
    pub inherit_env: bool,
    /// Preopen this directory, as GUEST if given; the program can access nothing outside it
    #[arg(long = "dir", value_name = "HOST[::GUEST]", help_heading = PROGRAM)]
    pub dirs: Vec<OsString>,
    /// Preopen this directory for reading only; its descriptor comes after those of --dir
    #[arg(long = "dir-ro", value_name = "HOST[::GUEST]", help_heading = PROGRAM)]
    pub dirs_to_read: Vec<OsString>,
    /// Pass the program a socket that listens here; sockets are descriptors 3, 4 …, before the directories
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = PROGRAM)]
    pub listen: Vec<String>,
    /// Instantiate FILE first and make its exports importable from NAME
    #[arg(long = "preload", value_name = "NAME=FILE", help_heading = PROGRAM)]
    pub preloads: Vec<OsString>,
    /// Define the functions that the module imports and nothing exports
    #[arg(long, value_name = "HOW", help_heading = PROGRAM)]
    pub unknown_imports: Option<UnknownImports>,
    /// Limit the total size of the program's memories and tables
    #[arg(long, value_name = "SIZE", value_parser = units::size, help_heading = LIMITS)]
    pub max_memory: Option<usize>,
    /// Limit the stack of the program's calls. Default: 8M
    #[arg(long, value_name = "SIZE", value_parser = units::size_above_zero, help_heading = LIMITS)]
    pub max_stack: Option<usize>,
    /// Write the profile of this run to FILE: branch counts and callees, as compilation used them
    #[arg(long, value_name = "FILE", help_heading = REPORTS)]
    pub profile_save: Option<PathBuf>,
    /// If the program traps, write a core dump to FILE: its memories, globals and stack, as a module
    #[arg(long, value_name = "FILE", help_heading = REPORTS)]
    pub coredump: Option<PathBuf>,
    /// Record a profile. counts: print counts of branches and indirect calls. perfmap, jitdump: name compiled code for `perf`. guest: sample
    /// the program's stack, with the tier of each frame, and print where its time went; guest=FILE writes the stacks instead, for the Firefox
    /// profiler (.json), as collapsed stacks (.folded) or as a flame graph (.html). guest,fuel: samples by fuel, which are the same in each
    /// run and tier. guest,tiers: collapsed stacks with tiers
    #[arg(long, value_name = "KIND[=FILE]", value_parser = ProfileParser, help_heading = REPORTS)]
    pub profile: Option<ProfileKind>,
    /// Time between two samples of `--profile guest`, such as 5ms, or units of fuel with guest,fuel. Default: 1ms, or 100000
    #[arg(long, value_name = "INTERVAL", requires = "profile", help_heading = REPORTS)]
    pub profile_interval: Option<String>,
    /// After the run, print statistics on standard error; also if SIGHUP, SIGINT or SIGTERM ends it
    #[arg(long, value_name = "FORMAT", num_args = 0..=1, require_equals = true, default_missing_value = "text", help_heading = REPORTS)]
    pub stats: Option<StatsFormat>,
    /// Run modules that `weir compile` has written. Such a file can run any code as you: allow it for files that you trust
    #[arg(long, help_heading = REPORTS)]
    pub allow_precompiled: bool,
    /// Neither use the cache of modules that were run before, nor add to it
    #[arg(long, help_heading = REPORTS)]
    pub no_cache: bool,
    /// Say on standard error whether the module was in the cache, and if not, why; and why nothing could be added to it
    #[arg(short, long, help_heading = REPORTS)]
    pub verbose: bool,
    #[command(flatten)]
    pub code: CodeFlags,
    /// The module (.wasm or .wat, or - for standard input), then its arguments. All options of weir go before it
    #[arg(value_name = "MODULE", required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = false)]
    pub module_and_args: Vec<OsString>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum UnknownImports {
    /// A call of such a function traps
    Trap,
    /// Such a function returns zeros and null references
    Default,
}

/// The flags of a run that affect the compiled code.
#[derive(Debug, Default, Args)]
pub(crate) struct CodeFlags {
    #[command(flatten)]
    pub engine: EngineFlags,
    /// Stop the program after this time, such as 5s or 100ms; a number alone is seconds
    #[arg(long, value_name = "TIME", value_parser = units::time, help_heading = LIMITS)]
    pub timeout: Option<Duration>,
    /// Compile with the counts of the profile in FILE, which must be of this module; the cache is not used then
    #[arg(long, value_name = "FILE", help_heading = REPORTS)]
    pub profile_use: Option<PathBuf>,
}

/// The flags that configure an engine.
#[derive(Debug, Default, Args)]
pub(crate) struct EngineFlags {
    /// The engine that executes functions
    #[arg(long, value_name = "TIER", default_value = "auto", help_heading = ENGINE)]
    pub tier: Tier,
    /// Interpret only, and create no executable memory
    #[arg(long, conflicts_with = "tier", help_heading = ENGINE)]
    pub no_jit: bool,
    /// Install no signal handlers; check memory accesses, divisors and conversions explicitly
    #[arg(long, help_heading = ENGINE)]
    pub no_signals: bool,
    /// Compile accesses to memory without the segment register gs
    #[arg(long, help_heading = ENGINE)]
    pub no_segment: bool,
    /// Compile checks of memories, tables and br_table without masks against speculative execution
    #[arg(long, help_heading = ENGINE)]
    pub no_spectre_mitigation: bool,
    /// Produce the same output for the same input: canonical NaNs, synchronous compilation, virtual clocks, random numbers from a
    /// fixed seed
    #[arg(long, help_heading = ENGINE)]
    pub deterministic: bool,
    /// Validate each function before its first execution instead of the whole module at load
    #[arg(long, help_heading = ENGINE)]
    pub lazy: bool,
    /// Trap after N units of fuel, such as 100000 or 1M; most instructions cost one
    #[arg(long, value_name = "N", value_parser = units::fuel, help_heading = LIMITS)]
    pub fuel: Option<u64>,
    /// Force tier switches, small stacks and failing compilations, chosen by this seed
    #[arg(long, value_name = "SEED", help_heading = DEBUGGING, hide_short_help = true)]
    pub stress: Option<u64>,
    /// Move every object of the collected heap at every safepoint
    #[arg(long, help_heading = DEBUGGING, hide_short_help = true)]
    pub gc_stress: bool,
    /// The register allocator of the native back end
    #[arg(long, value_name = "ALLOCATOR", help_heading = DEBUGGING, hide_short_help = true)]
    pub allocator: Option<AllocatorName>,
    /// Skip an optimiser pass; may be repeated
    #[arg(long = "pass-off", value_name = "PASS", value_parser = passes(), help_heading = DEBUGGING, hide_short_help = true)]
    pub passes_off: Vec<String>,
    /// Allow the optimiser at most N rewrites per function
    #[arg(long, value_name = "N", help_heading = DEBUGGING, hide_short_help = true)]
    pub rewrite_fuel: Option<u64>,
    /// Let the optimiser's passes run wherever they can, however little they are expected to gain
    #[arg(long, help_heading = DEBUGGING, hide_short_help = true)]
    pub opt_all: bool,
    /// Put BYTES of padding before the machine code's functions, loop headers, arms of switches, or their indirect
    /// jumps, after layout
    #[arg(long, value_name = "PLACE=BYTES", value_parser = layout_pad, help_heading = DEBUGGING, hide_short_help = true)]
    pub layout_pad: Option<(PadAt, u32)>,
    /// With --tier auto: interpret functions until the optimiser compiles them, without baseline code
    #[arg(long, help_heading = DEBUGGING, hide_short_help = true)]
    pub no_baseline: bool,
    /// Shift functions, arms of switches and return points by random numbers of bytes from this seed, before layout
    #[arg(long, value_name = "SEED", help_heading = DEBUGGING, hide_short_help = true)]
    pub layout_seed: Option<u64>,
}

/// Most bytes of `--layout-pad`.
const MAX_LAYOUT_PAD: u32 = 4096;

/// Reads `head=16`.
fn layout_pad(text: &str) -> Result<(PadAt, u32), String> {
    let error = || format!("expected function, head, arms or jump, `=`, and a number of bytes up to {MAX_LAYOUT_PAD}");
    let (place, bytes) = text.split_once('=').ok_or_else(error)?;
    let place = match place {
        "function" => PadAt::Function,
        "head" => PadAt::Head,
        "arms" => PadAt::Arms,
        "jump" => PadAt::Jump,
        _ => return Err(error()),
    };
    let bytes = bytes.parse().ok().filter(|&bytes| bytes <= MAX_LAYOUT_PAD);
    Ok((place, bytes.ok_or_else(error)?))
}

/// The names of the passes.
fn passes() -> PossibleValuesParser {
    PossibleValuesParser::new(weir_jit::opt::passes::ORDER.iter().map(|pass| pass.name))
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum AllocatorName {
    /// Weir's linear scan
    LinearScan,
    /// The crate regalloc2
    Regalloc2,
}

impl AllocatorName {
    /// For an engine.
    pub fn allocator(self) -> weir::Allocator {
        match self {
            AllocatorName::LinearScan => weir::Allocator::LinearScan,
            AllocatorName::Regalloc2 => weir::Allocator::Regalloc2,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum Tier {
    /// Interpret at first, compile hot functions in the background
    #[default]
    Auto,
    /// Interpret everything
    Interp,
    /// Compile every function at its first call with the native back end; functions that it refuses go to Cranelift or the interpreter
    Native,
    /// Compile every function at its first call with Cranelift; a function that it refuses is interpreted
    Cranelift,
    /// Compile every function at its first call with the baseline compiler, in one pass and without optimising
    Baseline,
    /// Evaluate the optimised SSA that both back ends compile; slow, for finding bugs
    Ssa,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum StatsFormat {
    /// Time, memory, engines, and compiled functions
    Text,
    /// The same, and what the compilers did
    Compiler,
    /// All statistics as one JSON object
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct Validate {
    /// The modules (.wasm or .wat)
    #[arg(value_name = "MODULE", required = true)]
    pub modules: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Compile {
    /// The module (.wasm or .wat, or - for standard input)
    #[arg(value_name = "MODULE")]
    pub module: PathBuf,
    /// The output. Default: the module's name with the extension .cwasm
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub code: CodeFlags,
}

#[derive(Debug, Args)]
pub(crate) struct Snapshot {
    /// The module (.wasm or .wat, or - for standard input)
    #[arg(value_name = "MODULE")]
    pub module: PathBuf,
    /// The initialiser: an exported function without parameters and results. It is called after `_initialize`, if that is exported.
    /// Default: wizer-initialize or, if that is not exported, wizer.initialize
    #[arg(long, value_name = "FUNC")]
    pub init: Option<String>,
    /// The output, a module without the initialiser, `_initialize` and the start section
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
    /// Export the initialiser from the output, too
    #[arg(long)]
    pub keep_init: bool,
    /// Export as NEW what the module exports as OLD; may be repeated
    #[arg(short, long = "rename", value_name = "NEW=OLD", value_parser = renaming)]
    pub renames: Vec<(String, String)>,
    /// Let the initialiser use clocks and random numbers. All copies of the output will have the same ones, such as seeds of hash tables
    #[arg(long)]
    pub allow_nondeterminism: bool,
    /// Set an environment variable of the initialiser; without VALUE, copy it from this environment
    #[arg(long = "env", value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,
    /// Preopen this directory, as GUEST if given, for the initialiser
    #[arg(long = "dir", value_name = "HOST[::GUEST]")]
    pub dirs: Vec<OsString>,
    /// Limit the total size of the module's memories and tables
    #[arg(long, value_name = "SIZE", value_parser = units::size)]
    pub max_memory: Option<usize>,
    /// Stop the initialiser after this time, such as 5s or 100ms; a number alone is seconds
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    pub timeout: Option<Duration>,
    #[command(flatten)]
    pub engine: EngineFlags,
    /// Arguments of the initialiser. Without any, it does not have the module's name as an argument either
    #[arg(value_name = "ARG", last = true)]
    pub args: Vec<OsString>,
}

/// Reads `new=old`.
fn renaming(text: &str) -> Result<(String, String), String> {
    let (new, old) = text.split_once('=').ok_or("expected NEW=OLD")?;
    Ok((new.into(), old.into()))
}

#[derive(Debug, Args)]
pub(crate) struct Profile {
    #[command(subcommand)]
    pub action: ProfileAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProfileAction {
    /// Write the module with the profile in custom sections: hints that any engine may use, and the counts
    Embed(Embed),
}

#[derive(Debug, Args)]
pub(crate) struct Embed {
    /// The module (.wasm or .wat, or - for standard input)
    #[arg(value_name = "MODULE")]
    pub module: PathBuf,
    /// The profile, which must be of this module
    #[arg(long, value_name = "FILE")]
    pub profile_use: PathBuf,
    /// The output
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Cache {
    /// What to do
    #[arg(value_enum, default_value = "list")]
    pub action: CacheAction,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum CacheAction {
    /// Print the directory, and the modules: size, seconds since the last use, and name, which is a hash
    List,
    /// Remove all modules
    Clear,
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
pub(crate) struct Completion {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The subcommand. Default: the command itself
    #[arg(value_name = "SUBCOMMAND")]
    pub command: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Dump {
    /// The module (.wasm or .wat, or - for standard input)
    pub module: PathBuf,
    /// Show only this function, given by index, export or name
    #[arg(long, value_name = "FUNC")]
    pub func: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Explore {
    /// The module (.wasm or .wat, or - for standard input)
    pub module: PathBuf,
    /// Show only this function, given by index, export or name
    #[arg(long, value_name = "FUNC")]
    pub func: Option<String>,
    /// Show only this stage: bytecode, sidetable, targets, profile, build, gates, a pass, lower, regalloc, layout, asm, bytes
    #[arg(long, value_name = "STAGE")]
    pub stage: Option<String>,
    /// Write an HTML page to OUT: with --func the stages of that function side by side; otherwise the whole module, with the calls between its
    /// functions, and the stages of the hottest ones
    #[arg(long, value_name = "OUT", conflicts_with = "stage")]
    pub html: Option<PathBuf>,
    /// Show the samples in FILE, which `weir --profile guest=FILE.json` has written, on the page of the module
    #[arg(long, value_name = "FILE", requires = "html", conflicts_with = "func")]
    pub guest_profile: Option<PathBuf>,
    /// Compile the OSR body of this loop instead of the function. LOOP is its number in the function or, such as 0x1e0, its offset
    #[arg(long, value_name = "LOOP", requires = "func")]
    pub osr: Option<String>,
    /// Compile the baseline code that --tier auto runs before optimised code
    #[arg(long, conflicts_with_all = ["osr", "no_baseline"])]
    pub baseline: bool,
    #[command(flatten)]
    pub code: CodeFlags,
}

impl CodeFlags {
    /// The engine configuration for these flags. `save` says whether the run's profile is saved.
    pub fn config(&self, save: bool) -> weir::Config {
        let mut config = self.engine.config();
        config.epoch_interruption(self.timeout.is_some()).keep_profiles(save || self.profile_use.is_some());
        config
    }
}

impl EngineFlags {
    /// The engine configuration for these flags.
    pub fn config(&self) -> weir::Config {
        let mut config = weir::Config::new();
        config.consume_fuel(self.fuel.is_some()).stress(self.stress).gc_stress(self.gc_stress);
        config.wasm_legacy_exceptions(true).wasm_backtrace_details(weir::WasmBacktraceDetails::Enable);
        config.spectre_mitigation(!self.no_spectre_mitigation).memory_segment(!self.no_segment);
        config.signals_based_traps(!self.no_signals).lazy_validation(self.lazy).deterministic(self.deterministic);
        config.tier(match self.tier {
            _ if self.no_jit => weir::Tier::Interpreter,
            Tier::Auto => weir::Tier::Auto,
            Tier::Interp => weir::Tier::Interpreter,
            Tier::Native => weir::Tier::Native,
            Tier::Cranelift => weir::Tier::Cranelift,
            Tier::Baseline => weir::Tier::Baseline,
            Tier::Ssa => weir::Tier::Ssa,
        });
        config.register_allocator(self.allocator.map_or_else(weir::Allocator::default, AllocatorName::allocator));
        let passes_off: Vec<&str> = self.passes_off.iter().map(String::as_str).collect();
        config.passes_off(&passes_off).rewrite_fuel(self.rewrite_fuel).opt_all(self.opt_all);
        config.padding(Padding { after: self.layout_pad, seed: self.layout_seed }).baseline(!self.no_baseline);
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

    #[test]
    fn subcommands_keep_their_text_when_their_options_are_declared() {
        let before: Vec<String> = texts(&Weir::command());
        let mut command = Weir::command();
        command.build();
        assert_eq!(texts(&command)[..before.len()], before);
        assert!(before.iter().any(|text| text.starts_with("Print every stage")), "{before:?}");
    }

    fn texts(command: &clap::Command) -> Vec<String> {
        command.get_subcommands().map(|command| command.get_about().map_or_else(String::new, ToString::to_string)).collect()
    }

    fn parse(line: &str) -> Result<Weir, clap::Error> {
        Weir::try_parse_from(line.split(' '))
    }

    #[test]
    fn run_is_the_default_and_its_arguments_are_the_programs() {
        let run = parse("weir --fuel 5 a.wasm --fuel x -- validate").unwrap().run;
        assert_eq!(run.code.engine.fuel, Some(5));
        assert_eq!(run.module_and_args, ["a.wasm", "--fuel", "x", "--", "validate"]);
        let Some(Command::Run(Deferred(run))) = parse("weir run --stats=json a.wasm").unwrap().command else { panic!() };
        assert_eq!((run.stats, run.module_and_args.len()), (Some(StatsFormat::Json), 1));
        assert_eq!(parse("weir --stats a.wasm").unwrap().run.stats, Some(StatsFormat::Text));
        assert!(
            matches!(parse("weir validate a b").unwrap().command, Some(Command::Validate(Deferred(v))) if v.modules.len() == 2)
        );
    }

    #[test]
    fn a_module_and_its_arguments_are_what_parsing_gives() {
        let of_module = |line: &str| Weir::of_module(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for line in
            ["a.wasm", "./a x", "/a/b --fuel 5", "a.wat -- x", "a.wasm --help", "a.wasm -e 1 --", "a. validate a.wasm", ".. -V"]
        {
            let fast = of_module(line).unwrap();
            assert_eq!(format!("{fast:?}"), format!("{:?}", parse(&format!("weir {line}")).unwrap()), "{line}");
        }
        for line in ["", "a", "--fuel 5 a.wasm", "-a.wasm", "run a.wasm", "validate a.wasm", "help"] {
            assert!(of_module(line).is_none(), "{line}");
        }
        let mut command = Weir::command();
        command.build();
        assert!(command.get_subcommands().all(|command| !command.get_name().contains(['.', '/'])));
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
            "weir snapshot a",
            "weir snapshot -o b",
            "weir snapshot a -o b --rename c",
            "weir --timeout 5d a",
            "weir --max-stack big a",
            "weir --unknown-imports a.wasm",
            "weir profile embed a -o b",
            "weir profile embed a --profile-use b",
            "weir profile a",
            "weir completion",
            "weir completion korn",
        ] {
            assert_eq!(parse(line).unwrap_err().exit_code(), 2, "{line}");
        }
    }
}
