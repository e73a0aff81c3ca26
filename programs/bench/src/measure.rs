//! One run of a command: its time, and whether its output is correct.

use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use wait4::Wait4;

/// A run that succeeded.
#[derive(Clone, Debug)]
pub struct Run {
    /// From start to exit.
    pub wall: Duration,
    /// Time of the processors, of all threads, in the system too.
    pub cpu: Duration,
    /// From start to the first byte of output.
    pub first_output: Option<Duration>,
    /// The largest resident set, in KiB. The kernel reports at least that of this process.
    pub peak_kib: u64,
    pub output: Vec<u8>,
}

/// Why a peer has no measurement of a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The peer cannot run this program.
    Impossible,
    /// It did not start, or did not exit with 0.
    Failed(String),
    /// Its output is wrong.
    Wrong(String),
    /// It took too long.
    Timeout(Duration),
}

impl Refusal {
    /// The run ended with this status and this first line of standard error.
    pub fn failed(status: ExitStatus, stderr: &[u8]) -> Refusal {
        let text = String::from_utf8_lossy(stderr);
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        Refusal::Failed(format!("{status}: {first}"))
    }

    /// The run had this output.
    pub fn wrong(output: &[u8]) -> Refusal {
        let start = String::from_utf8_lossy(&output[..output.len().min(60)]);
        Refusal::Wrong(format!("{start:?} ({} bytes)", output.len()))
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
/// If the command failed, if its output is not the expected one (where that is known), or if it took longer than
/// `timeout`.
pub fn run(mut command: Command, expected: Option<&[u8]>, timeout: Duration) -> Result<Run, Refusal> {
    let start = Instant::now();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    // The output ends with the process, at the latest when that is killed.
    let drained = stdout.recv_timeout(timeout);
    if drained.is_err() {
        child.kill()?;
    }
    let used = child.wait4()?;
    let wall = start.elapsed();
    let Ok(StreamContents { bytes: output, first }) = drained else { return Err(Refusal::Timeout(timeout)) };
    if !used.status.success() {
        return Err(Refusal::failed(used.status, &stderr.recv().unwrap_or_default().bytes));
    }
    if expected.is_some_and(|expected| output != expected) {
        return Err(Refusal::wrong(&output));
    }
    Ok(Run {
        wall,
        cpu: used.rusage.utime + used.rusage.stime,
        first_output: first.map(|first| first - start),
        peak_kib: used.rusage.maxrss / 1024,
        output,
    })
}

/// The contents of a stream, and the time of its first byte.
#[derive(Default)]
struct StreamContents {
    bytes: Vec<u8>,
    first: Option<Instant>,
}

/// Reads a stream to its end on a thread, so that neither stream blocks the other.
fn drain(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<StreamContents> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut drained = StreamContents::default();
        if let Some(mut stream) = stream {
            let mut byte = [0];
            if stream.read(&mut byte).is_ok_and(|read| read == 1) {
                drained.first = Some(Instant::now());
                drained.bytes.push(byte[0]);
                // After a read error, the bytes read so far are compared.
                let _ = stream.read_to_end(&mut drained.bytes);
            }
        }
        let _ = sender.send(drained);
    });
    receiver
}

/// A folder for modules that peers compile beforehand, removed when dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes the folder.
    pub fn new() -> Result<Scratch, String> {
        let path = std::env::temp_dir().join(format!("weir-bench-{}", std::process::id()));
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Scratch(path))
    }

    /// A file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The folder for the caches of peers.
    pub fn cache(&self) -> PathBuf {
        self.path("cache")
    }

    /// Removes the caches of peers.
    ///
    /// # Errors
    /// The folder exists and cannot be removed.
    pub fn clear_cache(&self) -> Result<(), String> {
        match std::fs::remove_dir_all(self.cache()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(format!("{}: {error}", self.cache().display())),
            _ => Ok(()),
        }
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
        let right = run(shell("echo right"), Some(b"right\n"), minute).unwrap();
        assert!(right.first_output.is_some_and(|first| first <= right.wall) && right.peak_kib > 100, "{right:?}");
        assert_eq!(run(shell("echo unknown"), None, minute).unwrap().output, b"unknown\n");
        assert!(
            matches!(run(shell("echo wrong"), Some(b"right\n"), minute), Err(Refusal::Wrong(text)) if text.contains("wrong"))
        );
        let failed = run(shell("echo right; echo why >&2; exit 3"), Some(b"right\n"), minute);
        assert!(matches!(failed, Err(Refusal::Failed(text)) if text.contains('3') && text.contains("why")));
        let late = run(shell("exec sleep 60"), None, Duration::from_millis(50));
        assert!(matches!(late, Err(Refusal::Timeout(_))));
        assert!(matches!(run(Command::new("/nonexistent"), None, minute), Err(Refusal::Failed(_))));
    }
}
