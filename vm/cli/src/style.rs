//! Colours, where the conventions ask for them: on a terminal, unless `NO_COLOR`, `CLICOLOR` or `TERM` say otherwise.

use anstream::{AutoStream, ColorChoice};
use clap::builder::styling::{AnsiColor, Style};
use std::io::{self, Write};
use weir_bytecode::names::Plain;

/// Prints a message on standard error. The program's name, and that it is a trap, stand out. What a terminal would take for commands is
/// escaped: messages quote names of modules.
pub(crate) fn message(message: &str) -> io::Result<()> {
    let lines: Vec<String> = message.split('\n').map(|line| Plain(line).to_string()).collect();
    let message = lines.join("\n");
    const LOUD: Style = AnsiColor::Red.on_default().bold();
    let mut out = io::stderr().lock();
    let loud = ["weir: trap:", "weir:"].into_iter().find(|start| message.starts_with(start));
    match loud.filter(|_| AutoStream::choice(&out) != ColorChoice::Never) {
        Some(loud) => writeln!(out, "{LOUD}{loud}{LOUD:#}{}", &message[loud.len()..]),
        None => writeln!(out, "{message}"),
    }
}

/// The style of headings on standard output.
pub(crate) struct Headings(Style);

impl Headings {
    pub fn of_stdout() -> Headings {
        let plain = AutoStream::choice(&io::stdout()) == ColorChoice::Never;
        Headings(if plain { Style::new() } else { Style::new().bold() })
    }

    /// Writes a line.
    pub fn write(&self, out: &mut impl Write, heading: &str) -> io::Result<()> {
        writeln!(out, "{}{heading}{:#}", self.0, self.0)
    }
}
