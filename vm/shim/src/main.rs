//! `containerd-shim-weir-v1`: runs WebAssembly modules as containers.
//!
//! containerd runs this program for each container to have a shim started, or to get the address of the pod's, to which it then talks over a
//! socket. These processes have its image:
//!
//! - the *shim*, which serves containerd's requests: [`service`];
//! - the *zygote*, forked from it before it has threads. From it, one is spawned for each container, which creates and starts it, because
//!   libcontainer forks and changes the state of the whole process: [`container`];
//! - the *compiler*, which makes code for the node's cache without privileges: [`compiler`];
//! - the *guest*, the first process of a container, which libcontainer forks and puts into namespaces and control groups, with the
//!   container's root, user and seccomp filter. It loads the module and, once containerd starts the container, runs it: [`executor`].
//!
//! `unsafe` occurs in [`inherited`], [`signals`] and [`socket`], where functions of [`inherited`] and [`socket`] are called, and where
//! [`guest`] loads stored code.
//!
//! [`service`] uses [`container`], which uses [`compiler`] and [`executor`]; these use [`guest`], and all of them [`code_cache`].

mod budget;
mod cgroup;
mod code_cache;
mod compiler;
mod container;
mod entry;
mod executor;
mod files;
mod guest;
mod inherited;
mod layers;
mod logging;
mod message;
mod metrics;
mod pid_file;
mod privileges;
mod service;
mod settings;
mod signals;
mod socket;
mod streams;

use containerd_shim::protos::protobuf::{Message, MessageField};
use containerd_shim::protos::types::introspection::{RuntimeInfo, RuntimeVersion};
use rustix::stdio;
use socket::Socket;
use std::fs::File;
use std::io::Write;
use std::process::ExitCode;
use zygote::Zygote;

/// The name of the runtime in containerd's configuration.
const RUNTIME: &str = "io.containerd.weir.v1";

fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let flags = match containerd_shim::parse(&args) {
        Ok(flags) => flags,
        Err(error) => {
            eprintln!("containerd-shim-weir-v1: {error}");
            return ExitCode::from(2);
        }
    };
    if flags.version {
        println!("containerd-shim-weir-v1 {}", env!("CARGO_PKG_VERSION"));
        return ExitCode::SUCCESS;
    }
    if flags.info {
        return info();
    }
    let mut socket = None;
    if flags.action == "start" {
        prepare_move();
    } else {
        // Before the first thread: what is forked from a process with threads may find its locks taken.
        Zygote::init();
        if flags.action.is_empty() {
            socket = Socket::of_this_process();
            Zygote::global().run(begin_zygote, ());
        }
    }
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            runtime.block_on(containerd_shim::run::<service::WeirShim>(RUNTIME, None));
            socket.into_iter().for_each(Socket::remove);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("containerd-shim-weir-v1: the event loop cannot start: {error}");
            ExitCode::FAILURE
        }
    }
}

/// What the shim's zygote does first.
fn begin_zygote((): ()) {
    // SAFETY: the process that forked this one serves the socket.
    unsafe { Socket::close() };
    logging::begin();
}

/// Has the kernel prepare for the container's control groups while the shim starts, in a process of its own that may outlive this one.
/// It is forked before this one has threads.
fn prepare_move() {
    let process = Zygote::new();
    // Without the thread it is not done, and the shim starts all the same.
    let _ = std::thread::Builder::new().spawn(move || {
        process.try_run(
            |()| {
                // containerd reads this process's output to its end.
                let closed = File::options().read(true).write(true).open("/dev/null").and_then(|null| {
                    stdio::dup2_stdout(&null)?;
                    Ok(stdio::dup2_stderr(&null)?)
                });
                if closed.is_ok() {
                    cgroup::prepare_move();
                }
            },
            (),
        )
    });
}

/// Answers `-info`: name and version, in containerd's format.
fn info() -> ExitCode {
    let version = RuntimeVersion { version: env!("CARGO_PKG_VERSION").into(), ..RuntimeVersion::default() };
    let info = RuntimeInfo { name: RUNTIME.into(), version: MessageField::some(version), ..RuntimeInfo::default() };
    match info.write_to_bytes().map(|bytes| std::io::stdout().write_all(&bytes)) {
        Ok(Ok(())) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}
