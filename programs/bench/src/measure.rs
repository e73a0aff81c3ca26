//! One run of one command: how long it took, and whether it did the right thing.

use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// A run that did what was expected.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// From start to exit.
    pub wall: Duration,
}

/// Why a peer is left out for a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It can't run this one in principle.
    Impossible,
    /// It could not be started, or did not exit with 0.
    Failed(String),
    /// It printed something else.
    Wrong(String),
    /// It took too long.
    Timeout(Duration),
}

impl Refusal {
    /// A run that ended with this status, and the first line of what it had to say.
    pub fn failed(status: ExitStatus, stderr: &[u8]) -> Refusal {
        let text = String::from_utf8_lossy(stderr);
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        Refusal::Failed(format!("{status}: {first}"))
    }
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Refusal {
        Refusal::Failed(error.to_string())
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Impossible => f.write_str("cannot run it"),
            Refusal::Failed(why) => write!(f, "failed: {why}"),
            Refusal::Wrong(output) => write!(f, "wrong output: {output}"),
            Refusal::Timeout(limit) => write!(f, "not done after {} s", limit.as_secs()),
        }
    }
}

/// Runs the command.
///
/// # Errors
/// It did not do what was expected in the given time.
pub fn run(mut command: Command, expected: &[u8], timeout: Duration) -> Result<Run, Refusal> {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    // Its output ends when it does, or at the latest when it is killed.
    let output = stdout.recv_timeout(timeout);
    if output.is_err() {
        child.kill()?;
    }
    let status = child.wait()?;
    let wall = start.elapsed();
    let Ok(output) = output else { return Err(Refusal::Timeout(timeout)) };
    if !status.success() {
        return Err(Refusal::failed(status, &stderr.recv().unwrap_or_default()));
    }
    if output != expected {
        let start = String::from_utf8_lossy(&output[..output.len().min(60)]);
        return Err(Refusal::Wrong(format!("{start:?} ({} bytes)", output.len())));
    }
    Ok(Run { wall })
}

/// Reads it to its end on a thread, so that neither stream blocks the other.
fn drain(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            // What was read before an error is what can be compared.
            let _ = stream.read_to_end(&mut bytes);
        }
        let _ = sender.send(bytes);
    });
    receiver
}

/// A folder for what peers compile beforehand, removed in the end.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes it.
    pub fn new() -> Result<Scratch, String> {
        let path = std::env::temp_dir().join(format!("weir-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Scratch(path))
    }

    /// A file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn only_the_right_thing_counts() {
        let minute = Duration::from_secs(60);
        assert!(run(shell("echo right"), b"right\n", minute).is_ok());
        assert!(matches!(run(shell("echo wrong"), b"right\n", minute), Err(Refusal::Wrong(text)) if text.contains("wrong")));
        let failed = run(shell("echo right; echo why >&2; exit 3"), b"right\n", minute);
        assert!(matches!(failed, Err(Refusal::Failed(text)) if text.contains('3') && text.contains("why")));
        let late = run(shell("exec sleep 60"), b"", Duration::from_millis(50));
        assert!(matches!(late, Err(Refusal::Timeout(_))));
        assert!(matches!(run(Command::new("/nonexistent"), b"", minute), Err(Refusal::Failed(_))));
    }
}
