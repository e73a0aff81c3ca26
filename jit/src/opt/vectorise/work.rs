//! What a plan consists of: accesses in groups, and what a round of the vector loop does.

use crate::analysis::counted::Linear;
use crate::ir::{Op, Value};
use weir_bytecode::{Module, Opcode};

/// A longer block is not considered.
pub const MAX_BLOCK: usize = 128;
/// The bytes of a vector.
pub const VECTOR: u64 = 32;

/// The bytes of a lane that is a vector of the producer's, of 128 bits. Two of them are in a vector.
pub const PAIRED: u64 = 16;

/// A load or store.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The instruction.
    pub value: Value,
    /// Its position in the block.
    pub position: usize,
    /// Whether it stores.
    pub is_store: bool,
    /// The bytes that it accesses.
    pub width: u64,
    /// The first of them that are used.
    pub used: u64,
    /// The distance of its first byte from the address of its group.
    pub at: u64,
}

/// Accesses whose addresses differ by constants.
#[derive(Clone, Debug)]
pub struct Group {
    /// The lowest address, without offset.
    pub base: Linear,
    /// What each round adds to the address, or subtracts from it if the loop descends.
    pub stride: u32,
    /// The least distance of an accessed byte from the address.
    pub from: u64,
    /// The end of the accessed bytes.
    pub to: u64,
    /// The bytes of an element, of which each copy in each round has the next; 0 if the address does not move. An access may be to a
    /// part of an element.
    pub element: u64,
    /// The accesses, by distance.
    pub accesses: Vec<Access>,
}

impl Group {
    /// The distance of an access from the start of its element. Accesses to whole elements may be anywhere: those of a stencil overlap, if they are
    /// vectors of the producer's.
    pub fn part(&self, access: Access) -> u64 {
        if access.width == self.element { 0 } else { (access.at - self.from) % self.element }
    }
}

/// What the engine allows.
#[derive(Clone, Copy, Debug)]
pub struct Allowed<'m> {
    /// The module, if there is one.
    pub module: Option<&'m Module>,
    /// Whether operations on floats may be vectorised.
    pub floats: bool,
}

/// How a vector's lanes belong to rounds and copies.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// The bytes of a lane.
    pub lane: u64,
    /// The number of copies.
    pub unrolled: usize,
    /// Whether addresses descend: a vector then has the elements of its last round first, and a pack the last copy.
    pub descends: bool,
}

impl Layout {
    /// The number of lanes of a vector.
    pub fn lanes(self) -> u64 {
        VECTOR / self.lane
    }

    /// How many copies are as much work as this many of single numbers.
    pub fn copies(self, numbers: u64) -> u64 {
        if self.lane == PAIRED { numbers / 2 } else { numbers }
    }
}

/// A vector that each round computes.
#[derive(Clone, Debug)]
pub enum Node {
    /// An invariant number, or vector of 128 bits, in all lanes.
    Splat(Value),
    /// A constant in all lanes.
    Number(u64),
    /// A load of one number, always from the same address, in all lanes.
    Uniform(Value),
    /// A load.
    Load(VectorLoad),
    /// An operation on vectors.
    Op(Opcode, Vec<usize>),
    /// A shift.
    Shift(Opcode, usize, Count),
    /// Bytes of two vectors of the producer's, which a constant chooses.
    Shuffle([usize; 2], Value),
    /// Each lane has the one before it of the vector of a recurrence, given by its index.
    Splice(usize),
    /// Numbers that each round increases, given by the index in [`Work::ramps`].
    Ramp(usize),
}

/// How far lanes are shifted.
#[derive(Clone, Copy, Debug)]
pub enum Count {
    /// As given by an invariant value.
    Value(Value),
    /// By a constant.
    Number(u64),
}

/// A load of consecutive elements, or of a part of each.
#[derive(Clone, Debug)]
pub struct VectorLoad {
    /// The group.
    pub group: usize,
    /// The distance of the first element from its address.
    pub at: u64,
    /// The distance of the part from the start of its element.
    pub part: u64,
    /// The bytes of the part.
    pub width: u64,
    /// One of the loads.
    pub load: Value,
    /// Operations that widen parts to lanes, the first one first.
    pub widen: Vec<Opcode>,
}

