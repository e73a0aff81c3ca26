//! The builder of a program's context.

use crate::cli::{StdinStream, StdoutStream, stderr, stdin, stdout};
use crate::clocks::{HostMonotonicClock, HostWallClock, monotonic_clock, wall_clock};
use crate::ctx::{GRANTED_AT_ONCE, WasiCtx};
use crate::descriptor::{Descriptor, Object};
use crate::directory::Directory;
use crate::entropy::Random;
use crate::filesystem::FsPerms;
use crate::guard::Guard;
use crate::offload::Blocking;
use crate::p1::WasiP1Ctx;
use crate::rights;
use crate::sockets::SocketAddrUse;
use crate::stream::Stream;
use crate::time::Clocks;
use rand_core::Rng;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

/// A string for the guest contains a NUL byte, which would end it there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a NUL byte in an argument or environment variable")]
pub struct NulError;

/// Builds a [`WasiCtx`].
///
/// ```
/// use weir_wasi::p2::pipe::{MemoryInputPipe, MemoryOutputPipe};
/// use weir_wasi::{FsPerms, WasiCtxBuilder};
///
/// let output = MemoryOutputPipe::new(1 << 20);
/// let ctx = WasiCtxBuilder::new()
///     .arg("program")
///     .args(&["--fast", "x"])
///     .env("LANG", "C")
///     .stdin(MemoryInputPipe::new("input"))
///     .stdout(output.clone())
///     .preopened_dir(std::env::temp_dir(), "/tmp", FsPerms::ReadOnly)?
///     .build_p1();
/// # drop(ctx);
/// # Ok::<(), weir::Error>(())
/// ```
pub struct WasiCtxBuilder {
    args: Vec<Vec<u8>>,
    env: Vec<Vec<u8>>,
    stdin: Stream,
    stdout: Stream,
    stderr: Stream,
    /// The preopened descriptors, from 3 on.
    preopened: Vec<Descriptor>,
    guard: Option<Arc<Guard>>,
    broken_pipe_ends: bool,
    wall_clock: Box<dyn HostWallClock + Send>,
    monotonic_clock: Box<dyn HostMonotonicClock + Send>,
    random: Random,
    max_random_size: u64,
    /// The seed of random bytes in a deterministic context, which also has virtual clocks.
    seed: Option<u64>,
    refuse_nondeterminism: bool,
    may_block: bool,
    is_built: bool,
}

impl fmt::Debug for WasiCtxBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WasiCtxBuilder").finish_non_exhaustive()
    }
}

impl Default for WasiCtxBuilder {
    fn default() -> WasiCtxBuilder {
        WasiCtxBuilder {
            args: Vec::new(),
            env: Vec::new(),
            stdin: Stream::input(io::empty()),
            stdout: Stream::output(io::empty()),
            stderr: Stream::output(io::empty()),
            preopened: Vec::new(),
            guard: None,
            broken_pipe_ends: false,
            wall_clock: wall_clock(),
            monotonic_clock: monotonic_clock(),
            random: Random::Host,
            max_random_size: 64 << 20,
            seed: None,
            refuse_nondeterminism: false,
            may_block: false,
            is_built: false,
        }
    }
}

impl WasiCtx {
    /// Creates a builder: see [`WasiCtxBuilder::new`].
    pub fn builder() -> WasiCtxBuilder {
        WasiCtxBuilder::new()
    }
}

impl Default for WasiCtx {
    /// A context without arguments, environment, input and files, whose output is discarded.
    fn default() -> WasiCtx {
        WasiCtxBuilder::new().build()
    }
}

impl WasiCtxBuilder {
    /// Creates a builder of a context without arguments, environment, input and files, whose output is discarded, with the host's clocks
    /// and random bytes.
    pub fn new() -> Self {
        WasiCtxBuilder::default()
    }

    /// Appends an argument. The first is by convention the program's name. A program sees an argument only up to a NUL byte.
    pub fn arg(&mut self, arg: impl AsRef<str>) -> &mut Self {
        self.args.push(arg.as_ref().into());
        self
    }

