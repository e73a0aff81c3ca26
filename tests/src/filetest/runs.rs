//! Runs of a filetest: by the evaluator alone, or in an engine that compiles the function from a text.

use super::head::Head;
use crate::engines::engine;
use weir::error::Context as _;
use weir::{Allocator, Config, FrameInfo, Instance, Store, Tier, Trap, Val};
use weir_jit::compile::{FunctionText, TextForm};
use weir_jit::ir::parse::parse_bits;
use weir_jit::ir::print::write_bits;
use weir_jit::ir::sandbox::Sandbox;
use weir_jit::ir::{Entry, EvalError, Func, Outcome, Type, eval};
use weir_jit::opt::passes;
use weir_jit::{Backend, request};

/// The maximum number of instructions of a run of SSA.
const STEPS: u64 = 1_000_000;
/// The fuel of a run of a module.
const FUEL: u64 = 1_000_000;

/// Evaluates the runs on SSA that belongs to no module.
///
/// # Errors
/// The first run with another result.
pub fn evaluate(head: &Head<'_>, func: &Func<'_>) -> Result<(), String> {
    for run in &head.runs {
        let (_, args, expected) = split_run(run)?;
        let types = match func.entry {
            Entry::Call => func.params.to_vec(),
            Entry::Osr(_) => vec![Type::I64; args.len()],
        };
        let args: Vec<u128> = arguments(&args, &types)?.into_iter().map(u128::from).collect();
        let found = match eval(func, &mut Sandbox::default(), &args, STEPS) {
            Ok(Outcome::Return(results)) => show(results.iter().map(|&bits| bits as u64).zip(func.results.iter().copied())),
            Ok(outcome) => return Err(format!("run {run}: {outcome:?}")),
            Err(EvalError::Failed { why, .. }) => format!("trap {}", why.message()),
            Err(stop) => stop.to_string(),
        };
        compare(run, expected, &found, func)?;
    }
    Ok(())
}

/// Executes the runs, each in a new instance of `module`, with functions compiled from `texts`. The processor executes
/// machine code; the evaluator executes SSA and functions without a text, after those passes that are among `stages`.
///
/// # Errors
/// The first run with another result, or on another tier.
pub fn execute(head: &Head<'_>, module: &str, texts: Vec<FunctionText>, stages: &[&str]) -> Result<(), String> {
    let options = &head.options;
    let mut config = Config::new();
    config.consume_fuel(options.fuel).epoch_interruption(options.poll).async_support(options.poll);
    config.deterministic(options.canonical_nans);
    config.signals_based_traps(options.signals).guard_regions(options.guard_regions).rewrite_fuel(options.rewrite_fuel);
    config.spectre_mitigation(options.spectre_mitigation).memory_segment(options.segment);
    config.register_allocator(match options.allocator {
        request::Allocator::LinearScan => Allocator::LinearScan,
        request::Allocator::Regalloc2 => Allocator::Regalloc2,
    });
    let baseline = head.backend() == Backend::Baseline && !stages.is_empty();
    match (texts.iter().any(|text| text.form == TextForm::Machine), head.osr) {
        (false, _) if baseline => config.tier(Tier::Baseline),
        (false, _) => {
            let runs = |name: &str| stages.contains(&name) || stages.contains(&"opt");
            let off = |name: &&str| !runs(name) || options.passes_off.iter().any(|off| off == name);
            let off: Vec<&str> = passes::ORDER.iter().map(|pass| pass.name).filter(off).collect();
            config.tier(Tier::Ssa).passes_off(&off)
        }
        (true, None) => config.tier(Tier::Native),
        // Calls are interpreted first, and enter loops when these are hot.
        (true, Some(_)) => config.tier(Tier::Auto).synchronous_compilation(true).tier_up_threshold(Some(1)),
    };
    config.function_texts(texts);
    let ends = head.runs.iter().map(|run| (run, trap as fn(weir::Error) -> weir::Result<String>));
    for (run, failed) in ends.chain(head.backtraces.iter().map(|run| (run, frames as _))) {
        let (name, args, expected) = split_run(run)?;
        let found = call(&config, module, &name, &args, failed).map_err(|error| format!("run {run}: {error:#}"))?;
        compare(run, expected, &found, &name)?;
    }
    Ok(())
}

/// The trap that ended a run.
fn trap(error: weir::Error) -> weir::Result<String> {
    Ok(format!("trap {}", error.downcast::<Trap>()?.message()))
}

/// The frames at a trap, innermost first, each as function and offset in the module.
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

/// The results of function `name` of a new instance, or the text that `failed` makes from its failure.
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
    store.set_epoch_deadline(u64::MAX);
    // Refused if the engine does not count fuel.
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
    weir::ensure!(
        functions.native + functions.baseline + functions.evaluated > 0 || module.stats().osr_entries > 0,
        "no function was compiled"
    );
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
