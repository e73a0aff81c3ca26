//! The bounds within which a hostile module of full size stays, measured in processes of their own.

use super::attack::Attack;
use super::embedder::{self, Delays};
use crate::scratch::Scratch;
use std::fmt;
use std::io::{self, Read};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use wait4::Wait4;

/// Bytes that any module may take, and bytes for each of its own.
const BASE: u64 = 64 << 20;
const PER_BYTE: u64 = 64;
/// The time limit of the command, and the time after which its process is gone.
const TIMEOUT: &str = "2";
const GONE: Duration = Duration::from_millis(2200);
/// A process that takes this long does not end.
const HANGS: Duration = Duration::from_secs(20);
/// How much later than alone an innocent module may have native code.
const DELAY: Duration = Duration::from_millis(50);
/// The exit codes of the command: success, a module that cannot be loaded, wrong usage, and a guest that fails.
const CODES: [i32; 4] = [0, 1, 2, 134];
/// The tiers of the command: the arguments of each run.
const TIERS: [(&str, &[&str]); 2] = [("auto", &[]), ("native", &["--tier", "native"])];
/// What SECURITY.md advises embedders: glibc keeps no more free memory than this. The command does the same.
const TRIM: (&str, &str) = ("MALLOC_TRIM_THRESHOLD_", "2097152");
/// The name of the command, beside this program.
const COMMAND: &str = "weir";
/// The task of `weir-fuzz` that is the embedder.
pub const EMBEDDER: &str = "hostile-embedder";

/// What to measure.
#[derive(clap::Args)]
pub struct Options {
    /// About the size of each module, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    size: usize,
    /// Only modules whose name contains this
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Write the modules to this folder, and run none
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// A process that has ended, or was ended because it hangs.
struct Process {
    /// `None` if it hangs.
    status: Option<ExitStatus>,
    elapsed: Duration,
    /// The largest resident set, in bytes. The kernel reports at least that of this process.
    peak: u64,
    stdout: String,
    stderr: String,
}

impl Process {
    /// Runs a command to its end.
    fn run(command: &mut Command) -> io::Result<Process> {
        let begun = Instant::now();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let (stdout, stderr) = (drain(child.stdout.take()), drain(child.stderr.take()));
        // The output ends with the process, at the latest when that is killed.
        let drained = stdout.recv_timeout(HANGS);
        if drained.is_err() {
            child.kill()?;
        }
        let used = child.wait4()?;
        Ok(Process {
            status: drained.is_ok().then_some(used.status),
            elapsed: begun.elapsed(),
            peak: used.rusage.maxrss,
            stdout: drained.unwrap_or_default(),
            stderr: stderr.recv().unwrap_or_default(),
        })
    }

    /// Why its end is none that it may have: a signal, another exit code than these, or that there is none.
    fn crash(&self, codes: &[i32]) -> Option<String> {
        let Some(status) = self.status else { return Some("does not end".into()) };
        let said = self.stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let said = said.chars().take(160).collect::<String>();
        match (status.code(), status.signal()) {
            (Some(code), _) if codes.contains(&code) => None,
            (Some(code), _) => Some(format!("exit code {code}: {said}")),
            (None, signal) => Some(format!("signal {}: {said}", signal.unwrap_or_default())),
        }
    }
}

/// Reads a stream to its end, of which it keeps the beginning, on a thread, so that neither stream blocks the other.
fn drain(stream: Option<impl Read + Send + 'static>) -> mpsc::Receiver<String> {
    const KEPT: u64 = 4096;
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let Some(mut stream) = stream else { return };
        let mut kept = Vec::new();
        // After an error, what has been read is kept.
        let _ = stream.by_ref().take(KEPT).read_to_end(&mut kept);
        let _ = io::copy(&mut stream, &mut io::sink());
        let _ = sender.send(String::from_utf8_lossy(&kept).into_owned());
    });
    receiver
}

/// What an attack costs.
struct Cost {
    attack: Attack,
    bytes: usize,
    allowed: u64,
    peak: u64,
    /// Of each process.
    elapsed: Vec<Duration>,
    delay: Option<Duration>,
    /// The bounds that do not hold.
    broken: Vec<String>,
}

impl Cost {
    /// That of an attack of about `size` bytes, exactly `bytes`, before anything has run.
    fn of(attack: &Attack, size: usize, bytes: usize) -> Cost {
        let allowed = BASE + PER_BYTE * bytes as u64 + attack.held(size);
        Cost { attack: *attack, bytes, allowed, peak: 0, elapsed: Vec::new(), delay: None, broken: Vec::new() }
    }

    /// Adds a process, whose name is `what`. `gone` is when it must have ended.
    fn add(&mut self, what: &str, process: &Process, codes: &[i32], gone: Duration) {
        self.elapsed.push(process.elapsed);
        self.peak = self.peak.max(process.peak);
        let late = (process.elapsed > gone).then(|| format!("{:.2} s", process.elapsed.as_secs_f64()));
        let large = (process.peak > self.allowed).then(|| format!("{} MB", process.peak >> 20));
        let broken = process.crash(codes).into_iter().chain(late).chain(large);
        self.broken.extend(broken.map(|bound| format!("{what}: {bound}")));
    }

