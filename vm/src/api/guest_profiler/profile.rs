//! The result of a profile, as data.

use crate::Module;
use crate::records::frame_tier::FrameTier;
use crate::records::hints::hash;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// The samples of a guest: the result of [`GuestProfiler::into_profile`](crate::GuestProfiler::into_profile).
#[derive(Debug)]
#[non_exhaustive]
pub struct GuestProfile {
    /// The title.
    pub name: String,
    /// The time that one unit of weight stands for.
    pub interval: Duration,
    /// The time of the first event, at 0 in the profile.
    pub start: SystemTime,
    /// The duration of the profile.
    pub duration: Duration,
    /// The names and hashes of the profiled modules.
    pub modules: Vec<ProfiledModule>,
    /// The frames of the stacks.
    pub frames: Vec<GuestFrame>,
    /// The stacks, as a tree. The caller comes first.
    pub stacks: Vec<GuestStack>,
    /// The samples, ascending by time.
    pub samples: Vec<GuestSample>,
    /// The host calls and the events of tiers.
    pub events: Vec<GuestEvent>,
    /// What was not kept.
    pub lost: LostSamples,
}

/// Weights of samples of which something was not kept.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct LostSamples {
    /// Samples whose outer frames were not kept, because of the depth.
    pub outer_frames: u64,
    /// Samples whose inner frames were not kept, because there are too many stacks.
    pub inner_frames: u64,
    /// Samples without a place in time.
    pub times: u64,
    /// Number of host calls and events of tiers that were not kept.
    pub events: u64,
}

impl fmt::Display for LostSamples {
    /// Writes what was not kept, as a sentence; nothing if nothing was lost.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.outer_frames, "samples lack outer frames, because stacks are deeper than 512"),
            (self.inner_frames, "samples lack inner frames, because there are too many stacks"),
            (self.times, "samples have no place in time, because there are too many"),
            (self.events, "events were not kept, because there are too many"),
        ];
        let mut separator = "";
        for (count, what) in parts.iter().filter(|(count, _)| *count > 0) {
            write!(f, "{separator}{count} {what}")?;
            separator = "; ";
        }
        Ok(())
    }
}

/// A module of a profile.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ProfiledModule {
    /// Its name.
    pub name: String,
    /// The BLAKE3 hash of its functions' bodies, to which offsets refer. Other parts of a file may not have been read. If the
    /// module is damaged in the cache, and its file has changed, the hash is that of no bytes.
    pub hash: [u8; 32],
}

impl ProfiledModule {
    /// Describes a module.
    pub fn of(name: &str, module: &Module) -> ProfiledModule {
        let bytecode = module.bytecode();
        let ranges = (bytecode.bodies.first().zip(bytecode.bodies.last())).map(|(first, last)| (first.range(), last.range()));
        let code = ranges.and_then(|(first, last)| bytecode.bytes.try_part(first.start as usize..last.end as usize).ok());
        ProfiledModule { name: name.into(), hash: hash(code.unwrap_or_default()) }
    }
}

/// A frame of a stack. A function of the source that the module's producer has inlined has a frame of its own, if the debugging
/// information names it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct GuestFrame {
    /// The name, as the source has it; of a host function, the names of the import. At most 512 bytes.
    pub name: Arc<str>,
    /// What runs it.
    pub tier: FrameTier,
    /// Index in [`GuestProfile::modules`]. `None` for frames that were not kept.
    pub module: Option<u32>,
    /// Index of the function in its module; `None` for a host function that the module does not import, and for frames that were not kept.
    pub func: Option<u32>,
    /// Offset in the module of the instruction: the call, or the poll at which the sample was taken. `None` for a host function.
    pub pc: Option<u32>,
    /// Number of functions of the source into which this one is inlined.
    pub inline_depth: u32,
    /// The source file.
    pub file: Option<Arc<str>>,
    /// The line in it, from 1.
    pub line: Option<u32>,
    /// The column in the line, from 1.
    pub column: Option<u32>,
}

/// A node in the tree of stacks: a frame, and the stack of its callers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct GuestStack {
    /// The stack of the callers, as an index in [`GuestProfile::stacks`]; `None` for an outermost frame.
    pub parent: Option<u32>,
    /// Index in [`GuestProfile::frames`].
    pub frame: u32,
    /// The weight of the samples with just this stack.
    pub weight: u64,
}

/// A sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct GuestSample {
    /// Its time, from the start.
    pub time: Duration,
    /// Index in [`GuestProfile::stacks`].
    pub stack: u32,
    /// Its weight.
    pub weight: u64,
    /// The processor time since the previous one, or zero.
    pub cpu: Duration,
}

/// An event beside the samples.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum GuestEvent {
    /// A call of a host function.
    #[non_exhaustive]
    HostCall {
        /// The time of the call.
        start: Duration,
        /// The time of its return.
        end: Duration,
        /// The stack of the caller.
        stack: Option<u32>,
    },
    /// Code of a function was made or retired.
    #[non_exhaustive]
    Tier {
        /// The time.
        time: Duration,
        /// Index in [`GuestProfile::modules`].
        module: u32,
        /// Index of the function.
        func: u32,
        /// Its name.
        name: Arc<str>,
        /// For code that continues a loop, the loop's offset in the module.
        osr: Option<u32>,
        /// What happened.
        what: Box<str>,
    },
}

impl GuestProfile {
    /// Returns the sum of all weights.
    pub fn total(&self) -> u64 {
        self.stacks.iter().map(|stack| stack.weight).fold(0, u64::saturating_add)
    }
}