    /// Appends arguments.
    pub fn args(&mut self, args: &[impl AsRef<str>]) -> &mut Self {
        self.args.extend(args.iter().map(|arg| arg.as_ref().into()));
        self
    }

    /// Appends an argument, which need not be UTF-8.
    ///
    /// # Errors
    /// It contains a NUL byte.
    pub fn arg_bytes(&mut self, arg: impl Into<Vec<u8>>) -> Result<&mut Self, NulError> {
        self.args.push(without_nul(arg.into())?);
        Ok(self)
    }

    /// Appends the arguments of this process, its name included.
    ///
    /// # Panics
    /// One is not UTF-8.
    pub fn inherit_args(&mut self) -> &mut Self {
        self.args.extend(std::env::args().map(String::into_bytes));
        self
    }

    /// Adds an environment variable. One of the same name is kept, too. A program sees a variable only up to a NUL byte.
    pub fn env(&mut self, k: impl AsRef<str>, v: impl AsRef<str>) -> &mut Self {
        self.env.push(format!("{}={}", k.as_ref(), v.as_ref()).into());
        self
    }

    /// Adds environment variables.
    pub fn envs(&mut self, env: &[(impl AsRef<str>, impl AsRef<str>)]) -> &mut Self {
        for (name, value) in env {
            self.env(name, value);
        }
        self
    }

    /// Adds an environment variable, whose name and value need not be UTF-8.
    ///
    /// # Errors
    /// One contains a NUL byte.
    pub fn env_bytes(&mut self, name: impl Into<Vec<u8>>, value: impl AsRef<[u8]>) -> Result<&mut Self, NulError> {
        let mut variable = name.into();
        variable.push(b'=');
        variable.extend_from_slice(value.as_ref());
        self.env.push(without_nul(variable)?);
        Ok(self)
    }

    /// Adds the environment variables of this process.
    ///
    /// # Panics
    /// One is not UTF-8.
    pub fn inherit_env(&mut self) -> &mut Self {
        for (name, value) in std::env::vars() {
            self.env(name, value);
        }
        self
    }

    /// Gives the program the process's own standard input, output and error.
    pub fn inherit_stdio(&mut self) -> &mut Self {
        self.inherit_stdin().inherit_stdout().inherit_stderr()
    }

    /// Gives the program the process's own standard input.
    pub fn inherit_stdin(&mut self) -> &mut Self {
        self.stdin(stdin())
    }

    /// Gives the program the process's own standard output.
    pub fn inherit_stdout(&mut self) -> &mut Self {
        self.stdout(stdout())
    }

    /// Gives the program the process's own standard error.
    pub fn inherit_stderr(&mut self) -> &mut Self {
        self.stderr(stderr())
    }

    /// Gives the program this standard input, such as a [`MemoryInputPipe`](crate::p2::pipe::MemoryInputPipe).
    pub fn stdin(&mut self, stdin: impl StdinStream + 'static) -> &mut Self {
        self.stdin = Stream::input(stdin);
        self
    }

    /// Gives the program this standard output, such as a [`MemoryOutputPipe`](crate::p2::pipe::MemoryOutputPipe).
    pub fn stdout(&mut self, stdout: impl StdoutStream + 'static) -> &mut Self {
        self.stdout = Stream::output(stdout);
        self
    }

    /// Gives the program this standard error.
    pub fn stderr(&mut self, stderr: impl StdoutStream + 'static) -> &mut Self {
        self.stderr = Stream::output(stderr);
        self
    }

    /// Preopens the host's directory `host_path`, which the program sees as `guest_path`. No path and no symbolic link leads
    /// outside it.
    ///
    /// # Errors
    /// It cannot be opened, or is not a directory: an [`io::Error`].
    pub fn preopened_dir(
        &mut self,
        host_path: impl AsRef<Path>,
        guest_path: impl AsRef<str>,
        perms: FsPerms,
    ) -> weir::Result<&mut Self> {
        let mut directory = Directory::preopened(host_path.as_ref(), guest_path.as_ref().into())?;
        if let Some(guard) = &self.guard {
            directory.is_related = guard.is_related(&directory.dir)?;
        }
        let mut descriptor = Descriptor::new(Object::Dir(directory));
        if perms == FsPerms::ReadOnly {
            descriptor.rights &= rights::READ_ONLY;
            descriptor.inheriting &= rights::READ_ONLY;
        }
        self.preopened.push(descriptor);
        Ok(self)
    }

