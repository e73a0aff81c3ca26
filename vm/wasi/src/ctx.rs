//! The state of one program: arguments, environment, descriptors.

use crate::descriptor::Table;
use crate::entropy::Random;
use crate::guard::Guard;
use crate::offload::Blocking;
use crate::outcome::Nondeterminism;
use crate::time::Clocks;
use std::fmt;
use std::sync::Arc;
use weir::{Instance, Memory};

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

    /// Refuses a call whose result differs from run to run, if such calls are refused.
    pub(crate) fn nondeterministic(&self, call: &'static str) -> Result<(), Nondeterminism> {
        if self.refuse_nondeterminism { Err(Nondeterminism { call }) } else { Ok(()) }
    }
}