    /// Adds the embedder.
    fn add_embedder(&mut self, process: &Process) {
        self.add("embedder", process, &[0], HANGS);
        self.delay = Delays::parse(&process.stdout).map(|delays| delays.difference());
        if let Some(delay) = self.delay.filter(|delay| *delay > DELAY) {
            self.broken.push(format!("delay: {} ms", delay.as_millis()));
        }
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cost { attack, bytes, allowed, peak, elapsed, delay, broken } = self;
        write!(f, "{:<36} {bytes:>8}", attack.name)?;
        for elapsed in elapsed {
            write!(f, " {:>6}", elapsed.as_millis())?;
        }
        let delay = delay.map_or_else(|| "-".into(), |delay| delay.as_millis().to_string());
        let verdict = if broken.is_empty() { "holds".into() } else { broken.join("; ") };
        write!(f, " {:>5} {:>7} {delay:>5}  {verdict}", peak >> 20, allowed >> 20)
    }
}

impl Options {
    /// Measures the attacks and prints what each costs.
    ///
    /// # Errors
    /// No attack has such a name, or a process or a file cannot be made.
    pub fn run(&self) -> Result<ExitCode, String> {
        let attacks = super::named(self.only.as_deref())?;
        let done = match &self.out {
            Some(dir) => write(&attacks, self.size, dir),
            None => measure(&attacks, self.size),
        };
        done.map_err(|error| error.to_string())
    }
}

/// Writes the modules to a folder.
fn write(attacks: &[Attack], size: usize, dir: &Path) -> io::Result<ExitCode> {
    std::fs::create_dir_all(dir)?;
    for attack in attacks {
        let file = dir.join(format!("{}.wasm", attack.name.replace([' ', ','], "-")));
        std::fs::write(&file, attack.module(size))?;
        println!("{}: {}", file.display(), attack.about);
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures the attacks.
fn measure(attacks: &[Attack], size: usize) -> io::Result<ExitCode> {
    let scratch = Scratch::new("weir-hostile")?;
    println!(
        "{:<36} {:>8} {:>6} {:>6} {:>6} {:>5} {:>7} {:>5}  verdict",
        "module", "bytes", "auto", "native", "host", "MB", "allowed", "delay"
    );
    let mut broken = 0;
    for attack in attacks {
        let cost = cost(attack, size, scratch.path())?;
        println!("{cost}");
        broken += usize::from(!cost.broken.is_empty());
    }
    println!("{} modules, {broken} of which break a bound", attacks.len());
    Ok(if broken == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs an attack in each way.
fn cost(attack: &Attack, size: usize, scratch: &Path) -> io::Result<Cost> {
    let (file, cache) = (scratch.join("hostile.wasm"), scratch.join("cache"));
    let bytes = write_module(attack, size, &file)?;
    let mut cost = Cost::of(attack, size, bytes);
    let this = std::env::current_exe()?;
    for (tier, args) in TIERS {
        let mut command = Command::new(this.with_file_name(COMMAND));
        command.env("XDG_CACHE_HOME", &cache).args(args).args(["--timeout", TIMEOUT]).arg(&file);
        cost.add(tier, &Process::run(&mut command)?, &CODES, GONE);
    }
    cost.add_embedder(&run_embedder(&this, &file)?);
    if cache.exists() {
        std::fs::remove_dir_all(&cache)?;
    }
    Ok(cost)
}

/// Runs the embedder of `weir-fuzz`, which is at `program`, with the module in this file.
fn run_embedder(program: &Path, file: &Path) -> io::Result<Process> {
    Process::run(Command::new(program).env(TRIM.0, TRIM.1).arg(EMBEDDER).arg(file))
}

/// Runs an attack in the embedder of `weir-fuzz`, which is at `program`. Returns the bounds that do not hold, of its end and of its memory, which
/// may have the whole program besides. A build for tests is large.
///
/// # Errors
/// A process or a file cannot be made.
pub fn broken_in_embedder(program: &Path, attack: &Attack, size: usize, file: &Path) -> io::Result<Vec<String>> {
    let bytes = write_module(attack, size, file)?;
    let mut cost = Cost::of(attack, size, bytes);
    cost.allowed += std::fs::metadata(program)?.len();
    cost.add("embedder", &run_embedder(program, file)?, &[0], HANGS);
    Ok(cost.broken)
}

/// Writes the module of an attack to a file, and returns its size. The module does not stay in memory.
fn write_module(attack: &Attack, size: usize, file: &Path) -> io::Result<usize> {
    let module = attack.module(size);
    std::fs::write(file, &module)?;
    Ok(module.len())
}

/// Is the embedder, of the module in this file.
///
/// # Errors
/// The file cannot be read, or an innocent module fails.
pub fn embed(file: &Path) -> Result<ExitCode, String> {
    let wasm = std::fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let delays = embedder::run(&wasm).map_err(|error| format!("{error:#}"))?;
    println!("{delays}");
    Ok(ExitCode::SUCCESS)
}
