//! The runtimes, and the command by which each runs a program.

use crate::measure::{Refusal, Scratch};
use crate::programs::{Program, Work};
use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A way to run a program.
#[derive(Clone, Debug)]
pub struct Peer {
    pub name: &'static str,
    pub binary: PathBuf,
    invocation: Invocation,
}

#[derive(Clone, Copy, Debug)]
enum Invocation {
    /// The flags, the module, its arguments.
    Flags(&'static [&'static str]),
    /// The flags, the module, `--`, its arguments.
    FlagsAndDashes(&'static [&'static str]),
    /// Node's WASI, with these flags.
    Node(&'static [&'static str]),
    /// `wasmtime compile` or `weir compile` before the run.
    Precompiled,
    /// With these flags and a cache folder that earlier runs fill.
    Cached(&'static [&'static str]),
    /// The program's native code or, if it has none, its source, compiled before the run.
    Native,
}

/// Name, binary and way to run, in the order of the report.
const PEERS: &[(&str, &str, Invocation)] = &[
    ("weir-auto", "weir", Invocation::Flags(&["run", "--no-cache"])),
    ("weir-cached", "weir", Invocation::Cached(&["run"])),
    ("weir-precompiled", "weir", Invocation::Precompiled),
    ("weir-native", "weir", Invocation::Flags(&["run", "--no-cache", "--tier=native"])),
    ("weir-unmasked", "weir", Invocation::Flags(&["run", "--no-cache", "--tier=native", "--no-spectre-mitigation"])),
    ("weir-regalloc2", "weir", Invocation::Flags(&["run", "--no-cache", "--tier=native", "--allocator=regalloc2"])),
    ("weir-cranelift", "weir", Invocation::Flags(&["run", "--no-cache", "--tier=cranelift"])),
    ("weir-baseline", "weir", Invocation::Flags(&["run", "--no-cache", "--tier=baseline"])),
    ("weir-interp", "weir", Invocation::Flags(&["run", "--no-cache", "--tier=interp"])),
    ("wasmtime", "wasmtime", Invocation::Flags(&["run", "-Ccache=n"])),
    ("wasmtime-precompiled", "wasmtime", Invocation::Precompiled),
    ("wasmtime-cached", "wasmtime", Invocation::Cached(&["run", "-Ccache=y"])),
    ("wasmtime-winch", "wasmtime", Invocation::Flags(&["run", "-Ccache=n", "-Ccompiler=winch"])),
    ("wasmtime-pulley", "wasmtime", Invocation::Flags(&["run", "-Ccache=n", "--target=pulley64"])),
    ("wasmi", "wasmi", Invocation::Flags(&[])),
    ("wasm3", "wasm3", Invocation::Flags(&[])),
    ("wasmer", "wasmer", Invocation::FlagsAndDashes(&["run"])),
    ("wasmedge", "wasmedge", Invocation::Flags(&[])),
    ("node", "node", Invocation::Node(&[])),
    ("node-no-liftoff", "node", Invocation::Node(&["--no-liftoff", "--no-wasm-lazy-compilation"])),
    ("native", "cc", Invocation::Native),
];

/// The runtimes with compilers, which are compared on the large work, and native code.
pub const COMPILED: &[&str] =
    &["weir-auto", "weir-baseline", "wasmtime", "wasmtime-cached", "wasmtime-precompiled", "wasmtime-winch", "node", "native"];

/// The back ends, and Weir's with each allocator; all code is compiled before it runs.
pub const BACK_ENDS: &[&str] = &["weir-native", "weir-regalloc2", "weir-cranelift", "weir-baseline", "wasmtime-precompiled"];

/// The runtimes that interpret.
pub const INTERPRETERS: &[&str] = &["weir-interp", "wasmtime-pulley", "wasmi", "wasm3"];

/// Runs `argv[1]` as a WASI program with the rest as its arguments.
const NODE_SCRIPT: &str = "\
const { WASI } = require('node:wasi');
const [file, ...args] = process.argv.slice(1);
const wasi = new WASI({ version: 'preview1', args: [file, ...args], env: {}, returnOnExit: true });
WebAssembly.instantiate(require('node:fs').readFileSync(file), wasi.getImportObject())
  .then(({ instance }) => { process.exitCode = wasi.start(instance); });";

