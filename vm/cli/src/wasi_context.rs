//! The WASI context of a program, from the command line's flags.

use crate::args::{Run, Snapshot};
use crate::cache;
use crate::failure::Failure;
use std::ffi::{OsStr, OsString};
use std::net::TcpListener;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use weir_wasi::{Access, WasiCtx, WasiCtxBuilder};

/// The random seed of `--deterministic`.
const SEED: u64 = 0;

/// Separates the host's name of a directory from the guest's.
const AS: &[u8] = b"::";

/// Builds the context of a program: arguments, environment, streams, sockets and directories.
pub(crate) fn context(args: &Run, path: &OsStr, guest_args: &[OsString]) -> Result<WasiCtx, Failure> {
    let mut builder = guarded()?.inherit_stdio().broken_pipe_ends(true);
    builder = builder.arg(args.argv0.as_deref().unwrap_or(path).as_bytes()).map_err(nul)?;
    if args.invoke.is_none() {
        builder = builder.args(guest_args.iter().map(|arg| arg.as_bytes())).map_err(nul)?;
    }
    if args.inherit_env {
        builder = inherited(builder, &args.env)?;
    }
    builder = variables(builder, &args.env)?;
    for address in &args.listen {
        let listener = TcpListener::bind(address);
        let listener = listener
            .map_err(|error| Failure::Usage(format!("--listen {address}: expected ADDRESS:PORT to listen on: {error}")))?;
        builder = builder.preopened_listener(listener);
    }
    builder = finish(builder, &args.dirs, args.code.engine.deterministic)?;
    for dir in &args.dirs_to_read {
        builder = open(builder, "--dir-ro", dir, Access::ReadOnly)?;
    }
    Ok(builder.build())
}

/// Builds the context of an initialiser, which has only what its flags give, and what it prints.
pub(crate) fn of_initialiser(args: &Snapshot) -> Result<WasiCtx, Failure> {
    let mut builder = guarded()?.inherit_stdout().inherit_stderr().broken_pipe_ends(true);
    if !args.args.is_empty() {
        let words = [args.module.as_os_str()].into_iter().chain(args.args.iter().map(OsString::as_os_str));
        builder = builder.args(words.map(|arg| arg.as_bytes())).map_err(nul)?;
    }
    builder = finish(variables(builder, &args.env)?, &args.dirs, args.engine.deterministic)?;
    Ok(builder.refuse_nondeterminism(!args.allow_nondeterminism).build())
}

fn nul(error: weir_wasi::NulError) -> Failure {
    Failure::Usage(error.to_string())
}

/// Begins a context from which the cache cannot be reached. Whoever writes there runs code as the user, also in later runs that use the
/// cache.
fn guarded() -> Result<WasiCtxBuilder, Failure> {
    let builder = WasiCtx::builder();
    let Some(cache) = cache::of_user() else { return Ok(builder) };
    let guarded = builder.guarded_dir(cache.directory());
    guarded.map_err(|error| Failure::Usage(format!("{}: {error}", cache.directory().display())))
}

/// Adds the variables of this process's environment but those that are set.
fn inherited(mut builder: WasiCtxBuilder, set: &[OsString]) -> Result<WasiCtxBuilder, Failure> {
    let is_set = |name: &OsStr| set.iter().filter_map(|variable| definition(variable)).any(|(other, _)| other == name.as_bytes());
    for (name, value) in std::env::vars_os().filter(|(name, _)| !is_set(name)) {
        builder = builder.env(name.into_vec(), value.into_vec()).map_err(nul)?;
    }
    Ok(builder)
}

fn variables(mut builder: WasiCtxBuilder, variables: &[OsString]) -> Result<WasiCtxBuilder, Failure> {
    for variable in variables {
        if let Some((name, value)) = definition(variable) {
            builder = builder.env(name, value).map_err(nul)?;
        }
    }
    Ok(builder)
}

/// Adds directories, and makes the context deterministic if asked to.
fn finish(mut builder: WasiCtxBuilder, dirs: &[OsString], deterministic: bool) -> Result<WasiCtxBuilder, Failure> {
    for dir in dirs {
        builder = open(builder, "--dir", dir, Access::ReadWrite)?;
    }
    Ok(if deterministic { builder.deterministic(SEED) } else { builder })
}

/// Parses `NAME=VALUE`; for `NAME` alone, takes the value from this process's environment, if it is set.
fn definition(variable: &OsStr) -> Option<(&[u8], Vec<u8>)> {
    let bytes = variable.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => Some((&bytes[..at], bytes[at + 1..].to_vec())),
        None => std::env::var_os(variable).map(|value| (bytes, value.into_vec())),
    }
}

fn open(builder: WasiCtxBuilder, option: &str, dir: &OsStr, access: Access) -> Result<WasiCtxBuilder, Failure> {
    let bytes = dir.as_bytes();
    let (host, guest) = match bytes.windows(AS.len()).position(|window| window == AS) {
        Some(at) => (&bytes[..at], &bytes[at + AS.len()..]),
        None => (bytes, bytes),
    };
    let problem = |error: &dyn std::fmt::Display| Failure::Usage(format!("{option} {}: {error}", dir.display()));
    let guest = str::from_utf8(guest).map_err(|error| problem(&error))?;
    let host = Path::new(OsStr::from_bytes(host));
    builder.preopened_dir(host, guest, access).map_err(|error| problem(&error))
}
