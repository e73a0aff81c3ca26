//! The runtimes, and how each is told to run a program.

use crate::measure::{Refusal, Scratch};
use crate::programs::Program;
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A way of running a program.
#[derive(Debug)]
pub struct Peer {
    pub name: &'static str,
    pub binary: PathBuf,
    how: How,
}

#[derive(Clone, Copy, Debug)]
enum How {
    /// The flags, the module, its arguments.
    Flags(&'static [&'static str]),
    /// The same with `--` before the arguments.
    FlagsAndDashes(&'static [&'static str]),
    /// Node's own WASI, with these flags.
    Node(&'static [&'static str]),
    /// `wasmtime compile` beforehand.
    Precompiled,
    /// The C source, compiled beforehand.
    Native,
}

/// Name, binary, how. The order is the one in which they are reported.
const PEERS: &[(&str, &str, How)] = &[
    ("weir-auto", "weir", How::Flags(&["run"])),
    ("weir-native", "weir", How::Flags(&["run", "--tier=native"])),
    ("weir-cranelift", "weir", How::Flags(&["run", "--tier=cranelift"])),
    ("weir-interp", "weir", How::Flags(&["run", "--tier=interp"])),
    ("wasmtime", "wasmtime", How::Flags(&["run", "-Ccache=n"])),
    ("wasmtime-precompiled", "wasmtime", How::Precompiled),
    ("wasmtime-winch", "wasmtime", How::Flags(&["run", "-Ccache=n", "-Ccompiler=winch"])),
    ("wasmi", "wasmi", How::Flags(&[])),
    ("wasm3", "wasm3", How::Flags(&[])),
    ("wasmer", "wasmer", How::FlagsAndDashes(&["run"])),
    ("wasmedge", "wasmedge", How::Flags(&[])),
    ("node", "node", How::Node(&[])),
    ("node-no-liftoff", "node", How::Node(&["--no-liftoff", "--no-wasm-lazy-compilation"])),
    ("native", "cc", How::Native),
];

/// Runs argv[1] as a WASI program with the rest as its arguments.
const NODE_SCRIPT: &str = "\
const { WASI } = require('node:wasi');
const [file, ...args] = process.argv.slice(1);
const wasi = new WASI({ version: 'preview1', args: [file, ...args], env: {}, returnOnExit: true });
WebAssembly.instantiate(require('node:fs').readFileSync(file), wasi.getImportObject())
  .then(({ instance }) => { process.exitCode = wasi.start(instance); });";

/// Of those names, or of all that are known, the peers whose binary is there.
///
/// # Errors
/// One asked for by name is unknown or not there, or none is.
pub fn find(names: &[String]) -> Result<Vec<Peer>, String> {
    let mut peers = Vec::new();
    for name in names {
        let Some((name, binary, how)) = PEERS.iter().find(|(known, ..)| known == name) else {
            let known: Vec<&str> = PEERS.iter().map(|(known, ..)| *known).collect();
            return Err(format!("unknown peer {name}; known are {}", known.join(", ")));
        };
        let missing = || format!("{name}: no `{binary}` found; name it in {}", variable(binary));
        peers.push(Peer { name, binary: locate(binary).ok_or_else(missing)?, how: *how });
    }
    if names.is_empty() {
        let found = PEERS.iter().filter_map(|(name, binary, how)| Some(Peer { name, binary: locate(binary)?, how: *how }));
        peers.extend(found);
    }
    if peers.is_empty() { Err("no peer found: build weir first".into()) } else { Ok(peers) }
}

fn variable(binary: &str) -> String {
    format!("WEIR_PEER_{}", binary.to_uppercase())
}

/// Where the environment says, else beside this program (Weir itself), else on the PATH.
fn locate(binary: &str) -> Option<PathBuf> {
    if let Some(path) = env::var_os(variable(binary)) {
        return Some(path.into());
    }
    if binary == "weir" {
        return Some(env::current_exe().ok()?.with_file_name(binary)).filter(|path| path.is_file());
    }
    env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join(binary)).find(|path| path.is_file())
}

impl Peer {
    /// The command that runs the program; `None` if this peer can't run it in principle.
    ///
    /// # Errors
    /// What has to be done beforehand failed.
    pub fn command(&self, program: &Program, scratch: &Scratch) -> Result<Option<Command>, Refusal> {
        let mut command = Command::new(&self.binary);
        match self.how {
            How::Flags(flags) => command.args(flags).arg(&program.wasm),
            How::FlagsAndDashes(flags) => command.args(flags).arg(&program.wasm).arg("--"),
            How::Node(flags) => command.args(flags).args(["--no-warnings", "-e", NODE_SCRIPT]).arg(&program.wasm),
            How::Precompiled => {
                let compiled = scratch.path(&format!("{}.cwasm", program.name));
                prepare(&compiled, |target| {
                    let mut compile = Command::new(&self.binary);
                    compile.arg("compile").arg("-o").arg(target).arg(&program.wasm);
                    compile
                })?;
                command.args(["run", "--allow-precompiled"]).arg(compiled)
            }
            How::Native => {
                let Some(source) = &program.source else { return Ok(None) };
                let compiled = scratch.path(&program.name);
                prepare(&compiled, |target| {
                    let mut compile = Command::new(&self.binary);
                    // Fused multiply-add would round differently.
                    compile.args(["-O3", "-march=native", "-ffp-contract=off"]).arg(source).arg("-o").arg(target).arg("-lm");
                    compile
                })?;
                command = Command::new(compiled);
                &mut command
            }
        };
        command.args(&program.args);
        Ok(Some(command))
    }

    /// What it says when asked for its version.
    pub fn version(&self) -> String {
        let output = Command::new(&self.binary).arg("--version").stdin(Stdio::null()).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        text.lines().next().unwrap_or_default().to_string()
    }
}

/// Makes `target` by a command, once.
fn prepare(target: &Path, command: impl FnOnce(&Path) -> Command) -> Result<(), Refusal> {
    if target.exists() {
        return Ok(());
    }
    let output = command(target).stdin(Stdio::null()).output().map_err(Refusal::from)?;
    if output.status.success() { Ok(()) } else { Err(Refusal::failed(output.status, &output.stderr)) }
}
