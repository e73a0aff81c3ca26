//! The text of errors.

use crate::wasmtime;
use std::fmt::{Debug, Write};
use wasmtime::{Error, Result, Trap, UnknownImportError, WasmBacktrace};

/// The text that a host would see, part by part.
#[derive(Default)]
pub struct Report {
    text: String,
    /// Whether positions in code are left out.
    pub without_positions: bool,
}

impl Report {
    pub fn part(&mut self, title: &str) {
        self.without_positions = false;
        _ = write!(self.text, "# {title}\n\n");
    }

    /// Writes a value or an error.
    pub fn result<T: Debug>(&mut self, name: &str, result: Result<T>) {
        match result {
            Ok(value) => _ = write!(self.text, "## {name}\n\nOk({value:?})\n\n"),
            Err(error) => self.error(name, &error),
        }
    }

    /// Writes an error in all its forms.
    pub fn error(&mut self, name: &str, error: &Error) {
        let links: Vec<String> = error.chain().map(|link| link.to_string()).collect();
        let mut text = format!("## {name}\n\n{}\n\n", format!("{error:?}").trim_end());
        // What follows from the links is written only if it does not.
        if format!("{error:?}") != debug(&links) {
            _ = writeln!(text, "chain: {links:?}");
        }
        for (i, link) in error.chain().enumerate() {
            let debug = format!("{link:?}");
            // That of a structure shows its private fields.
            if debug != links[i] && !debug.contains(" {") {
                _ = writeln!(text, "link {i}: {debug}");
            }
        }
        if error.to_string() != links[0] {
            _ = writeln!(text, "{{}}: {error}");
        }
        if format!("{error:#}") != links.join(": ") {
            _ = writeln!(text, "{{:#}}: {error:#}");
        }
        if error.root_cause().to_string() != links[links.len() - 1] {
            _ = writeln!(text, "root cause: {}", error.root_cause());
        }
        if let Some(trap) = error.downcast_ref::<Trap>() {
            _ = writeln!(text, "trap: {trap:?}, root: {}", error.root_cause().is::<Trap>());
        }
        if let Some(import) = error.downcast_ref::<UnknownImportError>() {
            _ = writeln!(text, "unknown import: {} {}", import.module(), import.name());
        }
        if let Some(trace) = error.downcast_ref::<WasmBacktrace>() {
            let at = links.iter().position(|link| *link == trace.to_string());
            _ = writeln!(text, "backtrace: link {at:?}");
            for frame in trace.frames() {
                _ = writeln!(text, "    {:?} {} {:?}", frame.module().name(), frame.func_index(), frame.func_name());
            }
        }
        text.push('\n');
        self.text += &if self.without_positions { without_positions(&text) } else { text };
    }

    /// Writes a line.
    pub fn line(&mut self, line: &str) {
        _ = writeln!(self.text, "{line}");
    }

    pub fn into_text(self) -> String {
        self.text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }
}

/// How `{:?}` writes an error with this chain.
fn debug(links: &[String]) -> String {
    let mut text = links[0].clone();
    if links.len() > 1 {
        text += "\n\nCaused by:\n";
    }
    for (i, link) in links.iter().enumerate().skip(1) {
        let number = if links.len() > 2 { format!("{:>5}: ", i - 1) } else { "    ".into() };
        _ = writeln!(text, "{number}{link}");
    }
    text
}

/// Removes the offsets of frames.
fn without_positions(text: &str) -> String {
    let line = |line: &str| {
        let frame = line.split_once(": ").filter(|(number, _)| number.trim().parse::<u32>().is_ok());
        match frame.and_then(|(number, rest)| Some((number, rest.split_once(" - ")?))) {
            Some((number, (_, function))) => format!("{number}: {function}\n"),
            None => format!("{line}\n"),
        }
    };
    text.lines().map(line).collect()
}
