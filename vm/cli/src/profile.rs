//! Profiles: `--profile counts` prints the interpreter's counts on standard error, `--profile-save` and `--profile-use` write and
//! read them, and `weir profile embed` puts them into the module.

use crate::args::{Embed, EngineFlags, Profile as Args, ProfileAction};
use crate::failure::{Done, Failure};
use crate::{load, names, output};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use weir::{Engine, Module, Profile};
use weir_bytecode::opcodes::{Control, Effect};
use weir_bytecode::{Instrs, Opcode};

/// Makes `module` use the profile in `file`, if one is given.
pub(crate) fn use_from(file: Option<&Path>, module: &Module) -> Result<(), Failure> {
    let Some(file) = file else { return Ok(()) };
    let unusable = |reason: String| Failure::Usage(format!("--profile-use {}: {reason}", file.display()));
    let bytes = fs::read(file).map_err(|error| unusable(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        unusable(format!("line {}: expected text in UTF-8", valid.iter().filter(|&&byte| byte == b'\n').count() + 1))
    })?;
    module.use_profile(&text).map_err(|error| unusable(error.to_string()))
}

/// Writes the profile of `module` to `file`.
pub(crate) fn save(file: &Path, module: &Module) -> Result<(), Failure> {
    let profile = module.saved_profile().map_err(Failure::Module)?;
    let written = output::write(file, profile.to_string().as_bytes());
    written.map_err(|error| Failure::Profile(format!("--profile-save {}: {error}", file.display())))
}

/// Runs `weir profile`.
pub(crate) fn run(args: &Args) -> Done {
    match &args.action {
        ProfileAction::Embed(args) => embed(args),
    }
}

/// Writes a module with its profile.
fn embed(args: &Embed) -> Done {
    let mut config = EngineFlags::default().config();
    let engine = Engine::new(config.keep_profiles(true)).map_err(Failure::of_engine)?;
    let module = load::module(&engine, &args.module)?;
    use_from(Some(&args.profile_use), &module)?;
    let bytes = module.embed_profile().map_err(Failure::Module)?;
    output::write(&args.output, &bytes).map_err(|error| Failure::Profile(format!("{}: {error}", args.output.display())))?;
    let added = bytes.len() as i64 - module.bytecode().bytes.len() as i64;
    writeln!(io::stderr(), "weir: {}: {} bytes, {added:+} for the profile", args.output.display(), bytes.len())?;
    Ok(0)
}

/// Prints the executed branches and indirect calls of every profiled function: the function with most of them first, and each with its
/// share of all.
pub(crate) fn print(module: &Module) -> io::Result<()> {
    let mut out = BufWriter::new(io::stderr().lock());
    let bytecode = module.bytecode();
    let mut funcs: Vec<(u64, u32, Vec<String>)> =
        (bytecode.imported_funcs..bytecode.funcs.len() as u32).filter_map(|func| counted(module, func)).collect();
    let all: u64 = funcs.iter().map(|(total, ..)| total).sum();
    if all == 0 {
        writeln!(out, "weir: nothing was counted: no function ran long enough for a profile, or none has branches")?;
    } else {
        let functions = if funcs.len() == 1 { "1 function".into() } else { format!("{} functions", funcs.len()) };
        writeln!(
            out,
            "weir: counted {all} branches and indirect calls in {functions}, after the calls that came before profiling"
        )?;
    }
    // Of equals, the first in the module comes first.
    funcs.sort_by_key(|(total, ..)| std::cmp::Reverse(*total));
    for (total, func, lines) in funcs {
        let share = 100.0 * total as f64 / all as f64;
        writeln!(out, "{}: {total}, {share:.1} %", names::with_index(bytecode, func))?;
        for line in lines {
            writeln!(out, "{line}")?;
        }
    }
    out.flush()
}

/// Returns how often branches and indirect calls of a function were executed, the function, and a line for each instruction; `None` if none
/// was executed.
fn counted(module: &Module, func: u32) -> Option<(u64, u32, Vec<String>)> {
    let bytecode = module.bytecode();
    let (profile, body) = (module.profile(func)?, bytecode.body(func)?);
    let (mut total, mut lines) = (0, Vec::new());
    for instr in Instrs::new(bytecode, body.entry, body.end) {
        let Some(counts) = counts(module, &profile, instr.pc, instr.op) else { continue };
        total += match profile.call(instr.pc) {
            Some(call) => call.targets.iter().map(|&(_, count)| u64::from(count)).sum::<u64>() + u64::from(call.others),
            None => profile.branch(instr.pc).iter().map(|&count| u64::from(count)).sum(),
        };
        lines.push(format!("  {:#08x}  {:20} {counts}", instr.pc, instr.op.mnemonic()));
    }
    (total > 0).then_some((total, func, lines))
}

/// Formats the counts of an instruction, if it was executed.
fn counts(module: &Module, profile: &Profile, pc: u32, op: Opcode) -> Option<String> {
    if let Some(call) = profile.call(pc) {
        let target = |&(func, count): &(Option<u32>, u32)| {
            format!(
                "{} {count}",
                func.map_or("functions elsewhere".to_string(), |func| names::with_index(module.bytecode(), func))
            )
        };
        let mut targets: Vec<String> = call.targets.iter().map(target).collect();
        if call.others > 0 {
            targets.push(format!("others {}", call.others));
        }
        return Some(targets.join(", "));
    }
    let counts = profile.branch(pc);
    if counts.iter().all(|&count| count == 0) {
        return None;
    }
    let Effect::Control(control) = op.effect() else { panic!("{op:?} is no branch, and has counts: {counts:?}") };
    let two = || <[u32; 2]>::try_from(counts).expect("such a branch has two successors");
    Some(match control {
        Control::BrTable => {
            let (default, labels) = counts.split_last().expect("a br_table has a default label");
            let labels = labels.iter().enumerate().filter(|&(_, &count)| count > 0);
            let labels: String = labels.map(|(label, count)| format!("{label}: {count}, ")).collect();
            format!("{labels}default: {default}")
        }
        Control::If => {
            let [then, otherwise] = two();
            format!("true {then}, false {otherwise}")
        }
        Control::BrIf | Control::BrOnNull | Control::BrOnNonNull => {
            let [taken, passed] = two();
            format!("taken {taken}, not taken {passed}")
        }
        Control::Unreachable | Control::Nop | Control::Block | Control::Loop => panic!("{op:?} has counts: {counts:?}"),
        Control::Else | Control::End | Control::Br | Control::Return => panic!("{op:?} has counts: {counts:?}"),
        Control::TryTable | Control::Try | Control::Catch | Control::CatchAll | Control::Delegate => {
            panic!("{op:?} has counts: {counts:?}")
        }
        Control::Throw | Control::ThrowRef | Control::Rethrow => panic!("{op:?} has counts: {counts:?}"),
        Control::Call(_) | Control::ReturnCall(_) => panic!("{op:?} has counts of a branch: {counts:?}"),
    })
}
