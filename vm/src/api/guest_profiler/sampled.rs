//! What a sampler has recorded, before its frames have names.

use super::profile::LostSamples;
use super::stacks::Stacks;
use crate::Module;
use crate::records::frame_tier::FrameTier;
use crate::records::pc::Pc;
use std::time::{Duration, SystemTime};

/// Nodes of the tree of stacks.
pub(super) const MAX_STACKS: usize = 1 << 19;

/// The samples of a guest.
#[derive(Debug)]
pub(super) struct Sampled {
    pub name: String,
    pub interval: Duration,
    pub modules: Vec<(String, Module)>,
    pub stacks: Stacks<Place>,
    pub samples: Vec<Sample>,
    pub events: Vec<Event>,
    pub started_at: SystemTime,
    /// The time of the end.
    pub duration: Duration,
    pub lost: LostSamples,
}

/// A frame as it is sampled.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Place {
    /// Code of a function of this module.
    Code { module: u32, func: u32, pc: Pc, tier: FrameTier },
    /// The host function that the caller's instruction calls.
    Host,
    /// Frames that were not kept.
    Omitted,
}

/// A sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub at: Duration,
    pub stack: u32,
    pub weight: u64,
    pub cpu: Duration,
}

/// What is shown beside samples.
#[derive(Debug)]
pub(super) enum Event {
    HostCall { start: Duration, end: Duration, stack: Option<u32> },
    Tier { at: Duration, module: u32, func: u32, osr: Option<u32>, what: Box<str> },
}
