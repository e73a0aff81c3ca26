//! The `weir` command as a library: its arguments and its subcommands.

mod advice;
mod args;
mod cache;
mod completion;
mod coredump;
mod deferred;
mod diff;
mod dump;
mod ending;
mod explore;
mod failure;
mod guest;
mod heap;
mod invoke;
mod limits;
mod load;
mod module_page;
mod names;
mod output;
mod page;
mod precompiled;
mod profile;
mod profile_kind;
mod progress;
mod run;
mod script;
mod snapshot;
mod stats;
mod style;
mod sys;
mod units;
mod validate;
mod wasi_context;

use args::{Command, Run, Weir};
use deferred::Deferred;
use std::process::ExitCode;

pub use stats::{peak_memory, statistics};

/// Parses and runs the command line; reports failure on standard error.
pub fn main() -> ExitCode {
    heap::keep_little();
    let weir = Weir::of_process();
    let done = match weir.command {
        Some(Command::Run(Deferred(run))) => run::run(run),
        Some(Command::Validate(Deferred(validate))) => validate::validate(&validate),
        Some(Command::Dump(Deferred(dump))) => dump::run(&dump),
        Some(Command::Explore(Deferred(explore))) => explore::run(&explore),
        Some(Command::Compile(Deferred(compile))) => precompiled::compile(&compile),
        Some(Command::Snapshot(Deferred(snapshot))) => snapshot::snapshot(snapshot),
        Some(Command::Profile(Deferred(profile))) => profile::run(&profile),
        Some(Command::Cache(Deferred(cache))) => cache::run(&cache),
        Some(Command::Wast(Deferred(wast))) => script::run(&wast),
        Some(Command::Completion(Deferred(completion))) => completion::completion(&completion),
        Some(Command::Man(Deferred(man))) => completion::man(&man),
        None => run::run(Run { by_default: true, ..weir.run }),
    };
    failure::status(done).into()
}
