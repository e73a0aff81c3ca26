//! The decision whether a loop can be vectorised, and how: accesses in groups, packs of the copies that the producer made by
//! unrolling, and the vector operations of a round.
//!
//! A producer unrolls a loop u times: its stores fall into u classes at the distance of an element, and the trees of
//! operations above them are isomorphic. A *pack* is the u values that correspond; every one of its members is compared, not
//! only the first (comparing the first compiled loops wrongly in another compiler: OpenJDK's issue 15866). A loop that was not
//! unrolled has packs of one value. The elements of consecutive rounds and copies are consecutive lanes.

use super::precheck::{MAX_STRIDE, Placed, least_ahead};
use crate::analysis::counted::{Control, Counted, Induction, Linear};
use crate::ir::family::{Compare, Convert, Family, Float, FloatCompare, FloatUnary, Integer, Load};
use crate::ir::{Block, Effect, Func, Op, Type, Value};
use rustc_hash::FxHashMap;
use weir_bytecode::lanes::{self, Lane, LaneOp, Lanes, Shape, Shift, Whole};
use weir_bytecode::{Module, Opcode};

/// A longer block is not considered.
pub const MAX_BLOCK: usize = 128;
/// With more groups of accesses, or checks of two groups, a loop is left as it is.
const MAX_GROUPS: usize = 8;
const MAX_CHECKS: usize = 8;
/// The bytes of a vector.
pub const VECTOR: u64 = 32;

/// A load or store.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    value: Value,
    position: usize,
    is_store: bool,
    width: u64,
    /// The distance of its first byte from the address of its group.
    at: u64,
}

/// Accesses whose addresses differ by constants.
#[derive(Clone, Debug)]
pub struct Group {
    /// The lowest address, without offset.
    pub base: Linear,
    /// What each round adds to the address.
    pub stride: u32,
    /// The least distance of an accessed byte from the address.
    pub from: u64,
    /// The end of the accessed bytes.
    pub to: u64,
    accesses: Vec<Access>,
}

/// What must hold for two groups.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// The group with stores.
    pub stores: usize,
    /// The other group.
    pub other: usize,
    /// See `are_apart_together`. `None` if the strides differ and the groups must be apart in all rounds.
    pub together: Option<Option<i64>>,
}

/// A vector that each round computes.
#[derive(Clone, Debug)]
pub enum Node {
    /// An invariant number in all lanes.
    Splat(Value, Opcode),
    /// A load of one number, always from the same address, in all lanes.
    Uniform(Value, Opcode),
    /// A load: the group and the distance from its address.
    Load(usize, u64, Value),
    /// An operation on vectors.
    Op(Opcode, Vec<usize>),
    /// A shift by an invariant or constant count.
    Shift(Opcode, usize, Value),
}

/// A vector store: the group, the distance from its address, the vector, and the first of the stores.
#[derive(Clone, Copy, Debug)]
pub struct VectorStore {
    /// The group.
    pub group: usize,
    /// The distance.
    pub at: u64,
    /// The stored vector.
    pub node: usize,
    /// One of the stores.
    pub store: Value,
}

/// A phi to which each round applies an associative and commutative operation on integers.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// The phi.
    pub phi: Value,
    /// The operation.
    pub op: Op,
    /// The operation on lanes.
    pub lanes: Opcode,
    /// The vector that is added.
    pub node: usize,
    /// Invariant values that each round adds too; the operation is then an addition.
    pub invariants: Vec<Value>,
}

/// A charge of fuel, and its cost.
pub type Charge = (Value, u64);

