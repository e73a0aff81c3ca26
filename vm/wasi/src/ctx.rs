//! What one program sees of the world: arguments, environment, descriptors.

use crate::errno::Errno;
use crate::stream::{HostStream, OutputBuffer, Stream};
use std::collections::VecDeque;

/// One program's view of the world. Made by a [`WasiCtxBuilder`].
#[derive(Debug)]
pub struct WasiCtx {
    pub(crate) args: Vec<Vec<u8>>,
    /// Each `NAME=value`.
    pub(crate) env: Vec<Vec<u8>>,
    descriptors: Vec<Option<Descriptor>>,
    pub(crate) broken_pipe_ends: bool,
}

/// An open descriptor.
#[derive(Debug)]
pub(crate) struct Descriptor {
    pub stream: Stream,
    /// The `fdflags` the guest has set.
    pub flags: u16,
    /// The rights the guest has given up.
    pub dropped_rights: u64,
}

impl WasiCtx {
    /// A builder whose program has no arguments, no environment, no input, and whose output is discarded.
    pub fn builder() -> WasiCtxBuilder {
        WasiCtxBuilder::default()
    }

    /// The descriptor, which must exist.
    pub(crate) fn descriptor(&mut self, fd: u32) -> Result<&mut Descriptor, Errno> {
        self.descriptors.get_mut(fd as usize).and_then(Option::as_mut).ok_or(Errno::Badf)
    }

    /// The descriptor's stream, for an operation that needs this right.
    pub(crate) fn stream(&mut self, fd: u32, right: u64) -> Result<&mut Stream, Errno> {
        let descriptor = self.descriptor(fd)?;
        if descriptor.dropped_rights & right != 0 { Err(Errno::Notcapable) } else { Ok(&mut descriptor.stream) }
    }

    /// Closes it.
    pub(crate) fn close(&mut self, fd: u32) -> Result<(), Errno> {
        self.descriptor(fd)?;
        self.descriptors[fd as usize] = None;
        Ok(())
    }

    /// Makes `to`, which must be open and is closed, what `from` is, and frees `from`.
    pub(crate) fn renumber(&mut self, from: u32, to: u32) -> Result<(), Errno> {
        self.descriptor(from)?;
        self.descriptor(to)?;
        if from != to {
            self.descriptors[to as usize] = self.descriptors[from as usize].take();
        }
        Ok(())
    }
}

/// A string handed to a guest contained a NUL byte, which would end it there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a NUL byte in an argument or environment variable")]
pub struct NulError;

/// Builds a [`WasiCtx`].
///
/// ```
/// use weir_wasi::{OutputBuffer, WasiCtx};
///
/// let output = OutputBuffer::new(1 << 20);
/// let ctx = WasiCtx::builder().arg("program")?.arg("--fast")?.env("LANG", "C")?.stdout(output.clone()).build();
/// # drop(ctx);
/// # Ok::<(), weir_wasi::NulError>(())
/// ```
#[derive(Debug)]
pub struct WasiCtxBuilder {
    args: Vec<Vec<u8>>,
    env: Vec<Vec<u8>>,
    stdin: Stream,
    stdout: Stream,
    stderr: Stream,
    broken_pipe_ends: bool,
}

impl Default for WasiCtxBuilder {
    fn default() -> WasiCtxBuilder {
        WasiCtxBuilder {
            args: Vec::new(),
            env: Vec::new(),
            stdin: Stream::Bytes(VecDeque::new()),
            stdout: Stream::Discard,
            stderr: Stream::Discard,
            broken_pipe_ends: false,
        }
    }
}

impl WasiCtxBuilder {
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
    pub fn inherit_stdio(mut self) -> Self {
        self.stdin = Stream::Host(HostStream::Stdin);
        self.stdout = Stream::Host(HostStream::Stdout);
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

    /// Lets a write to a pipe that nobody reads end the program with the error [`BrokenPipe`](crate::BrokenPipe), as the
    /// signal does with native programs. Otherwise the call fails with the error number for it, which most programs ignore.
    #[must_use]
    pub fn broken_pipe_ends(mut self, enable: bool) -> Self {
        self.broken_pipe_ends = enable;
        self
    }

    /// The finished context.
    pub fn build(self) -> WasiCtx {
        let open = |stream| Some(Descriptor { stream, flags: 0, dropped_rights: 0 });
        WasiCtx {
            args: self.args,
            env: self.env,
            descriptors: vec![open(self.stdin), open(self.stdout), open(self.stderr)],
            broken_pipe_ends: self.broken_pipe_ends,
        }
    }
}

fn without_nul(bytes: Vec<u8>) -> Result<Vec<u8>, NulError> {
    if bytes.contains(&0) { Err(NulError) } else { Ok(bytes) }
}
