//! Filetests: a text that names a stage, is its input, and ends with the exact output expected of it.
//!
//! ```text
//! ;; test: simplify gvn             stages: print, verify, build, opt (every pass), names of passes, or one of `SHOWN`
//! ;; run: f(1, -2) -> 3             evaluated before and after; a trap is written `trap unreachable`
//! func 0 (i32, i32) -> i32          SSA in a .ssa file, a module in a .wat file
//! …
//! ;; expect
//! ;; func 0 (i32, i32) -> i32
//! ;; …
//! ```
//!
//! A module is built first; `;; func: 2` picks one function instead of all, `;; osr: 0` the entry at its loop with this
//! number, `;; merged` peels no loop. `;; options:` lists options of the compilation (`fuel poll no-signals no-guard-regions
//! canonical-nans regalloc2`; the first two also have lines of their own), and each line `;; profile: 0x1f3 10 90` gives the
//! counts of the branch at an offset. Any other line that begins with `;;` is an error; a comment begins with `;;;`.
//!
//! A `.mir` file holds machine code after a phase, and its stage is the next one: `regalloc`, `layout` or `emit`. To run it,
//! lines `;; module:` hold a module whose first function is replaced by it. `;; inlined: 0x25 2 0x30 1 0x21` says that the
//! instructions at 0x25 are of function 2, which function 1 calls at 0x30, which the replaced function calls at 0x21; and
//! `;; backtrace: f(1) -> 2@0x25 1@0x30 0@0x21` which frames a run that traps has.
//!
//! Runs name a function by its export. Where the stage shows machine code, they execute the code that is made from that text: it
//! is read back and goes through the phases that are left. The arguments of a run of SSA entered at a loop are its slots. With `WEIR_BLESS=1` in the environment, the output
//! replaces what is expected.

pub mod head;
mod machine;

use crate::engines::engine;
use bumpalo::Bump;
use head::{Head, SHOWN};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use weir::error::Context as _;
use weir::{Config, FrameInfo, Instance, Store, Tier, Trap, Val};
use weir_bytecode::{Module, validate};
use weir_jit::Options;
use weir_jit::analysis::verify;
use weir_jit::construct::{BuildStats, build};
use weir_jit::ir::parse::parse_bits;
use weir_jit::ir::print::write_bits;
use weir_jit::ir::sandbox::Sandbox;
use weir_jit::ir::{Entry, Func, Outcome, Stop, Type, eval, parse, print};
use weir_jit::opt::{self, Context, passes};

/// Line between input and output.
const EXPECT: &str = ";; expect";
/// Instructions that a run of SSA may take.
const STEPS: u64 = 1_000_000;
/// Fuel that a run of a module may take.
const FUEL: u64 = 1_000_000;

/// A filetest: its input, its directives, and the output expected of it.
pub struct Filetest {
    path: PathBuf,
    input: String,
    expected: Option<String>,
}

impl Filetest {
    /// Reads the file at `path`.
    ///
    /// # Errors
    /// The file cannot be read, or what is expected is not made of comments.
    pub fn read(path: &Path) -> Result<Filetest, String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        let (input, expected) = match text.split_once(&format!("\n{EXPECT}\n")) {
            Some((input, expected)) => (input.to_string() + "\n", Some(uncomment(expected)?)),
            None => (text, None),
        };
        Ok(Filetest { path: path.into(), input, expected })
    }

    /// Its directives.
    ///
    /// # Errors
    /// As [`Head::parse`].
    pub fn head(&self) -> Result<Head<'_>, String> {
        Head::parse(&self.input, self.extension())
    }

    fn extension(&self) -> &str {
        self.path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
    }

    /// Checks the output and the runs, or if `bless`, rewrites the output that is expected.
    ///
    /// # Errors
    /// What differs, or is wrong with the file.
    pub fn check(&self, bless: bool) -> Result<(), String> {
        let test = Test { input: &self.input, head: self.head()? };
        let actual = match self.extension() {
            "ssa" => test.ssa()?,
            "mir" => test.mir()?,
            _ => test.wat()?,
        };
        if self.expected.as_ref() == Some(&actual) {
            return Ok(());
        }
        if bless {
            let new = format!("{}{EXPECT}\n{}", self.input, comment(&actual));
            return std::fs::write(&self.path, new).map_err(|error| error.to_string());
        }
        let expected = self.expected.as_deref().unwrap_or("(no line `;; expect`)\n");
        Err(format!("expected:\n{expected}\nfound:\n{actual}\nWEIR_BLESS=1 accepts what was found"))
    }
}

fn comment(text: &str) -> String {
    text.lines().map(|line| format!(";; {line}").trim_end().to_string() + "\n").collect()
}

fn uncomment(text: &str) -> Result<String, String> {
    let line = |line: &str| match line.strip_prefix(";; ") {
        Some(line) => Ok(line.to_string() + "\n"),
        None if line == ";;" => Ok("\n".into()),
        None => Err(format!("after `{EXPECT}` every line begins with `;; `: {line}")),
    };
    text.lines().map(line).collect()
}