/// A vector loop.
#[derive(Debug)]
pub struct Plan {
    /// The loop's block.
    pub block: Block,
    /// The index of its entry among the block's predecessors.
    pub entry: usize,
    /// The comparison that controls the exit.
    pub control: Control,
    /// The inductions.
    pub inductions: Vec<Induction>,
    /// The reductions.
    pub reductions: Vec<Reduction>,
    /// The memory.
    pub memory: u32,
    /// The groups of accesses.
    pub groups: Vec<Group>,
    /// The checks of groups against each other.
    pub checks: Vec<Check>,
    /// The vectors, operands before users.
    pub nodes: Vec<Node>,
    /// The stores, in order.
    pub stores: Vec<VectorStore>,
    /// The number of vectors of each node in a round of the vector loop.
    pub vectors: u64,
    /// The number of rounds of the loop in a round of the vector loop, a power of two.
    pub rounds: u64,
    /// The poll, if there is one.
    pub poll: Option<Value>,
    /// The first charge of fuel and the sum of all.
    pub fuel: Option<Charge>,
}

/// What the engine allows.
#[derive(Clone, Copy, Debug)]
pub struct Allowed<'m> {
    /// The module, if there is one.
    pub module: Option<&'m Module>,
    /// Whether operations on floats may be vectorised.
    pub floats: bool,
}

/// The vector loop for the loop that consists of `block`, if it can be vectorised.
pub fn plan(func: &Func<'_>, allowed: Allowed<'_>, block: Block) -> Option<Plan> {
    if func.block(block).insts.len() > MAX_BLOCK {
        return None;
    }
    let (poll, fuel) = effects(func, block)?;
    let counted = Counted::of(func, block)?;
    let control = counted.control()?;
    let (memory, groups) = groups(func, &counted, allowed)?;
    let moving = || groups.iter().filter(|group| group.stride != 0);
    let element = moving().flat_map(|group| &group.accesses).map(|access| access.width).next()?;
    let stride = u64::from(moving().next()?.stride);
    let unrolled = stride / element;
    let alike = |group: &Group| u64::from(group.stride) == stride && group.accesses.iter().all(|access| access.width == element);
    if !stride.is_multiple_of(element) || !matches!(unrolled, 1 | 2 | 3 | 4 | 8) || !moving().all(alike) {
        return None;
    }
    let lanes = VECTOR / element;
    let least = if lanes.is_multiple_of(unrolled) { 1 } else { unrolled };
    // Two accumulators halve the time that a reduction waits for itself.
    let vectors = if counted.others.is_empty() { least } else { 2 * least };
    let rounds = vectors * lanes / unrolled;
    let mut packer =
        Packer { func, counted: &counted, groups: &groups, allowed, element, nodes: Vec::new(), known: FxHashMap::default() };
    let stores = packer.stores(unrolled as usize)?;
    let reductions = packer.reductions(unrolled as usize)?;
    let nodes = packer.nodes;
    let checks = checks(&groups, element, rounds)?;
    let (entry, inductions) = (counted.entry, counted.inductions);
    Some(Plan {
        block,
        entry,
        control,
        inductions,
        reductions,
        memory,
        groups,
        checks,
        nodes,
        stores,
        vectors,
        rounds,
        poll,
        fuel,
    })
}

/// The poll and the fuel of a round, if the block has accesses and no effects besides these.
fn effects(func: &Func<'_>, block: Block) -> Option<(Option<Value>, Option<Charge>)> {
    let (mut poll, mut fuel, mut accesses) = (None, None, false);
    for &value in &func.block(block).insts {
        let inst = func.inst(value);
        if inst.op == Op::Poll && poll.is_none() {
            poll = Some(value);
        } else if inst.op == Op::Fuel {
            let (first, cost) = fuel.unwrap_or((value, 0u64));
            fuel = Some((first, cost.checked_add(inst.imm).filter(|&cost| cost < 1 << 20)?));
        } else if matches!(inst.op.family(), Family::Load(_) | Family::Store(_)) {
            accesses = true;
        } else if !matches!(inst.op.effect(), Effect::Pure | Effect::Terminator) {
            return None;
        }
    }
    accesses.then_some((poll, fuel.filter(|fuel| fuel.1 > 0)))
}

