//! The state of one program: arguments, environment, descriptors.

use crate::clocks::Clocks;
use crate::descriptor::{Descriptor, Object, Table};
use crate::directory::Directory;
use crate::entropy::Random;
use crate::guard::Guard;
use crate::outcome::Nondeterminism;
use crate::rights;
use crate::stream::{HostStream, OutputBuffer, Stream};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use weir::{Instance, Memory};

/// The view that a program has of the host. Made by a [`WasiCtxBuilder`].
#[derive(Debug)]
pub struct WasiCtx {
    pub(crate) args: Vec<Vec<u8>>,
    /// Each `NAME=value`.
    pub(crate) env: Vec<Vec<u8>>,
    pub(crate) table: Table,
    pub(crate) guard: Option<Guard>,
    pub(crate) broken_pipe_ends: bool,
    pub(crate) clocks: Clocks,
    pub(crate) random: Random,
    /// Whether asking for a time or for random bytes ends the program.
    pub(crate) refuse_nondeterminism: bool,
    /// The instance that called last, and the memory that it exports.
    pub(crate) memory: Option<(Instance, Memory)>,
}

impl WasiCtx {
    /// Creates a builder of a context without arguments, environment, input and files, whose output is discarded.
    pub fn builder() -> WasiCtxBuilder {
        WasiCtxBuilder::default()
    }

    /// Returns number and name of each open descriptor that a program which begins with the same context does not have: of what the program
    /// has opened, the path that it gave, and of what it was given and has moved to another number, the number that it was given.
    pub fn open_descriptors(&self) -> impl Iterator<Item = (u32, String)> {
        self.table.opened()
    }

    /// Refuses a call whose result differs from run to run, if such calls are refused.
    pub(crate) fn nondeterministic(&self, call: &'static str) -> Result<(), Nondeterminism> {
        if self.refuse_nondeterminism { Err(Nondeterminism { call }) } else { Ok(()) }
    }
}

/// A string for the guest contains a NUL byte, which would end it there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a NUL byte in an argument or environment variable")]
pub struct NulError;

/// The access of a program to a preopened directory and everything below it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Access {
    /// Everything that the host permits the process.
    #[default]
    ReadWrite,
    /// Only operations that change nothing.
    ReadOnly,
}

/// Builds a [`WasiCtx`].
///
/// ```
/// use weir_wasi::{Access, OutputBuffer, WasiCtx};
///
/// let output = OutputBuffer::new(1 << 20);
/// let ctx = WasiCtx::builder()
///     .arg("program")?
///     .arg("--fast")?
///     .env("LANG", "C")?
///     .stdin("input")
///     .stdout(output.clone())
///     .preopened_dir(std::env::temp_dir(), "/tmp", Access::ReadOnly)?
///     .build();
/// # drop(ctx);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct WasiCtxBuilder {
    args: Vec<Vec<u8>>,
    env: Vec<Vec<u8>>,
    stdin: Stream,
    stdout: Stream,
    stderr: Stream,
    /// The preopened descriptors, from 3 on.
    preopened: Vec<Descriptor>,
    guard: Option<Guard>,
    broken_pipe_ends: bool,
    /// The seed of random bytes in a deterministic context, which also has virtual clocks.
    seed: Option<u64>,
    refuse_nondeterminism: bool,
}

impl Default for WasiCtxBuilder {
    fn default() -> WasiCtxBuilder {
        WasiCtxBuilder {
            args: Vec::new(),
            env: Vec::new(),
            stdin: Stream::Bytes(VecDeque::new()),
            stdout: Stream::Discard,
            stderr: Stream::Discard,
            preopened: Vec::new(),
            guard: None,
            broken_pipe_ends: false,
            seed: None,
            refuse_nondeterminism: false,
        }
    }
}

impl WasiCtxBuilder {
    /// Creates a builder: see [`WasiCtx::builder`].
    pub fn new() -> WasiCtxBuilder {
        WasiCtxBuilder::default()
    }

    /// Appends an argument. The first is by convention the program's name.
    ///
    /// # Errors
    /// It contains a NUL byte.
    pub fn arg(mut self, arg: impl Into<Vec<u8>>) -> Result<Self, NulError> {
        self.args.push(without_nul(arg.into())?);
        Ok(self)
    }

    /// Appends arguments.
    ///
    /// # Errors
    /// One contains a NUL byte.
    pub fn args<A: Into<Vec<u8>>>(self, args: impl IntoIterator<Item = A>) -> Result<Self, NulError> {
        args.into_iter().try_fold(self, |builder, arg| builder.arg(arg))
    }

    /// Adds an environment variable.
    ///
    /// # Errors
    /// Its name or value contains a NUL byte.
    pub fn env(mut self, name: impl Into<Vec<u8>>, value: impl AsRef<[u8]>) -> Result<Self, NulError> {
        let mut variable = name.into();
        variable.push(b'=');
        variable.extend_from_slice(value.as_ref());
        self.env.push(without_nul(variable)?);
        Ok(self)
    }

    /// Gives the program the process's own standard input, output and error.
    #[must_use]
    pub fn inherit_stdio(self) -> Self {
        self.inherit_stdin().inherit_stdout().inherit_stderr()
    }

    /// Gives the program the process's own standard input.
    #[must_use]
    pub fn inherit_stdin(mut self) -> Self {
        self.stdin = Stream::Host(HostStream::Stdin);
        self
    }