/// The peers with these names, or without names all known peers whose binary exists.
///
/// # Errors
/// A named peer is unknown or its binary is missing, or no peer is left.
pub fn find(names: &[String]) -> Result<Vec<Peer>, String> {
    let mut peers = Vec::new();
    for name in names {
        let Some((name, binary, invocation)) = PEERS.iter().find(|(known, ..)| known == name) else {
            let known: Vec<&str> = PEERS.iter().map(|(known, ..)| *known).collect();
            return Err(format!("unknown peer {name}; known are {}", known.join(", ")));
        };
        let missing = || format!("{name}: no `{binary}` found; name it in {}", variable(binary));
        peers.push(Peer { name, binary: locate(binary).ok_or_else(missing)?, invocation: *invocation });
    }
    if names.is_empty() {
        let found = PEERS
            .iter()
            .filter_map(|(name, binary, invocation)| Some(Peer { name, binary: locate(binary)?, invocation: *invocation }));
        peers.extend(found);
    }
    if peers.is_empty() { Err("no peer found: build weir first".into()) } else { Ok(peers) }
}

/// The peers with these names whose binary exists.
pub fn present(names: &[&str]) -> Vec<Peer> {
    find(&[]).unwrap_or_default().into_iter().filter(|peer| names.contains(&peer.name)).collect()
}

fn variable(binary: &str) -> String {
    format!("WEIR_PEER_{}", binary.to_uppercase())
}

/// The path in the environment variable or, for Weir, next to this program, or on the PATH.
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
    /// The command that runs the program, or `None` if this peer cannot run it.
    ///
    /// # Errors
    /// A preparing command failed.
    pub fn command(&self, program: &Program, work: &Work, scratch: &Scratch) -> Result<Option<Command>, Refusal> {
        let mut command = Command::new(&self.binary);
        match self.invocation {
            Invocation::Flags(flags) => command.args(flags).arg(&program.wasm),
            Invocation::FlagsAndDashes(flags) => command.args(flags).arg(&program.wasm).arg("--"),
            Invocation::Node(flags) => command.args(flags).args(["--no-warnings", "-e", NODE_SCRIPT]).arg(&program.wasm),
            Invocation::Precompiled => command.args(["run", "--allow-precompiled"]).arg(self.precompile(program, scratch)?),
            Invocation::Cached(flags) => {
                command.env("XDG_CACHE_HOME", scratch.cache());
                command.args(flags).arg(&program.wasm)
            }
            Invocation::Native => {
                command = match (&program.native, &program.source) {
                    (Some(native), _) => Command::new(native),
                    (None, Some(source)) => {
                        let compiled = scratch.path(&program.name);
                        prepare(&compiled, || native(&self.binary, source, &compiled))?;
                        Command::new(compiled)
                    }
                    (None, None) => return Ok(None),
                };
                &mut command
            }
        };
        command.args(&work.args);
        Ok(Some(command))
    }

    /// The peer without the trace of the stack that Node takes at every throw.
    pub fn without_traces(self) -> Peer {
        match self.invocation {
            Invocation::Node([]) => Peer { invocation: Invocation::Node(&["--stack-trace-limit=0"]), ..self },
            _ => self,
        }
    }

    /// The module, compiled by wasmtime or Weir.
    ///
    /// # Errors
    /// The compiler failed.
    pub fn precompile(&self, program: &Program, scratch: &Scratch) -> Result<PathBuf, Refusal> {
        let compiled = scratch.path(&format!("{}.{}.cwasm", program.name, self.name));
        prepare(&compiled, || {
            let mut compile = Command::new(&self.binary);
            compile.arg("compile").arg("-o").arg(&compiled).arg(&program.wasm);
            vec![compile]
        })?;
        Ok(compiled)
    }

    /// Its version; for native code, the versions of the compilers.
    pub fn version(&self) -> String {
        let own = version(Command::new(&self.binary).arg("--version"));
        match self.invocation {
            Invocation::Node(_) => format!("node {own}"),
            Invocation::Native => {
                let rustc = version(Command::new("rustc").arg("--version"));
                let zig = version(Command::new("python3").args(["-m", "ziglang", "version"]));
                format!("{own}, {rustc}, zig {zig}")
            }
            _ => own,
        }
    }

    /// The commands, with MODULE and ARGS in place of a program's own; for native code, the commands that compile a source in
    /// each language.
    pub fn commands(&self) -> Vec<String> {
        let binary = self.binary.file_name().unwrap_or_default().to_string_lossy();
        let run = |flags: &[&str]| vec![[&[&*binary][..], flags, &["MODULE", "ARGS"]].concat().join(" ")];
        match self.invocation {
            Invocation::Flags(flags) => run(flags),
            Invocation::FlagsAndDashes(flags) => vec![format!("{binary} {} MODULE -- ARGS", flags.join(" "))],
            Invocation::Node(flags) => run(&[flags, &["--no-warnings", "-e", "SCRIPT"]].concat()),
            Invocation::Precompiled => {
                vec![format!("{binary} compile -o COMPILED MODULE"), format!("{binary} run --allow-precompiled COMPILED ARGS")]
            }
            Invocation::Cached(flags) => run(flags),
            Invocation::Native => ["c", "cpp", "rs", "zig"]
                .iter()
                .flat_map(|extension| native("cc".as_ref(), &Path::new("SOURCE").with_extension(extension), "COMPILED".as_ref()))
                .map(|command| {
                    let words = std::iter::once(command.get_program()).chain(command.get_args());
                    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
                })
                .collect(),
        }
    }
}