    /// Keeps the program out of a directory of the host, whatever is preopened: it can neither open the directory or a file in it, nor
    /// remove, rename or create any part of the way to it, whether the directory exists or not. A file in it that has another name elsewhere is
    /// not opened for writing. May be called for several directories.
    ///
    /// # Errors
    /// A preopened directory is in it, or its path cannot be followed. The same is then an error of [`WasiCtxBuilder::preopened_dir`].
    pub fn guarded_dir(&mut self, host: impl AsRef<Path>) -> io::Result<&mut Self> {
        let mut guard = self.guard.as_deref().cloned().unwrap_or_default();
        guard.add(host.as_ref())?;
        for descriptor in &mut self.preopened {
            if let Object::Dir(directory) = &mut descriptor.object {
                directory.is_related = guard.is_related(&directory.dir)?;
            }
        }
        self.guard = Some(Arc::new(guard));
        Ok(self)
    }

    /// Gives the program a listening socket, such as a [`TcpListener`](std::net::TcpListener), from which it can accept
    /// connections. Preopened sockets and directories are numbered from 3 in the order in which they are added.
    pub fn preopened_listener(&mut self, listener: impl Into<OwnedFd>) -> &mut Self {
        self.preopened.push(Descriptor::new(Object::Listener(Arc::new(listener.into()))));
        self
    }

    /// Gives the program a connected socket, such as a [`TcpStream`](std::net::TcpStream), in the same way as
    /// [`preopened_listener`](Self::preopened_listener).
    pub fn preopened_socket(&mut self, socket: impl Into<OwnedFd>) -> &mut Self {
        self.preopened.push(Descriptor::new(Object::Socket(Arc::new(socket.into()))));
        self
    }

    /// Makes a write to a pipe without a reader end the program with the error [`BrokenPipe`](crate::BrokenPipe), as
    /// the signal does with native programs. Without this the call fails with an error number, which most programs
    /// ignore.
    pub fn broken_pipe_ends(&mut self, enable: bool) -> &mut Self {
        self.broken_pipe_ends = enable;
        self
    }

    /// Allows calls of asynchronous guests that may block, such as those on files, to block the thread that polls. This is faster than
    /// making them on another thread. Synchronous guests always block their thread.
    pub fn allow_blocking_current_thread(&mut self, enable: bool) -> &mut Self {
        self.may_block = enable;
        self
    }

    /// Gives the program this source of random bytes.
    pub fn secure_random(&mut self, random: impl Rng + Send + 'static) -> &mut Self {
        self.random = Random::Given(Box::new(random));
        self
    }

    /// Has no function: programs of preview 1 have one source of random bytes, that of [`secure_random`](Self::secure_random).
    pub fn insecure_random(&mut self, _insecure_random: impl Rng + Send + 'static) -> &mut Self {
        self
    }

    /// Has no function: programs of preview 1 cannot ask for this seed.
    pub fn insecure_random_seed(&mut self, _insecure_random_seed: u128) -> &mut Self {
        self
    }

    /// Sets the maximum number of random bytes of a call, 64 MiB by default. A program that asks for more is ended with an error. A call cannot
    /// be interrupted, and takes the host a second for each 400 MB or so.
    pub fn max_random_size(&mut self, max_size: u64) -> &mut Self {
        self.max_random_size = max_size;
        self
    }

    /// Gives the program this clock for the time of day.
    pub fn wall_clock(&mut self, clock: impl HostWallClock + 'static) -> &mut Self {
        self.wall_clock = Box::new(clock);
        self
    }

    /// Gives the program this monotonic clock. A program that waits for a time on it waits for the difference from now, on the host's
    /// clock.
    pub fn monotonic_clock(&mut self, clock: impl HostMonotonicClock + 'static) -> &mut Self {
        self.monotonic_clock = Box::new(clock);
        self
    }

