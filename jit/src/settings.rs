//! Limits and refinements of construction and constant propagation. No setting changes the meaning of the code. They
//! are for measuring the value of each refinement, and for finding faults.

/// How the definition of a variable is looked for above a join, whose predecessors are all known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Search {
    /// Every join on the way gets a phi before its predecessors are searched.
    Plain,
    /// A join gets a phi where its predecessors have different definitions, or when the search comes back to it (section
    /// 3.3 of the paper, "marker").
    Marker,
    /// Joins that lie on cycles with each other are resolved together: if only one definition comes in from outside,
    /// it is the definition of all, and none gets a phi (the same section, with Tarjan's algorithm).
    Components,
}

/// What construction does beyond the plain algorithm. Without any of them but [`Search`] and [`Refinements::witnesses`], code is
/// different and bigger.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Refinements {
    /// How definitions are looked for.
    pub search: Search,
    /// A phi is looked at again only when one of two differing operands is replaced, not when any is.
    pub witnesses: bool,
    /// Variables that a loop or another structure does not assign pass through its header or join without a phi.
    pub regions: bool,
    /// Operations on constants become constants.
    pub fold: bool,
    /// Algebraic identities.
    pub identities: bool,
    /// Multiplications, divisions and remainders by powers of two become shifts and masks.
    pub strength: bool,
    /// Equal pure operations of a block become one.
    pub number: bool,
    /// Branches on constants lose their other edges, and what only those lead to is not built.
    pub prune: bool,
}

impl Refinements {
    /// Everything on: what the compiler uses.
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

/// How much constant propagation tries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PropagationLimits {
    /// Distinct predicates in one tree. 0 is plain conditional propagation.
    pub predicates: usize,
    /// Steps over trees per instruction, beyond which it starts again with no predicates.
    pub steps: u64,
    /// Instructions beyond which there is one sweep only, in which everything that comes along a back edge is unknown.
    pub sweep: usize,
}

impl Default for PropagationLimits {
    fn default() -> PropagationLimits {
        PropagationLimits { predicates: 2, steps: 64, sweep: 200_000 }
    }
}
