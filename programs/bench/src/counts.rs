//! Counts executed instructions with callgrind; the counts are repeatable.
//!
//! Whole processes with the small arguments, start-up and compilation included; compilation is synchronous, so that threads
//! do not change the count.

use crate::callgrind;
use crate::measure::Scratch;
use crate::peers::{self, Peer};
use crate::programs::Program;
use crate::run::progress;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The peers whose counts are repeatable.
pub const PEERS: &[&str] = &["weir-interp", "weir-native", "weir-cranelift"];

/// One program on one peer.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Count {
    pub program: String,
    pub peer: String,
    pub instructions: u64,
}

/// Counts all programs on all peers.
///
/// # Errors
/// valgrind is missing, or a program fails under it.
pub fn count(programs: &[Program], names: &[String]) -> Result<Vec<Count>, String> {
    let mut counts = Vec::new();
    let scratch = Scratch::new()?;
    for program in programs {
        for peer in peers::find(names)? {
            progress(&format!("{}  {}", program.name, peer.name));
            let instructions =
                instructions(program, &peer, &scratch).map_err(|why| format!("{} on {}: {why}", program.name, peer.name))?;
            counts.push(Count { program: program.name.clone(), peer: peer.name.into(), instructions });
        }
    }
    progress("");
    Ok(counts)
}

fn instructions(program: &Program, peer: &Peer, scratch: &Scratch) -> Result<u64, String> {
    let command = peer.command(program, &program.small, scratch).map_err(|refusal| refusal.to_string())?;
    let command = command.ok_or("it cannot run it")?;
    let (output, counts) = callgrind::run(&command, false)?;
    if program.small.expected.as_ref().is_some_and(|expected| *expected != output.stdout) {
        return Err(format!("wrong output, {}", output.status));
    }
    Ok(counts[0])
}

/// The counts by program and peer, next to the earlier counts if there are any.
pub fn print(counts: &[Count], earlier: &[Count]) -> String {
    let mut text = String::new();
    for count in counts {
        let Count { program, peer, instructions } = count;
        let _ = write!(text, "{program:<20} {peer:<16} {instructions:>15}");
        let before = earlier.iter().find(|before| before.program == *program && before.peer == *peer);
        if let Some(before) = before {
            let _ = write!(text, "  {:.4} of {}", *instructions as f64 / before.instructions as f64, before.instructions);
        }
        text.push('\n');
    }
    text
}

/// Reads counts that [`write()`] wrote.
///
/// # Errors
/// The file can't be read or is something else.
pub fn read(path: &Path) -> Result<Vec<Count>, String> {
    let text = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    serde_json::from_slice(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Writes them as JSON.
///
/// # Errors
/// The file can't be written.
pub fn write(counts: &[Count], path: &Path) -> Result<(), String> {
    let text = serde_json::to_string_pretty(counts).map_err(|error| error.to_string())? + "\n";
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_compared() {
        let count = |instructions| Count { program: "fib".into(), peer: "weir-interp".into(), instructions };
        let text = print(&[count(150)], &[count(100)]);
        assert!(text.contains("1.5000 of 100"), "{text}");
    }
}