/// The accesses of the block in groups, and their memory.
fn groups(func: &Func<'_>, counted: &Counted<'_, '_>, allowed: Allowed<'_>) -> Option<(u32, Vec<Group>)> {
    let mut by_terms: Vec<(Linear, Vec<(u32, Access)>)> = Vec::new();
    let mut memory = None;
    for (position, &value) in func.block(counted.block).insts.iter().enumerate() {
        let inst = func.inst(value);
        let ty = func.operand_type(value);
        let Some(width) = inst.op.access_width(ty) else { continue };
        let ordinary = allowed.module.is_none_or(|module| {
            let ty = &module.memories[inst.aux as usize];
            !ty.shared && !ty.memory64
        });
        if !ordinary || *memory.get_or_insert(inst.aux) != inst.aux || ty.half() == Type::V128 || inst.imm > u32::MAX.into() {
            return None;
        }
        let form = counted.linear(inst.args[0])?;
        let is_store = inst.ty == Type::Void;
        let access = Access { value, position, is_store, width: width.into(), at: inst.imm };
        match by_terms.iter_mut().find(|(other, _)| other.terms == form.terms) {
            Some((_, accesses)) => accesses.push((form.constant, access)),
            None => by_terms.push((form.clone(), vec![(form.constant, access)])),
        }
    }
    let mut groups = Vec::new();
    for (form, accesses) in by_terms {
        let stride = counted.stride(&form).filter(|&stride| stride <= MAX_STRIDE)?;
        // As distances from the first one, which may be negative.
        let from_first = |constant: u32| i64::from(constant.wrapping_sub(form.constant) as i32);
        let mut accesses: Vec<(i64, Access)> =
            accesses.into_iter().map(|(constant, access)| (from_first(constant), access)).collect();
        accesses.sort_by_key(|&(distance, access)| (distance, access.position));
        let mut rest = &accesses[..];
        while let Some(&(lowest, _)) = rest.first() {
            let near = rest.partition_point(|&(distance, _)| distance - lowest <= i64::from(MAX_STRIDE));
            let base = Linear { terms: form.terms.clone(), constant: form.constant.wrapping_add(lowest as u32) };
            let at = |&(distance, access): &(i64, Access)| Access { at: access.at + (distance - lowest) as u64, ..access };
            let accesses: Vec<Access> = rest[..near].iter().map(at).collect();
            let from = accesses.iter().map(|access| access.at).min()?;
            let to = accesses.iter().map(|access| access.at + access.width).max()?;
            if stride == 0 && accesses.iter().any(|access| access.is_store) || to - from > 2 * u64::from(MAX_STRIDE) {
                return None;
            }
            groups.push(Group { base, stride, from, to, accesses });
            rest = &rest[near..];
        }
    }
    (groups.len() <= MAX_GROUPS).then_some((memory?, groups))
}

/// The checks that the groups need at run time; `None` if the loop must be left as it is.
///
/// In a round of the vector loop, all loads come before all stores, and stores are in the order of their packs.
fn checks(groups: &[Group], element: u64, rounds: u64) -> Option<Vec<Check>> {
    let mut checks = Vec::new();
    let stores = |group: &Group| group.accesses.iter().any(|access| access.is_store);
    for (i, a) in groups.iter().enumerate().filter(|(_, group)| stores(group)) {
        if !keeps_order(a, element, rounds) {
            return None;
        }
        for (j, b) in groups.iter().enumerate() {
            if i == j || stores(b) && j < i {
                continue;
            }
            let together = (a.stride == b.stride).then(|| if stores(b) { None } else { Some(ahead(a, b, element)) });
            checks.push(Check { stores: i, other: j, together });
        }
    }
    (checks.len() <= MAX_CHECKS).then_some(checks)
}

