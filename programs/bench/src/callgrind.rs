//! Runs a command under valgrind's callgrind, which counts the instructions that a process executes.

use std::io::ErrorKind;
use std::process::{Command, Output, Stdio};

/// Runs `command` under callgrind without standard input. Returns its output and the counts: instructions and, with `data`,
/// also loads and stores.
///
/// # Errors
/// valgrind is not installed or reports no counts, for example because the command crashed.
pub fn run(command: &Command, data: bool) -> Result<(Output, Vec<u64>), String> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    if data {
        valgrind.arg("--cache-sim=yes");
    }
    valgrind.arg(command.get_program()).args(command.get_args());
    let output = valgrind.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => "valgrind is not installed; its tool callgrind counts the instructions".to_owned(),
        _ => format!("valgrind cannot be started: {error}"),
    })?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    match collected(&stderr) {
        Some(counts) => Ok((output, counts)),
        None => Err(format!("valgrind reports no counts; {}: {stderr}", output.status)),
    }
}

/// Reads the line `==1== Collected : 123`. With the cache simulation, whose first three counts are instructions, loads and
/// stores, it continues with cache misses.
fn collected(stderr: &str) -> Option<Vec<u64>> {
    let (_, counts) = stderr.lines().find_map(|line| line.split_once("Collected :"))?;
    let counts: Option<Vec<u64>> = counts.split_whitespace().take(3).map(|count| count.parse().ok()).collect();
    counts.filter(|counts| !counts.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read() {
        assert_eq!(collected("==7== Events    : Ir\n==7== Collected : 1234567\n"), Some(vec![1_234_567]));
        let simulated = "==7== Events    : Ir Dr Dw I1mr D1mr\n==7== Collected : 70 20 10 3 2\n";
        assert_eq!(collected(simulated), Some(vec![70, 20, 10]));
        assert_eq!(collected("valgrind: failed"), None);
        assert_eq!(collected("==7== Collected :\n"), None);
    }
}
