//! The WASI context of a program, from the command line's flags.

use crate::args::{Run, Snapshot};
use crate::cache;
use crate::failure::Failure;
use std::ffi::{OsStr, OsString};
use std::net::TcpListener;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use weir_wasi::{FsPerms, WasiCtx, WasiCtxBuilder};

/// The random seed of `--deterministic`.
const SEED: u64 = 0;

/// Separates the host's name of a directory from the guest's.
const AS: &[u8] = b"::";

/// Builds the context of a program: arguments, environment, streams, sockets and directories.
pub(crate) fn context(args: &Run, path: &OsStr, guest_args: &[OsString]) -> Result<WasiCtx, Failure> {
    let mut builder = guarded()?;
    builder.inherit_stdio().broken_pipe_ends(true);
    arguments(&mut builder, [args.argv0.as_deref().unwrap_or(path)])?;
    if args.invoke.is_none() {
        arguments(&mut builder, guest_args.iter().map(OsString::as_os_str))?;
    }
    if args.inherit_env {
        inherited(&mut builder, &args.env)?;
    }
    variables(&mut builder, &args.env)?;
    for address in &args.listen {
        let listener = TcpListener::bind(address);
        let listener = listener
            .map_err(|error| Failure::Usage(format!("--listen {address}: expected ADDRESS:PORT to listen on: {error}")))?;
        builder.preopened_listener(listener);
    }
    finish(&mut builder, &args.dirs, args.code.engine.deterministic)?;
    for dir in &args.dirs_to_read {
        open(&mut builder, "--dir-ro", dir, FsPerms::ReadOnly)?;
    }
    Ok(builder.build())
}

/// Builds the context of an initialiser, which has only what its flags give, and what it prints.
pub(crate) fn of_initialiser(args: &Snapshot) -> Result<WasiCtx, Failure> {
    let mut builder = guarded()?;
    builder.inherit_stdout().inherit_stderr().broken_pipe_ends(true).refuse_nondeterminism(!args.allow_nondeterminism);
    if !args.args.is_empty() {
        let words = [args.module.as_os_str()].into_iter().chain(args.args.iter().map(OsString::as_os_str));
        arguments(&mut builder, words)?;
    }
    variables(&mut builder, &args.env)?;
    finish(&mut builder, &args.dirs, args.engine.deterministic)?;
    Ok(builder.build())
}

fn nul(error: weir_wasi::NulError) -> Failure {
    Failure::Usage(error.to_string())
}

/// Begins a context from which no cache can be reached, because a program that writes to one runs code as the user in later runs.
fn guarded() -> Result<WasiCtxBuilder, Failure> {
    let mut builder = WasiCtxBuilder::new();
    for directory in cache::directories() {
        let guarded = builder.guarded_dir(&directory);
        guarded.map_err(|error| Failure::Usage(format!("{}: {error}", directory.display())))?;
    }
    Ok(builder)
}

fn arguments<'a>(builder: &mut WasiCtxBuilder, args: impl IntoIterator<Item = &'a OsStr>) -> Result<(), Failure> {
    for arg in args {
        builder.arg_bytes(arg.as_bytes()).map_err(nul)?;
    }
    Ok(())
}

/// Adds the variables of this process's environment but those that are set.
fn inherited(builder: &mut WasiCtxBuilder, set: &[OsString]) -> Result<(), Failure> {
    let is_set = |name: &OsStr| set.iter().filter_map(|variable| definition(variable)).any(|(other, _)| other == name.as_bytes());
    for (name, value) in std::env::vars_os().filter(|(name, _)| !is_set(name)) {
        builder.env_bytes(name.as_bytes(), value.as_bytes()).map_err(nul)?;
    }
    Ok(())
}

fn variables(builder: &mut WasiCtxBuilder, variables: &[OsString]) -> Result<(), Failure> {
    for variable in variables {
        if let Some((name, value)) = definition(variable) {
            builder.env_bytes(name, value).map_err(nul)?;
        }
    }
    Ok(())
}

/// Adds directories, and makes the context deterministic if asked to.
fn finish(builder: &mut WasiCtxBuilder, dirs: &[OsString], deterministic: bool) -> Result<(), Failure> {
    for dir in dirs {
        open(builder, "--dir", dir, FsPerms::ReadWrite)?;
    }
    if deterministic {
        builder.deterministic(SEED);
    }
    Ok(())
}

/// Parses `NAME=VALUE`; for `NAME` alone, takes the value from this process's environment, if it is set.
fn definition(variable: &OsStr) -> Option<(&[u8], Vec<u8>)> {
    let bytes = variable.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => Some((&bytes[..at], bytes[at + 1..].to_vec())),
        None => std::env::var_os(variable).map(|value| (bytes, value.into_vec())),
    }
}

fn open(builder: &mut WasiCtxBuilder, option: &str, dir: &OsStr, access: FsPerms) -> Result<(), Failure> {
    let bytes = dir.as_bytes();
    let (host, guest) = match bytes.windows(AS.len()).position(|window| window == AS) {
        Some(at) => (&bytes[..at], &bytes[at + AS.len()..]),
        None => (bytes, bytes),
    };
    let problem = |error: &dyn std::fmt::Display| Failure::Usage(format!("{option} {}: {error}", dir.display()));
    let guest = str::from_utf8(guest).map_err(|error| problem(&error))?;
    let host = Path::new(OsStr::from_bytes(host));
    builder.preopened_dir(host, guest, access).map_err(|error| problem(&error))?;
    Ok(())
}
