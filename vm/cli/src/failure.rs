//! Failures of the command: messages and exit statuses.

use crate::style;
use std::error::Error as StdError;
use std::io;
use weir::{
    Error, InvalidModule, LinkError, MemoryFault, ModuleMemoryExceeded, Trap, Unavailable, UnknownImportError, WasmBacktrace,
    WasmCoreDump,
};
use weir_bytecode::names::Plain;
use weir_wasi::{BrokenPipe, I32Exit};

/// The result of a subcommand: the exit status of the process.
pub(crate) type Done = Result<u8, Failure>;

/// Reports a failure on standard error, and returns the exit status.
pub(crate) fn status(done: Done) -> u8 {
    let failure = match done {
        Ok(status) => return status,
        Err(failure) => failure,
    };
    if let Some(message) = failure.message() {
        // If standard error is closed as well, the message is lost.
        let _ = style::message(&message);
    }
    failure.status()
}

/// The reason why a subcommand failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The arguments are wrong, or do not match the module.
    Usage(String),
    /// A module cannot be read, is malformed or invalid, or cannot be linked.
    Module(Error),
    /// The guest trapped, exceeded a limit, or exited.
    Guest(Error),
    /// The initialiser of a snapshot ended the program with this status.
    Exit(i32),
    /// The profile or the core dump cannot be written.
    Profile(String),
    /// Writing the output failed.
    Output(io::Error),
}

/// The status of a native program that aborts: 128 + SIGABRT.
const ABORTED: u8 = 134;
/// The status of a native program that writes to a closed pipe: 128 + SIGPIPE.
const PIPE_CLOSED: u8 = 141;

impl Failure {
    /// Classifies an error of creating an engine: settings that this build or host does not support are wrong usage.
    pub fn of_engine(error: Error) -> Failure {
        if error.is::<Unavailable>() { Failure::Usage(error.to_string()) } else { Failure::Module(error) }
    }

    /// Returns the message for standard error; `None` for an exit, and for a closed pipe, which is the regular end of a
    /// pipeline.
    pub fn message(&self) -> Option<String> {
        Some(match self {
            Failure::Usage(message) | Failure::Profile(message) => format!("weir: {message}"),
            Failure::Module(error) => format!("weir: {}", causes(error)),
            Failure::Guest(error) if error.is::<I32Exit>() || error.is::<BrokenPipe>() => return None,
            Failure::Guest(error) => {
                let trap = error.is::<Trap>() || error.is::<InvalidModule>() || error.is::<ModuleMemoryExceeded>();
                let kind = if trap { "trap: " } else { "" };
                format!("weir: {kind}{}{}", causes(error), error.wasm_backtrace().map(backtrace).unwrap_or_default())
            }
            Failure::Exit(status) => format!("weir: the initialiser exited with status {status}"),
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => return None,
            Failure::Output(error) => format!("weir: standard output: {error}"),
        })
    }

    /// Returns the exit status as a number.
    pub fn status(&self) -> u8 {
        match self {
            Failure::Usage(_) => 2,
            Failure::Module(_) | Failure::Profile(_) => 1,
            // The parent receives eight bits of the status.
            Failure::Guest(error) if let Some(exit) = error.downcast_ref::<I32Exit>() => exit.0 as u8,
            Failure::Guest(error) if error.is::<BrokenPipe>() => PIPE_CLOSED,
            Failure::Guest(_) => ABORTED,
            // Nothing was written, whatever the status says.
            Failure::Exit(status) => (*status as u8).max(1),
            Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe => PIPE_CLOSED,
            Failure::Output(_) => 1,
        }
    }
}

/// The texts of an error's chain, without the backtrace and with the details that they lack.
fn causes(error: &Error) -> String {
    // Errors without context show no sources.
    let shown = if format!("{error:#}") == error.to_string() { 1 } else { usize::MAX };
    let mut texts: Vec<String> = Vec::new();
    let apart =
        |link: &(dyn StdError + 'static)| link.is::<WasmBacktrace>() || link.is::<MemoryFault>() || link.is::<WasmCoreDump>();
    let mut links = error.chain().take(shown).filter(|link| !apart(*link)).peekable();
    while let Some(link) = links.next() {
        let details = error.details().filter(|_| links.peek().is_none());
        texts.push(match details {
            Some(details) if link.is::<Trap>() => format!("{}: {details}", text(link)),
            Some(details) => details.into(),
            None => match error.downcast_ref::<MemoryFault>().filter(|_| link.is::<Trap>()) {
                Some(fault) => {
                    format!("{}: address {}, and the memory has {} bytes", text(link), fault.address(), fault.memory_size())
                }
                None => text(link),
            },
        });
        // What follows has the type of the item in other words.
        if let Some(refused) = error.downcast_ref::<LinkError>().filter(|refused| refused.to_string() == link.to_string())
            && let LinkError::Incompatible { expected, found, .. } = refused
        {
            texts.pop();
            texts.push(format!("{refused}: expected {expected}, found {found}"));
            break;
        }
        if let Some(invalid) = error.downcast_ref::<InvalidModule>().filter(|_| says_invalid(link)) {
            texts.pop();
            texts.push(format!("{} (at offset {:#x})", invalid.message, invalid.offset));
            break;
        }
    }
    texts.join(": ")
}

/// Whether an invalid module is the reason for this link, or the link itself.
fn says_invalid(link: &(dyn StdError + 'static)) -> bool {
    let text = link.to_string();
    link.is::<InvalidModule>() || text == "failed to parse WebAssembly module" || text.starts_with("failed to compile: wasm[0]::")
}

/// The text of a link.
fn text(link: &(dyn StdError + 'static)) -> String {
    if let Some(trap) = link.downcast_ref::<Trap>() {
        return trap.message().into();
    }
    match link.downcast_ref::<UnknownImportError>() {
        Some(import) => {
            let (module, name) = (Plain(import.module()), Plain(import.name()));
            format!("unknown import `{module}::{name}`: expected {}, found nothing of that name", import.ty())
        }
        None => link.to_string(),
    }
}

/// Maximum number of frames that are printed, so that the message fits on the screen.
const MAX_FRAMES: usize = 20;

/// Formats the guest's frames, one line each.
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