/// Whether the order of any two accesses of a group to a common byte, in `rounds` rounds that are executed together, is kept.
fn keeps_order(group: &Group, element: u64, rounds: u64) -> bool {
    let meet = |a: &Access, b: &Access, later: u64| (b.at + later * u64::from(group.stride)).abs_diff(a.at) < element;
    let stores = || group.accesses.iter().filter(|access| access.is_store);
    let loads_stay = stores().all(|store| {
        group.accesses.iter().filter(|access| !access.is_store).all(|load| {
            // A load of this round or a later one that meets the store comes after it, unless it stands before it.
            (0..rounds).all(|later| !meet(store, load, later) || later == 0 && load.position < store.position)
        })
    });
    // Different stores of a round must not meet, in this round or in others.
    let all: Vec<&Access> = stores().collect();
    let stores_stay = all
        .iter()
        .enumerate()
        .all(|(i, a)| all.iter().enumerate().all(|(j, b)| i == j || (0..rounds).all(|later| !meet(a, b, later))));
    loads_stay && stores_stay
}

/// [`least_ahead`] of the loads of `b` over the stores of `a`.
fn ahead(a: &Group, b: &Group, element: u64) -> i64 {
    let placed = |accesses: &[Access], stores: bool| -> Vec<Placed> {
        accesses.iter().filter(|access| access.is_store == stores).map(|access| (access.position, access.at)).collect()
    };
    least_ahead(&placed(&a.accesses, true), &placed(&b.accesses, false), element, a.stride)
}

struct Packer<'p, 'f, 'a> {
    func: &'f Func<'a>,
    counted: &'p Counted<'f, 'a>,
    groups: &'p [Group],
    allowed: Allowed<'p>,
    /// The bytes of an element.
    element: u64,
    nodes: Vec<Node>,
    known: FxHashMap<Vec<Value>, usize>,
}