    /// Gives the program the process's own standard output.
    #[must_use]
    pub fn inherit_stdout(mut self) -> Self {
        self.stdout = Stream::Host(HostStream::Stdout);
        self
    }

    /// Gives the program the process's own standard error.
    #[must_use]
    pub fn inherit_stderr(mut self) -> Self {
        self.stderr = Stream::Host(HostStream::Stderr);
        self
    }

    /// Gives the program these bytes as standard input.
    #[must_use]
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin = Stream::Bytes(bytes.into().into());
        self
    }

    /// Collects standard output.
    #[must_use]
    pub fn stdout(mut self, buffer: OutputBuffer) -> Self {
        self.stdout = Stream::Buffer(buffer);
        self
    }

    /// Collects standard error.
    #[must_use]
    pub fn stderr(mut self, buffer: OutputBuffer) -> Self {
        self.stderr = Stream::Buffer(buffer);
        self
    }

    /// Preopens the host's directory `host`, which the program sees as `guest`. No path and no symbolic link leads
    /// outside it.
    ///
    /// # Errors
    /// It cannot be opened, or is not a directory.
    pub fn preopened_dir(mut self, host: impl AsRef<Path>, guest: impl Into<String>, access: Access) -> io::Result<Self> {
        let mut directory = Directory::preopened(host.as_ref(), guest.into())?;
        if let Some(guard) = &self.guard {
            directory.is_related = guard.is_related(&directory.dir)?;
        }
        let mut descriptor = Descriptor::new(Object::Dir(directory));
        if access == Access::ReadOnly {
            descriptor.rights &= rights::READ_ONLY;
            descriptor.inheriting &= rights::READ_ONLY;
        }
        self.preopened.push(descriptor);
        Ok(self)
    }

    /// Keeps the program out of a directory of the host, whatever is preopened: it can neither open the directory or a file in it, nor
    /// remove, rename or create any part of the way to it, whether the directory exists or not.
    ///
    /// # Errors
    /// A preopened directory is in it, or its path cannot be followed. The same is then an error of [`WasiCtxBuilder::preopened_dir`].
    pub fn guarded_dir(mut self, host: impl AsRef<Path>) -> io::Result<Self> {
        let guard = Guard::of(host.as_ref())?;
        for descriptor in &mut self.preopened {
            if let Object::Dir(directory) = &mut descriptor.object {
                directory.is_related = guard.is_related(&directory.dir)?;
            }
        }
        self.guard = Some(guard);
        Ok(self)
    }

    /// Gives the program a listening socket, such as a [`TcpListener`](std::net::TcpListener), from which it can accept
    /// connections. Preopened sockets and directories are numbered from 3 in the order in which they are added.
    #[must_use]
    pub fn preopened_listener(mut self, listener: impl Into<OwnedFd>) -> Self {
        self.preopened.push(Descriptor::new(Object::Listener(listener.into())));
        self
    }

    /// Gives the program a connected socket, such as a [`TcpStream`](std::net::TcpStream), in the same way as
    /// [`preopened_listener`](Self::preopened_listener).
    #[must_use]
    pub fn preopened_socket(mut self, socket: impl Into<OwnedFd>) -> Self {
        self.preopened.push(Descriptor::new(Object::Socket(socket.into())));
        self
    }

    /// Makes a write to a pipe without a reader end the program with the error [`BrokenPipe`](crate::BrokenPipe), as
    /// the signal does with native programs. Without this the call fails with an error number, which most programs
    /// ignore.
    #[must_use]
    pub fn broken_pipe_ends(mut self, enable: bool) -> Self {
        self.broken_pipe_ends = enable;
        self
    }

    /// Makes the program deterministic. Random bytes are a sequence that `seed` determines, and time is virtual. Clocks
    /// begin at 2000-01-01 00:00 UTC and at zero; each reading advances all of them by a microsecond, and waiting for a
    /// time advances them to it at once. Polled descriptors always count as ready, so that only the call that follows
    /// waits. The contents and metadata of files and directories, and the data of streams and sockets, are the host's.
    #[must_use]
    pub fn deterministic(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Makes asking for a time, or waiting for one, and asking for random bytes end the program with the error
    /// [`Nondeterminism`], also if they are those of [`deterministic`](Self::deterministic). Every copy of a state
    /// that depends on them would have the same seeds.
    #[must_use]
    pub fn refuse_nondeterminism(mut self, refuse: bool) -> Self {
        self.refuse_nondeterminism = refuse;
        self
    }

    /// Returns the finished context.
    pub fn build(self) -> WasiCtx {
        let standard = [self.stdin, self.stdout, self.stderr].map(|stream| Descriptor::new(Object::Stream(stream)));
        let table = standard.into_iter().chain(self.preopened).collect();
        let (clocks, random) = match self.seed {
            Some(seed) => (Clocks::Virtual(0), Random::Sequence(seed)),
            None => (Clocks::Host, Random::Host),
        };
        let guard = self.guard;
        WasiCtx {
            args: self.args,
            env: self.env,
            table,
            guard,
            broken_pipe_ends: self.broken_pipe_ends,
            clocks,
            random,
            refuse_nondeterminism: self.refuse_nondeterminism,
            memory: None,
        }
    }
}

fn without_nul(bytes: Vec<u8>) -> Result<Vec<u8>, NulError> {
    if bytes.contains(&0) { Err(NulError) } else { Ok(bytes) }
}