/// A filetest that runs.
struct Test<'t> {
    input: &'t str,
    head: Head<'t>,
}

impl Test<'_> {
    /// Output for a function in SSA.
    fn ssa(&self) -> Result<String, String> {
        let arena = Bump::new();
        let mut func = parse(&arena, self.input).map_err(|error| error.to_string())?;
        if self.head.stages == ["verify"] {
            return Ok(verify(&func, None).map_or_else(|error| error.to_string(), |()| "ok".into()) + "\n");
        }
        if parse(&arena, &print(&func)).as_ref() != Ok(&func) {
            return Err(format!("this text is not parsed to the function that it prints:\n{func}"));
        }
        self.run_ssa(&func)?;
        if self.head.stages == ["print"] {
            return Ok(print(&func));
        }
        self.passes(&mut func, None)?;
        self.run_ssa(&func)?;
        Ok(print(&func))
    }

    fn run_ssa(&self, func: &Func<'_>) -> Result<(), String> {
        for run in &self.head.runs {
            let (_, args, expected) = split_run(run)?;
            let types = match func.entry {
                Entry::Call => func.params.to_vec(),
                Entry::Osr(_) => vec![Type::I64; args.len()],
            };
            let args: Vec<u128> = arguments(&args, &types)?.into_iter().map(u128::from).collect();
            let found = match eval(func, &mut Sandbox::default(), &args, STEPS) {
                Ok(Outcome::Return(results)) => show(results.iter().map(|&bits| bits as u64).zip(func.results.iter().copied())),
                Ok(outcome) => return Err(format!("run {run}: {outcome:?}")),
                Err(Stop::Failed { why, .. }) => format!("trap {why}"),
                Err(stop) => stop.to_string(),
            };
            compare(run, expected, &found, func)?;
        }
        Ok(())
    }

    /// Runs the passes that the test names, in that order.
    fn passes(&self, func: &mut Func<'_>, module: Option<&Module>) -> Result<(), String> {
        let well_formed = |func: &Func<'_>, stage: &str| {
            verify(func, module).map_err(|error| format!("malformed after {stage}: {error}\n{func}"))
        };
        well_formed(func, "construction")?;
        let options = Options { verify: false, ..Options::default() };
        let mut cx = Context { module, ..Context::new(&options) };
        for stage in &self.head.stages {
            match *stage {
                "build" => {}
                stage if SHOWN.contains(&stage) => {}
                "opt" => opt::run(func, &mut cx),
                name => {
                    let pass = passes::by_name(name).ok_or_else(|| format!("no stage {name}"))?;
                    opt::run_pass(pass, func, &mut cx);
                }
            }
            well_formed(func, stage)?;
        }
        Ok(())
    }

    /// Output for a module.
    fn wat(&self) -> Result<String, String> {
        let bytes = wat::parse_str(self.input).map_err(|error| error.to_string())?;
        let module = validate::parse(bytes.into()).map_err(|error| error.to_string())?;
        let defined = module.imported_funcs..module.funcs.len() as u32;
        let (mut text, mut machine_code) = (String::new(), Vec::new());
        for func in defined.filter(|func| self.head.func.is_none_or(|only| only == *func)) {
            let entry = match (self.head.osr, module.body(func)) {
                (Some(osr), Some(body)) => Entry::Osr(body.loops.get(osr).ok_or("no such loop")?.pc),
                _ => Entry::Call,
            };
            if let [stage] = self.head.stages[..]
                && SHOWN.contains(&stage)
            {
                text += &self.section(&module, func, entry, stage, &mut machine_code)?;
                continue;
            }
            let arena = Bump::new();
            let mut ssa = build(&arena, &module, func, entry, &self.head.options, &mut BuildStats::default())
                .map_err(|refusal| refusal.to_string())?;
            self.passes(&mut ssa, Some(&module))?;
            write!(text, "{ssa}").map_err(|error| error.to_string())?;
        }
        self.run_module(&[])?;
        self.run_module(&self.head.stages)?;
        if self.head.needs_machine() {
            self.run_machine_code(self.input, machine_code)?;
        }
        Ok(text)
    }

    /// Evaluates the runs after those of the passes that are among `stages`, in the optimiser's order.
    fn run_module(&self, stages: &[&str]) -> Result<(), String> {
        let off = passes::ORDER.iter().map(|pass| pass.name).filter(|name| !stages.contains(name) && !stages.contains(&"opt"));
        self.run_with(self.input, Config::new().tier(Tier::Ssa).passes_off(&off.collect::<Vec<_>>()))
    }

    /// Executes the runs, each in a new instance.
    fn run_with(&self, module: &str, config: &mut Config) -> Result<(), String> {
        let options = &self.head.options;
        config.consume_fuel(options.fuel).epoch_interruption(options.poll).deterministic(options.canonical_nans);
        config.signals_based_traps(options.signals).guard_regions(options.guard_regions);
        let ends = self.head.runs.iter().map(|run| (run, trap as fn(weir::Error) -> weir::Result<String>));
        for (run, failed) in ends.chain(self.head.backtraces.iter().map(|run| (run, frames as _))) {
            let (name, args, expected) = split_run(run)?;
            let found = call(config, module, &name, &args, failed).map_err(|error| format!("run {run}: {error:#}"))?;
            compare(run, expected, &found, &name)?;
        }
        Ok(())
    }
}