impl Packer<'_, '_, '_> {
    /// The vector stores: in each group, runs of `unrolled` consecutive elements.
    fn stores(&mut self, unrolled: usize) -> Option<Vec<VectorStore>> {
        let mut stores = Vec::new();
        for (group, data) in self.groups.iter().enumerate() {
            let mut of_group: Vec<Access> = data.accesses.iter().copied().filter(|access| access.is_store).collect();
            of_group.sort_by_key(|access| access.at);
            for run in of_group.chunks(unrolled) {
                let consecutive = run.iter().zip(0..).all(|(access, i)| access.at == run[0].at + i * self.element);
                let ops = run.iter().all(|access| self.func.op(access.value) == self.func.op(run[0].value));
                if run.len() != unrolled || !consecutive || !ops {
                    return None;
                }
                let values: Vec<Value> = run.iter().map(|access| self.func.args(access.value)[1]).collect();
                let node = self.pack(&values)?;
                stores.push((run[0].position, VectorStore { group, at: run[0].at, node, store: run[0].value }));
            }
        }
        stores.sort_by_key(|&(position, _)| position);
        Some(stores.into_iter().map(|(_, store)| store).collect())
    }

    /// The reductions: all phis that are no inductions must be some.
    fn reductions(&mut self, unrolled: usize) -> Option<Vec<Reduction>> {
        self.counted.others.clone().into_iter().map(|phi| self.reduction(phi, unrolled)).collect()
    }

    fn reduction(&mut self, phi: Value, unrolled: usize) -> Option<Reduction> {
        let func = self.func;
        let ty = func.ty(phi);
        if !matches!((ty, self.element), (Type::I32, 4) | (Type::I64, 8)) {
            return None;
        }
        let last = func.args(phi)[self.counted.back];
        let op = func.op(last);
        let lanes = [
            (Op::Add, self.lane_op(LaneOp::Integer(lanes::Integer::Add), false)?),
            (Op::And, Opcode::V128And),
            (Op::Or, Opcode::V128Or),
            (Op::Xor, Opcode::V128Xor),
        ];
        let (_, lanes) = lanes.into_iter().find(|&(reduces, _)| reduces == op)?;
        // The operands of the tree of this operation, whose inner values have no other use in the loop.
        let uses = |value: Value| {
            let args = func.block(self.counted.block).insts.iter().flat_map(|&user| func.args(user));
            args.filter(|&&arg| arg == value).count()
        };
        let (mut work, mut leaves, mut phis) = (vec![last], Vec::new(), 0);
        while let Some(value) = work.pop() {
            let inner = func.op(value) == op && func.ty(value) == ty && self.counted.position(value).is_some();
            // The last one is used by the phi.
            if value == phi {
                phis += 1;
            } else if inner && uses(value) == 1 && !self.counted.is_invariant(value) {
                work.extend(func.args(value));
            } else {
                leaves.push(value);
            }
        }
        // The producer adds constants of all copies at once.
        let mut invariants = Vec::new();
        if op == Op::Add && leaves.len() > unrolled {
            let (equal, rest) = leaves.into_iter().partition(|&leaf| self.counted.is_invariant(leaf));
            (invariants, leaves) = (equal, rest);
        }
        if phis != 1 || uses(phi) != 1 || leaves.len() != unrolled {
            return None;
        }
        let first_load = |value: Value| self.first_load(value);
        leaves.sort_by_key(|&leaf| first_load(leaf));
        let node = self.pack(&leaves)?;
        Some(Reduction { phi, op, lanes, node, invariants })
    }

    /// The group and the distance of the first load, in the order of operands, on which a value depends.
    fn first_load(&self, value: Value) -> Option<(usize, u64)> {
        let mut value = value;
        for _ in 0..MAX_BLOCK {
            if let Some((group, access)) = self.access(value) {
                return Some((group, access.at));
            }
            let moves = |&&arg: &&Value| {
                self.counted.position(arg).is_some() && self.func.op(arg) != Op::Phi && !self.counted.is_invariant(arg)
            };
            value = *self.func.args(value).iter().find(moves)?;
        }
        None
    }

    /// The group and the access of a load or store.
    fn access(&self, value: Value) -> Option<(usize, Access)> {
        let find = |group: &Group| group.accesses.iter().copied().find(|access| access.value == value);
        self.groups.iter().enumerate().find_map(|(i, group)| Some((i, find(group)?)))
    }

    fn node(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// The instruction with this operation on the lanes of this loop.
    fn lane_op(&self, op: LaneOp, float: bool) -> Option<Opcode> {
        let shape = self.shape(float)?;
        Opcode::ALL.iter().copied().find(|opcode| opcode.lanes() == Some(Lanes { from: shape, shape, op }))
    }

    fn shape(&self, float: bool) -> Option<Shape> {
        match (self.element, float) {
            (1, false) => Some(Shape::I8x16),
            (2, false) => Some(Shape::I16x8),
            (4, false) => Some(Shape::I32x4),
            (8, false) => Some(Shape::I64x2),
            (4, true) => Some(Shape::F32x4),
            (8, true) => Some(Shape::F64x2),
            _ => None,
        }
    }

    /// Whether values of the type fill a lane, so that all their bits are in it.
    fn fills_lane(&self, ty: Type) -> bool {
        matches!((ty, self.element), (Type::I32 | Type::F32, 4) | (Type::I64 | Type::F64, 8))
    }

    /// The vector whose lanes have the low bits of these values, one for each copy.
    fn pack(&mut self, values: &[Value]) -> Option<usize> {
        if let Some(&known) = self.known.get(values) {
            return Some(known);
        }
        let node = self.pack_new(values)?;
        self.known.insert(values.to_vec(), node);
        Some(node)
    }

    fn pack_new(&mut self, values: &[Value]) -> Option<usize> {
        let func = self.func;
        let (first, ty) = (values[0], func.ty(values[0]));
        let fits = self.fills_lane(ty) || ty == Type::I32 && self.element < 4;
        if !fits || !values.iter().all(|&value| func.ty(value) == ty) {
            return None;
        }
        let float = ty.is_float();
        let same =
            |value: Value| value == first || func.as_const(first).is_some() && func.as_const(first) == func.as_const(value);
        if values.iter().all(|&value| same(value)) && self.counted.is_invariant(first) {
            let splat = self.lane_op(LaneOp::Lane(Lane::Splat), float)?;
            return Some(self.node(Node::Splat(first, splat)));
        }
        let op = func.op(first);
        let alike = |value: Value| func.op(value) == op && self.counted.position(value).is_some();
        if !values.iter().all(|&value| alike(value)) {
            return None;
        }
        match op.family() {
            Family::Load(load) => self.loads(load, values),
            Family::Integer(op) => self.integers(op, values),
            Family::Float(op) if self.allowed.floats => {
                let op = match op {
                    Float::Fadd => lanes::Float::Add,
                    Float::Fsub => lanes::Float::Sub,
                    Float::Fmul => lanes::Float::Mul,
                    Float::Fdiv => lanes::Float::Div,
                    Float::Fmin => lanes::Float::Min,
                    Float::Fmax => lanes::Float::Max,
                    Float::Fcopysign => return None,
                };
                self.apply(self.lane_op(LaneOp::Float(op), true)?, values, false)
            }
            Family::FloatUnary(op) if self.allowed.floats => {
                let op = match op {
                    FloatUnary::Fabs => lanes::FloatUnary::Abs,
                    FloatUnary::Fneg => lanes::FloatUnary::Neg,
                    FloatUnary::Fsqrt => lanes::FloatUnary::Sqrt,
                    FloatUnary::Fceil => lanes::FloatUnary::Ceil,
                    FloatUnary::Ffloor => lanes::FloatUnary::Floor,
                    FloatUnary::Ftrunc => lanes::FloatUnary::Trunc,
                    FloatUnary::Fnearest => lanes::FloatUnary::Nearest,
                };
                self.apply(self.lane_op(LaneOp::FloatUnary(op), true)?, values, false)
            }
            Family::Convert(op) => self.conversion(op, values),
            Family::Leaf(_) if op == Op::Select => self.selection(values),
            Family::Bits(_) | Family::Leaf(_) | Family::Float(_) | Family::FloatUnary(_) => None,
            Family::Compare(_) | Family::FloatCompare(_) | Family::Simd(_) | Family::Reference(_) => None,
            Family::Store(_) | Family::Memory(_) | Family::Global(_) | Family::Table(_) => None,
            Family::Call(_) | Family::Exception(_) | Family::Accounting(_) | Family::Terminator(_) => None,
        }
    }

    /// The operands with this index.
    fn args(&self, values: &[Value], i: usize) -> Vec<Value> {
        values.iter().map(|&value| self.func.args(value)[i]).collect()
    }

    /// An operation on the packs of the operands. If it may commute, the operands of each copy are first put in the order in
    /// which they resemble those of the first copy.
    fn apply(&mut self, opcode: Opcode, values: &[Value], commutes: bool) -> Option<usize> {
        let func = self.func;
        let args = func.args(values[0]).len();
        let mut packs: Vec<Vec<Value>> = (0..args).map(|i| self.args(values, i)).collect();
        if commutes {
            let alike = |a: Value, b: Value| a == b || func.op(a) == func.op(b) && self.resembles(a, b);
            for copy in 1..values.len() {
                let straight = alike(packs[0][copy], packs[0][0]) && alike(packs[1][copy], packs[1][0]);
                if !straight && alike(packs[1][copy], packs[0][0]) && alike(packs[0][copy], packs[1][0]) {
                    let (a, b) = (packs[0][copy], packs[1][copy]);
                    (packs[0][copy], packs[1][copy]) = (b, a);
                }
            }
        }
        let nodes = packs.iter().map(|pack| self.pack(pack)).collect::<Option<Vec<usize>>>()?;
        Some(self.node(Node::Op(opcode, nodes)))
    }

    /// Whether two values with the same operation may belong to one pack, as far as their accesses show it.
    fn resembles(&self, a: Value, b: Value) -> bool {
        let invariant = self.counted.is_invariant(a) == self.counted.is_invariant(b);
        invariant && self.access(a).map(|access| access.0) == self.access(b).map(|access| access.0)
    }

    fn loads(&mut self, load: Load, values: &[Value]) -> Option<usize> {
        let func = self.func;
        let accesses = values.iter().map(|&value| self.access(value)).collect::<Option<Vec<(usize, Access)>>>()?;
        let (group, first) = accesses[0];
        let float = func.ty(values[0]).is_float();
        if self.groups[group].stride == 0 {
            let same = accesses.iter().all(|&(other, access)| (other, access.at) == (group, first.at));
            let splat = self.lane_op(LaneOp::Lane(Lane::Splat), float)?;
            return same.then(|| self.node(Node::Uniform(values[0], splat)));
        }
        // Loads that are narrower than their values fill a lane with all that they load.
        let whole = match load {
            Load::Load => self.fills_lane(func.ty(values[0])),
            Load::Load8S | Load::Load8U | Load::Load16S | Load::Load16U => self.element < 4,
            Load::Load32S | Load::Load32U | Load::Load64U => false,
        };
        let consecutive = accesses.iter().zip(0..).all(|(&(other, access), i)| {
            other == group && access.at == first.at + i * self.element && access.width == self.element
        });
        (whole && consecutive).then(|| self.node(Node::Load(group, first.at, values[0])))
    }

    fn integers(&mut self, op: Integer, values: &[Value]) -> Option<usize> {
        use lanes::Integer as Lanes;
        match op {
            Integer::Add => self.apply(self.lane_op(LaneOp::Integer(Lanes::Add), false)?, values, true),
            Integer::Sub => self.apply(self.lane_op(LaneOp::Integer(Lanes::Sub), false)?, values, false),
            Integer::Mul => self.apply(self.lane_op(LaneOp::Integer(Lanes::Mul), false)?, values, true),
            Integer::And => self.apply(whole(Whole::And)?, values, true),
            Integer::Or => self.apply(whole(Whole::Or)?, values, true),
            Integer::Xor => self.apply(whole(Whole::Xor)?, values, true),
            Integer::Shl => self.shift(Shift::Shl, values),
            Integer::ShrS => self.shift(Shift::ShrS, values),
            Integer::ShrU => self.shift(Shift::ShrU, values),
            Integer::MulHigh | Integer::DivS | Integer::DivU | Integer::RemS | Integer::RemU => None,
            Integer::Rotl | Integer::Rotr => None,
        }
    }

    /// A shift by a count that all copies share. In lanes narrower than the values, the count must be a constant below their
    /// width, and bits that a shift to the right brings in must be zero.
    fn shift(&mut self, op: Shift, values: &[Value]) -> Option<usize> {
        let func = self.func;
        let counts = self.args(values, 1);
        let constant = func.as_const(counts[0]);
        let shared = counts.iter().all(|&count| count == counts[0] || constant.is_some() && func.as_const(count) == constant);
        let full = self.fills_lane(func.ty(values[0]));
        let shifted = self.args(values, 0);
        let exact = match constant {
            Some(count) if full => count < 8 * self.element,
            Some(count) => {
                let narrow = shifted.iter().all(|&value| self.is_zero_extended(value));
                count < 8 * self.element && (op == Shift::Shl || op == Shift::ShrU && narrow)
            }
            // The count of the vector shift has 32 bits.
            None => full && func.ty(counts[0]) == Type::I32 && self.counted.is_invariant(counts[0]),
        };
        if !shared || !exact {
            return None;
        }
        let opcode = self.lane_op(LaneOp::Shift(op), false)?;
        let node = self.pack(&shifted)?;
        Some(self.node(Node::Shift(opcode, node, counts[0])))
    }

    /// Whether the bits of a value above those of a lane are zero.
    fn is_zero_extended(&self, value: Value) -> bool {
        let func = self.func;
        let masks = |&arg: &Value| func.as_const(arg).is_some_and(|bits| bits < 1 << (8 * self.element));
        let op = func.op(value);
        op == Op::Load8U || op == Op::Load16U && self.element >= 2 || op == Op::And && func.args(value).iter().any(masks)
    }

    fn conversion(&mut self, op: Convert, values: &[Value]) -> Option<usize> {
        let (from, to) = (self.func.operand_type(values[0]), self.func.ty(values[0]));
        let singles = (from, to) == (Type::I32, Type::F32) && self.allowed.floats;
        let integers = (from, to) == (Type::F32, Type::I32);
        match op {
            Convert::ConvertS if singles => self.apply(Opcode::F32x4ConvertI32x4S, values, false),
            Convert::ConvertU if singles => self.apply(Opcode::F32x4ConvertI32x4U, values, false),
            Convert::TruncSatS if integers => self.apply(Opcode::I32x4TruncSatF32x4S, values, false),
            Convert::TruncSatU if integers => self.apply(Opcode::I32x4TruncSatF32x4U, values, false),
            Convert::Reinterpret => {
                let bits = self.args(values, 0);
                self.pack(&bits)
            }
            Convert::ConvertS | Convert::ConvertU | Convert::TruncSatS | Convert::TruncSatU => None,
            Convert::Wrap | Convert::ExtendS | Convert::ExtendU | Convert::TruncS | Convert::TruncU => None,
            Convert::Demote | Convert::Promote => None,
        }
    }

    /// A selection by comparisons of values that fill a lane.
    fn selection(&mut self, values: &[Value]) -> Option<usize> {
        let func = self.func;
        let conditions = self.args(values, 0);
        let op = func.op(conditions[0]);
        let compared = func.operand_type(conditions[0]);
        let alike = |&value: &Value| func.op(value) == op && func.operand_type(value) == compared && func.args(value).len() == 2;
        if !conditions.iter().all(alike) || !self.fills_lane(compared) {
            return None;
        }
        let opcode = match op.family() {
            Family::Compare(op) => {
                let op = match op {
                    Compare::Eqz => return None,
                    Compare::Eq => lanes::Compare::Eq,
                    Compare::Ne => lanes::Compare::Ne,
                    Compare::LtS => lanes::Compare::LtS,
                    Compare::LtU => lanes::Compare::LtU,
                    Compare::GtS => lanes::Compare::GtS,
                    Compare::GtU => lanes::Compare::GtU,
                    Compare::LeS => lanes::Compare::LeS,
                    Compare::LeU => lanes::Compare::LeU,
                    Compare::GeS => lanes::Compare::GeS,
                    Compare::GeU => lanes::Compare::GeU,
                };
                self.lane_op(LaneOp::Compare(op), false)?
            }
            Family::FloatCompare(op) => {
                let op = match op {
                    FloatCompare::Feq => lanes::FloatCompare::Eq,
                    FloatCompare::Fne => lanes::FloatCompare::Ne,
                    FloatCompare::Flt => lanes::FloatCompare::Lt,
                    FloatCompare::Fgt => lanes::FloatCompare::Gt,
                    FloatCompare::Fle => lanes::FloatCompare::Le,
                    FloatCompare::Fge => lanes::FloatCompare::Ge,
                };
                self.lane_op(LaneOp::FloatCompare(op), true)?
            }
            Family::Leaf(_) | Family::Integer(_) | Family::Bits(_) | Family::Float(_) | Family::FloatUnary(_) => return None,
            Family::Convert(_) | Family::Simd(_) | Family::Reference(_) | Family::Load(_) | Family::Store(_) => return None,
            Family::Memory(_) | Family::Global(_) | Family::Table(_) | Family::Call(_) => return None,
            Family::Exception(_) | Family::Accounting(_) | Family::Terminator(_) => return None,
        };
        let mask = self.apply(opcode, &conditions, false)?;
        let (if_set, if_zero) = (self.args(values, 1), self.args(values, 2));
        let (a, b) = (self.pack(&if_set)?, self.pack(&if_zero)?);
        Some(self.node(Node::Op(whole(Whole::Bitselect)?, vec![a, b, mask])))
    }
}

/// The instruction with this operation on all bits.
fn whole(op: Whole) -> Option<Opcode> {
    let lanes = Lanes { from: Shape::V128, shape: Shape::V128, op: LaneOp::Whole(op) };
    Opcode::ALL.iter().copied().find(|opcode| opcode.lanes() == Some(lanes))
}
