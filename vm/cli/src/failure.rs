//! How the command fails: the message and the exit status.

use std::io;
use std::process::ExitCode;
use weir::{Error, InvalidModule, Trap, WasmBacktrace};
use weir_wasi::{BrokenPipe, I32Exit};

/// How a subcommand ends.
pub(crate) type Done = Result<ExitCode, Failure>;

/// Why a subcommand did not run to its end.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments make no sense, for this module.
    Usage(String),
    /// A module cannot be read, is malformed, invalid or cannot be linked.
    Module(Error),
    /// The guest trapped, ran into a limit, or exited.
    Guest(Error),
    /// What is printed can't be.
    Output(io::Error),
}

/// What a native program that aborts leaves in `$?`: 128 + SIGABRT.
const ABORTED: u8 = 134;
/// The same for SIGPIPE.
const PIPE_CLOSED: u8 = 141;

impl Failure {
    /// What is printed on standard error. Nothing for an exit, nor for a closed pipe, which is how pipelines end.
    pub fn message(&self) -> Option<String> {
        Some(match self {
            Failure::Usage(message) => format!("weir: {message}"),
            Failure::Module(error) => format!("weir: {error:#}"),
            Failure::Guest(error) if error.is::<I32Exit>() || error.is::<BrokenPipe>() => return None,
            Failure::Guest(error) => {
                let trap = error.is::<Trap>() || error.is::<InvalidModule>();
                let kind = if trap { "trap: " } else { "" };
                format!("weir: {kind}{error:#}{}", error.wasm_backtrace().map(backtrace).unwrap_or_default())
            }
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => return None,
            Failure::Output(error) => format!("weir: standard output: {error}"),
        })
    }

    /// What the parent process sees.
    pub fn exit_code(&self) -> ExitCode {
        self.status().into()
    }

    /// The same as a number.
    pub fn status(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Module(_) => 1,
            // A status has eight bits on its way to the parent.
            Failure::Guest(error) if let Some(exit) = error.downcast_ref::<I32Exit>() => exit.0 as u8,
            Failure::Guest(error) if error.is::<BrokenPipe>() => PIPE_CLOSED,
            Failure::Guest(_) => ABORTED,
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => PIPE_CLOSED,
            Failure::Output(_) => 1,
        }
    }
}

/// Frames that are printed: enough to see where, few enough that the message stays in sight.
const MAX_FRAMES: usize = 20;

/// The guest's functions, a line each.
fn backtrace(backtrace: &WasmBacktrace) -> String {
    let frames = backtrace.frames();
    let mut text = String::from("\nwasm backtrace (innermost first):");
    for (i, frame) in frames.iter().take(MAX_FRAMES).enumerate() {
        text.push_str(&format!("\n  {i:>3}: {frame}"));
    }
    let more = backtrace.omitted() + frames.len().saturating_sub(MAX_FRAMES) as u64;
    if more > 0 {
        text.push_str(&format!("\n  … and {more} more"));
    }
    text
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}