/// The first line that the command prints, empty if it fails.
fn version(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output().map(|output| output.stdout).unwrap_or_default();
    String::from_utf8_lossy(&output).lines().next().unwrap_or_default().to_string()
}

/// The commands that compile a source to `target`, for all instructions of this machine except fused multiply-add,
/// which rounds differently.
fn native(cc: &Path, source: &Path, target: &Path) -> Vec<Command> {
    let command = |binary: &Path, flags: &[&str]| {
        let mut command = Command::new(binary);
        command.args(flags);
        command
    };
    let c = &["-O3", "-march=native", "-ffp-contract=off"];
    match source.extension().and_then(|extension| extension.to_str()) {
        Some("rs") => {
            let mut rustc = command("rustc".as_ref(), &["--edition=2021", "-Copt-level=3", "-Ctarget-cpu=native"]);
            rustc.arg(source).arg("-o").arg(target);
            vec![rustc]
        }
        Some("zig") => {
            let object = target.with_extension("o");
            let mut zig = command("python3".as_ref(), &["-m", "ziglang", "build-obj", "-OReleaseFast", "-mcpu=native"]);
            zig.args(["-fPIC", "--dep", "kernel"]).arg(format!("-Mroot={}", source.display()));
            zig.arg(format!("-Mkernel={}", source.with_file_name("../kernel.zig").display()));
            zig.arg(format!("-femit-bin={}", object.display()));
            let mut link = command(cc, &[]);
            link.arg(object).arg("-o").arg(target);
            vec![zig, link]
        }
        // GNU's C driver compiles C++ too, but links no library for it by itself.
        Some("cpp") => {
            let mut cpp = command(cc, c);
            cpp.arg(source).arg("-o").arg(target).args(["-lm", "-lstdc++"]);
            vec![cpp]
        }
        _ => {
            let mut cc = command(cc, c);
            cc.arg(source).arg("-o").arg(target).arg("-lm");
            vec![cc]
        }
    }
}

/// Makes `target` by running commands, if it does not exist.
fn prepare(target: &Path, commands: impl FnOnce() -> Vec<Command>) -> Result<(), Refusal> {
    if target.exists() {
        return Ok(());
    }
    for mut command in commands() {
        let output = command.stdin(Stdio::null()).output().map_err(Refusal::from)?;
        if !output.status.success() {
            return Err(Refusal::failed(output.status, &output.stderr));
        }
    }
    Ok(())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// The peer with this name, whether its binary exists or not.
    pub fn peer(name: &str) -> Peer {
        let &(name, binary, invocation) = PEERS.iter().find(|(known, ..)| *known == name).unwrap();
        Peer { name, binary: binary.into(), invocation }
    }

    /// The commands that a document states are those that run.
    #[test]
    fn commands_have_the_flags_that_are_used() {
        let scratch = Scratch::new().unwrap();
        let programs = crate::programs::find(&Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), Some("fib")).unwrap();
        for &(name, binary, invocation) in PEERS {
            let peer = Peer { name, binary: binary.into(), invocation };
            let stated = peer.commands().join("\n");
            let command = match invocation {
                Invocation::Precompiled => continue,
                Invocation::Native => native("cc".as_ref(), programs[0].source.as_ref().unwrap(), "COMPILED".as_ref()).remove(0),
                _ => peer.command(&programs[0], &programs[0].small, &scratch).unwrap().unwrap(),
            };
            for flag in command.get_args().map(|arg| arg.to_string_lossy()).filter(|arg| arg.starts_with('-')) {
                assert!(stated.contains(&*flag), "{name}: {flag} is not in {stated}");
            }
        }
    }
}
