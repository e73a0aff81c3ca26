//! Limits and refinements of construction and constant propagation. No setting changes the meaning of the code. They
//! serve to measure the value of each refinement, and to find faults.

/// The search for the definition of a variable at a join whose predecessors are all known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Search {
    /// Every join on the way gets a phi before its predecessors are searched.
    Plain,
    /// A join gets a phi if its predecessors have different definitions, or if the search returns to it (section 3.3 of the
    /// paper, "marker").
    Marker,
    /// Joins that lie on cycles with each other are resolved together: if only one definition comes in from outside, it is the
    /// definition of all of them, and none gets a phi (the same section, with Tarjan's algorithm).
    Components,
}

/// The refinements of the plain algorithm. [`Search`] and [`Refinements::witnesses`] do not change the resulting code;
/// without any of the others the code is larger.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Refinements {
    /// The search for definitions.
    pub search: Search,
    /// Whether a phi is examined again only when one of two differing operands is replaced, not when any operand is.
    pub witnesses: bool,
    /// Whether variables that a loop or another structure does not assign pass through its header or join without a phi.
    pub regions: bool,
    /// Whether operations on constants are folded.
    pub fold: bool,
    /// Whether algebraic identities are applied.
    pub identities: bool,
    /// Whether multiplications, divisions and remainders by powers of two become shifts and masks.
    pub strength: bool,
    /// Whether equal pure operations of a block are shared.
    pub number: bool,
    /// Whether branches on constants lose their other edges, so that blocks reached only by those are not built.
    pub prune: bool,
}

impl Refinements {
    /// All refinements; the compiler uses these.
    pub const ALL: Refinements = Refinements {
        search: Search::Marker,
        witnesses: true,
        regions: true,
        fold: true,
        identities: true,
        strength: true,
        number: true,
        prune: true,
    };

    /// The plain algorithm.
    pub const NONE: Refinements = Refinements {
        search: Search::Plain,
        witnesses: false,
        regions: false,
        fold: false,
        identities: false,
        strength: false,
        number: false,
        prune: false,
    };
}

/// The limits of constant propagation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PropagationLimits {
    /// The number of distinct predicates in one tree; 0 is plain conditional propagation.
    pub predicates: usize,
    /// The number of steps over trees per instruction after which the analysis starts again without predicates.
    pub steps: u64,
    /// The number of instructions above which there is only one sweep, in which every argument that comes along a back edge is
    /// unknown.
    pub sweep: usize,
}

impl Default for PropagationLimits {
    fn default() -> PropagationLimits {
        PropagationLimits { predicates: 2, steps: 64, sweep: 200_000 }
    }
}