/// The trap with which a run ends.
fn trap(error: weir::Error) -> weir::Result<String> {
    Ok(format!("trap {}", error.downcast::<Trap>()?))
}

/// The frames at a trap, innermost first, each by function and offset in the module.
fn frames(error: weir::Error) -> weir::Result<String> {
    let backtrace = error.wasm_backtrace().context("no backtrace")?;
    let frame = |frame: &FrameInfo| format!("{}@{:#x}", frame.func_index(), frame.module_offset().unwrap_or_default());
    Ok(backtrace.frames().iter().map(frame).collect::<Vec<_>>().join(" "))
}

/// `name(a, b) -> expected`
fn split_run(run: &str) -> Result<(String, Vec<String>, &str), String> {
    let parts = run.split_once('(').and_then(|(name, rest)| {
        let (args, expected) = rest.split_once(')')?;
        Some((name.trim(), args, expected.trim().strip_prefix("->")?.trim()))
    });
    let (name, args, expected) = parts.ok_or_else(|| format!("not of the form `f(1, 2) -> 3`: {run}"))?;
    let args = args.split(',').map(|arg| arg.trim().to_string()).filter(|arg| !arg.is_empty()).collect();
    Ok((name.to_string(), args, expected))
}

/// What function `name` of a new instance returns, or what `failed` says of its failure.
fn call(
    config: &Config,
    text: &str,
    name: &str,
    args: &[String],
    failed: fn(weir::Error) -> weir::Result<String>,
) -> weir::Result<String> {
    let engine = engine(config)?;
    let module = weir::Module::new(&engine, text)?;
    let mut store = Store::new(&engine, ());
    // Refused where none is consumed.
    let _ = store.set_fuel(FUEL);
    let instance = Instance::new(&mut store, &module, &[])?;
    let func = instance.get_func(&mut store, name).context("no such function is exported")?;
    let ty = func.ty(&store);
    let types: Vec<Type> = ty.params().map(Type::from).collect();
    let args = arguments(args, &types).map_err(weir::Error::msg)?;
    let args: Vec<Val> = args.into_iter().zip(&types).map(|(bits, &ty)| value(bits, ty)).collect();
    let mut results = vec![Val::I32(0); ty.results().len()];
    let found = match func.call(&mut store, &args, &mut results) {
        Ok(()) => show(results.iter().map(bits).zip(ty.results().map(Type::from))),
        Err(error) => failed(error)?,
    };
    let functions = module.stats().functions;
    if let Some(fallback) = functions.fallbacks.first() {
        return Err(weir::Error::msg(format!("function {} ran on another tier: {}", fallback.func, fallback.reason)));
    }
    weir::ensure!(functions.native + functions.evaluated > 0 || module.stats().osr_entries > 0, "no function was compiled");
    Ok(found)
}

fn value(bits: u64, ty: Type) -> Val {
    match ty {
        Type::I32 => Val::I32(bits as i32),
        Type::I64 => Val::I64(bits as i64),
        Type::F32 => Val::F32(bits as u32),
        Type::F64 => Val::F64(bits),
        ty => panic!("{ty} arguments are not written in runs"),
    }
}

fn bits(value: &Val) -> u64 {
    match *value {
        Val::I32(value) => u64::from(value as u32),
        Val::I64(value) => value as u64,
        Val::F32(bits) => bits.into(),
        Val::F64(bits) => bits,
        other => panic!("{other:?} is not written in runs"),
    }
}

fn arguments(args: &[String], types: &[Type]) -> Result<Vec<u64>, String> {
    if args.len() != types.len() {
        return Err(format!("{} arguments for {} parameters", args.len(), types.len()));
    }
    args.iter().zip(types).map(|(arg, &ty)| parse_bits(ty, arg).ok_or_else(|| format!("{arg} is no {ty}"))).collect()
}

fn show(results: impl Iterator<Item = (u64, Type)>) -> String {
    let mut text = String::new();
    for (i, (bits, ty)) in results.enumerate() {
        text += if i > 0 { ", " } else { "" };
        write_bits(&mut text, ty, bits).expect("writing to a string does not fail");
    }
    text
}

fn compare(run: &str, expected: &str, found: &str, of: &dyn std::fmt::Display) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err(format!("run {run}: found {found}, in\n{of}")) }
}