impl VectorLoad {
    /// Whether two vectors of the producer's are loaded in part, each by itself.
    pub fn is_joined(&self, layout: Layout) -> bool {
        layout.lane == PAIRED && self.width < PAIRED && self.widen.is_empty()
    }
}

/// A vector store.
#[derive(Clone, Debug)]
pub struct VectorStore {
    /// The group.
    pub group: usize,
    /// The distance from its address.
    pub at: u64,
    /// The vectors of the parts of the elements.
    pub parts: Vec<usize>,
    /// The bytes of a part.
    pub width: u64,
    /// One of the stores.
    pub store: Value,
    /// How lanes become parts.
    pub narrow: Narrow,
}

/// How lanes become numbers in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Narrow {
    /// Their low bits; all others are zero, unless a lane has 8 bytes and a number in memory 4.
    Bits,
    /// Doubles are rounded to singles.
    Demote,
    /// Of a vector of the producer's, the lane with this index, of as many bytes as are stored.
    Lane(u8),
}

/// A phi to which each round applies an associative and commutative operation on integers, or on vectors of integers.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// The phi.
    pub phi: Value,
    /// The operation.
    pub combine: Combine,
    /// The operation on lanes.
    pub lanes: Opcode,
    /// The vector that is added.
    pub node: usize,
    /// Invariant values that each round adds too; the operation is then an addition.
    pub invariants: Vec<Value>,
}

/// The operation of a reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Combine {
    /// One operation.
    Op(Op),
    /// A selection of the one of two operands that compares so with the other.
    Extreme(Op),
    /// An operation on vectors of the producer's, and whether it has no effect if it is repeated.
    Vector { idempotent: bool },
}

/// A phi that has a value of the round before.
#[derive(Clone, Copy, Debug)]
pub struct Recurrence {
    /// The phi.
    pub phi: Value,
    /// The vector of the values of this round.
    pub node: usize,
}

/// Numbers that each round increases by its stride.
#[derive(Clone, Debug)]
pub struct Ramp {
    /// The first copy's number.
    pub form: Linear,
    /// By lane of the first vector, the distance from the first one.
    pub offsets: Vec<i16>,
    /// What each vector adds to the one before it.
    pub step: u32,
}

/// What a round of the vector loop does.
#[derive(Debug, Default)]
pub struct Work {
    /// The vectors, operands before users.
    pub nodes: Vec<Node>,
    /// The stores, in order.
    pub stores: Vec<VectorStore>,
    /// The reductions.
    pub reductions: Vec<Reduction>,
    /// The recurrences.
    pub recurrences: Vec<Recurrence>,
    /// The numbers that grow with the rounds.
    pub ramps: Vec<Ramp>,
}

impl Work {
    /// Whether the instructions that two vectors of the producer's have together are more than those that put them together and take them apart.
    pub fn pays(&self, layout: Layout) -> bool {
        let joined = |node: &&Node| matches!(node, Node::Load(load) if load.is_joined(layout));
        let is_made = |node: &&Node| match node {
            Node::Load(_) | Node::Op(..) | Node::Shift(..) | Node::Shuffle(..) | Node::Splice(_) => !joined(node),
            Node::Splat(_) | Node::Number(_) | Node::Uniform(_) | Node::Ramp(_) => false,
        };
        let apart = self.stores.iter().filter(|store| matches!(store.narrow, Narrow::Lane(_))).count();
        let saved = self.nodes.iter().filter(is_made).count() + self.stores.len() - apart;
        // One instruction joins two halves; two halves and a shuffle are stored instead of two lanes.
        saved > self.nodes.iter().filter(joined).count() + 2 * apart
    }

    /// The phis of the reductions and the recurrences.
    pub fn carried(&self) -> impl Iterator<Item = Value> {
        let reduced = self.reductions.iter().map(|reduction| reduction.phi);
        reduced.chain(self.recurrences.iter().map(|recurrence| recurrence.phi))
    }
}