    /// Makes the program deterministic. Random bytes are a sequence that `seed` determines, and time is virtual. Clocks
    /// begin at 2000-01-01 00:00 UTC and at zero; each reading advances all of them by a microsecond, and waiting for a
    /// time advances them to it at once. Polled descriptors of the host always count as ready, so that only the call that follows
    /// waits. The contents and metadata of files and directories, and the data of streams and sockets, are the host's.
    /// Clocks and random bytes of the embedder are not used.
    pub fn deterministic(&mut self, seed: u64) -> &mut Self {
        self.seed = Some(seed);
        self
    }

    /// Makes asking for a time, or waiting for one, and asking for random bytes end the program with the error
    /// [`Nondeterminism`](crate::Nondeterminism), also if they are those of [`deterministic`](Self::deterministic). Every copy of a state
    /// that depends on them would have the same seeds.
    pub fn refuse_nondeterminism(&mut self, refuse: bool) -> &mut Self {
        self.refuse_nondeterminism = refuse;
        self
    }

    /// Has no function: programs of preview 1 have no current directory but the one that their library keeps.
    pub fn initial_cwd(&mut self, _path: impl AsRef<str>) -> &mut Self {
        self
    }

    /// Has no function: programs of preview 1 cannot create sockets. They have those of
    /// [`preopened_listener`](Self::preopened_listener) and [`preopened_socket`](Self::preopened_socket).
    pub fn inherit_network(&mut self) -> &mut Self {
        self
    }

    /// Has no function: see [`inherit_network`](Self::inherit_network).
    pub fn socket_addr_check<F>(&mut self, _check: F) -> &mut Self
    where
        F: Fn(SocketAddr, SocketAddrUse) -> Pin<Box<dyn Future<Output = bool> + Send + Sync>> + Send + Sync + 'static,
    {
        self
    }

    /// Has no function: see [`inherit_network`](Self::inherit_network).
    pub fn allow_ip_name_lookup(&mut self, _enable: bool) -> &mut Self {
        self
    }

    /// Has no function: see [`inherit_network`](Self::inherit_network).
    pub fn allow_udp(&mut self, _enable: bool) -> &mut Self {
        self
    }

    /// Has no function: see [`inherit_network`](Self::inherit_network).
    pub fn allow_tcp(&mut self, _enable: bool) -> &mut Self {
        self
    }

    /// Returns the finished context.
    ///
    /// # Panics
    /// It is called twice: the streams and the directories can be given to one program only.
    pub fn build(&mut self) -> WasiCtx {
        assert!(!self.is_built, "a context has been built");
        let built = std::mem::replace(self, WasiCtxBuilder { is_built: true, ..WasiCtxBuilder::new() });
        let standard = [built.stdin, built.stdout, built.stderr].map(|stream| Descriptor::new(Object::Stream(stream)));
        let (clocks, random) = match built.seed {
            Some(seed) => (Clocks::Virtual(0), Random::Sequence(seed)),
            None => (Clocks::Given { wall: built.wall_clock, monotonic: built.monotonic_clock }, built.random),
        };
        WasiCtx {
            args: built.args,
            env: built.env,
            table: standard.into_iter().chain(built.preopened).collect(),
            guard: built.guard,
            broken_pipe_ends: built.broken_pipe_ends,
            clocks,
            random,
            max_random_size: built.max_random_size,
            refuse_nondeterminism: built.refuse_nondeterminism,
            granted: GRANTED_AT_ONCE,
            memory: None,
            blocking: Blocking::Here,
            may_block: built.may_block,
        }
    }

    /// Returns the finished context, under the name that it has in [`p1`](crate::p1).
    ///
    /// # Panics
    /// See [`build`](Self::build).
    pub fn build_p1(&mut self) -> WasiP1Ctx {
        self.build()
    }
}

fn without_nul(bytes: Vec<u8>) -> Result<Vec<u8>, NulError> {
    if bytes.contains(&0) { Err(NulError) } else { Ok(bytes) }
}
