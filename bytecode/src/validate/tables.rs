//! The side tables and locals of the bodies that a thread validates, each kind in one vector.

use crate::body::FuncBody;
use crate::part::Part;
use crate::sidetable::{BranchEntry, Handler, LoopInfo, Segment, TryRegion};
use crate::types::ValType;
use std::ops::Range;
use std::sync::Arc;

/// Of the bodies so far.
#[derive(Default)]
pub(super) struct Tables {
    pub locals: Vec<ValType>,
    pub branches: Vec<BranchEntry>,
    pub loops: Vec<LoopInfo>,
    pub segments: Vec<Segment>,
    pub regions: Vec<TryRegion>,
    pub handlers: Vec<Handler>,
    /// The bytes of the sets of locals in `loops`.
    pub sets: usize,
}

/// A body whose tables are in [`Tables`]; see [`FuncBody`].
pub(super) struct Placed {
    pub entry: u32,
    pub end: u32,
    pub max_operands: u32,
    pub wide: bool,
    pub work: u32,
    pub indirect_calls: u32,
    pub locals: Range<u32>,
    pub branches: Range<u32>,
    pub loops: Range<u32>,
    pub segments: Range<u32>,
    pub regions: Range<u32>,
    pub handlers: Range<u32>,
    pub exceptions: bool,
}

impl Tables {
    /// For bodies with this many bytes of code. With more memory than their tables will need as a rule: what is not used is not
    /// touched.
    pub fn with_capacity(bytes: usize) -> Tables {
        Tables {
            locals: Vec::with_capacity(bytes / 64),
            branches: Vec::with_capacity(bytes / 16),
            loops: Vec::with_capacity(bytes / 256),
            ..Tables::default()
        }
    }

    /// Returns the bytes of all that is in them. What is only reserved is not touched, and given back at the end.
    pub fn size(&self) -> usize {
        let Tables { locals, branches, loops, segments, regions, handlers, sets } = self;
        let code = size_of_val(&**locals) + size_of_val(&**branches) + size_of_val(&**loops) + size_of_val(&**segments);
        code + size_of_val(&**regions) + size_of_val(&**handlers) + sets
    }

    /// Ends the tables, so that bodies can share them.
    pub fn share(mut self) -> Shared {
        self.locals.shrink_to_fit();
        self.branches.shrink_to_fit();
        self.loops.shrink_to_fit();
        self.segments.shrink_to_fit();
        self.regions.shrink_to_fit();
        self.handlers.shrink_to_fit();
        Shared {
            locals: Arc::new(self.locals),
            branches: Arc::new(self.branches),
            loops: Arc::new(self.loops),
            segments: Arc::new(self.segments),
            regions: Arc::new(self.regions),
            handlers: Arc::new(self.handlers),
        }
    }
}

/// Of all bodies.
pub(super) struct Shared {
    locals: Arc<Vec<ValType>>,
    branches: Arc<Vec<BranchEntry>>,
    loops: Arc<Vec<LoopInfo>>,
    segments: Arc<Vec<Segment>>,
    regions: Arc<Vec<TryRegion>>,
    handlers: Arc<Vec<Handler>>,
}

impl Shared {
    /// The body, whose tables are in these.
    pub fn body(&self, placed: &Placed) -> FuncBody {
        FuncBody {
            entry: placed.entry,
            end: placed.end,
            locals: Part::of(&self.locals, &placed.locals),
            max_operands: placed.max_operands,
            wide: placed.wide,
            work: placed.work,
            indirect_calls: placed.indirect_calls,
            branches: Part::of(&self.branches, &placed.branches),
            loops: Part::of(&self.loops, &placed.loops),
            segments: Part::of(&self.segments, &placed.segments),
            regions: Part::of(&self.regions, &placed.regions),
            handlers: Part::of(&self.handlers, &placed.handlers),
            exceptions: placed.exceptions,
        }
    }
}

/// Adds items; returns their range.
pub(super) fn add<T>(all: &mut Vec<T>, items: impl IntoIterator<Item = T>) -> Range<u32> {
    // It fits: each item is of another instruction, local or loop, and the file is below 4 GiB.
    let start = all.len() as u32;
    all.extend(items);
    start..all.len() as u32
}
