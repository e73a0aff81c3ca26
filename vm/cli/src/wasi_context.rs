//! The WASI context of a program, from the command line's flags.

use crate::args::Run;
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

/// Builds the context: arguments, environment, streams, sockets and directories.
pub(crate) fn context(args: &Run, path: &OsStr, guest_args: &[OsString]) -> Result<WasiCtx, Failure> {
    let nul = |error: weir_wasi::NulError| Failure::Usage(error.to_string());
    let mut builder = WasiCtx::builder();
    // Whoever writes there runs code as the user, also in later runs that use the cache.
    if let Some(cache) = cache::of_user() {
        let guarded = builder.guarded_dir(cache.directory());
        builder = guarded.map_err(|error| Failure::Usage(format!("{}: {error}", cache.directory().display())))?;
    }
    let mut builder = builder.inherit_stdio().broken_pipe_ends(true).arg(path.as_bytes()).map_err(nul)?;
    if args.invoke.is_none() {
        builder = builder.args(guest_args.iter().map(|arg| arg.as_bytes())).map_err(nul)?;
    }
    for variable in &args.env {
        if let Some((name, value)) = definition(variable) {
            builder = builder.env(name, value).map_err(nul)?;
        }
    }
    for address in &args.listen {
        let listener = TcpListener::bind(address);
        let listener = listener
            .map_err(|error| Failure::Usage(format!("--listen {address}: expected ADDRESS:PORT to listen on: {error}")))?;
        builder = builder.preopened_listener(listener);
    }
    for dir in &args.dirs {
        builder = open(builder, dir)?;
    }
    if args.code.engine.deterministic {
        builder = builder.deterministic(SEED);
    }
    Ok(builder.build())
}

/// Parses `NAME=VALUE`; for `NAME` alone, takes the value from this process's environment, if it is set.
fn definition(variable: &OsStr) -> Option<(&[u8], Vec<u8>)> {
    let bytes = variable.as_bytes();
    match bytes.iter().position(|byte| *byte == b'=') {
        Some(at) => Some((&bytes[..at], bytes[at + 1..].to_vec())),
        None => std::env::var_os(variable).map(|value| (bytes, value.into_vec())),
    }
}

fn open(builder: WasiCtxBuilder, dir: &OsStr) -> Result<WasiCtxBuilder, Failure> {
    let bytes = dir.as_bytes();
    let (host, guest) = match bytes.windows(AS.len()).position(|window| window == AS) {
        Some(at) => (&bytes[..at], &bytes[at + AS.len()..]),
        None => (bytes, bytes),
    };
    let problem = |error: &dyn std::fmt::Display| Failure::Usage(format!("--dir {}: {error}", dir.display()));
    let guest = str::from_utf8(guest).map_err(|error| problem(&error))?;
    let host = Path::new(OsStr::from_bytes(host));
    builder.preopened_dir(host, guest, Access::ReadWrite).map_err(|error| problem(&error))
}
