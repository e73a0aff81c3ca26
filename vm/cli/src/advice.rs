//! What a failure was probably caused by: a subcommand that is misspelt, or an option after the module.

use crate::args::{Run, Weir};
use crate::failure::Failure;
use crate::load::STANDARD_INPUT;
use clap::{Args, Command, CommandFactory};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The likeness from which a name is suggested, which is also that of the library that parses the arguments.
const LIKE: f64 = 0.7;

/// Adds what the arguments of a run that failed suggest.
pub(crate) fn explain(failure: Failure, args: &Run) -> Failure {
    match (failure, args.module_and_args.split_first()) {
        (Failure::Module(error), Some((word, _))) if args.by_default => {
            not_a_subcommand(word).map_or(Failure::Module(error), Failure::Usage)
        }
        (Failure::Usage(message), Some((_, arguments))) => Failure::Usage(message + &misplaced(arguments).unwrap_or_default()),
        (failure, _) => failure,
    }
}

/// Returns the message for a word that was taken for a module because no subcommand was given, if there is no such file, and it looks like a
/// subcommand.
fn not_a_subcommand(word: &OsStr) -> Option<String> {
    let is_word = |text: &&str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let word = word.to_str().filter(is_word).filter(|&word| word != STANDARD_INPUT && !Path::new(word).exists())?;
    let command = Weir::command();
    if command.find_subcommand(word).is_some() {
        return Some(format!("`{word}` comes after an option: a subcommand goes before all options, as in `weir {word} …`"));
    }
    let names = command.get_subcommands().map(Command::get_name);
    let nearest = names.map(|name| (strsim::jaro(word, name), name)).max_by(|a, b| a.0.total_cmp(&b.0));
    let advice = match nearest {
        Some((likeness, name)) if likeness > LIKE => format!("did you mean `{name}`?"),
        _ => "`weir --help` lists the subcommands".into(),
    };
    Some(format!("`{word}` is neither a file nor a subcommand; {advice}"))
}

/// Returns the hint for the first of the program's arguments that is named as an option of `run`.
fn misplaced(arguments: &[OsString]) -> Option<String> {
    let run = Run::augment_args(Command::new("run"));
    let name = |argument: &OsString| argument.to_str()?.strip_prefix("--")?.split('=').next().map(String::from);
    // The parser adds these two when it runs.
    let is_ours =
        |name: &String| name == "help" || name == "version" || run.get_arguments().any(|option| option.get_long() == Some(name));
    let name = arguments.iter().filter_map(name).find(is_ours)?;
    Some(format!(
        "\n`--{name}` comes after the module, so it is an argument of the program: weir's own options go before the module"
    ))
}
