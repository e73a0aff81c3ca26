//! The results of WASI calls.

use crate::errno::Errno;
use crate::p2::StreamError;
use std::io;

/// The program ended itself by `proc_exit` with this status. It is the cause of the [`weir::Error`] of the call that
/// ran the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("Exited with i32 exit status {0}")]
pub struct I32Exit(pub i32);

/// The program wrote to a pipe without a reader: see
/// [`WasiCtxBuilder::broken_pipe_ends`](crate::WasiCtxBuilder::broken_pipe_ends).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("broken pipe")]
pub struct BrokenPipe;

/// The program has asked for a time or for random bytes: see
/// [`WasiCtxBuilder::refuse_nondeterminism`](crate::WasiCtxBuilder::refuse_nondeterminism).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{call}` is called, and its result differs from run to run")]
pub struct Nondeterminism {
    /// The function of WASI.
    pub call: &'static str,
}

/// The result of a call.
pub(crate) type Outcome = Result<(), Failure>;

pub(crate) enum Failure {
    /// The call returns an error number to the guest.
    Errno(Errno),
    /// The call needs the host to hold this many bytes for the guest in total. If the store's limiter allows that, the call is repeated.
    /// Otherwise it returns `ENOMEM`.
    Memory(usize),
    /// The call ends the guest.
    End(weir::Error),
}

impl From<Nondeterminism> for Failure {
    fn from(refused: Nondeterminism) -> Failure {
        Failure::End(refused.into())
    }
}

impl From<Errno> for Failure {
    fn from(errno: Errno) -> Failure {
        Failure::Errno(errno)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Errno(error.into())
    }
}

impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Failure {
        match error {
            StreamError::Closed => Failure::Errno(Errno::Io),
            StreamError::LastOperationFailed(error) => {
                Failure::Errno(error.downcast::<io::Error>().map_or(Errno::Io, Errno::from))
            }
            StreamError::Trap(error) => Failure::End(error),
        }
    }
}
