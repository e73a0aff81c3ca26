//! The state of one program: arguments, environment, descriptors.

use crate::descriptor::Table;
use crate::entropy::Random;
use crate::errno::Errno;
use crate::guard::Guard;
use crate::offload::Blocking;
use crate::outcome::{Failure, Nondeterminism};
use crate::time::Clocks;
use std::fmt;
use std::sync::Arc;
use weir::{Instance, Memory};

/// The bytes that the host holds for a program grow by multiples of this. The first are granted without asking.
pub(crate) const GRANTED_AT_ONCE: usize = 64 << 10;
/// The most bytes that the host holds for a program, whatever the limiter allows.
const MAX_HELD: usize = 64 << 20;

/// The view that a program has of the host. Made by a [`WasiCtxBuilder`](crate::WasiCtxBuilder).
pub struct WasiCtx {
    pub(crate) args: Vec<Vec<u8>>,
    /// Each `NAME=value`.
    pub(crate) env: Vec<Vec<u8>>,
    pub(crate) table: Table,
    pub(crate) guard: Option<Arc<Guard>>,
    pub(crate) broken_pipe_ends: bool,
    pub(crate) clocks: Clocks,
    pub(crate) random: Random,
    /// Maximum number of random bytes of a call.
    pub(crate) max_random_size: u64,
    /// Whether asking for a time or for random bytes ends the program.
    pub(crate) refuse_nondeterminism: bool,
    /// The bytes that the host may hold for the program, for its descriptors and their listings of directories.
    pub(crate) granted: usize,
    /// The instance that called last, and the memory that it exports.
    pub(crate) memory: Option<(Instance, Memory)>,
    /// Where the current call makes those of its calls to the host that may block.
    pub(crate) blocking: Blocking,
    /// Whether asynchronous calls, too, make them on the thread that polls.
    #[cfg_attr(not(feature = "async"), expect(dead_code, reason = "there are no asynchronous calls"))]
    pub(crate) may_block: bool,
}

impl fmt::Debug for WasiCtx {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WasiCtx").finish_non_exhaustive()
    }
}

impl WasiCtx {
    /// Returns number and name of each open descriptor that a program which begins with the same context does not have: of what the program
    /// has opened, the path that it gave, and of what it was given and has moved to another number, the number that it was given.
    pub fn open_descriptors(&self) -> impl Iterator<Item = (u32, String)> {
        self.table.opened()
    }

    /// Returns the bytes that may be reserved without asking the store's limiter.
    pub(crate) fn room(&self) -> usize {
        self.granted.saturating_sub(self.table.held())
    }

    /// Reserves bytes of the host's memory. Called before the call has effects that could not be repeated.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<(), Failure> {
        let held = self.table.held() + bytes;
        match held.next_multiple_of(GRANTED_AT_ONCE) {
            _ if held <= self.granted => Ok(()),
            wanted if wanted <= MAX_HELD => Err(Failure::Memory(wanted)),
            _ => Err(Errno::Nomem.into()),
        }
    }

    /// Refuses a call whose result differs from run to run, if such calls are refused.
    pub(crate) fn nondeterministic(&self, call: &'static str) -> Result<(), Nondeterminism> {
        if self.refuse_nondeterminism { Err(Nondeterminism { call }) } else { Ok(()) }
    }
}
