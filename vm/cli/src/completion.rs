//! `weir completion` and `weir man`: what a shell and `man` know of the command, generated from its options.

use crate::args::{self, Weir};
use crate::failure::{Done, Failure};
use clap::CommandFactory;
use std::io::Write;

/// Prints the completions for a shell.
pub(crate) fn completion(args: &args::Completion) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Weir::command(), "weir", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(0)
}

/// Prints the manual page of the command, or of a subcommand.
pub(crate) fn man(args: &args::Man) -> Done {
    let mut command = Weir::command();
    // Declares the options of the subcommands.
    command.build();
    let page = match &args.command {
        None => command,
        Some(name) => {
            let found = command.find_subcommand(name).cloned();
            found.ok_or_else(|| Failure::Usage(format!("there is no subcommand `{name}`; `weir --help` lists them")))?
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    std::io::stdout().lock().write_all(&text)?;
    Ok(0)
}
